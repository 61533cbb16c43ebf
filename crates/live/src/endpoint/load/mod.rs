//! Latency under load: round trips of probes while bulk transfers fill the path.
//!
//! The other end is a discard receiver with roles ([`super::role`]). A measurement has phases: without load, with
//! uploads, with downloads, and with both. The connections of a phase, one of them for probes, are new. So each phase
//! includes slow start; the steady part begins after it.
//!
//! Probes have three kinds of connections: one without other data, the loaded ones ([`super::role::marks`]), and a new
//! one for each probe. The queue of a path may treat these differently.

mod fresh;
mod probe;
mod streams;

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use lasthop_proto::units::{Span, Time};
use serde::Serialize;

use super::open::open;
use super::role::{Report, Request, Role};
use super::{EndpointError, SendOptions, Session};
use probe::Prober;
use streams::{Direction, Stream, Streams};

pub use fresh::ConnectionSample;
pub use probe::{ProbeSample, Probes};

/// Share of a phase, from its start, that is left out of the steady part: one in this number.
const SLOW_START: u64 = 4;

/// Interval of new connections.
const CONNECTIONS: Span = Span::millis(200);

/// Time without load after each phase, in which queues drain.
const SETTLING: Span = Span::secs(1);

/// Time that the receiver grants in addition to that of a phase, for connecting and draining.
const MARGIN: Span = Span::secs(20);

/// Load of a phase.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Probes only.
    Idle,
    /// Uploads.
    Up,
    /// Downloads.
    Down,
    /// Uploads and downloads.
    Both,
}

impl Phase {
    /// All phases, in the order of a measurement.
    pub const ALL: [Phase; 4] = [Phase::Idle, Phase::Up, Phase::Down, Phase::Both];

    fn directions(self) -> &'static [Direction] {
        match self {
            Phase::Idle => &[],
            Phase::Up => &[Direction::Up],
            Phase::Down => &[Direction::Down],
            Phase::Both => &[Direction::Up, Direction::Down],
        }
    }
}

impl std::fmt::Display for Phase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Phase::Idle => "idle",
            Phase::Up => "up",
            Phase::Down => "down",
            Phase::Both => "both",
        })
    }
}

/// Options of a measurement.
#[derive(Clone, Debug)]
pub struct LoadOptions {
    /// Destination, source, congestion control and handshake. The congestion control applies to both ends.
    pub send: SendOptions,
    /// Phases in their order.
    pub phases: Vec<Phase>,
    /// Duration of a phase.
    pub duration: Span,
    /// Bulk connections of each direction.
    pub streams: u16,
    /// Interval of probes.
    pub interval: Span,
}

/// Observes a measurement.
pub trait LoadObserver: Sync {
    /// Called at the start of a phase.
    fn phase(&self, phase: Phase) {
        let _ = phase;
    }
    /// Called about ten times per second with the bytes of the phase so far, up and down.
    fn progress(&self, phase: Phase, elapsed: Span, up: u64, down: u64) {
        let _ = (phase, elapsed, up, down);
    }
}

impl LoadObserver for () {}

/// A bulk connection.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct StreamReport {
    /// Payload bytes: acknowledged ones of an upload, received ones of a download.
    pub bytes: u64,
    /// Payload bytes of the steady part.
    pub steady_bytes: u64,
    /// Error that ended the connection before the phase.
    pub failed: Option<String>,
    /// Congestion control of the sending end; of a download the requested one.
    pub congestion: Option<String>,
    /// Counters of the sending end's kernel.
    pub sender: Option<Report>,
}

/// All bulk connections of one direction.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Bulk {
    /// One report for each connection.
    pub streams: Vec<StreamReport>,
    /// Time since the start of the phase, and payload bytes of all connections until then.
    pub series: Vec<(Span, u64)>,
    /// Probes on the connections, in the order of departure.
    pub probes: Vec<ProbeSample>,
}

/// A phase.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct PhaseReport {
    /// The load.
    pub phase: Phase,
    /// Start on the session's clock: all bulk connections are open.
    pub began: Time,
    /// Duration; shorter than requested if the session was stopped.
    pub seconds: Span,
    /// Start of the steady part since the start of the phase; it lasts until the end.
    pub steady_from: Span,
    /// Probes on a connection without other data.
    pub probes: Probes,
    /// Probes on new connections.
    pub connections: Vec<ConnectionSample>,
    /// Uploads.
    pub up: Option<Bulk>,
    /// Downloads.
    pub down: Option<Bulk>,
}

impl PhaseReport {
    /// Round trips of the probes that were sent in the steady part; of all probes in the idle phase.
    pub fn round_trips(&self) -> Vec<Span> {
        let steady = self.probes.samples.iter().filter(|sample| self.is_steady(sample.at));
        steady.filter_map(|sample| sample.rtt).collect()
    }

    /// Whether a probe sent `at` counts in statistics: in the steady part, or in the idle phase.
    pub fn is_steady(&self, at: Span) -> bool {
        self.phase == Phase::Idle || at >= self.steady_from
    }

    /// Whether all bulk connections lasted until the end.
    fn is_loaded(&self) -> bool {
        let bulks = self.up.iter().chain(&self.down);
        bulks.flat_map(|bulk| &bulk.streams).all(|stream| stream.failed.is_none())
    }

    /// Duration of the steady part.
    pub fn steady(&self) -> Span {
        self.seconds.saturating_sub(self.steady_from)
    }
}

