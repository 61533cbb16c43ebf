//! Whatever the path does, what is delivered is what was sent, and nothing hangs.
//!
//! `LASTHOP_CASES` says how many random scenarios to run; a failure names its case, and [`REGRESSIONS`] keeps
//! those that once failed.

mod common;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};

use lasthop_proto::agent::AgentConfig;
use lasthop_proto::event::{Cause, Event, Op, TcpKind, Wants, What};
use lasthop_scenario::{Scenario, Stage, StageKind};
use lasthop_sim::{Reason, RunEnd, layout, run};
use lasthop_trace::Sink;
use lasthop_trace::conservation::Conservation;
use lasthop_trace::layout::{Layout, Role};

use common::asking::asking;
use common::cells::roaming;
use common::hops::{hopping, scheduled};
use common::impaired::impaired;
use common::{Dice, coming_and_going, delay_held, disciplined, modern, worded};

const FOREIGN_PARTIAL: &str = "an agent took the partial ACK of another for the receiver's word";

/// Cases that once failed, each with what was wrong.
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

/// The same for those whose transfers come and go.
const SHARED_REGRESSIONS: [(u64, &str); 3] = [
    (152, "a damaged ACK took the turn of a connection that had nothing in flight"),
    (282, "a damaged ACK took the turn of a connection that had nothing in flight"),
    (292, "a source that had been stopped was switched, and that took its turn to close"),
];

/// Notices bytes that are not those that were sent, and servers that gave up.
#[derive(Default)]
struct Watch {
    corrupted: bool,
    abandoned: bool,
}

impl Sink for Watch {
    fn wants(&self) -> Wants {
        Wants::METRICS
    }
    fn event(&mut self, event: &Event) {
        if let What::Tcp(tcp) = &event.what {
            self.corrupted |= tcp.kind == TcpKind::Corrupted;
            self.abandoned |= tcp.kind == TcpKind::Aborted;
        }
    }
}

/// Follows every packet. A host takes in what it refuses, and then drops it: that counts once.
struct Books(Conservation, Layout);

impl Sink for Books {
    fn wants(&self) -> Wants {
        self.0.wants()
    }
    fn event(&mut self, event: &Event) {
        let refused = Op::Dropped(Cause::NoSuchConnection);
        let role = self.1.stages[usize::from(event.stage.0)].role;
        match &event.what {
            What::Packet { op, .. } if *op == refused && role == Role::Host => {}
            _ => self.0.event(event),
        }
    }
}

fn demand(holds: bool, what: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(what()) }
}

fn splits(scenario: &Scenario) -> bool {
    let split = |stage: &Stage| matches!(stage.kind, StageKind::Agent(AgentConfig::Split(_)));
    scenario.path.iter().any(split)
}

/// Runs a scenario and says what is wrong with it.
fn examine(scenario: &Scenario, case: u64) -> Result<Reason, String> {
    let books = Books(Conservation::default(), layout(scenario));
    let mut watch = (Watch::default(), books);
    let end = match scenario.roaming {
        Some(_) => run(scenario, case, &mut watch),
        None => run(scenario, case, &mut watch.0),
    };
    let (watch, books) = watch;
    if scenario.roaming.is_some() {
        books.0.check(end.stages.iter().map(|(_, count)| count.held).sum())?;
    }
    demand(!watch.corrupted, || "a wrong byte was delivered".into())?;
    demand(end.reason != Reason::Stuck, || format!("stuck at {}", end.at))?;
    for (stage, count) in &end.stages {
        demand(count.is_conserved(), || format!("stage {}: {count:?}", stage.0))?;
    }
    // A client does not hear of it when its server gives up behind a path that loses resets: it waits for ever.
    let waits = watch.abandoned && scenario.exchanges().next().is_some();
    check_transfers(&end, splits(scenario), waits)?;
    Ok(end.reason)
}

