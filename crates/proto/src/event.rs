//! Events in order of time: the only input of metrics, captures and plots.

mod cause;
mod client;

use core::fmt;

use serde::Serialize;

pub use cause::Cause;
pub use client::{ClientEvent, ClientNews};

use crate::air::{AirEvent, Station};
use crate::energy::Work;
use crate::side::{Side, StageId};
use crate::udp::Datagram;
use crate::units::{Span, Time};
use crate::wire::{Addr, FlowKey, Packet};

/// A set of event levels to collect.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Interest(u8);

impl Interest {
    /// No events: only the final state counts.
    pub const NOTHING: Interest = Interest(0);
    /// The input of metrics in brief: transmissions, drops, recovery events of senders, deliveries.
    pub const RESULTS: Interest = Interest(1);
    /// The input of metrics: also originations of data.
    pub const METRICS: Interest = Interest(1 | 16);
    /// A full trace: also each arrival, and the control block at each ACK.
    pub const EVERYTHING: Interest = Interest(1 | 2 | 16);
    /// Events that only a full trace contains.
    pub const DETAIL: Interest = Interest(2);
    /// Work of the hosts' stacks, for the energy model only; in no trace.
    pub const WORK: Interest = Interest(4);
    /// Packets as they enter and leave a station, which has to read their headers; in no trace.
    pub const PASSAGES: Interest = Interest(8);

    /// Whether all levels of `kind` are collected.
    pub fn has(self, kind: Interest) -> bool {
        self.0 & kind.0 == kind.0
    }

    /// The levels of both sets.
    pub fn union(self, other: Interest) -> Interest {
        Interest(self.0 | other.0)
    }
}

/// An event at one stage.
#[derive(Clone, PartialEq)]
pub struct Event {
    /// Time of the event.
    pub at: Time,
    /// Stage of the event.
    pub stage: StageId,
    /// Content.
    pub kind: EventKind,
}

// As derived, with an older name of `kind`: the digests of runs are computed from this form.
impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Event { at, stage, kind } = self;
        let mut text = f.debug_struct("Event");
        text.field("at", at).field("stage", stage).field("what", kind).finish()
    }
}

/// Content of an event.
#[derive(Clone, Debug, PartialEq)]
pub enum EventKind {
    /// An operation on a packet towards `side`.
    Packet {
        /// The operation.
        op: Op,
        /// Direction of travel.
        side: Side,
        /// The packet at that time.
        packet: Packet,
    },
    /// An event of a TCP end point.
    Tcp(TcpEvent),
    /// An event of a base station's end of a split connection. Addresses and ports are those of the host that
    /// it represents.
    Split(TcpEvent),
    /// An event of a base-station agent for a flow.
    Agent {
        /// The flow in the direction of its data.
        flow: FlowKey,
        /// The event.
        note: AgentNote,
    },
    /// The channel towards `side` changed its state.
    Channel {
        /// Direction of travel.
        side: Side,
        /// The new state: good or bad.
        good: bool,
    },
    /// A radio hop ended a transmission.
    Air(AirEvent),
    /// A host's stack has processed a segment; only with [`Interest::WORK`].
    Work(Work),
    /// A host has sent a datagram, or a source's datagram has arrived.
    Datagram {
        /// Its content.
        datagram: Datagram,
        /// Whether it has arrived.
        arrived: bool,
    },
    /// A client of pages or videos reports what its user sees.
    Client(ClientEvent),
    /// A station's radio goes to sleep or wakes up.
    Doze {
        /// The station.
        station: Station,
        /// Whether it is asleep from now on.
        asleep: bool,
    },
    /// An event of a link layer.
    Link {
        /// The station of the link layer's end.
        station: Station,
        /// The peer.
        peer: Station,
        /// The event.
        note: LinkNote,
    },
    /// A mobile host has entered or left the cell whose base station is this stage.
    Handoff {
        /// The host.
        host: Addr,
        /// Whether it has entered.
        arrived: bool,
    },
    /// The state of a mobile host's agent moves from the old base station to this one.
    State {
        /// The host.
        host: Addr,
        /// Bytes of the transfer over the wired network.
        bytes: u64,
        /// Whether the transfer is complete; then the new agent uses the state.
        arrived: bool,
    },
}

impl EventKind {
    /// Data delivered to the source end of `flow`, without a control block.
    pub fn delivered(flow: FlowKey, bytes: u32) -> EventKind {
        EventKind::Tcp(TcpEvent { flow, kind: TcpKind::Delivered { bytes }, tcb: Tcb::default() })
    }
}

/// An event of a link layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "note")]
pub enum LinkNote {
    /// A duplicate frame was dropped.
    Duplicate,
    /// A frame with a sequence number outside of the window was dropped.
    OutOfWindow,
    /// An acknowledgement of frames that were never sent was ignored.
    BadAck,
    /// The window is full; the oldest packet is retransmitted until an acknowledgement arrives.
    WindowFull,
    /// The channel to the peer is bad: nothing is sent to it for a while.
    ChannelBad,
}

/// An operation on a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Op {
    /// Put into the path, for a cause.
    Originated(Cause),
    /// Carried by a link: seen at the far end, as by a packet filter there, damaged or not.
    Transmitted,
    /// Marked by a queue with Congestion Experienced (RFC 3168).
    Marked,
    /// Marked by a queue that has several causes for marks.
    MarkedBy(Cause),
    /// Damaged by the channel.
    Damaged,
    /// A link layer is about to retransmit it over its hop, for a cause. For the stages around the hop it
    /// remains the same packet.
    Repeated(Cause),
    /// Received by a host.
    Received,
    /// Dropped, for a cause.
    Dropped(Cause),
    /// Buffered or rerouted by a base station, because its host has left the cell. Or buffered by a line
    /// during an outage, or reordered by it.
    Redirected(Cause),
}

