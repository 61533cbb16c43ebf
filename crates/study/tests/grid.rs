//! Our senders compared with Linux' own on a grid of paths. Runs of the kernel take real time, so `make kernel-grid` records
//! them in `grid/kernel.json`. `make figures` writes the tables in `docs/explanation/parity-grid.md`.
//!
//! A cell that differs by more than a tenth in throughput, or by more than half in retransmissions, has a reason in
//! `grid/reasons.json`, and no other cell has one.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use lasthop_observe::metrics::RunMetrics;
use lasthop_observe::stats::Summary;
use lasthop_proto::event::Cause;
use lasthop_scenario::{Scenario, parse};
use lasthop_sim::runs::measure_all;
use serde::{Deserialize, Serialize};

const FILES: [(&str, &str); 3] = [
    ("cells", include_str!("grid/cells.toml")),
    ("pairs", include_str!("grid/pairs.toml")),
    ("apps", include_str!("grid/apps.toml")),
];

const SEEDS: u64 = 20;

/// Minimum number of retransmissions in a run for a meaningful comparison.
const FEW: f64 = 10.0;

/// The compared figures of a run.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq)]
struct Run {
    /// Throughput of a flow in KB/s, the mean over flows. For requests, that of their responses while a
    /// client waits for one.
    throughput: f64,
    /// Retransmitted segments of all flows.
    again: f64,
    timeouts: f64,
    /// Median and 95th percentile of the delay of data in ms, the mean over flows. For requests, of the time
    /// from a request to the end of its response.
    p50: f64,
    p95: f64,
}

impl Run {
    fn of(metrics: &RunMetrics) -> Run {
        if let [exchanges] = &metrics.exchanges[..] {
            return Run {
                throughput: rounded(metrics.aggregate_throughput / 1024.0),
                again: exchanges.retransmissions as f64,
                timeouts: exchanges.timeouts as f64,
                p50: rounded(exchanges.time_p50_s * 1e3),
                p95: rounded(exchanges.time_p95_s * 1e3),
            };
        }
        let flows = &metrics.flows;
        let sum = |value: &dyn Fn(usize) -> f64| (0..flows.len()).map(value).sum::<f64>();
        let mean = |value: &dyn Fn(usize) -> f64| sum(value) / flows.len().max(1) as f64;
        let again = |i: usize| -> f64 {
            let is_again = |cause| {
                use Cause::{FastRetransmit, TailLossProbe, TimeoutRetransmit};
                matches!(cause, FastRetransmit | TimeoutRetransmit | TailLossProbe)
            };
            flows[i].originated.total_of(is_again) as f64
        };
        Run {
            throughput: rounded(mean(&|i| flows[i].throughput / 1024.0)),
            again: sum(&again),
            timeouts: sum(&|i| flows[i].timeouts as f64),
            p50: rounded(mean(&|i| flows[i].delay.p50_s * 1e3)),
            p95: rounded(mean(&|i| flows[i].delay.p95_s * 1e3)),
        }
    }
}

