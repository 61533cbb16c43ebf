//! The search, by number of faults. Runs with the same number are in the order of the packets with faults.

use lasthop_path::Stage;
use lasthop_proto::channel::{ErrorModel, ErrorSpec};
use lasthop_proto::link::{CrossTraffic, Fate, Fates, LinkLayerConfig, Silence};
use lasthop_proto::mac::MacConfig;
use lasthop_proto::units::{Span, Time};
use lasthop_scenario::{RadioStage, Scenario, StageKind};
use lasthop_sim::{ChoicePoint, End, Reason, RunEnd, Session};
use rayon::prelude::*;

use crate::found::{Exploration, Run, Violation};
use crate::oracle::{self, Silenced, Watch};
use crate::pattern::{Fault, Pattern, every_stage};

/// Time limit after which a run must be empty. It is longer than TIME-WAIT, and than the time for which agents store a closed
/// connection.
const PATIENCE: Span = Span::secs(7200);

/// The same for a base station whose periodic messages never end: longer than TIME-WAIT.
const SHORT: Span = Span::secs(120);

/// Horizon of runs with silence: longer than all hosts retransmit, and than two successive absences at an M-TCP.
const LONG: Span = Span::secs(5 * 3600);

/// Number of patterns that are extended in parallel. A search can be stopped after each such part.
const PART: usize = 256;

/// Creates hosts with other protocol stacks ([`lasthop_sim::Ends`]).
pub type MakeEnd = fn(&Scenario, usize, u64) -> Option<Box<dyn End>>;

/// The faults to combine, and the way to run them.
///
/// The expected maximum time of a run with F faults is the sum of three terms: 1 + F times the time of the run without
/// faults, 2^F - 1 initial retransmission timeouts, and the delays of its late packets. Runs that take longer are counted;
/// they are no violations.
#[derive(Clone, Debug)]
pub struct Options {
    /// Maximum number of faults in one run.
    pub faults: u32,
    /// Number of packets that may have a fault: the first ones, counted over all routers and channels.
    pub first: u64,
    pub fates: Vec<Fate>,
    pub method: Method,
    pub ends: MakeEnd,
}

/// How runs with a common beginning are produced. The results are the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Method {
    /// The run is copied before each packet. Where hosts cannot be copied, this is [`Method::Replay`].
    #[default]
    Fork,
    /// Every run starts at time zero.
    Replay,
}

/// Names of the stages of a scenario that decide the fates of packets: routers, lines and radios.
pub fn deciders(scenario: &Scenario) -> Vec<String> {
    let scripted = |spec: &Option<ErrorSpec>| {
        spec.as_ref().is_some_and(|spec| matches!(spec.model, ErrorModel::Scripted(_)))
    };
    let decides = |kind: &StageKind| match kind {
        StageKind::Cross(CrossTraffic { fates, .. }) => fates.is_some(),
        StageKind::Serial(line) => {
            line.frame_fates_left.is_some() || line.frame_fates_right.is_some()
        }
        StageKind::Radio(radio) => scripted(&radio.errors_left) || scripted(&radio.errors_right),
        _ => false,
    };
    let stages = every_stage(scenario).filter(|stage| decides(&stage.kind));
    stages.map(|stage| stage.name.clone()).collect()
}

/// Lets every router of cross traffic decide the fates of packets, and runs with silence last until all hosts give up.
fn prepared(scenario: &Scenario, options: &Options) -> Scenario {
    let mut scenario = scenario.clone();
    if options.fates.iter().any(|fate| matches!(fate, Fate::Silent(_))) {
        scenario.horizon = scenario.horizon.max(LONG);
    }
    let cells = scenario.roaming.iter_mut().flat_map(|roaming| &mut roaming.cells);
    for stage in scenario.path.iter_mut().chain(cells.flat_map(|cell| &mut cell.path)) {
        if let StageKind::Cross(cross) = &mut stage.kind {
            cross.fates.get_or_insert_with(|| Box::new(Fates::default()));
        }
    }
    scenario
}

