//! The first difference between two traces.

use serde::Serialize;

use crate::run::own::{Own, Wheel};
use crate::run::{Entry, EntryKind, Nanos, Rules, play};
use crate::script::Script;

/// Lines of context before and after a difference.
const CONTEXT: usize = 4;
/// Positions of the kernel's clock that differ for timers below 16 s with ticks of 4 ms, and positions within a tick.
const PHASES: u64 = 64;
const PARTS: u64 = 8;

/// The point at which two traces diverge.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Difference {
    /// Entries of both traces before it, from the first one.
    pub before: Vec<Entry>,
    /// The entry of the first trace at that point, if any, and the later ones.
    pub first: Vec<Entry>,
    /// The entry of the second trace at that point, if any, and the later ones.
    pub second: Vec<Entry>,
    /// Kind of difference: `time`, `packet`, or `end` if one trace is shorter.
    pub what: &'static str,
}

/// The packets, in the order of their times: those that no line expects are recorded later.
fn packets(trace: &[Entry]) -> Vec<Entry> {
    let kinds = [EntryKind::Sent, EntryKind::Arrived];
    let mut packets: Vec<Entry> =
        trace.iter().filter(|entry| kinds.contains(&entry.kind)).cloned().collect();
    packets.sort_by_key(|entry| entry.at);
    packets
}

/// A packet without the parts in which two hosts may differ: windows, timestamps, and PSH unless `strict`.
fn essence(text: &str, strict: bool) -> String {
    let mut words: Vec<String> = Vec::new();
    let mut skip = false;
    for word in text.split(' ') {
        if std::mem::take(&mut skip) {
            continue;
        }
        match word {
            "win" => skip = true,
            _ if word.starts_with('<') => break,
            _ if strict => words.push(word.to_owned()),
            _ => words.push(word.replace('P', "")),
        }
    }
    let sack = text.split(['<', ',', '>']).find(|option| option.starts_with("sack "));
    words.extend(sack.map(str::to_owned));
    words.join(" ")
}

/// The first difference of lasthop's TCP from the kernel's, which sent `kernel` in a run of `script`. Packets and calls have the
/// times of the kernel's run, and timers expire as in a wheel with ticks of `tick`. The position of the kernel's clock is
/// unknown: it is the one with the latest difference.
pub fn from_kernel(
    script: &Script,
    kernel: &[Entry],
    tick: Nanos,
    rules: &Rules,
) -> Option<Difference> {
    // A timer is set after the start of a tick, and expires after that of another one.
    let tolerance = rules.tolerance.max(2 * tick);
    let done = kernel.iter().filter(|entry| entry.kind != EntryKind::Sent);
    let moments = done.filter_map(|entry| Some((entry.line?, entry.at))).collect();
    let rules = Rules { moments, tolerance, ..rules.clone() };
    let mut latest: Option<(usize, Difference)> = None;
    for position in 0..PHASES * PARTS {
        let (phase, into_tick) = (position % PHASES, position / PHASES * tick / PARTS);
        let mut world = Own::with_wheel(Wheel { tick, phase, into_tick });
        let own = play(script, &mut world, &rules).trace;
        let found = first_at(&own, kernel, &rules)?;
        if latest.as_ref().is_none_or(|(at, _)| found.0 > *at) {
            latest = Some(found);
        }
    }
    latest.map(|(_, difference)| difference)
}

