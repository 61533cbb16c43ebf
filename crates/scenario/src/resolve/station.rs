//! The values and the stages of a base station's file.

use lasthop_proto::agent::SnoopConfig;
use lasthop_proto::units::Bytes;

use super::path;
use super::transfer::Directions;
use crate::document::Table;
use crate::error::{Code, Diagnostic, Error, Location, Warning};
use crate::files;
use crate::model::Stage;
use crate::parts::station::{Limits, StationSettings, keys};
use crate::read::{Reader, read};
use crate::reading::take;
use crate::schema;

fn open(document: &Table) -> Result<Reader<'_>, Error> {
    Reader::top(document, "station's file", &[schema::keys("station"), &["path"]].concat())
}

pub(crate) fn values(document: &Table) -> Result<StationSettings, Error> {
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
    within_limits(&file, values(document)?.limits)?;
    Ok((stages, notes.into_iter().map(|note| note.warning).collect()))
}

/// Whether the agents are within the limits. Their options are checked by key, so that this holds for every
/// agent.
fn within_limits(file: &Reader<'_>, limits: Limits) -> Result<(), Error> {
    let default = SnoopConfig::west97();
    let mut caches = 0_u64;
    let items = file.items("path");
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