/// Explores `scenario` with `seed`. `done` receives the number of finished runs; if it returns false, the search stops.
pub fn explore(
    scenario: &Scenario,
    seed: u64,
    options: &Options,
    done: &(dyn Fn(u64) -> bool + Sync),
) -> Exploration {
    resume(scenario, seed, options, Exploration::default(), done)
}

/// Continues the stopped search `begun` with the same arguments. Runs of lower levels are repeated, since their patterns are
/// not stored.
pub fn resume(
    scenario: &Scenario,
    seed: u64,
    options: &Options,
    begun: Exploration,
    done: &(dyn Fn(u64) -> bool + Sync),
) -> Exploration {
    if begun.complete {
        return begun;
    }
    let mut subject = Subject::new(prepared(scenario, options), seed, options);
    let mut found = begun;
    let plain = Pattern::default();
    let first = subject.finish(&plain, subject.begin(&subject.scenario, &plain));
    subject.plain = first.as_ref().map_or(0.0, |run| run.seconds);
    if found.levels.is_empty() {
        // The bound of the run without faults is its own time.
        found.take(0, vec![first.map(|run| Run { bound: run.seconds, ..run })]);
    }
    let mut patterns = vec![plain];
    for faults in 1..=options.faults {
        let level = found.levels.last().map_or(0, |level| level.faults);
        // A level that was finished before the stop is repeated only for its patterns.
        let known = faults < level;
        let skip = if faults == level { found.expanded as usize } else { 0 };
        // The patterns of the last level are not extended.
        let keep = faults < options.faults;
        let mut next = Vec::new();
        for (i, part) in patterns.chunks(PART).enumerate() {
            let counted = known || i * PART < skip;
            if counted && !keep {
                continue;
            }
            let expanded: Vec<_> = part
                .par_iter()
                .map(|pattern| {
                    let runs = subject.expand(pattern);
                    let goes_on = done(if counted { 0 } else { runs.len() as u64 });
                    (runs, goes_on)
                })
                .collect();
            let mut goes_on = true;
            for (runs, more) in expanded {
                if keep {
                    next.extend(
                        runs.iter().filter_map(|run| Some(run.as_ref().ok()?.pattern.clone())),
                    );
                }
                if !counted {
                    found.take(faults, runs);
                }
                goes_on &= more;
            }
            if !counted {
                found.expanded = (i * PART + part.len()) as u64;
            }
            if !goes_on {
                return found;
            }
        }
        patterns = next;
    }
    found.complete = true;
    found
}

/// The scenario of all runs, and its properties.
struct Subject<'a> {
    scenario: Scenario,
    seed: u64,
    split: bool,
    /// Whether hosts move. Then the base station that they left does not see the end of their connections.
    roams: bool,
    /// The scenario without base stations, if it has any.
    bridge: Option<Scenario>,
    /// Whether there is more than one connection. [`Watch`] does not distinguish them, so it does not recognise a packet that
    /// arrives after the end of its own connection.
    several: bool,
    /// Whether hosts speak QUIC, which needs paths for 1200 bytes (RFC 9000, 14).
    quic: bool,
    /// Whether a base station sends periodically without end: the status messages of AIRMAIL, or beacons of power saving.
    beats: bool,
    /// The longest initial retransmission timeout of the hosts, in seconds.
    rto: f64,
    /// Time of the run without faults, in seconds.
    plain: f64,
    options: &'a Options,
}

type Begun<'a> = (Session<&'a Scenario>, Watch);

/// A decision of a run about the fate of a packet: the number of deadlines up to it, the deciding point, and the number of the
/// packet there.
struct Choice {
    wake: u64,
    point: ChoicePoint,
    place: u64,
}

