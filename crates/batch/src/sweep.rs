//! Sweeps of any size: batches of runs that any number of processes make and put into one store.
//!
//! A batch is named by a hash of its content, so it is finished exactly if it is in the store. There is no other state:
//! a repeated call continues an interrupted sweep, and shards need no communication.

use core::str::FromStr;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};

use lasthop_proto::tcp::config::Custom;
use lasthop_scenario::{Cell, Digest, Grid, Run, Scenario, StageKind, World};
use serde::{Deserialize, Serialize};

use crate::store::{Store, Version, failed, same_version};
use crate::tables::{Row, row};
use crate::{Done, Error, Provenance, Work, files};

/// Target size of a batch, in transferred bytes: about a second of one core.
const TARGET: u64 = 2_500_000_000;
/// Overhead of a run, in such bytes.
const RUN: u64 = 200_000;
/// Maximum number of runs of a batch.
const MOST: u64 = 10_000;
/// Minimum number of runs of a batch, so that a store has fewer objects than runs.
const FEWEST: u64 = 10;

/// The metadata key with a batch's description.
pub(crate) const BATCH: &str = "lasthop.batch";

/// The description of a batch.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct BatchInfo {
    pub version: Version,
    /// The id of the sweep, whose provenance is the object `sweep-ID.json`.
    pub sweep: String,
    /// Cell and seed of its first run.
    pub first: (u32, u64),
}

/// A share of the batches: every `of`th, from number `number` (from 1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shard {
    number: u64,
    of: u64,
}

impl Shard {
    /// All batches.
    pub const ALL: Shard = Shard { number: 1, of: 1 };
}

impl FromStr for Shard {
    type Err = String;
    fn from_str(text: &str) -> Result<Shard, String> {
        let parts =
            text.split_once('/').and_then(|(k, n)| Some((k.parse().ok()?, n.parse().ok()?)));
        match parts {
            Some((number, of)) if (1..=of).contains(&number) => Ok(Shard { number, of }),
            _ => Err("expected K/N with K from 1 to N, for example 3/16".to_owned()),
        }
    }
}

/// The batches of a sweep. Their content depends only on the scenario, not on the machine or its speed.
#[derive(Debug)]
pub struct Batches<'a> {
    grid: &'a Grid,
    provenance: Provenance,
    custom: Option<Custom>,
    sweep: String,
    size: u64,
}

/// The runs of one batch.
struct BatchPlan {
    cells: Vec<Cell>,
    /// Each with the index of its cell in `cells`.
    runs: Vec<(usize, Run)>,
    name: String,
}

impl<'a> Batches<'a> {
    /// The batches of a grid, with its provenance from [`Provenance::of_grid`].
    ///
    /// # Errors
    ///
    /// The runs would be on real packets.
    pub fn new(grid: &'a Grid, provenance: Provenance) -> Result<Batches<'a>, Error> {
        in_simulator(grid.first())?;
        let each = RUN + transferred(grid.first());
        let size = (TARGET / each).clamp(FEWEST, MOST);
        let sweep = provenance.digest().to_string();
        Ok(Batches { grid, sweep, provenance, custom: None, size })
    }

    /// The same with a custom congestion control at `host`, or at all hosts. Its runs are sequential, in the calling
    /// thread.
    ///
    /// # Errors
    ///
    /// The control has no version, so its results could mix with those of another one, or the host does not exist.
    pub fn controlled(self, custom: Custom, host: Option<&str>) -> Result<Batches<'a>, Error> {
        let mut provenance = self.provenance;
        provenance.control =
            Some((custom.name.clone(), custom.version.clone(), host.map(str::to_owned)));
        known(&provenance)?;
        bring(&mut self.grid.first().clone(), &custom, host)?;
        let sweep = provenance.digest().to_string();
        Ok(Batches { provenance, custom: Some(custom), sweep, ..self })
    }

    /// The id of the sweep: a hash of its provenance, which is the store's object `sweep-ID.json`.
    pub fn id(&self) -> &str {
        &self.sweep
    }

    /// Number of batches.
    pub fn count(&self) -> u64 {
        self.grid.runs().div_ceil(self.size)
    }

    /// The name of batch number `index`: a hash of the keys of its runs and of their labels.
    ///
    /// # Errors
    ///
    /// A cell cannot be built.
    pub fn name(&self, index: u64) -> Result<String, Error> {
        Ok(self.planned(index)?.name)
    }

