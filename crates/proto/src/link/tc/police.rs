//! The policer of Linux, `tc filter ... police`: a packet without tokens is dropped, and no packet waits.
//!
//! The bucket holds `burst` bytes and fills at `rate`; with a peak rate a second bucket of `mtu` bytes must
//! have enough as well. It may count packets instead. A packet longer than `mtu` is dropped; when bytes are
//! counted the default is 2040 bytes, from the kernel's old tables. Frames count with their Ethernet header.
//!
//! Not modelled, and rejected: `avrate`, and any action other than `drop` for excess packets.

use serde::Serialize;

use super::tbf::{line, measured, size_key, towards};
use super::tokens::{LISTED, Measure, Tokens, nanos};
use super::words::{LineError, Words, count, size_and_cell, wrong};
use crate::describe::{Keys, Kind, System};
use crate::event::Cause;
use crate::machine::{Machine, Out, Side};
use crate::units::{Bytes, Rate, Time};
use crate::wire::Packet;

/// Descriptor for `lasthop list systems`.
pub const SYSTEM: System = System::new(
    Kind::Queue,
    "police",
    "path: police = { rate = \"10mbit\", burst = \"32KiB\" }",
    "packets for which there are no tokens are dropped",
    "tc-police(8)",
)
.tier(0);

/// Default length limit of a frame, bytes.
const MTU: u32 = 2040;

/// A policer in each direction.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct PoliceConfig {
    /// The counted unit.
    pub by: By,
    /// Length limit of a frame, bytes.
    pub mtu: u32,
    /// The peak rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peak: Option<Rate>,
    /// Length of a packet for the rate.
    pub measure: Measure,
    /// The only policed direction; `None` for both.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub towards: Option<Side>,
}

/// The unit that a policer counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum By {
    /// Bytes: the rate, and the bucket's depth.
    Bytes {
        /// The rate.
        rate: Rate,
        /// The bucket's depth in bytes.
        burst: u32,
    },
    /// Packets.
    Packets {
        /// Packets per second.
        rate: u32,
        /// The bucket's depth in packets.
        burst: u32,
    },
}

#[derive(Clone, Default)]
struct Given {
    rate: Option<Rate>,
    burst: Option<u32>,
    packet_rate: Option<u32>,
    packet_burst: Option<u32>,
    peak: Option<Rate>,
    mtu: Option<u32>,
    measure: Measure,
}

fn example(option: &str) -> &'static str {
    match option {
        "rate" => "rate 10mbit",
        "burst" | "buffer" | "maxburst" => "burst 32kb",
        "peakrate" => "peakrate 20mbit mtu 2000",
        "mtu" | "minburst" => "mtu 2000",
        "mpu" => "mpu 64",
        "overhead" => "overhead 4",
        "linklayer" => "linklayer ethernet",
        "pkts_rate" => "pkts_rate 1000",
        "pkts_burst" => "pkts_burst 100",
        _ => "conform-exceed drop/pass",
    }
}

impl Given {
    /// Parses the words after `police`, or a whole command line with it.
    fn parse(text: &str) -> Result<Given, LineError> {
        const SHORT: [&str; 6] =
            ["burst", "peakrate", "overhead", "linklayer", "pkts_rate", "pkts_burst"];
        const WHOLE: [&str; 7] =
            ["buffer", "maxburst", "mtu", "minburst", "mpu", "rate", "conform-exceed"];
        const OTHERS: [&str; 7] = ["reclassify", "continue", "pass", "ok", "pipe", "goto", "shot"];
        let mut words = Words::behind(text, "police", example);
        let mut given = Given::default();
        let mut drops = false;
        while let Some(word) = words.next() {
            let whole = WHOLE.into_iter().find(|option| *option == word);
            let short = || SHORT.into_iter().find(|option| option.starts_with(word));
            words.option = match whole.or_else(short) {
                Some(option) => option,
                None if "drop".starts_with(word) || "shot".starts_with(word) => {
                    drops = true;
                    continue;
                }
                None if word == "flowid" || word == "classid" => {
                    words.word()?;
                    continue;
                }
                None if word == "action" => continue,
                None if "avrate".starts_with(word) => {
                    let help =
                        "write `rate` and `burst`, for example `rate 10mbit burst 32kb drop`";
                    return Err(wrong("`avrate` is not modelled", help));
                }
                None if OTHERS.into_iter().any(|other| other.starts_with(word)) => {
                    return Err(no_action(word));
                }
                None => {
                    let help = "police has rate, burst, mtu, peakrate, pkts_rate, pkts_burst, mpu, overhead, linklayer, \
                                conform-exceed and drop";
                    return Err(wrong(format!("police has no `{word}`"), help));
                }
            };
            match words.option {
                "rate" => given.rate = words.rate()?,
                "burst" | "buffer" | "maxburst" => given.burst = Some(words.value(size_and_cell)?),
                "peakrate" => given.peak = words.rate()?,
                "mtu" | "minburst" => given.mtu = Some(words.value(size_and_cell)?),
                "pkts_rate" => given.packet_rate = Some(words.value(positive)?),
                "pkts_burst" => given.packet_burst = Some(words.value(positive)?),
                "conform-exceed" => {
                    let word = words.word()?;
                    let (exceeds, conforms) = word.split_once('/').unwrap_or((word, "pass"));
                    if !["drop", "shot"].contains(&exceeds) {
                        return Err(no_action(exceeds));
                    }
                    if !["pass", "ok", "pipe", "continue"].contains(&conforms) {
                        return Err(no_action(conforms));
                    }
                    drops = true;
                }
                _ => measured(&mut words, &mut given.measure)?,
            }
        }
        if !drops {
            let help = "write it at the end: `rate 10mbit burst 32kb drop`; without it, `tc` classifies packets above the \
                        rate again";
            return Err(wrong("`drop` is missing", help));
        }
        Ok(given)
    }
}

