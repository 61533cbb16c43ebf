//! Where the joules of a scenario go, and which change would save most: from a scenario to a document.

pub mod change;
pub mod page;
pub mod show;

use std::num::NonZeroUsize;
use std::path::Path;

use lasthop_lab::ranking::{Judgement, Ratio, Standing, standings};
use lasthop_lab::{CellResults, Results, Setup};
use lasthop_scenario::{Argument, Axis, Cell, LeftOut, Plan, Scenario};
use lasthop_trace::metrics::{NodeEnergy, RunMetrics};
use lasthop_trace::stats::Summary;
use serde::Serialize;

use crate::failure::Failure;
use crate::output;
use crate::progress::Progress;
use crate::scenario::Text;
use crate::stop::Stop;
use crate::sweep::Job;
use crate::sweep::testbed::Order;
use change::Change;

/// The name of what is not changed.
pub const AS_IS: &str = "as-is";
/// The name of all changes that help, made together.
pub const TOGETHER: &str = "together";

/// What is asked.
#[derive(Debug)]
pub struct Question<'a> {
    /// The scenario's text.
    pub text: &'a Text,
    /// The arguments that make it what it is, batteries among them.
    pub arguments: Vec<Argument>,
    /// The scenario.
    pub scenario: Scenario,
    /// Its name.
    pub name: String,
    /// The two hosts of the transfer that is looked at.
    pub ends: [usize; 2],
    /// Whose bytes for a joule the changes are ranked by.
    pub host: String,
    /// The hosts whose hardware was assumed.
    pub assumed: Vec<String>,
    /// The command that does it again.
    pub command: String,
}

/// How it is to be carried out.
#[derive(Debug)]
pub struct How<'a> {
    /// Where results go.
    pub output: Option<&'a Path>,
    /// Threads; nothing is one for each processor.
    pub jobs: Option<NonZeroUsize>,
    /// Whether no progress is shown.
    pub quiet: bool,
    /// Asked between two runs.
    pub stop: &'a Stop,
}

/// Everything that is said.
#[derive(Clone, Debug, Serialize)]
pub struct Document {
    /// Version of lasthop that made it.
    pub lasthop: String,
    /// Name of the scenario.
    pub name: String,
    /// The command that makes it again.
    pub command: String,
    /// The path from left to right.
    pub path: String,
    /// What is transferred.
    pub transfers: Vec<String>,
    /// Seeds of the runs of each change.
    pub seeds: Vec<u64>,
    /// The longest that a run may take, in seconds.
    pub horizon_s: f64,
    /// Whether a transfer has no end, so that a longer run would be nearer to a whole battery.
    pub endless: bool,
    /// The hosts on batteries, as the scenario is.
    pub hosts: Vec<HostEnergy>,
    /// Whose bytes for a joule the changes are ranked by.
    pub ranked_by: String,
    /// The changes, the best first, and what is not changed among them.
    pub changes: Vec<Row>,
    /// Changes that do not apply.
    pub left_out: Vec<LeftOut>,
    /// Changes of which not all runs were made, since somebody interrupted.
    pub unfinished: Vec<String>,
    /// Whether any change is better than none, with confidence.
    pub anything_helps: bool,
}

/// A host as the scenario is: means over the runs.
#[derive(Clone, Debug, Serialize)]
pub struct HostEnergy {
    /// The host.
    pub host: String,
    /// What it is made of.
    pub hardware: String,
    /// Whether the file does not say so.
    pub assumed: bool,
    /// How long the full battery lasts, in seconds.
    pub lifetime_s: Summary,
    /// Payload moved for each joule, in bytes.
    pub bytes_per_joule: Summary,
    /// Payload moved with a full battery, in bytes.
    pub bytes_per_battery: Summary,
    /// Mean power in watts.
    pub power_w: Summary,
    /// What draws it.
    pub parts: Vec<Part>,
}

/// What draws from a battery.
#[derive(Clone, Debug, Serialize)]
pub struct Part {
    /// Its name.
    pub name: &'static str,
    /// Its mean power in watts.
    pub power_w: Summary,
    /// Its share of all.
    pub share: f64,
}

/// One change, beside none.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// What it is.
    #[serde(flatten)]
    pub change: Change,
    /// Bytes for a joule at the host that is ranked by, beside the others.
    #[serde(flatten)]
    pub standing: Standing,
    /// How long the battery of that host lasts, in seconds.
    pub lifetime_s: Summary,
    /// Bytes for a joule at the other hosts, as often as without the change.
    pub others: Vec<(String, Option<Ratio>)>,
}

/// The changes that were run, and their results.
struct Measured {
    changes: Vec<Change>,
    cells: Vec<CellResults>,
    /// How many runs of each there should be.
    wanted: usize,
}

