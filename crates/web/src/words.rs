//! The meaning of each event as a sentence, with a reference.

use lasthop_proto::air::FrameFate;
use lasthop_proto::event::{AgentNote, Cause, ClientNews, LinkNote, Op, TcpKind, What};

pub(crate) fn sentence(what: &What) -> &'static str {
    match what {
        What::Packet { op, .. } => match op {
            Op::Originated(cause)
            | Op::MarkedBy(cause)
            | Op::Repeated(cause)
            | Op::Dropped(cause)
            | Op::Redirected(cause) => cause.what(),
            Op::Transmitted => "A link has carried it to its far end.",
            Op::Marked => "A queue marked it instead of dropping it: congestion is near.",
            Op::Damaged => "The channel damaged it. Whoever checks the checksum will drop it.",
            Op::Received => "A host took it in.",
        },
        What::Tcp(tcp) => end_point(tcp.kind),
        What::Split(tcp) => match tcp.kind {
            TcpKind::Timeout => "The timer of the base station's own connection expired.",
            TcpKind::Delivered { .. } => {
                "The base station has taken data in, as the end point of one connection, and sends it on over the other."
            }
            _ => "The base station's end of a split connection has moved on.",
        },
        What::Agent { note, .. } => agent(note),
        What::Channel { good: true, .. } => "The channel is good again.",
        What::Channel { good: false, .. } => {
            "The channel is bad: most of what is sent now is damaged."
        }
        What::Air(air) => match air.fate {
            FrameFate::Received => "A frame was on the air, and arrived.",
            FrameFate::Damaged => "A frame was on the air, and the channel damaged it.",
            FrameFate::Collided => "Two frames were on the air at once, and neither arrived.",
            FrameFate::Missed => "A frame was on the air while its receiver did not listen.",
        },
        What::Doze { asleep: true, .. } => "A radio goes to sleep.",
        What::Doze { asleep: false, .. } => "A radio wakes up.",
        What::Link { note, .. } => match note {
            LinkNote::Duplicate => "A frame came that had come before; the link layer dropped it.",
            LinkNote::OutOfWindow => {
                "A frame came from outside of the window; the link layer dropped it."
            }
            LinkNote::BadAck => "A link ACK acknowledged what was never sent, and was ignored.",
            LinkNote::WindowFull => {
                "The link layer's window is used up: its oldest packet goes again."
            }
            LinkNote::ChannelBad => {
                "The link layer sends nothing for a while, since the channel is bad."
            }
        },
        What::Handoff { arrived: true, .. } => "The mobile host has come into this cell.",
        What::Handoff { arrived: false, .. } => "The mobile host has left this cell.",
        What::State { arrived: true, .. } => {
            "The agent goes on with what the old base station knew."
        }
        What::State { arrived: false, .. } => {
            "What the old base station knew is sent after the host."
        }
        What::Client(client) => match client.news {
            ClientNews::PageAsked => "A user asks for a page.",
            ClientNews::PageBegins => "The first byte of the page is there.",
            ClientNews::PageLoaded => "The page is there with all its objects.",
            ClientNews::VideoAsked => "A user asks for a video.",
            ClientNews::Segment(_) => "A segment of the video is there.",
            ClientNews::Plays => "The video plays.",
            ClientNews::Stalls => "The buffer is empty, and the picture stands still.",
            ClientNews::Ends => "The video has ended.",
        },
        What::Work(_) => "A host's stack has done its work for a segment.",
        What::Datagram { .. } => "A datagram of a source.",
    }
}

