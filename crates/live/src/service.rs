//! The base station as a service: from its file to a loop that runs until a signal stops it.

mod fault;

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::SystemTime;

use lasthop_observe::Sink;
use lasthop_observe::pcapng::CapturePoint;
use lasthop_path::{Path as Stages, Stage, Witness};
use lasthop_proto::agent::Needs;
use lasthop_proto::event::Interest;
use lasthop_proto::machine::{Side, StageId};
use lasthop_proto::units::Span;
use lasthop_scenario::{PlaneChoice, Setting, StationFile};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::SignalFd;

use crate::clock::Clock;
use crate::control::{self, About, Running, who};
use crate::counters::{Counters, Tap};
use crate::frame::Outgoing;
use crate::interfaces;
use crate::metrics::{self, Endpoint};
use crate::notify::{self, Manager};
use crate::owner::{self, Claim};
use crate::plane::orphans::{self, Orphans};
use crate::plane::{self, Plane};
use crate::recorder::Recorder;
use crate::station::{Handle, Port, Station};
use crate::subscribers::SubscriberView;
use crate::sys::{filter, heap, privileges};

pub use fault::Fault;

/// Events of a station for its log.
#[derive(Debug)]
pub enum StationReport {
    /// The selected data plane.
    Plane {
        /// `kernel` or `sockets`.
        plane: &'static str,
        /// Reason against the kernel with its remedy, if the kernel was acceptable.
        instead: Option<(String, &'static str)>,
    },
    /// The station runs.
    Ready {
        /// Path of the control socket.
        socket: PathBuf,
        /// Address of the metrics server.
        metrics: Option<SocketAddr>,
    },
    /// The file was reloaded.
    Reloaded {
        /// User and process that sent SIGHUP, from the kernel.
        who: String,
        /// The new stages.
        stages: Vec<String>,
        /// The changed keys.
        settings: Vec<Setting>,
    },
    /// A client has changed keys of the path over the control socket.
    Changed {
        /// User and process of the client.
        who: String,
        /// The keys with old and new values.
        settings: Vec<Setting>,
    },
    /// A warning with its remedy.
    Warning(String),
    /// Names of interfaces that no longer exist. The station waits for them.
    Gone(Vec<String>),
    /// The station forwards between its interfaces again.
    Back,
    /// Number of connections that may finish before the station stops, and their time.
    Draining(usize, Span),
    /// Number of connections that were reset, since the station stops.
    Reset(usize),
    /// Number of ends that were reset, of connections that ended at a dead earlier station.
    Orphaned(usize),
}

/// Name of the map of split connections that the service manager stores for the next process.
const STORED: &str = "endings";

/// The signals that a station handles; others have their default effect.
fn signals() -> SigSet {
    [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP].into_iter().collect()
}

/// Runs the station of `file` until SIGTERM or SIGINT, with its control socket at `socket`. SIGHUP makes it
/// call `reread` and apply the changes. `tell` receives the events, from several threads.
///
/// # Errors
/// If a requirement is missing. Nothing remains on the machine then.
pub fn run(
    name: &str,
    file: StationFile,
    socket: &Path,
    reread: impl Fn() -> Result<StationFile, String> + Send + 'static,
    report: impl Fn(StationReport) + Send + Sync + 'static,
) -> Result<(), Fault> {
    let report = Arc::new(report);
    // Before the first thread starts, so that all threads inherit the mask.
    signals().thread_block().map_err(io::Error::from)?;
    for interface in [&file.settings.left, &file.settings.right] {
        interfaces::warnings(interface)
            .into_iter()
            .for_each(|warning| report(StationReport::Warning(warning)));
    }
    heap::keep();
    let mut claims = Some(claim_all(&file)?);
    let clock = Clock::start();
    let (path, points) = stages(&file);
    let last = StageId(path.stages().len() as u16 - 1);
    let counters = Counters::new(path.stages().len());
    let mut ports = vec![
        open(&file.settings.left, StageId(0), Side::Left)?,
        open(&file.settings.right, last, Side::Right)?,
    ];
    let recorder = match &file.settings.capture {
        Some(config) => Some(
            Recorder::new(config, points, [StageId(0), last], epoch(clock))
                .map_err(|error| Fault::Capture { dir: config.dir.clone(), error })?,
        ),
        None => None,
    };
    let recorded = recorder.as_ref().map(Recorder::recorded);
    // The base filter of the previous station must still exist: it answers packets in the meantime.
    let mut manager = Manager::from_environment();
    let stored = notify::stored(STORED);
    if stored.is_some() {
        manager.forget(STORED);
    }
    let orphaned = reset_orphans(stored, &mut ports);
    if orphaned > 0 {
        report(StationReport::Orphaned(orphaned));
    }
    let mut station = Station::new(path, ports, clock)?;
    let view = file.settings.subscribers.map(|config| SubscriberView::of(config, clock));
    let tap = view.as_ref().map(|view| view.tap([StageId(0), last]));
    let mut sink = (tap, (Tap(counters.clone()), recorder));
    if let Some(plane) = data_plane(&file, &*report)? {
        store(&plane, &manager, &*report);
        station.set_plane(plane)?;
        // Before the report that it runs, so that later connections are seen from their start.
        station.adapt(&mut sink)?;
    }
    // Before any other thread starts. The remaining privileges are needed again when interfaces come back.
    privileges::drop_unused()?;
    if let Err(error) = filter::refuse_unused() {
        let warning = format!("the kernel filters no system calls of this station: {error}");
        report(StationReport::Warning(warning));
    }
    let about = About { world: "station", name: name.to_owned(), seed: file.settings.seed };
    let handle = station.handle();
    let running =
        Running::new(about, handle.clone(), file.path.clone(), counters.clone(), recorded);
    if let (Some(view), Some(config)) = (view, file.settings.subscribers) {
        running.show_subscribers(view, config.metrics);
    }
    let reporter = report.clone();
    running.log_changes(move |who, changed| {
        reporter(StationReport::Changed {
            who: who.to_owned(),
            settings: changed.settings.clone(),
        });
    });
    let guard = control::serve(running.clone(), socket)
        .map_err(|error| Fault::Socket { path: socket.to_owned(), error })?;
    let endpoint = match file.settings.metrics {
        Some(address) => Some(
            metrics::serve(running.clone(), address)
                .map_err(|error| Fault::Metrics { address, error })?,
        ),
        None => None,
    };
    report(StationReport::Ready {
        socket: guard.path().to_owned(),
        metrics: endpoint.as_ref().map(Endpoint::address),
    });
    let (stays, limit) = (file.settings.forward_after_stop, file.settings.drain);
    let listener = thread::Builder::new().name("signals".to_owned());
    let (reporter, own) = (report.clone(), file.clone());
    let signal_fd = SignalFd::new(&signals()).map_err(io::Error::from)?;
    listener.spawn(move || {
        loop {
            match signal_fd.read_signal() {
                Ok(Some(signal)) if signal.ssi_signo == Signal::SIGHUP as u32 => {
                    let who = who(signal.ssi_uid, signal.ssi_pid as i32);
                    reporter(reload(who, &running, &own, &reread));
                }
                Ok(Some(_)) => {
                    drain(&handle, clock, limit, &signal_fd, &*reporter);
                    handle.ask(Station::stop);
                    return;
                }
                Ok(None) | Err(_) => {}
            }
        }
    })?;
    manager.say("READY=1");
    let mut stuck = None;
    let ended = loop {
        let ended = station.run(&mut sink, &mut |station, _, now| {
            manager.alive(now);
            if let Some(stage) = station.path().stuck().filter(|stage| stuck != Some(*stage)) {
                stuck = Some(stage);
                report(StationReport::Warning(endless(stage)));
            }
            true
        });
        let gone = station.gone();
        if ended.is_ok() || gone.is_empty() {
            break ended;
        }
        report(StationReport::Gone(gone));
        drop(claims.take());
        claims = rejoin(&mut station, &file, &mut manager, &mut sink, &*report)?;
        if claims.is_none() {
            break Ok(());
        }
        report(StationReport::Back);
    };
    manager.say("STOPPING=1");
    if station.plane().is_some() {
        manager.forget(STORED);
    }
    // Without the station these connections would have no peer.
    let reset = (1..last.0.into()).map(|i| station.reset_endings(i, &mut sink)).sum();
    if reset > 0 {
        report(StationReport::Reset(reset));
    }
    ended?;
    // After a clean stop, packets pass only if the file requests this. After an error they pass.
    match station.plane().filter(|_| !stays) {
        Some(plane) => Ok(plane.clear()?),
        None => Ok(()),
    }
}

/// Waits until both interfaces exist again, and attaches `station` to them. Returns `None` if the station is to stop.
fn rejoin(
    station: &mut Station,
    file: &StationFile,
    manager: &mut Manager,
    sink: &mut dyn Sink,
    report: &impl Fn(StationReport),
) -> Result<Option<[Claim; 2]>, Fault> {
    let by_kernel = station.plane().is_some();
    let mut attach = |station: &mut Station, manager: &Manager, indices| {
        let claims = claim_all(file)?;
        let plane = by_kernel.then(|| Plane::load(indices)).transpose().map_err(Fault::Plane)?;
        plane.iter().for_each(|plane| store(plane, manager, report));
        station.reopen(indices, plane, sink)?;
        Ok(claims)
    };
    while station.wait() {
        manager.alive(station.clock().now());
        station.detach();
        let Ok(found) = indices(file) else {
            pause(RECOUNT);
            continue;
        };
        match attach(station, manager, found) {
            Ok(claims) => return Ok(Some(claims)),
            // The fault may be that one of them was removed or replaced meanwhile.
            Err(fault) if indices(file).is_ok_and(|now| now == found) => return Err(fault),
            Err(_) => {}
        }
    }
    Ok(None)
}

/// Makes the service manager store the list of split connections for the next process.
fn store(plane: &Plane, manager: &Manager, report: &impl Fn(StationReport)) {
    // Also stored if no connections end here, since the agent may be replaced.
    if let Err(error) = manager.store(STORED, plane.endings()) {
        let problem = "a station that is started after a crash will not reset silent connections";
        report(StationReport::Warning(format!(
            "{problem}: the service manager does not store them: {error}"
        )));
    }
}

/// Warning that a stage has ended an endless loop.
fn endless(stage: StageId) -> String {
    let place = format!("stage {} of the path", stage.0);
    format!(
        "{place} ended an endless loop: a fault of lasthop; please report it with the configuration"
    )
}

/// Interval at which a station that stops counts its connections, and at which missing interfaces are looked up.
const RECOUNT: Span = Span::millis(100);

/// Lets new connections pass unsplit, and waits until those that end at the station are over, for at most `limit`. Another
/// signal ends the wait.
fn drain(
    handle: &Handle,
    clock: Clock,
    limit: Span,
    signals: &SignalFd,
    report: &impl Fn(StationReport),
) {
    if limit == Span::ZERO {
        return;
    }
    let until = clock.now() + limit;
    let count = handle.ask(Station::drain_endings).unwrap_or(0);
    if count > 0 {
        report(StationReport::Draining(count, limit));
    }
    while clock.now() < until && handle.ask(|station| station.all_endings()).is_some_and(|n| n > 0)
    {
        let mut waits = [PollFd::new(signals.as_fd(), PollFlags::POLLIN)];
        if poll(&mut waits, timeout(RECOUNT)).is_ok_and(|ready| ready > 0) {
            return;
        }
    }
}

/// Resets the ends of connections of a dead station at these interfaces. The service manager may have stored its map;
/// otherwise the base filter has it. Returns the number of ends.
fn reset_orphans(stored: Option<OwnedFd>, ports: &mut [Port]) -> usize {
    let stored = stored.and_then(Orphans::of);
    let by_filter = || ports.iter().find_map(|port| Orphans::at(port.socket.ifindex()));
    let Some(orphans) = stored.or_else(by_filter) else { return 0 };
    let resets = orphans.resets();
    for _ in 0..orphans::ROUNDS * u32::from(!resets.is_empty()) {
        for port in &mut *ports {
            let own = resets.iter().filter(|(side, _)| *side == port.side);
            let frames: Vec<&[u8]> =
                own.flat_map(|(_, frames)| frames.each_ref().map(Outgoing::bytes)).collect();
            port.send(&frames);
        }
        pause(orphans::PAUSE);
    }
    resets.len()
}

fn timeout(time: Span) -> PollTimeout {
    PollTimeout::try_from(time.0 / 1_000_000).unwrap_or(PollTimeout::ZERO)
}

fn pause(time: Span) {
    // A signal only ends the pause early.
    let _ = poll(&mut [], timeout(time));
}

fn claim_all(file: &StationFile) -> Result<[Claim; 2], Fault> {
    Ok([claim(&file.settings.left)?, claim(&file.settings.right)?])
}

fn indices(file: &StationFile) -> Result<[u32; 2], Fault> {
    let index = |interface: &str| {
        let fault = |error| Fault::Interface { interface: interface.to_owned(), error };
        interfaces::index(interface).map_err(fault)
    };
    Ok([index(&file.settings.left)?, index(&file.settings.right)?])
}

/// Claims `interface` for this station while the result lives.
fn claim(interface: &str) -> Result<Claim, Fault> {
    let fault = |error| Fault::Interface { interface: interface.to_owned(), error };
    let index = interfaces::index(interface).map_err(fault)?;
    owner::claim(index)?.map_err(|owner| Fault::Owned { interface: interface.to_owned(), owner })
}

/// The packets that the path of `file` must inspect.
pub(crate) fn needs(file: &StationFile) -> Needs {
    let (path, _) = stages(file);
    crate::station::needs_of(&path, needed_events(file))
}

fn needed_events(file: &StationFile) -> Interest {
    let events =
        if file.settings.capture.is_some() { Interest::EVERYTHING } else { Interest::METRICS };
    let passages =
        if file.settings.subscribers.is_some() { Interest::PASSAGES } else { Interest::NOTHING };
    events.union(passages)
}

/// Selects the kernel as data plane, if available and not declined: with packet sockets alone, a station that is
/// killed cuts the link.
fn data_plane(file: &StationFile, report: &impl Fn(StationReport)) -> Result<Option<Plane>, Fault> {
    let indices = indices(file)?;
    let refused = match file.settings.plane {
        PlaneChoice::Sockets => None,
        choice => match Plane::start(indices) {
            Ok(plane) => {
                report(StationReport::Plane { plane: "kernel", instead: None });
                return Ok(Some(plane));
            }
            Err(refusal) if choice == PlaneChoice::Kernel => return Err(Fault::Plane(refusal)),
            Err(refusal) => Some((refusal.to_string(), refusal.remedy())),
        },
    };
    clear_claimed(file)?;
    report(StationReport::Plane { plane: "sockets", instead: refused });
    Ok(None)
}

/// Removes the remains of a station at the interfaces of `file`. Returns whether there were any.
///
/// # Errors
/// If this is not allowed: with packet sockets, packets would then pass twice. Also if a station runs there.
pub fn clear(file: &StationFile) -> Result<bool, Fault> {
    let _claims = claim_all(file)?;
    clear_claimed(file)
}

fn clear_claimed(file: &StationFile) -> Result<bool, Fault> {
    let mut found = false;
    for interface in [&file.settings.left, &file.settings.right] {
        let fault = |error| Fault::Base { interface: interface.clone(), error };
        let index = interfaces::index(interface).map_err(fault)?;
        found |= plane::base::clear(index).map_err(fault)?;
    }
    Ok(found)
}

/// The stages with a witness at each end, and the points of captures.
fn stages(file: &StationFile) -> (Stages, Vec<CapturePoint>) {
    let models = file.path.stages();
    let room = file.settings.limits.flows;
    let mut stages = vec![Stage::Witness(Box::new(Witness::of_all_within(Side::Right, room)))];
    stages.extend(models.iter().map(|stage| Stage::of_path(stage, file.settings.seed)));
    let last = stages.len();
    stages.push(Stage::Witness(Box::new(Witness::of_all_within(Side::Left, room))));
    let point = |i: usize, name: &str, is_link| CapturePoint {
        stage: StageId(i as u16),
        name: name.to_owned(),
        is_link,
    };
    let mut points = vec![point(0, "left", true)];
    points.extend(
        models.iter().enumerate().map(|(i, stage)| point(i + 1, &stage.name, stage.kind.is_link())),
    );
    points.push(point(last, "right", true));
    (Stages::new(stages, 1..last, vec![0, last], needed_events(file)), points)
}

fn open(interface: &str, stage: StageId, side: Side) -> Result<Port, Fault> {
    let fault = |error| Fault::Interface { interface: interface.to_owned(), error };
    let index = interfaces::index(interface).map_err(fault)?;
    Port::open(interface, index, stage, side).map_err(fault)
}

/// Wall-clock time at zero of the station's clock, nanoseconds since 1970.
#[expect(clippy::disallowed_methods, reason = "captures carry the time of day")]
pub(crate) fn epoch(clock: Clock) -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    (now.as_nanos() as u64).saturating_sub(clock.now().0)
}

