//! Sweeps of any size: batches of runs that any number of processes make and put into one store.
//!
//! The store is the truth. A batch is named by what it must contain, so whether it is done is whether it is there, and
//! nothing else needs to be remembered: a sweep that died goes on with the same call, and shards need not know of each
//! other.

use core::str::FromStr;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};

use lasthop_proto::tcp::config::Custom;
use lasthop_scenario::{Cell, Digest, Grid, Run, Scenario, StageKind, World};
use serde::{Deserialize, Serialize};

use crate::store::{Store, Version, failed, same_version};
use crate::tables::{Row, row};
use crate::{Done, Error, Provenance, Work, files, merge};

/// Work of a batch, in bytes that are transferred: about a second of one core.
const TARGET: u64 = 2_500_000_000;
/// What a run costs besides, in such bytes.
const RUN: u64 = 200_000;
/// Most runs of a batch.
const MOST: u64 = 10_000;
/// Fewest, so that a store has fewer objects than there are runs.
const FEWEST: u64 = 10;

/// The key of a batch's metadata that says what it is.
pub(crate) const BATCH: &str = "lasthop.batch";

/// What a batch says of itself.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct About {
    pub version: Version,
    /// The sweep, whose provenance is the object `sweep-ID.json`.
    pub sweep: String,
    /// Cell and seed of its first run.
    pub first: (u32, u64),
}

/// A part of the batches: every `of`th, beginning with number `number` (from 1).
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

/// The batches of a sweep. Which runs are in which is a matter of the scenario alone, not of the machine or its speed.
#[derive(Debug)]
pub struct Batches<'a> {
    grid: &'a Grid,
    provenance: Provenance,
    custom: Option<Custom>,
    sweep: String,
    size: u64,
}

/// The runs of one batch.
struct Planned {
    cells: Vec<Cell>,
    /// Each with the place of its cell in `cells`.
    runs: Vec<(usize, Run)>,
    name: String,
}

impl<'a> Batches<'a> {
    /// Of a grid; its provenance is [`Provenance::of_grid`].
    ///
    /// # Errors
    ///
    /// If the runs would be made on real packets.
    pub fn new(grid: &'a Grid, provenance: Provenance) -> Result<Batches<'a>, Error> {
        in_simulator(grid.first())?;
        let each = RUN + transferred(grid.first());
        let size = (TARGET / each).clamp(FEWEST, MOST);
        let sweep = provenance.digest().to_string();
        Ok(Batches { grid, sweep, provenance, custom: None, size })
    }

    /// The same with a congestion control from outside at `host`, or at all hosts. Its runs are made one after the
    /// other, in the thread that asks for them.
    ///
    /// # Errors
    ///
    /// A rule without a version, whose results would be mixed with those of another, and a host that is not there.
    pub fn controlled(self, custom: Custom, host: Option<&str>) -> Result<Batches<'a>, Error> {
        let mut provenance = self.provenance;
        provenance.control =
            Some((custom.name.clone(), custom.version.clone(), host.map(str::to_owned)));
        known(&provenance)?;
        bring(&mut self.grid.first().clone(), &custom, host)?;
        let sweep = provenance.digest().to_string();
        Ok(Batches { provenance, custom: Some(custom), sweep, ..self })
    }

    /// The name of the sweep: a hash of its provenance, which the store has as `sweep-NAME.json`.
    pub fn id(&self) -> &str {
        &self.sweep
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.grid.runs().div_ceil(self.size)
    }

    /// The name of batch number `index`: a hash of the keys of its runs and of what they are called.
    ///
    /// # Errors
    ///
    /// If one of its cells cannot be built.
    pub fn name(&self, index: u64) -> Result<String, Error> {
        Ok(self.planned(index)?.name)
    }

    /// The numbers of a shard's batches that are not in a store, which is told what the sweep is.
    ///
    /// # Errors
    ///
    /// A store that cannot be read or is of another version, a cell that cannot be built.
    pub fn missing(&self, store: &dyn Store, shard: Shard) -> Result<Vec<u64>, Error> {
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

    /// How many runs batch number `index` has.
    pub fn runs(&self, index: u64) -> u64 {
        self.size.min(self.grid.runs().saturating_sub(index * self.size))
    }

    fn planned(&self, index: u64) -> Result<Planned, Error> {
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
        Ok(Planned { cells, runs, name: format!("{digest}.parquet") })
    }

    /// Puts what the sweep is into the store.
    fn mark(&self, store: &dyn Store) -> Result<(), Error> {
        same_version(store, true)?;
        let name = format!("sweep-{}.json", self.sweep);
        let wrong = |error| failed(store, &name, error);
        if !store.has(&name).map_err(wrong)? {
            let text =
                serde_json::to_vec_pretty(&self.provenance).map_err(|error| wrong(error.into()))?;
            store.put_if_absent(&name, &text).map_err(wrong)?;
        }
        Ok(())
    }

    /// Makes batch number `index` and puts it into the store, unless it is there. False if `work` said stop: then
    /// nothing
    /// was put there. This is the task of one worker.
    ///
    /// # Errors
    ///
    /// A store of another version or one that takes nothing, a cell that cannot be built, and a batch that is there
    /// with
    /// other results.
    pub fn make(&self, index: u64, store: &dyn Store, work: &Work<'_>) -> Result<bool, Error> {
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
            None => work.pool()?.install(|| measured(&planned, work, &progress)),
        };
        let Some(rows) = rows else { return Ok(false) };
        // A rule from outside that fails says stop, perhaps in the last run.
        if self.custom.is_some() && (work.stop)() {
            return Ok(false);
        }
        self.put(&planned, &rows, store)?;
        Ok(true)
    }

