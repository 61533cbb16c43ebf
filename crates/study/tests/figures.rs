//! Tables of the manual that a command makes are equal to the program's output.
//!
//! In a page, the text between `<!-- figures: today --set K=V --vary K=a,b --vary K=c,d --seeds N -->` and `<!-- end
//! -->` is the result of `lasthop run` with these arguments, the first axis in rows and the second one in columns;
//! `make figures` regenerates it. `beside=kernel` adds recorded results of Linux' own senders on the same path, since
//! these need real time and an idle machine. `make kernel-figures` records them. `inside=kernel` adds them in parentheses.

#[path = "figures/transactions.rs"]
mod transactions;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use lasthop_observe::stats::Summary;
use lasthop_scenario::{Argument, Scenario, example, parse};
use lasthop_sim::runs::measure_all;
use serde::{Deserialize, Serialize};

const PAGES: [&str; 3] =
    ["reference/modern-senders.md", "explanation/parity.md", "explanation/worth-it.md"];

/// Results of kernel senders in Mbit/s, one per run.
#[derive(Serialize, Deserialize, Default)]
struct KernelRecord {
    /// The kernel's release.
    release: String,
    /// By settings and labels of the axes.
    runs: BTreeMap<String, Vec<f64>>,
}

fn recorded_at() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/figures/kernel.json")
}

fn recorded() -> KernelRecord {
    serde_json::from_str(&std::fs::read_to_string(recorded_at()).unwrap()).unwrap()
}

/// The arguments of a table.
#[derive(Default, Debug)]
struct TableArguments {
    scenario: String,
    sets: Vec<String>,
    axes: Vec<String>,
    seeds: u64,
    kernel: bool,
    parentheses: bool,
}

impl TableArguments {
    fn parse(words: &str) -> TableArguments {
        let mut arguments = TableArguments { seeds: 1, ..TableArguments::default() };
        let mut words = words.split_whitespace();
        while let Some(word) = words.next() {
            let mut value = || words.next().expect("a value").to_owned();
            match word {
                "--set" => arguments.sets.push(value()),
                "--vary" => arguments.axes.push(value()),
                "--seeds" => arguments.seeds = value().parse().unwrap(),
                "beside=kernel" => arguments.kernel = true,
                "inside=kernel" => arguments.parentheses = true,
                name => arguments.scenario = name.to_owned(),
            }
        }
        arguments.sets.sort();
        arguments
    }

    /// The key of a cell in the record.
    fn key(&self, labels: &[String]) -> String {
        format!("{} | {}", self.sets.join(" "), labels.join(" | "))
    }

    /// The throughput of each cell in Mbit/s, by labels; nothing for cells that are not measured.
    fn run(&self, all: bool) -> Vec<(Vec<String>, Vec<f64>)> {
        let text = example(&self.scenario).unwrap().text;
        let sets = self.sets.iter().cloned().map(Argument::Set);
        let axes = self.axes.iter().cloned().map(Argument::Vary);
        let arguments: Vec<Argument> = sets.chain(axes).collect();
        let (plan, _) = parse(text, &self.scenario, &arguments).unwrap();
        let columns = plan.axes[1].labels.len();
        let is_measured = |at: usize| all || (at / columns + at % columns).is_multiple_of(3);
        let measured = plan.cells.iter().enumerate().filter(|(at, _)| is_measured(*at));
        let jobs: Vec<(&Scenario, u64)> = measured
            .flat_map(|(_, cell)| (1..=self.seeds).map(|seed| (&cell.scenario, seed)))
            .collect();
        let rates: Vec<f64> = measure_all(&jobs, &())
            .into_iter()
            .map(|run| run.unwrap().metrics.aggregate_throughput * 8e-6)
            .collect();
        let mut rates = rates.chunks(self.seeds as usize).map(<[f64]>::to_vec);
        let labels = plan.cells.iter().map(|cell| cell.labels.clone()).enumerate();
        let mut of = |at| if is_measured(at) { rates.next().expect("runs") } else { Vec::new() };
        labels.map(|(at, labels)| (labels, of(at))).collect()
    }
}

/// `5.80 ± 0.22`, with three digits; an interval below half of the last digit is left out.
fn formatted(values: &[f64]) -> String {
    let Summary { mean, ci95, .. } = Summary::of(values);
    let decimals = [1.0, 10.0, 100.0].into_iter().filter(|least| mean < *least).count();
    let interval = format!("{ci95:.decimals$}");
    match interval.trim_matches(['0', '.']) {
        "" => format!("{mean:.decimals$}"),
        _ => format!("{mean:.decimals$} ± {interval}"),
    }
}

/// Ours divided by the kernel's, with an interval from both.
fn ratio(ours: &[f64], kernel: &[f64]) -> String {
    let part = |values: &[f64]| {
        let summary = Summary::of(values);
        (summary.mean, summary.ci95 / summary.mean)
    };
    let ((ours, a), (kernel, b)) = (part(ours), part(kernel));
    let ratio = ours / kernel;
    format!("{ratio:.2} ± {:.2}", ratio * (a * a + b * b).sqrt())
}

