//! Sections 3.2 and 3.4: connection lookup and header prediction.

use core::hint::black_box;

use lasthop_observe::Sink;
use lasthop_proto::energy::Operation;
use lasthop_proto::event::{Event, EventKind, Interest};
use lasthop_proto::rng::Stream;
use lasthop_proto::tcp::lookup::Lookup;
use lasthop_proto::wire::{Addr, FlowKey};

use super::clock::{Task, time_interleaved};
use super::setup::TESTBED;
use crate::table::{row, table};
use crate::{Bench, Finding, Interrupted, scenario};

const CONNECTIONS: [u64; 3] = [1, 100, 100_000];
/// Consecutive segments of one connection.
const TRAFFIC: [(&str, usize); 3] = [("bulk", 1024), ("trains of 8", 8), ("at random", 1)];
/// Lookups per measurement.
const PACKETS: usize = 1 << 15;
const ROUNDS: usize = 9;

pub(super) fn run(bench: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
    finding.runs = 1;
    let mut rows = table(
        "3.2: look-ups on this machine",
        "connections | <segments come | cache hits, % | ns per packet | without the cache",
    );
    for connections in CONNECTIONS {
        for (traffic, train) in TRAFFIC {
            bench.check_interrupt()?;
            rows.rows.push(look_up(finding, connections, traffic, train));
        }
    }
    finding.tables.push(rows);
    predict(finding);
    finding.note("Times are of the machine on which this ran, and hold for no other");
    Ok(())
}

fn flow(i: u32) -> FlowKey {
    let src = Addr::v4(10, 0, (i >> 24) as u8, (i >> 16) as u8);
    FlowKey { src, dst: Addr::v4(10, 1, 0, 1), src_port: i as u16, dst_port: 9 }
}

/// A row of the table: lookups of segments in trains of length `train`.
fn look_up(finding: &mut Finding, connections: u64, traffic: &str, train: usize) -> Vec<String> {
    let mut chance = Stream::new(1, traffic);
    let arrivals: Vec<FlowKey> = (0..PACKETS / train)
        .map(|_| flow(chance.below(connections) as u32))
        .flat_map(|flow| core::iter::repeat_n(flow, train))
        .collect();
    let mut lookups = [true, false].map(|caching| {
        let mut lookup = Lookup::new(caching);
        (0..connections as u32).for_each(|i| lookup.insert(flow(i), i));
        lookup
    });
    let arrivals = &arrivals;
    let times = time_interleaved(
        ROUNDS,
        &mut lookups.each_mut().map(|lookup| -> Task<'_> {
            let all = move || {
                let found = arrivals.iter().filter_map(|flow| lookup.find(*black_box(flow)));
                black_box(found.count());
            };
            (PACKETS as u32, Box::new(all))
        }),
    );
    let [cached, plain] = &lookups;
    let hits = 100.0 * cached.cached() as f64 / (cached.cached() + cached.hashed()) as f64;
    let label = format!("{connections} connections, {traffic}");
    finding.measure(format!("{label}: cache hits"), hits, "%");
    for (times, how) in times.iter().zip(["with the cache", "without"]) {
        finding.measure(format!("{label}: {how}"), times.summary(), "ns per packet");
    }
    if train > 1 {
        finding.above(format!("{label}: share of hits in percent"), hits, 50.0);
    }
    finding.require(plain.cached() == 0, "without the cache nothing hits it");
    row(&[&connections.to_string(), &traffic, &hits, &times[0].least(), &times[1].least()])
}

/// Code paths of received segments in a run, at both ends.
#[derive(Default)]
struct Paths {
    predicted: u64,
    processed: u64,
    cached: u64,
    hashed: u64,
}

impl Sink for Paths {
    fn interest(&self) -> Interest {
        Interest::WORK
    }

    fn event(&mut self, event: &Event) {
        let EventKind::Work(work) = &event.kind else { return };
        for (total, operation) in [
            (&mut self.predicted, Operation::Predicted),
            (&mut self.processed, Operation::Processed),
            (&mut self.cached, Operation::LookupCached),
            (&mut self.hashed, Operation::LookupHashed),
        ] {
            *total += u64::from(work.count(operation));
        }
    }
}

fn share(of: u64, rest: u64) -> f64 {
    100.0 * of as f64 / (of + rest) as f64
}

/// A bulk transfer on the testbed with and without header prediction.
fn predict(finding: &mut Finding) {
    for prediction in ["off", "after-paws", "before-paws"] {
        let changes =
            ["sender", "receiver"].map(|host| format!("host.{host}.prediction={prediction}"));
        let scenario = scenario(TESTBED, &["horizon=20s", &changes[0], &changes[1]]);
        let mut paths = Paths::default();
        lasthop_sim::run(&scenario, 1, &mut paths);
        let predicted = share(paths.predicted, paths.processed);
        let label = format!("bulk transfer, prediction {prediction}");
        finding.measure(format!("{label}: segments on the fast path"), predicted, "%");
        if prediction == "off" {
            finding.require(paths.predicted == 0, "without prediction nothing is predicted");
            let hits = share(paths.cached, paths.hashed);
            finding.above("bulk transfer: share of cache hits in percent", hits, 50.0);
        } else {
            finding.above(format!("{label}: share on the fast path in percent"), predicted, 50.0);
        }
    }
}