    /// The numbers of a shard's batches that are missing in a store. Writes the sweep's provenance to the store.
    ///
    /// # Errors
    ///
    /// The store cannot be read or has another version, or a cell cannot be built.
    pub fn missing(&self, store: &Store, shard: Shard) -> Result<Vec<u64>, Error> {
        self.mark(store)?;
        let there = store.list().map_err(|error| failed(store, "", error))?;
        let there: BTreeSet<String> = there.into_iter().collect();
        let mut missing = Vec::new();
        for index in (shard.number - 1..self.count()).step_by(shard.of as usize) {
            if !there.contains(&self.name(index)?) {
                missing.push(index);
            }
        }
        Ok(missing)
    }

    /// Number of runs of batch number `index`.
    pub fn runs(&self, index: u64) -> u64 {
        self.size.min(self.grid.runs().saturating_sub(index * self.size))
    }

    fn planned(&self, index: u64) -> Result<BatchPlan, Error> {
        let seeds = u64::from(self.grid.seeds());
        let range = index * self.size..index * self.size + self.runs(index);
        let mut cells = Vec::new();
        let mut runs = Vec::new();
        let axes = self.grid.axes().join("\n");
        let mut digest = Digest::default().bytes(axes.as_bytes());
        for number in range.start / seeds..range.end.div_ceil(seeds) {
            let mut cell = self.grid.cell(number as usize)?;
            in_simulator(&cell.scenario)?;
            if let (Some(custom), Some((.., host))) = (&self.custom, &self.provenance.control) {
                bring(&mut cell.scenario, custom, host.as_deref())?;
            }
            digest = digest.bytes(&number.to_be_bytes()).bytes(cell.labels.join("\n").as_bytes());
            let from = range.start.saturating_sub(number * seeds);
            let to = (range.end - number * seeds).min(seeds);
            let own = cell.runs(number as usize).skip(from as usize).take((to - from) as usize);
            for run in own {
                digest = digest.bytes(&run.key.bytes());
                runs.push((cells.len(), run));
            }
            cells.push(cell);
        }
        Ok(BatchPlan { cells, runs, name: format!("{digest}.parquet") })
    }

    /// Writes the sweep's provenance to the store. A sweep whose rows would mix with those of another one is an error.
    fn mark(&self, store: &Store) -> Result<(), Error> {
        same_version(store)?;
        let name = format!("sweep-{}.json", self.sweep);
        let wrong = |error| failed(store, &name, error);
        if !store.has(&name).map_err(wrong)? {
            self.does_not_mix(store)?;
            let text =
                serde_json::to_vec_pretty(&self.provenance).map_err(|error| wrong(error.into()))?;
            store.put_if_absent(&name, &text).map_err(wrong)?;
        }
        Ok(())
    }

    /// Checks that columns distinguish the rows from those of all sweeps in the store.
    fn does_not_mix(&self, store: &Store) -> Result<(), Error> {
        for name in store.list().map_err(|error| failed(store, "", error))? {
            if !name.starts_with("sweep-") {
                continue;
            }
            let wrong = |error| failed(store, &name, error);
            let text = store.get(&name).map_err(wrong)?.unwrap_or_default();
            let there: Provenance =
                serde_json::from_slice(&text).map_err(|error| wrong(error.into()))?;
            if let Some(difference) = self.provenance.difference(&there) {
                let message = format!(
                    "{} has a sweep of `{}` with {difference}: no column would distinguish the rows",
                    store.title(),
                    there.name
                );
                let help =
                    "take another store; in one store, values differ by `--vary` or `--points`";
                return Err(Error::input(message, help));
            }
        }
        Ok(())
    }

    /// Makes batch number `index` and puts it into the store, unless it exists. Returns false, without a change, if
    /// `work` was interrupted. This is the task of one worker.
    ///
    /// # Errors
    ///
    /// The store has another version or is not writable, a cell cannot be built, or the existing batch has other
    /// results.
    pub fn make(&self, index: u64, store: &Store, work: &Work<'_>) -> Result<bool, Error> {
        self.mark(store)?;
        let planned = self.planned(index)?;
        let wrong = |error| failed(store, &planned.name, error);
        if store.has(&planned.name).map_err(wrong)? {
            return Ok(true);
        }
        let (done, of) = (AtomicU64::new(0), planned.runs.len() as u64);
        let progress = |run: &Run| {
            let runs = done.fetch_add(1, Ordering::Relaxed) + 1;
            (work.progress)(Done { runs, of, cell: run.cell });
        };
        let rows = match self.custom {
            Some(_) => (0..planned.runs.len()).map(|i| planned.row(i, work, &progress)).collect(),
            None => work.pool(planned.runs.len())?.install(|| measured(&planned, work, &progress)),
        };
        let Some(rows) = rows else { return Ok(false) };
        // A custom control that fails interrupts, possibly in the last run.
        if self.custom.is_some() && (work.stop)() {
            return Ok(false);
        }
        self.put(&planned, &rows, store)?;
        Ok(true)
    }

