//! Configuration of a TCP end point. A variant is a configuration; a preset is the configuration of a known
//! system.

use serde::Serialize;

use crate::units::Span;

use super::accurate::AccurateEcn;
pub use super::giving_up::GivingUp;
pub use super::prediction::Prediction;
pub use super::presets::PRESETS;
pub use super::sender::congestion_control::custom::{Custom, CustomCongestionControl};
pub use super::sender::registry::{Congestion, Variant};
pub use super::sender::systems::ns::{Halves, TimerOrder};

/// Clock of a TCP's timers and round-trip measurements.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Clock {
    /// BSD: one slow and one fast tick for the whole host. Round trips are counted in slow ticks with the
    /// integer arithmetic of 4.4BSD. Timeouts expire on slow ticks, delayed ACKs on fast ones.
    Ticks {
        /// Period of the retransmission clock (500 ms in BSD).
        slow: Span,
        /// Period of the delayed-ACK clock (200 ms in BSD).
        fast: Span,
    },
    /// RFC 6298: measurements and timers with a granularity, each timer independent of the others.
    Fine {
        /// Clock granularity G of RFC 6298.
        granularity: Span,
    },
}

/// Formula of the retransmission timeout with [`Clock::Fine`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RtoRule {
    /// `srtt + max(G, 4 rttvar)` (RFC 6298).
    Rfc6298,
    /// `srtt + 4 rttvar` (Jacobson 1988, appendix A): without variation in units of G, the timeout decreases
    /// to one unit.
    Jacobson,
    /// `srtt + max(rto-min, 4 rttvar)`, as Linux: the minimum is added to the round-trip time.
    Linux,
}

/// When a receiver acknowledges data that arrives in order.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct DelayedAck {
    /// Maximum number of full segments for each ACK; 1 acknowledges each segment at once, and
    /// [`DelayedAck::BY_TIME`] means no maximum.
    pub every: u32,
    /// Longest delay of an ACK after an unacknowledged segment. With [`Clock::Ticks`] this is the fast tick,
    /// and the delay ends at its next beat.
    pub timeout: Span,
}

impl DelayedAck {
    /// [`DelayedAck::every`] for ACKs by time alone (agarwal00 4.5). An ACK is also sent when its window is
    /// twice the peer's remaining window.
    pub const BY_TIME: u32 = u32::MAX;
}

/// Unit in which a receiver counts unacknowledged data for [`DelayedAck::every`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum MaxSeg {
    /// Segments of any size.
    #[default]
    None,
    /// Bytes, as 4.4BSD: in multiples of the connection's segment size, which options do not reduce.
    Mss,
    /// Bytes in multiples of this known segment size.
    Bytes(u32),
}

/// When the window inflated by duplicate ACKs in fast recovery returns to the threshold.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Deflation {
    /// Always; a partial ACK deflates it by the bytes that it acknowledges (RFC 5681, RFC 6582).
    #[default]
    Always,
    /// NewReno of ns-2. A partial ACK reduces the inflation by the acknowledged data, the window itself only
    /// by the excess, and adds one segment. At the end, and for a timeout, the window itself applies, however
    /// little is in flight. Each ACK allows two new segments at most. With Reno as [`Deflation::Always`],
    /// except that a timeout also halves the window itself.
    Ns,
    /// Only after more duplicate ACKs than the threshold of fast retransmit: 4.4BSD.
    PastThreshold,
}

/// Reaction of a sender to a partial acknowledgement of a base station (west97 3.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum AckpReaction {
    /// The option is not offered; partial acknowledgements are ignored.
    Off,
    /// The retransmission timer restarts with the current timeout.
    Rearm,
    /// The timer is set to a constant: twice the timeout before any backoff (west97 4.2).
    Constant,
    /// Each consecutive partial acknowledgement doubles the timeout, up to the maximum.
    Exponential,
}

/// Quantity that a loss halves to give the slow-start threshold.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Halving {
    /// BSD: the smaller of congestion window and peer's window, at each timeout again, so that a second
    /// timeout leaves two segments.
    Window,
    /// RFC 5681 equation 4: the data in flight, and only at the first timeout for a segment.
    Flight,
}

/// Rounding of a measured round-trip time to the clock's granularity.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rounding {
    /// Up, so that no timeout is too short.
    Up,
    /// To the nearest unit, and at least one: the network simulators of LBNL (bakshi96 3.3).
    Nearest,
    /// Number of clock beats during the round trip, at least one; the phase is random. With integer
    /// arithmetic only.
    Beats,
}

