//! The result of an analysis.
//!
//! Times are [`Time`]s: nanoseconds since the Unix epoch for captures. Sequence positions are 64-bit offsets that do
//! not wrap: 0 is the SYN and 1 the first byte; in a capture that begins mid-connection 1 is the first byte seen, and
//! what turns out to lie before it is negative.

use core::net::IpAddr;

use lasthop_proto::units::{Span, Time};
use lasthop_trace::capture::{Protocol, Reason};
use serde::Serialize;

use crate::diagnose::Diagnosis;
use crate::over_time::OverTime;
use crate::stats::Spread;

/// What a capture holds.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Analysis {
    /// Packets in the capture.
    pub packets: u64,
    /// Those that are TCP and were analysed.
    pub tcp_packets: u64,
    /// Those of other protocols.
    pub other_packets: u64,
    /// The same by protocol, most frequent first.
    pub other: Vec<Other>,
    /// Those that may hold TCP and were not read.
    pub unread_packets: u64,
    /// The same by reason, most frequent first.
    pub unread: Vec<Unread>,
    /// Of those that were not read, the ones whose headers make no sense or were cut off.
    pub malformed_packets: u64,
    /// Fragments of IP packets that are counted elsewhere: the last fragment to arrive counts as the packet. Copies of
    /// fragments are among them.
    pub fragments: u64,
    /// TCP packets left out because a checksum is wrong; only where verification was asked for.
    pub damaged_packets: u64,
    /// TCP packets of connections beyond [`crate::Config::connections`].
    pub ignored_packets: u64,
    /// TCP packets that the capture has a second time, as from a mirror port or from two interfaces of one router: left
    /// out, but for the counts of Wireshark.
    pub copied_packets: u64,
    /// Packets that are missing because a live capture could not keep up.
    pub missed_packets: u64,
    /// The file ended within a record: the analysis covers what came before.
    pub truncated: bool,
    /// Why reading stopped before the end, if it did; the analysis covers what came before.
    pub error: Option<String>,
    /// The connections in the order of their first packets.
    pub connections: Vec<Connection>,
}

/// Packets that may hold TCP and were not read for one reason.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Unread {
    /// Why.
    #[serde(flatten)]
    pub reason: Reason,
    /// How many.
    pub packets: u64,
}

/// Packets of one protocol other than TCP.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Other {
    /// Which.
    pub protocol: Protocol,
    /// How many.
    pub packets: u64,
}

fn seconds<S: serde::Serializer>(span: &Option<Span>, to: S) -> Result<S::Ok, S::Error> {
    span.map(Span::as_secs_f64).serialize(to)
}

/// An address and port.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
pub struct Endpoint {
    /// IP address.
    pub addr: IpAddr,
    /// TCP port.
    pub port: u16,
}

/// How a connection begins in the capture.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Opening {
    /// With a SYN that was answered.
    Handshake,
    /// With a SYN that was answered by a reset.
    Refused,
    /// With a SYN that nothing answered.
    Unanswered,
    /// It was open before the capture began.
    MidConnection,
}

/// How a connection ends in the capture.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Closing {
    /// Both sides sent a FIN.
    Fin,
    /// One side sent a FIN.
    HalfClosed,
    /// A reset.
    Reset,
    /// Not at all: it outlives the capture.
    Open,
}

/// One TCP connection.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Connection {
    /// Its number in the capture from 0, as Wireshark counts `tcp.stream`.
    pub number: u32,
    /// The side that opened it; the sender of the first packet if that was not captured.
    pub client: Endpoint,
    /// The other side.
    pub server: Endpoint,
    /// When its first packet was captured.
    pub began: Time,
    /// When its last packet was captured.
    pub ended: Time,
    /// How it begins.
    pub opening: Opening,
    /// How it ends.
    pub closing: Closing,
    /// From the SYN to the ACK of the SYN-ACK: one round trip of the whole path, wherever the capture was made. In
    /// seconds. Timers do not count: of what was sent again, the last one before its answer does.
    #[serde(serialize_with = "seconds")]
    pub handshake_rtt: Option<Span>,
    /// From the SYN to the SYN-ACK: what of that round trip lies between the place of the capture and the server. The
    /// rest lies between it and the client. In seconds.
    #[serde(serialize_with = "seconds")]
    pub syn_ack: Option<Span>,
    /// What the client sent.
    pub to_server: Direction,
    /// What the server sent.
    pub to_client: Direction,
}

