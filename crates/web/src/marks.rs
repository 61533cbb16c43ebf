//! The series of a flow as columns, by kind.

use lasthop_observe::sequence::{SendKind, Series};
use serde_json::{Value, json};

use crate::envelope::Columns;

/// Writes flow number `i`: `flow.0.sent.t`, `.from` and `.to`, and so on.
pub(crate) fn pack(series: &Series, i: usize, columns: &mut Columns) {
    let mut add = |kind: &str, marks: &[(f64, f64, f64)]| {
        if marks.is_empty() {
            return;
        }
        for (part, of) in [("t", 0), ("from", 1), ("to", 2)] {
            let numbers: Vec<f64> = marks.iter().map(|m| [m.0, m.1, m.2][of]).collect();
            columns.numbers(&format!("flow.{i}.{kind}.{part}"), &numbers);
        }
    };
    for (name, kind) in SendKind::NAMED {
        let sent = series.sent.iter().filter(|sent| sent.kind == kind);
        let marks: Vec<_> = sent.map(|s| (s.at_s, s.start as f64, s.end as f64)).collect();
        add(name, &marks);
    }
    let lost = series.lost.iter().map(|l| (l.at_s, l.start as f64, l.end as f64));
    add("lost", &lost.collect::<Vec<_>>());
    let mut before = 0.0;
    let acks = series.acked.iter().map(|(at, to)| {
        let from = core::mem::replace(&mut before, *to as f64);
        (*at, from, *to as f64)
    });
    add("ack", &acks.collect::<Vec<_>>());
    let windows = |of: &dyn Fn(&lasthop_observe::sequence::Window) -> u32| {
        series.windows.iter().map(|w| (w.at_s, 0.0, f64::from(of(w)))).collect::<Vec<_>>()
    };
    add("cwnd", &windows(&|w| w.cwnd));
    // Before the first loss ssthresh is outside the plot.
    let highest = series.windows.iter().map(|w| w.cwnd).max().unwrap_or(0);
    let bound = highest.saturating_mul(2);
    let ssthresh = windows(&|w| w.ssthresh);
    let seen = ssthresh.into_iter().filter(|w| w.2 <= f64::from(bound));
    add("ssthresh", &seen.collect::<Vec<_>>());
    let expired: Vec<_> = series.timeouts.iter().map(|at| (*at, 0.0, 0.0)).collect();
    add("expired", &expired);
    for (name, spans) in [
        ("stall", series.stalls.iter().map(|s| (s.from_s, s.to_s)).collect::<Vec<_>>()),
        ("bad", series.bad.iter().map(|b| (b.from_s, b.to_s)).collect()),
    ] {
        if !spans.is_empty() {
            let part = |of: fn(&(f64, f64)) -> f64| spans.iter().map(of).collect::<Vec<_>>();
            columns.numbers(&format!("span.{i}.{name}.from"), &part(|s| s.0));
            columns.numbers(&format!("span.{i}.{name}.to"), &part(|s| s.1));
        }
    }
}

/// The fields of a series besides its columns.
pub(crate) fn summary(series: &Series) -> Value {
    json!({ "flow": series.flow, "end": series.end_s })
}