impl<'o> Subject<'o> {
    fn new(scenario: Scenario, seed: u64, options: &'o Options) -> Subject<'o> {
        let split = oracle::splits(&scenario);
        let timeouts = scenario.hosts.iter().map(|host| host.tcp.rto_initial);
        let rto = timeouts.max().unwrap_or(Span::ZERO).as_secs_f64();
        let roams = scenario.roaming.is_some();
        let beats = every_stage(&scenario).any(|stage| match &stage.kind {
            StageKind::Radio(RadioStage { hop: Some(hop), .. }) => {
                let beacons = matches!(&hop.mac, MacConfig::Dcf(dcf) if dcf.power_save.is_some());
                beacons || matches!(hop.link, LinkLayerConfig::Airmail(_))
            }
            _ => false,
        });
        let connections: u32 = scenario.transfers.iter().map(|t| t.connections()).sum();
        let bridge = oracle::bridged(&scenario);
        let several = connections > 1;
        let quic = scenario.transfers.iter().any(|transfer| transfer.quic.is_some());
        Subject {
            scenario,
            seed,
            split,
            roams,
            bridge,
            several,
            quic,
            beats,
            rto,
            plain: 0.0,
            options,
        }
    }

    fn begin<'a>(&'a self, scenario: &'a Scenario, pattern: &Pattern) -> Begun<'a> {
        let watch = Watch::default();
        let mut session = Session::with_ends(scenario, self.seed, &self.options.ends, &watch);
        for fault in &pattern.0 {
            session.set_fate(fault.point, fault.place, fault.fate);
        }
        (session, watch)
    }

    /// The first decisions of the run with `pattern`.
    fn choices(&self, pattern: &Pattern) -> Vec<Choice> {
        let (mut session, mut watch) = self.begin(&self.scenario, pattern);
        let mut choices = Vec::new();
        while (choices.len() as u64) < self.options.first {
            let decided = session.run_past_choice(&mut watch);
            if decided.is_empty() {
                break;
            }
            let wake = session.wakes();
            choices.extend(decided.iter().map(|(point, place)| Choice {
                wake,
                point: *point,
                place: *place,
            }));
        }
        choices.truncate(usize::try_from(self.options.first).unwrap_or(usize::MAX));
        choices
    }

    /// Runs every pattern that extends `pattern` by one fault after its last one.
    fn expand(&self, pattern: &Pattern) -> Vec<Result<Run, Violation>> {
        let choices = self.choices(pattern);
        let last = pattern.0.last().map(|fault| (fault.point, fault.place));
        let is_last = |choice: &Choice| Some((choice.point, choice.place)) == last;
        let from = match (last, choices.iter().position(is_last)) {
            (None, _) => 0,
            (_, Some(i)) => i + 1,
            // The last fault concerns the last packet that may have one.
            (_, None) => choices.len(),
        };
        let mut runs = Vec::new();
        let (mut session, mut watch) = self.begin(&self.scenario, pattern);
        let forks = self.options.method == Method::Fork;
        for Choice { wake, point, place } in choices.into_iter().skip(from) {
            // The copy is made before the deadline at which the fate of the packet is decided.
            if forks {
                session.run_wakes((wake - 1).saturating_sub(session.wakes()), &mut watch);
            }
            let narrow = |fate: Fate| self.quic && fate == Fate::Silent(Silence::Narrow);
            let may = |fate: &&Fate| session.can_meet(point, **fate) && !narrow(**fate);
            let fates = self.options.fates.iter().filter(may);
            for fate in fates {
                let pattern = pattern.with(Fault { point, place, fate: *fate });
                let copy = if forks { session.fork() } else { None };
                let begun = match copy {
                    Some(mut copy) => {
                        copy.set_fate(point, place, *fate);
                        (copy, watch)
                    }
                    None => self.begin(&self.scenario, &pattern),
                };
                runs.push(self.finish(&pattern, begun));
            }
        }
        runs
    }

    /// Expected maximum time of the run with `pattern`, in seconds. See [`Options`].
    fn bound(&self, pattern: &Pattern) -> f64 {
        let faults = pattern.0.len() as f64;
        let lateness = pattern.lateness(&self.scenario).as_secs_f64();
        let timeouts = (1_u64 << pattern.0.len().min(32)) - 1;
        (1.0 + faults) * self.plain + timeouts as f64 * self.rto + lateness
    }

    /// Checks the end of a run with a silence against runs without base stations. A packet with the same number may be
    /// another one there, so the silence may begin at any packet up to this one.
    fn check_silence(
        &self,
        pattern: &Pattern,
        end: &RunEnd,
        stages: &[Stage],
    ) -> Result<(), String> {
        let silences = pattern.silences();
        let check =
            |bridge| oracle::check_silence(&self.scenario, end, stages, silences.clone(), bridge);
        let Some(bridge) = &self.bridge else {
            let plain = self.silenced(&self.scenario, &Pattern::default());
            return check(Silenced { complete: false, ended: false, ..plain });
        };
        let checked = check(self.silenced(bridge, pattern));
        let earlier =
            || pattern.earlier_silences().any(|p| check(self.silenced(bridge, &p)).is_ok());
        if checked.is_err() && earlier() { Ok(()) } else { checked }
    }

    fn silenced(&self, scenario: &Scenario, pattern: &Pattern) -> Silenced {
        let (mut session, mut watch) = self.begin(scenario, pattern);
        session.run_until(Time::NEVER, &mut watch);
        Silenced::of(&session.end(), session.stages())
    }

    /// Runs to the end, and checks the conditions of [`oracle`].
    fn finish(&self, pattern: &Pattern, begun: Begun<'_>) -> Result<Run, Violation> {
        let (mut session, mut watch) = begun;
        session.run_until(Time::NEVER, &mut watch);
        let end = session.end();
        let Watch { delivered_at, retransmissions, timeouts, .. } = watch;
        if pattern.silences().next().is_some() {
            let checked = oracle::check(&end, &watch, self.split, false, true)
                .and_then(|()| self.check_silence(pattern, &end, session.stages()));
            return match checked {
                Ok(()) => Ok(Run {
                    pattern: pattern.clone(),
                    seconds: (delivered_at - Time::ZERO).as_secs_f64(),
                    bound: f64::INFINITY,
                    retransmissions,
                    timeouts,
                }),
                Err(message) => Err(Violation { pattern: pattern.clone(), what: message }),
            };
        }
        let checked = oracle::check(&end, &watch, self.split, false, false)
            .and_then(|()| {
                let bytes: u64 = end.transfers.iter().map(|transfer| transfer.delivered).sum();
                oracle::demand(end.reason != Reason::Horizon, || {
                    format!("not finished within the horizon, {bytes} bytes delivered")
                })?;
                oracle::demand(end.transfers.iter().all(|transfer| transfer.complete), || {
                    format!("reset or given up, {bytes} bytes delivered")
                })
            })
            .and_then(|()| {
                if self.beats {
                    session.settle(SHORT, &mut watch);
                    return Ok(());
                }
                oracle::demand(session.settle(PATIENCE, &mut watch), || {
                    "something still happens two hours after the end".into()
                })
            })
            .and_then(|()| {
                let late = pattern.0.iter().any(|fault| fault.fate == Fate::VeryLate);
                let stray = (watch.has_strays() || late) && !self.split;
                let excused = stray || self.roams || self.several || self.beats;
                oracle::check_rest(session.stages(), excused)
            });
        match checked {
            Ok(()) => Ok(Run {
                pattern: pattern.clone(),
                seconds: (delivered_at - Time::ZERO).as_secs_f64(),
                bound: self.bound(pattern),
                retransmissions,
                timeouts,
            }),
            Err(message) => Err(Violation { pattern: pattern.clone(), what: message }),
        }
    }
}
