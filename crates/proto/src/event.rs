//! What happened, in the order it happened: the only thing that metrics, captures and plots are made from.

mod client;

use serde::Serialize;

pub use client::{ClientEvent, ClientNews};

use crate::air::{AirEvent, Station};
use crate::energy::Work;
use crate::place::{Side, StageId};
use crate::udp::Datagram;
use crate::units::{Span, Time};
use crate::wire::{Addr, FlowKey, Packet};

/// Which events are collected.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Wants(u8);

impl Wants {
    /// Nothing: only the end state counts.
    pub const NOTHING: Wants = Wants(0);
    /// What metrics are computed from: transmissions, drops, originations, episodes of senders, deliveries.
    pub const METRICS: Wants = Wants(1);
    /// Everything that a trace shows: also each arrival, and the control block at each ACK.
    pub const EVERYTHING: Wants = Wants(3);
    /// The events that only a full trace has.
    pub const DETAIL: Wants = Wants(2);
    /// What the work of the hosts' stacks is charged by: for energy alone, and in no trace.
    pub const WORK: Wants = Wants(4);

    /// Whether all of `kind` is wanted.
    pub fn has(self, kind: Wants) -> bool {
        self.0 & kind.0 == kind.0
    }

    /// What either of two readers wants.
    pub fn union(self, other: Wants) -> Wants {
        Wants(self.0 | other.0)
    }
}

/// Something that happened at one stage.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// When.
    pub at: Time,
    /// Where.
    pub stage: StageId,
    /// What.
    pub what: What,
}

/// What happened.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// To a packet on its way towards `side`.
    Packet {
        /// What was done.
        op: Op,
        /// Direction of travel.
        side: Side,
        /// The packet at that moment.
        packet: Packet,
    },
    /// To a TCP end point.
    Tcp(TcpEvent),
    /// To a base station's end of a connection that it has split. Addresses and ports are those of the real end
    /// that it stands for.
    Split(TcpEvent),
    /// A base-station agent took notice of something in a flow.
    Agent {
        /// The flow in the direction of its data.
        flow: FlowKey,
        /// What it noticed.
        note: AgentNote,
    },
    /// The channel towards `side` changed its state.
    Channel {
        /// Direction of travel.
        side: Side,
        /// Good or bad.
        good: bool,
    },
    /// A transmitter of a radio hop has been on the air.
    Air(AirEvent),
    /// A host's stack has done its work for one segment; told with [`Wants::WORK`].
    Work(Work),
    /// A host has sent a datagram, or a datagram of a source has arrived at one.
    Datagram {
        /// What it says of itself.
        datagram: Datagram,
        /// Whether it has arrived.
        arrived: bool,
    },
    /// A client of pages or videos tells what its user sees.
    Client(ClientEvent),
    /// A station's radio goes to sleep, or wakes up.
    Doze {
        /// The station.
        station: Station,
        /// Whether it sleeps from now on.
        asleep: bool,
    },
    /// A link layer took notice of something.
    Link {
        /// The station whose end it is.
        station: Station,
        /// The other end.
        peer: Station,
        /// What it noticed.
        note: LinkNote,
    },
    /// A mobile host has come into a cell, or has left it: the cell whose base station this stage is.
    Handoff {
        /// The host.
        host: Addr,
        /// Whether it has arrived.
        arrived: bool,
    },
    /// What the agent at the old base station knew of a mobile host goes to this one.
    State {
        /// The host.
        host: Addr,
        /// Bytes on the wired network.
        bytes: u64,
        /// Whether it has arrived, and the agent goes on with it.
        arrived: bool,
    },
}

/// What a link layer noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "note")]
pub enum LinkNote {
    /// A frame came that had come before, and was dropped.
    Duplicate,
    /// A frame came with a sequence number outside of the window, and was dropped.
    OutOfWindow,
    /// An acknowledgement came that acknowledges what was never sent, and was ignored.
    BadAck,
    /// The window is used up; the oldest packet is sent again until an acknowledgement comes.
    WindowFull,
    /// The channel to the peer is bad: nothing is sent to it for a while.
    ChannelBad,
}

/// What was done to a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Op {
    /// Put into the path, for a reason.
    Originated(Cause),
    /// A link carried it: seen at the far end, as a packet filter there would see it, damaged or not.
    Transmitted,
    /// A queue marked it: congestion experienced (RFC 3168).
    Marked,
    /// A queue with several reasons to mark did so for this one.
    MarkedBy(Cause),
    /// The channel damaged it.
    Damaged,
    /// A link layer is about to send it once more over its hop, for a reason. It is the same packet to the stages
    /// around the hop.
    Repeated(Cause),
    /// A host took it in.
    Received,
    /// Its life ended here, for a reason.
    Dropped(Cause),
    /// A base station keeps it, or sends it another way, because its host has left the cell; or a line that is out keeps
    /// it, or lets it overtake others.
    Redirected(Cause),
}