/// A row for each value of the first axis, a column for each of the second. Cells that are not measured are those of the
/// table `old`.
fn table(arguments: &TableArguments, kernel: &KernelRecord, old: &str, all: bool) -> String {
    let cells = arguments.run(all);
    let width = if arguments.kernel { 3 } else { 1 };
    let old: Vec<Vec<&str>> =
        old.trim().lines().skip(2).map(|row| row.split('|').collect()).collect();
    let old = |row: usize, column: usize| {
        let parts = old.get(row).and_then(|row| row.get(2 + width * column..)).unwrap_or_default();
        parts.iter().take(width).map(|part| format!("{part}|")).collect::<String>()
    };
    let mut rows: Vec<(&str, String)> = Vec::new();
    let mut head: Vec<String> = Vec::new();
    for (labels, rates) in &cells {
        let [row, column] = labels.as_slice() else { panic!("two axes: {labels:?}") };
        if rows.last().is_none_or(|last| last.0 != row) {
            rows.push((row, String::new()));
        }
        let at = rows.len() - 1;
        let line = &mut rows.last_mut().unwrap().1;
        let key = arguments.key(labels);
        let theirs = || kernel.runs.get(&key).unwrap_or_else(|| panic!("`{key}` is not recorded"));
        *line += &match (rates.is_empty(), arguments.parentheses, arguments.kernel) {
            (true, ..) => old(at, line.matches('|').count() / width),
            (_, true, _) => format!(" {} ({}) |", formatted(rates), formatted(theirs())),
            (_, _, true) => {
                let ratio = ratio(rates, theirs());
                format!(" {} | {} | {ratio} |", formatted(rates), formatted(theirs()))
            }
            _ => format!(" {} |", formatted(rates)),
        };
        let mut columns = vec![format!(" `{column}` |")];
        if arguments.kernel {
            columns.extend([" Linux |".to_owned(), " ratio |".to_owned()]);
        }
        if rows.len() == 1 {
            head.extend(columns);
        }
    }
    // The last part of the axis' key is the heading of the rows.
    let of = arguments.axes[0].split('=').next().and_then(|key| key.rsplit('.').next()).unwrap();
    let mut text = format!("| {of} |{}\n|---|{}\n", head.concat(), "---|".repeat(head.len()));
    for (row, line) in rows {
        text += &format!("| {} |{line}\n", row.replace('%', " %"));
    }
    text
}

#[test]
fn the_figures_of_the_manual_are_those_of_the_program() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let kernel = recorded();
    let write = std::env::var_os("LASTHOP_WRITE_FIGURES").is_some();
    let mut tables = 0;
    for page in PAGES {
        let path = docs.join(page);
        let old = std::fs::read_to_string(&path).unwrap();
        let mut parts = old.split("<!-- figures: ");
        let mut new = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let (words, rest) = part.split_once(" -->\n").expect("arguments");
            let (before, after) = rest.split_once("<!-- end -->").expect("an end");
            let table = table(&TableArguments::parse(words), &kernel, before, write);
            new += &format!("<!-- figures: {words} -->\n\n{table}\n<!-- end -->{after}");
            tables += 1;
        }
        if write {
            std::fs::write(&path, new).unwrap();
        } else {
            assert!(old == new, "docs/{page} is out of date: run `make figures`");
        }
    }
    assert!(tables > 3, "{tables}");
}

/// Adds results of `lasthop run --json` about a kernel to the record; `LASTHOP_KERNEL_RUNS` has their paths.
#[test]
fn the_record_of_the_kernel_can_be_read_and_added_to() {
    let Some(paths) = std::env::var_os("LASTHOP_KERNEL_RUNS") else {
        assert!(
            recorded().runs.len() >= 21,
            "docs/explanation/parity.md states this number of cells"
        );
        return;
    };
    let mut record = recorded();
    record.release =
        std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap().trim().to_owned();
    for path in std::env::split_paths(&paths) {
        let text = std::fs::read_to_string(path).unwrap();
        let results: serde_json::Value = serde_json::from_str(&text).unwrap();
        let command = results["setup"]["command"].as_str().unwrap();
        let own = |set: &&str| !set.ends_with("stack=kernel");
        let words: Vec<&str> = command.split(' ').collect();
        let pairs = words.windows(2).filter(|pair| pair[0] == "--set").map(|pair| pair[1]);
        let mut arguments = TableArguments {
            sets: pairs.filter(own).map(str::to_owned).collect(),
            ..TableArguments::default()
        };
        arguments.sets.sort();
        for cell in results["cells"].as_array().unwrap() {
            let labels = cell["labels"].as_array().unwrap().iter();
            let labels: Vec<String> = labels.map(|l| l.as_str().unwrap().to_owned()).collect();
            let rate = |run: &serde_json::Value| {
                let bytes = run["metrics"]["aggregate_throughput"].as_f64().unwrap();
                (bytes * 8e-2).round() / 1e4
            };
            let rates = cell["runs"].as_array().unwrap().iter().map(rate).collect();
            record.runs.insert(arguments.key(&labels), rates);
        }
    }
    std::fs::write(recorded_at(), serde_json::to_string_pretty(&record).unwrap() + "\n").unwrap();
}
