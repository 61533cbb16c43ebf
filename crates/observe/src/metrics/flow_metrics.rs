//! Metrics of one flow.

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
    /// Time when its connection was opened (first SYN, or its first data without a seen SYN), seconds.
    pub opened_s: Option<f64>,
    /// Time when all its data was acknowledged at the sender, and at each base station that has split its
    /// connection, seconds.
    pub completed_s: Option<f64>,
    /// Whether all its data was delivered and acknowledged.
    pub complete: bool,
    /// Whether its connection was aborted or reset before that. Later events, such as an unanswered FIN, do
    /// not affect a complete flow.
    pub aborted: bool,
    /// Number of bytes to transfer, if the layout names it.
    pub wanted: Option<u64>,
    /// Whether it is cross traffic: measured, but excluded from the numbers of the run.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub cross: bool,
    /// Bytes delivered to the application in order.
    pub delivered: u64,
    /// Time from opening to completion, seconds; for an incomplete flow to the end of the run.
    pub transfer_time_s: f64,
    /// `delivered / transfer_time_s`, in bytes per second.
    pub throughput: f64,
    /// Payload of a full segment, bytes, as declared or the largest seen.
    pub mss: u32,
    /// Full segments needed for `delivered` on the wired links: the "ideal number of data packets" of west97 5.2.
    pub ideal_packets: u64,
    /// Data packets on the first wired link of its path.
    pub wired_packets: u64,
    /// Data packets on the first radio hop of its path.
    pub wireless_packets: u64,
    /// `ideal_packets / wired_packets` (west97 5.2); `None` without a wired link.
    pub wired_goodput: Option<f64>,
    /// As `wired_goodput` for the radio hop, where a split connection has its own segment size; `None`
    /// without a hop.
    pub wireless_goodput: Option<f64>,
    /// Retransmission timeouts of the sender, that of the SYN included.
    pub timeouts: u64,
    /// Timeouts before the connection was open: a SYN or its answer was lost.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub opening_timeouts: u64,
    /// Fast retransmissions that began a recovery.
    pub fast_retransmits: u64,
    /// Fast recoveries that ended: with all their data acknowledged, or by an undo. A timeout ends a recovery without
    /// counting it.
    pub recoveries: u64,
    /// Reactions to a loss that were reverted, since the loss was spurious: fast recoveries, and timeouts. For a sender of
    /// Linux, those that raise its slow-start threshold.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub undone: u64,
    /// Duplicate ACKs that reached the sender, with SACK those that report new data; 0 for a sender of the kernel, which
    /// does not count them.
    pub dupacks: u64,
    /// Partial acknowledgements of a base station that the sender accepted.
    pub partial_acks: u64,
    /// Loss notifications that the sender accepted.
    pub loss_notifications: u64,
    /// Notifications of a bad state of the wireless link that the sender accepted (bakshi96 4.2.3).
    #[serde(default)]
    pub bad_state_notices: u64,
    /// Source quenches that the sender accepted (bakshi96 4.2.2).
    #[serde(default)]
    pub quenches: u64,
    /// ECN echoes that reduced the sender's window (RFC 3168).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub congestion_echoes: u64,
    /// Packets in the direction of the data that a queue marked with CE.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub marked: u64,
    /// Packets towards the sender that a queue marked with CE.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub marked_acks: u64,
    /// Originated data packets with new bytes.
    pub new_packets: u64,
    /// Packets originated in the direction of the data, by cause: by the sender, and by the base station
    /// (local retransmissions).
    pub originated: CauseCounts,
    /// Packets originated towards the sender, by cause, without the receiver's plain ACKs: forged partial
    /// ACKs, loss notifications, messages about the state of a link, SYN and FIN.
    pub originated_acks: CauseCounts,
    /// Dropped packets in the direction of the data, by cause, anywhere on the path.
    pub dropped: CauseCounts,
    /// Retransmissions of link layers in the direction of the data, by cause: one per repeated transmission
    /// of a packet.
    #[serde(default, skip_serializing_if = "CauseCounts::is_empty")]
    pub repeated: CauseCounts,
    /// Dropped packets towards the sender, by cause, including the duplicate ACKs that a base station
    /// suppressed.
    pub dropped_acks: CauseCounts,
    /// Undamaged data packets after the last link without new data, which the receiver discarded.
    pub redundant: u64,
    /// End-to-end packet delay.
    pub delay: Delay,
    /// Smoothed round-trip time at the sender.
    pub srtt: Sampled,
    /// Current retransmission timeout of the sender, with backoff.
    pub rto: Sampled,
    /// Number of stalls.
    pub stalls: u64,
    /// Total duration of stalls, seconds.
    pub stall_time_s: f64,
    /// Longest stall, seconds.
    pub longest_stall_s: f64,
    /// Median gap between deliveries, seconds, which determines the threshold of stalls.
    pub typical_gap_s: f64,
    /// The first stalls, oldest first; at most [`super::LISTED_STALLS`].
    pub stall_list: Vec<Stall>,
}

impl FlowMetrics {
    /// Full segments needed for `delivered` on the radio hop: the numerator of its goodput.
    pub fn ideal_on_radio(&self) -> u64 {
        let goodput = self.wireless_goodput.unwrap_or(0.0);
        (goodput * self.wireless_packets as f64).round() as u64
    }

    /// Data packets that the host retransmitted for any reason.
    pub fn host_retransmissions(&self) -> u64 {
        self.originated.total_of(Cause::is_host_retransmission)
    }

    /// Data packets that the base station retransmitted.
    pub fn local_retransmissions(&self) -> u64 {
        self.originated.total_of(Cause::is_local_retransmission)
    }
}

/// Packet delay: from the first time the sender puts a packet's bytes into the path until the last of them is
/// delivered in order. Includes queues, retransmissions and reordering (parsa98 5.1). For foreign senders it
/// begins at the far end of the first link.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Delay {
    /// Delivered packets.
    pub packets: u64,
    /// Mean, seconds.
    pub mean_s: f64,
    /// Sample standard deviation, seconds.
    pub sd_s: f64,
    /// Maximum, seconds.
    pub max_s: f64,
    /// Median, seconds; all quantiles are from a histogram with an accuracy of 12 %.
    #[serde(default)]
    pub p50_s: f64,
    /// 95th percentile, seconds.
    #[serde(default)]
    pub p95_s: f64,
    /// 99th percentile, seconds.
    #[serde(default)]
    pub p99_s: f64,
}

/// A value of the control block, sampled at the sender's events: duplicate ACKs, retransmissions, partial
/// ACKs, opening and completion. The samples are not evenly spaced in time.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Sampled {
    /// Number of samples.
    pub samples: u64,
    /// Mean, seconds.
    pub mean_s: f64,
    /// Maximum, seconds.
    pub max_s: f64,
    /// Last sample, seconds.
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

/// Serializes a direction as `"left"` or `"right"`, since `Side` itself implements only serialization.
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
