//! Synthetic events for tests of sinks: one flow from a host at stage 0 over a wired link (1), an agent (2)
//! and a radio (3) to a host (4).

use lasthop_proto::event::{Cause, Event, EventKind, Op, Tcb, TcpEvent, TcpKind};
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

/// A data packet of `flow` with its first byte at `position` of the stream, from 1.
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
    Event { at: Time(at), stage: StageId(stage), kind: EventKind::Packet { op, side, packet } }
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

/// A damaged packet at the end of the radio.
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
    let kind = EventKind::Tcp(TcpEvent { flow, kind, tcb });
    Event { at: Time(at), stage: StageId(stage), kind }
}

pub(crate) fn tcp_at_sender(at: u64, kind: TcpKind) -> Event {
    tcp(at, 0, FLOW, kind)
}

pub(crate) fn tcp_at_receiver(at: u64, kind: TcpKind) -> Event {
    tcp(at, 4, FLOW.reversed(), kind)
}

mod tests {
    use super::*;
    use crate::Sink;
    use crate::conservation::Conservation;
    use crate::csv::EventCsv;
    use crate::pcapng::{CapturePoint, CaptureSink};
    use crate::sequence::{Sequence, Watch};

    const OPS: [Op; 7] = [
        Op::Originated(Cause::LocalTimeout),
        Op::Transmitted,
        Op::Damaged,
        Op::Repeated(Cause::LocalTimeout),
        Op::Received,
        Op::Dropped(Cause::QueueFull),
        Op::Transmitted,
    ];

    /// All operations on packets at the radio. The sink receives events, or packets if `as_events`.
    fn happen<S: Sink>(mut sink: S, as_events: bool) -> S {
        for (i, op) in (0..).zip(OPS) {
            let packet = data(FLOW, (i / 2).into(), 1 + 100 * i, 100);
            let at = 1000 * u64::from(i);
            if as_events {
                sink.packet(Time(at), StageId(3), op, Side::Right, &packet);
            } else {
                sink.event(&packet_event(at, 3, op, packet));
            }
        }
        sink
    }

    #[test]
    fn a_sink_makes_the_same_of_a_packet_that_it_is_shown_and_of_the_event() {
        let csv = |as_events| {
            let rows = happen(EventCsv::new(&layout(), Vec::new()), as_events).finish().unwrap();
            String::from_utf8(rows).unwrap()
        };
        assert_eq!(csv(true), csv(false));
        assert_eq!(csv(true).lines().count(), 1 + OPS.len());

        let books = |as_events| format!("{:?}", happen(Conservation::default(), as_events));
        assert_eq!(books(true), books(false));
        assert_ne!(books(true), format!("{:?}", Conservation::default()));

        let series = |as_events| {
            let sink = happen(Sequence::new(FLOW, Watch::EndPoints), as_events);
            format!("{:?}", sink.finish(Time(9000)))
        };
        assert_eq!(series(true), series(false));
        let nothing = Sequence::new(FLOW, Watch::EndPoints).finish(Time(9000));
        assert_ne!(series(true), format!("{nothing:?}"));

        let capture = |as_events| {
            let point = CapturePoint { name: "radio".into(), stage: StageId(3), is_link: true };
            let sink = CaptureSink::new(&[point], 64, |_| Ok(Vec::new())).unwrap();
            let captures = happen(sink, as_events).finish().unwrap();
            let links = captures.links.into_iter().map(|(_, bytes)| bytes);
            links.chain([captures.drops]).collect::<Vec<Vec<u8>>>()
        };
        assert_eq!(capture(true), capture(false));
        let frames = |bytes: &Vec<u8>| crate::capture::open(bytes).unwrap().count();
        assert_eq!(capture(true).iter().map(frames).collect::<Vec<_>>(), [2, 1]);
    }
}
