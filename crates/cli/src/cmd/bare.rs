//! `lasthop run --no-metrics`: runs that count only carried packets and delivered bytes.

use lasthop_batch::Work;
use lasthop_report::model::{Column, Table};
use lasthop_report::table::render_lean;
use lasthop_scenario::{Plan, Run, World};
use lasthop_sim::runs::{Reason, RunEnd, run_unmeasured, spread};
use serde::Serialize;

use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::progress::Progress;
use crate::stop::Stop;
use crate::{format, output, style};

/// The runs of a cell, for JSON.
#[derive(Serialize)]
struct Cell {
    /// The labels of the cell, such as `agent=snoop`.
    cell: String,
    runs: Vec<BareRun>,
}

#[derive(Serialize)]
struct BareRun {
    seed: u64,
    reason: Reason,
    end_s: f64,
    /// Packets carried by links.
    hops: u64,
    wakes: u64,
    /// Bytes of all transfers together.
    delivered: u64,
    /// Number of complete transfers, and of all.
    complete: usize,
    transfers: usize,
}

impl BareRun {
    fn new(seed: u64, end: &RunEnd) -> BareRun {
        BareRun {
            seed,
            reason: end.reason,
            end_s: end.at.as_secs_f64(),
            hops: end.hops,
            wakes: end.wakes,
            delivered: end.transfers.iter().map(|transfer| transfer.delivered).sum(),
            complete: end.transfers.iter().filter(|transfer| transfer.complete).count(),
            transfers: end.transfers.len(),
        }
    }
}

/// Makes the runs of `plan` in the simulator and prints the counts.
pub fn run(
    plan: &Plan,
    jobs: usize,
    stop: &Stop,
    progress: &Progress,
    json: bool,
) -> Result<Outcome, Failure> {
    if plan.cells.iter().any(|cell| cell.scenario.world == World::Testbed) {
        let help = "leave `--no-metrics` out, or use `--world sim`";
        return Err(Failure::input(
            "runs without metrics are possible only in the simulator",
            help,
        ));
    }
    let runs: Vec<Run> = plan.runs().collect();
    let counted = Work::new(jobs).pool(runs.len())?.install(|| {
        spread(runs.len(), |i| {
            let Run { cell, seed, .. } = runs[i];
            (!stop.requested()).then(|| {
                let counted = BareRun::new(seed, &run_unmeasured(&plan.cells[cell].scenario, seed));
                progress.step(&plan.cells[cell].title(&plan.axes));
                counted
            })
        })
    });
    progress.finish();
    let title = |i: usize| plan.cells[i].title(&plan.axes);
    let mut cells: Vec<Cell> =
        (0..plan.cells.len()).map(|i| Cell { cell: title(i), runs: Vec::new() }).collect();
    let mut missing = false;
    for (run, counted) in runs.iter().zip(counted) {
        missing |= counted.is_none();
        cells[run.cell].runs.extend(counted);
    }
    if missing {
        return Ok(output::interrupted(None));
    }
    if json {
        output::print_json(format::RUN_COUNTED, &serde_json::json!({ "cells": cells }))?;
    } else {
        output::print(&table(&cells))?;
    }
    let stuck = cells.iter().flat_map(|Cell { cell, runs }| {
        let runs = runs.iter().filter(|run| run.reason == Reason::Stuck);
        runs.map(move |run| {
            format!("scenario {} {cell}, seed {}, {} s", plan.name, run.seed, run.end_s)
        })
    });
    Failure::if_stuck(stuck.collect())?;
    Ok(Outcome::Done)
}

/// A row for each cell, its runs added up.
fn table(cells: &[Cell]) -> String {
    let headings = ["cell", "runs", "seconds", "delivered", "complete", "hops"];
    let rows = cells.iter().map(|Cell { cell, runs }| {
        let sum = |of: fn(&BareRun) -> u64| runs.iter().map(of).sum::<u64>().to_string();
        let seconds: f64 = runs.iter().map(|run| run.end_s).sum();
        vec![
            if cell.is_empty() { "-".to_owned() } else { cell.clone() },
            runs.len().to_string(),
            format!("{seconds:.3}"),
            sum(|run| run.delivered),
            format!("{} of {}", sum(|run| run.complete as u64), sum(|run| run.transfers as u64)),
            sum(|run| run.hops),
        ]
    });
    render_lean(&Table::new(headings.map(Column::text), rows), style::look()) + "\n"
}
