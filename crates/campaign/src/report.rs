//! The tables of docs/explanation/reliability.md, generated from the records of campaigns.

use core::fmt::Write as _;
use std::collections::BTreeMap;

use serde::Deserialize;

/// Results of campaigns: a TOML block each, which commands append with `--record FILE`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Records {
    scenarios: Vec<Scenarios>,
    fuzz: Vec<Fuzz>,
    kills: Vec<Kills>,
    disk: Vec<Disk>,
    memory: Vec<Memory>,
    found: Vec<Fault>,
}

/// Hostile scenarios.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Scenarios {
    /// The first case.
    #[expect(dead_code, reason = "for readers of the records")]
    from: u64,
    runs: u64,
    events: u64,
    none: u64,
    wrong: u64,
}

/// A fuzz target.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Fuzz {
    target: String,
    executions: u64,
    /// Wall-clock seconds on a shared machine.
    #[serde(default)]
    #[expect(dead_code, reason = "older records have it; it says little")]
    seconds: u64,
    /// Processor seconds, where measured.
    #[serde(default)]
    #[expect(dead_code, reason = "for readers of the records")]
    processor: u64,
    wrong: u64,
}

/// Killed processes.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kills {
    of: String,
    kills: u64,
    /// Processes that completed all the same, or after a restart.
    ended: u64,
    wrong: u64,
}

/// A command on full disks.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Disk {
    command: String,
    refused: u64,
    done: u64,
    wrong: u64,
}

/// A command with little memory.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Memory {
    command: String,
    /// Runs that ended with an error.
    refused: u64,
    /// Runs that the system ended by a signal.
    killed: u64,
    done: u64,
    wrong: u64,
}

/// A fault that a campaign found.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Fault {
    /// The method, and in parentheses its case.
    by: String,
    #[expect(dead_code, reason = "for readers of the records")]
    what: String,
    #[expect(dead_code, reason = "for readers of the records")]
    mended: String,
}

/// Headings of the table of commands that write files: on full disks, then with little memory, then both.
const WRITERS: [&str; 7] = [
    "command",
    "disk: too little room, reported",
    "enough room",
    "memory: error",
    "aborted",
    "enough memory",
    "wrong",
];

/// A number with thousands separators.
fn apart(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn table(heads: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut text = format!("| {} |\n|{}\n", heads.join(" | "), "---|".repeat(heads.len()));
    for row in rows {
        let _ = writeln!(text, "| {} |", row.join(" | "));
    }
    text
}

/// Adds up rows with the same name, in order of first appearance.
fn summed<const N: usize>(
    rows: impl Iterator<Item = (String, [u64; N])>,
) -> impl Iterator<Item = (String, [u64; N])> {
    let mut order: Vec<String> = Vec::new();
    let mut sums: BTreeMap<String, [u64; N]> = BTreeMap::new();
    for (name, row) in rows {
        if !sums.contains_key(&name) {
            order.push(name.clone());
        }
        let sum = sums.entry(name).or_insert([0; N]);
        sum.iter_mut().zip(row).for_each(|(sum, more)| *sum += more);
    }
    order.into_iter().map(move |name| {
        let row = sums.get(&name).copied().unwrap_or([0; N]);
        (name, row)
    })
}

fn row(name: String, numbers: impl IntoIterator<Item = u64>) -> Vec<String> {
    core::iter::once(name).chain(numbers.into_iter().map(apart)).collect()
}

impl Records {
    /// Parses the file of records.
    ///
    /// # Errors
    ///
    /// The parser's message with its position.
    pub fn read(text: &str) -> Result<Records, String> {
        toml::from_str(text).map_err(|error| error.to_string())
    }

    /// The tables, by name.
    pub fn tables(&self) -> Vec<(&'static str, String)> {
        let [runs, events, none, wrong] = self.scenarios.iter().fold([0; 4], |sum, s| {
            [sum[0] + s.runs, sum[1] + s.events, sum[2] + s.none, sum[3] + s.wrong]
        });
        let scenarios = [row(apart(runs), [events, none, wrong])];
        let fuzz = summed(self.fuzz.iter().map(|f| (f.target.clone(), [f.executions, f.wrong])));
        let kills = summed(self.kills.iter().map(|k| (k.of.clone(), [k.kills, k.ended, k.wrong])));
        let disk =
            self.disk.iter().map(|d| (d.command.clone(), [d.refused, d.done, 0, 0, 0, d.wrong]));
        let memory = self
            .memory
            .iter()
            .map(|m| (m.command.clone(), [0, 0, m.refused, m.killed, m.done, m.wrong]));
        let writers = summed(disk.chain(memory));
        let method = |by: &str| by.split(" (").next().unwrap_or_default().to_owned();
        let found = summed(self.found.iter().map(|f| (method(&f.by), [1])));
        let heads = ["runs", "events", "cases without a valid scenario", "wrong"];
        vec![
            ("scenarios", table(&heads, scenarios)),
            (
                "fuzz",
                table(
                    &["target", "executions", "wrong"],
                    fuzz.map(|(name, sums)| row(format!("`{name}`"), sums)),
                ),
            ),
            (
                "kills",
                table(
                    &["process", "kills", "completed", "wrong"],
                    kills.map(|(name, sums)| row(name, sums)),
                ),
            ),
            (
                "writers",
                table(&WRITERS, writers.map(|(name, sums)| row(format!("`{name}`"), sums))),
            ),
            ("found", table(&["found by", "faults"], found.map(|(name, count)| row(name, count)))),
        ]
    }

    /// `page` with its tables replaced.
    ///
    /// # Errors
    ///
    /// The name of a table that has no markers in the page.
    pub fn put_into(&self, page: &str) -> Result<String, String> {
        let mut page = page.to_owned();
        for (name, table) in self.tables() {
            let mark = format!("<!-- table: {name} -->\n");
            let missing = || format!("the page has no mark of the table `{name}`");
            let (before, rest) = page.split_once(&mark).ok_or_else(missing)?;
            let (_, after) = rest.split_once("<!-- end -->").ok_or_else(missing)?;
            page = format!("{before}{mark}\n{table}\n<!-- end -->{after}");
        }
        Ok(page)
    }
}
