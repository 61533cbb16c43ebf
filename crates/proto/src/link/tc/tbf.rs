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
use super::words::{LineError, Words, count, size, size_and_cell, time, wrong};
use crate::describe::{Form, Need};
use crate::describe::{Keys, Kind, System, Value};
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

/// Values parsed so far from a line or keys.
#[derive(Clone, Default)]
struct Given {
    rate: Option<Rate>,
    burst: Option<u32>,
    limit: Option<u32>,
    latency: Option<Span>,
    peak: Option<Rate>,
    mtu: Option<u32>,
    measure: Measure,
}

fn example(option: &str) -> &'static str {
    match option {
        "rate" => "rate 10mbit",
        "burst" | "buffer" | "maxburst" => "burst 32kb",
        "limit" => "limit 100kb",
        "peakrate" => "peakrate 20mbit mtu 2000",
        "mtu" | "minburst" => "mtu 2000",
        "mpu" => "mpu 64",
        "overhead" => "overhead 4",
        "linklayer" => "linklayer ethernet",
        _ => "latency 50ms",
    }
}

/// Parses the value of `mpu`, `overhead` or `linklayer`.
pub(super) fn measured(words: &mut Words<'_>, measure: &mut Measure) -> Result<(), LineError> {
    match words.option {
        "mpu" => measure.least = words.value(size)?,
        "overhead" => measure.overhead = words.value(|word| count(word).filter(|n| *n < 65_536))?,
        _ => {
            let layer = |word: &str| match word {
                "ethernet" | "adsl" if word == "ethernet" => Some(false),
                "atm" | "adsl" => Some(true),
                _ => None,
            };
            measure.atm = words.value(layer)?;
        }
    }
    Ok(())
}

impl Given {
    /// Parses the words after `tbf`, or a whole command line with it.
    fn parse(text: &str) -> Result<Given, LineError> {
        // Abbreviations as in `tc`; `mtu` and `rate` must be complete.
        const SHORT: [&str; 6] = ["limit", "latency", "burst", "peakrate", "overhead", "linklayer"];
        const WHOLE: [&str; 6] = ["buffer", "maxburst", "mtu", "minburst", "mpu", "rate"];
        let mut words = Words::behind(text, "tbf", example);
        let mut given = Given::default();
        while let Some(word) = words.next() {
            let whole = WHOLE.into_iter().find(|option| *option == word);
            let short = || SHORT.into_iter().find(|option| option.starts_with(word));
            let Some(option) = whole.or_else(short) else {
                let help = "tbf has rate, burst, limit, latency, peakrate, mtu, mpu, overhead and linklayer";
                return Err(wrong(format!("tbf has no `{word}`"), help));
            };
            words.option = option;
            let twice = match option {
                "rate" => given.rate.is_some(),
                "burst" | "buffer" | "maxburst" => given.burst.is_some(),
                "limit" | "latency" => given.limit.is_some() || given.latency.is_some(),
                "peakrate" => given.peak.is_some(),
                "mtu" | "minburst" => given.mtu.is_some(),
                _ => false,
            };
            if twice {
                let help = "write each option once, and either `limit` or `latency`";
                return Err(wrong(format!("`{option}` is one too many"), help));
            }
            match option {
                "rate" => given.rate = words.rate()?,
                "burst" | "buffer" | "maxburst" => given.burst = Some(words.value(size_and_cell)?),
                "limit" => given.limit = Some(words.value(size)?),
                "latency" => given.latency = Some(words.value(time)?),
                "peakrate" => given.peak = words.rate()?,
                "mtu" | "minburst" => given.mtu = Some(words.value(size_and_cell)?),
                _ => measured(&mut words, &mut given.measure)?,
            }
        }
        Ok(given)
    }
}

/// Reads the key with a `tc` line.
pub(super) fn line<T: Default>(
    k: &mut Keys<'_>,
    example: &'static str,
    parse: impl Fn(&str) -> Result<T, LineError>,
) -> T {
    let doc = "the same in the syntax of `tc`; other keys override it";
    let Value::Text(text) =
        k.value("line", Form::Text(example), Need::Else(""), Value::Absent, doc)
    else {
        return T::default();
    };
    parse(&text).unwrap_or_else(|error| {
        let message = format!("`{}`: {}", k.path("line"), error.message);
        k.refuse("line", message, "not the syntax of `tc`", error.help);
        T::default()
    })
}

