//! Time of the stack per packet: checksums, copies, lookup of a connection, and processing of a segment with
//! each option. Only ratios within one run are meaningful.

#![allow(missing_docs, reason = "criterion's macro makes a public function")]

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use lasthop_proto::event::Interest;
use lasthop_proto::machine::{Out, Side};
use lasthop_proto::rng::Stream;
use lasthop_proto::tcp::lookup::Lookup;
use lasthop_proto::tcp::rtt::Beat;
use lasthop_proto::tcp::settings::{Beats, Settings};
use lasthop_proto::tcp::{Connection, DelayedAck, Prediction, TcpConfig};
use lasthop_proto::units::{Span, Time};
use lasthop_proto::wire::checksum::reference::by_definition;
use lasthop_proto::wire::checksum::{Sum, checksum};
use lasthop_proto::wire::emit::emit;
use lasthop_proto::wire::{Addr, Body, Flags, FlowKey, Packet, Segment, Seq, Timestamps};
use std::hint::black_box;

/// Packets of both media of agarwal00, and the largest of modern hosts.
const SIZES: [usize; 3] = [1448, 2244, 65_536];
/// More bytes than any cache holds.
const FRESH: usize = 64 << 20;

fn checksums(c: &mut Criterion) {
    let mut group = c.benchmark_group("checksum");
    for size in SIZES {
        group.throughput(Throughput::Bytes(size as u64));
        let from: Vec<u8> = (0..size).map(|i| (i * 7 + i / 13) as u8).collect();
        let mut to = vec![1; size];
        group.bench_function(format!("by definition {size}"), |b| {
            b.iter(|| by_definition(black_box(&from)));
        });
        group.bench_function(format!("wide {size}"), |b| b.iter(|| checksum(black_box(&from))));
        group.bench_function(format!("copy {size}"), |b| {
            b.iter(|| black_box(&mut to).copy_from_slice(black_box(&from)));
        });
        group.bench_function(format!("copy and sum {size}"), |b| {
            b.iter(|| {
                let mut sum = Sum::default();
                sum.copy(black_box(&from), black_box(&mut to));
                sum.checksum()
            });
        });
        group.bench_function(format!("copy, then sum {size}"), |b| {
            b.iter(|| {
                black_box(&mut to).copy_from_slice(black_box(&from));
                checksum(black_box(&to))
            });
        });
    }
    group.finish();
}

/// The same on uncached bytes, such as those that an application writes.
fn fresh_checksums(c: &mut Criterion) {
    let mut group = c.benchmark_group("checksum of fresh bytes");
    let from: Vec<u8> = (0..FRESH).map(|i| (i * 7 + i / 13) as u8).collect();
    let mut to = vec![1; FRESH];
    for size in SIZES {
        group.throughput(Throughput::Bytes(size as u64));
        let mut at = 0;
        let mut next = || {
            at = if at + 2 * size > FRESH { 0 } else { at + size };
            at..at + size
        };
        group.bench_function(format!("copy {size}"), |b| {
            b.iter(|| {
                let place = next();
                black_box(&mut to[place.clone()]).copy_from_slice(black_box(&from[place]));
            });
        });
        group.bench_function(format!("copy and sum {size}"), |b| {
            b.iter(|| {
                let place = next();
                let mut sum = Sum::default();
                sum.copy(black_box(&from[place.clone()]), black_box(&mut to[place]));
                sum.checksum()
            });
        });
        group.bench_function(format!("copy, then sum {size}"), |b| {
            b.iter(|| {
                let place = next();
                let to = black_box(&mut to[place.clone()]);
                to.copy_from_slice(black_box(&from[place]));
                checksum(to)
            });
        });
    }
    group.finish();
}

/// A packet with real bytes, put on the wire.
fn emitted(c: &mut Criterion) {
    let mut group = c.benchmark_group("emit");
    let packet = |i: usize| {
        let segment = Segment::new(1024, 9, Seq(i as u32), Seq(1), Flags::ACK);
        let body = Body::copy_of(&vec![i as u8; 1448]);
        Packet::tcp(Addr::v4(10, 0, 0, 1), Addr::v4(10, 1, 0, 1), segment, body)
    };
    let packets: Vec<Packet> = (0..20_000).map(packet).collect();
    for (name, kinds) in [("the same bytes", 1), ("fresh bytes", packets.len())] {
        let (mut out, mut i) = (Vec::with_capacity(2048), 0);
        group.bench_function(name, |b| {
            b.iter(|| {
                out.clear();
                i = (i + 1) % kinds;
                emit(black_box(&packets[i]), black_box(&mut out))
            });
        });
    }
    group.finish();
}