/// The first packet that only one host sends, or that the other sends at another time, and its index among the sent
/// packets.
fn first_at(one: &[Entry], other: &[Entry], rules: &Rules) -> Option<(usize, Difference)> {
    let (a, b) = (packets(one), packets(other));
    // Packets arrive in both as the script says. A kernel may answer the first of two at one instant after the second.
    let sent = |all: &[Entry]| -> Vec<usize> {
        (0..all.len()).filter(|i| all[*i].kind == EntryKind::Sent).collect()
    };
    let (sent_a, sent_b) = (sent(&a), sent(&b));
    let essence = |entry: &Entry| essence(&entry.text, rules.strict);
    let allowed = |step: Nanos| rules.tolerance.max((step as f64 * rules.percent / 100.0) as u64);
    // The end of a run, unless the script expects the packet.
    let ended = |trace: &[Entry], entry: &Entry, step: Nanos| {
        let others = trace.iter().filter(|other| other.kind != EntryKind::Sent);
        let end = others.map(|other| other.at).max();
        entry.line.is_none() && end.is_some_and(|end| entry.at + allowed(step) >= end)
    };
    // On a busy machine the script's actions are late, and so are the answers.
    let step = |all: &[Entry], i: usize| all[i].at - i.checked_sub(1).map_or(0, |i| all[i].at);
    for at in 0..sent_a.len().max(sent_b.len()) {
        let (i, j) = (sent_a.get(at).copied(), sent_b.get(at).copied());
        let what = match (i, j) {
            (Some(i), Some(j)) if essence(&a[i]) != essence(&b[j]) => "packet",
            (Some(i), Some(j)) => {
                let steps = (step(&a, i), step(&b, j));
                let apart = a[i].at.abs_diff(b[j].at).min(steps.0.abs_diff(steps.1));
                if apart <= allowed(steps.0) {
                    continue;
                }
                "time"
            }
            // The other run may have ended before the packet was due in it.
            (Some(i), None) if ended(other, &a[i], step(&a, i)) => break,
            (None, Some(j)) if ended(one, &b[j], step(&b, j)) => break,
            _ => "end",
        };
        let (i, j) = (i.unwrap_or(a.len()), j.unwrap_or(b.len()));
        let behind = |all: &[Entry], i: usize| all.iter().skip(i).take(CONTEXT).cloned().collect();
        let before = a[i.saturating_sub(CONTEXT)..i].to_vec();
        let (first, second) = (behind(&a, i), behind(&b, j));
        return Some((at, Difference { before, first, second, what }));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(one: &[Entry], other: &[Entry], rules: &Rules) -> Option<Difference> {
        first_at(one, other, rules).map(|(_, difference)| difference)
    }

    fn sent(at: u64, text: &str) -> Entry {
        Entry { at: at * 1_000_000, line: None, kind: EntryKind::Sent, text: text.to_owned() }
    }

    #[test]
    fn traces_part_by_packet_by_time_or_by_their_end() {
        let rules = Rules::default();
        let base =
            [sent(0, "S 0:0(0) win 1"), sent(100, "P. 1:11(10) ack 1 win 5 <TS val 1 ecr 2>")];
        let same = [sent(1, "S 0:0(0) win 9"), sent(103, "P. 1:11(10) ack 1 win 7")];
        assert_eq!(first(&base, &same, &rules), None);
        let bare = [same[0].clone(), sent(103, ". 1:11(10) ack 1 win 7")];
        assert_eq!(first(&base, &bare, &rules).unwrap().what, "packet");
        assert_eq!(first(&base, &bare, &Rules { strict: false, ..rules.clone() }), None);
        let shifted = [sent(30, "S 0:0(0) win 9"), sent(131, "P. 1:11(10) ack 1 win 7")];
        assert_eq!(first(&base[1..], &shifted[1..], &rules).unwrap().what, "time");
        assert_eq!(first(&base[..1], &shifted[..1], &rules).unwrap().what, "time");
        let other = [sent(0, "S 0:0(0) win 1"), sent(100, ". 1:12(11) ack 1 win 5")];
        let found = first(&base, &other, &rules).unwrap();
        assert_eq!((found.what, found.before.len()), ("packet", 1));
        let late = [base[0].clone(), sent(120, &base[1].text)];
        assert_eq!(first(&base, &late, &rules).unwrap().what, "time");
        let found = first(&base, &base[..1], &rules).unwrap();
        assert_eq!((found.what, found.second.len()), ("end", 0));
        // A timer at the end of the script may be late in the other run.
        let last = Entry { kind: EntryKind::Printed, ..sent(105, "10") };
        let more = [base.to_vec(), vec![last.clone()]].concat();
        assert_eq!(first(&more, &[base[0].clone(), last.clone()], &rules), None);
        let early = Entry { at: 200_000_000, ..last };
        assert_eq!(first(&more, &[base[0].clone(), early], &rules).unwrap().what, "end");
        let sack = [sent(0, ". 1:1(0) ack 1 <sack 5:6>")];
        assert_eq!(
            first(&sack, &[sent(0, ". 1:1(0) ack 1 <sack 5:7>")], &rules).unwrap().what,
            "packet"
        );
    }
}
