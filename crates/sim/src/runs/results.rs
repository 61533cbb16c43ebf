//! The results of a plan in one document: the output of `--json` and the content of `results.json`.

use std::collections::BTreeMap;

use lasthop_observe::stats::Summary;
use lasthop_scenario::{Axis, Plan};
use serde::{Deserialize, Serialize};

use super::{RunResult, measure_all, words};

/// The results of a sweep. Equal plans give equal documents, for any number of threads.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Results {
    /// Version of lasthop.
    pub lasthop: String,
    /// Commit that this version was built from, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Name of the scenario.
    pub name: String,
    pub setup: Setup,
    /// The axes; the first one changes slowest.
    pub axes: Vec<Axis>,
    /// An entry for each combination of the axes.
    pub cells: Vec<CellResults>,
}

/// The scenario as text for a reader.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Setup {
    /// The command that reproduces it.
    pub command: String,
    /// The path from left to right.
    pub path: String,
    /// The transfers, one line each.
    pub transfers: Vec<String>,
    /// A transfer is endless, so no run is ever complete.
    pub endless: bool,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct CellResults {
    /// The value on each of the axes.
    pub labels: Vec<String>,
    /// In the order of their seeds.
    pub runs: Vec<RunResult>,
    /// Means of [`lasthop_observe::metrics::RunMetrics::scalars`] over all of `runs`, complete or not.
    pub summary: BTreeMap<String, Estimate>,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Estimate {
    /// Unit, `1` for shares and counts.
    pub unit: String,
    /// The mean with its interval.
    #[serde(flatten)]
    pub over: Summary,
}

impl Setup {
    /// The texts of a plan; `command` reproduces it.
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

    /// Assembles the results of a plan; `runs` are in the order of [`Plan::runs`], `None` for missing ones.
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
            lasthop: crate::version::VERSION.to_owned(),
            commit: crate::version::COMMIT.map(str::to_owned),
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

    /// Runs that ended in an endless loop, one line each.
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

    /// The mean of a scalar over the runs that have it.
    pub fn mean(&self, name: &str) -> Option<Summary> {
        self.summary.get(name).map(|estimate| estimate.over)
    }

    /// Runs with all transfers complete.
    pub fn complete(&self) -> usize {
        self.runs.iter().filter(|run| run.metrics.complete()).count()
    }
}
