//! The summary of the link as text.

use lasthop_live::shell::{Direction, End, Ended};
use lasthop_report::model::{Column, Table};
use lasthop_report::table::render;

use crate::style;

/// A table of both directions, with notes.
pub fn text(ended: &Ended, label: &str) -> String {
    let both = [("to it", &ended.tallied.down), ("from it", &ended.tallied.up)];
    let table = Table {
        title: String::new(),
        columns: Column::list(
            "< | packets | MB | Mbit/s | lost | queue ms: median | 99 % | max | <lost why",
        ),
        rows: both.into_iter().map(|(name, direction)| row(name, direction)).collect(),
    };
    let how = match ended.end {
        End::Exit(0) => String::new(),
        End::Exit(code) => format!(", exit code {code}"),
        End::Signal(number) => format!(", ended by signal {number}"),
    };
    let mut text = format!("\n{}  {:.1} s{how}\n", style::heading(label), ended.seconds);
    text += &render(&table, style::stderr_look());
    for (name, direction) in both {
        let Direction { repeated, marked, damaged, .. } = direction;
        if repeated + marked + damaged > 0 {
            text += &format!(
                "\n{name}: {repeated} retransmitted at the station, {marked} marked, {damaged} damaged"
            );
        }
    }
    if ended.overrun > 0 {
        let lost = ended.overrun;
        text += &style::bad(&format!(
            "\nthis machine was too slow: it lost {lost} packets, in addition to those of the link"
        ));
    }
    style::stderr_wrapped(&(text.trim_end().to_owned() + "\n"))
}

fn row(name: &str, direction: &Direction) -> Vec<String> {
    let lost: u64 = direction.lost.values().sum();
    let why: Vec<_> = direction.lost.iter().map(|(cause, n)| format!("{n} {cause}")).collect();
    let none = || "–".to_owned();
    let waits = direction.queue_delay;
    let ms = |of: Option<f64>| of.map_or_else(none, |ms| format!("{ms:.2}"));
    vec![
        name.to_owned(),
        direction.packets.to_string(),
        format!("{:.3}", direction.bytes as f64 / 1e6),
        direction.rate.map_or_else(none, |rate| format!("{:.3}", rate / 1e6)),
        lost.to_string(),
        ms(waits.map(|waits| waits.median_ms)),
        ms(waits.map(|waits| waits.p99_ms)),
        ms(waits.map(|waits| waits.max_ms)),
        if why.is_empty() { none() } else { why.join(", ") },
    ]
}