/// One direction of a connection: what one side sent.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Direction {
    /// Packets, without copies.
    pub packets: u64,
    /// Copies of packets that the capture made.
    pub copies: u64,
    /// Packets with payload.
    pub data_packets: u64,
    /// Payload bytes, each as often as it passed.
    pub bytes: u64,
    /// Payload bytes, each once.
    pub unique_bytes: u64,
    /// Unique bytes divided by bytes: the share of the sending that was of use (the goodput of west97 5.1 and its
    /// kin). `None` without payload.
    pub goodput: Option<f64>,
    /// Unique bytes in bits per second, from the first to the last packet with payload. `None` for fewer than two.
    pub throughput: Option<f64>,
    /// Packets whose TCP options were cut off by the snap length, or are malformed: options that are missing in the
    /// capture may have been there.
    pub options_cut: u64,
    /// Maximum segment size it announced.
    pub mss: Option<u16>,
    /// Window scale shift it announced.
    pub window_scale: Option<u8>,
    /// Initial sequence numbers of this side that replaced others in the same connection, as after the restart of a
    /// host (RFC 9293, 3.5.1). Positions continue behind those of the numbers before.
    pub restarts: u32,
    /// Whether it announced SACK.
    pub sack_permitted: bool,
    /// The largest receive window it announced, in bytes; `None` where its scale is not known.
    pub window_max: Option<u64>,
    /// Whether its packets carry timestamps.
    pub timestamps: bool,
    /// From a segment to the ACK or SACK block that reports it, both as seen at the point of capture; segments that
    /// were retransmitted, and ACKs that cover one, give no sample (Karn's rule).
    pub rtt: Option<Spread>,
    /// Retransmissions by kind.
    pub retransmissions: Retransmissions,
    /// Packets that filled a gap and were sent before the packet behind it: the network changed their order.
    pub out_of_order: u64,
    /// What shows whether packets that filled a gap were overtaken or sent again.
    pub order_evidence: OrderEvidence,
    /// Packets with payload that appear in the file behind an ACK of some of it. They are no retransmissions: the
    /// order of the file is not that of the wire, or the capture missed the packets before them.
    pub acked_before_seen: u64,
    /// ACKs of the peer that no data of this side can explain: of another connection between the same ports.
    pub foreign_acks: u64,
    /// Duplicate ACKs this side sent, by Wireshark's definition: no payload, nothing new in any field.
    pub duplicate_acks: u64,
    /// Packets that announced a window of zero.
    pub zero_windows: u64,
    /// Probes of the peer's zero window.
    pub window_probes: u64,
    /// Keep-alives.
    pub keep_alives: u64,
    /// ACKs with SACK blocks that this side sent.
    pub sack_acks: u64,
    /// ACKs by which this side reported bytes it received twice (RFC 2883).
    pub dsacks: u64,
    /// Losses of what this side sent: its retransmissions, without the spurious and the needless ones.
    pub losses: Vec<Loss>,
    /// Losses beyond [`crate::Config::losses`].
    pub losses_omitted: u64,
    /// What the losses were caused by.
    pub verdict: Verdict,
    /// Named faults that concern what this side sent.
    pub diagnoses: Vec<Diagnosis>,
    /// Long silences of this side as a sender of data.
    pub stalls: Vec<Stall>,
    /// Stalls beyond [`crate::Config::losses`].
    pub stalls_omitted: u64,
    /// For a time-sequence plot, in the order of time.
    pub points: Vec<Point>,
    /// Points beyond [`crate::Config::points`].
    pub points_omitted: u64,
    /// What changes over time: round trips, outstanding data, the peer's window, volume.
    #[serde(skip_serializing_if = "OverTime::is_empty")]
    pub over_time: OverTime,
    /// What `tshark` counts in this direction.
    pub wireshark: WiresharkCounts,
}

