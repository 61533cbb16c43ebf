//! All results of a plan in one document: what `--json` prints, what `results.json` holds.

use std::collections::BTreeMap;

use lasthop_scenario::{Axis, Plan};
use lasthop_trace::stats::Summary;
use serde::{Deserialize, Serialize};

use crate::{RunResult, measure_all, words};

/// The results of a sweep. The same plan gives the same document, however many threads made it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Results {
    /// Version of lasthop that made it.
    pub lasthop: String,
    /// Commit that this version was built from, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Name of the scenario.
    pub name: String,
    /// What was run, in words.
    pub setup: Setup,
    /// What was varied; the first axis changes slowest.
    pub axes: Vec<Axis>,
    /// One entry for each combination of the axes.
    pub cells: Vec<CellResults>,
}

/// What was run, in words for a reader.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Setup {
    /// The command that runs it again.
    pub command: String,
    /// The path from left to right.
    pub path: String,
    /// What is transferred.
    pub transfers: Vec<String>,
    /// Whether a transfer has no end, so that no run is ever complete.
    pub endless: bool,
}

/// The runs of one combination.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct CellResults {
    /// The value on each of the axes.
    pub labels: Vec<String>,
    /// The runs in the order of their seeds.
    pub runs: Vec<RunResult>,
    /// The numbers of [`lasthop_trace::metrics::RunMetrics::scalars`] over all of `runs`, complete or not.
    pub summary: BTreeMap<String, Estimate>,
}

/// A mean over runs.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Estimate {
    /// Unit, `1` for shares and counts.
    pub unit: String,
    /// The mean, and how sure it is.
    #[serde(flatten)]
    pub over: Summary,
}

impl Setup {
    /// What a plan runs; `command` does it again.
    pub fn new(command: String, plan: &Plan) -> Setup {
        let first = plan.cells.first().map(|cell| &cell.scenario);
        Setup {
            command,
            path: first.map_or(String::new(), |scenario| words::path(plan, scenario)),
            transfers: first.map_or(Vec::new(), words::transfers),
            endless: plan
                .cells
                .iter()
                .any(|cell| cell.scenario.transfers.iter().any(|t| !t.ends())),
        }
    }
}

impl Results {
    /// Version and commit that made it, in one line.
    pub fn version(&self) -> String {
        match &self.commit {
            Some(commit) => format!("{} ({commit})", self.lasthop),
            None => self.lasthop.clone(),
        }
    }

    /// Puts the results of a plan together; `runs` come in the order of [`Plan::runs`], `None` for those that
    /// were not run.
    pub fn new(plan: &Plan, setup: Setup, runs: Vec<Option<RunResult>>) -> Results {
        let mut runs = runs.into_iter();
        let cells = plan
            .cells
            .iter()
            .map(|cell| {
                let own: Vec<_> = runs.by_ref().take(cell.scenario.runs as usize).collect();
                CellResults::new(cell.labels.clone(), own.into_iter().flatten().collect())
            })
            .collect();
        Results {
            lasthop: lasthop_version::VERSION.to_owned(),
            commit: lasthop_version::COMMIT.map(str::to_owned),
            name: plan.name.clone(),
            setup,
            axes: plan.axes.clone(),
            cells,
        }
    }

    /// Makes all runs of a plan in the simulator.
    pub fn simulated(plan: &Plan, setup: Setup) -> Results {
        let runs: Vec<_> =
            plan.runs().map(|run| (&plan.cells[run.cell].scenario, run.seed)).collect();
        Results::new(plan, setup, measure_all(&runs, &()))
    }

    /// What is to be reported of runs in which time stood still, a line each.
    pub fn stuck(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for cell in &self.cells {
            let title = self.title(cell);
            let at = if title.is_empty() { title } else { format!(" ({title})") };
            lines.extend(cell.runs.iter().filter_map(|run| {
                let (name, seed, version) = (&self.name, run.seed, &self.lasthop);
                let place = run.stuck.as_ref()?;
                Some(format!("scenario {name}{at}, seed {seed}, {place}, lasthop {version}"))
            }));
        }
        lines
    }

    /// The labels of `cell` in one line, such as `agent=snoop tcp=reno`; empty if nothing was varied.
    pub fn title(&self, cell: &CellResults) -> String {
        let pairs = self.axes.iter().zip(&cell.labels);
        let pairs: Vec<String> =
            pairs.map(|(axis, label)| format!("{}={label}", axis.name)).collect();
        pairs.join(" ")
    }
}

impl CellResults {
    fn new(labels: Vec<String>, runs: Vec<RunResult>) -> CellResults {
        let mut values: BTreeMap<String, (String, Vec<f64>)> = BTreeMap::new();
        for scalar in runs.iter().flat_map(|run| run.metrics.scalars()) {
            let (_, all) = values
                .entry(scalar.name.to_owned())
                .or_insert_with(|| (scalar.unit.to_owned(), Vec::new()));
            all.push(scalar.value);
        }
        let summary = values
            .into_iter()
            .map(|(name, (unit, all))| (name, Estimate { unit, over: Summary::of(&all) }))
            .collect();
        CellResults { labels, runs, summary }
    }

    /// The mean of one of the scalars over the runs that have it.
    pub fn mean(&self, name: &str) -> Option<Summary> {
        self.summary.get(name).map(|estimate| estimate.over)
    }

    /// Runs in which every transfer was complete.
    pub fn complete(&self) -> usize {
        self.runs.iter().filter(|run| run.metrics.complete()).count()
    }
}
