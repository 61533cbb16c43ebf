//! `lasthop testbed-run`: the hidden command that `lasthop run --world testbed` starts for each cell.
//!
//! It is a separate process, because the base station of a testbed enters namespaces. It reads its order as
//! one line of JSON from stdin, and writes one line per run. It stops when stdin is closed, so it ends with
//! its parent, even after a crash.

use std::io::{Read as _, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::child;
use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::sweep::files;
use crate::sweep::testbed::{Line, Order, Progress, Trace};
use lasthop_live::testbed::Error;
use lasthop_live::world::Testbed as World;
use lasthop_observe::Sink;
use lasthop_observe::layout::{Layout, Role};
use lasthop_observe::metrics::{Metrics, RunMetrics};
use lasthop_proto::event::{Event, EventKind, Interest, Op, TcpEvent, TcpKind};
use lasthop_proto::machine::{Side, StageId};
use lasthop_proto::units::{Span, Time};
use lasthop_proto::wire::{FlowKey, Packet};
use lasthop_scenario::Scenario;
use lasthop_sim::runs::{RunResult, Testbed, ends};

/// Runs the command.
pub fn run() -> Result<Outcome, Failure> {
    let order: Order = child::order("lasthop run --world testbed")?;
    if let Err(error) = runs(&order) {
        write_line(&Line::Error { message: error.message, help: error.help });
        return Ok(Outcome::No);
    }
    Ok(Outcome::Done)
}

/// Writes a line; returns false if stdout is closed.
fn write_line(line: &Line) -> bool {
    let text = serde_json::to_string(line).expect("a line is JSON");
    writeln!(std::io::stdout().lock(), "{text}").is_ok()
}

fn runs(order: &Order) -> Result<(), Error> {
    let Some(scenario) = order.scenario() else {
        return Err(Error::new("the order names no cell of its scenario", ""));
    };
    // First, since this process must have a single thread.
    let mut world = World::enter(&scenario)?;
    let stop = Arc::new(AtomicBool::new(false));
    let raised = stop.clone();
    std::thread::spawn(move || {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        raised.store(true, Ordering::Relaxed);
    });
    let mut trace = order.trace.as_ref();
    for seed in &order.seeds {
        let written = trace.take();
        let result = match written {
            Some(trace) => traced(&mut world, &scenario, *seed, trace, &stop),
            None => {
                let mut metrics = Metrics::new(world.layout(&scenario));
                one(&mut world, &scenario, *seed, &mut metrics, &stop)
                    .map(|(finish, _)| finish(metrics))
            }
        };
        let over = result.is_err() || stop.load(Ordering::Relaxed);
        let reported = match &result {
            Ok(result) if !over => write_line(&Line::Run(Box::new(result.clone()))),
            _ => false,
        };
        if let (false, Some(trace)) = (reported, written) {
            // A partial trace, or one without a reader.
            let _ = std::fs::remove_dir_all(&trace.folder);
        }
        result?;
        if !reported {
            break;
        }
    }
    Ok(())
}

/// Interval of progress reports.
const REPORT: Span = Span::millis(250);

/// Reports the progress of a run.
struct Watched {
    /// Flows of the transfers, as the receivers see them.
    flows: Vec<FlowKey>,
    /// Whether each stage is a host.
    hosts: Vec<bool>,
    progress: Progress,
    last: Time,
}

impl Watched {
    fn new(seed: u64, layout: &Layout) -> Watched {
        let wanted = layout.flows.iter().map(|flow| flow.bytes).sum();
        Watched {
            flows: layout.flows.iter().map(|flow| flow.key.reversed()).collect(),
            hosts: layout.stages.iter().map(|stage| stage.role == Role::Host).collect(),
            progress: Progress { seed, delivered: 0, wanted, seconds: 0.0 },
            last: Time::ZERO,
        }
    }
}

impl Sink for Watched {
    fn interest(&self) -> Interest {
        Interest::METRICS
    }

    fn event(&mut self, event: &Event) {
        if let EventKind::Tcp(TcpEvent { flow, kind: TcpKind::Delivered { bytes }, .. }) =
            &event.kind
        {
            let at_host = self.hosts.get(usize::from(event.stage.0)) == Some(&true);
            if at_host && self.flows.contains(flow) {
                self.progress.delivered += u64::from(*bytes);
            }
        }
        self.look(event.at);
    }

    fn packet(&mut self, at: Time, _: StageId, _: Op, _: Side, _: &Packet) {
        self.look(at);
    }
}

impl Watched {
    /// Reports the progress at intervals. Events of sockets arrive slightly late, with their own times.
    fn look(&mut self, at: Time) {
        if at >= self.last + REPORT {
            self.last = at;
            self.progress.seconds = at.since(Time::ZERO).as_secs_f64();
            write_line(&Line::Progress(self.progress));
        }
    }
}

/// Builds a result from the metrics after the sinks are released.
type Finish = Box<dyn FnOnce(Metrics) -> RunResult>;

fn one(
    world: &mut World,
    scenario: &Scenario,
    seed: u64,
    sink: &mut dyn Sink,
    stop: &AtomicBool,
) -> Result<(Finish, Time), Error> {
    let watched = Watched::new(seed, &world.layout(scenario));
    let end = world.run(scenario, seed, &ends, &mut (watched, sink), stop)?;
    let at = Time(end.at_ns);
    let kernel = end.kernel.into_iter().map(|(host, counters)| {
        let counters = counters.iter().map(|(name, n)| (name.to_owned(), n)).collect();
        (host, counters)
    });
    let testbed =
        Testbed { kernel: kernel.collect(), wrong: end.wrong, lost_frames: end.lost_frames };
    let (reason, hops, agent_state_bytes) = (end.reason, end.hops, end.agent_state_bytes);
    let limits = end.limits;
    let finish = move |metrics: Metrics| RunResult {
        seed,
        reason,
        stuck: None,
        hops,
        agent_state_bytes,
        metrics: RunMetrics { limits, ..metrics.finish(at) },
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
    let written = files::contents(&trace.folder, &layout, &trace.title, trace.most, |files| {
        lasthop_sim::runs::watched(&layout, files, |sink| {
            let mut sinks = (sink, Metrics::new(layout.clone()));
            match one(world, scenario, seed, &mut sinks, stop) {
                Ok((finish, at)) => {
                    result = Some(finish(sinks.1));
                    at
                }
                Err(error) => {
                    failed = Some(error);
                    Time::ZERO
                }
            }
        })
    });
    if let Some(error) = failed {
        return Err(error);
    }
    written.map_err(|error| {
        Error::new(format!("cannot write {}: {error}", trace.folder.display()), "is there room?")
    })?;
    result.ok_or_else(|| Error::new("the run did not begin", ""))
}