fn reload(
    who: String,
    running: &Arc<Running>,
    old: &StationFile,
    reread: &impl Fn() -> Result<StationFile, String>,
) -> StationReport {
    let new = match reread() {
        Ok(new) => new,
        Err(why) => return StationReport::Warning(format!("the file is not read again: {why}")),
    };
    let (was, is) = (&old.settings, &new.settings);
    let fixed = [
        ("left", was.left == is.left),
        ("right", was.right == is.right),
        ("seed", was.seed == is.seed),
        ("control", was.socket == is.socket),
        ("metrics", was.metrics == is.metrics),
        ("capture", was.capture == is.capture),
        ("subscribers", was.subscribers == is.subscribers),
        ("limits", was.limits == is.limits),
        ("plane", was.plane == is.plane),
        ("forward-after-stop", was.forward_after_stop == is.forward_after_stop),
        ("drain", was.drain == is.drain),
    ];
    let changed: Vec<&str> = fixed.iter().filter(|(_, same)| !same).map(|(key, _)| *key).collect();
    if !changed.is_empty() {
        let keys = changed.join("`, `");
        return StationReport::Warning(format!("nothing is changed: `{keys}` need a restart"));
    }
    match running.replace(new.path) {
        Ok((stages, settings)) => StationReport::Reloaded { who, stages, settings },
        Err(trouble) => {
            StationReport::Warning(format!("nothing is changed: {trouble}; {}", trouble.help))
        }
    }
}
