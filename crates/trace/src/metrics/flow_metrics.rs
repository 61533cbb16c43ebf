//! What one flow amounted to, in numbers.

use lasthop_proto::event::Cause;
use lasthop_proto::machine::Side;
use lasthop_proto::units::Span;
use serde::{Deserialize, Serialize};

use crate::counts::CauseCounts;
use crate::stalls::Stall;

/// One flow in the direction of its data.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct FlowMetrics {
    /// `source:port>destination:port`.
    pub flow: String,
    /// Direction of its data along the path.
    #[serde(with = "side")]
    pub towards: Option<Side>,
    /// When its connection was opened (first SYN, or its first data if the SYN was not seen), in seconds.
    pub opened_s: Option<f64>,
    /// When all its data had been acknowledged at the sender, and at each base station that has split its
    /// connection, in seconds.
    pub completed_s: Option<f64>,
    /// Whether all its data was delivered and acknowledged.
    pub complete: bool,
    /// Whether its connection was given up or reset before that. What becomes of the connection behind its last byte,
    /// such as a FIN that nobody answers, takes nothing from a flow that is complete.
    pub aborted: bool,
    /// Bytes to be transferred, if the layout names a number.
    pub wanted: Option<u64>,
    /// Whether it is other people's traffic: measured, and left out of the numbers of the run.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub cross: bool,
    /// Bytes delivered to the application, in order.
    pub delivered: u64,
    /// From opening to completion, in seconds; to the end of the run for a flow that is not complete.
    pub transfer_time_s: f64,
    /// `delivered / transfer_time_s`, in bytes per second.
    pub throughput: f64,
    /// Payload of a full segment in bytes, as declared or the largest seen.
    pub mss: u32,
    /// Full segments needed for `delivered` on the wired links: the "ideal number of data packets" of west97 5.2.
    pub ideal_packets: u64,
    /// Data packets recorded on the first wired link on its way.
    pub wired_packets: u64,
    /// Data packets recorded on the first radio hop on its way.
    pub wireless_packets: u64,
    /// `ideal_packets / wired_packets` (west97 5.2); `None` without a wired link.
    pub wired_goodput: Option<f64>,
    /// The same on the radio hop, where a connection that is split has segments of its own; `None` without one.
    pub wireless_goodput: Option<f64>,
    /// Expirations of the sender's retransmission timer, that of the SYN included.
    pub timeouts: u64,
    /// Of these, those before the connection was open: a SYN or its answer was lost.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub opening_timeouts: u64,
    /// Fast retransmissions that began a recovery.
    pub fast_retransmits: u64,
    /// Fast recoveries that ended with all their data acknowledged.
    pub recoveries: u64,
    /// Duplicate ACKs that reached the sender.
    pub dupacks: u64,
    /// Partial acknowledgements of a base station that the sender heeded.
    pub partial_acks: u64,
    /// Loss notifications that the sender heeded.
    pub loss_notifications: u64,
    /// Notifications of a bad state of the wireless link that the sender heeded (bakshi96 4.2.3).
    #[serde(default)]
    pub bad_state_notices: u64,
    /// Source quenches that the sender heeded (bakshi96 4.2.2).
    #[serde(default)]
    pub quenches: u64,
    /// Marks of congestion that were echoed to the sender and reduced its window (RFC 3168).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub congestion_echoes: u64,
    /// Packets in the direction of the data that a queue marked.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub marked: u64,
    /// Packets towards the sender that a queue marked.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub marked_acks: u64,
    /// Data packets put into the path that held bytes never sent before.
    pub new_packets: u64,
    /// Packets put into the path in the direction of the data, by cause: by the sender, and by the base
    /// station (local retransmissions).
    pub originated: CauseCounts,
    /// Packets towards the sender put into the path, by cause, the receiver's plain ACKs left out: forged
    /// partial ACKs, loss notifications, messages about the bad state of a link, SYN and FIN.
    pub originated_acks: CauseCounts,
    /// Packets in the direction of the data dropped, by cause, anywhere on the path.
    pub dropped: CauseCounts,
    /// Retransmissions of link layers in the direction of the data, by cause: each packet once for each time that
    /// it was sent over its hop again.
    #[serde(default, skip_serializing_if = "CauseCounts::is_empty")]
    pub repeated: CauseCounts,
    /// Packets towards the sender dropped, by cause: among them the duplicate ACKs that a base station hid.
    pub dropped_acks: CauseCounts,
    /// Data packets that came out of the last link unharmed and held nothing that had not come before: the
    /// receiver threw them away.
    pub redundant: u64,
    /// Packet delay end to end.
    pub delay: Delay,
    /// Smoothed round-trip time at the sender.
    pub srtt: Sampled,
    /// Retransmission time-out in force at the sender, back-off included.
    pub rto: Sampled,
    /// How many stalls.
    pub stalls: u64,
    /// Time spent in stalls, in seconds.
    pub stall_time_s: f64,
    /// The longest stall, in seconds.
    pub longest_stall_s: f64,
    /// Median gap between deliveries, in seconds: what stalls are judged by.
    pub typical_gap_s: f64,
    /// The first stalls, oldest first; at most [`super::LISTED_STALLS`].
    pub stall_list: Vec<Stall>,
}