/// Answers. Runs that were made are kept when somebody interrupts; the second value says whether nobody did.
pub fn answer(question: &Question<'_>, how: &How<'_>) -> Result<(Document, bool), Failure> {
    let (mut changes, mut left_out) = change::changes(&question.scenario, question.ends);
    let mut scenarios = vec![question.scenario.clone()];
    changes.retain(|change| match changed(question, &change.sets) {
        Ok(scenario) => {
            scenarios.push(scenario);
            true
        }
        Err(reason) => {
            left_out.push(LeftOut { name: change.name.clone(), reason });
            false
        }
    });
    let as_is = Change {
        name: AS_IS.to_owned(),
        what: "the scenario as it is".to_owned(),
        sets: Vec::new(),
    };
    changes.insert(0, as_is);
    let wanted = question.scenario.runs as usize;
    let progress = Progress::new(((scenarios.len() + 1) * wanted) as u64, how.quiet);
    let mut measured = Measured { changes: Vec::new(), cells: Vec::new(), wanted };
    measured.run(question, how, &progress, changes, scenarios)?;
    if let Some(together) = together(question, &measured) {
        let scenario = changed(question, &together.sets).map_err(|reason| {
            Failure::input(format!("the changes exclude each other: {reason}"), "")
        })?;
        measured.run(question, how, &progress, vec![together], vec![scenario])?;
    }
    progress.finish();
    let complete = measured.cells.iter().all(|cell| cell.runs.len() == wanted);
    Ok((document(question, &measured, left_out), complete))
}

/// The scenario with these changes, or why there is none.
fn changed(question: &Question<'_>, sets: &[String]) -> Result<Scenario, String> {
    let mut arguments = question.arguments.clone();
    arguments.extend(sets.iter().cloned().map(Argument::Set));
    match lasthop_scenario::parse(&question.text.text, &question.text.name, &arguments) {
        Ok((plan, _)) => {
            plan.cells.into_iter().next().map(|cell| cell.scenario).ok_or_else(String::new)
        }
        Err(error) => Err(error.to_string()),
    }
}

/// Everything that helps, if that is more than one change.
fn together(question: &Question<'_>, measured: &Measured) -> Option<Change> {
    let whole: Vec<usize> = measured.whole();
    let rows = rows(question, measured, &whole);
    let helping: Vec<&Row> =
        rows.iter().filter(|row| row.standing.judgement == Judgement::Better).collect();
    let all = whole.len() == measured.changes.len() && helping.len() > 1;
    all.then(|| Change {
        name: TOGETHER.to_owned(),
        what: format!(
            "all that help: {}",
            helping.iter().map(|row| row.change.name.as_str()).collect::<Vec<_>>().join(", ")
        ),
        sets: helping.iter().flat_map(|row| row.change.sets.iter().cloned()).collect(),
    })
}

impl Measured {
    /// Makes the runs of more changes.
    fn run(
        &mut self,
        question: &Question<'_>,
        how: &How<'_>,
        progress: &Progress,
        changes: Vec<Change>,
        scenarios: Vec<Scenario>,
    ) -> Result<(), Failure> {
        let labels: Vec<String> = changes.iter().map(|change| change.name.clone()).collect();
        let cells = labels.iter().zip(scenarios);
        let plan = Plan {
            name: question.name.clone(),
            cells: cells
                .map(|(label, scenario)| Cell { labels: vec![label.clone()], scenario })
                .collect(),
            axes: vec![Axis { name: "change".to_owned(), labels }],
        };
        let processors = || std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let job = Job {
            plan: &plan,
            order: Order::default(),
            output: how.output,
            jobs: how.jobs.map_or_else(processors, NonZeroUsize::get),
            stop: how.stop,
            progress,
        };
        let results = Results::new(&plan, Setup::default(), job.measure()?);
        self.changes.extend(changes);
        self.cells.extend(results.cells);
        Ok(())
    }

    /// The changes of which all runs were made.
    fn whole(&self) -> Vec<usize> {
        (0..self.cells.len()).filter(|i| self.cells[*i].runs.len() == self.wanted).collect()
    }
}

fn node<'m>(metrics: &'m RunMetrics, host: &str) -> Option<&'m NodeEnergy> {
    metrics.energy.iter().find(|node| node.host == host)
}

/// A number of `host` in each run.
fn values(cell: &CellResults, host: &str, of: impl Fn(&NodeEnergy) -> f64) -> Vec<f64> {
    cell.runs.iter().filter_map(|run| node(&run.metrics, host)).map(of).collect()
}

fn standing_of(measured: &Measured, whole: &[usize], baseline: usize, host: &str) -> Vec<Standing> {
    let all: Vec<Vec<f64>> =
        whole.iter().map(|i| values(&measured.cells[*i], host, |n| n.bytes_per_joule)).collect();
    standings(&all, baseline)
}

