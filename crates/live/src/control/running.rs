//! The interface of a running station to clients: identity, status and changes of its path.

use std::sync::{Arc, Mutex, OnceLock};

use lasthop_observe::Nothing;
use lasthop_observe::subscribers::{Order, Overview, Prefix};
use lasthop_path::Stage;
use lasthop_proto::agent::{AgentConfig, BaseStation};
use lasthop_scenario::{LivePath, Setting, StageKind};
use serde_json::Value;

use super::Served;
use super::protocol::{
    Changed, Endings, PortStatus, Request, Response, StageStatus, Status, Trouble,
};
use crate::counters::Counters;
use crate::lock;
use crate::metrics::{self, Figures};
use crate::recorder::Recorded;
use crate::station::{Handle, Station};
use crate::status::PlaneStatus;
use crate::subscribers::{SubscriberList, SubscriberView};

/// Identity of a station.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct About {
    /// `station` or `testbed`.
    pub world: &'static str,
    /// Its name.
    pub name: String,
    /// Seed of all random draws.
    pub seed: u64,
}

/// A running station.
pub struct Running {
    about: About,
    handle: Handle,
    counters: Arc<Counters>,
    recorded: Option<Recorded>,
    path: Mutex<LivePath>,
    /// Logs changes by clients.
    log: OnceLock<Log>,
    /// The view of subscribers, and the number of them in the metrics.
    subscribers: OnceLock<(SubscriberView, usize)>,
}

/// Called with the client and its changes.
type Log = Box<dyn Fn(&str, &Changed) + Send + Sync>;

impl Running {
    /// Controls the station behind `handle`. Its inner stages are those of `path`.
    pub fn new(
        about: About,
        handle: Handle,
        path: LivePath,
        counters: Arc<Counters>,
        recorded: Option<Recorded>,
    ) -> Arc<Running> {
        let (path, log, subscribers) = (Mutex::new(path), OnceLock::new(), OnceLock::new());
        let running = Running { about, handle, counters, recorded, path, log, subscribers };
        running.note_idleness(&lock(&running.path));
        Arc::new(running)
    }

    /// With only empty stages and no recorder, frames need no inspection.
    fn note_idleness(&self, path: &LivePath) {
        let does_nothing =
            |kind: &StageKind| matches!(kind, StageKind::Agent(AgentConfig::None(_)));
        let idle = path.stages().iter().all(|stage| does_nothing(&stage.kind));
        self.counters.set_idle(idle && self.recorded.is_none());
    }

    /// Sets keys of the path, all or none. `endings` is the treatment of connections that end at an agent
    /// replaced by the change.
    ///
    /// # Errors
    /// If a value is wrong, the station has exited, or such connections exist without `endings`.
    pub fn set(&self, values: &[String], endings: Option<Endings>) -> Result<Changed, Trouble> {
        let mut path = lock(&self.path);
        let (new, settings, warnings) = path.set(values)?;
        let (lost, count) = self.change(&path, &new, endings)?;
        *path = new;
        let warnings = warnings.into_iter().map(|warning| warning.message).collect();
        let endings = endings.filter(|_| count > 0).map(|treatment| (treatment, count));
        Ok(Changed { settings, warnings, lost, endings })
    }

    /// Installs a log of changes over the control socket. Only the first call has an effect.
    pub fn log_changes(&self, log: impl Fn(&str, &Changed) + Send + Sync + 'static) {
        let _ = self.log.set(Box::new(log));
    }

    /// Shows subscribers to clients, and at most `metrics` of them in the metrics. Only the first call has an effect.
    pub fn show_subscribers(&self, view: SubscriberView, metrics: usize) {
        let _ = self.subscribers.set((view, metrics));
    }

    /// The first `top` subscribers of an order.
    fn list_subscribers(
        &self,
        by: Order,
        top: usize,
        within: Option<Prefix>,
    ) -> Result<SubscriberList, Trouble> {
        let (view, _) = self.subscribers.get().ok_or_else(|| {
            Trouble::new(
                "no-subscribers",
                "this station has no view of subscribers",
                "add a table `[subscribers]` to its file and restart it",
            )
        })?;
        Ok(view.list(by, top, within))
    }

    /// Replaces the path by another of the same shape. Returns the new stages and the changed keys.
    /// Connections that end at an agent remain there until they close.
    ///
    /// # Errors
    /// If the shape differs, or the station has exited.
    pub fn replace(&self, new: LivePath) -> Result<(Vec<String>, Vec<Setting>), Trouble> {
        let mut path = lock(&self.path);
        if let Some(why) = path.differs_in_shape(&new) {
            return Err(Trouble::new("bad-path", why, "restart the station to change its stages"));
        }
        let stages = path.stages().iter().zip(new.stages());
        let names = stages.filter(|(was, is)| was != is).map(|(_, is)| is.name.clone()).collect();
        self.change(&path, &new, Some(Endings::Drain))?;
        let settings = path.changes_to(&new);
        *path = new;
        Ok((names, settings))
    }