impl FlowMetrics {
    /// Full segments needed for `delivered` on the radio hop: what the goodput there is a share of.
    pub fn ideal_on_radio(&self) -> u64 {
        let goodput = self.wireless_goodput.unwrap_or(0.0);
        (goodput * self.wireless_packets as f64).round() as u64
    }

    /// Data packets that the host sent again, for whatever reason.
    pub fn host_retransmissions(&self) -> u64 {
        self.originated.total_of(Cause::is_host_retransmission)
    }

    /// Data packets that the base station sent again.
    pub fn local_retransmissions(&self) -> u64 {
        self.originated.total_of(Cause::is_local_retransmission)
    }
}

/// Packet delay: from the moment the sender first puts a packet's bytes into the path (where senders are not
/// ours: from the far end of the first link) until the last of them is delivered in order; queues,
/// retransmissions and reordering included (parsa98 5.1).
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Delay {
    /// Packets delivered.
    pub packets: u64,
    /// Mean in seconds.
    pub mean_s: f64,
    /// Sample standard deviation in seconds.
    pub sd_s: f64,
    /// Longest in seconds.
    pub max_s: f64,
    /// Median in seconds; this and what follows come from a histogram that is exact to 12 %.
    #[serde(default)]
    pub p50_s: f64,
    /// 95th percentile in seconds.
    #[serde(default)]
    pub p95_s: f64,
    /// 99th percentile in seconds.
    #[serde(default)]
    pub p99_s: f64,
}

/// A value of the control block, sampled at the sender's events (not evenly in time: only at duplicate
/// ACKs, retransmissions, partial ACKs, opening and completion).
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Sampled {
    /// How many samples.
    pub samples: u64,
    /// Mean of the samples in seconds.
    pub mean_s: f64,
    /// Largest sample in seconds.
    pub max_s: f64,
    /// Last sample in seconds.
    pub last_s: f64,
}

/// Samples of a control-block value; zero means not measured yet.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Samples {
    n: u64,
    sum: u64,
    max: u64,
    last: u64,
}

impl Samples {
    pub(super) fn add(&mut self, value: Span) {
        if value > Span::ZERO {
            self.n += 1;
            self.sum = self.sum.saturating_add(value.0);
            self.max = self.max.max(value.0);
            self.last = value.0;
        }
    }

    pub(super) fn metrics(&self) -> Sampled {
        Sampled {
            samples: self.n,
            mean_s: Span(self.sum / self.n.max(1)).as_secs_f64(),
            max_s: Span(self.max).as_secs_f64(),
            last_s: Span(self.last).as_secs_f64(),
        }
    }
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// A direction as `"left"` or `"right"`; the contract's own type is only written.
pub(super) mod side {
    use super::Side;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub fn serialize<S: Serializer>(side: &Option<Side>, s: S) -> Result<S::Ok, S::Error> {
        side.serialize(s)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Side>, D::Error> {
        Ok(match Option::<String>::deserialize(d)?.as_deref() {
            Some("left") => Some(Side::Left),
            Some("right") => Some(Side::Right),
            None => None,
            Some(other) => {
                return Err(serde::de::Error::unknown_variant(other, &["left", "right"]));
            }
        })
    }
}
