//! The result of an analysis.
//!
//! Times are [`Time`]s: nanoseconds since the Unix epoch for captures. Sequence positions are 64-bit offsets that do
//! not wrap: 0 is the SYN and 1 the first byte. In a capture that begins mid-connection, 1 is the first captured
//! byte, and earlier bytes have offsets of 0 or less.

use core::fmt;
use core::net::IpAddr;

use lasthop_observe::capture::{Dropped, Protocol, Reason};
use lasthop_proto::units::{Span, Time};
use lasthop_proto::wire::{Segment, options};
use serde::Serialize;

use crate::finding::Diagnosis;
use crate::over_time::OverTime;
use crate::stats::Spread;

/// The analysis of a capture.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Analysis {
    /// Packets in the capture.
    pub packets: u64,
    /// TCP packets that were analysed.
    pub tcp_packets: u64,
    /// Packets of other protocols.
    pub other_packets: u64,
    /// The same by protocol, most frequent first.
    pub other: Vec<Other>,
    /// Unread packets, which may contain TCP.
    pub unread_packets: u64,
    /// The same by reason, most frequent first.
    pub unread: Vec<Unread>,
    /// Number of unread packets with invalid or incomplete headers.
    pub malformed_packets: u64,
    /// Fragments of IP packets, including copies. The last fragment to arrive is not counted here: it counts as the
    /// packet.
    pub fragments: u64,
    /// TCP packets ignored for a wrong checksum, if verification is enabled.
    pub damaged_packets: u64,
    /// TCP packets of connections beyond [`crate::Config::connections`].
    pub ignored_packets: u64,
    /// TCP packets that were captured a second time, as from a mirror port or from two interfaces of one router. They
    /// are ignored.
    pub copied_packets: u64,
    /// Packets that a live capture has missed because it was too slow.
    pub missed_packets: u64,
    /// Packets that the capturing system reports as dropped, by interface.
    pub dropped: Vec<Dropped>,
    /// Number of times at which the clock of the capture was set back, and by how much in total, in seconds. Later packets
    /// are analysed as if it had not been.
    pub clock_steps: u64,
    /// See `clock_steps`.
    pub clock_back: f64,
    /// Data frames of 802.11 with TCP by transmitter, those with most frames first.
    pub wifi: Vec<WifiStation>,
    /// Repeated 802.11 frames whose packet was captured before: they are ignored like copies.
    pub wifi_copies: u64,
    /// Whether the file ends within a record. The analysis covers all complete records.
    pub truncated: bool,
    /// Reason why reading stopped before the end of the file. The analysis covers the records before that position.
    pub error: Option<String>,
    /// The connections in the order of their first packets.
    pub connections: Vec<Connection>,
}

/// Frames of one 802.11 transmitter.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct WifiStation {
    /// Its MAC address.
    pub address: String,
    /// Data frames with TCP.
    pub frames: u64,
    /// Those with the retry bit: the previous transmission was not acknowledged on the link.
    pub retries: u64,
    /// Mean data rate of its frames in bits per second, where the capturing driver reports rates.
    pub rate: Option<f64>,
}

/// Unread packets with the same reason.
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

impl From<(IpAddr, u16)> for Endpoint {
    fn from((addr, port): (IpAddr, u16)) -> Endpoint {
        Endpoint { addr, port }
    }
}

/// A signature of segments.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Signature {
    /// TCP MD5 (RFC 2385), option kind 19.
    Md5,
    /// TCP-AO (RFC 5925), option kind 29.
    Ao,
}

impl Signature {
    pub(crate) fn of(segment: &Segment) -> Option<Signature> {
        let kinds = options::walk(&segment.options().unknown).flatten().map(|option| option.kind);
        let signature = |kind| match kind {
            options::KIND_MD5 => Some(Signature::Md5),
            options::KIND_AUTHENTICATION => Some(Signature::Ao),
            _ => None,
        };
        kinds.filter_map(signature).next()
    }
}

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Signature::Md5 => "TCP MD5",
            Signature::Ao => "TCP-AO",
        })
    }
}

/// How a connection begins in the capture.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Opening {
    /// With a SYN and its SYN-ACK.
    Handshake,
    /// With a SYN and a reset as its answer.
    Refused,
    /// With a SYN that a router has rejected by an ICMP error.
    Rejected,
    /// With a SYN without an answer.
    Unanswered,
    /// With a SYN and its SYN-ACK, which the other side did not acknowledge.
    Unconfirmed,
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
    /// It does not end in the capture.
    Open,
}