/// Reads a key with the only direction in which a stage has an effect.
pub(super) fn towards(k: &mut Keys<'_>) -> Option<Side> {
    let sides = [("right", Side::Right), ("left", Side::Left)];
    k.maybe_word("towards", &sides, "the only direction in which it has an effect; both by default")
}

impl TbfConfig {
    /// Reads the keys of the stage.
    pub fn keys(k: &mut Keys<'_>) -> TbfConfig {
        const MOST: Bytes = Bytes(u32::MAX as u64);
        let example = "\"rate 10mbit burst 32kb latency 50ms\"";
        let mut given = line(k, example, Given::parse);
        let of_line = given.limit.is_some() || given.latency.is_some();
        k.maybe_rate("rate", &mut given.rate, "the rate of the tokens");
        let doc = "the bytes that pass at once when the bucket is full";
        let burst = size_key(k, "burst", given.burst, Bytes(1)..=MOST, doc);
        let doc = "the bytes that may wait; either this or `latency`";
        let limit =
            size_key(k, "limit", given.limit.filter(|_| !k.has("latency")), Bytes(1)..=MOST, doc);
        let mut latency = given.latency.filter(|_| !k.has("limit"));
        let doc = "the longest time that a packet waits; either this or `limit`";
        k.maybe("latency", &mut latency, Span(1)..=Span::secs(1000), doc);
        k.maybe_rate(
            "peak-rate",
            &mut given.peak,
            "the rate at which a burst passes; infinite by default",
        );
        let doc = "the bytes that pass at once at the peak rate";
        let mtu = size_key(k, "mtu", given.mtu, Bytes(1)..=MOST, doc);
        let mut measure = given.measure;
        k.count(
            "framing",
            &mut measure.framing,
            0..=10_000,
            "bytes added to each packet, as an Ethernet header",
        );
        let towards = towards(k);
        if k.has("limit") && k.has("latency") {
            let message = format!("`{}` and `limit` exclude each other", k.path("latency"));
            k.refuse(
                "latency",
                message,
                "which of them?",
                "write one of them: the limit is the rate times the latency, plus the burst",
            );
        }
        let rate = k.demand("rate", given.rate, LISTED);
        let burst = k.demand("burst", burst, 1);
        let of = |rate: Rate, span: Span, burst: u32| {
            let bytes = u128::from(rate.bps()) * u128::from(span.0) / 8_000_000_000;
            bytes.saturating_add(burst.into()).min(u128::from(u32::MAX)) as u32
        };
        let peak = match (given.peak, mtu) {
            (Some(peak), Some(mtu)) => Some((peak, mtu)),
            (Some(peak), None) => Some((peak, k.demand("mtu", None, 1))),
            (None, _) => None,
        };
        if let Some((peak, _)) = peak
            && peak <= rate
        {
            let key = if k.has("peak-rate") { "peak-rate" } else { "line" };
            let message =
                format!("`{}`: a peak rate of {peak} does not exceed the rate", k.path(key));
            k.refuse(
                key,
                message,
                "no peak",
                "write one above the rate, or leave it and `mtu` out",
            );
        }
        let limit = match (limit, latency) {
            (Some(limit), _) => limit,
            (None, Some(latency)) => {
                let by_rate = of(rate, latency, burst);
                peak.map_or(by_rate, |(peak, mtu)| by_rate.min(of(peak, latency, mtu)))
            }
            (None, None) if of_line => 0,
            (None, None) => k.demand("latency", None, 0),
        };
        TbfConfig { rate, burst, limit, peak, measure, towards }
    }
}

/// Reads a key with a size of at most 32 bits.
pub(super) fn size_key(
    k: &mut Keys<'_>,
    key: &'static str,
    given: Option<u32>,
    range: core::ops::RangeInclusive<Bytes>,
    doc: &'static str,
) -> Option<u32> {
    let mut size = given.map(|bytes| Bytes(bytes.into()));
    k.maybe(key, &mut size, range, doc);
    size.and_then(|size| u32::try_from(size.0).ok())
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
