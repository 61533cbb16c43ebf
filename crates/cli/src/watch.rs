//! How a running station fares, for people: a table, or one line.

use std::fmt::Write as _;

use lasthop_live::control::protocol::{StageStatus, Status};
use lasthop_live::counters::DirectionCounts;
use lasthop_live::status::TunnelStatus as LinkStatus;
use lasthop_proto::units::{Bytes, Span};

use crate::style;

/// Packets a second between two looks, and all of them.
#[derive(Clone, Copy)]
struct Rate {
    seconds: f64,
}

impl Rate {
    fn between(last: Option<&Status>, now: &Status) -> Option<Rate> {
        let passed = now.uptime_ns.checked_sub(last?.uptime_ns)?;
        (passed > 0).then_some(Rate { seconds: passed as f64 / 1e9 })
    }

    fn of(self, last: u64, now: u64) -> f64 {
        now.saturating_sub(last) as f64 / self.seconds
    }
}

/// The table; rates are those since `last`.
pub fn table(last: Option<&Status>, now: &Status) -> String {
    let mut text = String::new();
    let rate = Rate::between(last, now);
    let _ = writeln!(
        text,
        "{} ({}, lasthop {}), up {}",
        style::heading(&now.name),
        now.world,
        now.version,
        uptime(now.uptime_ns)
    );
    let _ = writeln!(
        text,
        "\n{}",
        style::heading("interface            frames in     frames out        rate in    lost")
    );
    for (i, port) in now.ports.iter().enumerate() {
        let counts = port.counts;
        let before = last.and_then(|last| last.ports.get(i)).map_or(0, |p| p.counts.received_bytes);
        let bits = rate.map(|rate| 8.0 * rate.of(before, counts.received_bytes));
        let bits = bits.map_or("-".to_owned(), |bits| format!("{:.2} Mb/s", bits / 1e6));
        let name = format!("{} ({})", port.name, port.side);
        let lost = counts.overrun + counts.refused;
        let _ = writeln!(
            text,
            "{name:<18} {:>11}    {:>11}   {bits:>12} {lost:>7}",
            counts.received, counts.sent
        );
    }
    let _ = writeln!(
        text,
        "\n{}",
        style::heading("stage          what            flows       state        peak     held")
    );
    for stage in &now.stages {
        let bytes = |n: Option<usize>| n.map_or("-".to_owned(), |n| Bytes(n as u64).to_string());
        let _ = writeln!(
            text,
            "{:<14} {:<14} {:>6} {:>11} {:>11} {:>8}",
            stage.name,
            what(stage),
            stage.flows.map_or("-".to_owned(), |n| n.to_string()),
            bytes(stage.state_bytes),
            bytes(stage.peak_state_bytes),
            stage.packets.held
        );
    }
    if let Some(plane) = &now.plane {
        let counts = plane.counts.named().into_iter().filter(|(_, n)| *n > 0);
        let counts: Vec<String> = counts.map(|(name, n)| format!("{name} {n}")).collect();
        let _ = writeln!(
            text,
            "\nthe kernel forwards and shows {}: {}",
            plane.shows,
            counts.join(", ")
        );
    }
    let rows = happened(now);
    if rows.is_empty() {
        return text;
    }
    let before = last.map(happened).unwrap_or_default();
    let _ = writeln!(
        text,
        "\n{}",
        style::heading(
            "what happened                                            packets        /s"
        )
    );
    for (name, n) in rows {
        let was = before.iter().find(|(other, _)| *other == name).map_or(0, |(_, n)| *n);
        let each = rate.map_or("-".to_owned(), |rate| format!("{:.1}", rate.of(was, n)));
        let _ = writeln!(text, "{name:<52} {n:>11} {each:>9}");
    }
    if let Some(capture) = &now.capture {
        let state = capture.failed.as_ref().map_or(String::new(), |why| format!("; ended: {why}"));
        let _ = writeln!(
            text,
            "\ncaptures in {}: number {}, {}{state}",
            capture.dir,
            capture.generation,
            Bytes(capture.bytes)
        );
    }
    text
}

/// Characters of a line, but for a word on what was left out.
const LONGEST: usize = 160;