    fn put(&self, planned: &BatchPlan, rows: &[Row], store: &Store) -> Result<(), Error> {
        let wrong = |error| failed(store, &planned.name, error);
        let first = rows.first().map_or((0, 0), |row| (row.cell as u32, row.seed));
        let about = BatchInfo { version: Version::ours(), sweep: self.sweep.clone(), first };
        let about = serde_json::to_string(&about).map_err(|error| wrong(error.into()))?;
        let rows = rows.iter().zip(&planned.runs);
        let rows = rows.map(|(row, (cell, _))| (row, planned.cells[*cell].labels.as_slice()));
        let table =
            row::table(&self.provenance.axes, rows, BTreeMap::from([(BATCH.to_owned(), about)]))?;
        let bytes = files::parquet(&table).map_err(wrong)?;
        if !store.put_if_absent(&planned.name, &bytes).map_err(wrong)? {
            let there = store.get(&planned.name).map_err(wrong)?.unwrap_or_default();
            if there != bytes {
                let name = &planned.name;
                return Err(Error::input(
                    format!(
                        "the batch {name} in {} has other results than were found just now",
                        store.title()
                    ),
                    "it is damaged, or one of both is of a broken machine, of another program, or of a machine with another word \
                     size: make these runs again on two machines, and remove the wrong batch",
                ));
            }
        }
        Ok(())
    }
}

/// The rows of a batch, on the current pool; `None` after an interruption.
fn measured(
    planned: &BatchPlan,
    work: &Work<'_>,
    progress: &(dyn Fn(&Run) + Sync),
) -> Option<Vec<Row>> {
    let rows = lasthop_sim::runs::spread(planned.runs.len(), |i| planned.row(i, work, progress));
    rows.into_iter().collect()
}

impl BatchPlan {
    /// The row of a run; `None` after an interruption.
    fn row(&self, i: usize, work: &Work<'_>, progress: &dyn Fn(&Run)) -> Option<Row> {
        if (work.stop)() {
            return None;
        }
        let (cell, run) = &self.runs[i];
        let row = Row::new(run, &lasthop_sim::runs::measure(&self.cells[*cell].scenario, run.seed));
        progress(run);
        Some(row)
    }
}

/// The result of [`sweep`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SweepSummary {
    /// Batches of this shard.
    pub batches: u64,
    /// Batches that existed before.
    pub found: u64,
    /// Batches made by this call.
    pub made: u64,
    /// Runs in those batches.
    pub runs: u64,
}

impl SweepSummary {
    /// All batches of the shard are in the store.
    pub fn is_complete(&self) -> bool {
        self.found + self.made == self.batches
    }

    /// The result as JSON.
    pub fn document(&self) -> serde_json::Value {
        let SweepSummary { batches, found, made, runs } = self;
        let complete = self.is_complete();
        serde_json::json!({
            "batches": batches, "found": found, "made": made, "runs": runs, "complete": complete,
        })
    }
}

