//! The token bucket filter of Linux, `tc qdisc ... tbf`: packets wait for tokens.
//!
//! The bucket holds `burst` bytes and fills at `rate`. The first packet of the queue leaves when there are
//! tokens for all of it; with a peak rate a second bucket of `mtu` bytes must have enough as well. The queue
//! holds `limit` bytes, which `latency` specifies as the longest waiting time. A packet longer than the
//! bucket's depth is dropped. Frames count with their Ethernet header.
//!
//! The kernel segments a super-packet that exceeds the bucket; here packets are segments.

use std::collections::VecDeque;

use serde::Serialize;

use super::tokens::{LISTED, Measure, Tokens};
use crate::describe::{Keys, Kind, System};
use crate::event::{Cause, Op};
use crate::machine::{Machine, Out, Side};
use crate::units::{Bytes, Rate, Span, Time};
use crate::wire::Packet;

/// Descriptor for `lasthop list systems`.
pub const SYSTEM: System = System::new(
    Kind::Queue,
    "tbf",
    "path: tbf = { rate = \"10mbit\", burst = \"32KiB\", latency = \"50ms\" }",
    "packets wait for tokens, which arrive at a rate; a burst passes at once",
    "tc-tbf(8)",
)
.tier(0);

/// A token bucket filter in each direction.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct TbfConfig {
    /// Tokens per second.
    pub rate: Rate,
    /// Depth of the bucket, bytes.
    pub burst: u32,
    /// Limit of the queue, bytes.
    pub limit: u32,
    /// The peak rate and the depth of its bucket in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peak: Option<(Rate, u32)>,
    /// Length of a packet for the rate.
    pub measure: Measure,
    /// The only shaped direction; `None` for both.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub towards: Option<Side>,
}

/// The keys of both kinds of token buckets.
pub(super) struct Bucket {
    pub rate: Option<Rate>,
    pub burst: Option<u32>,
    pub peak: Option<Rate>,
    pub mtu: Option<u32>,
    pub measure: Measure,
    /// The only direction in which the stage has an effect.
    pub towards: Option<Side>,
}

impl Bucket {
    /// Reads the keys; `mtu` describes that key.
    pub(super) fn keys(k: &mut Keys<'_>, mtu: &'static str) -> Bucket {
        let [mut rate, mut peak] = [None, None];
        k.maybe_rate("rate", &mut rate, "the rate of the tokens");
        let burst = size(k, "burst", "the bytes that pass at once when the bucket is full");
        k.maybe_rate(
            "peak-rate",
            &mut peak,
            "the rate at which a burst passes; infinite by default",
        );
        let mtu = size(k, "mtu", mtu);
        let mut measure = Measure::default();
        let doc = "bytes added to each packet, as an Ethernet header";
        k.count("framing", &mut measure.framing, 0..=10_000, doc);
        let doc = "further bytes of each frame, which only the rate counts";
        k.count("overhead", &mut measure.overhead, 0..=65_535, doc);
        let doc = "the bytes that the rate counts for a shorter frame";
        k.count("mpu", &mut measure.least, 0..=u32::MAX.into(), doc);
        k.flag("atm", &mut measure.atm, "whether the rate counts ATM cells, 53 bytes for 48");
        let sides = [("right", Side::Right), ("left", Side::Left)];
        let doc = "the only direction in which it has an effect; both by default";
        let towards = k.maybe_word("towards", &sides, doc);
        Bucket { rate, burst, peak, mtu, measure, towards }
    }
}

/// Reads a key with a size of at most 32 bits.
fn size(k: &mut Keys<'_>, key: &'static str, doc: &'static str) -> Option<u32> {
    let mut size = None;
    k.maybe(key, &mut size, Bytes(1)..=Bytes(u32::MAX.into()), doc);
    size.and_then(|size| u32::try_from(size.0).ok())
}

impl TbfConfig {
    /// Reads the keys of the stage.
    pub fn keys(k: &mut Keys<'_>) -> TbfConfig {
        let doc = "the bytes that pass at once at the peak rate";
        let Bucket { rate, burst, peak, mtu, measure, towards } = Bucket::keys(k, doc);
        let limit = size(k, "limit", "the bytes that may wait; either this or `latency`");
        let mut latency = None;
        let doc = "the longest time that a packet waits; either this or `limit`";
        k.maybe("latency", &mut latency, Span(1)..=Span::secs(1000), doc);
        if k.has("limit") && k.has("latency") {
            let message = format!("`{}` and `limit` exclude each other", k.path("latency"));
            k.refuse(
                "latency",
                message,
                "which of them?",
                "write one of them: the limit is the rate times the latency, plus the burst",
            );
        }
        let rate = k.demand("rate", rate, LISTED);
        let burst = k.demand("burst", burst, 1);
        let of = |rate: Rate, span: Span, burst: u32| {
            let bytes = u128::from(rate.bps()) * u128::from(span.0) / 8_000_000_000;
            bytes.saturating_add(burst.into()).min(u128::from(u32::MAX)) as u32
        };
        let peak = match (peak, mtu) {
            (Some(peak), Some(mtu)) => Some((peak, mtu)),
            (Some(peak), None) => Some((peak, k.demand("mtu", None, 1))),
            (None, _) => None,
        };
        if let Some((peak, _)) = peak
            && peak <= rate
        {
            let path = k.path("peak-rate");
            let message = format!("`{path}`: a peak rate of {peak} does not exceed the rate");
            let help = "write one above the rate, or leave it and `mtu` out";
            k.refuse("peak-rate", message, "no peak", help);
        }
        let limit = match (limit, latency) {
            (Some(limit), _) => limit,
            (None, Some(latency)) => {
                let by_rate = of(rate, latency, burst);
                peak.map_or(by_rate, |(peak, mtu)| by_rate.min(of(peak, latency, mtu)))
            }
            (None, None) => k.demand("latency", None, 0),
        };
        TbfConfig { rate, burst, limit, peak, measure, towards }
    }
}

