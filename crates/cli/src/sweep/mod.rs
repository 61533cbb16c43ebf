//! Makes the runs of a plan on all threads, and writes results.

pub mod bound;
pub mod files;
pub mod store;
pub mod testbed;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use lasthop_batch::{Done, Work, lock};
use lasthop_observe::sequence::Series;
use lasthop_scenario::{Plan, Run, Scenario, World};
use lasthop_sim::runs::{RunResult, measure, measure_in_brief};
use rayon::prelude::*;

use crate::failure::Failure;
use crate::note;
use crate::progress::Progress;
use crate::stop::Stop;
use bound::Most;
use store::Store;
use testbed::{Order, Trace};

/// Name of the file with all results in a directory of results.
pub const RESULTS: &str = "results.json";
/// Name of the page in a directory of results.
pub const PAGE: &str = "report.html";

/// Which runs are written out in full: events, control blocks, captures, time-sequence plots.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Traces {
    /// No run
    None,
    /// The first run of each cell
    #[default]
    First,
    /// Every run; on real packets the first of each cell
    All,
}

/// All input of the runs, resolved.
#[derive(Debug)]
pub struct Job<'a> {
    pub plan: &'a Plan,
    /// The plan for a process of the testbed; cell, seeds and trace are filled in.
    pub order: Order,
    /// The runs that are traced, if results are written.
    pub traces: Traces,
    /// Limit of the total size of their files.
    pub most: Most,
    /// Directory of the results; it exists and is writable.
    pub output: Option<&'a Path>,
    /// Threads.
    pub jobs: usize,
    /// Whether the results are only printed, which needs no distributions.
    pub brief: bool,
    /// Checked between two runs.
    pub stop: &'a Stop,
    /// Updated after each run.
    pub progress: &'a Progress,
}

/// Results of [`Job::measure`].
#[derive(Debug)]
pub struct Measured {
    /// Of each run, in the order of the plan.
    pub results: Vec<Option<RunResult>>,
    /// Time-sequence series of the first run of each traced cell, by the cell's index.
    pub series: BTreeMap<usize, Vec<Series>>,
}

