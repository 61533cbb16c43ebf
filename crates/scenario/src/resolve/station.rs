//! The file of a base station: two interfaces, the stages between them, and access to its state.

use core::net::SocketAddr;

use lasthop_proto::agent::SnoopConfig;
use lasthop_proto::units::{Bytes, Span};

use super::path;
use super::transfer::Directions;
use crate::document::{Node, Table};
use crate::error::{Code, Diagnostic, Error, Location, Warning};
use crate::files;
use crate::live::LivePath;
use crate::model::Stage;
use crate::parts::station::{Captures, Limits, PlaneChoice, StationValues, SubscriberConfig, keys};
use crate::read::{Reader, read};
use crate::reading::take;
use crate::schema;

/// The settings of a station's file.
#[derive(Clone, Debug)]
pub struct StationFile {
    /// The interface on the wired side.
    pub left: String,
    /// The interface on the wireless side.
    pub right: String,
    /// Seed of all random draws.
    pub seed: u64,
    /// The stages between the interfaces, which can be changed while they run.
    pub path: LivePath,
    /// The control socket of `lasthop ctl`, if the file has one.
    pub socket: Option<String>,
    /// Address for Prometheus, if any.
    pub metrics: Option<SocketAddr>,
    /// Captures, if any.
    pub capture: Option<Captures>,
    /// The view of subscribers, if any.
    pub subscribers: Option<SubscriberConfig>,
    /// Limits of connections and memory.
    pub limits: Limits,
    /// The data plane.
    pub plane: PlaneChoice,
    /// Whether the kernel continues to forward after a clean stop.
    pub forward_after_stop: bool,
    /// Time limit for the connections that end at the station to finish before a stop.
    pub drain: Span,
}

/// Builds a station's settings from its document.
pub(crate) fn station(document: Table) -> Result<(StationFile, Vec<Warning>), Error> {
    let values = read_values(&document)?;
    let (stages, warnings) = stages(&document)?;
    let path = LivePath::of_station(document, stages);
    let station = StationFile {
        left: values.left,
        right: values.right,
        seed: values.seed,
        path,
        socket: values.shared.socket,
        metrics: values.shared.metrics,
        capture: values.capture,
        subscribers: values.subscribers,
        limits: values.limits,
        plane: values.plane,
        forward_after_stop: values.forward_after_stop,
        drain: values.drain,
    };
    Ok((station, warnings))
}

fn open(document: &Table) -> Result<Reader<'_>, Error> {
    Reader::top(document, "station's file", &[schema::keys("station"), &["path"]].concat())
}

fn read_values(document: &Table) -> Result<StationValues, Error> {
    take(&open(&*files::put_in(document)?)?, keys).map(|(values, _)| values)
}

/// The stages of a station's document, checked against its limits.
pub(crate) fn stages(document: &Table) -> Result<(Vec<Stage>, Vec<Warning>), Error> {
    let document = &*files::put_in(document)?;
    let file = open(document)?;
    let mut notes = Vec::new();
    // The wired side is on the left, so the data of `errors-data` travels to the right.
    let mut stages = path::read(&file, Directions { right: true, left: false }, &mut notes)?;
    path::suspect_sizes(&mut stages);
    within_limits(&file, read_values(document)?.limits)?;
    Ok((stages, notes.into_iter().map(|note| note.warning).collect()))
}

/// Whether the agents are within the limits. Their options are checked by key, so that this holds for every
/// agent.
fn within_limits(file: &Reader<'_>, limits: Limits) -> Result<(), Error> {
    let default = SnoopConfig::west97();
    let mut caches = 0_u64;
    let items = file.node("path").and_then(Node::as_array).unwrap_or_default();
    for (i, item) in items.iter().enumerate() {
        let Some(stage) = item.as_table() else { continue };
        let Some(agent) = stage.get("agent") else { continue };
        // `none` uses no memory. Options next to it are for an agent that may replace it.
        let is_none = agent.as_str() == Some("none");
        let place = |key: &str| stage.get(key).map_or(&agent.at, |node| &node.at);
        let path = |key: &str| format!("path.{}.{key}", i + 1);
        let flows = match stage.get("flows") {
            Some(node) => read::<u64>(node, &path("flows"), "flows")?,
            None if is_none => 0,
            None => default.flows as u64,
        };
        if flows > limits.flows as u64 {
            let help =
                format!("`[limits]` allows {}: lower `flows` or raise the limit", limits.flows);
            return Err(beyond(
                &path("flows"),
                place("flows"),
                format!("the agent watches up to {flows} flows"),
                help,
            ));
        }
        let cache = match stage.get("cache") {
            Some(node) => read::<Bytes>(node, &path("cache"), "cache")?,
            None if is_none => Bytes(0),
            None => default.cache,
        };
        caches = caches.saturating_add(cache.0);
        if caches > limits.cache.0 {
            let help = format!(
                "`[limits]` allows {} for all agents together: lower `cache` or raise the limit",
                limits.cache
            );
            return Err(beyond(
                &path("cache"),
                place("cache"),
                format!("the agents cache up to {}", Bytes(caches)),
                help,
            ));
        }
    }
    Ok(())
}

fn beyond(key: &str, at: &Location, message: String, help: String) -> Error {
    Diagnostic::new(Code::OutOfRange, key, at)
        .message(message)
        .label("beyond the limits")
        .help(help)
        .into()
}