/// What shows when packets that filled gaps were sent: before the packet behind the gap (overtaken), or after it (sent
/// again). The first of these that decides counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct OrderEvidence {
    /// TCP timestamps: certain.
    pub timestamps: u64,
    /// IP identifications of a sender that counts them: all but certain.
    pub ip_ids: u64,
    /// No ACK of the peer since the gap opened, so that its sender could not know of a loss: likely.
    pub unreported: u64,
    /// The age of the gap compared with a round trip of the handshake, of both directions, or of other connections
    /// between the same hosts.
    pub round_trip: u64,
    /// The age of the gap alone: a guess.
    pub age_alone: u64,
}

/// Retransmissions by what caused them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Retransmissions {
    /// The first of an episode, upon duplicate ACKs or SACK blocks.
    pub fast: u64,
    /// Further ones in an episode that began with a fast retransmission.
    pub recovery: u64,
    /// Upon expiry of the retransmission timer.
    pub timeout: u64,
    /// Further ones in an episode that began with a timeout.
    pub after_timeout: u64,
    /// Of bytes whose ACK had already passed the point of capture.
    pub spurious: u64,
    /// Of all others, the ones whose original turned out to have arrived: the ACK came sooner than any answer to the
    /// retransmission could, or echoed an older timestamp. They are no losses.
    pub needless: u64,
    /// None of these: tail loss probes, early retransmission, evidence outside the capture.
    pub other: u64,
    /// Of all these, the ones that a timestamp echo shows to have been unnecessary (RFC 3522).
    pub spurious_by_timestamps: u64,
    /// Of all these, the ones that a DSACK block shows to have been unnecessary (RFC 3708).
    pub spurious_by_dsack: u64,
}

impl Retransmissions {
    /// How many there are of all kinds.
    pub fn total(&self) -> u64 {
        self.fast + self.recovery + self.timeout + self.after_timeout + self.spurious + self.other
    }
}

/// The kind of one retransmission; see [`Retransmissions`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Retransmission {
    /// Upon duplicate ACKs or SACK blocks.
    Fast,
    /// Later in such an episode.
    Recovery,
    /// Upon expiry of the timer.
    Timeout,
    /// Later in such an episode.
    AfterTimeout,
    /// Of bytes already acknowledged.
    Spurious,
    /// None of these.
    Other,
}

/// Where a lost packet was lost, seen from the point of capture.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Seen {
    /// The original passed here and was lost behind, or its ACK was.
    Before,
    /// The original never came here.
    Never,
}

/// What the losses of a direction were caused by.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// Nothing was lost.
    #[default]
    NoLoss,
    /// Mostly something that does not ask how long the queue is: on a wireless path, the radio.
    Radio,
    /// Mostly a queue that was full.
    Queue,
    /// Each of them some.
    Both,
    /// The evidence does not tell.
    Unclear,
}

/// Radio or queue, for all losses of one direction, with the evidence.
///
/// A trial is a new segment sent while a round-trip time at most two round trips old was known, and no earlier
/// segment was lost and still unrepaired. It is labelled with that round-trip time, which its own fate cannot have
/// changed.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Verdict {
    /// The cause.
    pub cause: Cause,
    /// Why, in a sentence.
    pub evidence: String,
    /// Trials.
    pub segments: u64,
    /// Those that were lost: the first of each flight only.
    pub losses: u64,
    /// Trials with the longest round trips, about a quarter; zero, as the next three, where it was not looked.
    pub long_segments: u64,
    /// Those that were lost.
    pub long_losses: u64,
    /// Trials with the shortest round trips, about half.
    pub short_segments: u64,
    /// Those that were lost.
    pub short_losses: u64,
    /// A tenth of the trials have shorter labels, in seconds.
    pub rtt_short: Option<f64>,
    /// A tenth of the trials have longer ones, in seconds.
    pub rtt_long: Option<f64>,
    /// How probable at least `long_losses` were if losses did not depend on the round trip (Fisher's exact test).
    pub chance: Option<f64>,
}

