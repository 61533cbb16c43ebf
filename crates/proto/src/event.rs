//! Events in order of time: the only input of metrics, captures and plots.

/// Generates for an enum the name of each variant, and its meaning from its docstring, which is part of the user
/// documentation.
macro_rules! with_meanings {
    (
        $(#[$of:meta])*
        pub enum $Name:ident {
            $($(#[doc = $doc:literal])* $Kind:ident $(($Inner:ty))? $({ $($(#[$of_field:meta])* $field:ident: $Field:ty,)* })?,)*
        }
    ) => {
        $(#[$of])*
        pub enum $Name {
            $($(#[doc = $doc])* $Kind $(($Inner))? $({ $($(#[$of_field])* $field: $Field,)* })?,)*
        }

        $crate::names::named!($Name: $($Kind)*);

        impl $Name {
            /// Its meaning, in a sentence.
            pub fn meaning(&self) -> &'static str {
                match self {
                    $($Name::$Kind { .. } => concat!($($doc),*).trim_ascii_start(),)*
                }
            }
        }
    };
}

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

with_meanings! {
    /// An event of a link layer.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
    #[serde(rename_all = "snake_case", tag = "note")]
    pub enum LinkNote {
        /// The link layer dropped a duplicate frame.
        Duplicate,
        /// The link layer dropped a frame outside the window.
        OutOfWindow,
        /// The link layer ignored an ACK of a frame that was never sent.
        BadAck,
        /// The link layer's window is full, so it retransmits the oldest packet.
        WindowFull,
        /// The link layer pauses because the channel is bad.
        ChannelBad,
    }
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

with_meanings! {
    /// Kinds of events of a TCP end point.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
    #[serde(rename_all = "snake_case", tag = "kind")]
    pub enum TcpKind {
        /// The sender opens the connection with a SYN.
        Opening,
        /// The handshake is complete.
        Established,
        /// An ACK moved the left edge of the window; more may be sent.
        Acked,
        /// A duplicate ACK: the receiver got data behind a hole.
        DupAck,
        /// After enough duplicate ACKs the sender considers the segment lost, retransmits it, and reduces its window.
        FastRetransmit,
        /// All data in flight at the loss is acknowledged; fast recovery ends.
        RecoveryEnded,
        /// The data had been late, not lost: the window is restored.
        Undone,
        /// No ACK arrived in time. The sender retransmits the oldest segment with a window of one segment.
        Timeout,
        /// A partial ACK of the base station, which repairs the loss: the sender restarts its timer.
        PartialAck,
        /// The sender was notified of a loss on the radio, and does not reduce its window.
        LossNotified,
        /// The base station reported a bad link; the sender restarts its timer.
        BadStateNotified,
        /// The base station requested a lower rate; the sender closes its congestion window.
        Quenched,
        /// The receiver echoed a congestion mark; the sender reduces its window.
        CongestionEchoed,
        /// The receiver changes the number of segments per ACK.
        AckFactor {
            /// The delayed-ACK factor d.
            every: u32,
        },
        /// No ACK arrived for two round trips: the sender sends a probe before the timer expires.
        TailLossProbe,
        /// The receiver's window is closed; the sender probes it.
        WindowProbe,
        /// Data was delivered to the application in order.
        Delivered {
            /// Number of bytes.
            bytes: u32,
        },
        /// A wrong byte would have been delivered: a fault of lasthop.
        Corrupted,
        /// All data is acknowledged.
        Complete,
        /// A client sends a request.
        Asked,
        /// The client has received the response.
        Answered,
        /// Both directions are closed.
        Closed,
        /// The connection was aborted or reset.
        Aborted,
        // A live end point's control block shows a change without another event, or a foreign stack has sent data for the
        // first time.
        /// The state of the connection was sampled.
        Sampled,
    }
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

with_meanings! {
    /// An event of a base-station agent.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
    #[serde(rename_all = "snake_case", tag = "note")]
    pub enum AgentNote {
        /// The base station starts to track the connection.
        FlowSeen,
        /// The base station removes the state of the connection.
        FlowForgotten,
        /// The base station's cache is full: it does not store a packet.
        CacheEvicted,
        /// The sender retransmits: the duplicate ACKs that follow are not suppressed.
        SenderRetransmission,
        /// Data was lost in the wired network, before the base station: the sender must repair it.
        CongestionHole,
        /// A notification is withheld because another one was just sent.
        NoticeWithheld,
        /// The base station lowered the segment size that a SYN announces.
        SegmentClamped {
            /// The new value, bytes.
            mss: u16,
        },
        /// The base station has reached its limit of connections.
        NoRoom,
        /// The base station has reached its limit of half-open connections: the new one passes unchanged.
        HalfOpenLimit,
        /// The base station removes a half-open connection, to make room for a new one.
        HalfOpenEvicted,
        /// The base station removed the SACK blocks from the ACK, since it repairs the loss itself.
        BlocksHidden,
        /// The base station leaves the next loss to the sender, to test whether it reduces its rate.
        LossLeft,
        /// The sender does not reduce its rate after losses: the base station ignores the connection.
        FlowLeftAlone,
        /// The sender reduces its rate after losses: the base station repairs them.
        FlowRepaired,
        /// The base station measured a round trip over the radio.
        LocalRtt {
            /// The measured time.
            rtt: Span,
        },
        /// The mobile host does not respond; the base station closes the sender's window.
        HostGone,
        /// The mobile host responds again; the base station opens the sender's window.
        HostBack,
        /// The connection continues without the base station.
        Bypassed,
    }
}
