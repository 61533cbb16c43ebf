//! A plan as text: the output of `lasthop run --dry-run`.

use std::fmt::Write as _;

use lasthop_report::model::{Column, Table};
use lasthop_report::number::plural;
use lasthop_report::table::render_lean;
use lasthop_scenario::{Plan, Run, Scenario};
use lasthop_sim::runs::Setup;
use serde::Serialize;

use crate::style;

/// Limit of listed cells; of larger plans only the number is printed.
const LISTED: usize = 40;

/// A plan for a program.
#[derive(Serialize)]
pub struct PlanAnswer<'a> {
    #[serde(flatten)]
    plan: &'a Plan,
    total_runs: u64,
    /// The first run of each cell: its key shows whether two plans are equal.
    first_runs: Vec<Run>,
    warnings: Vec<serde_json::Value>,
}

impl<'a> PlanAnswer<'a> {
    /// A plan with its warnings.
    pub fn new(plan: &'a Plan, warnings: Vec<serde_json::Value>) -> PlanAnswer<'a> {
        let mut first_runs: Vec<Run> = Vec::with_capacity(plan.cells.len());
        for run in plan.runs() {
            if first_runs.last().is_none_or(|last| last.cell != run.cell) {
                first_runs.push(run);
            }
        }
        PlanAnswer { plan, total_runs: plan.count(), first_runs, warnings }
    }
}

/// A plan for a person.
pub fn table(plan: &Plan) -> String {
    let mut text = String::new();
    let cells = plan.cells.len();
    let size = plural(cells as u64, "cell");
    // Writing to a string cannot fail.
    let _ =
        writeln!(text, "{}: {size}, {}\n", style::heading(&plan.name), plural(plan.count(), "run"));
    let Setup { path, transfers, .. } = Setup::new(String::new(), plan);
    let _ = writeln!(text, "  {path}\n  {}\n", transfers.join("\n  "));
    text.push_str(&rows(plan));
    text
}

fn rows(plan: &Plan) -> String {
    let axes = plan.axes.iter().map(|axis| axis.name.as_str());
    let columns = axes.chain(["runs", "seeds"]).map(Column::text);
    let rows = plan.cells.iter().take(LISTED).map(|cell| {
        let Scenario { runs, first_seed, .. } = &cell.scenario;
        let last = first_seed.saturating_add(u64::from(*runs).saturating_sub(1));
        let mut row = cell.labels.clone();
        row.extend([runs.to_string(), format!("{first_seed}..{last}")]);
        row
    });
    let mut text = render_lean(&Table::new(columns, rows), style::look()) + "\n";
    if plan.cells.len() > LISTED {
        let _ = writeln!(text, "  and {}", plural((plan.cells.len() - LISTED) as u64, "more cell"));
    }
    text
}
