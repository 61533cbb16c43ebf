//! Energy use of a scenario by part, and the changes with the largest savings.

mod change;
mod page;
mod question;
mod tables;

use lasthop_observe::metrics::NodeEnergy;
use lasthop_observe::stats::Summary;
use lasthop_scenario::{Axis, Cell, LeftOut, Plan, Scenario};
use lasthop_sim::runs::{CellResults, Setup};
use serde::Serialize;

use crate::ranking::{Ratio, standings};
use crate::{Alternative, Document, Error, Ranked, Runner, rank};
pub use page::{page, pictures};
pub use question::{Question, without_parts};
pub use tables::{NOTE, hosts, parts, ranking, verdict};

/// The name of the unchanged scenario.
const AS_IS: &str = "as-is";
/// The name of all helpful changes together.
const TOGETHER: &str = "together";

/// The results of an energy study.
#[derive(Clone, Debug, Serialize)]
pub struct Energy {
    /// Maximum duration of a run, in seconds.
    pub horizon_s: f64,
    /// Whether a transfer is endless, so that a longer run represents a whole battery charge better.
    pub endless: bool,
    /// The hosts on batteries in the unchanged scenario.
    pub hosts: Vec<HostEnergy>,
    /// The host whose bytes per joule rank the changes.
    pub ranked_by: String,
    /// The changes and the unchanged scenario, the best first.
    pub changes: Vec<Row>,
}

/// A host of the unchanged scenario: means over the runs.
#[derive(Clone, Debug, Serialize)]
pub struct HostEnergy {
    pub host: String,
    /// Hardware preset.
    pub hardware: String,
    /// Whether the hardware is an assumption.
    pub assumed: bool,
    /// Lifetime of the full battery, in seconds.
    pub lifetime_s: Summary,
    /// Payload per joule, in bytes.
    pub bytes_per_joule: Summary,
    /// Payload per battery charge, in bytes.
    pub bytes_per_battery: Summary,
    /// Mean power in watts.
    pub power_w: Summary,
    /// Power by part.
    pub parts: Vec<Part>,
}

/// A consumer of battery power.
#[derive(Clone, Debug, Serialize)]
pub struct Part {
    pub name: &'static str,
    /// Mean power in watts.
    pub power_w: Summary,
    /// Share of the total.
    pub share: f64,
}

/// A consumer's name, and the joules that it used at a node.
type Consumer = (&'static str, fn(&NodeEnergy) -> f64);

const PARTS: [Consumer; 6] = [
    ("base", |n| n.spent.base),
    ("radio asleep", |n| n.spent.doze),
    ("radio idle", |n| n.spent.idle),
    ("receiving", |n| n.spent.receive),
    ("transmitting", |n| n.spent.transmit),
    ("processing", |n| n.spent.processing),
];

/// One change, ranked by the bytes per joule at one host.
pub type Row = Ranked<ChangeFigures>;

/// Further figures of a change.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ChangeFigures {
    /// Battery lifetime of that host, in seconds.
    pub lifetime_s: Summary,
    /// Bytes per joule at the other hosts, relative to the unchanged scenario.
    pub others: Vec<(String, Option<Ratio>)>,
}

/// The changes with their runs.
struct ChangeRuns<'a> {
    question: &'a Question<'a>,
    changes: Vec<Alternative>,
    cells: Vec<CellResults>,
}

/// Runs the unchanged scenario, each change, and then all helpful changes together. `setup` has the texts of the
/// scenario.
///
/// # Errors
///
/// The helpful changes exclude each other, or `run` fails.
pub fn answer<E: From<Error>>(
    question: &Question<'_>,
    setup: &Setup,
    run: &mut Runner<'_, E>,
) -> Result<Document<Energy>, E> {
    let (mut changes, mut left_out) = change::changes(&question.scenario, question.ends);
    let mut scenarios = vec![question.scenario.clone()];
    changes.retain(|change| match question.changed(&change.sets) {
        Ok(scenario) => {
            scenarios.push(scenario);
            true
        }
        Err(reason) => {
            left_out.push(LeftOut { name: change.name.clone(), reason });
            false
        }
    });
    changes.insert(0, Alternative::setting(AS_IS, "the scenario as it is", Vec::new()));
    let mut measured = ChangeRuns { question, changes: Vec::new(), cells: Vec::new() };
    measured.run(changes, scenarios, run)?;
    if let Some(together) = measured.together() {
        let scenario = question.changed(&together.sets).map_err(|reason| {
            Error::input(format!("the changes exclude each other: {reason}"), "")
        })?;
        measured.run(vec![together], vec![scenario], run)?;
    }
    Ok(Document { left_out, ..measured.document(setup) })
}