/// One TCP connection.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Connection {
    /// Its number in the capture from 0, as Wireshark counts `tcp.stream`.
    pub number: u32,
    /// The side that opened it; without a captured handshake, the sender of the first packet.
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
    /// Time from the SYN to the ACK of the SYN-ACK, in seconds: one round trip of the whole path, independent of the
    /// point of capture. It excludes timeouts: of retransmitted SYNs, the last one before the answer counts.
    #[serde(serialize_with = "seconds")]
    pub handshake_rtt: Option<Span>,
    /// Time from the SYN to the SYN-ACK, in seconds: the part of that round trip between the point of capture and the
    /// server. The rest is between the point of capture and the client.
    #[serde(serialize_with = "seconds")]
    pub syn_ack: Option<Span>,
    /// Transmissions of the SYN until the connection opened.
    pub syns: u64,
    /// Transmissions of the SYN-ACK until then.
    pub syn_acks: u64,
    /// The number of the same connection on the other side of address translation: it has the same initial sequence
    /// numbers.
    pub translated: Option<u32>,
    /// The number of the connection between the same ports and at the same time, with other sequence numbers: a PEP has
    /// split one connection into both.
    pub half: Option<u32>,
    /// The number of the first subflow in the capture of its MPTCP connection (RFC 8684), by the token of its key.
    pub multipath: Option<u32>,
    /// The direction from the client.
    pub to_server: Direction,
    /// The direction from the server.
    pub to_client: Direction,
}

/// One direction of a connection: the packets of one side.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Direction {
    /// Packets, without copies.
    pub packets: u64,
    /// Copies of packets that the capture made.
    pub copies: u64,
    /// Packets with payload.
    pub data_packets: u64,
    /// Segments of these packets on the wire: a super-segment of a host's stack has several.
    pub data_segments: u64,
    /// Lost segments.
    pub lost_segments: u64,
    /// Seconds from the first packet with payload to the last, or to the end of a stall that lasts longer.
    pub duration: Option<f64>,
    /// Payload bytes, retransmissions included.
    pub bytes: u64,
    /// Payload bytes, each once.
    pub unique_bytes: u64,
    /// Unique bytes divided by bytes: the goodput of west97 5.1. `None` without payload.
    pub goodput: Option<f64>,
    /// Unique bytes in bits per second, over `duration`.
    pub throughput: Option<f64>,
    /// Packets whose TCP options are cut off by the snap length, or malformed. They may have more options than the
    /// capture shows.
    pub options_cut: u64,
    /// Packets with a signature.
    pub signed: u64,
    /// The kind of the latest signature.
    pub signature: Option<Signature>,
    /// Maximum segment size it announced.
    pub mss: Option<u16>,
    /// Window scale shift it announced.
    pub window_scale: Option<u8>,
    /// Number of new initial sequence numbers of this side in the same connection, as after the restart of a host
    /// (RFC 9293,
    /// 3.5.1). Positions continue after those of the previous numbers.
    pub restarts: u32,
    /// Whether it announced SACK.
    pub sack_permitted: bool,
    /// The largest receive window it announced, in bytes; `None` where its scale is not known.
    pub window_max: Option<u64>,
    /// Whether its packets carry timestamps.
    pub timestamps: bool,
    /// Time from a segment to the ACK or SACK block that reports it, at the point of capture. Retransmitted
    /// segments, and ACKs that cover one, give no sample (Karn's rule).
    pub rtt: Option<Spread>,
    /// Retransmissions by kind.
    pub retransmissions: Retransmissions,
    /// Packets that filled a gap and were sent before the packet behind it: the network changed their order.
    pub out_of_order: u64,
    /// Evidence whether packets that filled a gap were reordered or retransmitted.
    pub order_evidence: OrderEvidence,
    /// Packets with payload of which an ACK appears earlier in the file. They are no retransmissions: the order
    /// in the file differs from that on the wire, or the capture has missed earlier packets.
    pub acked_before_seen: u64,
    /// Payload bytes that the peer acknowledged and that the capture lacks, between the captured ones or behind
    /// them.
    pub missed_bytes: u64,
    /// ACKs of the peer beyond the data of this side: they belong to another connection between the same ports.
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
    /// ACKs by which this side reported duplicate bytes (RFC 2883).
    pub dsacks: u64,
    /// Losses of this side's data: all retransmissions except spurious and needless ones.
    pub losses: Vec<Loss>,
    /// Losses beyond [`crate::Config::losses`].
    pub losses_omitted: u64,
    /// Cause of the losses.
    pub verdict: Verdict,
    /// Diagnosed faults of this direction.
    pub diagnoses: Vec<Diagnosis>,
    /// Long silences of this side as a sender of data.
    pub stalls: Vec<Stall>,
    /// Stalls beyond [`crate::Config::losses`].
    pub stalls_omitted: u64,
    /// Whether the last stall has no end in the capture.
    pub ends_stalled: bool,
    /// The longest time, in seconds, that a packet waited before the point of capture while the capture was silent, by
    /// the sender's timestamps.
    #[serde(serialize_with = "seconds")]
    pub held_back: Option<Span>,
    /// For a time-sequence plot, in the order of time.
    pub points: Vec<Point>,
    /// Points beyond [`crate::Config::points`].
    pub points_omitted: u64,
    /// Values over time: round trips, outstanding data, the peer's window, volume.
    #[serde(skip_serializing_if = "OverTime::is_empty")]
    pub over_time: OverTime,
}

