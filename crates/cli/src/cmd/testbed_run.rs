//! `lasthop testbed-run`: what `lasthop run --world testbed` starts for each cell. Not for people.
//!
//! A process of its own, because the base station of a testbed moves into namespaces. It reads what to do as one
//! line of JSON from stdin, answers with a line for each run, and stops when stdin is closed: so it ends with the
//! program that started it, however that ends.

use std::io::{BufRead as _, Read as _, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::Outcome;
use crate::failure::Failure;
use crate::sweep::files;
use crate::sweep::testbed::{Line, Order, Trace};
use lasthop_lab::{RunResult, Testbed};
use lasthop_live::testbed::Error;
use lasthop_live::world::World;
use lasthop_proto::units::Time;
use lasthop_scenario::Scenario;
use lasthop_trace::Sink;
use lasthop_trace::metrics::Metrics;

/// Runs the command.
pub fn run() -> Result<Outcome, Failure> {
    let mut line = String::new();
    let mut stdin = std::io::stdin().lock();
    let read = stdin.read_line(&mut line);
    drop(stdin);
    let order: Order = read
        .map_err(|error| error.to_string())
        .and_then(|_| serde_json::from_str(&line).map_err(|error| error.to_string()))
        .map_err(|error| {
            Failure::input(error, "this command is for `lasthop run --world testbed`")
        })?;
    if let Err(error) = runs(&order) {
        tell(&Line::Error { message: error.message, help: error.help });
        return Ok(Outcome::No);
    }
    Ok(Outcome::Done)
}

fn tell(line: &Line) {
    let text = serde_json::to_string(line).unwrap_or_default();
    // Whoever asked is gone if this fails, and stdin tells of it too.
    let _ = writeln!(std::io::stdout().lock(), "{text}");
}

fn runs(order: &Order) -> Result<(), Error> {
    let Some(scenario) = order.scenario() else {
        return Err(Error::new("the order names no cell of its scenario", ""));
    };
    // First of all: this process may have no other thread yet.
    let mut world = World::enter(&scenario)?;
    let stop = Arc::new(AtomicBool::new(false));
    let raised = stop.clone();
    std::thread::spawn(move || {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        raised.store(true, Ordering::Relaxed);
    });
    let mut trace = order.trace.as_ref();
    for seed in &order.seeds {
        let result = match trace.take() {
            Some(trace) => traced(&mut world, &scenario, *seed, trace, &stop)?,
            None => {
                let mut metrics = Metrics::new(world.layout(&scenario));
                one(&mut world, &scenario, *seed, &mut metrics, &stop)?.0(&metrics)
            }
        };
        if stop.load(Ordering::Relaxed) {
            return Ok(());
        }
        tell(&Line::Run(Box::new(result)));
    }
    Ok(())
}

/// Makes a result of the metrics, once the sinks are free.
type Finish = Box<dyn FnOnce(&Metrics) -> RunResult>;

fn one(
    world: &mut World,
    scenario: &Scenario,
    seed: u64,
    sink: &mut dyn Sink,
    stop: &AtomicBool,
) -> Result<(Finish, Time), Error> {
    let end = world.run(scenario, seed, sink, stop)?;
    let at = Time(end.at_ns);
    let kernel = end.kernel.into_iter().map(|(host, counters)| {
        let counters = counters.iter().map(|(name, n)| (name.to_owned(), n)).collect();
        (host, counters)
    });
    let tcp = end.tcp_events;
    let testbed = Testbed {
        kernel: kernel.collect(),
        wrong: end.wrong,
        lost_frames: end.lost_frames,
        tcp_events: tcp.as_ref().map(|tcp| tcp.source.clone()),
        lost_tcp_events: tcp.as_ref().map_or(0, |tcp| tcp.lost),
        tcp_events_why: tcp.and_then(|tcp| tcp.why),
    };
    let (reason, hops, agent_state_bytes) = (end.reason, end.hops, end.agent_state_bytes);
    let finish = move |metrics: &Metrics| RunResult {
        seed,
        reason,
        hops,
        agent_state_bytes,
        metrics: metrics.finish(at),
        testbed: Some(testbed),
    };
    Ok((Box::new(finish), at))
}

/// A run with its trace.
fn traced(
    world: &mut World,
    scenario: &Scenario,
    seed: u64,
    trace: &Trace,
    stop: &AtomicBool,
) -> Result<RunResult, Error> {
    let layout = world.layout(scenario);
    let mut failed = None;
    let mut result = None;
    let written = files::contents(&trace.folder, &layout, &trace.title, |sink| {
        let mut sinks = (sink, Metrics::new(layout.clone()));
        match one(world, scenario, seed, &mut sinks, stop) {
            Ok((finish, at)) => {
                result = Some(finish(&sinks.1));
                at
            }
            Err(error) => {
                failed = Some(error);
                Time::ZERO
            }
        }
    });
    if let Some(error) = failed {
        return Err(error);
    }
    written.map_err(|error| {
        Error::new(format!("cannot write {}: {error}", trace.folder.display()), "is there room?")
    })?;
    result.ok_or_else(|| Error::new("the run did not begin", ""))
}
