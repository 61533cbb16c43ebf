//! The disciplines compared with those of ns-3.37: mean delays of the same scripted arrivals. A line sends a
//! packet of 1000 bytes a millisecond; the sources are unresponsive. The figures are results of ns-3's queue
//! discs; for `PieQueueDisc` the mean of three runs with derandomisation and a mean packet of 1500 bytes. Its
//! CoDel computes roots by one step of Newton's method, as Linux does, and so drops slightly earlier at
//! first; the pseudo-code of RFC 8289 does not.

use lasthop_proto::queue::{CodelConfig, Discipline, FqCodelConfig, PieConfig};
use lasthop_proto::units::Span;

use super::codel::{PLENTY, data, watch};
use super::script::Bench;

fn mean(values: &[u64]) -> f64 {
    values.iter().sum::<u64>() as f64 / values.len() as f64
}

fn two(_: u64) -> u64 {
    2
}

fn a_fifth_too_many(now: u64) -> u64 {
    1 + u64::from(now.is_multiple_of(4))
}

fn twice(now: u64) -> u64 {
    if (2000..4000).contains(&now) { 0 } else { 2 }
}

fn waves(now: u64) -> u64 {
    if now % 1000 < 300 { 3 } else { 0 }
}

/// One of the arrival patterns, and the result of ns-3.
type Case = (fn(u64) -> u64, f64);

fn close(ours: f64, theirs: f64) {
    assert!((ours / theirs - 1.0).abs() < 0.05, "{ours:.2} ms, in ns-3 {theirs} ms");
}

#[test]
fn codel_waits_as_long_as_in_ns_3() {
    let cases: [Case; 4] =
        [(two, 2075.41), (a_fifth_too_many, 323.497), (twice, 1001.02), (waves, 269.74)];
    for (arrivals, theirs) in cases {
        let bench = Bench::new(Discipline::Codel(CodelConfig::default()), PLENTY);
        close(mean(&watch(bench, 10_000, arrivals, false).waited), theirs);
    }
}

#[test]
fn pie_waits_as_long_as_in_ns_3() {
    let cases: [Case; 3] = [(a_fifth_too_many, 15.02), (two, 15.03), (waves, 174.66)];
    for (arrivals, theirs) in cases {
        let of_seed = |seed| {
            let bench = Bench::seeded(Discipline::Pie(PieConfig::default()), PLENTY, seed);
            let seen = watch(bench, 60_000, arrivals, false);
            let settled = seen.waited.len() - seen.waited.len() * 30 / 60;
            mean(&seen.waited[settled..])
        };
        close((1..=3).map(of_seed).sum::<f64>() / 3.0, theirs);
    }
}

#[test]
fn fq_codel_waits_as_long_as_in_ns_3() {
    let mut bench = Bench::new(Discipline::FqCodel(FqCodelConfig::default()), PLENTY);
    let (mut waited, mut pings) = (Vec::new(), Vec::new());
    for now in 0..20_000_u64 {
        for port in (1..=8).filter(|port| (now + port).is_multiple_of(6)) {
            bench.enqueue(data(port as u16, now, false));
        }
        if now % 100 == 50 {
            bench.enqueue(data(99, now, false));
        }
        if let Some(packet) = bench.dequeue() {
            let ping = packet.segment().unwrap().dst_port == 99;
            if ping { &mut pings } else { &mut waited }.push(now - packet.id.0);
        }
        bench.wait(Span::millis(1));
    }
    close(mean(&waited), 33.4525);
    assert_eq!(mean(&pings), 0.0, "as in ns-3");
}