impl Job<'_> {
    /// Makes the runs that are not stored yet, and writes the traces of those that are traced. Results are in the order
    /// of the plan; `None` is a run prevented by Ctrl-C.
    pub fn measure(&self) -> Result<Measured, Failure> {
        let store = self.output.map(Store::open).transpose()?;
        let runs: Vec<Run> = self.plan.runs().collect();
        let mut results: Vec<Option<RunResult>> =
            runs.iter().map(|run| store.as_ref().and_then(|store| store.load(run))).collect();
        let missing = (0..runs.len()).filter(|i| results[*i].is_none());
        let (live, missing): (Vec<usize>, Vec<usize>) =
            missing.partition(|i| self.plan.cells[runs[*i].cell].scenario.world == World::Testbed);
        self.progress.begin_at((runs.len() - missing.len() - live.len()) as u64);
        note::detail(|| {
            let (cells, stored) = (self.plan.cells.len(), runs.len() - missing.len() - live.len());
            let (sim, real) = (missing.len(), live.len());
            let jobs = Work::new(self.jobs).threads(sim);
            format!(
                "{}: {cells} cells, {} runs: {stored} stored, {sim} to simulate on {jobs} threads, {real} on real packets",
                self.plan.name,
                runs.len()
            )
        });

        let missing_runs: Vec<Run> = missing.iter().map(|i| runs[*i]).collect();
        let stop = || self.stop.requested();
        let step =
            |done: Done| self.progress.step(&self.plan.cells[done.cell].title(&self.plan.axes));
        let work = Work { jobs: self.jobs, stop: &stop, progress: &step };
        let keep = |run: &Run, result: &RunResult| {
            store.as_ref().map_or(Ok(()), |store| store.save(run, result))
        };
        let traced = self.traced();
        let series = Mutex::new(BTreeMap::new());
        let measure = if self.brief { measure_in_brief } else { measure };
        let make = |scenario: &Scenario, run: &Run| {
            let folder = traced.get(&(run.cell, run.seed));
            let Some((folder, first)) = folder.filter(|(folder, _)| !self.has_trace(folder, run))
            else {
                return Ok(measure(scenario, run.seed));
            };
            let recording = files::record(folder, self.plan, run, self.most_each())?;
            if *first {
                let mut series = lock(&series);
                series.insert(run.cell, recording.series);
            }
            Ok(recording.result)
        };
        let measured = lasthop_batch::measure(self.plan, &missing_runs, &work, &keep, &make)?;
        for (i, result) in missing.into_iter().zip(measured) {
            results[i] = result;
        }
        // Sequentially, after the simulated runs.
        for cell in live.chunk_by(|a, b| runs[*a].cell == runs[*b].cell) {
            let cell_runs: Vec<&Run> = cell.iter().map(|i| &runs[*i]).collect();
            let measured = self.measure_live(&cell_runs, store.as_ref())?;
            for (i, result) in cell.iter().zip(measured) {
                results[*i] = Some(result);
            }
        }
        let series = series.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok(Measured { results, series })
    }

    /// Whether `folder` already has the trace of `run`.
    fn has_trace(&self, folder: &Path, run: &Run) -> bool {
        files::is_there(folder, run, self.most_each())
    }

    /// The simulated runs with a trace, by cell and seed: its folder, and whether it is the first run of its cell. On
    /// real packets another process writes the trace.
    fn traced(&self) -> BTreeMap<(usize, u64), (PathBuf, bool)> {
        let Some(dir) = self.output.filter(|_| self.traces != Traces::None) else {
            return BTreeMap::new();
        };
        let folders = files::folders(dir, self.titles());
        let mut last = None;
        let mut traced = BTreeMap::new();
        for run in self.plan.runs() {
            let first = last.replace(run.cell) != Some(run.cell);
            let simulated = self.plan.cells[run.cell].scenario.world == World::Sim;
            if simulated && (first || self.traces == Traces::All) {
                let mut folder = folders[run.cell].clone().into_os_string();
                if !first {
                    folder.push(format!("_seed-{}", run.seed));
                }
                traced.insert((run.cell, run.seed), (folder.into(), first));
            }
        }
        traced
    }

    /// Writes the traces that are missing, because their results were stored without them. Returns false after Ctrl-C.
    pub fn missing_traces(&self) -> Result<bool, Failure> {
        let traced = self.traced();
        let runs: Vec<Run> = self.plan.runs().collect();
        let missing: Vec<(&Run, &PathBuf)> = runs
            .iter()
            .filter_map(|run| Some((run, &traced.get(&(run.cell, run.seed))?.0)))
            .filter(|(run, folder)| !self.has_trace(folder, run))
            .collect();
        if missing.is_empty() {
            return Ok(!self.stop.requested());
        }
        self.progress.restart(missing.len() as u64, "traces");
        Work::new(self.jobs).pool(missing.len())?.install(|| {
            missing.par_iter().try_for_each(|(run, folder)| {
                if !self.stop.requested() {
                    files::record(folder, self.plan, run, self.most_each())?;
                    self.progress.step("");
                }
                Ok::<(), Failure>(())
            })
        })?;
        Ok(!self.stop.requested())
    }

    /// Makes runs of one cell in the testbed. Returns fewer results than runs after Ctrl-C.
    fn measure_live(
        &self,
        runs: &[&Run],
        store: Option<&Store>,
    ) -> Result<Vec<RunResult>, Failure> {
        let Some(first) = runs.first().filter(|_| !self.stop.requested()) else {
            return Ok(Vec::new());
        };
        let cell = &self.plan.cells[first.cell];
        // The trace of a run on real packets is written during the run.
        let folder = self
            .output
            .filter(|_| self.traces != Traces::None)
            .map(|dir| files::folders(dir, self.titles()).swap_remove(first.cell))
            .filter(|folder| !files::is_there(folder, first, self.most_each()));
        let temporary = folder.as_deref().map(files::temporary);
        let trace = temporary.as_ref().map(|folder| Trace {
            folder: folder.clone(),
            title: files::title(self.plan, first),
            most: self.most_each(),
        });
        let order = Order {
            cell: first.cell,
            seeds: runs.iter().map(|run| run.seed).collect(),
            trace,
            ..self.order.clone()
        };
        let title = cell.title(&self.plan.axes);
        let under_way = |at: &testbed::Progress| {
            let kilobytes = |bytes: u64| format!("{:.1}", bytes as f64 / 1000.0);
            let of = at.wanted.map_or(String::new(), |wanted| format!(" of {}", kilobytes(wanted)));
            self.progress.show(format!(
                "{title} seed {}: {}{of} kB in {:.1} s",
                at.seed,
                kilobytes(at.delivered),
                at.seconds
            ));
        };
        let mut results = Vec::new();
        let carried = testbed::carry_out(&order, self.stop, under_way, |result| {
            let run = runs[results.len()];
            self.progress.step(&title);
            if let (true, Some(folder), Some(temporary)) = (results.is_empty(), &folder, &temporary)
            {
                files::keep(folder, temporary, run, Ok(()))?;
            }
            results.push(result);
            store.map_or(Ok(()), |store| store.save(run, &results[results.len() - 1]))
        });
        // Removes the remains of a killed process; otherwise it has removed them itself.
        if let Some(temporary) = temporary.filter(|_| results.is_empty()) {
            let _ = std::fs::remove_dir_all(temporary);
        }
        carried?;
        Ok(results)
    }

    /// Limit of the file size of one run, bytes.
    pub fn most_each(&self) -> Option<u64> {
        let runs = match self.traces {
            Traces::All => self.plan.count(),
            Traces::None | Traces::First => self.plan.cells.len() as u64,
        };
        self.most.each(runs)
    }

    /// The titles of all cells.
    pub fn titles(&self) -> impl Iterator<Item = String> {
        self.plan.cells.iter().map(|cell| cell.title(&self.plan.axes))
    }
}