#[derive(Clone, Debug)]
struct Direction {
    tokens: Tokens,
    waiting: VecDeque<(Packet, u32)>,
    bytes: u64,
    /// Time at which the first waiting packet may leave.
    due: Time,
}

/// A token bucket filter.
#[derive(Clone, Debug)]
pub struct Tbf {
    config: TbfConfig,
    /// Indexed by the side to which packets travel.
    directions: [Direction; 2],
}

impl Tbf {
    /// An empty queue in front of a full bucket.
    pub fn new(config: TbfConfig) -> Tbf {
        let depth = |bytes: u32, rate| config.measure.nanos(bytes.into(), rate);
        let peak = config.peak.map(|(rate, mtu)| depth(mtu, rate));
        let tokens = Tokens::new(depth(config.burst, config.rate), peak);
        let direction = || Direction {
            tokens: tokens.clone(),
            waiting: VecDeque::new(),
            bytes: 0,
            due: Time::NEVER,
        };
        Tbf { directions: [direction(), direction()], config }
    }

    /// Forwards packets towards `side` that may leave by `now`. Each is forwarded at `now`, but its tokens
    /// are those of its nominal time.
    fn leave(&mut self, now: Time, side: Side, out: &mut Out) {
        let TbfConfig { rate, peak, measure, .. } = &self.config;
        let direction = &mut self.directions[side.index()];
        while direction.due <= now {
            let Some((_, bytes)) = direction.waiting.front() else {
                direction.due = Time::NEVER;
                return;
            };
            let bytes = *bytes;
            let of_peak = peak.map_or(0, |(peak, _)| measure.nanos(bytes.into(), peak));
            let cost = measure.nanos(bytes.into(), *rate);
            match direction.tokens.take(direction.due, cost, of_peak) {
                Err(wait) => direction.due += wait,
                Ok(()) => {
                    if let Some((packet, _)) = direction.waiting.pop_front() {
                        direction.bytes -= u64::from(bytes);
                        out.packet_event(Op::Transmitted, side, &packet);
                        out.send(side, packet);
                    }
                }
            }
        }
    }
}

impl Machine for Tbf {
    fn check(&self) {
        for direction in &self.directions {
            direction.tokens.check();
            debug_assert_eq!(
                direction.waiting.is_empty(),
                direction.bytes == 0,
                "bytes of the queue"
            );
            debug_assert!(direction.bytes <= self.config.limit.into(), "limit of the queue");
            debug_assert_eq!(
                direction.waiting.is_empty(),
                direction.due == Time::NEVER,
                "a deadline belongs to a packet"
            );
            if cfg!(debug_assertions) && direction.waiting.len() <= 32 {
                let bytes =
                    direction.waiting.iter().map(|(_, bytes)| u64::from(*bytes)).sum::<u64>();
                debug_assert_eq!(bytes, direction.bytes, "bytes of the waiting packets");
            }
        }
    }

    fn on_packet(&mut self, now: Time, from: Side, packet: Packet, out: &mut Out) {
        let side = from.other();
        if self.config.towards.is_some_and(|towards| towards != side) {
            return out.send(side, packet);
        }
        self.leave(now, side, out);
        let bytes = packet.wire_len() + self.config.measure.framing;
        let deep =
            self.config.peak.map_or(self.config.burst, |(_, mtu)| mtu.min(self.config.burst));
        if bytes > deep {
            return out.discard(side, packet, Cause::Policed);
        }
        let direction = &mut self.directions[side.index()];
        if direction.bytes + u64::from(bytes) > self.config.limit.into() {
            return out.discard(side, packet, Cause::QueueFull);
        }
        direction.bytes += u64::from(bytes);
        if direction.waiting.is_empty() {
            direction.due = now;
        }
        direction.waiting.push_back((packet, bytes));
        self.leave(now, side, out);
    }

    fn on_wake(&mut self, now: Time, out: &mut Out) {
        for side in Side::BOTH {
            self.leave(now, side, out);
        }
    }

    fn next_wake(&self) -> Option<Time> {
        let [left, right] = &self.directions;
        left.due.min(right.due).or_none()
    }

    fn holds(&self) -> usize {
        self.directions.iter().map(|direction| direction.waiting.len()).sum()
    }
}