fn rounded(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

/// Results of the kernel, by cell.
#[derive(Serialize, Deserialize, Default)]
struct Recorded {
    /// The kernel's release.
    release: String,
    /// By file, case and sender.
    cells: BTreeMap<String, Vec<Run>>,
}

fn place(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/grid").join(name)
}

fn recorded() -> Recorded {
    serde_json::from_str(&std::fs::read_to_string(place("kernel.json")).unwrap()).unwrap()
}

/// Reason of each differing cell, by its name.
fn reasons() -> BTreeMap<String, String> {
    serde_json::from_str(&std::fs::read_to_string(place("reasons.json")).unwrap()).unwrap()
}

fn name(file: &str, labels: &[String]) -> String {
    format!("{file} {}", labels.join(" "))
}

/// All cells in the simulator.
fn simulated() -> Vec<(String, Vec<Run>)> {
    let mut all = Vec::new();
    for (file, text) in FILES {
        let (plan, _) = parse(text, file, &[]).unwrap();
        let jobs: Vec<(&Scenario, u64)> = plan
            .cells
            .iter()
            .flat_map(|cell| (1..=SEEDS).map(|seed| (&cell.scenario, seed)))
            .collect();
        let runs = measure_all(&jobs, &()).into_iter().map(|run| Run::of(&run.unwrap().metrics));
        let runs: Vec<Run> = runs.collect();
        let names = plan.cells.iter().map(|cell| name(file, &cell.labels));
        all.extend(names.zip(runs.chunks(SEEDS as usize).map(<[Run]>::to_vec)));
    }
    all
}

fn summary(runs: &[Run], value: fn(&Run) -> f64) -> Summary {
    Summary::of(&runs.iter().map(value).collect::<Vec<f64>>())
}

/// One cell compared with the kernel's.
struct CellComparison {
    name: String,
    /// Ratio of ours to the kernel's, and half of its interval.
    throughput: (f64, f64),
    /// Means of ours and of the kernel's.
    again: [f64; 2],
    timeouts: [f64; 2],
    p50: [f64; 2],
    p95: [f64; 2],
}

impl CellComparison {
    fn new(name: &str, ours: &[Run], theirs: &[Run]) -> CellComparison {
        let both = |value: fn(&Run) -> f64| [ours, theirs].map(|runs| summary(runs, value));
        let means = |value: fn(&Run) -> f64| both(value).map(|summary| summary.mean);
        let [a, b] = both(|run| run.throughput);
        let ratio = a.mean / b.mean;
        let (one, other) = (a.ci95 / a.mean, b.ci95 / b.mean);
        let relative = (one * one + other * other).sqrt();
        CellComparison {
            name: name.to_owned(),
            throughput: (ratio, ratio * relative),
            again: means(|run| run.again),
            timeouts: means(|run| run.timeouts),
            p50: means(|run| run.p50),
            p95: means(|run| run.p95),
        }
    }

    /// Whether the difference is large enough to require a reason.
    fn differs(&self) -> bool {
        let [ours, theirs] = self.again;
        let many = ours.max(theirs) >= FEW;
        let times = ours.max(FEW) / theirs.max(FEW);
        (self.throughput.0 - 1.0).abs() > 0.1 || many && !(1.0 / 1.5..=1.5).contains(&times)
    }

    fn ratio(&self) -> String {
        let (ratio, interval) = self.throughput;
        format!("{ratio:.2} ± {interval:.2}")
    }

    fn row(&self, reason: &str) -> String {
        let pair = |[ours, theirs]: [f64; 2]| format!("{ours:.0}, {theirs:.0}");
        let one = |[ours, theirs]: [f64; 2]| format!("{ours:.1}, {theirs:.1}");
        format!(
            "| {} | {} | {} | {} | {} | {} | {reason} |\n",
            self.name,
            self.ratio(),
            pair(self.again),
            one(self.timeouts),
            pair(self.p50),
            pair(self.p95)
        )
    }
}

const PAGE: &str = "../../docs/explanation/parity-grid.md";
const BEGIN: &str = "<!-- generated: grid -->\n";
const END: &str = "<!-- end -->";
const SENDERS: [&str; 3] = ["rack", "cubic", "bbr"];

/// Throughput ratios of all cells, a row for each path.
fn ratios(cells: &[CellComparison]) -> String {
    let mut table = format!("| path | {} |\n|---|---|---|---|\n", SENDERS.join(" | "));
    let path = |cell: &CellComparison| cell.name.rsplit_once(' ').map(|(path, _)| path.to_owned());
    let mut paths: Vec<String> = cells.iter().filter_map(path).collect();
    paths.dedup();
    for path in paths {
        table += &format!("| {path} |");
        for sender in SENDERS {
            let name = format!("{path} {sender}");
            let cell = cells.iter().find(|cell| cell.name == name);
            table += &format!(" {} |", cell.map_or("–".to_owned(), CellComparison::ratio));
        }
        table.push('\n');
    }
    table
}

#[test]
fn each_cell_that_differs_from_the_kernel_has_a_reason() {
    let (recorded, reasons) = (recorded(), reasons());
    let mut differing = "| cell | throughput | retransmitted | timeouts | p50 (ms) | p95 (ms) | reason |\n|---|---|---|---|---|---|---|\n".to_owned();
    let (mut cells, mut wrong) = (Vec::new(), Vec::new());
    for (name, ours) in simulated() {
        let Some(theirs) = recorded.cells.get(&name) else { continue };
        let cell = CellComparison::new(&name, &ours, theirs);
        let reason = reasons.get(&name);
        if cell.differs() != reason.is_some() {
            wrong.push(cell.row("?"));
        }
        if let Some(reason) = reason {
            differing += &cell.row(reason);
        }
        cells.push(cell);
    }
    let ratios = ratios(&cells);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE);
    let old = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = old.split_once(BEGIN).expect("where the table begins");
    let (_, after) = rest.split_once(END).expect("where it ends");
    let new = format!("{before}{BEGIN}\n{ratios}\n{differing}\n{END}{after}");
    if std::env::var_os("LASTHOP_WRITE_FIGURES").is_some() {
        std::fs::write(&path, new).unwrap();
    } else {
        assert!(old == new, "docs/explanation/parity-grid.md is out of date: run `make figures`");
    }
    assert!(wrong.is_empty(), "a reason is missing, or is no longer needed:\n{}", wrong.concat());
    assert!(cells.len() >= 40, "{} cells", cells.len());
    let listed = ratios.matches(" ± ").count();
    assert!(listed == cells.len(), "the page lists {listed} of {} cells", cells.len());
    assert!(reasons.keys().all(|name| recorded.cells.contains_key(name)), "{reasons:?}");
}

