//! The meaning of each event as a sentence, with a reference.

use lasthop_proto::air::FrameFate;
use lasthop_proto::event::{AgentNote, Cause, ClientNews, EventKind, LinkNote, Op, TcpKind};

pub(crate) fn sentence(kind: &EventKind) -> &'static str {
    match kind {
        EventKind::Packet { op, .. } => match op {
            Op::Originated(cause)
            | Op::MarkedBy(cause)
            | Op::Repeated(cause)
            | Op::Dropped(cause)
            | Op::Redirected(cause) => cause.meaning(),
            Op::Transmitted => "A link has transmitted it to its other end.",
            Op::Marked => "A queue marked it instead of dropping it, to signal congestion.",
            Op::Damaged => {
                "The channel damaged it. The next node that verifies its checksum drops it."
            }
            Op::Received => "A host received it.",
        },
        EventKind::Tcp(tcp) => end_point(tcp.kind),
        EventKind::Split(tcp) => match tcp.kind {
            TcpKind::Timeout => "The timer of the base station's own connection expired.",
            TcpKind::Delivered { .. } => {
                "The base station received data on one connection and forwards it on the other."
            }
            _ => "The state of the base station's own connection has changed.",
        },
        EventKind::Agent { note, .. } => agent(note),
        EventKind::Channel { good: true, .. } => "The channel is good again.",
        EventKind::Channel { good: false, .. } => {
            "The channel is bad: most packets are damaged now."
        }
        EventKind::Air(air) => match air.fate {
            FrameFate::Received => "A frame was transmitted and received.",
            FrameFate::Damaged => "A frame was transmitted, and the channel damaged it.",
            FrameFate::Collided => "Two frames were transmitted at once and collided.",
            FrameFate::Missed => "A frame was transmitted while its receiver was not listening.",
        },
        EventKind::Doze { asleep: true, .. } => "A radio goes to sleep.",
        EventKind::Doze { asleep: false, .. } => "A radio wakes up.",
        EventKind::Link { note, .. } => match note {
            LinkNote::Duplicate => "The link layer dropped a duplicate frame.",
            LinkNote::OutOfWindow => "The link layer dropped a frame outside the window.",
            LinkNote::BadAck => "The link layer ignored an ACK of a frame that was never sent.",
            LinkNote::WindowFull => {
                "The link layer's window is full, so it retransmits the oldest packet."
            }
            LinkNote::ChannelBad => "The link layer pauses because the channel is bad.",
        },
        EventKind::Handoff { arrived: true, .. } => "The mobile host has come into this cell.",
        EventKind::Handoff { arrived: false, .. } => "The mobile host has left this cell.",
        EventKind::State { arrived: true, .. } => {
            "The agent continues with the state of the old base station."
        }
        EventKind::State { arrived: false, .. } => {
            "The old base station sends its agent's state to the new one."
        }
        EventKind::Client(client) => match client.news {
            ClientNews::PageAsked => "A user requests a page.",
            ClientNews::PageBegins => "The first byte of the page has arrived.",
            ClientNews::PageLoaded => "The page and all its objects have arrived.",
            ClientNews::VideoAsked => "A user requests a video.",
            ClientNews::Segment(_) => "A segment of the video has arrived.",
            ClientNews::Plays => "The video plays.",
            ClientNews::Stalls => "The buffer is empty, and the video stalls.",
            ClientNews::Ends => "The video has ended.",
        },
        EventKind::Work(_) => "A host's stack has done its work for a segment.",
        EventKind::Datagram { .. } => "A datagram of a source.",
    }
}

fn end_point(kind: TcpKind) -> &'static str {
    match kind {
        TcpKind::Opening => "The sender opens the connection with a SYN.",
        TcpKind::Established => "The handshake is complete.",
        TcpKind::Acked => "An ACK moved the left edge of the window; more may be sent.",
        TcpKind::DupAck => "A duplicate ACK: the receiver got data behind a hole.",
        TcpKind::FastRetransmit => {
            "After enough duplicate ACKs the sender considers the segment lost, retransmits it, and reduces its window."
        }
        TcpKind::RecoveryEnded => {
            "All data in flight at the loss is acknowledged; fast recovery ends."
        }
        TcpKind::Undone => "The data had been late, not lost: the window is restored.",
        TcpKind::Timeout => {
            "No ACK arrived in time. The sender retransmits the oldest segment with a window of one segment."
        }
        TcpKind::PartialAck => {
            "A partial ACK of the base station, which repairs the loss: the sender restarts its timer."
        }
        TcpKind::LossNotified => {
            "The sender was notified of a loss on the radio, and does not reduce its window."
        }
        TcpKind::BadStateNotified => {
            "The base station reported a bad link; the sender restarts its timer."
        }
        TcpKind::Quenched => {
            "The base station requested a lower rate; the sender closes its congestion window."
        }
        TcpKind::CongestionEchoed => {
            "The receiver echoed a congestion mark; the sender reduces its window."
        }
        TcpKind::AckFactor { .. } => "The receiver changes the number of segments per ACK.",
        TcpKind::TailLossProbe => {
            "No ACK arrived for two round trips: the sender sends a probe before the timer expires."
        }
        TcpKind::WindowProbe => "The receiver's window is closed; the sender probes it.",
        TcpKind::Delivered { .. } => "Data was delivered to the application in order.",
        TcpKind::Corrupted => "A wrong byte would have been delivered: a fault of lasthop.",
        TcpKind::Complete => "All data is acknowledged.",
        TcpKind::Asked => "A client sends a request.",
        TcpKind::Answered => "The client has received the response.",
        TcpKind::Closed => "Both directions are closed.",
        TcpKind::Aborted => "The connection was aborted or reset.",
        TcpKind::Sampled => "The state of the connection was sampled.",
    }
}

