//! The runs of a scenario: every combination of its axes, each with every seed.

use core::fmt;

use serde::{Deserialize, Serialize, Serializer};

use crate::document::Table;
use crate::error::{Error, Noted, Warning};
use crate::model::{Scenario, Stack, World};
use crate::resolve;
use crate::vary::AxisSpec;

/// Part of every [`RunKey`]: incremented when a change of the machines invalidates old results without a new
/// version number. A sweep thus never continues with results of another program.
pub const RESULTS: u32 = 1;

/// All runs of a scenario file.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Plan {
    /// The scenario's name.
    pub name: String,
    /// The axes; the first one changes slowest.
    pub axes: Vec<Axis>,
    /// One scenario for each combination; exactly one without axes.
    pub cells: Vec<Cell>,
}

/// An axis: a varied key.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Axis {
    /// Its key as it was written, such as `agent` or `host.fixed.tcp`.
    pub name: String,
    /// Its values in the order of the file.
    pub labels: Vec<String>,
}

/// One combination of the axes.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Cell {
    /// The value on each of [`Plan::axes`].
    pub labels: Vec<String>,
    /// The scenario of the cell.
    pub scenario: Scenario,
}

/// One run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Run {
    /// Index of its cell in [`Plan::cells`].
    pub cell: usize,
    /// Its seed.
    pub seed: u64,
    /// Names its result.
    pub key: RunKey,
}

/// Name of a run's result: equal keys mean equal results. It includes the seed, the version of this program,
/// and everything in the scenario that affects one run. It excludes the scenario's name and the number of
/// runs, so a sweep can be renamed or extended without losing results.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunKey(u128);

impl Plan {
    /// All runs, cell by cell.
    pub fn runs(&self) -> impl Iterator<Item = Run> + '_ {
        self.cells.iter().enumerate().flat_map(|(index, cell)| cell.runs(index))
    }

    /// Number of runs.
    pub fn count(&self) -> u64 {
        self.cells.iter().map(|cell| u64::from(cell.scenario.runs)).sum()
    }
}

impl Cell {
    /// Its runs, as those of cell number `index`.
    pub fn runs(&self, index: usize) -> impl Iterator<Item = Run> + use<> {
        let scenario = Digest::of(&self.scenario);
        self.seeds().map(move |seed| Run { cell: index, seed, key: scenario.key(seed) })
    }

    /// The seeds of its runs.
    pub fn seeds(&self) -> impl Iterator<Item = u64> + use<> {
        let first = self.scenario.first_seed;
        (0..u64::from(self.scenario.runs)).map(move |i| first.wrapping_add(i))
    }

    /// Its labels in one line, such as `agent=snoop tcp=reno`; empty without axes.
    pub fn title(&self, axes: &[Axis]) -> String {
        let pairs: Vec<String> = axes
            .iter()
            .zip(&self.labels)
            .map(|(axis, label)| format!("{}={label}", axis.name))
            .collect();
        pairs.join(" ")
    }
}

impl RunKey {
    /// The key in bytes, for a digest of several.
    pub fn bytes(self) -> [u8; 16] {
        self.0.to_be_bytes()
    }

    /// The key of the run of `scenario` with `seed`.
    pub fn of(scenario: &Scenario, seed: u64) -> RunKey {
        Digest::of(scenario).key(seed)
    }
}

impl fmt::Display for RunKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for RunKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for RunKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("a scenario has only text for keys and finite numbers")
}

/// FNV-1a of 128 bits. Names need no protection against forgery, and are the same on every machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Digest(u128);

