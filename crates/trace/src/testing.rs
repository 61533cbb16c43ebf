//! Hand-made events for the tests of sinks: one flow from a host at stage 0 over a wired link (1), an agent
//! (2) and a radio (3) to a host (4).

use lasthop_proto::event::{Cause, Event, Op, Tcb, TcpEvent, TcpKind, What};
use lasthop_proto::machine::{Side, StageId};
use lasthop_proto::units::{Span, Time};
use lasthop_proto::wire::{Addr, Body, Flags, FlowKey, Packet, PacketId, Segment, Seq};

use crate::layout::{FlowInfo, Layout, Role, StageInfo};

/// The flow of all these events.
pub(crate) const FLOW: FlowKey =
    FlowKey { src: Addr::v4(10, 0, 0, 1), dst: Addr::v4(10, 0, 1, 1), src_port: 1024, dst_port: 9 };

/// Sequence number of the SYN: the byte at position 1 is 1001.
const ORIGIN: u32 = 1000;

pub(crate) fn layout() -> Layout {
    let stages = [
        ("fixed", Role::Host),
        ("wire", Role::Link),
        ("snoop", Role::Agent),
        ("radio", Role::Radio),
        ("mobile", Role::Host),
    ];
    Layout {
        stages: stages.map(|(name, role)| StageInfo { name: name.to_owned(), role }).into(),
        flows: vec![FlowInfo {
            key: FLOW,
            towards: Side::Right,
            bytes: Some(2000),
            mss: Some(1000),
            split_mss: None,
            cross: false,
        }],
        ..Layout::default()
    }
}

/// A data packet of `flow` whose first byte is at `position` of the stream, 1 for the first.
pub(crate) fn data(flow: FlowKey, id: u64, position: u32, len: u32) -> Packet {
    let seq = Seq(ORIGIN) + position;
    let mut segment = Segment::new(flow.src_port, flow.dst_port, seq, Seq(5001), Flags::ACK);
    segment.window = 8760;
    let body = Body::Pattern { stream: 1, len, offset: u64::from(position) - 1 };
    let mut packet = Packet::tcp(flow.src, flow.dst, segment, body);
    packet.id = PacketId(id);
    packet
}

pub(crate) fn packet_event(at: u64, stage: u16, op: Op, packet: Packet) -> Event {
    let side = if packet.src == FLOW.dst { Side::Left } else { Side::Right };
    Event { at: Time(at), stage: StageId(stage), what: What::Packet { op, side, packet } }
}

pub(crate) fn transmitted(at: u64, stage: u16, id: u64, position: u32, len: u32) -> Event {
    packet_event(at, stage, Op::Transmitted, data(FLOW, id, position, len))
}

pub(crate) fn originated(at: u64, cause: Cause, id: u64, position: u32, len: u32) -> Event {
    let stage = if cause.is_local_retransmission() { 2 } else { 0 };
    packet_event(at, stage, Op::Originated(cause), data(FLOW, id, position, len))
}

fn harmed(id: u64, position: u32, len: u32) -> Packet {
    let mut packet = data(FLOW, id, position, len);
    packet.damage = lasthop_proto::wire::Damage::Tcp;
    packet
}

/// What was damaged comes out of the radio.
pub(crate) fn transmitted_harmed(at: u64, id: u64, position: u32, len: u32) -> Event {
    packet_event(at, 3, Op::Transmitted, harmed(id, position, len))
}

pub(crate) fn damaged(at: u64, id: u64, position: u32, len: u32) -> Event {
    packet_event(at, 3, Op::Damaged, harmed(id, position, len))
}

pub(crate) fn dropped(at: u64, cause: Cause, id: u64, position: u32, len: u32) -> Event {
    packet_event(at, 4, Op::Dropped(cause), harmed(id, position, len))
}

pub(crate) fn syn(at: u64, stage: u16) -> Event {
    let segment = Segment::new(FLOW.src_port, FLOW.dst_port, Seq(ORIGIN), Seq(0), Flags::SYN);
    let packet = Packet::tcp(FLOW.src, FLOW.dst, segment, Body::EMPTY);
    packet_event(at, stage, Op::Transmitted, packet)
}

/// A packet from the receiver without payload.
pub(crate) fn ack(id: u64) -> Packet {
    let back = FLOW.reversed();
    let segment = Segment::new(back.src_port, back.dst_port, Seq(5001), Seq(1001), Flags::ACK);
    let mut packet = Packet::tcp(back.src, back.dst, segment, Body::EMPTY);
    packet.id = PacketId(id);
    packet
}

fn tcp(at: u64, stage: u16, flow: FlowKey, kind: TcpKind) -> Event {
    let tcb = Tcb {
        snd_una: 1,
        snd_nxt: 1,
        snd_max: 1,
        rcv_nxt: 1,
        cwnd: 1460,
        ssthresh: 65_535,
        snd_wnd: 16_384,
        dupacks: 0,
        srtt: Span::millis(8),
        rttvar: Span::millis(2),
        rto: Span::secs(1),
        backoff: 0,
        in_recovery: false,
    };
    let what = What::Tcp(TcpEvent { flow, kind, tcb });
    Event { at: Time(at), stage: StageId(stage), what }
}

pub(crate) fn tcp_at_sender(at: u64, kind: TcpKind) -> Event {
    tcp(at, 0, FLOW, kind)
}

pub(crate) fn tcp_at_receiver(at: u64, kind: TcpKind) -> Event {
    tcp(at, 4, FLOW.reversed(), kind)
}