    fn put(&self, planned: &Planned, rows: &[Row], store: &dyn Store) -> Result<(), Error> {
        let wrong = |error| failed(store, &planned.name, error);
        let first = rows.first().map_or((0, 0), |row| (row.cell as u32, row.seed));
        let about = About { version: Version::ours(), sweep: self.sweep.clone(), first };
        let about = serde_json::to_string(&about).map_err(|error| wrong(error.into()))?;
        let rows = rows.iter().zip(&planned.runs);
        let rows = rows.map(|(row, (cell, _))| (row, planned.cells[*cell].labels.as_slice()));
        let table =
            row::table(&self.provenance.axes, rows, BTreeMap::from([(BATCH.to_owned(), about)]))?;
        let bytes = files::parquet(&table).map_err(wrong)?;
        if !store.put_if_absent(&planned.name, &bytes).map_err(wrong)? {
            let there = store.get(&planned.name).map_err(wrong)?.unwrap_or_default();
            merge::alike(&planned.name, &store.title(), &there, &bytes)?;
        }
        Ok(())
    }
}

/// The rows of a batch, on the current pool; nothing if somebody said stop.
fn measured(
    planned: &Planned,
    work: &Work<'_>,
    progress: &(dyn Fn(&Run) + Sync),
) -> Option<Vec<Row>> {
    let rows = lasthop_lab::spread(planned.runs.len(), |i| planned.row(i, work, progress));
    rows.into_iter().collect()
}

impl Planned {
    /// The row of a run; nothing if somebody said stop.
    fn row(&self, i: usize, work: &Work<'_>, progress: &dyn Fn(&Run)) -> Option<Row> {
        if (work.stop)() {
            return None;
        }
        let (cell, run) = &self.runs[i];
        let row = Row::new(run, &lasthop_lab::measure(&self.cells[*cell].scenario, run.seed));
        progress(run);
        Some(row)
    }
}

/// What became of a call of [`sweep`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Swept {
    /// Batches of this shard.
    pub batches: u64,
    /// Of these, those that were there before.
    pub found: u64,
    /// Those that this call made.
    pub made: u64,
    /// The runs in them.
    pub runs: u64,
}

impl Swept {
    /// Whether all batches of the shard are in the store.
    pub fn is_complete(&self) -> bool {
        self.found + self.made == self.batches
    }

    /// For programs.
    pub fn document(&self) -> serde_json::Value {
        let Swept { batches, found, made, runs } = self;
        let complete = self.is_complete();
        serde_json::json!({
            "batches": batches, "found": found, "made": made, "runs": runs, "complete": complete,
        })
    }
}

/// Makes all batches of a shard that are not in the store, one after the other, each on all threads. `Done::of` counts
/// the runs that were missing.
///
/// # Errors
///
/// As [`Batches::make`].
pub fn sweep(
    batches: &Batches<'_>,
    store: &dyn Store,
    shard: Shard,
    work: &Work<'_>,
) -> Result<Swept, Error> {
    let all = (shard.number - 1..batches.count()).step_by(shard.of as usize).count() as u64;
    let missing = batches.missing(store, shard)?;
    let of = missing.iter().map(|index| batches.runs(*index)).sum();
    let mut swept = Swept { batches: all, found: all - missing.len() as u64, made: 0, runs: 0 };
    let done = AtomicU64::new(0);
    let progress = |run: &Run| {
        let runs = done.fetch_add(1, Ordering::Relaxed) + 1;
        (work.progress)(Done { runs, of, cell: run.cell });
    };
    if batches.custom.is_some() {
        return one_by_one(batches, store, work, &missing, swept);
    }
    work.pool()?.install(|| -> Result<Swept, Error> {
        // One batch is written while the next one is made.
        let mut last: Option<(Planned, Vec<Row>)> = None;
        let mut indices = missing.into_iter();
        loop {
            let next = indices.next().filter(|_| !(work.stop)());
            let make = || -> Result<Option<(Planned, Vec<Row>)>, Error> {
                let Some(index) = next else { return Ok(None) };
                let planned = batches.planned(index)?;
                // Somebody else may have made it meanwhile.
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

/// As [`sweep`], in this thread, as a rule from outside wants it.
fn one_by_one(
    batches: &Batches<'_>,
    store: &dyn Store,
    work: &Work<'_>,
    missing: &[u64],
    mut swept: Swept,
) -> Result<Swept, Error> {
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

/// Gives a scenario's host, or all of them, a congestion control from outside.
///
/// # Errors
///
/// If there is no such host.
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

/// Refuses a rule of which nobody knows which one it was.
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

/// Bytes that a run transfers, roughly; without an end, what its slowest link carries until the horizon.
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