/// Evidence for the packets that filled gaps: they were sent before the packet after the gap (reordered), or after it
/// (retransmitted). The first decisive kind of evidence counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct OrderEvidence {
    /// TCP timestamps: certain.
    pub timestamps: u64,
    /// IP identifications of a sender that counts them: all but certain.
    pub ip_ids: u64,
    /// No ACK of the peer since the gap opened, so the sender cannot have detected a loss: likely.
    pub unreported: u64,
    /// The age of the gap compared with a round trip of the handshake, of both directions, or of other connections
    /// between the same hosts.
    pub round_trip: u64,
    /// The age of the gap alone: a guess.
    pub age_alone: u64,
}

/// Retransmissions by cause.
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
    /// Of bytes that an ACK at the point of capture had already covered.
    pub spurious: u64,
    /// The other retransmissions whose original has arrived: the ACK was too early for an answer to the
    /// retransmission, or echoed an older timestamp. They are no losses.
    pub needless: u64,
    /// None of these: tail loss probes, early retransmission, evidence outside the capture.
    pub other: u64,
    /// Retransmissions of any kind that a timestamp echo proves needless (RFC 3522).
    pub spurious_by_timestamps: u64,
    /// Retransmissions of any kind that a DSACK block proves needless (RFC 3708).
    pub spurious_by_dsack: u64,
}

impl Retransmissions {
    /// Total number, of all kinds.
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

/// Location of a loss relative to the point of capture.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LossLocation {
    /// The original passed the point of capture, and it or its ACK was lost after it.
    Before,
    /// The original did not reach the point of capture.
    Never,
}

/// Cause of the losses of a direction.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// Nothing was lost.
    #[default]
    NoLoss,
    /// Mostly a cause independent of the queue's length: on a wireless path, the radio.
    Radio,
    /// Mostly a full queue.
    Queue,
    /// Both causes.
    Both,
    /// The evidence is not sufficient.
    Unclear,
}

/// Radio or queue, for all losses of one direction, with the evidence.
///
/// A trial is a new segment that was sent with a known round-trip time, at most two round trips old, and without an
/// unrepaired earlier loss. Its label is that round-trip time, which its own fate cannot have changed.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Verdict {
    /// The cause.
    pub cause: Cause,
    /// The reason, as a sentence.
    pub evidence: String,
    /// Trials: segments.
    pub segments: u64,
    /// Lost trials; only the first loss of each flight counts.
    pub losses: u64,
    /// Trials with the longest round trips, about a quarter. This field and the next three are zero without a
    /// comparison.
    pub long_segments: u64,
    /// Lost ones of these.
    pub long_losses: u64,
    /// Trials with the shortest round trips, about half.
    pub short_segments: u64,
    /// Lost ones of these.
    pub short_losses: u64,
    /// First decile of the labels, in seconds.
    pub rtt_short: Option<f64>,
    /// Last decile of the labels, in seconds.
    pub rtt_long: Option<f64>,
    /// Probability of at least `long_losses` if losses were independent of the round trip (Fisher's exact test).
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
    /// Number of segments.
    pub segments: u32,
    /// Location of the loss.
    pub seen: LossLocation,
    /// Kind of the retransmission that repaired it.
    pub repair: Retransmission,
    /// Whether the receiver reported it as missing: by a duplicate ACK or a SACK block, or by a later ACK that ends
    /// before it. Otherwise the only evidence is silence, and its ACK may have been lost instead.
    pub reported: bool,
    /// The round-trip time of the segment sent just before the lost one; the latest measured if that is not known.
    /// In seconds.
    pub rtt_before: Option<f64>,
    /// Number of losses that the same recovery repaired, including this one.
    pub burst: u32,
}

/// A silence of a sender of data.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Stall {
    /// The last data packet before it.
    pub from: Time,
    /// The data packet that ended it.
    pub to: Time,
    /// Position of the data packet that ended the silence.
    pub offset: i64,
    /// Unacknowledged bytes at its start.
    pub outstanding: u64,
    /// Why.
    pub cause: StallCause,
}

/// Reason for the silence of a sender.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StallCause {
    /// A packet was lost, and only the retransmission timer detected it.
    Timeout,
    /// The receiver's window was closed.
    ZeroWindow,
    /// All data was acknowledged, and the application had nothing to send, or began a new request.
    ApplicationIdle,
    /// The ACK with which the sender continued was late: the receiver, or the path to it and back, has delayed it.
    AckDelayed,
    /// By its timestamp, the packet that ended the silence was sent long before: the path before the point of capture
    /// stalled.
    HeldBack,
    /// None of these reasons applies.
    Unclear,
}

/// One mark in a time-sequence plot.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Point {
    /// Time of the packet.
    pub at: Time,
    /// Position in the sequence.
    pub offset: i64,
    /// Number of bytes from there; zero for ACKs.
    pub len: u32,
    /// Kind of the mark.
    pub kind: PointKind,
}

/// Meaning of a mark in a time-sequence plot.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PointKind {
    /// Bytes sent for the first time.
    Data,
    /// Retransmitted bytes.
    Retransmission,
    /// Reordered bytes.
    OutOfOrder,
    /// The peer's cumulative ACK moved here.
    Ack,
    /// The peer repeated its ACK.
    DuplicateAck,
}
