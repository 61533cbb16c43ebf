//! What happened, in the order it happened: the only thing that metrics, captures and plots are made from.

mod cause;
mod client;

use serde::Serialize;

pub use cause::Cause;
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

impl What {
    /// Data was delivered to the end that `flow` comes from, told without its control block.
    pub fn delivered(flow: FlowKey, bytes: u32) -> What {
        What::Tcp(TcpEvent { flow, kind: TcpKind::Delivered { bytes }, tcb: Tcb::default() })
    }
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
    /// It leaves the next loss of a flow to the sender, to see whether that slows down.
    LossLeft,
    /// It leaves a flow alone: the sender does not slow down after losses.
    FlowLeftAlone,
    /// It repairs the losses of a flow: the sender slows down after them.
    FlowRepaired,
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