impl Op {
    /// The level of detail that this belongs to.
    pub fn level(self) -> Wants {
        match self {
            Op::Received | Op::Originated(Cause::Ack | Cause::SplitAck) => Wants::DETAIL,
            _ => Wants::METRICS,
        }
    }
}

/// Makes [`Cause`] from the list of causes with their names, which are those that serde gives them.
macro_rules! causes {
    ($($(#[$of_cause:meta])* $Cause:ident = $name:literal,)*) => {
        /// Why a packet came to be or ceased to be. Every cause is one a user can see.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash, Serialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum Cause {
            $($(#[$of_cause])* $Cause,)*
        }

        impl Cause {
            /// Every cause, in a fixed order.
            pub const ALL: [Cause; [$($name),*].len()] = [$(Cause::$Cause),*];

            /// The name used in traces, captures and tables.
            pub fn name(self) -> &'static str {
                match self {
                    $(Cause::$Cause => $name,)*
                }
            }
        }
    };
}

causes! {
    // ---- why a packet exists
    /// A host sends bytes for the first time.
    Data = "data",
    /// A host acknowledges, or updates its window.
    Ack = "ack",
    /// SYN, FIN or RST without data.
    Control = "control",
    /// A source sends a datagram.
    Datagram = "datagram",
    /// A host retransmits because of duplicate ACKs, partial ACKs or SACK blocks.
    FastRetransmit = "fast-retransmit",
    /// A host retransmits because its timer expired.
    TimeoutRetransmit = "timeout-retransmit",
    /// A host retransmits because it was told of a wireless loss.
    ElnRetransmit = "eln-retransmit",
    /// A host sends its last segment again because no ACK came for two round trips (RFC 8985).
    TailLossProbe = "tail-loss-probe",
    /// A host probes a closed window.
    WindowProbe = "window-probe",
    /// The base station retransmits because of duplicate ACKs.
    LocalDupAck = "local-dup-ack",
    /// The base station retransmits because its local timer expired.
    LocalTimeout = "local-timeout",
    /// The base station retransmits because its persist timer expired.
    LocalPersist = "local-persist",
    /// The base station forged a partial acknowledgement.
    PartialAck = "partial-ack",
    /// An agent filled in an ACK that is missing behind a slow return link.
    ReconstructedAck = "reconstructed-ack",
    /// The base station or receiver tells the sender of a wireless loss.
    LossNotification = "loss-notification",
    /// The base station tells the source that the wireless link is in a bad state (EBSN).
    BadStateNotification = "bad-state-notification",
    /// The base station tells the source to slow down, because the wireless link is in a bad state.
    SourceQuench = "source-quench",
    /// The base station sends on, as an end point of its own, what it took in from the other end.
    SplitData = "split-data",
    /// The base station acknowledges, or updates a window, as an end point of its own.
    SplitAck = "split-ack",
    /// SYN, FIN or RST of the base station's own end.
    SplitControl = "split-control",
    /// The base station probes a closed window.
    SplitProbe = "split-probe",
    /// A link layer retransmits because its peer reported the packet missing.
    LinkNack = "link-nack",
    /// A link layer retransmits because no acknowledgement came in time.
    LinkTimeout = "link-timeout",
    /// A link layer retransmits its oldest packet because its window is used up.
    LinkWindowFull = "link-window-full",
    /// A line carries a packet twice: this is the second one.
    LineDuplicate = "line-duplicate",
    /// A line lets it overtake packets that were sent before it.
    Reordered = "reordered",
    /// The wired side sends a copy to a cell that the host may come to.
    HandoffCopy = "handoff-copy",
    /// A base station keeps it for a host that is not in its cell.
    HandoffKept = "handoff-kept",
    /// A base station sends it after a host that has left its cell.
    HandoffForwarded = "handoff-forwarded",
    /// A base station sends it again because it went out over the radio that the host has left.
    HandoffRepeated = "handoff-repeated",
    // ---- why a packet ended
    /// The queue was full.
    QueueFull = "queue-full",
    /// Random early detection chose it, and it could not be marked.
    EarlyDrop = "early-drop",
    /// The IP header checksum was wrong.
    IpChecksum = "ip-checksum",
    /// The TCP checksum was wrong.
    TcpChecksum = "tcp-checksum",
    /// The base station hid a duplicate ACK of a wireless loss from the sender.
    SuppressedDupAck = "suppressed-dup-ack",
    /// The base station dropped an ACK older than one it has seen.
    SpuriousAck = "spurious-ack",
    /// A queue removed an ACK because a newer one of its connection says the same and more.
    SupersededAck = "superseded-ack",
    /// The base station took it in as the end of a connection that it has split: its data goes on in packets
    /// of the base station's own.
    SplitTaken = "split-taken",
    /// No connection or host has this address.
    NoSuchConnection = "no-such-connection",
    /// A message of a base station quotes a segment of ours that is not in flight: a forgery, or too late.
    StaleNotice = "stale-notice",
    /// A message of a base station that this host is not set up to obey.
    UnheededNotice = "unheeded-notice",
    /// The scenario asked for this loss (competing traffic).
    CrossTraffic = "cross-traffic",
    /// The frame that carried it was damaged, collided, or was lost by its line, and no link layer retransmits.
    FrameLost = "frame-lost",
    /// The link layer gave it up after as many tries as it may make.
    LinkGaveUp = "link-gave-up",
    /// Medium access gave it up: no answer after as many tries as it may make.
    RetryLimit = "retry-limit",
    /// A piece of it was lost, so that it cannot be put together.
    PieceLost = "piece-lost",
    /// The access point has no room to keep it for a station whose radio sleeps.
    PowerSaveFull = "power-save-full",
    /// Its compressed header could not be restored, because of a frame that was lost before it.
    Desynchronised = "desynchronised",
    /// Its host is not in the cell (any more).
    LeftCell = "left-cell",
    /// The mobile host that sends it is in no cell.
    NoCell = "no-cell",
    /// A base station has no room to keep it for a host that is not in its cell.
    HandoffFull = "handoff-full",
    /// A copy for a host that may come is not needed: the host has the packet, or went elsewhere.
    HandoffStale = "handoff-stale",
    /// The line was out.
    Outage = "outage",
    /// A queue of several classes chose it by the probability of classic traffic, and it could not be marked.
    ClassicDrop = "classic-drop",
    /// So much has come that marks do not help any more.
    OverloadDrop = "overload-drop",
    // ---- why a packet was marked
    /// It waited longer in the low-latency queue than such packets may.
    StepMark = "step-mark",
    /// The delay of classic traffic demands it, by the coupled probability.
    CoupledMark = "coupled-mark",
    /// It was chosen by the probability of classic traffic.
    ClassicMark = "classic-mark",
    /// Every packet of the low-latency queue is, since so much has come.
    OverloadMark = "overload-mark",
}

impl Cause {
    /// Whether a host sent these bytes before.
    pub fn is_host_retransmission(self) -> bool {
        use Cause::*;
        matches!(self, FastRetransmit | TimeoutRetransmit | ElnRetransmit | TailLossProbe)
    }

    /// What a host's reason to send is called at the base station's end of a split connection.
    pub fn at_base_station(self) -> Cause {
        match self {
            Cause::Data => Cause::SplitData,
            Cause::Ack => Cause::SplitAck,
            Cause::Control => Cause::SplitControl,
            Cause::WindowProbe => Cause::SplitProbe,
            Cause::FastRetransmit | Cause::ElnRetransmit => Cause::LocalDupAck,
            Cause::TimeoutRetransmit | Cause::TailLossProbe => Cause::LocalTimeout,
            other => other,
        }
    }

    /// Whether a packet that ended for this reason was lost to the connection: its bytes must be sent again.
    pub fn is_loss(self) -> bool {
        !matches!(self, Cause::SplitTaken | Cause::HandoffStale)
    }

    /// Whether the base station sent these bytes again.
    pub fn is_local_retransmission(self) -> bool {
        use Cause::*;
        matches!(self, LocalDupAck | LocalTimeout | LocalPersist | HandoffRepeated)
    }
}

/// Something that happened to a TCP end point, with its control block right after.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TcpEvent {
    /// Which connection, as the flow from this end point to its peer.
    pub flow: FlowKey,
    /// What happened.
    pub kind: TcpKind,
    /// The control block right after it; of [`TcpKind::Delivered`] only where [`Wants::DETAIL`] is wanted.
    pub tcb: Tcb,
}

/// What happened to a TCP end point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum TcpKind {
    /// The first SYN was sent.
    Opening,
    /// The handshake is complete.
    Established,
    /// An ACK moved the left edge of the window.
    Acked,
    /// A duplicate ACK came in.
    DupAck,
    /// The fast-retransmit threshold was reached, recovery began.
    FastRetransmit,
    /// A fast recovery ended with all its data acknowledged.
    RecoveryEnded,
    /// What was taken for lost had only been late: the window is what it was before.
    Undone,
    /// The retransmission timer expired.
    Timeout,
    /// A partial acknowledgement of a base station re-armed the retransmission timer.
    PartialAck,
    /// The sender was told of a wireless loss and kept its window.
    LossNotified,
    /// A base station's notification of a bad state started the retransmission timer again (bakshi96 4.2.3).
    BadStateNotified,
    /// A source quench closed the congestion window (bakshi96 4.2.2).
    Quenched,
    /// The peer echoed a mark of congestion, and the window was reduced (RFC 3168).
    CongestionEchoed,
    /// The receiver now acknowledges every so many segments (balakrishnan97 4.2.1).
    AckFactor {
        /// The delayed-ACK factor d.
        every: u32,
    },
    /// No ACK came for two round trips: a segment is sent to bring one forth (RFC 8985).
    TailLossProbe,
    /// A closed window was probed.
    WindowProbe,
    /// Data was handed to the application, in order.
    Delivered {
        /// How many bytes.
        bytes: u32,
    },
    /// A byte was about to be delivered that is not the byte that was sent: a fault of the implementation.
    Corrupted,
    /// All data was sent and acknowledged.
    Complete,
    /// A client asked for something: an exchange began.
    Asked,
    /// The last byte of an answer was handed to the client that asked first of those that wait.
    Answered,
    /// Both directions are closed.
    Closed,
    /// The connection was given up or reset.
    Aborted,
    /// A live end point was looked at, and something in its control block differs without any of the above; or a stack that is
    /// not ours has sent bytes for the first time.
    Sampled,
}

