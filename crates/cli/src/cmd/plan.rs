//! A plan in words: what `lasthop run --dry-run` prints.

use std::fmt::Write as _;

use lasthop_lab::Setup;
use lasthop_scenario::{Plan, Run, Scenario};
use serde::Serialize;

use crate::style;

/// Cells that are listed; of more only the number is told.
const LISTED: usize = 40;

/// A plan for a program.
#[derive(Serialize)]
pub struct Shown<'a> {
    #[serde(flatten)]
    plan: &'a Plan,
    total_runs: u64,
    /// The first run of each cell: its key shows whether two plans are the same.
    first_runs: Vec<Run>,
    warnings: Vec<serde_json::Value>,
}

impl<'a> Shown<'a> {
    /// The plan and the warnings about it.
    pub fn new(plan: &'a Plan, warnings: Vec<serde_json::Value>) -> Shown<'a> {
        let mut first_runs: Vec<Run> = Vec::with_capacity(plan.cells.len());
        for run in plan.runs() {
            if first_runs.last().is_none_or(|last| last.cell != run.cell) {
                first_runs.push(run);
            }
        }
        Shown { plan, total_runs: plan.count(), first_runs, warnings }
    }
}

/// A plan for a person.
pub fn table(plan: &Plan) -> String {
    let mut text = String::new();
    let cells = plan.cells.len();
    let what = if cells == 1 { "1 cell".to_owned() } else { format!("{cells} cells") };
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{}: {what}, {} runs\n", style::heading(&plan.name), plan.count());
    let Setup { path, transfers, .. } = Setup::new(String::new(), plan);
    let _ = writeln!(text, "  {path}\n  {}\n", transfers.join("\n  "));
    text.push_str(&rows(plan));
    text
}

fn rows(plan: &Plan) -> String {
    let mut rows: Vec<Vec<String>> = vec![
        plan.axes
            .iter()
            .map(|axis| axis.name.as_str())
            .chain(["runs", "seeds"])
            .map(str::to_owned)
            .collect(),
    ];
    for cell in plan.cells.iter().take(LISTED) {
        let Scenario { runs, first_seed, .. } = &cell.scenario;
        let last = first_seed.saturating_add(u64::from(*runs).saturating_sub(1));
        let mut row = cell.labels.clone();
        row.extend([runs.to_string(), format!("{first_seed}..{last}")]);
        rows.push(row);
    }
    let mut text = aligned(&rows);
    if plan.cells.len() > LISTED {
        let _ = writeln!(text, "  and {} cells more", plan.cells.len() - LISTED);
    }
    text
}

/// Columns two spaces apart, the first row as heading.
pub(super) fn aligned(rows: &[Vec<String>]) -> String {
    let columns = rows.first().map_or(0, Vec::len);
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max()
    };
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    let mut text = String::new();
    for (i, row) in rows.iter().enumerate() {
        let cells: Vec<String> =
            row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        let line = format!("  {}", cells.join("  "));
        let line = line.trim_end();
        let _ = writeln!(text, "{}", if i == 0 { style::dim(line) } else { line.to_owned() });
    }
    text
}
