//! Status of a running station for users: a table, or one line.

pub mod subscribers;

use std::fmt::Write as _;

use lasthop_live::control::protocol::{StageStatus, Status};
use lasthop_live::counters::DirectionCounts;
use lasthop_live::status::TunnelStatus as LinkStatus;
use lasthop_proto::units::{Bytes, Span};
use lasthop_report::model::{Column, Table};
use lasthop_report::number::in_mbit;
use lasthop_report::table::render_lean;

use crate::style;

/// Packets per second between two polls, and totals.
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

/// The tables; rates are those since `last`.
pub fn table(last: Option<&Status>, now: &Status) -> String {
    let look = style::look();
    let rate = Rate::between(last, now);
    let mut text = format!(
        "{} ({}, lasthop {}), up {}\n",
        style::heading(&now.name),
        now.world,
        now.version,
        uptime(now.uptime_ns)
    );
    for table in [ports(last, now), stages(now)] {
        text += &format!("\n{}\n", render_lean(&table, look));
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
    if !rows.is_empty() {
        let before = last.map(happened).unwrap_or_default();
        let rows = rows.into_iter().map(|(name, n)| {
            let was = before.iter().find(|(other, _)| *other == name).map_or(0, |(_, n)| *n);
            let each = rate.map_or("-".to_owned(), |rate| format!("{:.1}", rate.of(was, n)));
            vec![name, n.to_string(), each]
        });
        let columns = Column::list("<what happened | packets | /s");
        text += &format!("\n{}\n", render_lean(&Table::new(columns, rows), look));
    }
    if let Some(overview) = &now.subscribers {
        let _ = write!(text, "\n{}", subscribers::summary(overview));
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

/// Packets in and out.
fn ports(last: Option<&Status>, now: &Status) -> Table {
    let rate = Rate::between(last, now);
    let rows = now.ports.iter().enumerate().map(|(i, port)| {
        let counts = port.counts;
        let before = last.and_then(|last| last.ports.get(i)).map_or(0, |p| p.counts.received_bytes);
        let bytes = rate.map(|rate| rate.of(before, counts.received_bytes));
        vec![
            format!("{} ({})", port.name, port.side),
            counts.received.to_string(),
            counts.sent.to_string(),
            bytes.map_or("-".to_owned(), in_mbit),
            (counts.overrun + counts.refused).to_string(),
        ]
    });
    let numbers = ["frames in", "frames out", "rate in", "lost"].map(Column::number);
    Table::new(std::iter::once(Column::text("interface")).chain(numbers), rows)
}

/// The contents of the stages of the path.
fn stages(now: &Status) -> Table {
    let bytes = |n: Option<usize>| n.map_or("-".to_owned(), |n| Bytes(n as u64).to_string());
    let rows = now.stages.iter().map(|stage| {
        vec![
            stage.name.clone(),
            agent_or_kind(stage),
            stage.flows.map_or("-".to_owned(), |n| n.to_string()),
            bytes(stage.state_bytes),
            bytes(stage.peak_state_bytes),
            stage.packets.held.to_string(),
        ]
    });
    let words = ["stage", "what"].map(Column::text);
    let numbers = ["flows", "state", "peak", "held"].map(Column::number);
    Table::new(words.into_iter().chain(numbers), rows)
}

/// Characters of a line, without the note about omitted parts.
const LONGEST: usize = 160;

/// One line: rates of both directions, and the most frequent events since `last`. `lasthop ctl get` has all
/// counters.
pub fn line(last: Option<&Status>, now: &Status) -> String {
    let mut text = format!("{:>8}", uptime(now.uptime_ns));
    let rate = Rate::between(last, now);
    for (i, port) in now.ports.iter().enumerate() {
        let before = last.and_then(|last| last.ports.get(i)).map_or(0, |p| p.counts.received_bytes);
        let bytes = rate.map_or(0.0, |rate| rate.of(before, port.counts.received_bytes));
        let _ = write!(text, "  from {} {}", port.side, in_mbit(bytes));
    }
    let flows: usize =
        now.stages.iter().filter(|s| s.kind == "agent").filter_map(|s| s.flows).sum();
    let _ = write!(text, "  flows {flows}");
    // Counts since the start belong to no interval, so the first line has none.
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

fn agent_or_kind(stage: &StageStatus) -> String {
    stage.config["agent"].as_str().unwrap_or(&stage.kind).to_owned()
}

fn uptime(ns: u64) -> String {
    Span(ns / 1_000_000_000 * 1_000_000_000).to_string()
}

/// Counts of events that concern the owner of a station: drops, damage, repairs, forged packets and notes.
fn happened(status: &Status) -> Vec<(String, u64)> {
    let mut rows = Vec::new();
    for stage in &status.stages {
        let is_host = stage.kind == "host";
        let place = if is_host { format!("{} host", stage.name) } else { stage.name.clone() };
        let sides: [(&str, &DirectionCounts); 2] =
            [("right", &stage.happened.right), ("left", &stage.happened.left)];
        for (side, counts) in sides {
            // A host has one direction for sending and one for receiving.
            let way = if is_host { String::new() } else { format!(" to the {side}") };
            let mut row = |event: &str, n: u64| {
                if n > 0 {
                    rows.push((format!("{place}: {event}{way}"), n));
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
                .for_each(|(cause, n)| row(&format!("retransmitted {}", cause.name()), n));
        }
        let notes = stage.happened.notes.iter();
        rows.extend(notes.map(|(note, n)| (format!("{place}: {note}"), *n)));
    }
    rows
}
/// Status of a tunnel, without counters of zero.
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
        ("retransmitted", &status.repeated),
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