impl ChangeRuns<'_> {
    /// Makes the runs of more changes.
    fn run<E>(
        &mut self,
        changes: Vec<Alternative>,
        scenarios: Vec<Scenario>,
        run: &mut Runner<'_, E>,
    ) -> Result<(), E> {
        let labels: Vec<String> = changes.iter().map(|change| change.name.clone()).collect();
        let cell = |(label, scenario)| Cell { labels: vec![label], scenario };
        let plan = Plan {
            name: self.question.scenario.name.clone(),
            cells: labels.iter().cloned().zip(scenarios).map(cell).collect(),
            axes: vec![Axis { name: "change".to_owned(), labels }],
        };
        self.cells.extend(run(&plan)?.cells);
        self.changes.extend(changes);
        Ok(())
    }

    /// All helpful changes, if there is more than one.
    fn together(&self) -> Option<Alternative> {
        let (whole, rows) = (self.whole(), self.rows());
        let helping: Vec<&Alternative> =
            rows.iter().filter(|row| row.helps()).map(|row| &row.alternative).collect();
        let names: Vec<&str> = helping.iter().map(|change| change.name.as_str()).collect();
        (whole.len() == self.changes.len() && helping.len() > 1).then(|| {
            let sets = helping.iter().flat_map(|change| change.sets.iter().cloned()).collect();
            Alternative::setting(TOGETHER, format!("all that help: {}", names.join(", ")), sets)
        })
    }

    /// The changes whose runs are complete.
    fn whole(&self) -> Vec<usize> {
        let wanted = self.question.scenario.runs as usize;
        (0..self.cells.len()).filter(|i| self.cells[*i].runs.len() == wanted).collect()
    }

    /// The changes compared with the unchanged scenario, the best first; empty without its runs.
    fn rows(&self) -> Vec<Row> {
        let whole = self.whole();
        let Some(baseline) = whole.iter().position(|i| *i == 0) else { return Vec::new() };
        let bytes_per_joule = |host: &str| -> Vec<Vec<f64>> {
            let of = |i: &usize| values(&self.cells[*i], host, |n| n.bytes_per_joule);
            whole.iter().map(of).collect()
        };
        let hosts = self.question.scenario.hosts.iter().filter(|h| h.battery.is_some());
        let others = hosts.filter(|host| host.name != self.question.host).map(|host| {
            let all = standings(&bytes_per_joule(&host.name), baseline);
            (&host.name, all)
        });
        let others: Vec<_> = others.collect();
        let host = self.question.host.as_str();
        let changes = whole.iter().map(|i| self.changes[*i].clone()).collect();
        rank(changes, &bytes_per_joule(host), baseline, |place| ChangeFigures {
            lifetime_s: Summary::of(&values(&self.cells[whole[place]], host, |n| n.lifetime_s)),
            others: others.iter().map(|(name, all)| ((*name).clone(), all[place].ratio)).collect(),
        })
    }

    fn document(&self, setup: &Setup) -> Document<Energy> {
        let Question { scenario, host, .. } = self.question;
        let whole = self.whole();
        let changes = self.rows();
        let unfinished = (0..self.cells.len()).filter(|i| !whole.contains(i));
        let seeds =
            (0..u64::from(scenario.runs)).map(|i| scenario.first_seed.wrapping_add(i)).collect();
        let anything_helps = changes.iter().any(Ranked::helps);
        let results = Energy {
            horizon_s: scenario.horizon.as_secs_f64(),
            endless: setup.endless,
            hosts: host_energy(self.question, &self.cells[0]),
            ranked_by: host.clone(),
            changes,
        };
        Document {
            unfinished: unfinished.map(|i| self.changes[i].name.clone()).collect(),
            anything_helps: Some(anything_helps),
            ..Document::new(&scenario.name, setup, seeds, results)
        }
    }
}

/// A figure of `host` in each run.
fn values(cell: &CellResults, host: &str, of: impl Fn(&NodeEnergy) -> f64) -> Vec<f64> {
    let nodes = cell.runs.iter().flat_map(|run| run.metrics.energy.iter().find(|n| n.host == host));
    nodes.map(of).collect()
}

fn host_energy(question: &Question<'_>, cell: &CellResults) -> Vec<HostEnergy> {
    let powered = question.scenario.hosts.iter().filter_map(|h| Some((h, h.battery.as_ref()?)));
    powered
        .filter(|_| !cell.runs.is_empty())
        .map(|(host, hardware)| {
            let of = |f: fn(&NodeEnergy) -> f64| Summary::of(&values(cell, &host.name, f));
            let power_w = of(NodeEnergy::mean_power_w);
            let part = |(name, f): Consumer| {
                let own = Summary::of(&values(cell, &host.name, |n| {
                    if n.spent_j > 0.0 { f(n) / n.spent_j * n.mean_power_w() } else { 0.0 }
                }));
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
                parts: PARTS.into_iter().map(part).collect(),
            }
        })
        .collect()
}
