//! What kind of TCP an end point speaks. A variant is its configuration; a preset is a known system's.

use serde::Serialize;

use crate::units::Span;

use super::accurate::AccurateEcn;
pub use super::giving_up::GivingUp;
pub use super::prediction::Prediction;
pub use super::presets::PRESETS;
pub use super::sender::custom::{Custom, CustomGrowth};

/// How a sender detects and repairs losses.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Variant {
    /// Fast retransmit, then slow start (west97 2.2.1).
    Tahoe,
    /// Fast recovery with window inflation (west97 2.2.2, RFC 5681 section 3.2).
    Reno,
    /// Partial ACKs keep fast recovery alive (west97 2.3.1, RFC 6582).
    NewReno,
    /// Scoreboard and pipe (west97 2.3.2, RFC 2018, RFC 6675).
    Sack,
    /// ACKs name what caused them; holes are inferred at once (balakrishnan97 3.1.2).
    Smart,
    /// The receiver names the holes, which are sent again at once (SCPS-TP, CCSDS 714.0-B).
    Snack,
    /// Loss detection by time, tail loss probes, proportional rate reduction (RFC 8985, RFC 6937).
    Rack,
}

/// What a TCP's timers and round-trip measurements are driven by.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Clock {
    /// BSD: one slow and one fast tick for the whole host; round trips are counted in slow ticks with the
    /// integer arithmetic of 4.4BSD, time-outs expire on slow ticks, delayed ACKs on fast ones.
    Ticks {
        /// Period of the retransmission clock (500 ms in BSD).
        slow: Span,
        /// Period of the delayed-ACK clock (200 ms in BSD).
        fast: Span,
    },
    /// RFC 6298: measurements and timers at a granularity, each timer on its own.
    Fine {
        /// Clock granularity G of RFC 6298.
        granularity: Span,
    },
}

/// How the time-out follows from the estimate, with [`Clock::Fine`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RtoRule {
    /// `srtt + max(G, 4 rttvar)` (RFC 6298).
    Rfc6298,
    /// `srtt + 4 rttvar` (Jacobson 1988, appendix A): where round trips never vary in units of G, the time-out
    /// comes down to one unit.
    Jacobson,
    /// `srtt + max(rto-min, 4 rttvar)`, as Linux: the least time-out is counted from the round trip.
    Linux,
}

/// When a receiver acknowledges data that arrives in order.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct DelayedAck {
    /// Acknowledge at the latest every so many full segments; 1 acknowledges each segment at once, and
    /// [`DelayedAck::BY_TIME`] is no number of them.
    pub every: u32,
    /// Acknowledge at the latest so long after an unacknowledged segment. With [`Clock::Ticks`] this is the
    /// fast tick and the delay is until its next beat.
    pub timeout: Span,
}

impl DelayedAck {
    /// [`DelayedAck::every`] where time alone counts (agarwal00 4.5), and the window: an ACK goes as well when the one
    /// that it offers is twice what the peer still has.
    pub const BY_TIME: u32 = u32::MAX;
}

/// By what a receiver counts what it has not acknowledged, where [`DelayedAck::every`] counts at all.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum MaxSeg {
    /// By segments, whatever they carry.
    #[default]
    None,
    /// By bytes, as 4.4BSD: in multiples of the connection's segment size, which options do not reduce.
    Mss,
    /// The same, where that segment size is known to be this one.
    Bytes(u32),
}

/// When the window that duplicate ACKs have inflated in fast recovery comes down to the threshold.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Deflation {
    /// Always, and at a partial ACK by what that acknowledges (RFC 5681, RFC 6582).
    #[default]
    Always,
    /// NewReno of ns-2: at a partial ACK what that acknowledges comes off the inflation, off the window itself only
    /// where it is more, and one segment is added; at the end, and for a time-out, the window itself is left, however
    /// little is in flight. Each ACK lets two new segments go at most. With Reno it is as [`Deflation::Always`], but
    /// that a time-out as well halves the window itself.
    Ns,
    /// Only where more duplicate ACKs came than it takes to begin: 4.4BSD.
    PastThreshold,
}

/// What a sender does with a partial acknowledgement of a base station (west97 3.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum AckpReaction {
    /// The option is not offered; partial acknowledgements are ignored.
    Off,
    /// The retransmission timer starts again with the time-out in force.
    Rearm,
    /// The timer is set to a constant: twice the time-out in force before any back-off (west97 4.2).
    Constant,
    /// Each partial acknowledgement in a row doubles the time-out, up to the maximum.
    Exponential,
}

/// What a loss halves to give the slow-start threshold.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Halving {
    /// BSD: the smaller of congestion window and peer's window, at each time-out anew, so that a second
    /// time-out leaves two segments.
    Window,
    /// RFC 5681 equation 4: the data in flight, and only at the first time-out for a segment.
    Flight,
}

