//! Sections 3.2 and 3.4: which connection a segment belongs to, and whether it is the one that was expected.

use core::hint::black_box;

use lasthop_proto::energy::Operation;
use lasthop_proto::event::{Event, Wants, What};
use lasthop_proto::rng::Stream;
use lasthop_proto::tcp::lookup::Lookup;
use lasthop_proto::wire::{Addr, FlowKey};
use lasthop_report::model::{Column, Measured, Table};
use lasthop_trace::Sink;
use lasthop_trace::stats::Summary;

use super::TESTBED;
use super::clock::{Task, by_turns};
use crate::bench::{Bench, Interrupted, scenario};
use crate::finding::{Finding, short};
use crate::west97::Experiment;

/// The experiment for the claim `id`.
pub(super) fn experiment(id: &str) -> Option<Experiment> {
    (id == "A-LOOKUP").then_some(run)
}

const CONNECTIONS: [u64; 3] = [1, 100, 100_000];
/// Segments in a row of one connection.
const TRAFFIC: [(&str, usize); 3] = [("bulk", 1024), ("trains of 8", 8), ("at random", 1)];
/// Look-ups of each measurement.
const PACKETS: usize = 1 << 15;
const ROUNDS: usize = 9;

fn run(bench: &mut Bench<'_>) -> Result<Finding, Interrupted> {
    let mut finding = Finding::new(1);
    let mut table = Table {
        title: "3.2: look-ups on this machine".into(),
        columns: vec![
            Column::number("connections"),
            Column::text("segments come"),
            Column::number("cache hits, %"),
            Column::number("ns per packet"),
            Column::number("without the cache"),
        ],
        rows: Vec::new(),
    };
    for connections in CONNECTIONS {
        for (traffic, train) in TRAFFIC {
            if bench.stopped() {
                return Err(Interrupted);
            }
            table.rows.push(look_up(&mut finding, connections, traffic, train));
        }
    }
    finding.tables.push(table);
    predict(&mut finding);
    finding.note("Times are of the machine on which this ran, and hold for no other");
    Ok(finding)
}

fn flow(i: u32) -> FlowKey {
    let src = Addr::v4(10, 0, (i >> 24) as u8, (i >> 16) as u8);
    FlowKey { src, dst: Addr::v4(10, 1, 0, 1), src_port: i as u16, dst_port: 9 }
}

/// Looks segments up that come so; a row of the table.
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
    let times = {
        let mut tasks: Vec<Task<'_>> = lookups
            .iter_mut()
            .map(|lookup| -> Task<'_> {
                let all = move || {
                    let found = arrivals.iter().filter_map(|flow| lookup.find(*black_box(flow)));
                    black_box(found.count());
                };
                (PACKETS as u32, Box::new(all))
            })
            .collect();
        by_turns(ROUNDS, &mut tasks)
    };
    let [cached, plain] = &lookups;
    let hits = 100.0 * cached.cached() as f64 / (cached.cached() + cached.hashed()) as f64;
    let label = format!("{connections} connections, {traffic}");
    finding.measured.push(Measured::new(
        format!("{label}: cache hits"),
        &Summary::of(&[hits]),
        "%",
        None,
    ));
    for (times, how) in times.iter().zip(["with the cache", "without"]) {
        let label = format!("{label}: {how}");
        finding.measured.push(Measured::new(label, &times.summary(), "ns per packet", None));
    }
    if train > 1 {
        finding.above(&format!("{label}: share of hits in percent"), hits, 50.0);
    }
    finding.require(plain.cached() == 0, "without the cache nothing hits it");
    vec![
        connections.to_string(),
        traffic.to_owned(),
        short(hits),
        short(times[0].least()),
        short(times[1].least()),
    ]
}

/// How the segments of a run were taken in, at both ends.
#[derive(Default)]
struct Paths {
    predicted: u64,
    processed: u64,
    cached: u64,
    hashed: u64,
}

impl Sink for Paths {
    fn wants(&self) -> Wants {
        Wants::WORK
    }

    fn event(&mut self, event: &Event) {
        let What::Work(work) = &event.what else { return };
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

/// A bulk transfer on the testbed, with the five comparisons before the whole procedure and without.
fn predict(finding: &mut Finding) {
    for prediction in ["off", "after-paws", "before-paws"] {
        let changes =
            ["sender", "receiver"].map(|host| format!("host.{host}.prediction={prediction}"));
        let scenario = scenario(TESTBED, &["horizon=20s", &changes[0], &changes[1]]);
        let mut paths = Paths::default();
        lasthop_sim::run(&scenario, 1, &mut paths);
        let predicted = share(paths.predicted, paths.processed);
        let label = format!("bulk transfer, prediction {prediction}");
        finding.measured.push(Measured::new(
            format!("{label}: segments on the fast path"),
            &Summary::of(&[predicted]),
            "%",
            None,
        ));
        if prediction == "off" {
            finding.require(paths.predicted == 0, "without prediction nothing is predicted");
            let hits = share(paths.cached, paths.hashed);
            finding.above("bulk transfer: share of cache hits in percent", hits, 50.0);
        } else {
            finding.above(&format!("{label}: share on the fast path in percent"), predicted, 50.0);
        }
    }
}
