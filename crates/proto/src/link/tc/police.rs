//! The policer of Linux, `tc filter ... police`: a packet without tokens is dropped, and no packet waits.
//!
//! The bucket holds `burst` bytes and fills at `rate`; with a peak rate a second bucket of `mtu` bytes must
//! have enough as well. It may count packets instead. A packet longer than `mtu` is dropped; when bytes are
//! counted the default is 2040 bytes, from the kernel's old tables. Frames count with their Ethernet header.
//!
//! Not modelled: `avrate`, and any action other than `drop` for excess packets.

use serde::Serialize;

use super::tbf::Bucket;
use super::tokens::{LISTED, Measure, Tokens, nanos};
use crate::describe::{Keys, Kind, System};
use crate::event::Cause;
use crate::machine::{Machine, Out, Side};
use crate::units::{Rate, Time};
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

impl PoliceConfig {
    /// Reads the keys of the stage.
    pub fn keys(k: &mut Keys<'_>) -> PoliceConfig {
        let doc = "the longest frame, and the bytes that pass at once at the peak rate";
        let Bucket { rate, burst, peak, mtu, measure, towards } = Bucket::keys(k, doc);
        let [mut packet_rate, mut packet_burst] = [None, None];
        let doc = "packets per second, instead of a rate";
        k.maybe_count("packet-rate", &mut packet_rate, 1..=u32::MAX.into(), doc);
        let doc = "the packets that pass at once when the bucket is full";
        k.maybe_count("packet-burst", &mut packet_burst, 1..=u32::MAX.into(), doc);
        if peak.is_some() && mtu.is_none() {
            k.demand::<u32>("mtu", None, 1);
        }
        if let (Some(_), Some(_)) = (rate, packet_rate) {
            let message = format!("`{}`: a policer counts bytes or packets", k.path("packet-rate"));
            let help = "leave out one of the rates, or write two stages";
            k.refuse("packet-rate", message, "not together", help);
        }
        let by = match (rate, packet_rate) {
            (None, Some(rate)) => {
                By::Packets { rate, burst: k.demand("packet-burst", packet_burst, 1) }
            }
            (rate, _) => {
                let rate = k.demand("rate", rate, LISTED);
                By::Bytes { rate, burst: k.demand("burst", burst, 1) }
            }
        };
        let longest = if matches!(by, By::Bytes { .. }) { MTU } else { u32::MAX };
        PoliceConfig { by, mtu: mtu.unwrap_or(longest), peak, measure, towards }
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
}