fn agent(note: &AgentNote) -> &'static str {
    match note {
        AgentNote::FlowSeen => "The base station starts to track the connection.",
        AgentNote::FlowForgotten => "The base station removes the state of the connection.",
        AgentNote::CacheEvicted => "The base station's cache is full: it does not store a packet.",
        AgentNote::SenderRetransmission => {
            "The sender retransmits: the duplicate ACKs that follow are not suppressed."
        }
        AgentNote::CongestionHole => {
            "Data was lost in the wired network, before the base station: the sender must repair it."
        }
        AgentNote::NoticeWithheld => {
            "A notification is withheld because another one was just sent."
        }
        AgentNote::SegmentClamped { .. } => {
            "The base station lowered the segment size that a SYN announces."
        }
        AgentNote::NoRoom => "The base station has reached its limit of connections.",
        AgentNote::HalfOpenLimit => {
            "The base station has reached its limit of half-open connections: the new one passes unchanged."
        }
        AgentNote::HalfOpenEvicted => {
            "The base station removes a half-open connection, to make room for a new one."
        }
        AgentNote::BlocksHidden => {
            "The base station removed the SACK blocks from the ACK, since it repairs the loss itself."
        }
        AgentNote::LossLeft => {
            "The base station leaves the next loss to the sender, to test whether it reduces its rate."
        }
        AgentNote::FlowLeftAlone => {
            "The sender does not reduce its rate after losses: the base station ignores the connection."
        }
        AgentNote::FlowRepaired => {
            "The sender reduces its rate after losses: the base station repairs them."
        }
        AgentNote::LocalRtt { .. } => "The base station measured a round trip over the radio.",
        AgentNote::HostGone => {
            "The mobile host does not respond; the base station closes the sender's window."
        }
        AgentNote::HostBack => {
            "The mobile host responds again; the base station opens the sender's window."
        }
        AgentNote::Bypassed => "The connection continues without the base station.",
    }
}

/// The reference as `source#section`; empty without one.
pub(crate) fn source(kind: &EventKind) -> &'static str {
    match kind {
        EventKind::Packet { op, .. } => match op {
            Op::Originated(cause)
            | Op::MarkedBy(cause)
            | Op::Repeated(cause)
            | Op::Dropped(cause)
            | Op::Redirected(cause) => of_cause(*cause),
            Op::Marked => "rfc3168#5",
            Op::Damaged => "west97#4.3",
            Op::Transmitted | Op::Received => "",
        },
        EventKind::Tcp(tcp) => match tcp.kind {
            TcpKind::Opening | TcpKind::Established => "rfc9293#3.5",
            TcpKind::Acked => "rfc5681#3.1",
            TcpKind::DupAck | TcpKind::FastRetransmit | TcpKind::RecoveryEnded => "rfc5681#3.2",
            TcpKind::Timeout => "rfc6298#5",
            TcpKind::PartialAck => "west97#3.4",
            TcpKind::LossNotified => "west97#2.3.3",
            TcpKind::BadStateNotified => "bakshi96#4.2.3",
            TcpKind::Quenched => "bakshi96#4.2.2",
            TcpKind::CongestionEchoed => "rfc3168#6.1.2",
            TcpKind::AckFactor { .. } => "balakrishnan97#4.2.1",
            TcpKind::TailLossProbe => "rfc8985#7.3",
            TcpKind::WindowProbe => "rfc9293#3.8.6.1",
            _ => "",
        },
        EventKind::Split(_) => "balakrishnan97#3.2",
        EventKind::Agent { note, .. } => match note {
            AgentNote::HostGone | AgentNote::HostBack | AgentNote::Bypassed => "west97#2.5",
            AgentNote::NoticeWithheld => "bakshi96#4.2",
            AgentNote::SegmentClamped { .. } => "bakshi96#4.1",
            _ => "balakrishnan97#2.1",
        },
        EventKind::Channel { .. } => "bakshi96#3.1",
        EventKind::Link { .. } => "parsa98#3.2",
        _ => "",
    }
}

fn of_cause(cause: Cause) -> &'static str {
    use Cause::*;
    match cause {
        Data | Ack | Control => "west97#2.1",
        FastRetransmit => "rfc5681#3.2",
        TimeoutRetransmit => "rfc6298#5",
        ElnRetransmit | LossNotification => "west97#2.3.3",
        TailLossProbe => "rfc8985#7.3",
        WindowProbe => "rfc9293#3.8.6.1",
        LocalDupAck | LocalTimeout | LocalPersist | LocalBurstCheck | SuppressedDupAck
        | SpuriousAck => "balakrishnan97#2.1",
        PartialAck => "west97#3.3",
        ReconstructedAck => "rfc3449#5.3.1",
        BadStateNotification => "bakshi96#4.2.3",
        SourceQuench => "bakshi96#4.2.2",
        SplitData | SplitAck | SplitControl | SplitProbe | SplitTaken => "balakrishnan97#3.2",
        LinkNack | LinkTimeout | LinkWindowFull => "parsa98#3.2",
        QueueFull => "west97#2.2",
        IpChecksum | TcpChecksum => "west97#4.3",
        SupersededAck => "balakrishnan97#4.2.2",
        _ => "",
    }
}

/// A packet was lost by it.
pub(crate) fn is_loss(kind: &EventKind) -> bool {
    match kind {
        EventKind::Packet { op: Op::Damaged, .. } => true,
        EventKind::Packet { op: Op::Dropped(cause), .. } => {
            use Cause::*;
            // Deliberate suppression by an agent is no loss.
            cause.is_loss() && !matches!(cause, SuppressedDupAck | SpuriousAck | SupersededAck)
        }
        _ => false,
    }
}