fn positive(word: &str) -> Option<u32> {
    count(word).filter(|n| *n > 0)
}

fn no_action(word: &str) -> LineError {
    let help = "packets above the rate are dropped, all others pass: write `drop` or `conform-exceed drop/pass`";
    wrong(format!("the action `{word}` is not modelled there"), help)
}

impl PoliceConfig {
    /// Reads the keys of the stage.
    pub fn keys(k: &mut Keys<'_>) -> PoliceConfig {
        const MOST: Bytes = Bytes(u32::MAX as u64);
        let example = "\"rate 10mbit burst 32kb drop\"";
        let mut given = line(k, example, Given::parse);
        k.maybe_rate("rate", &mut given.rate, "the rate of the tokens");
        let doc = "the bytes that pass at once when the bucket is full";
        let burst = size_key(k, "burst", given.burst, Bytes(1)..=MOST, doc);
        let doc = "packets per second, instead of a rate";
        k.maybe_count("packet-rate", &mut given.packet_rate, 1..=u32::MAX.into(), doc);
        let doc = "the packets that pass at once when the bucket is full";
        k.maybe_count("packet-burst", &mut given.packet_burst, 1..=u32::MAX.into(), doc);
        k.maybe_rate(
            "peak-rate",
            &mut given.peak,
            "the rate at which a burst passes; infinite by default",
        );
        let doc = "the longest frame, and the bytes that pass at once at the peak rate";
        let mtu = size_key(k, "mtu", given.mtu, Bytes(1)..=MOST, doc);
        let mut measure = given.measure;
        k.count(
            "framing",
            &mut measure.framing,
            0..=10_000,
            "bytes added to each packet, as an Ethernet header",
        );
        let towards = towards(k);
        if given.peak.is_some() && mtu.is_none() {
            k.demand::<u32>("mtu", None, 1);
        }
        if let (Some(_), Some(_)) = (given.rate, given.packet_rate) {
            let key = k.first(&["packet-rate", "rate"]).unwrap_or("line");
            let message = format!("`{}`: a policer counts bytes or packets", k.path(key));
            k.refuse(
                key,
                message,
                "not together",
                "leave out one of the rates, or write two stages",
            );
        }
        let by = match (given.rate, given.packet_rate) {
            (None, Some(rate)) => {
                By::Packets { rate, burst: k.demand("packet-burst", given.packet_burst, 1) }
            }
            (rate, _) => {
                let rate = k.demand("rate", rate, LISTED);
                By::Bytes { rate, burst: k.demand("burst", burst, 1) }
            }
        };
        let longest = if matches!(by, By::Bytes { .. }) { MTU } else { u32::MAX };
        PoliceConfig { by, mtu: mtu.unwrap_or(longest), peak: given.peak, measure, towards }
    }
}

/// A policer.
#[derive(Clone, Debug)]
pub struct Police {
    config: PoliceConfig,
    /// Indexed by the side to which packets travel.
    tokens: [Tokens; 2],
}

impl Police {
    /// A policer with full buckets.
    pub fn new(config: PoliceConfig) -> Police {
        // The kernel uses ticks of 64 ns.
        let ticks = |nanos: i64| {
            nanos.div_euclid(64).saturating_add(i64::from(nanos % 64 > 0)).saturating_mul(64)
        };
        let depth = match config.by {
            By::Bytes { rate, burst } => ticks(nanos(burst.into(), rate)),
            By::Packets { rate, burst } => ticks(of_packets(burst, rate)),
        };
        let peak = config.peak.map(|peak| config.measure.nanos(config.mtu.into(), peak));
        let tokens = Tokens::new(depth, peak);
        Police { tokens: [tokens.clone(), tokens], config }
    }
}

/// Nanoseconds of packets at a rate.
fn of_packets(packets: u32, rate: u32) -> i64 {
    i64::from(packets) * 1_000_000_000 / i64::from(rate.max(1))
}

impl Machine for Police {
    fn check(&self) {
        self.tokens.iter().for_each(Tokens::check);
    }

    fn on_packet(&mut self, now: Time, from: Side, packet: Packet, out: &mut Out) {
        let side = from.other();
        if self.config.towards.is_some_and(|towards| towards != side) {
            return out.send(side, packet);
        }
        let PoliceConfig { by, mtu, peak, measure, .. } = &self.config;
        let bytes = packet.wire_len() + measure.framing;
        let cost = match by {
            By::Bytes { rate, .. } => measure.nanos(bytes.into(), *rate),
            By::Packets { rate, .. } => of_packets(1, *rate),
        };
        let of_peak = peak.map_or(0, |peak| measure.nanos(bytes.into(), peak));
        let fits = bytes <= *mtu && self.tokens[side.index()].take(now, cost, of_peak).is_ok();
        if fits { out.send(side, packet) } else { out.discard(side, packet, Cause::Policed) }
    }

    fn on_wake(&mut self, _: Time, _: &mut Out) {}

    fn next_wake(&self) -> Option<Time> {
        None
    }
}