/// A measurement.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct LoadReport {
    /// Finished phases, and the last one if the session was stopped in it.
    pub phases: Vec<PhaseReport>,
    /// Whether all phases are complete, and no bulk connection failed.
    pub complete: bool,
    /// Error that ended the measurement before its last phase.
    pub failed: Option<String>,
}

/// Measures. An error after the first phase ends the measurement, and the report contains it. If the session is
/// stopped before the first phase, the report has no phases.
///
/// # Errors
///
/// [`EndpointError`] if the first connections cannot be established.
pub fn load(
    options: &LoadOptions,
    session: &Session<'_>,
    observer: &dyn LoadObserver,
) -> Result<LoadReport, EndpointError> {
    let mut report = LoadReport { phases: Vec::new(), complete: false, failed: None };
    match try_congestion(options, session) {
        Err(EndpointError::Stopped(_)) => return Ok(report),
        result => result?,
    }
    for phase in &options.phases {
        match run(*phase, options, session, observer) {
            Ok(done) => report.phases.push(done),
            Err(EndpointError::Stopped(_)) => break,
            Err(error) if report.phases.is_empty() => return Err(error),
            Err(error) => {
                report.failed = Some(error.to_string());
                break;
            }
        }
        if session.stopped() {
            break;
        }
    }
    report.complete = report.phases.len() == options.phases.len()
        && !session.stopped()
        && report.phases.iter().all(PhaseReport::is_loaded);
    Ok(report)
}

/// Runs one phase.
fn run(
    phase: Phase,
    options: &LoadOptions,
    session: &Session<'_>,
    observer: &dyn LoadObserver,
) -> Result<PhaseReport, EndpointError> {
    observer.phase(phase);
    let duration = options.duration + MARGIN;
    let request = Request { duration, ..Request::new(Role::Echo) };
    let send = SendOptions { no_delay: true, congestion: None, ..options.send.clone() };
    let probing = open(&send, &request, session)?;
    let streams = opened(phase, options, session)?;
    let began = session.clock.now();
    let until = began + options.duration;
    let steady_from = Span(options.duration.0 / SLOW_START);
    let mut streams = Streams::new(streams, options.interval, began, began + steady_from);
    let prober = Prober::new(probing.stream, options.interval, began);
    let unloaded = AtomicBool::new(false);
    // Probes have their own thread, so that reads and writes of bulk data do not delay them here.
    let (loaded, seconds, [up, down], probes, connections) = thread::scope(|scope| {
        let probing = scope.spawn(|| prober.run(until, &unloaded, SETTLING, session));
        let connecting =
            scope.spawn(|| fresh::connections(&send, &request, CONNECTIONS, began, until, session));
        let notify = |elapsed, up, down| observer.progress(phase, elapsed, up, down);
        let loaded = streams.run(until, session, &notify);
        let seconds = session.clock.now().since(began).min(options.duration);
        let bulks = streams.finish(session);
        unloaded.store(true, Ordering::Relaxed);
        let panicked = |_| Err(io::Error::other("the thread of the probes failed"));
        let probes = probing.join().unwrap_or_else(panicked);
        (loaded, seconds, bulks, probes, connecting.join().unwrap_or_default())
    });
    loaded?;
    let broken = |error| EndpointError::Broken { to: options.send.to, error };
    let used = |direction: Direction| phase.directions().contains(&direction);
    Ok(PhaseReport {
        phase,
        began,
        seconds,
        steady_from: steady_from.min(seconds),
        probes: probes.map_err(broken)?,
        connections,
        up: Some(up).filter(|_| used(Direction::Up)),
        down: Some(down).filter(|_| used(Direction::Down)),
    })
}

/// Opens a bulk connection of each used direction, so that an unavailable congestion control is an error before the
/// first phase and not after it.
fn try_congestion(options: &LoadOptions, session: &Session<'_>) -> Result<(), EndpointError> {
    if options.send.congestion.is_none() {
        return Ok(());
    }
    for direction in [Direction::Up, Direction::Down] {
        if options.phases.iter().any(|phase| phase.directions().contains(&direction)) {
            one(direction, options, session)?.abort();
        }
    }
    Ok(())
}

/// Opens the bulk connections of a phase, all at the same time.
fn opened(
    phase: Phase,
    options: &LoadOptions,
    session: &Session<'_>,
) -> Result<Vec<Stream>, EndpointError> {
    let directions = phase.directions().iter();
    let streams = directions.flat_map(|one| (0..options.streams).map(move |_| *one));
    thread::scope(|scope| {
        let open = |direction| scope.spawn(move || one(direction, options, session));
        let threads: Vec<_> = streams.map(open).collect();
        let joined = threads.into_iter().map(|thread| {
            thread.join().unwrap_or_else(|_| {
                Err(io::Error::other("a thread failed while connecting").into())
            })
        });
        joined.collect()
    })
}

fn one(
    direction: Direction,
    options: &LoadOptions,
    session: &Session<'_>,
) -> Result<Stream, EndpointError> {
    let duration = options.duration + MARGIN;
    let congestion = options.send.congestion.clone();
    let (role, send, there) = match direction {
        Direction::Up => (Role::Upload, options.send.clone(), None),
        Direction::Down => {
            let send = SendOptions { congestion: None, no_delay: true, ..options.send.clone() };
            (Role::Download, send, congestion)
        }
    };
    let request =
        Request { duration, congestion: there.clone(), marks: true, ..Request::new(role) };
    let opened = open(&send, &request, session)?;
    Ok(Stream::new(direction, opened.stream, there, session.clock.now()))
}
