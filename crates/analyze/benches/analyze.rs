//! How many packets an analysis takes in a second, from the bytes of the file to the finished result.

#![allow(missing_docs, reason = "criterion's macro makes a public function")]

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use lasthop_analyze::{Config, analyze_capture};

fn analyze(c: &mut Criterion) {
    let capture = include_bytes!("../tests/data/real.pcap");
    let packets = analyze_capture(capture, Config::default()).unwrap().packets;
    let mut group = c.benchmark_group("analyze");
    group.throughput(Throughput::Elements(packets));
    group.bench_function("a real transfer", |b| {
        b.iter(|| analyze_capture(capture, Config::default()));
    });
    group.finish();
}

criterion_group!(benches, analyze);
criterion_main!(benches);