fn end_point(kind: TcpKind) -> &'static str {
    match kind {
        TcpKind::Opening => "The sender opens the connection with a SYN.",
        TcpKind::Established => "The handshake is complete.",
        TcpKind::Acked => "An ACK moved the left edge of the window; more may be sent.",
        TcpKind::DupAck => "A duplicate ACK: the receiver got something behind a hole.",
        TcpKind::FastRetransmit => {
            "Enough duplicate ACKs: the sender takes the segment for lost, sends it again, and reduces its window."
        }
        TcpKind::RecoveryEnded => {
            "All that was in flight at the loss is acknowledged; fast recovery is over."
        }
        TcpKind::Undone => "What was taken for lost had only been late: the window is restored.",
        TcpKind::Timeout => {
            "No ACK came in time. The sender sends the oldest segment again and begins with a window of one segment."
        }
        TcpKind::PartialAck => {
            "A partial ACK of the base station: it is busy with the loss, and the sender's timer starts anew."
        }
        TcpKind::LossNotified => {
            "The sender was told that the radio lost a segment, and keeps its window."
        }
        TcpKind::BadStateNotified => {
            "The base station says that the link is bad; the sender's timer starts anew."
        }
        TcpKind::Quenched => "The base station asks the sender to slow down; the window closes.",
        TcpKind::CongestionEchoed => {
            "The receiver echoed a mark of congestion; the window is reduced."
        }
        TcpKind::AckFactor { .. } => {
            "The receiver changes how many segments it acknowledges at once."
        }
        TcpKind::TailLossProbe => {
            "No ACK for two round trips: a probe shall bring one forth before the timer expires."
        }
        TcpKind::WindowProbe => "The receiver's window is closed; the sender probes it.",
        TcpKind::Delivered { .. } => "Data was handed to the application, in order.",
        TcpKind::Corrupted => {
            "A byte was about to be delivered that was never sent: a fault of lasthop."
        }
        TcpKind::Complete => "All data is acknowledged.",
        TcpKind::Asked => "A client asks.",
        TcpKind::Answered => "The client has its answer.",
        TcpKind::Closed => "Both directions are closed.",
        TcpKind::Aborted => "The connection was given up or reset.",
        TcpKind::Sampled => "The end point was looked at.",
    }
}

fn agent(note: &AgentNote) -> &'static str {
    match note {
        AgentNote::FlowSeen => "The base station begins to watch the connection.",
        AgentNote::FlowForgotten => "The base station forgets the connection.",
        AgentNote::CacheEvicted => "The base station's cache is full: a packet is left out.",
        AgentNote::SenderRetransmission => {
            "A retransmission by the sender passes: what answers it will not be hidden."
        }
        AgentNote::CongestionHole => {
            "A hole in the sequence before the base station: lost in the wired network, the sender's own matter."
        }
        AgentNote::NoticeWithheld => "Another notice had just been sent; this one is kept back.",
        AgentNote::SegmentClamped { .. } => {
            "The base station lowered the segment size that a SYN announces."
        }
        AgentNote::NoRoom => "The base station has no room for another connection.",
        AgentNote::BlocksHidden => {
            "The base station took the SACK blocks out of the ACK: the hole is its own matter."
        }
        AgentNote::LossLeft => {
            "The base station leaves the next loss to the sender, to see whether it slows down."
        }
        AgentNote::FlowLeftAlone => {
            "The sender does not slow down after losses: the base station leaves it alone."
        }
        AgentNote::FlowRepaired => {
            "The sender slows down after losses: the base station repairs them."
        }
        AgentNote::LocalRtt { .. } => "The base station measured a round trip over the radio.",
        AgentNote::HostGone => "The mobile host does not answer; its sender's window is closed.",
        AgentNote::HostBack => "The mobile host is back; its sender's window opens.",
        AgentNote::Bypassed => "The ends have gone on without the base station.",
    }
}

/// The reference as `source#section`; empty without one.
pub(crate) fn source(what: &What) -> &'static str {
    match what {
        What::Packet { op, .. } => match op {
            Op::Originated(cause)
            | Op::MarkedBy(cause)
            | Op::Repeated(cause)
            | Op::Dropped(cause)
            | Op::Redirected(cause) => of_cause(*cause),
            Op::Marked => "rfc3168#5",
            Op::Damaged => "west97#4.3",
            Op::Transmitted | Op::Received => "",
        },
        What::Tcp(tcp) => match tcp.kind {
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
        What::Split(_) => "balakrishnan97#3.2",
        What::Agent { note, .. } => match note {
            AgentNote::HostGone | AgentNote::HostBack | AgentNote::Bypassed => "west97#2.5",
            AgentNote::NoticeWithheld => "bakshi96#4.2",
            AgentNote::SegmentClamped { .. } => "bakshi96#4.1",
            _ => "balakrishnan97#2.1",
        },
        What::Channel { .. } => "bakshi96#3.1",
        What::Link { .. } => "parsa98#3.2",
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
        LocalDupAck | LocalTimeout | LocalPersist | SuppressedDupAck | SpuriousAck => {
            "balakrishnan97#2.1"
        }
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
pub(crate) fn is_loss(what: &What) -> bool {
    match what {
        What::Packet { op: Op::Damaged, .. } => true,
        What::Packet { op: Op::Dropped(cause), .. } => {
            use Cause::*;
            // Deliberate suppression by an agent is no loss.
            cause.is_loss() && !matches!(cause, SuppressedDupAck | SpuriousAck | SupersededAck)
        }
        _ => false,
    }
}
