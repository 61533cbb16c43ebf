//! Cost of compressing and restoring a header: a stream of data, and ACKs of many connections in turn.

#![allow(missing_docs, reason = "criterion's macro makes a public function")]

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use lasthop_proto::link::header_compression::{
    Compressed, CompressionConfig, Compressor, Coverage, Decompressor,
};
use lasthop_proto::wire::{Addr, Body, Flags, Packet, Segment, Seq};

const PACKETS: u32 = 10_000;

/// Segments of `len` bytes of alternating connections.
fn packets(connections: u32, len: u32) -> Vec<Packet> {
    let bytes = Body::copy_of(&vec![7; len as usize]);
    let packet = |i: u32| {
        let (port, step) = ((i % connections) as u16, i / connections);
        let (seq, ack) = (Seq(step * len), Seq(step * 1000));
        let segment = Segment::new(port, 80, seq, ack, Flags::ACK);
        Packet::tcp(Addr::v4(10, 0, 0, 1), Addr::v4(10, 0, 0, 2), segment, bytes.clone())
    };
    (0..PACKETS).map(packet).collect()
}

fn headers(c: &mut Criterion) {
    let mut group = c.benchmark_group("header compression");
    group.throughput(Throughput::Elements(PACKETS.into()));
    for (name, connections, len, coverage) in [
        ("data, headers summed", 1, 1000, Coverage::Headers),
        ("data, all summed", 1, 1000, Coverage::Whole),
        ("ACKs of 16 connections", 16, 0, Coverage::Headers),
    ] {
        let packets = packets(connections, len);
        let config = CompressionConfig { coverage, ..CompressionConfig::default() };
        let compress = || -> Vec<Compressed> {
            let mut compressor = Compressor::new(config);
            packets.iter().map(|packet| compressor.compress(black_box(packet))).collect()
        };
        group.bench_function(format!("compress {name}"), |b| b.iter(compress));
        let sent = compress();
        group.bench_function(format!("decompress {name}"), |b| {
            b.iter(|| {
                let mut decompressor = Decompressor::new(config);
                for (packet, sent) in packets.iter().zip(&sent) {
                    let body = packet.body.clone();
                    let got = decompressor.decompress(sent.kind, &sent.header, black_box(body));
                    assert!(black_box(got).is_ok());
                }
            });
        });
    }
    group.finish();
}

criterion_group!(benches, headers);
criterion_main!(benches);