impl Default for Digest {
    fn default() -> Digest {
        Digest(Digest::OFFSET)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl Digest {
    const OFFSET: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;

    /// Adds bytes.
    #[must_use]
    pub fn bytes(self, bytes: &[u8]) -> Digest {
        Digest(
            bytes
                .iter()
                .fold(self.0, |hash, byte| (hash ^ u128::from(*byte)).wrapping_mul(Digest::PRIME)),
        )
    }

    fn of(scenario: &Scenario) -> Digest {
        let Scenario { world, horizon, hosts, transfers, path, roaming, .. } = scenario;
        let text = json(&(horizon, hosts, transfers, path));
        let simulated = Digest(Digest::OFFSET)
            .bytes(env!("CARGO_PKG_VERSION").as_bytes())
            .bytes(&RESULTS.to_be_bytes())
            .bytes(text.as_bytes());
        let simulated = match roaming {
            None => simulated,
            Some(roaming) => simulated.bytes(json(roaming).as_bytes()),
        };
        match world {
            World::Sim => simulated,
            // The TCP implementation of a host affects results in the testbed only.
            World::Testbed => hosts.iter().fold(simulated.bytes(b"testbed"), |key, host| {
                let Stack::Kernel { preset, settings } = &host.stack else {
                    return key.bytes(b"lasthop");
                };
                let key = key.bytes(preset.as_bytes());
                if settings.is_empty() { key } else { key.bytes(json(settings).as_bytes()) }
            }),
        }
    }

    fn key(self, seed: u64) -> RunKey {
        RunKey(self.bytes(&seed.to_be_bytes()).0)
    }
}

/// Builds the scenario of every combination of the axes.
pub(crate) fn expand(
    document: &Table,
    name: &str,
    axes: &[AxisSpec],
) -> Result<(Plan, Vec<Warning>), Error> {
    let total: usize = axes.iter().map(|axis| axis.points.len()).product();
    let mut cells = Vec::with_capacity(total);
    let mut notes: Vec<(Noted, usize)> = Vec::new();
    for index in 0..total {
        let (scenario, labels, noted) = cell(document, name, axes, index)?;
        for note in noted {
            match notes.iter_mut().find(|(other, _)| other.warning == note.warning) {
                Some((_, times)) => *times += 1,
                None => notes.push((note, 1)),
            }
        }
        cells.push(Cell { labels, scenario });
    }
    let warnings = notes
        .into_iter()
        .filter(|(note, times)| !note.in_every_cell || *times == total)
        .map(|(note, _)| note.warning)
        .collect();
    let axes = axes
        .iter()
        .map(|axis| Axis {
            name: axis.name.clone(),
            labels: axis.points.iter().map(|point| point.label.clone()).collect(),
        })
        .collect();
    let name = cells.first().map_or(name, |cell: &Cell| &cell.scenario.name).to_owned();
    Ok((Plan { name, axes, cells }, warnings))
}

/// Applies the changes of the first combination to the document itself.
pub(crate) fn first_points(document: &mut Table, axes: &[AxisSpec]) -> Result<(), Error> {
    axes.iter().filter_map(|axis| axis.points.first()).try_for_each(|point| point.apply(document))
}

pub(crate) fn cell(
    document: &Table,
    name: &str,
    axes: &[AxisSpec],
    index: usize,
) -> Result<(Scenario, Vec<String>, Vec<Noted>), Error> {
    let mut rest = index;
    let mut points = Vec::with_capacity(axes.len());
    for axis in axes.iter().rev() {
        points.push(&axis.points[rest % axis.points.len()]);
        rest /= axis.points.len();
    }
    points.reverse();
    let labels: Vec<String> = points.iter().map(|point| point.label.clone()).collect();

    let mut document = document.clone();
    let built = points
        .iter()
        .try_for_each(|point| point.apply(&mut document))
        .and_then(|()| resolve::scenario(&document, name));
    match built {
        Ok((scenario, notes)) => Ok((scenario, labels, notes)),
        // A fault unrelated to the axes would be in the first cell too.
        Err(mut error) if index > 0 => {
            let pairs: Vec<String> = axes
                .iter()
                .zip(&labels)
                .map(|(axis, label)| format!("{} = {label}", axis.name))
                .collect();
            error.0.help.push_str(&format!("\nin the combination {}", pairs.join(", ")));
            Err(error)
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fnv_is_the_published_function() {
        // Test vectors of draft-eastlake-fnv: the empty string and "a".
        assert_eq!(Digest(Digest::OFFSET).bytes(b"").0, Digest::OFFSET);
        assert_eq!(Digest(Digest::OFFSET).bytes(b"a").0, 0xd228_cb69_6f1a_8caf_7891_2b70_4e4a_8964);
    }
}
