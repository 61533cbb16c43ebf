//! Plots and pages of captures.

use std::collections::BTreeMap;

use lasthop_analyze::{Crossing, PointKind, Retransmission, StallCause};
use lasthop_observe::sequence::{Lost, SendKind, SentPacket, Series};
use lasthop_observe::stalls::Stall;
use lasthop_proto::units::Time;
use lasthop_report::html;
use lasthop_report::model::{Again, Column, Figure, Page, Section, Table};
use lasthop_report::plot::{Plot, TimeSequence};

use super::matched::{self, Pair};
use super::{Capture, DESCRIBED, Transfer, over_time, seconds, tables};

/// Maximum number of losses listed per transfer.
const LISTED: usize = 20;

/// The time-sequence plot of a transfer.
pub fn plot(transfer: &Transfer<'_>) -> Plot {
    let title = transfer.title();
    TimeSequence { title: &title, series: &series(transfer), part: None }.plot()
}

pub fn page(captures: &[Capture], pairs: &[Pair], command: String) -> String {
    let sections = captures.iter().map(|capture| {
        let transfers = capture.transfers();
        let shown = || transfers.iter().take(DESCRIBED);
        let mut text = capture.heading();
        if transfers.len() > DESCRIBED {
            text.push(format!("The {DESCRIBED} largest of {} transfers.", transfers.len()));
        }
        Section {
            title: capture.file.clone(),
            text,
            tables: std::iter::once(tables::summary(capture, LISTED))
                .chain(shown().flat_map(|t| [Some(facts(t)), losses(t)]).flatten())
                .collect(),
            figures: shown().flat_map(figures).collect(),
            ..Section::default()
        }
    });
    html::render(&Page {
        title: "Captures".to_owned(),
        subtitle: "What happened to TCP, and why".to_owned(),
        sections: sections.chain(pairs.iter().map(pair)).collect(),
        again: Again {
            commands: vec![command],
            seeds: String::new(),
            version: lasthop_sim::version::LINE.to_owned(),
        },
        ..Page::default()
    })
}

/// The section of two captures of one path.
fn pair(pair: &Pair) -> Section {
    let table = |crossing: &&Crossing| Table {
        title: matched::title(crossing),
        columns: vec![Column::text(""), Column::text("")],
        rows: matched::facts(crossing)
            .into_iter()
            .map(|(name, value)| vec![name.to_owned(), value])
            .collect(),
    };
    let crossings = pair.crossings();
    Section {
        title: pair.title(),
        text: pair.heading(),
        tables: crossings.iter().map(table).collect(),
        figures: crossings
            .iter()
            .map(|crossing| {
                Figure::new(&pair.plot(crossing), "", "Time by the clock of the first capture.")
            })
            .collect(),
        ..Section::default()
    }
}

/// The plots of a transfer, with the locations of their numbers.
fn figures(transfer: &Transfer<'_>) -> [Figure; 2] {
    let mut both = pictures(transfer);
    // Each connection has its own time origin.
    for figure in &mut both {
        figure.group = transfer.connection.number.to_string();
    }
    both
}

fn pictures(transfer: &Transfer<'_>) -> [Figure; 2] {
    let (number, file) = (transfer.connection.number, transfer.file_name());
    [
        Figure::new(
            &plot(transfer),
            "",
            format!(
                "Connection {number}: every packet by the time it passed and its place in the stream. \
                 Numbers: {file}.csv"
            ),
        ),
        Figure::new(
            &over_time(transfer),
            "",
            format!(
                "Connection {number}: throughput in intervals of at least one round trip, \
                 outstanding data, and the time to each ACK. Numbers: {file}-over-time.csv, \
                 {file}-throughput.csv"
            ),
        ),
    ]
}

fn facts(transfer: &Transfer<'_>) -> Table {
    let rows = transfer.facts().into_iter().map(|(name, value)| vec![name.to_owned(), value]);
    Table {
        title: format!("Connection {}: {}", transfer.connection.number, transfer.title()),
        columns: vec![Column::text(""), Column::text("")],
        rows: rows.collect(),
    }
}

fn losses(transfer: &Transfer<'_>) -> Option<Table> {
    let all = &transfer.data.losses;
    let began = transfer.connection.began;
    let rows = all.iter().take(LISTED).map(|loss| {
        vec![
            format!("{:.3}", seconds(began, loss.at)),
            loss.offset.to_string(),
            loss.len.to_string(),
            word(&loss.repair),
            loss.rtt_before.map_or(String::new(), |rtt| format!("{:.1}", rtt * 1e3)),
            loss.burst.to_string(),
        ]
    });
    let title = match all.len() {
        n if n > LISTED => format!("The first {LISTED} of {n} losses"),
        _ => "Losses".to_owned(),
    };
    (!all.is_empty()).then(|| Table {
        title,
        columns: Column::list("repaired at (s) | byte | length | <repaired by | round trip before (ms) | losses of the episode"),
        rows: rows.collect(),
    })
}

/// The name in JSON.
pub(super) fn word(value: &impl serde::Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word.replace('_', " "),
        _ => String::new(),
    }
}

/// The points of an analysis in the form of a plot: seconds from the first packet, bytes from the first.
pub fn series(transfer: &Transfer<'_>) -> Series {
    let Transfer { connection, data, .. } = transfer;
    let at_s = |at: Time| seconds(connection.began, at);
    let lowest = data.points.iter().map(|p| p.offset).min().unwrap_or(1).min(1);
    let byte = |offset: i64| offset.saturating_sub(lowest).max(0) as u64;
    let repairs: BTreeMap<(Time, i64), Retransmission> =
        data.losses.iter().map(|loss| ((loss.at, loss.offset), loss.repair)).collect();
    let mut series = Series {
        flow: transfer.title().replace(' ', ""),
        lost: data
            .losses
            .iter()
            .filter_map(|loss| {
                let (start, sent) = (byte(loss.offset), loss.sent?);
                Some(Lost { at_s: at_s(sent), start, end: start + u64::from(loss.len) })
            })
            .collect(),
        stalls: data
            .stalls
            .iter()
            .filter(|stall| stall.cause != StallCause::ApplicationIdle)
            .map(|stall| Stall { from_s: at_s(stall.from), to_s: at_s(stall.to) })
            .collect(),
        end_s: transfer.seconds(),
        ..Series::default()
    };
    for point in &data.points {
        let start = byte(point.offset);
        let kind = match point.kind {
            PointKind::Data | PointKind::OutOfOrder => SendKind::First,
            PointKind::Retransmission => match repairs.get(&(point.at, point.offset)) {
                Some(Retransmission::Fast | Retransmission::Recovery) => SendKind::Fast,
                Some(Retransmission::Timeout | Retransmission::AfterTimeout) => SendKind::Timeout,
                _ => SendKind::Again,
            },
            PointKind::Ack => {
                series.acked.push((at_s(point.at), start));
                continue;
            }
            PointKind::DuplicateAck => continue,
        };
        let end = start + u64::from(point.len);
        series.sent.push(SentPacket { at_s: at_s(point.at), start, end, kind });
    }
    series
}
