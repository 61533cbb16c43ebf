//! On any path, delivered data equals sent data, and no run hangs.
//!
//! `LASTHOP_CASES` sets the number of random scenarios; a failure names its case, and [`REGRESSIONS`] has cases that
//! once failed.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};

use lasthop_campaign::examine::Bounds;
use lasthop_scenario::Scenario;
use lasthop_sim::Reason;

use crate::common::asking::asking;
use crate::common::cells::roaming;
use crate::common::hops::{hopping, scheduled};
use crate::common::impaired::impaired;
use crate::common::{Dice, coming_and_going, delay_held, disciplined, modern, worded};

const FOREIGN_PARTIAL: &str = "an agent took the partial ACK of another for the receiver's word";

/// Cases that once failed, each with its fault.
const REGRESSIONS: [(u64, &str); 14] = [
    (725, FOREIGN_PARTIAL),
    (997, FOREIGN_PARTIAL),
    (1165, FOREIGN_PARTIAL),
    (1670, FOREIGN_PARTIAL),
    (3020, FOREIGN_PARTIAL),
    (3094, FOREIGN_PARTIAL),
    (5335, FOREIGN_PARTIAL),
    (6141, FOREIGN_PARTIAL),
    (7132, FOREIGN_PARTIAL),
    (8133, FOREIGN_PARTIAL),
    (8257, FOREIGN_PARTIAL),
    (8612, FOREIGN_PARTIAL),
    (9219, FOREIGN_PARTIAL),
    (9352, FOREIGN_PARTIAL),
];

/// The same for intermittent transfers.
const SHARED_REGRESSIONS: [(u64, &str); 3] = [
    (152, "a damaged ACK took the turn of a connection that had nothing in flight"),
    (282, "a damaged ACK took the turn of a connection that had nothing in flight"),
    (292, "a source that had been stopped was switched, and that took its turn to close"),
];

/// Runs a scenario to its end and checks it. Where hosts move every packet is tracked as well.
fn examine(scenario: &Scenario, case: u64) -> Result<Reason, String> {
    let bounds = Bounds { events: u64::MAX, books: scenario.roaming.is_some() };
    let looked = lasthop_campaign::examine::examine(scenario, case, bounds)?;
    looked.reason.ok_or_else(|| "cut off".to_owned())
}

/// Runs the scenarios of `cases` on all processors and returns what failed, and how the others ended.
fn examine_all(cases: &[u64], scenario: fn(u64) -> Scenario) -> (Vec<(u64, String)>, [u64; 3]) {
    let next = AtomicU64::new(0);
    let workers = std::thread::available_parallelism().map_or(1, |n| n.get());
    let mut failures = Vec::new();
    let mut tally = [0; 3];
    std::thread::scope(|scope| {
        let work = || {
            let (mut failures, mut tally) = (Vec::new(), [0; 3]);
            while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed) as usize) {
                match catch_unwind(AssertUnwindSafe(|| examine(&scenario(*case), *case))) {
                    Ok(Ok(Reason::Finished)) => tally[0] += 1,
                    Ok(Ok(Reason::Horizon)) => tally[1] += 1,
                    Ok(Ok(_)) => tally[2] += 1,
                    Ok(Err(message)) => failures.push((*case, message)),
                    Err(_) => failures.push((*case, "panicked".into())),
                }
            }
            (failures, tally)
        };
        let handles: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        for handle in handles {
            let (more, counts) = handle.join().expect("a worker");
            failures.extend(more);
            tally.iter_mut().zip(counts).for_each(|(sum, n)| *sum += n);
        }
    });
    failures.sort();
    (failures, tally)
}

fn plain(case: u64) -> Scenario {
    Dice::new(case).scenario()
}

fn examine_many(scenario: fn(u64) -> Scenario) {
    let count = std::env::var("LASTHOP_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(150);
    let cases: Vec<u64> = (0..count).collect();
    let (failures, [finished, horizon, idle]) = examine_all(&cases, scenario);
    println!("{finished} finished, {horizon} cut off at the horizon, {idle} came to rest");
    let shown: Vec<String> =
        failures.iter().take(20).map(|(case, message)| format!("case {case}: {message}")).collect();
    assert!(failures.is_empty(), "{} of {count} failed:\n{}", failures.len(), shown.join("\n"));
    // Otherwise the scenarios are too hard to test anything.
    assert!(finished * 10 > count * 7, "only {finished} of {count} finished");
}

#[test]
fn delivered_data_equals_sent_data() {
    examine_many(plain);
}

#[test]
fn data_is_intact_with_any_tcp_configuration() {
    examine_many(worded);
}

#[test]
fn data_is_intact_when_queues_filter_and_reorder_acks() {
    examine_many(disciplined);
}

#[test]
fn data_is_intact_when_queues_control_the_delay() {
    examine_many(delay_held);
}

#[test]
fn data_is_intact_between_modern_senders() {
    examine_many(modern);
}

#[test]
fn data_is_intact_on_impaired_lines() {
    examine_many(impaired);
}

#[test]
fn data_is_intact_when_stations_contend_for_the_radio() {
    examine_many(hopping);
}

#[test]
fn data_is_intact_when_base_stations_schedule_by_channel() {
    examine_many(scheduled);
}

#[test]
fn data_is_intact_for_intermittent_transfers_sharing_windows() {
    examine_many(coming_and_going);
}

#[test]
fn data_is_intact_when_hosts_move_between_cells() {
    examine_many(roaming);
}

#[test]
fn data_is_intact_between_clients_and_servers() {
    examine_many(asking);
}

#[test]
fn split_connections_deliver_all_data_or_reset_both_ends() {
    examine_many(|case| Dice::new(case).split_scenario());
}

#[test]
fn fixed_cases_stay_fixed() {
    let plain = REGRESSIONS.map(|(case, fault)| (case, fault, plain as fn(u64) -> Scenario));
    let shared = SHARED_REGRESSIONS.map(|(case, fault)| (case, fault, coming_and_going as _));
    for (case, fault, scenario) in plain.into_iter().chain(shared) {
        let outcome = examine(&scenario(case), case);
        assert!(outcome.is_ok(), "case {case} ({fault}): {outcome:?}");
    }
}
