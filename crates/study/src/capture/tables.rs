//! Connections and the numbers behind their plots, as tables and CSV.

use std::fmt::Write as _;

use lasthop_analyze::{Closing, Opening};
use lasthop_report::model::{Column, Table};
use lasthop_report::number::{KIB, short};

use super::page::word;
use super::{Capture, Transfer, end, seconds};

/// A row for each direction with packets, those with payload first, at most `most`.
pub fn summary(capture: &Capture, most: usize) -> Table {
    let all = rows(capture);
    let kb = |bytes: u64| short((bytes as f64 / KIB * 10.0).round() / 10.0);
    let ms = |s: f64| short((s * 1e4).round() / 10.0);
    let missing = || "–".to_owned();
    let row = |transfer: &Transfer<'_>| {
        let Transfer { connection, data, back, .. } = *transfer;
        let trips = data
            .rtt
            .map_or_else(missing, |r| format!("{} / {} / {}", ms(r.min), ms(r.mean), ms(r.max)));
        vec![
            connection.number.to_string(),
            transfer.title(),
            data.packets.to_string(),
            kb(data.unique_bytes),
            data.retransmissions.total().to_string(),
            data.out_of_order.to_string(),
            trips,
            back.window_max.map_or_else(missing, kb),
            format!("{:.2}", transfer.seconds()),
            state(transfer).to_owned(),
        ]
    };
    let title = match all.len() {
        n if n > most => format!("The {most} directions with most bytes, of {n}"),
        _ => String::new(),
    };
    let columns = Column::list(
        "# | <from > to | packets | KiB | retransmitted | reordered | round trip, ms (min / mean / max) | window, KiB | s | <state",
    );
    Table { title, columns, rows: all.iter().take(most).map(row).collect() }
}

/// Both directions of all connections, those with most bytes first, then in the order of the capture.
fn rows(capture: &Capture) -> Vec<Transfer<'_>> {
    let mut all: Vec<_> = capture.analysis.connections.iter().flat_map(Transfer::both).collect();
    all.retain(|transfer| transfer.data.packets > 0);
    all.sort_by_key(|transfer| core::cmp::Reverse(transfer.data.unique_bytes));
    all
}

fn state(transfer: &Transfer<'_>) -> &'static str {
    match transfer.connection.opening {
        Opening::Refused => return "refused",
        Opening::Rejected => return "rejected",
        Opening::Unanswered => return "no answer",
        Opening::Unconfirmed => return "not opened",
        Opening::Handshake | Opening::MidConnection => {}
    }
    match transfer.connection.closing {
        Closing::Fin => "closed",
        Closing::HalfClosed => "half closed",
        Closing::Reset => "reset",
        Closing::Open => "open",
    }
}

fn or_empty(value: Option<impl ToString>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

/// The summary of all connections as CSV: bytes and seconds, a row for each direction with packets.
pub fn summary_csv(capture: &Capture) -> String {
    let mut csv = "connection,from,to,packets,data_packets,bytes,unique_bytes,retransmitted,\
                   out_of_order,rtt_samples,rtt_min_s,rtt_mean_s,rtt_max_s,window_max_bytes,\
                   seconds,state\n"
        .to_owned();
    for transfer in rows(capture) {
        let Transfer { connection, data, back, .. } = transfer;
        let rtt = data.rtt;
        // Writing to a string cannot fail.
        let _ = writeln!(
            csv,
            "{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}",
            connection.number,
            end(&transfer.from),
            end(&transfer.to),
            data.packets,
            data.data_packets,
            data.bytes,
            data.unique_bytes,
            data.retransmissions.total(),
            data.out_of_order,
            rtt.map_or(0, |rtt| rtt.samples),
            or_empty(rtt.map(|rtt| rtt.min)),
            or_empty(rtt.map(|rtt| rtt.mean)),
            or_empty(rtt.map(|rtt| rtt.max)),
            or_empty(back.window_max),
            transfer.seconds(),
            state(&transfer),
        );
    }
    csv
}

/// The time-sequence plot as CSV: seconds from the first packet of the connection, kind, first byte and number of
/// bytes.
pub fn sequence_csv(transfer: &Transfer<'_>) -> String {
    let mut csv = "time_s,kind,byte,length\n".to_owned();
    for point in &transfer.data.points {
        let at = seconds(transfer.connection.began, point.at);
        let kind = word(&point.kind);
        let _ = writeln!(csv, "{at:.9},{kind},{},{}", point.offset, point.len);
    }
    csv
}

/// Outstanding data, receive window and round trips as CSV, in order of time. A row has the values known or measured at
/// its time.
pub fn over_time_csv(transfer: &Transfer<'_>) -> String {
    let mut csv = "time_s,outstanding_bytes,window_bytes,rtt_s,rtt_by\n".to_owned();
    let over = &transfer.data.over_time;
    let flight = over
        .in_flight
        .kept
        .iter()
        .map(|f| (f.at, format!("{},{},,", f.outstanding, or_empty(f.window))));
    let trips =
        over.round_trips.kept.iter().map(|t| (t.at, format!(",,{:.9},{}", t.rtt, word(&t.by))));
    let mut rows: Vec<_> = flight.chain(trips).collect();
    rows.sort_by_key(|(at, _)| *at);
    for (at, row) in rows {
        let _ = writeln!(csv, "{:.9},{row}", seconds(transfer.connection.began, at));
    }
    csv
}

/// Payload per interval as CSV: total, and without retransmissions.
pub fn volumes_csv(transfer: &Transfer<'_>) -> String {
    let mut csv = "from_s,to_s,bytes,new_bytes\n".to_owned();
    let volumes = &transfer.data.over_time.volumes;
    let length = volumes.interval.as_secs_f64();
    for (i, volume) in volumes.iter().enumerate() {
        let (from, to) = (i as f64 * length, (i + 1) as f64 * length);
        let _ = writeln!(csv, "{from:.3},{to:.3},{},{}", volume.bytes, volume.fresh);
    }
    csv
}
