//! The order in which a sender sends its segments.

use lasthop_observe::Sink;
use lasthop_observe::layout::{Layout, Role};
use lasthop_proto::event::{Event, EventKind, Interest, Op, TcpEvent, TcpKind};
use lasthop_proto::units::Time;
use lasthop_proto::wire::{FlowKey, Seq};
use serde::{Deserialize, Serialize};

/// A sent segment.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct SentSegment {
    /// Its index in the stream, from 0.
    pub segment: u32,
    /// Why it was sent, by its name in traces; empty where unknown.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cause: String,
    /// Seconds since the first one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_s: Option<f64>,
}

/// The behaviour of a sender in one run.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Order {
    /// In order of transmission.
    pub sent: Vec<SentSegment>,
    /// Seconds from the first transmission until [`Order::HALF`] segments are delivered in order.
    pub half_s: Option<f64>,
}

impl Order {
    /// Half of a transfer in segments.
    pub const HALF: u32 = super::SEGMENTS / 2;

    /// An order without causes and times.
    pub fn of_segments(segments: &[u32]) -> Order {
        let sent =
            |segment: &u32| SentSegment { segment: *segment, cause: String::new(), at_s: None };
        Order { sent: segments.iter().map(sent).collect(), half_s: None }
    }

    /// Length of the common prefix.
    pub fn same_as(&self, other: &Order) -> usize {
        self.sent.iter().zip(&other.sent).take_while(|(a, b)| a.segment == b.segment).count()
    }
}

/// Numbers as ranges: `0-65 29 66-130`.
pub fn runs(numbers: impl IntoIterator<Item = u32>) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(number) => *last = number,
            _ => ranges.push((number, number)),
        }
    }
    let words = ranges.iter().map(|(from, to)| match from == to {
        true => from.to_string(),
        false => format!("{from}-{to}"),
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Parses the output of [`runs`]; `None` if the format is wrong.
pub fn parse_runs(text: &str) -> Option<Vec<u32>> {
    /// Limit of the length.
    const LONGEST: usize = 1 << 20;
    let mut numbers = Vec::new();
    for word in text.split_whitespace() {
        let (from, to) = word.split_once('-').unwrap_or((word, word));
        let (from, to): (u32, u32) = (from.parse().ok()?, to.parse().ok()?);
        if to < from || (to - from) as usize >= LONGEST - numbers.len() {
            return None;
        }
        numbers.extend(from..=to);
    }
    Some(numbers)
}

/// Records the segments of the first flow, and their delivery.
#[derive(Debug)]
pub struct Watch {
    flow: Option<FlowKey>,
    hosts: Vec<bool>,
    /// The first segment: number, length, time of transmission.
    first: Option<(Seq, u32, Time)>,
    order: Order,
    delivered: u64,
}

impl Watch {
    /// For a run with the stages and flows of `layout`.
    pub fn new(layout: &Layout) -> Watch {
        Watch {
            flow: layout.flows.first().map(|flow| flow.key),
            hosts: layout.stages.iter().map(|stage| stage.role == Role::Host).collect(),
            first: None,
            order: Order::default(),
            delivered: 0,
        }
    }

    pub fn finish(self) -> Order {
        self.order
    }

    /// Counts `bytes` delivered at `now`.
    fn deliver(&mut self, now: Time, bytes: u32) {
        let Some((_, mss, start)) = self.first else { return };
        self.delivered += u64::from(bytes);
        if self.delivered >= u64::from(mss) * u64::from(Order::HALF) {
            let tenths = now.since(start).as_secs_f64() * 10_000.0;
            self.order.half_s.get_or_insert(tenths.round() / 10_000.0);
        }
    }
}

impl Sink for Watch {
    fn interest(&self) -> Interest {
        Interest::METRICS
    }

    fn event(&mut self, event: &Event) {
        if self.hosts.get(usize::from(event.stage.0)) != Some(&true) {
            return;
        }
        match &event.kind {
            EventKind::Packet { op: Op::Originated(cause), packet, .. }
                if packet.is_data() && packet.flow() == self.flow =>
            {
                let Some(segment) = packet.segment() else { return };
                let length = packet.body.len();
                let (base, mss, start) = *self.first.get_or_insert((segment.seq, length, event.at));
                let offset = segment.seq.0.wrapping_sub(base.0);
                let at_s = Some(event.at.since(start).as_secs_f64());
                let (segment, cause) = (offset / mss, cause.name().to_owned());
                self.order.sent.push(SentSegment { segment, cause, at_s });
            }
            EventKind::Tcp(TcpEvent { flow, kind: TcpKind::Delivered { bytes }, .. })
                if Some(flow.reversed()) == self.flow =>
            {
                self.deliver(event.at, *bytes);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_written_as_runs_and_read_again() {
        let numbers = [0, 1, 2, 3, 1, 4, 5, 7, 6];
        let text = runs(numbers);
        assert_eq!(text, "0-3 1 4-5 7 6");
        assert_eq!(parse_runs(&text).unwrap(), numbers);
        assert_eq!(parse_runs("").unwrap(), [0; 0]);
        for wrong in ["x", "3-1", "1-", "0-4294967295", "1,2"] {
            assert_eq!(parse_runs(wrong), None, "{wrong}");
        }
    }
}
