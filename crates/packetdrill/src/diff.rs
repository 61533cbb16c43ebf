//! The first difference between two traces.

use serde::Serialize;

use crate::run::{Entry, EntryKind, Rules};

/// Lines of context before and after a difference.
const CONTEXT: usize = 4;

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

/// Packets sent, with trains of segments joined: the boundaries within a train depend on offloads.
fn packets(trace: &[Entry]) -> Vec<Entry> {
    trace
        .iter()
        .filter(|entry| matches!(entry.kind, EntryKind::Sent | EntryKind::Arrived))
        .cloned()
        .collect()
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

/// The first packet that only one host sends, or that the other sends at another time.
pub fn first(one: &[Entry], other: &[Entry], rules: &Rules) -> Option<Difference> {
    let (a, b) = (packets(one), packets(other));
    let essence = |entry: &Entry| essence(&entry.text, rules.strict);
    // The script's times of the last packet: on a busy machine its actions are late, and so are the answers.
    let mut last = (0, 0);
    for at in 0..a.len().max(b.len()) {
        let kind = match (a.get(at), b.get(at)) {
            (Some(x), Some(y)) if x.kind != y.kind || essence(x) != essence(y) => "packet",
            (Some(x), Some(y)) => {
                let steps = (x.at.saturating_sub(last.0), y.at.saturating_sub(last.1));
                last = (x.at, y.at);
                let share = (steps.0 as f64 * rules.percent / 100.0) as u64;
                let apart = x.at.abs_diff(y.at).min(steps.0.abs_diff(steps.1));
                if apart <= rules.tolerance.max(share) || x.kind == EntryKind::Arrived {
                    continue;
                }
                "time"
            }
            _ => "end",
        };
        let from = at.saturating_sub(CONTEXT);
        let behind = |trace: &[Entry]| trace.iter().skip(at).take(CONTEXT).cloned().collect();
        return Some(Difference {
            before: a[from..at].to_vec(),
            first: behind(&a),
            second: behind(&b),
            what: kind,
        });
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let sack = [sent(0, ". 1:1(0) ack 1 <sack 5:6>")];
        assert_eq!(
            first(&sack, &[sent(0, ". 1:1(0) ack 1 <sack 5:7>")], &rules).unwrap().what,
            "packet"
        );
    }
}
