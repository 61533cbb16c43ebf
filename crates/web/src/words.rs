//! The meaning of each event as a sentence, with a reference.

use lasthop_proto::air::FrameFate;
use lasthop_proto::event::{AgentNote, Cause, EventKind, Op, TcpKind};

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
        EventKind::Tcp(tcp) => tcp.kind.meaning(),
        EventKind::Split(tcp) => match tcp.kind {
            TcpKind::Timeout => "The timer of the base station's own connection expired.",
            TcpKind::Delivered { .. } => {
                "The base station received data on one connection and forwards it on the other."
            }
            _ => "The state of the base station's own connection has changed.",
        },
        EventKind::Agent { note, .. } => note.meaning(),
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
        EventKind::Link { note, .. } => note.meaning(),
        EventKind::Handoff { arrived: true, .. } => "The mobile host has come into this cell.",
        EventKind::Handoff { arrived: false, .. } => "The mobile host has left this cell.",
        EventKind::State { arrived: true, .. } => {
            "The agent continues with the state of the old base station."
        }
        EventKind::State { arrived: false, .. } => {
            "The old base station sends its agent's state to the new one."
        }
        EventKind::Client(client) => client.news.meaning(),
        EventKind::Work(_) => "A host's stack has done its work for a segment.",
        EventKind::Datagram { .. } => "A datagram of a source.",
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