/// Resolution of round-trip averages with [`Clock::Fine`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arithmetic {
    /// Nanoseconds.
    #[default]
    Exact,
    /// Eighths (srtt) and quarters (rttvar) of the granularity, truncated: the arithmetic of 4.4BSD and of
    /// the simulators of LBNL.
    Integer,
}

/// Upper bound of the window for slow start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SlowStart {
    /// Up to the threshold, inclusive.
    #[default]
    Up,
    /// Below the threshold.
    Below,
}

/// Congestion window after silence of more than the retransmission timeout.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum IdleRestart {
    /// Unchanged.
    #[default]
    Off,
    /// One segment (4.4BSD `tcp_output`), with silence measured from the last segment sent (RFC 5681 section
    /// 4.1).
    OneSegment,
    /// At most the initial window (RFC 5681 section 4.1).
    InitialWindow,
    /// Halved for each timeout down to the initial window, and reduced halfway to its use after a timeout of
    /// low use. The threshold retains three quarters of it (Linux `tcp_cwnd_restart`,
    /// `tcp_cwnd_application_limited`).
    Decay,
}

/// Use of a smoothed round trip after the fourth consecutive timeout, with integer arithmetic only.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum StaleRtt {
    /// It moves into the variation (4.4BSD, ns-2).
    #[default]
    ToVariation,
    /// It is dropped (ns in December 1996).
    Dropped,
}

/// Whether this is the limit of BSD's backoff.
fn is_64(factor: &u32) -> bool {
    *factor == 64
}

/// Whether this is the minimum threshold of RFC 5681.
fn is_two(segments: &u32) -> bool {
    *segments == 2
}

/// Whether `value` is the default: then it is left out of the names of runs.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Backlog in segments that [`Congestion::Vegas`] aims at in queues on the path.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct VegasRule {
    /// Below this backlog the window grows.
    pub alpha: u32,
    /// Above this backlog it shrinks.
    pub beta: u32,
    /// Above this backlog slow start ends.
    pub gamma: u32,
}

/// Growth of the congestion window in congestion avoidance.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum GrowthRule {
    /// One segment per window (RFC 5681).
    Rfc5681,
    /// 4.4BSD: one segment per window plus an eighth of a segment per ACK, which RFC 2525 section 2.3 lists
    /// among the known faults of BSD-derived TCPs.
    Bsd,
    /// By segments acknowledged, as Linux, including its variants of CUBIC, proportional rate reduction and
    /// bursts.
    Linux,
}

/// Assumed cause of a loss without feedback: the default assumption of SCPS-TP, which is a matter of
/// configuration.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LossCause {
    /// A full queue: the window shrinks.
    Congestion,
    /// Noise on a link: the window is unchanged.
    Corruption,
}

/// Explicit loss notification (west97 2.3.3): the damaged segments that a receiver reports to the sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ElnMode {
    /// None; notifications are neither offered nor obeyed.
    Off,
    /// Segments with a valid IP checksum and an invalid TCP checksum: errors in the IP header are not
    /// detected.
    Checksum,
    /// All damaged segments, as if reported by an oracle: the bound in the paper's comparison.
    Ideal,
}

/// Loss notifications that a sender obeys, and requests on its SYN.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ElnReaction {
    /// Notifications that name a segment: it is retransmitted at once (west97 2.3.3).
    Named,
    /// Marks on the duplicate ACKs for a lost segment: the third one retransmits it, and the window is
    /// unchanged (E2E-ELN of balakrishnan97 3.1.2).
    ThirdDuplicate,
    /// The same marks: the first marked ACK retransmits the segment (E2E-ELN-RXMT).
    FirstAck,
}

/// Congestion control of acknowledgements (balakrishnan97 4.2.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct AccConfig {
    /// Maximum number of segments per ACK, even if the sender's window allows more.
    pub most: u32,
    /// Longest delay of an ACK (the paper: 200 ms). With [`Clock::Ticks`] it is the fast tick.
    pub timeout: Span,
}

impl Default for AccConfig {
    fn default() -> AccConfig {
        AccConfig { most: u32::MAX, timeout: Span::millis(200) }
    }
}