fn check_transfers(end: &RunEnd, split: bool, waits: bool) -> Result<(), String> {
    for (i, transfer) in end.transfers.iter().enumerate() {
        let demand = |holds, what| demand(holds, || format!("transfer {i}: {what}: {transfer:?}"));
        let wanted = transfer.wanted.map_or(u64::MAX, |bytes| bytes.0);
        demand(transfer.delivered <= wanted, "more than was sent")?;
        // A base station that splits connections acknowledges what it has not delivered yet; what it could not
        // deliver ends with a reset at both ends.
        let honest = !split;
        let ahead = transfer.acknowledged > transfer.delivered;
        demand(!honest || !ahead, "acknowledged but not delivered")?;
        demand(
            !ahead || transfer.aborted || end.reason == Reason::Horizon,
            "acknowledged, not delivered, and no reset told",
        )?;
        if transfer.complete && !(split && ahead) {
            demand(transfer.delivered == wanted, "complete but not delivered")?;
            demand(transfer.acknowledged == wanted, "complete but not acknowledged")?;
        }
        let waits = waits && transfer.wanted.is_none() && end.reason == Reason::Idle;
        let settled = transfer.complete || transfer.aborted || waits;
        demand(settled || end.reason == Reason::Horizon, "neither complete nor given up")?;
    }
    Ok(())
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
                    Ok(Err(what)) => failures.push((*case, what)),
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
    let count = std::env::var("LASTHOP_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(300);
    let cases: Vec<u64> = (0..count).collect();
    let (failures, [finished, horizon, idle]) = examine_all(&cases, scenario);
    println!("{finished} finished, {horizon} cut off at the horizon, {idle} came to rest");
    let shown: Vec<String> =
        failures.iter().take(20).map(|(case, what)| format!("case {case}: {what}")).collect();
    assert!(failures.is_empty(), "{} of {count} failed:\n{}", failures.len(), shown.join("\n"));
    // Or the scenarios are so hard that nothing is tested.
    assert!(finished * 10 > count * 7, "only {finished} of {count} finished");
}

#[test]
fn what_is_delivered_is_what_was_sent() {
    examine_many(plain);
}

#[test]
fn it_still_is_whatever_tcp_hosts_have() {
    examine_many(worded);
}

#[test]
fn it_still_is_when_queues_filter_and_reorder_acks() {
    examine_many(disciplined);
}

#[test]
fn it_still_is_when_queues_hold_the_delay() {
    examine_many(delay_held);
}

#[test]
fn it_still_is_between_senders_of_today() {
    examine_many(modern);
}

#[test]
fn it_still_is_when_lines_lose_repeat_damage_and_reorder() {
    examine_many(impaired);
}

#[test]
fn it_still_is_when_stations_contend_for_the_radio() {
    examine_many(hopping);
}

#[test]
fn it_still_is_when_base_stations_go_by_the_channels() {
    examine_many(scheduled);
}

#[test]
fn it_still_is_when_transfers_come_and_go_and_share_their_windows() {
    examine_many(coming_and_going);
}

#[test]
fn it_still_is_when_hosts_move_between_cells() {
    examine_many(roaming);
}

#[test]
fn it_still_is_between_clients_and_servers() {
    examine_many(asking);
}

#[test]
fn split_connections_deliver_what_was_sent_or_reset_both_ends() {
    examine_many(|case| Dice::new(case).split_scenario());
}

#[test]
fn what_was_mended_stays_mended() {
    let plain = REGRESSIONS.map(|(case, fault)| (case, fault, plain as fn(u64) -> Scenario));
    let shared = SHARED_REGRESSIONS.map(|(case, fault)| (case, fault, coming_and_going as _));
    for (case, fault, scenario) in plain.into_iter().chain(shared) {
        let outcome = examine(&scenario(case), case);
        assert!(outcome.is_ok(), "case {case} ({fault}): {outcome:?}");
    }
}
