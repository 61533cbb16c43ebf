//! A measurement as tables.

use lasthop_report::model::{Column, Table};
use lasthop_report::number::{Units, plural};
use lasthop_report::table::render;
use lasthop_study::load::{Measurement, Phase, RoundTrips, Transfer};

use crate::style;

const NONE: &str = "–";

/// Milliseconds with one decimal, as a cell.
fn ms(seconds: Option<f64>) -> String {
    seconds.map_or_else(|| NONE.to_owned(), |seconds| format!("{:.1}", seconds * 1e3))
}

/// Bytes per second in `units`, as a cell.
fn rate(goodput: Option<f64>, units: Units) -> String {
    goodput.map_or_else(|| NONE.to_owned(), |rate| format!("{:.2}", rate / units.size()))
}

fn word(value: Option<impl ToString>) -> String {
    value.map_or_else(|| NONE.to_owned(), |value| value.to_string())
}

/// The measurement for a terminal.
pub fn text(measured: &Measurement, units: Units) -> String {
    let mut text = format!("{}\n\n", render(&latency(measured, units), style::look()));
    let streams = streams(measured, units);
    if !streams.rows.is_empty() {
        text += &format!("{}\n\n", render(&streams, style::look()));
    }
    text += &format!("{}\n\n", render(&kinds(measured), style::look()));
    text += &notes(measured);
    text
}

/// Medians for each kind of connection.
fn kinds(measured: &Measurement) -> Table {
    let median = |trips: Option<RoundTrips>| ms(trips.map(|all| all.median_s));
    let loaded = |transfer: &Option<Transfer>| {
        median(transfer.as_ref().and_then(|transfer| transfer.round_trip))
    };
    let row = |phase: &Phase| {
        vec![
            phase.phase.clone(),
            median(phase.round_trip),
            median(phase.connections.handshake),
            median(phase.connections.request),
            loaded(&phase.up),
            loaded(&phase.down),
            word(phase.responsiveness_rpm.map(f64::round)),
        ]
    };
    Table {
        title: "Median round trips by connection, in ms".to_owned(),
        columns: vec![
            Column::text("phase"),
            Column::number("separate"),
            Column::number("new: handshake"),
            Column::number("new: request"),
            Column::number("in uploads"),
            Column::number("in downloads"),
            Column::number("responsiveness (RPM)"),
        ],
        rows: measured.phases.iter().map(row).collect(),
    }
}

fn latency(measured: &Measurement, units: Units) -> Table {
    let row = |phase: &Phase| {
        let trips = phase.round_trip;
        let goodput = |transfer: &Option<Transfer>| {
            rate(transfer.as_ref().and_then(|transfer| transfer.goodput), units)
        };
        vec![
            phase.phase.clone(),
            goodput(&phase.up),
            goodput(&phase.down),
            ms(trips.map(|all| all.min_s)),
            ms(trips.map(|all| all.median_s)),
            ms(trips.map(|all| all.p95_s)),
            ms(trips.map(|all| all.max_s)),
            ms(phase.increase_s),
            word(trips.map(|all| all.rpm.round())),
            word(phase.grade),
        ]
    };
    Table {
        title: format!("Round trips in ms, rates in {}: {}", units.name(), measured.to),
        columns: vec![
            Column::text("phase"),
            Column::number("up"),
            Column::number("down"),
            Column::number("min"),
            Column::number("median"),
            Column::number("p95"),
            Column::number("max"),
            Column::number("increase"),
            Column::number("RPM"),
            Column::text("grade"),
        ],
        rows: measured.phases.iter().map(row).collect(),
    }
}

fn streams(measured: &Measurement, units: Units) -> Table {
    let mut rows = Vec::new();
    for phase in &measured.phases {
        for (direction, transfer) in [("up", &phase.up), ("down", &phase.down)] {
            let Some(transfer) = transfer else { continue };
            let each = transfer.streams.iter().map(|stream| rate(stream.goodput, units));
            rows.push(vec![
                phase.phase.clone(),
                direction.to_owned(),
                each.collect::<Vec<_>>().join(" "),
                word(transfer.retransmissions),
                word(transfer.retransmitted.map(|share| format!("{:.2} %", share * 100.0))),
                transfer
                    .streams
                    .iter()
                    .find_map(|stream| stream.congestion.clone())
                    .unwrap_or_else(|| NONE.to_owned()),
            ]);
        }
    }
    Table {
        title: String::new(),
        columns: vec![
            Column::text("phase"),
            Column::text("direction"),
            Column::text(format!("each stream ({})", units.name())),
            Column::number("retransmissions"),
            Column::number("of bytes"),
            Column::text("congestion control"),
        ],
        rows,
    }
}

fn notes(measured: &Measurement) -> String {
    let mut text = String::new();
    let mut broken = false;
    for phase in &measured.phases {
        let counts = phase.probes;
        let mut parts = Vec::new();
        for (count, condition) in [
            (counts.unanswered, "without an answer"),
            (counts.late, "later than 1 s"),
            (counts.skipped, "not sent, because 512 had no answer"),
            (counts.retransmissions.unwrap_or(0), "retransmitted"),
            (counts.answer_retransmissions.unwrap_or(0), "with a retransmitted answer"),
        ] {
            if count > 0 {
                parts.push(format!("{count} {condition}"));
            }
        }
        if !parts.is_empty() {
            let sent = plural(counts.sent, "probe");
            text += &format!("{}: {}, of {sent}\n", phase.phase, parts.join(", "));
        }
        let failures = phase.connections.failures;
        if let Some(why) = phase.connections.error.as_ref().filter(|_| failures > 0) {
            let connections = plural(failures, "new connection");
            text += &format!("{}: {connections} failed; the first: {why}\n", phase.phase);
        }
        let all = phase.up.iter().chain(&phase.down).flat_map(|transfer| &transfer.streams);
        for why in all.filter_map(|stream| stream.failed.as_ref()) {
            broken = true;
            text += &style::bad(&format!("{}: a stream failed: {why}\n", phase.phase));
        }
    }
    if let Some(why) = &measured.failed {
        text += &style::bad(&format!("the measurement broke off: {why}\n"));
    } else if !measured.complete && !broken {
        text += "interrupted: the last phase is shorter\n";
    }
    text += &style::dim(
        "Rates and round trips under load: from a quarter of each phase to its end. docs/how-to/load.md explains them.",
    );
    text.push('\n');
    text
}