/// One line: rates of both directions, and what happened most since `last`. `lasthop ctl get` has everything.
pub fn line(last: Option<&Status>, now: &Status) -> String {
    let mut text = format!("{:>8}", uptime(now.uptime_ns));
    let rate = Rate::between(last, now);
    for (i, port) in now.ports.iter().enumerate() {
        let before = last.and_then(|last| last.ports.get(i)).map_or(0, |p| p.counts.received_bytes);
        let bits = rate.map_or(0.0, |rate| 8.0 * rate.of(before, port.counts.received_bytes));
        let _ = write!(text, "  from {} {:.2} Mb/s", port.side, bits / 1e6);
    }
    let flows: usize =
        now.stages.iter().filter(|s| s.kind == "agent").filter_map(|s| s.flows).sum();
    let _ = write!(text, "  flows {flows}");
    // Counts since the start belong to no interval: the first line has none.
    let Some(last) = last else { return text + "\n" };
    let before = happened(last);
    let mut changes: Vec<(String, u64)> = happened(now)
        .into_iter()
        .map(|(name, n)| {
            let was = before.iter().find(|(other, _)| *other == name).map_or(0, |(_, n)| *n);
            (name, n.saturating_sub(was))
        })
        .filter(|(_, more)| *more > 0)
        .collect();
    changes.sort_by_key(|(_, more)| std::cmp::Reverse(*more));
    for (i, (name, more)) in changes.iter().enumerate() {
        let change = format!("  {name} {more}");
        if text.len() + change.len() > LONGEST {
            let _ = write!(text, "  and {} more", changes.len() - i);
            break;
        }
        text += &change;
    }
    text.push('\n');
    text
}

fn what(stage: &StageStatus) -> String {
    stage.config["agent"].as_str().unwrap_or(&stage.kind).to_owned()
}

fn uptime(ns: u64) -> String {
    Span(ns / 1_000_000_000 * 1_000_000_000).to_string()
}

/// What a station's owner wants to see of what happened: drops, damage, repairs and forged packets by cause, and what
/// was noticed.
fn happened(status: &Status) -> Vec<(String, u64)> {
    let mut rows = Vec::new();
    for stage in &status.stages {
        let is_host = stage.kind == "host";
        let place = if is_host { format!("{} host", stage.name) } else { stage.name.clone() };
        let sides: [(&str, &DirectionCounts); 2] =
            [("right", &stage.happened.right), ("left", &stage.happened.left)];
        for (side, counts) in sides {
            // A host has one direction to send to and one to hear from.
            let way = if is_host { String::new() } else { format!(" to the {side}") };
            let mut row = |what: &str, n: u64| {
                if n > 0 {
                    rows.push((format!("{place}: {what}{way}"), n));
                }
            };
            row("transmitted", counts.transmitted);
            row("damaged", counts.damaged);
            let made = if is_host { "sent" } else { "made" };
            counts
                .originated
                .iter()
                .for_each(|(cause, n)| row(&format!("{made} {}", cause.name()), n));
            counts
                .dropped
                .iter()
                .for_each(|(cause, n)| row(&format!("dropped {}", cause.name()), n));
            counts
                .repeated
                .iter()
                .for_each(|(cause, n)| row(&format!("sent again {}", cause.name()), n));
        }
        let notes = stage.happened.notes.iter();
        rows.extend(notes.map(|(note, n)| (format!("{place}: {note}"), *n)));
    }
    rows
}
/// How a tunnel fares; counts of nothing are left out.
pub fn link(status: &LinkStatus) -> String {
    let LinkStatus { name, tun, state, mtu, waiting, .. } = status;
    let key = if status.keyed { "sealed" } else { "OPEN, without a key" };
    let mut text =
        format!("{name}: {tun} {state}, {key}, packets of up to {mtu} bytes, {waiting} waiting\n");
    if let (Some(peer), Some(window), Some(rtt)) = (&status.peer, status.window, status.rtt_us) {
        let rtt = rtt as f64 / 1000.0;
        text += &format!("peer {peer}, window {window}, round trip {rtt:.1} ms\n");
    }
    let groups = [
        ("packets", &status.packets),
        ("session", &status.session),
        ("sent again", &status.repeated),
        ("notes", &status.notes),
        ("refused", &status.refused),
    ];
    for (name, counts) in groups {
        let counts: Vec<String> =
            counts.iter().filter(|(_, n)| **n > 0).map(|(key, n)| format!("{key} {n}")).collect();
        if !counts.is_empty() {
            text += &format!("{name:<11} {}\n", counts.join(", "));
        }
    }
    text
}