impl TcpKind {
    /// The level of detail that this belongs to.
    pub fn level(self) -> Wants {
        match self {
            TcpKind::Acked | TcpKind::Sampled | TcpKind::AckFactor { .. } => Wants::DETAIL,
            _ => Wants::METRICS,
        }
    }
}

/// A snapshot of a TCP control block (what `trpt` prints, west97 4.4). Sequence positions are 64-bit stream
/// offsets: 0 is the SYN, 1 the first byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Tcb {
    /// Oldest unacknowledged position.
    pub snd_una: u64,
    /// Next position to send.
    pub snd_nxt: u64,
    /// Highest position sent plus one.
    pub snd_max: u64,
    /// Next position expected from the peer.
    pub rcv_nxt: u64,
    /// Congestion window in bytes.
    pub cwnd: u32,
    /// Slow-start threshold in bytes.
    pub ssthresh: u32,
    /// The peer's advertised window in bytes.
    pub snd_wnd: u32,
    /// Duplicate ACKs in a row.
    pub dupacks: u32,
    /// Smoothed round-trip time.
    pub srtt: Span,
    /// Round-trip time variation.
    pub rttvar: Span,
    /// Retransmission time-out in force, back-off included.
    pub rto: Span,
    /// How often the time-out has been doubled.
    pub backoff: u32,
    /// Whether the sender is in fast recovery.
    pub in_recovery: bool,
}

/// What a base-station agent noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "note")]
pub enum AgentNote {
    /// It began to watch a flow.
    FlowSeen,
    /// It forgot a flow, to make room or because it ended.
    FlowForgotten,
    /// A packet was dropped from the cache to make room.
    CacheEvicted,
    /// A retransmission by the sender passed by.
    SenderRetransmission,
    /// A hole in the sequence showed a loss before the base station.
    CongestionHole,
    /// It kept a message to the source back, since another one had been sent just before.
    NoticeWithheld,
    /// It lowered the largest segment that a SYN announces.
    SegmentClamped {
        /// To so many bytes.
        mss: u16,
    },
    /// It let a new connection pass untouched, since it has no room for another one.
    NoRoom,
    /// It took the SACK blocks out of an ACK that moves on: what lies behind the hole is its own matter.
    BlocksHidden,
    /// It measured a round trip over the wireless link.
    LocalRtt {
        /// The measurement.
        rtt: Span,
    },
    /// The mobile host does not answer any more; its sender's window is closed (M-TCP).
    HostGone,
    /// The mobile host is back, and its sender's window is open again (M-TCP).
    HostBack,
    /// The ends of a connection have gone on with each other while the mobile host was elsewhere; it is split no more.
    Bypassed,
}
