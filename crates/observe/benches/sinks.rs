//! Cost of a sink per event in wall-clock time: comparable only on the same machine.

#![allow(missing_docs, reason = "criterion's macros expand to undocumented functions")]

use std::hint::black_box;
use std::io;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use lasthop_observe::Sink;
use lasthop_observe::csv::{EventCsv, TcbCsv};
use lasthop_observe::layout::{FlowInfo, Layout, Role, StageInfo};
use lasthop_observe::metrics::Metrics;
use lasthop_proto::event::{Event, EventKind, Op, Tcb, TcpEvent, TcpKind};
use lasthop_proto::machine::{Side, StageId};
use lasthop_proto::units::{Span, Time};
use lasthop_proto::wire::{Addr, Body, Flags, FlowKey, Packet, PacketId, Segment, Seq};

const MSS: u32 = 1460;

fn key(flow: u16) -> FlowKey {
    let (src, dst) = (Addr::v4(10, 0, 0, 1), Addr::v4(10, 0, 1, 1));
    FlowKey { src, dst, src_port: 1024 + flow, dst_port: 9 }
}

fn layout(flows: u16) -> Layout {
    let stages = [Role::Host, Role::Link, Role::Agent, Role::Radio, Role::Host]
        .map(|role| StageInfo { name: format!("{role:?}").to_lowercase(), role });
    let info = |flow| FlowInfo {
        key: key(flow),
        towards: Side::Right,
        bytes: None,
        mss: Some(MSS),
        split_mss: None,
        cross: false,
    };
    Layout { stages: stages.into(), flows: (0..flows).map(info).collect(), ..Layout::default() }
}

/// A data packet over both links, its delivery, and its ACK over both links: five events per round.
fn events(flows: u16) -> Vec<Event> {
    let mut events = Vec::new();
    for round in 0..40_000 {
        let flow = key((round % u32::from(flows)) as u16);
        let nth = round / u32::from(flows);
        let now = Time(u64::from(round) * 6_000_000);
        let seq = Seq(1) + nth * MSS;
        let segment = Segment::new(flow.src_port, flow.dst_port, seq, Seq(1), Flags::ACK);
        let body = Body::Pattern { stream: 1, len: MSS, offset: u64::from(nth * MSS) };
        let mut data = Packet::tcp(flow.src, flow.dst, segment, body);
        data.id = PacketId(round.into());
        let back = flow.reversed();
        let segment = Segment::new(back.src_port, back.dst_port, Seq(1), seq + MSS, Flags::ACK);
        let ack = Packet::tcp(back.src, back.dst, segment, Body::EMPTY);
        let packet = |stage, side, packet: &Packet| Event {
            at: now,
            stage: StageId(stage),
            kind: EventKind::Packet { op: Op::Transmitted, side, packet: packet.clone() },
        };
        let tcb = Tcb {
            snd_una: 1,
            snd_nxt: 1,
            snd_max: 1,
            rcv_nxt: u64::from((nth + 1) * MSS + 1),
            cwnd: 8760,
            ssthresh: 65_535,
            snd_wnd: 16_384,
            dupacks: 0,
            srtt: Span::millis(8),
            rttvar: Span::millis(2),
            rto: Span::secs(1),
            backoff: 0,
            in_recovery: false,
        };
        let delivered = TcpEvent { flow: back, kind: TcpKind::Delivered { bytes: MSS }, tcb };
        events.push(packet(1, Side::Right, &data));
        events.push(packet(3, Side::Right, &data));
        events.push(Event { at: now, stage: StageId(4), kind: EventKind::Tcp(delivered) });
        events.push(packet(3, Side::Left, &ack));
        events.push(packet(1, Side::Left, &ack));
    }
    events
}

fn sinks(c: &mut Criterion) {
    let mut group = c.benchmark_group("sinks");
    for flows in [1, 1000] {
        let events = events(flows);
        group.throughput(Throughput::Elements(events.len() as u64));
        group.bench_function(format!("metrics/{flows}"), |b| {
            b.iter_batched_ref(
                || Metrics::new(layout(flows)),
                |sink| events.iter().for_each(|event| sink.event(black_box(event))),
                BatchSize::PerIteration,
            );
        });
        group.bench_function(format!("event_csv/{flows}"), |b| {
            b.iter(|| {
                let mut sink = EventCsv::new(&layout(flows), io::sink());
                events.iter().for_each(|event| sink.event(black_box(event)));
                sink.finish().is_ok()
            });
        });
        group.bench_function(format!("tcb_csv/{flows}"), |b| {
            b.iter(|| {
                let mut sink = TcbCsv::new(io::sink());
                events.iter().for_each(|event| sink.event(black_box(event)));
                sink.finish().is_ok()
            });
        });
    }
    group.finish();
}

criterion_group!(benches, sinks);
criterion_main!(benches);