/// Configuration of a TCP end point, sender and receiver side.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct TcpConfig {
    /// Loss detection and recovery.
    pub variant: Variant,
    /// Timers.
    pub clock: Clock,
    /// Formula of the retransmission timeout.
    pub rto_rule: RtoRule,
    /// Rounding of round-trip times; of [`Clock::Fine`] only.
    pub rtt_rounding: Rounding,
    /// Resolution of their averages; of [`Clock::Fine`] only.
    #[serde(skip_serializing_if = "is_default")]
    pub rtt_arithmetic: Arithmetic,
    /// Use of the smoothed round trip after the fourth consecutive timeout.
    #[serde(skip_serializing_if = "is_default")]
    pub stale_rtt: StaleRtt,
    /// Whether packets carry their send time outside the header and ACKs echo it, so that each ACK of new
    /// data gives a round-trip time. For simulations; real packets cannot carry it.
    #[serde(skip_serializing_if = "is_default")]
    pub stamps: bool,
    /// When the retransmission timer restarts.
    #[serde(skip_serializing_if = "is_default")]
    pub timer_order: TimerOrder,
    /// Whether a fast retransmit doubles the timeout as well.
    #[serde(skip_serializing_if = "is_default")]
    pub fast_backoff: bool,
    /// Whether connections begin with a handshake. Without one both ends are open from the start, as in
    /// simulators.
    #[serde(skip_serializing_if = "Clone::clone")]
    pub handshake: bool,
    /// Whether the handshake's round trip is a measurement. Simulators of one-way TCP had no handshake.
    pub rtt_from_syn: bool,
    /// Minimum retransmission timeout.
    pub rto_min: Span,
    /// Maximum retransmission timeout.
    pub rto_max: Span,
    /// Retransmission timeout before the first measurement.
    pub rto_initial: Span,
    /// Maximum factor by which consecutive timeouts lengthen the retransmission timeout and the persist
    /// timeout: 64 in BSD. With 0 only `rto_max` bounds them.
    #[serde(skip_serializing_if = "is_64")]
    pub backoff_max: u32,
    /// Number of consecutive timeouts after which a connection is aborted; see [`TcpConfig::giving_up`].
    pub max_retries: u32,
    /// When a connection is aborted.
    #[serde(skip_serializing_if = "is_default")]
    pub giving_up: GivingUp,
    /// Number of SYN retransmissions before the connection is aborted; `None` is `max_retries`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub syn_retries: Option<u32>,
    /// Number of SYN-ACK retransmissions; `None` is `max_retries`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub syn_ack_retries: Option<u32>,
    /// Longest duration of the handshake, after which the connection is dropped; `None` is no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub opening_limit: Option<Span>,
    /// Timeouts of a SYN that do not double the next one.
    #[serde(skip_serializing_if = "is_default")]
    pub syn_linear: u32,
    /// Largest payload of a segment in bytes, as offered to the peer.
    pub mss: u32,
    /// Socket send buffer in bytes: bounds data in flight.
    pub send_buffer: u32,
    /// Socket receive buffer in bytes: the largest advertised window.
    pub recv_buffer: u32,
    /// Memory of the receive buffer of Linux in bytes, at first and at most (`tcp_rmem`), with the overhead of segments;
    /// `None` is Linux' default. It is used with [`TcpConfig::quick_acks`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recv_memory: Option<[u32; 2]>,
    /// Whether the receiver acknowledges when Linux does: at once at the start and while its window may grow,
    /// and compressed after a hole.
    #[serde(skip_serializing_if = "is_default")]
    pub quick_acks: bool,
    /// Initial congestion window in segments.
    pub initial_window: u32,
    /// Congestion window after a timeout, in segments.
    pub loss_window: u32,
    /// Initial slow-start threshold in bytes.
    pub initial_ssthresh: u32,
    /// Quantity that a loss halves.
    pub halving: Halving,
    /// Rounding of half a window.
    #[serde(skip_serializing_if = "is_default")]
    pub halves: Halves,
    /// Whether the congestion window allows only whole segments, as where windows are counted in packets. A
    /// fraction of a segment does not allow a retransmission either.
    #[serde(skip_serializing_if = "is_default")]
    pub whole_segments: bool,
    /// Minimum slow-start threshold in segments.
    #[serde(skip_serializing_if = "is_two")]
    pub ssthresh_min: u32,
    /// Upper bound of the window for slow start.
    #[serde(skip_serializing_if = "is_default")]
    pub slow_start: SlowStart,
    /// Whether Reno starts no fast retransmit for a window of data that is already being repaired.
    #[serde(skip_serializing_if = "is_default")]
    pub once_per_window: bool,
    /// Growth of the congestion window, and its reduction after a loss.
    pub congestion: Congestion,
    /// An external congestion control in place of both.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub custom: Option<Box<Custom>>,
    /// Growth in congestion avoidance, with [`Congestion::Reno`].
    pub growth: GrowthRule,
    /// Maximum number of segments of an ACK that count for growth by bytes (the limit L of RFC 3465); 0
    /// counts ACKs instead.
    pub byte_counting: u32,
    /// Whether an unused congestion window does not grow (RFC 7661).
    #[serde(skip_serializing_if = "is_default")]
    pub window_validation: bool,
    /// Congestion window after silence.
    #[serde(skip_serializing_if = "is_default")]
    pub slow_start_after_idle: IdleRestart,
    /// Backlog that [`Congestion::Vegas`] aims at.
    pub vegas: VegasRule,
    /// Whether segments are paced at a rate instead of sent in bursts.
    pub pacing: bool,
    /// Maximum number of back-to-back segments with pacing.
    pub burst: u32,
    /// Duplicate ACKs that trigger fast retransmit.
    pub dupthresh: u32,
    /// Receiver: when to acknowledge.
    pub delayed_ack: DelayedAck,
    /// Receiver: unit of the count.
    #[serde(skip_serializing_if = "is_default")]
    pub maxseg: MaxSeg,
    /// When Reno and NewReno deflate their window.
    #[serde(skip_serializing_if = "is_default")]
    pub deflation: Deflation,
    /// Whether the window also grows on the ACK that ends fast recovery of Reno and NewReno, as in 4.4BSD and
    /// ns-2.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub exit_growth: bool,
    /// Offer explicit congestion notification (RFC 3168).
    pub ecn: bool,
    /// Offer accurate ECN (RFC 9768); a peer without it falls back to classic ECN.
    #[serde(skip_serializing_if = "is_default")]
    pub accurate_ecn: AccurateEcn,
    /// Offer congestion control of acknowledgements.
    pub acc: Option<AccConfig>,
    /// Offer timestamps and PAWS (RFC 7323).
    pub timestamps: bool,
    /// Offer window scaling (RFC 7323).
    pub window_scale: bool,
    /// Predict headers. This affects only the cost, not the segments sent or the data delivered.
    #[serde(skip_serializing_if = "Prediction::is_off")]
    pub prediction: Prediction,
    /// Send SACK blocks when the peer permits them. The `sack` variant needs it on both sides.
    pub sack: bool,
    /// Report the cause of an ACK when the peer understands it. The `smart` variant needs it on both sides.
    pub smart: bool,
    /// Retransmit a segment each time that SMART shows its loss, not only once.
    pub smart_repeat: bool,
    /// Report missing segments when the peer understands it. The `snack` variant needs it on both sides.
    pub snack: bool,
    /// Assumed cause of losses that the peer of the `snack` variant reports.
    pub loss_cause: LossCause,
    /// Report segments that arrive twice (RFC 2883), where SACK blocks are sent.
    pub dsack: bool,
    /// Offer and obey partial acknowledgements.
    pub ackp: AckpReaction,
    /// Take no round-trip sample from a segment that a partial acknowledgement covered (west97 3.4).
    pub ackp_karn: bool,
    /// Offer and obey explicit loss notifications, and the losses that a receiver detects.
    pub eln: ElnMode,
    /// Offer and obey negative acknowledgements of a base station (west97 2.6).
    pub nack: bool,
    /// Reaction of a sender to loss notifications.
    pub eln_reaction: ElnReaction,
    /// Obey explicit bad state notifications of a base station (bakshi96 4.2.3).
    pub ebsn: bool,
    /// Obey ICMP source quench, as 4.4BSD did and RFC 6633 forbids.
    pub quench: bool,
    /// Retransmit as soon as a hand-off is over, and make the peer do so (Caceres and Iftode 1995).
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub fast_rtx_handoff: bool,
    /// New data on the first and second duplicate ACK (RFC 3042).
    pub limited_transmit: bool,
    /// Connections to one host share a congestion window and loss detection (balakrishnan97 5.2). With
    /// [`Variant::Reno`] only.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub integrated: bool,
    /// Count connections and open them with data (RFC 1644).
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub t_tcp: bool,
    /// Open connections with data and a cookie (RFC 7413).
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub fast_open: bool,
    /// Duration of TIME-WAIT.
    pub time_wait: Span,
}

impl TcpConfig {
    /// The sender adaptation of balakrishnan97 4.2 and 4.3. The window opens by bytes acknowledged, for any
    /// number per ACK. Of the segments that an ACK releases, three are sent back to back and the rest at the
    /// rate of a window per round trip.
    ///
    /// The paper names the techniques and gives no numbers. Three segments were the largest burst in the
    /// authors' simulation scripts.
    pub fn adapt_to_sparse_acks(&mut self) {
        self.byte_counting = u32::MAX;
        self.pacing = true;
        self.burst = 3;
    }
}