/// One lost segment, known by its retransmission.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Loss {
    /// When the retransmission was captured.
    pub at: Time,
    /// When the original was captured, if it was.
    pub sent: Option<Time>,
    /// First byte.
    pub offset: i64,
    /// Number of bytes.
    pub len: u32,
    /// Where it was lost.
    pub seen: Seen,
    /// How it was repaired.
    pub repair: Retransmission,
    /// Whether the receiver reported that it was missing: by a duplicate ACK or a SACK block, or by an ACK that came later
    /// and ends before it. Otherwise silence alone shows it, and its ACK may have been lost instead.
    pub reported: bool,
    /// The round-trip time of the segment sent just before the lost one; the latest measured if that is not known.
    /// In seconds.
    pub rtt_before: Option<f64>,
    /// How many losses the same episode of recovery repaired, this one included.
    pub burst: u32,
}

/// A silence of a sender of data.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Stall {
    /// The last data packet before it.
    pub from: Time,
    /// The data packet that ended it.
    pub to: Time,
    /// Position of the latter.
    pub offset: i64,
    /// Bytes that were sent and not acknowledged when it began.
    pub outstanding: u64,
    /// Why.
    pub cause: StallCause,
}

/// Why a sender was silent.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StallCause {
    /// A packet was lost and only the retransmission timer noticed.
    Timeout,
    /// The receiver's window was closed.
    ZeroWindow,
    /// Everything was acknowledged and the application had nothing to send, or began a new request.
    ApplicationIdle,
    /// The ACK that let the sender go on came late: the receiver, or the path to it and back, held it.
    AckDelayed,
    /// None of these explains it.
    Unclear,
}

/// One mark in a time-sequence plot.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Point {
    /// When.
    pub at: Time,
    /// Position in the sequence.
    pub offset: i64,
    /// Number of bytes from there; zero for ACKs.
    pub len: u32,
    /// What.
    pub kind: PointKind,
}

/// What a mark in a time-sequence plot stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PointKind {
    /// Bytes sent for the first time.
    Data,
    /// Bytes sent again.
    Retransmission,
    /// Bytes that came out of order.
    OutOfOrder,
    /// The peer's cumulative ACK moved here.
    Ack,
    /// The peer repeated its ACK.
    DuplicateAck,
}

/// What `tshark` finds, each named by its field `tcp.analysis.*`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct WiresharkCounts {
    /// `retransmission`: fast and spurious ones included, as in Wireshark.
    pub retransmission: u64,
    /// `fast_retransmission`.
    pub fast_retransmission: u64,
    /// `spurious_retransmission`.
    pub spurious_retransmission: u64,
    /// `out_of_order`.
    pub out_of_order: u64,
    /// `lost_segment`: a gap before this packet.
    pub lost_segment: u64,
    /// `ack_lost_segment`: an ACK of bytes that were not captured.
    pub ack_lost_segment: u64,
    /// `duplicate_ack`.
    pub duplicate_ack: u64,
    /// `zero_window`.
    pub zero_window: u64,
    /// `zero_window_probe`.
    pub zero_window_probe: u64,
    /// `zero_window_probe_ack`.
    pub zero_window_probe_ack: u64,
    /// `keep_alive`.
    pub keep_alive: u64,
    /// `keep_alive_ack`.
    pub keep_alive_ack: u64,
    /// `window_update`.
    pub window_update: u64,
}
