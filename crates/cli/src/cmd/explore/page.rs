//! The tables of an exploration.

use std::time::Duration;

use lasthop_explore::{Exploration, OneFate, Run};
use lasthop_proto::link::Fate;
use lasthop_report::model::{Column, Table};
use lasthop_report::number::{plural, short};
use lasthop_report::table::render;
use lasthop_scenario::Plan;

use super::{ExploreArgs, Results, command};
use crate::style;

/// Runs that exceed their bound are listed up to this number.
const COSTLY: usize = 10;

/// How fast the runs were made, and how much memory the program needed.
pub(super) fn speed(made: u64, took: Duration, threads: usize) -> String {
    let seconds = took.as_secs_f64();
    let rate = made as f64 / seconds.max(1e-9) / threads.max(1) as f64;
    let rate = short(rate.round());
    let threads = plural(threads as u64, "thread");
    let memory =
        peak_memory().map_or(String::new(), |mib| format!(", at most {mib} MiB of memory"));
    format!("{seconds:.1} s on {threads}, {rate} runs per second and thread{memory}")
}

/// In MiB; `None` where the system does not report it.
fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib.div_ceil(1024))
}

/// Everything, for a terminal.
pub(super) fn page(plan: &Plan, args: &ExploreArgs, answer: &Results, speed: &str) -> String {
    let mut text = format!(
        "{}: {}, {}, {speed}\n\n{}\n\n{}\n",
        style::heading(&plan.name),
        plural(answer.runs, "run"),
        plural(answer.violations, "violation"),
        render(&cells(args, answer), style::look()),
        style::dim(&style::paragraph(NOTE)),
    );
    let survival = survival(answer);
    if args.attacks {
        let table = render(&survival, style::look());
        text += &format!("\n{table}\n\n{}\n", style::dim(&style::paragraph(SURVIVAL)));
    }
    for (cell, costly) in furthest(answer) {
        let command = command(args, plan, &cell.labels, &costly.run.pattern);
        text += &format!(
            "\nover the bound of {:.2} s: {:.2} s\n  {command}\n",
            costly.bound_seconds, costly.run.seconds
        );
    }
    for cell in &answer.cells {
        for (violation, command) in cell.found.first_violations.iter().zip(&cell.commands) {
            text += &format!("\n{} {}\n  {command}\n", style::bad("violated:"), violation.what);
        }
    }
    if !answer.complete {
        text += match args.output {
            Some(_) => "\nnot finished: the same command continues\n",
            None => "\nnot finished: these are the runs until it was stopped\n",
        };
    }
    text
}

/// A row for each combination of the axes.
fn cells(args: &ExploreArgs, answer: &Results) -> Table {
    let axes = answer.axes.iter().map(Column::text);
    let columns = axes.chain([Column::number("runs"), Column::number("violations")]);
    let levels = (0..=args.faults).map(|faults| Column::number(plural(faults.into(), "fault")));
    let rest = ["against none", "over bound", "again"].map(Column::number);
    let rows = answer.cells.iter().map(|cell| {
        let found = &cell.found;
        let mut row = cell.labels.clone();
        row.push(found.runs.to_string());
        row.push(found.violations.to_string());
        for faults in 0..=args.faults {
            let slowest = slowest(found, faults);
            row.push(slowest.map_or(String::new(), |run| format!("{:.2} s", run.seconds)));
        }
        row.push(against_none(answer, cell, args.faults).unwrap_or_default());
        row.push(found.levels.iter().map(|level| level.over_bound).sum::<u64>().to_string());
        let most = found.levels.iter().filter_map(|level| level.most_retransmissions.as_ref());
        row.push(most.map(|run| run.retransmissions).max().unwrap_or(0).to_string());
        row
    });
    Table::new(columns.chain(levels).chain(rest), rows)
}

fn slowest(found: &Exploration, faults: u32) -> Option<&Run> {
    found.levels.iter().find(|level| level.faults == faults)?.slowest.as_ref()
}

/// By how much the slowest run with most faults is slower than that of the cell that differs in the agent only, which is
/// `none` there.
fn against_none(answer: &Results, cell: &super::Cell, faults: u32) -> Option<String> {
    let axis = answer.axes.iter().position(|axis| axis.rsplit('.').next() == Some("agent"))?;
    let mut labels = cell.labels.clone();
    *labels.get_mut(axis)? = "none".to_owned();
    let none = answer.cells.iter().find(|other| other.labels == labels)?;
    let [with, without] = [cell, none].map(|cell| slowest(&cell.found, faults));
    Some(format!("{:+.2} s", with?.seconds - without?.seconds))
}

/// The runs that exceed their bound by most, at most one of each combination.
fn furthest(answer: &Results) -> Vec<(&super::Cell, &lasthop_explore::Costly)> {
    let mut all: Vec<_> = answer
        .cells
        .iter()
        .filter_map(|cell| {
            let levels = cell.found.levels.iter().filter_map(|l| l.furthest_over_bound.as_ref());
            let excess = |c: &lasthop_explore::Costly| c.run.seconds - c.bound_seconds;
            let most = levels.max_by(|a, b| excess(a).total_cmp(&excess(b)))?;
            Some((cell, most, excess(most)))
        })
        .collect();
    all.sort_by(|a, b| b.2.total_cmp(&a.2));
    all.into_iter().take(COSTLY).map(|(cell, costly, _)| (cell, costly)).collect()
}

/// A row for each value of the first axis, over all values of the others; a column for each fate of single faults.
pub(super) fn survival(answer: &Results) -> Table {
    let first = answer.axes.first().map_or("", String::as_str);
    let columns = core::iter::once(Column::text(first));
    let columns = columns.chain(answer.fates.iter().map(|fate| Column::text(*fate)));
    let mut labels: Vec<&str> = Vec::new();
    for cell in &answer.cells {
        let label = cell.labels.first().map_or("", String::as_str);
        if !labels.contains(&label) {
            labels.push(label);
        }
    }
    let rows = labels.into_iter().map(|label| {
        let here =
            answer.cells.iter().filter(|cell| cell.labels.first().is_none_or(|l| l == label));
        let here: Vec<&Exploration> = here.map(|cell| &cell.found).collect();
        let mut row = vec![label.to_owned()];
        let fates = answer.fates.iter().filter_map(|word| Fate::parse(word));
        row.extend(fates.map(|fate| OneFate::over(&here, fate).to_string()));
        row
    });
    Table::new(columns, rows)
}

const NOTE: &str = "\
Under each number of faults: the time until the last data is delivered, in the slowest run.
against none: that time with most faults, less that of the agent `none`.
over bound: runs that take longer than 1 + F times the run without faults, 2^F - 1 initial timeouts and the delays of late packets.
again: retransmissions of hosts and base station in the run with most of them.";

const SURVIVAL: &str = "\
Single faults: the number of runs; how many break the connection; how many have other retransmissions than without it; by how much the
slowest is late.";