/// Makes all batches of a shard that are missing in the store, one after the other, each on all threads. `Done::of` is
/// the number of missing runs.
///
/// # Errors
///
/// As [`Batches::make`].
pub fn sweep(
    batches: &Batches<'_>,
    store: &Store,
    shard: Shard,
    work: &Work<'_>,
) -> Result<SweepSummary, Error> {
    let all = (shard.number - 1..batches.count()).step_by(shard.of as usize).count() as u64;
    let missing = batches.missing(store, shard)?;
    let of = missing.iter().map(|index| batches.runs(*index)).sum();
    let mut swept =
        SweepSummary { batches: all, found: all - missing.len() as u64, made: 0, runs: 0 };
    let done = AtomicU64::new(0);
    let progress = |run: &Run| {
        let runs = done.fetch_add(1, Ordering::Relaxed) + 1;
        (work.progress)(Done { runs, of, cell: run.cell });
    };
    if batches.custom.is_some() {
        return one_by_one(batches, store, work, &missing, swept);
    }
    work.pool(of as usize)?.install(|| -> Result<SweepSummary, Error> {
        // One batch is written while the next one is made.
        let mut last: Option<(BatchPlan, Vec<Row>)> = None;
        let mut indices = missing.into_iter();
        loop {
            let next = indices.next().filter(|_| !(work.stop)());
            let make = || -> Result<Option<(BatchPlan, Vec<Row>)>, Error> {
                let Some(index) = next else { return Ok(None) };
                let planned = batches.planned(index)?;
                // Another process may have made it meanwhile.
                if store.has(&planned.name).map_err(|error| failed(store, &planned.name, error))? {
                    return Ok(Some((planned, Vec::new())));
                }
                Ok(measured(&planned, work, &progress).map(|rows| (planned, rows)))
            };
            let put = || match &last {
                Some((planned, rows)) if !rows.is_empty() => batches.put(planned, rows, store),
                _ => Ok(()),
            };
            let (written, made) = rayon::join(put, make);
            written?;
            if let Some((_, rows)) = &last {
                swept.runs += rows.len() as u64;
                *(if rows.is_empty() { &mut swept.found } else { &mut swept.made }) += 1;
            }
            last = made?;
            if last.is_none() {
                return Ok(swept);
            }
        }
    })
}

/// Like [`sweep`], in the calling thread, as a custom control requires.
fn one_by_one(
    batches: &Batches<'_>,
    store: &Store,
    work: &Work<'_>,
    missing: &[u64],
    mut swept: SweepSummary,
) -> Result<SweepSummary, Error> {
    let of = missing.iter().map(|index| batches.runs(*index)).sum();
    for index in missing {
        let before = swept.runs;
        let progress =
            |done: Done| (work.progress)(Done { runs: before + done.runs, of, cell: done.cell });
        if !batches.make(*index, store, &Work { progress: &progress, ..*work })? {
            break;
        }
        swept.made += 1;
        swept.runs += batches.runs(*index);
    }
    Ok(swept)
}

/// Sets a custom congestion control at a scenario's host, or at all hosts.
///
/// # Errors
///
/// There is no such host.
pub fn bring(scenario: &mut Scenario, custom: &Custom, host: Option<&str>) -> Result<(), Error> {
    let hosts = scenario.hosts.iter_mut().filter(|h| host.is_none_or(|host| host == h.name));
    let brought = hosts.map(|host| host.tcp.custom = Some(Box::new(custom.clone()))).count();
    if brought > 0 {
        return Ok(());
    }
    let names: Vec<&str> = scenario.hosts.iter().map(|host| host.name.as_str()).collect();
    let message = format!("there is no host `{}`", host.unwrap_or_default());
    Err(Error::input(message, format!("there are {}", names.join(", "))))
}

/// Refuses a custom control without a version.
pub(crate) fn known(sweep: &Provenance) -> Result<(), Error> {
    match &sweep.control {
        Some((name, version, _)) if version.is_empty() => Err(Error::input(
            format!("the congestion control `{name}` has no version"),
            "a store would mix its results with those of another: say which one it is",
        )),
        _ => Ok(()),
    }
}

fn in_simulator(scenario: &Scenario) -> Result<(), Error> {
    if scenario.world == World::Sim {
        return Ok(());
    }
    Err(Error::input("a sweep is made in the simulator", "leave `world` out, or set `world=sim`"))
}

/// Approximate number of bytes transferred by a run; for endless transfers, the capacity of the slowest link until the
/// horizon.
fn transferred(scenario: &Scenario) -> u64 {
    let rates = scenario.path.iter().filter_map(|stage| match &stage.kind {
        StageKind::Link(line) => line.rate_right,
        StageKind::Radio(radio) => Some(radio.radio.rate),
        _ => None,
    });
    let slowest = rates.map(lasthop_proto::units::Rate::bps).min().unwrap_or(1_000_000_000);
    let until = u128::from(slowest) / 8 * u128::from(scenario.horizon.0) / 1_000_000_000;
    let until = u64::try_from(until).unwrap_or(u64::MAX);
    let of = |t: &lasthop_scenario::Transfer| {
        t.bytes.map_or(until, |bytes| bytes.0 * u64::from(t.count))
    };
    scenario.transfers.iter().map(of).sum::<u64>().min(until)
}