fn flow(i: u32) -> FlowKey {
    FlowKey {
        src: Addr::v4(10, 0, (i >> 24) as u8, (i >> 16) as u8),
        dst: Addr::v4(10, 1, 0, 1),
        src_port: i as u16,
        dst_port: 9,
    }
}

fn lookups(c: &mut Criterion) {
    const PACKETS: usize = 1 << 16;
    let mut group = c.benchmark_group("lookup");
    group.throughput(Throughput::Elements(PACKETS as u64));
    for connections in [1, 100, 100_000] {
        for (traffic, train) in [("bulk", PACKETS), ("trains of 8", 8), ("at random", 1)] {
            let mut rng = Stream::new(1, traffic);
            let arrivals: Vec<FlowKey> = (0..PACKETS / train)
                .map(|_| flow(rng.below(connections) as u32))
                .flat_map(|flow| std::iter::repeat_n(flow, train))
                .collect();
            for caching in [true, false] {
                let mut lookup = Lookup::new(caching);
                (0..connections as u32).for_each(|i| lookup.insert(flow(i), i));
                let cache = if caching { "cache" } else { "no cache" };
                group.bench_function(
                    format!("{connections} connections, {traffic}, {cache}"),
                    |b| {
                        b.iter(|| {
                            arrivals.iter().filter_map(|flow| lookup.find(*black_box(flow))).count()
                        });
                    },
                );
            }
        }
    }
    group.finish();
}

/// An end opened by its peer.
fn receiver(timestamps: bool, window_scale: bool, prediction: Prediction) -> Connection {
    let config = TcpConfig {
        mss: 1460,
        recv_buffer: 1 << 30,
        timestamps,
        window_scale,
        sack: true,
        prediction,
        delayed_ack: DelayedAck { every: 1_000_000, timeout: Span::millis(200) },
        ..TcpConfig::rfc()
    };
    let beat = Beat::new(Span::millis(500), Span::ZERO);
    let beats = Beats { slow: beat, fast: beat };
    let mut end = Connection::new(Settings::new(config, beats), flow(1), Side::Right, Seq(1), 1);
    let mut out = Out::new(Interest::NOTHING);
    let mut syn = segment(0, timestamps);
    (syn.seq, syn.ack, syn.flags) = (Seq(5000), Seq(0), Flags::SYN);
    syn.options_mut().window_scale = Some(7);
    syn.options_mut().sack_permitted = true;
    end.on_segment(Time::ZERO, &syn, Body::EMPTY, &mut out);
    end.on_segment(Time::ZERO, &segment(0, timestamps), Body::EMPTY, &mut out);
    end
}

fn segment(offset: u32, timestamps: bool) -> Segment {
    let mut segment = Segment::new(9, 1, Seq(5001) + offset, Seq(2), Flags::ACK);
    segment.window = 60_000;
    segment.timestamps = timestamps.then_some(Timestamps { value: 77, echo: 1 });
    segment
}

fn fast_path(c: &mut Criterion) {
    const SEGMENTS: u32 = 10_000;
    let mut group = c.benchmark_group("taken in");
    group.throughput(Throughput::Elements(SEGMENTS.into()));
    let (off, after, before) = (Prediction::Off, Prediction::AfterPaws, Prediction::BeforePaws);
    for (name, timestamps, scale, prediction) in [
        ("no options, not predicted", false, false, off),
        ("no options, predicted", false, false, after),
        ("window scale, predicted", false, true, after),
        ("timestamps, not predicted", true, true, off),
        ("timestamps, predicted after PAWS", true, true, after),
        ("timestamps, predicted before PAWS", true, true, before),
    ] {
        let segments: Vec<(Segment, Body)> = (0..SEGMENTS)
            .map(|i| {
                let body = Body::Pattern { stream: 7, len: 1448, offset: u64::from(i * 1448) };
                (segment(i * 1448, timestamps), body)
            })
            .collect();
        let end = receiver(timestamps, scale, prediction);
        group.bench_function(name, |b| {
            b.iter_batched(
                || (end.clone(), Out::new(Interest::NOTHING)),
                |(mut end, mut out)| {
                    for (segment, body) in &segments {
                        end.on_segment(Time::ZERO, black_box(segment), body.clone(), &mut out);
                    }
                    end
                },
                BatchSize::SmallInput,
            );
        });
    }
    group.finish();
}

criterion_group!(benches, checksums, fresh_checksums, emitted, lookups, fast_path);
criterion_main!(benches);
