//! Runs in the testbed: one process per cell, sequentially, so that each has the machine to itself.

use std::path::PathBuf;

use lasthop_scenario::{Argument, Scenario};
use lasthop_sim::runs::RunResult;
use serde::{Deserialize, Serialize};

use crate::child::{self, Remaining};
use crate::failure::Failure;
use crate::stop::Stop;

/// The order for a process. It parses the scenario again; the same text and arguments give the same plan.
#[derive(Clone, Default, Serialize, Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct Order {
    /// Name of the scenario, where its text gives none.
    pub name: String,
    /// The scenario's text.
    pub text: String,
    /// `--set` arguments in order.
    pub set: Vec<String>,
    /// `--vary` arguments in order.
    pub vary: Vec<String>,
    /// Index of the cell in the plan.
    pub cell: usize,
    /// Seeds of the runs.
    pub seeds: Vec<u64>,
    /// Destination of the first run's trace.
    pub trace: Option<Trace>,
}

impl Order {
    /// The arguments of the command line.
    pub fn arguments(&self) -> Vec<Argument> {
        let set = self.set.iter().cloned().map(Argument::Set);
        set.chain(self.vary.iter().cloned().map(Argument::Vary)).collect()
    }

    /// The scenario of the cell; `None` if it does not exist.
    pub fn scenario(&self) -> Option<Scenario> {
        let (mut plan, _) =
            lasthop_scenario::parse(&self.text, &self.name, &self.arguments()).ok()?;
        (self.cell < plan.cells.len()).then(|| plan.cells.swap_remove(self.cell).scenario)
    }
}

/// Destination of a trace.
#[derive(Clone, Serialize, Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct Trace {
    /// Path of a folder that does not exist yet.
    pub folder: PathBuf,
    /// Title of its plots.
    pub title: String,
    /// Size limit of its files, bytes.
    pub most: Option<u64>,
}

/// A line of the answer.
#[derive(Serialize, Deserialize, Debug)]
#[serde(rename_all = "lowercase")]
pub enum Line {
    /// Progress of a run.
    Progress(Progress),
    /// A finished run.
    Run(Box<RunResult>),
    /// The end of the runs by an error.
    Error {
        /// The error.
        message: String,
        /// The remedy.
        help: String,
    },
}

/// Progress of a run, which lasts as long as its transfers.
#[derive(Clone, Copy, Serialize, Deserialize, Debug)]
pub struct Progress {
    pub seed: u64,
    /// Delivered bytes of all transfers.
    pub delivered: u64,
    /// Total bytes; `None` if a transfer has no end.
    pub wanted: Option<u64>,
    /// Seconds since the start.
    pub seconds: f64,
}

/// Runs `order`. `under_way` receives the progress of a run, `done` each finished run. Ends early without an error when
/// `stop` is set.
pub fn carry_out(
    order: &Order,
    stop: &Stop,
    mut under_way: impl FnMut(&Progress),
    mut done: impl FnMut(RunResult) -> Result<(), Failure>,
) -> Result<(), Failure> {
    child::needs_linux("; `--world sim` runs everywhere")?;
    let mut finished = 0;
    child::converse(&["testbed-run"], order, &|| stop.requested(), |line| match line {
        Line::Progress(progress) => {
            under_way(&progress);
            Ok(Remaining::More)
        }
        Line::Error { message, help } => Err(Failure::input(message, help)),
        Line::Run(result) => {
            finished += 1;
            done(*result)?;
            Ok(if finished == order.seeds.len() { Remaining::Nothing } else { Remaining::More })
        }
    })
}
