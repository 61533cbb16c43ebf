//! Packets per second of a capture, headers only, at the sink of a run.

#![allow(missing_docs, reason = "criterion's macro makes a public function")]

use std::hint::black_box;
use std::io;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use lasthop_observe::Sink;
use lasthop_observe::pcapng::{CapturePoint, CaptureSink};
use lasthop_proto::event::{Event, EventKind, Op};
use lasthop_proto::machine::{Side, StageId};
use lasthop_proto::units::Time;
use lasthop_proto::wire::{Addr, Body, Flags, Packet, PacketId, Segment, Seq, Timestamps};

const PACKETS: u64 = 10_000;

fn events() -> Vec<Event> {
    (0..PACKETS)
        .map(|i| {
            let mut segment = Segment::new(5001, 80, Seq(i as u32 * 1448), Seq(1), Flags::ACK);
            segment.timestamps = Some(Timestamps { value: i as u32, echo: 7 });
            let body = Body::Pattern { stream: 1, len: 1448, offset: i * 1448 };
            let (src, dst) = (Addr::v4(10, 0, 0, 1), Addr::v4(10, 0, 0, 2));
            let mut packet = Packet::tcp(src, dst, segment, body);
            packet.id = PacketId(i);
            let kind = EventKind::Packet { op: Op::Transmitted, side: Side::Right, packet };
            Event { at: Time(i * 1000), stage: StageId(1), kind }
        })
        .collect()
}

fn capture(c: &mut Criterion) {
    let events = events();
    let places = [CapturePoint { stage: StageId(1), name: "radio".into(), is_link: true }];
    let mut group = c.benchmark_group("pcapng");
    group.throughput(Throughput::Elements(PACKETS));
    for (name, payload) in [("headers", 0), ("whole packets", u32::MAX)] {
        group.bench_function(name, |b| {
            b.iter(|| {
                let open = |_: Option<&CapturePoint>| -> io::Result<Vec<u8>> {
                    Ok(Vec::with_capacity(PACKETS as usize * if payload == 0 { 120 } else { 1600 }))
                };
                let mut sink = CaptureSink::new(&places, payload, open).unwrap();
                events.iter().for_each(|event| sink.event(black_box(event)));
                sink.finish().unwrap()
            });
        });
    }
    group.finish();
}

criterion_group!(benches, capture);
criterion_main!(benches);