/// How a measured round trip becomes a whole number of the clock's granularity.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rounding {
    /// Up, so that no time-out is too short.
    Up,
    /// To the nearest, and at least one: the network simulators of LBNL (bakshi96 3.3).
    Nearest,
    /// Beats of the clock while it lasted, at least one; the phase is random. With integer arithmetic only.
    Beats,
}

/// How exactly round trips are averaged, with [`Clock::Fine`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arithmetic {
    /// In nanoseconds.
    #[default]
    Exact,
    /// In eighths (srtt) and quarters (rttvar) of the granularity, truncated: the arithmetic of 4.4BSD, which the
    /// simulators of LBNL took over.
    Integer,
}

/// Until when the window opens by slow start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SlowStart {
    /// Up to the threshold: at the threshold itself it still does.
    #[default]
    Up,
    /// Below the threshold.
    Below,
}

/// What remains of half a window that is no whole number of segments.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Halves {
    /// Whole segments.
    #[default]
    Whole,
    /// In fast recovery the exact half; slow start ends at whole segments all the same.
    Exact,
}

/// What becomes of the congestion window when nothing was sent for longer than the retransmission timeout.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum IdleRestart {
    /// It stays.
    #[default]
    Off,
    /// One segment (4.4BSD `tcp_output`), with silence measured from the last segment sent (RFC 5681 section 4.1).
    OneSegment,
    /// At most the initial window (RFC 5681 section 4.1).
    InitialWindow,
    /// It halves for each timeout down to the initial window, and halfway to its use when it is not used for a timeout;
    /// the threshold keeps three quarters of it (Linux `tcp_cwnd_restart`, `tcp_cwnd_application_limited`).
    Decay,
}

/// When the retransmission timer starts again, beside what becomes of the time-out at the same moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TimerOrder {
    /// After a round trip or a back-off has changed the time-out (RFC 6298).
    #[default]
    Last,
    /// Before: the first retransmission waits for a time-out that is not doubled, and an ACK restarts the timer with
    /// the time-out from before its round trip.
    First,
}

/// Whether this is the limit of BSD's backoff.
fn is_64(factor: &u32) -> bool {
    *factor == 64
}

/// Whether this is the least threshold of RFC 5681.
fn is_two(segments: &u32) -> bool {
    *segments == 2
}

/// Whether `value` is what it would be by default: then it is left out of the names of runs.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// What opens the congestion window, and how far a loss closes it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Congestion {
    /// Slow start and congestion avoidance; a loss halves the window (RFC 5681).
    Reno,
    /// Round trips tell how much waits in queues on the way (Brakmo and Peterson 1995).
    Vegas,
    /// A cubic function of the time since the last loss (RFC 9438).
    Cubic,
    /// A model of the path from samples of the delivery rate (BBR, version 1). Needs [`Variant::Rack`].
    Bbr,
    /// The same, version 3 (draft-ietf-ccwg-bbr). Needs [`Variant::Rack`].
    Bbr3,
    /// As fast in bytes per second whatever the round trip (Caini and Firrincieli 2004).
    Hybla,
    /// A loss leaves what the path was measured to carry (Westwood+, Grieco and Mascolo 2004).
    Westwood,
    /// A loss without a queue costs a fifth (Fu and Liew 2003).
    Veno,
    /// Each mark costs a little (draft-briscoe-iccrg-prague-congestion-control). Needs [`Variant::Rack`] and accurate ECN.
    Prague,
}

impl Congestion {
    /// Whether a model of the path sets the window, and not losses.
    pub(super) fn has_a_model(self) -> bool {
        matches!(self, Congestion::Bbr | Congestion::Bbr3)
    }
}

/// How many segments of a window [`Congestion::Vegas`] wants to wait in queues on the way.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct VegasRule {
    /// Below this the window grows.
    pub alpha: u32,
    /// Above this it shrinks.
    pub beta: u32,
    /// Above this slow start ends.
    pub gamma: u32,
}

/// How the congestion window opens in congestion avoidance.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum GrowthRule {
    /// One segment per window (RFC 5681).
    Rfc5681,
    /// 4.4BSD: one segment per window plus an eighth of a segment per ACK, which RFC 2525 section 2.3 lists
    /// among the known faults of the TCPs that descend from it.
    Bsd,
    /// By segments acknowledged, as Linux: with its CUBIC where that is configured, its proportional rate reduction,
    /// and the bursts in which it sends.
    Linux,
}

/// What a loss is taken for where nothing tells: the default assumption of SCPS-TP, which leaves it to the
/// configuration.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LossCause {
    /// A full queue: the window shrinks.
    Congestion,
    /// Noise on a link: the window stays.
    Corruption,
}