/// Adds results of `lasthop run --world testbed --json` for a kernel to the record: `LASTHOP_KERNEL_GRID` has
/// the paths of the files. Runs in which the base station lost frames are omitted.
#[test]
fn the_record_of_the_grid_can_be_read_and_added_to() {
    let mut record = if place("kernel.json").exists() { recorded() } else { Recorded::default() };
    let Some(paths) = std::env::var_os("LASTHOP_KERNEL_GRID") else {
        assert!(record.cells.values().all(|runs| runs.len() >= 2));
        return;
    };
    record.release =
        std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap().trim().to_owned();
    let mut fresh = BTreeSet::new();
    for path in std::env::split_paths(&paths) {
        let text = std::fs::read_to_string(path).unwrap();
        let results: serde_json::Value = serde_json::from_str(&text).unwrap();
        let command = results["setup"]["command"].as_str().unwrap();
        let file = ["pairs", "apps"].into_iter().find(|file| command.contains(file));
        let file = file.unwrap_or("cells");
        for cell in results["cells"].as_array().unwrap() {
            let labels = cell["labels"].as_array().unwrap().iter();
            let labels: Vec<String> = labels.map(|l| l.as_str().unwrap().to_owned()).collect();
            let runs = cell["runs"].as_array().unwrap().iter();
            let whole = runs.filter(|run| run["testbed"]["lost_frames"] == 0);
            let runs: Vec<Run> = whole
                .map(|run| Run::of(&serde_json::from_value(run["metrics"].clone()).unwrap()))
                .collect();
            let name = name(file, &labels);
            // Runs of several files are combined.
            if fresh.insert(name.clone()) {
                record.cells.insert(name, runs);
            } else {
                record.cells.entry(name).or_default().extend(runs);
            }
        }
    }
    std::fs::write(place("kernel.json"), serde_json::to_string(&record).unwrap() + "\n").unwrap();
}