/// The changes `whole` beside none, the best first; nothing unless the runs without a change are there.
fn rows(question: &Question<'_>, measured: &Measured, whole: &[usize]) -> Vec<Row> {
    let Some(baseline) = whole.iter().position(|i| *i == 0) else { return Vec::new() };
    let hosts = question.scenario.hosts.iter().filter(|h| h.battery.is_some());
    let others: Vec<(&str, Vec<Standing>)> = hosts
        .filter(|host| host.name != question.host)
        .map(|host| (host.name.as_str(), standing_of(measured, whole, baseline, &host.name)))
        .collect();
    let mut rows: Vec<Row> = standing_of(measured, whole, baseline, &question.host)
        .into_iter()
        .enumerate()
        .map(|(place, standing)| Row {
            change: measured.changes[whole[place]].clone(),
            standing,
            lifetime_s: Summary::of(&values(&measured.cells[whole[place]], &question.host, |n| {
                n.lifetime_s
            })),
            others: others
                .iter()
                .map(|(name, all)| ((*name).to_owned(), all[place].ratio))
                .collect(),
        })
        .collect();
    rows.sort_by(|a, b| {
        let best = b.standing.value.mean.total_cmp(&a.standing.value.mean);
        a.standing.rank.cmp(&b.standing.rank).then(best)
    });
    rows
}

fn host_energy(question: &Question<'_>, cell: &CellResults) -> Vec<HostEnergy> {
    let powered = question.scenario.hosts.iter().filter_map(|h| Some((h, h.battery.as_ref()?)));
    powered
        .filter(|_| !cell.runs.is_empty())
        .map(|(host, hardware)| {
            let of = |f: fn(&NodeEnergy) -> f64| Summary::of(&values(cell, &host.name, f));
            let power_w = of(NodeEnergy::mean_power_w);
            let part = |name, f: fn(&NodeEnergy) -> f64| {
                let shares = values(cell, &host.name, |n| {
                    if n.spent_j > 0.0 { f(n) / n.spent_j * n.mean_power_w() } else { 0.0 }
                });
                let own = Summary::of(&shares);
                let share = if power_w.mean > 0.0 { own.mean / power_w.mean } else { 0.0 };
                Part { name, power_w: own, share }
            };
            HostEnergy {
                host: host.name.clone(),
                hardware: hardware.name.clone(),
                assumed: question.assumed.contains(&host.name),
                lifetime_s: of(|n| n.lifetime_s),
                bytes_per_joule: of(|n| n.bytes_per_joule),
                bytes_per_battery: of(|n| n.bytes_per_battery),
                power_w,
                parts: vec![
                    part("base", |n| n.spent.base),
                    part("radio asleep", |n| n.spent.doze),
                    part("radio idle", |n| n.spent.idle),
                    part("receiving", |n| n.spent.receive),
                    part("transmitting", |n| n.spent.transmit),
                    part("processing", |n| n.spent.processing),
                ],
            }
        })
        .collect()
}

fn document(question: &Question<'_>, measured: &Measured, left_out: Vec<LeftOut>) -> Document {
    let whole = measured.whole();
    let rows = rows(question, measured, &whole);
    let unfinished = (0..measured.cells.len()).filter(|i| !whole.contains(i));
    let plan = Plan { name: question.name.clone(), axes: Vec::new(), cells: Vec::new() };
    let first = question.scenario.first_seed;
    Document {
        lasthop: env!("CARGO_PKG_VERSION").to_owned(),
        name: question.name.clone(),
        command: question.command.clone(),
        path: crate::cmd::plan::path(&plan, &question.scenario),
        transfers: crate::cmd::plan::transfers(&question.scenario),
        seeds: (0..u64::from(question.scenario.runs)).map(|i| first.wrapping_add(i)).collect(),
        horizon_s: question.scenario.horizon.as_secs_f64(),
        endless: question.scenario.transfers.iter().any(|transfer| !transfer.ends()),
        hosts: host_energy(question, &measured.cells[0]),
        ranked_by: question.host.clone(),
        anything_helps: rows.iter().any(|row| row.standing.judgement == Judgement::Better),
        changes: rows,
        left_out,
        unfinished: unfinished.map(|i| measured.changes[i].name.clone()).collect(),
    }
}

/// Writes what is said to a directory.
pub fn write(dir: &Path, document: &Document) -> Result<(), Failure> {
    output::write(&dir.join("energy.json"), output::json(document)?.as_bytes())?;
    output::write(&dir.join(crate::sweep::PAGE), page::page(document).as_bytes())?;
    for (name, svg) in page::pictures(document) {
        output::write(&dir.join(name), svg.as_bytes())?;
    }
    Ok(())
}