/// Explicit loss notification (west97 2.3.3): which damaged segments a receiver tells the sender of.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ElnMode {
    /// None; notifications are neither offered nor obeyed.
    Off,
    /// Those whose IP checksum holds and whose TCP checksum fails: errors in the IP header stay unseen.
    Checksum,
    /// Every one, as if told by an oracle: the bound that the paper compares with.
    Ideal,
}

/// What a sender obeys of explicit loss notifications, and asks for on its SYN.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ElnReaction {
    /// Notifications that name a segment: it is sent again at once (west97 2.3.3).
    Named,
    /// Marks on the ACKs that wait for a lost segment: the third duplicate ACK sends it again, and the window stays
    /// (E2E-ELN of balakrishnan97 3.1.2).
    ThirdDuplicate,
    /// The same marks: the first marked ACK sends it again (E2E-ELN-RXMT).
    FirstAck,
}

/// Congestion control of acknowledgements (balakrishnan97 4.2.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct AccConfig {
    /// The most segments that share an ACK, whatever the sender's window bears.
    pub most: u32,
    /// An ACK waits no longer than this (the paper: 200 ms). With [`Clock::Ticks`] it is the fast tick.
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
    /// How the time-out follows from the estimate.
    pub rto_rule: RtoRule,
    /// How round trips are rounded; of [`Clock::Fine`] only.
    pub rtt_rounding: Rounding,
    /// How they are averaged; of [`Clock::Fine`] only.
    #[serde(skip_serializing_if = "is_default")]
    pub rtt_arithmetic: Arithmetic,
    /// Packets carry the time of their sending and ACKs echo it, beside the header: each ACK of new data gives a round
    /// trip. As in simulators; on real packets nothing carries it.
    #[serde(skip_serializing_if = "is_default")]
    pub stamps: bool,
    /// When the retransmission timer starts again.
    #[serde(skip_serializing_if = "is_default")]
    pub timer_order: TimerOrder,
    /// A fast retransmit doubles the time-out as well.
    #[serde(skip_serializing_if = "is_default")]
    pub fast_backoff: bool,
    /// Connections begin with a handshake. Without one both ends are open from the start, as in simulators.
    #[serde(skip_serializing_if = "Clone::clone")]
    pub handshake: bool,
    /// Whether the handshake's round trip is a measurement. Simulators of one-way TCP had no handshake.
    pub rtt_from_syn: bool,
    /// Smallest retransmission time-out.
    pub rto_min: Span,
    /// Largest retransmission time-out.
    pub rto_max: Span,
    /// Time-out before the first measurement.
    pub rto_initial: Span,
    /// Largest factor by which timeouts in a row lengthen the retransmission timeout and the persist timeout: 64 in
    /// BSD. With 0 only `rto_max` bounds them.
    #[serde(skip_serializing_if = "is_64")]
    pub backoff_max: u32,
    /// A connection is given up after this many time-outs in a row; see [`TcpConfig::giving_up`].
    pub max_retries: u32,
    /// When a connection is given up.
    #[serde(skip_serializing_if = "is_default")]
    pub giving_up: GivingUp,
    /// SYNs that are sent again before the connection is given up; as `max_retries` if there is no number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub syn_retries: Option<u32>,
    /// SYN-ACKs that are sent again, likewise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub syn_ack_retries: Option<u32>,
    /// Timeouts of a SYN that do not double the next one.
    #[serde(skip_serializing_if = "is_default")]
    pub syn_linear: u32,
    /// Largest payload of a segment in bytes, as offered to the peer.
    pub mss: u32,
    /// Socket send buffer in bytes: bounds data in flight.
    pub send_buffer: u32,
    /// Socket receive buffer in bytes: the largest advertised window.
    pub recv_buffer: u32,
    /// The receiver acknowledges when Linux does: at once at the start and while its window may grow, and together
    /// behind a hole.
    #[serde(skip_serializing_if = "is_default")]
    pub quick_acks: bool,
    /// Initial congestion window in segments.
    pub initial_window: u32,
    /// Congestion window after a time-out, in segments.
    pub loss_window: u32,
    /// Initial slow-start threshold in bytes.
    pub initial_ssthresh: u32,
    /// What a loss halves.
    pub halving: Halving,
    /// What becomes of a fraction of a segment.
    #[serde(skip_serializing_if = "is_default")]
    pub halves: Halves,
    /// The congestion window lets whole segments go, as where windows are counted in packets: a fraction of a segment
    /// is for none that is sent again either.
    #[serde(skip_serializing_if = "is_default")]
    pub whole_segments: bool,
    /// The least slow-start threshold in segments.
    #[serde(skip_serializing_if = "is_two")]
    pub ssthresh_min: u32,
    /// Until when the window opens by slow start.
    #[serde(skip_serializing_if = "is_default")]
    pub slow_start: SlowStart,
    /// Reno begins no fast retransmit for a window of data whose repair has begun.
    #[serde(skip_serializing_if = "is_default")]
    pub once_per_window: bool,
    /// What opens the congestion window, and how far a loss closes it.
    pub congestion: Congestion,
    /// A congestion control from outside, in place of both.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub custom: Option<Box<Custom>>,
    /// How it opens, with [`Congestion::Reno`].
    pub growth: GrowthRule,
    /// The window opens by the bytes that an ACK acknowledges, of at most so many segments (the limit L of RFC 3465);
    /// 0 counts ACKs instead.
    pub byte_counting: u32,
    /// A congestion window that is not used does not grow (RFC 7661).
    #[serde(skip_serializing_if = "is_default")]
    pub window_validation: bool,
    /// What becomes of it after silence.
    #[serde(skip_serializing_if = "is_default")]
    pub slow_start_after_idle: IdleRestart,
    /// What it aims at, with [`Congestion::Vegas`].
    pub vegas: VegasRule,
    /// Segments leave at a rate, not in the bursts in which the windows open.
    pub pacing: bool,
    /// Segments that may leave back to back when they are paced.
    pub burst: u32,
    /// Duplicate ACKs that trigger fast retransmit.
    pub dupthresh: u32,
    /// Receiver: when to acknowledge.
    pub delayed_ack: DelayedAck,
    /// Receiver: by what it counts.
    #[serde(skip_serializing_if = "is_default")]
    pub maxseg: MaxSeg,
    /// When Reno and NewReno take the inflation of their window back.
    #[serde(skip_serializing_if = "is_default")]
    pub deflation: Deflation,
    /// The window also grows on the ACK that ends fast recovery of Reno and NewReno, as in 4.4BSD and ns-2.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub exit_growth: bool,
    /// Offer explicit congestion notification (RFC 3168).
    pub ecn: bool,
    /// Offer accurate ECN (RFC 9768), and what is left of it with a peer that has only the other one.
    #[serde(skip_serializing_if = "is_default")]
    pub accurate_ecn: AccurateEcn,
    /// Offer congestion control of acknowledgements.
    pub acc: Option<AccConfig>,
    /// Offer timestamps and PAWS (RFC 7323).
    pub timestamps: bool,
    /// Offer window scaling (RFC 7323).
    pub window_scale: bool,
    /// Predict headers. What is sent and delivered does not depend on it, only what that costs.
    #[serde(skip_serializing_if = "Prediction::is_off")]
    pub prediction: Prediction,
    /// Send SACK blocks when the peer permits them. The `sack` variant needs it on both sides.
    pub sack: bool,
    /// Name what caused an ACK when the peer understands it. The `smart` variant needs it on both sides.
    pub smart: bool,
    /// Send a segment again as often as SMART shows its loss, not only once.
    pub smart_repeat: bool,
    /// Name what is missing when the peer understands it. The `snack` variant needs it on both sides.
    pub snack: bool,
    /// What the `snack` variant takes the losses for that its peer names.
    pub loss_cause: LossCause,
    /// Report segments that arrive twice (RFC 2883), where SACK blocks are sent.
    pub dsack: bool,
    /// Offer and obey partial acknowledgements.
    pub ackp: AckpReaction,
    /// Take no round-trip sample from a segment that a partial acknowledgement covered (west97 3.4).
    pub ackp_karn: bool,
    /// Offer and obey explicit loss notifications, and which losses a receiver notices.
    pub eln: ElnMode,
    /// Offer and obey negative acknowledgements of a base station (west97 2.6).
    pub nack: bool,
    /// What a sender does upon loss notifications.
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
    /// Connections to one host share a congestion window and find losses together (balakrishnan97 5.2). With
    /// [`Variant::Reno`] only.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub integrated: bool,
    /// Count connections and open them with data (RFC 1644).
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub t_tcp: bool,
    /// Open connections with data and a cookie (RFC 7413).
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub fast_open: bool,
    /// How long TIME-WAIT lasts.
    pub time_wait: Span,
}

impl TcpConfig {
    /// The sender adaptation of balakrishnan97 4.2 and 4.3: the window opens by bytes acknowledged, however many an
    /// ACK acknowledges, and of what an ACK releases three segments leave back to back and the rest at the rate of a
    /// window in a round trip.
    ///
    /// The paper names the techniques and gives no numbers. Three segments are what the authors' simulation scripts
    /// had as their largest burst.
    pub fn adapt_to_sparse_acks(&mut self) {
        self.byte_counting = u32::MAX;
        self.pacing = true;
        self.burst = 3;
    }
}