    /// Replaces the stages that differ. Returns the number of packets that an agent held, and of connections
    /// that ended there.
    fn change(
        &self,
        old: &LivePath,
        new: &LivePath,
        endings: Option<Endings>,
    ) -> Result<(usize, usize), Trouble> {
        let seed = self.about.seed;
        let pairs = old.stages().iter().zip(new.stages()).enumerate();
        let changed: Vec<(usize, Stage)> = pairs
            .filter(|(_, (was, is))| was != is)
            .map(|(i, (_, is))| (i, Stage::of_path(is, seed)))
            .collect();
        let replaced = self.handle.ask(move |station| {
            let first = station.path().inner().start;
            let count = changed.iter().map(|(i, _)| station.endings(first + i)).sum();
            if count > 0 && endings.is_none() {
                return Err(count);
            }
            let lost = changed.into_iter().map(|(i, stage)| {
                if endings == Some(Endings::Reset) {
                    station.reset_endings(first + i, &mut Nothing);
                }
                station.path_mut().replace_stage(first + i, stage)
            });
            Ok((lost.sum(), count))
        });
        let done = replaced.ok_or_else(gone)?.map_err(|count: usize| {
            let (noun, verb) = if count == 1 { ("connection", "ends") } else { ("connections", "end") };
            Trouble::new(
                "connections-end-here",
                format!("{count} {noun} {verb} at this station, and would break"),
                "`--drain` lets them continue until they end, `--reset` resets them now at both ends",
            )
        })?;
        self.note_idleness(new);
        Ok(done)
    }

    /// The whole status.
    ///
    /// # Errors
    /// If the station has exited.
    pub fn status(&self) -> Result<Status, Trouble> {
        let view = self.subscribers.get();
        let overview = view.map(|(view, _)| view.list(Order::default(), 0, None).overview);
        self.status_with(overview)
    }

    fn status_with(&self, subscribers: Option<Overview>) -> Result<Status, Trouble> {
        // The lock keeps the path unchanged until both are read.
        let path = lock(&self.path);
        let snapshot = self.handle.ask(Snapshot::of).ok_or_else(gone)?;
        let models = path.stages();
        let stages = snapshot.stages.into_iter().enumerate().map(|(i, mut stage)| {
            stage.happened = self.counters.at(i);
            let model = i.checked_sub(snapshot.first).and_then(|i| models.get(i));
            if let Some(model) = model {
                stage.name.clone_from(&model.name);
                stage.config = serde_json::to_value(&model.kind).expect("a stage is JSON");
            } else {
                stage.name = if i < snapshot.first { "left" } else { "right" }.to_owned();
            }
            stage
        });
        Ok(Status {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            world: self.about.world.to_owned(),
            name: self.about.name.clone(),
            seed: self.about.seed,
            uptime_ns: snapshot.uptime_ns,
            ports: snapshot.ports,
            stages: stages.collect(),
            capture: self.recorded.as_ref().map(Recorded::status),
            plane: snapshot.plane,
            subscribers,
        })
    }
}

impl Served for Running {
    fn answer(&self, request: &Request) -> Response {
        let answer = match request {
            Request::Status {} => self.status().map(|status| Response::Status(Box::new(status))),
            Request::Get { key } => {
                lock(&self.path).get(key).map(Response::Value).map_err(Trouble::from)
            }
            Request::Set { values, endings } => self.set(values, *endings).map(Response::Changed),
            Request::Subscribers { by, top, within } => {
                let list = self.list_subscribers(*by, *top, *within);
                list.map(|list| Response::Subscribers(Box::new(list)))
            }
        };
        answer.unwrap_or_else(Response::Error)
    }

    fn changed(&self, who: &str, changed: &Changed) {
        if let Some(log) = self.log.get() {
            log(who, changed);
        }
    }
}

impl Figures for Running {
    fn page(&self) -> Result<String, String> {
        let view = self.subscribers.get();
        let list = view.map(|(view, most)| view.list(Order::Goodput, *most, None));
        let status = self.status_with(list.as_ref().map(|list| list.overview.clone()));
        status
            .map(|status| metrics::render(&status, list.as_ref()))
            .map_err(|trouble| trouble.message)
    }
}

fn gone() -> Trouble {
    Trouble::new("gone", "the station has stopped", "start it again: `lasthop station FILE`")
}

/// The part of the status that only the station's loop can read.
struct Snapshot {
    first: usize,
    uptime_ns: u64,
    ports: Vec<PortStatus>,
    stages: Vec<StageStatus>,
    plane: Option<PlaneStatus>,
}

impl Snapshot {
    fn of(station: &mut Station) -> Snapshot {
        let path = station.path();
        let counts = path.counts();
        let stages = path.stages().iter().zip(counts).map(|(stage, (_, packets))| {
            let agent = stage.agent();
            let (kind, flows) = match stage {
                Stage::Host(_) | Stage::End(_) => ("host", None),
                Stage::Witness(witness) => ("host", Some(witness.connections())),
                Stage::Line(_) | Stage::Serial(_) | Stage::Varied(_) | Stage::Netem(_) => {
                    ("link", None)
                }
                Stage::Tbf(_) => ("tbf", None),
                Stage::Police(_) => ("police", None),
                Stage::Radio(_) | Stage::VariedRadio(_) | Stage::Hop(_) | Stage::Hops(_) => {
                    ("radio", None)
                }
                Stage::Agent(agent) => ("agent", Some(agent.flows())),
                Stage::Cross(_) => ("cross", None),
                Stage::Junction(_) => ("place", None),
            };
            StageStatus {
                name: String::new(),
                kind: kind.to_owned(),
                config: Value::Null,
                flows,
                state_bytes: agent.map(|agent| agent.state_bytes()),
                peak_state_bytes: agent.map(|agent| agent.peak_state_bytes()),
                packets,
                happened: Default::default(),
            }
        });
        let plane = station.plane().map(|plane| PlaneStatus {
            shows: format!("{:?}", plane.needs()).to_lowercase(),
            counts: plane.counts(),
        });
        Snapshot {
            plane,
            first: path.inner().start,
            uptime_ns: station.clock().now().0,
            stages: stages.collect(),
            ports: station
                .port_status()
                .map(|(name, side, counts)| PortStatus {
                    name: name.to_owned(),
                    side: format!("{side:?}").to_lowercase(),
                    counts,
                })
                .collect(),
        }
    }
}