impl Op {
    /// The level of detail that this operation belongs to.
    pub fn level(self) -> Interest {
        match self {
            Op::Received | Op::Originated(Cause::Ack | Cause::SplitAck) => Interest::DETAIL,
            Op::Originated(Cause::Data) => Interest::METRICS,
            _ => Interest::RESULTS,
        }
    }
}

/// An event of a TCP end point, with its control block right after it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TcpEvent {
    /// The connection, as the flow from this end point to its peer.
    pub flow: FlowKey,
    /// What happened.
    pub kind: TcpKind,
    /// The control block right after the event; for [`TcpKind::Delivered`] only with [`Interest::DETAIL`].
    pub tcb: Tcb,
}

/// Kinds of events of a TCP end point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum TcpKind {
    /// The first SYN was sent.
    Opening,
    /// The handshake is complete.
    Established,
    /// An ACK moved the left edge of the window.
    Acked,
    /// A duplicate ACK arrived.
    DupAck,
    /// The fast-retransmit threshold was reached, so recovery began.
    FastRetransmit,
    /// A fast recovery ended with all its data acknowledged.
    RecoveryEnded,
    /// A loss was spurious: the segment was only late, and the window is restored.
    Undone,
    /// The retransmission timer expired.
    Timeout,
    /// A partial acknowledgement of a base station re-armed the retransmission timer.
    PartialAck,
    /// A notification of a wireless loss arrived; the sender keeps its window.
    LossNotified,
    /// A base station's notification of a bad state restarted the retransmission timer (bakshi96 4.2.3).
    BadStateNotified,
    /// A source quench closed the congestion window (bakshi96 4.2.2).
    Quenched,
    /// The peer echoed a congestion mark, and the window was reduced (RFC 3168).
    CongestionEchoed,
    /// The receiver now acknowledges every `every` segments (balakrishnan97 4.2.1).
    AckFactor {
        /// The delayed-ACK factor d.
        every: u32,
    },
    /// No ACK came for two round trips: a segment is sent to cause one (RFC 8985).
    TailLossProbe,
    /// A closed window was probed.
    WindowProbe,
    /// Data was delivered to the application in order.
    Delivered {
        /// Number of bytes.
        bytes: u32,
    },
    /// A byte about to be delivered differs from the sent byte: a fault of the implementation.
    Corrupted,
    /// All data was sent and acknowledged.
    Complete,
    /// A client sent a request: an exchange began.
    Asked,
    /// The last byte of the response to the oldest open request was delivered to the client.
    Answered,
    /// Both directions are closed.
    Closed,
    /// The connection was aborted or reset.
    Aborted,
    /// A sample of a live end point's control block shows a change without any of the above events. Or a
    /// foreign stack has sent data for the first time.
    Sampled,
}

impl TcpKind {
    /// The level of detail that this kind belongs to.
    pub fn level(self) -> Interest {
        match self {
            TcpKind::Acked | TcpKind::Sampled | TcpKind::AckFactor { .. } => Interest::DETAIL,
            _ => Interest::RESULTS,
        }
    }
}

/// A snapshot of a TCP control block (output of `trpt`, west97 4.4). Sequence positions are 64-bit stream
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
    /// Congestion window, bytes.
    pub cwnd: u32,
    /// Slow-start threshold, bytes.
    pub ssthresh: u32,
    /// The peer's advertised window, bytes.
    pub snd_wnd: u32,
    /// Successive duplicate ACKs.
    pub dupacks: u32,
    /// Smoothed round-trip time.
    pub srtt: Span,
    /// Round-trip time variation.
    pub rttvar: Span,
    /// Current retransmission timeout, with backoff.
    pub rto: Span,
    /// Number of doublings of the timeout.
    pub backoff: u32,
    /// Whether the sender is in fast recovery.
    pub in_recovery: bool,
}

/// An event of a base-station agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "note")]
pub enum AgentNote {
    /// The agent began to track a flow.
    FlowSeen,
    /// The agent removed a flow, for space or at the flow's end.
    FlowForgotten,
    /// A packet was evicted from the cache.
    CacheEvicted,
    /// The sender's retransmission of a packet passed.
    SenderRetransmission,
    /// A hole in the sequence showed a loss upstream of the base station.
    CongestionHole,
    /// A message to the source was suppressed, since another one had been sent just before.
    NoticeWithheld,
    /// The maximum segment size of a SYN was reduced.
    SegmentClamped {
        /// The new value, bytes.
        mss: u16,
    },
    /// A new connection passed unchanged at the connection limit.
    NoRoom,
    /// A new connection passed unchanged at the limit of half-open connections.
    HalfOpenLimit,
    /// A half-open connection was removed to make room for another one.
    HalfOpenEvicted,
    /// SACK blocks were removed from an ACK: losses behind the hole are handled locally.
    BlocksHidden,
    /// The next loss of a flow is left to the sender, to test whether it slows down.
    LossLeft,
    /// The flow is ignored: its sender does not slow down after losses.
    FlowLeftAlone,
    /// The flow's losses are repaired: its sender slows down after them.
    FlowRepaired,
    /// A round trip over the wireless link was measured.
    LocalRtt {
        /// The measured time.
        rtt: Span,
    },
    /// The mobile host does not answer any more; its sender's window is closed (M-TCP).
    HostGone,
    /// The mobile host answers again, and its sender's window is open (M-TCP).
    HostBack,
    /// The ends of a connection communicated directly while the mobile host was elsewhere, so the connection
    /// is no longer split.
    Bypassed,
}
