//! Conversion of a document to a scenario, or to its first fault.

mod agent;
mod battery;
pub(crate) mod cells;
mod check;
mod errors;
mod exchange;
mod feasible;
mod hop;
mod host;
mod kernel;
mod netem;
mod path;
pub(crate) mod station;
mod traffic;
mod transfer;

use crate::document::Table;
use crate::error::{Error, Location, Noted};
use crate::files;
use crate::model::{Scenario, StageKind, World};
use crate::parts::top;
use crate::read::{Reader, SCENARIO, check_name};
use crate::reading::take;
use crate::schema;

/// Builds the scenario that a document describes; its `[vary]` table has been applied already.
pub(crate) fn scenario(document: &Table, name: &str) -> Result<(Scenario, Vec<Noted>), Error> {
    let document = files::put_in(document)?;
    let file = Reader::top(&document, SCENARIO, schema::scenario())?;
    let (top, _) = take(&file, top::keys)?;
    let name = match top.name {
        Some(given) => {
            check_name(&given, "name", &file.location("name"))?;
            given
        }
        None => tidy(name),
    };
    let (world, first_seed, horizon) = (top.world, top.first_seed, top.horizon);
    let runs = if world == World::Testbed { top.testbed_runs } else { top.runs };

    let mut specs = host::read(&file)?;
    let transfers = transfer::read(&file, &specs)?;
    let hosts = transfer::assign_sides(&mut specs, &transfers)?;
    let mut notes = Vec::new();
    let data = transfer::directions(&hosts, &transfers);
    let mut path = path::read(&file, data, &mut notes)?;
    let around = cells::Around { hosts: &hosts, data, wired: &path, horizon };
    let roaming = cells::read(&file, &around, &mut notes)?.map(Box::new);
    path::takes_time(&path, roaming.as_deref(), &hosts, &file)?;
    if roaming.is_none() {
        path::give_stations(&mut path, &hosts, &file.location("path"))?;
    }
    if path
        .iter()
        .any(|stage| matches!(&stage.kind, StageKind::Cross(cross) if cross.fates.is_some()))
    {
        // Scripted packets may be lost for ever, as on real paths.
        path::suspect_sizes(&mut path);
    }
    let batteries: Vec<Option<Location>> =
        specs.iter().map(|spec| spec.battery.as_ref().map(|(_, at)| at.clone())).collect();
    if roaming.is_some() {
        host::none_with_access(&specs)?;
        battery::none_that_moves(&hosts, &batteries)?;
    }
    battery::give_hops(&mut path, &hosts, &batteries)?;

    if world == World::Testbed {
        feasible::in_testbed(&hosts, &transfers)?;
        if let Some(refused) = specs.iter_mut().find_map(|spec| spec.refused.take()) {
            return Err(refused);
        }
        let not_applied = specs.iter_mut().flat_map(|spec| core::mem::take(&mut spec.not_applied));
        notes.extend(not_applied.map(|warning| Noted { warning, in_every_cell: false }));
    }
    feasible::protocols(world, &hosts, &transfers)?;
    feasible::bursts(&hosts, &transfers)?;
    feasible::next_to_hosts(&hosts, &transfers, &path)?;
    let transfers = transfers.into_iter().map(|spec| spec.transfer).collect();
    let runs = runs as u32;
    let scenario =
        Scenario { name, world, runs, first_seed, horizon, hosts, transfers, path, roaming };
    check::run(&scenario, &file, &specs, &mut notes);
    Ok((scenario, notes))
}

/// The valid name closest to a file's stem.
fn tidy(stem: &str) -> String {
    let tidied: String = stem
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' })
        .take(64)
        .collect();
    let tidied = tidied.trim_matches('-');
    if tidied.is_empty() { "scenario".to_owned() } else { tidied.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_stem_gives_a_name() {
        assert_eq!(tidy("my link (2)"), "my-link--2");
        assert_eq!(tidy("日本"), "scenario");
        assert!(check_name(&tidy("-x-"), "name", &Location::file(0..0)).is_ok());
    }
}
