//! Comparison of sent packets with the script's expectations.

use lasthop_proto::wire::Flags;

use super::wire::Segment;
use super::{Nanos, Rules};
use crate::script::{Packet, Tcp, TcpOption, Tos, When};

/// The first field that differs: its name, its expected value and its sent value.
pub(super) type Difference = (&'static str, String, String);

/// Compares a segment, with the numbers of the script, with the expectation. `at` is the time of the run.
pub(super) fn segment(
    packet: &Packet,
    tcp: &Tcp,
    got: &Segment,
    at: Nanos,
    rules: &Rules,
) -> Result<(), Difference> {
    let differs = |name, expected: String, got: String| Err((name, expected, got));
    let ignored = if rules.strict { Flags::NONE } else { Flags::PSH };
    let ignored = ignored | if tcp.ace.is_some() { Flags::ACE } else { Flags::NONE };
    let flags = |flags: Flags| flags.without(ignored);
    if flags(tcp.flags) != flags(got.flags) {
        return differs("flags", tcp.flags.to_string(), got.flags.to_string());
    }
    if let Some(ace) = tcp.ace.filter(|ace| *ace != got.flags.ace()) {
        return differs("the count of accurate ECN", ace.to_string(), got.flags.ace().to_string());
    }
    if tcp.seq != got.seq {
        return differs("the sequence number", tcp.seq.to_string(), got.seq.to_string());
    }
    if tcp.len != got.len {
        return differs("the length", tcp.len.to_string(), got.len.to_string());
    }
    if tcp.flags.has(Flags::ACK) {
        let ack = tcp.ack.unwrap_or(0);
        if ack != got.ack {
            return differs("the acknowledgement", ack.to_string(), got.ack.to_string());
        }
    }
    if let Some(window) = tcp.window.filter(|window| *window != got.window) {
        return differs("the window", window.to_string(), got.window.to_string());
    }
    if tcp.urgent != got.urgent && tcp.flags.has(Flags::URG) {
        return differs("the urgent pointer", tcp.urgent.to_string(), got.urgent.to_string());
    }
    let ecn = got.tos & 3;
    match packet.tos {
        Some(Tos::Ecn(bits)) if bits != ecn => {
            return differs("the ECN bits", bits.to_string(), ecn.to_string());
        }
        Some(Tos::Ect01) if !matches!(ecn, 1 | 2) => {
            return differs("the ECN bits", "ect01".to_owned(), ecn.to_string());
        }
        Some(Tos::Exact(tos)) if tos != got.tos => {
            return differs("the traffic class", tos.to_string(), got.tos.to_string());
        }
        _ => {}
    }
    if let Some(ttl) = packet.ttl.filter(|ttl| *ttl != got.ttl) {
        return differs("the TTL", ttl.to_string(), got.ttl.to_string());
    }
    if let Some(expected) = &tcp.options {
        options(expected, &got.options, at, rules)?;
    }
    Ok(())
}

fn options(
    expected: &[TcpOption],
    got: &[TcpOption],
    at: Nanos,
    rules: &Rules,
) -> Result<(), Difference> {
    let padding = |option: &&TcpOption| matches!(option, TcpOption::Nop | TcpOption::Eol);
    let relevant = |options: &[TcpOption]| -> Vec<TcpOption> {
        let mut relevant: Vec<TcpOption> =
            options.iter().filter(|o| rules.strict || !padding(o)).cloned().collect();
        if !rules.strict {
            relevant.sort_by_key(kind);
        }
        relevant
    };
    let (a, b) = (relevant(expected), relevant(got));
    let same = a.len() == b.len() && a.iter().zip(&b).all(|(a, b)| same(a, b, at, rules));
    match same {
        true => Ok(()),
        false => {
            let show = |options: &[TcpOption]| {
                let segment = Segment {
                    tos: 0,
                    ttl: 0,
                    ports: (0, 0),
                    seq: 0,
                    ack: 0,
                    flags: Flags::NONE,
                    window: 0,
                    urgent: 0,
                    options: options.to_vec(),
                    len: 0,
                };
                let text = super::wire::show(&segment);
                text.split_once('<').map_or("none".to_owned(), |(_, rest)| format!("<{rest}"))
            };
            Err(("the options", show(expected), show(got)))
        }
    }
}

fn kind(option: &TcpOption) -> u8 {
    match option {
        TcpOption::Eol => 0,
        TcpOption::Nop => 1,
        TcpOption::Mss(_) => 2,
        TcpOption::WindowScale(_) => 3,
        TcpOption::SackPermitted => 4,
        TcpOption::Sack(_) => 5,
        TcpOption::Timestamps { .. } => 8,
        TcpOption::Md5(_) => 19,
        TcpOption::FastOpen(_) => 34,
        TcpOption::EcnCounters(kind, _) => *kind,
        TcpOption::FastOpenExp(_) => 254,
    }
}

fn same(a: &TcpOption, b: &TcpOption, at: Nanos, rules: &Rules) -> bool {
    match (a, b) {
        (
            TcpOption::Timestamps { value, echo },
            TcpOption::Timestamps { value: got, echo: got_echo },
        ) => {
            // The clock of timestamps may drift from that of the script over the whole run.
            let allowed = rules.tolerance.max((at as f64 * rules.percent / 100.0) as Nanos);
            let apart = u64::from((value.wrapping_sub(*got) as i32).unsigned_abs());
            let near = rules.tick.is_none_or(|tick| apart.saturating_mul(tick) <= allowed);
            near && (!rules.strict || echo == got_echo)
        }
        _ => a == b,
    }
}

/// Time at which an event is expected.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Window {
    /// The range of times; `None` for any.
    pub(super) range: Option<(Nanos, Nanos)>,
    /// Tolerance on both sides.
    pub(super) tolerance: Nanos,
}

impl Window {
    /// The time of an event whose offsets count from `base`; `last` is the time of the previous event.
    pub(super) fn new(when: When, base: Nanos, last: Option<Nanos>, rules: &Rules) -> Window {
        let range = match when {
            When::At(at) => Some((at, at)),
            When::Between(from, to) => Some((from, to)),
            When::After(by) => Some((base + by, base + by)),
            When::AfterBetween(from, to) => Some((base + from, base + to)),
            When::Any => None,
        };
        let step = range.zip(last).map_or(0, |((from, _), last)| from.saturating_sub(last));
        let share = (step as f64 * rules.percent / 100.0) as Nanos;
        Window { range, tolerance: rules.tolerance.max(share) }
    }

    pub(super) fn start(&self, now: Nanos) -> Nanos {
        self.range.map_or(now, |(from, _)| from)
    }

    /// The latest valid time.
    pub(super) fn end(&self) -> Option<Nanos> {
        self.range.map(|(_, to)| to + self.tolerance)
    }

    pub(super) fn allows(&self, at: Nanos) -> bool {
        self.range.is_none_or(|(from, to)| {
            (from.saturating_sub(self.tolerance)..=to + self.tolerance).contains(&at)
        })
    }

    pub(super) fn show(&self) -> String {
        let seconds = |at: Nanos| at as f64 / 1e9;
        match self.range {
            None => "any time".to_owned(),
            Some((a, b)) if a == b => {
                format!("{:.6} s +- {:.3} ms", seconds(a), self.tolerance as f64 / 1e6)
            }
            Some((a, b)) => {
                let tolerance = self.tolerance as f64 / 1e6;
                format!("{:.6} s to {:.6} s +- {tolerance:.3} ms", seconds(a), seconds(b))
            }
        }
    }
}
