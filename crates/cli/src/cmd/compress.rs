//! `lasthop compress`: whether compressing before sending spares a battery.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use lasthop_lab::measure_all;
use lasthop_report::model::{Column, Table};
use lasthop_report::table::render;
use lasthop_trace::stats::Summary;
use serde::Serialize;

use super::run::Changes;
use crate::compress::model::{Processor, Sending};
use crate::compress::{self, Measured};
use crate::failure::Failure;
use crate::scenario::Text;
use crate::{Outcome, output, style};

/// No more of a file is looked at.
const LONGEST: u64 = 8 << 20;

const EXAMPLES: &str = "\
Examples:
  lasthop compress log.txt                                 on hardware of 2000 and of today
  lasthop compress log.txt --set radio.rate=1mbit          over a slower radio
  lasthop compress log.txt --set host.sender.battery=esp32 on one sort of hardware
  lasthop compress photo.jpg --scenario my.toml            over a path of your own

Data is compressed on this machine at several levels; the time of its processor is turned into
that of the node's by a work whose instructions are known. What sending costs comes from the
scenario, whose sender has a `battery`. The node compresses while it sends. The break-even is how
long the node's processor may take for each byte, and no longer.";

/// Does compressing before sending spare a battery? Real compressors, on your data
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// What would be sent; of a long file the first 8 MiB
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// What sending costs: a scenario file or a built-in scenario with one transfer, from a host with a `battery`
    #[arg(long, value_name = "FILE|NAME", default_value = "energy-today")]
    scenario: String,
    /// What the node's processor draws while it is busy, beyond `base`, in watts
    #[arg(long, value_name = "WATTS")]
    cpu_power: Option<f64>,
    /// Instructions of a compressor that the node's processor does in a second, in millions
    #[arg(long, value_name = "MILLIONS")]
    cpu_speed: Option<f64>,
    #[command(flatten)]
    changes: Changes,
}

/// The answer for a program.
#[derive(Serialize)]
struct Shown {
    file: String,
    bytes: usize,
    /// Instructions of a compressor that this machine does in a second.
    machine_instructions_per_s: f64,
    levels: Vec<Measured>,
    cells: Vec<Cell>,
}

/// One combination of the scenario.
#[derive(Serialize)]
struct Cell {
    /// The value on each axis.
    labels: Vec<String>,
    hardware: String,
    processor: Processor,
    rows: Vec<Row>,
}

/// One level on one sort of hardware.
#[derive(Serialize)]
struct Row {
    level: String,
    /// Joules for a megabyte of the original, over the runs.
    joules_per_mb: Summary,
    /// What that spares of sending it as it is, in percent.
    spares_percent: Summary,
    /// Nanoseconds of the node's processor for a byte.
    node_ns_per_byte: f64,
    /// Up to how many of them it spares energy.
    break_even_ns: f64,
}

/// Runs the command.
pub fn run(args: &Args, json: bool) -> Result<Outcome, Failure> {
    let data = read(&args.file)?;
    if !positive(args.cpu_power) || !positive(args.cpu_speed) {
        return Err(Failure::input(
            "`--cpu-power` and `--cpu-speed` are numbers above 0".to_owned(),
            "for example `--cpu-power 4 --cpu-speed 90`",
        ));
    }
    let text = Text::load(&args.scenario)?;
    let arguments = args.changes.arguments();
    let (plan, _) = text.plan(&arguments)?;
    let failed = |error| Failure::file(&args.file, error, "the compressor gave up on it");
    let speed = compress::this_machine().map_err(failed)?;
    let levels = compress::measure(&data, speed).map_err(failed)?;
    let cells: Result<Vec<Cell>, Failure> =
        plan.cells.iter().map(|cell| answer(args, cell, &levels)).collect();
    let shown = Shown {
        file: args.file.display().to_string(),
        bytes: data.len(),
        machine_instructions_per_s: speed,
        levels,
        cells: cells?,
    };
    if json {
        output::print_json(&shown)?;
    } else {
        output::print(&tables(&shown, plan.axes.iter().map(|axis| axis.name.clone()).collect()))?;
    }
    Ok(Outcome::Done)
}

fn positive(number: Option<f64>) -> bool {
    number.is_none_or(|number| number.is_finite() && number > 0.0)
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    let help =
        "give a file of the kind that is to be sent, for example `lasthop compress README.md`";
    let file = std::fs::File::open(path).map_err(|error| Failure::file(path, error, help))?;
    let mut data = Vec::new();
    file.take(LONGEST).read_to_end(&mut data).map_err(|error| Failure::file(path, error, help))?;
    if data.is_empty() {
        return Err(Failure::input(format!("{}: the file is empty", path.display()), help));
    }
    Ok(data)
}

/// What a level costs in a combination of the scenario, from all of its runs.
fn answer(
    args: &Args,
    cell: &lasthop_scenario::Cell,
    levels: &[Measured],
) -> Result<Cell, Failure> {
    let jobs: Vec<_> = cell.seeds().map(|seed| (&cell.scenario, seed)).collect();
    let mut sendings = Vec::new();
    let mut hardware = None;
    for result in measure_all(&jobs, &()).into_iter().flatten() {
        for node in &result.metrics.energy {
            if let Some(sending) = Sending::of(node) {
                sendings.push(sending);
                hardware = Some(node.hardware.clone());
            }
        }
    }
    let Some(hardware) = hardware else {
        return Err(Failure::input(
            "no host of the scenario sends on a battery that lasts".to_owned(),
            "give the sender a battery, for example `--set host.sender.battery=phone-wifi`",
        ));
    };
    let known = Processor::of(&hardware);
    let processor = Processor {
        instructions_per_s: match (args.cpu_speed, known) {
            (Some(millions), _) => millions * 1e6,
            (None, Some(known)) => known.instructions_per_s,
            (None, None) => return Err(unknown(&hardware)),
        },
        watts: match (args.cpu_power, known) {
            (Some(watts), _) => watts,
            (None, Some(known)) => known.watts,
            (None, None) => return Err(unknown(&hardware)),
        },
    };
    let row = |measured: &Measured| {
        let cpu_s = measured.instructions_per_byte / processor.instructions_per_s;
        let of = |number: &dyn Fn(&Sending) -> f64| {
            Summary::of(&sendings.iter().map(number).collect::<Vec<f64>>())
        };
        let per_byte = |s: &Sending| s.per_byte(measured.ratio, cpu_s, processor.watts);
        let plain = |s: &Sending| s.per_byte(1.0, 0.0, processor.watts);
        Row {
            level: measured.level.clone(),
            joules_per_mb: of(&|s| per_byte(s) * 1e6),
            spares_percent: of(&|s| (1.0 - per_byte(s) / plain(s)) * 100.0),
            node_ns_per_byte: cpu_s * 1e9,
            break_even_ns: of(&|s| s.break_even(measured.ratio, processor.watts) * 1e9).mean,
        }
    };
    let rows = levels.iter().map(row).collect();
    Ok(Cell { labels: cell.labels.clone(), hardware, processor, rows })
}

fn unknown(hardware: &str) -> Failure {
    Failure::input(
        format!("nothing is known of the processor of `{hardware}`"),
        "say `--cpu-speed` (millions of instructions in a second) and `--cpu-power` (watts)",
    )
}

fn tables(shown: &Shown, axes: Vec<String>) -> String {
    let column = |title: &str, numeric| Column { title: title.to_owned(), numeric };
    let data = Table {
        title: format!("{}: {} bytes", shown.file, shown.bytes),
        columns: vec![
            column("level", false),
            column("left", true),
            column("ns/byte here", true),
            column("fastest .. slowest", true),
            column("instructions/byte", true),
        ],
        rows: (shown.levels.iter())
            .map(|m| {
                vec![
                    m.level.clone(),
                    format!("{:.1} %", m.ratio * 100.0),
                    format!("{:.2}", m.ns_per_byte),
                    format!("{:.2} .. {:.2}", m.ns_range[0], m.ns_range[1]),
                    format!("{:.0}", m.instructions_per_byte),
                ]
            })
            .collect(),
    };
    let mut columns: Vec<Column> = axes.iter().map(|axis| column(axis, false)).collect();
    columns.extend([
        column("hardware", false),
        column("level", false),
        column("J/MB", true),
        column("spares", true),
        column("node ns/byte", true),
        column("break-even", true),
    ]);
    let rows = shown.cells.iter().flat_map(|cell| {
        cell.rows.iter().map(|row| {
            let mut cells = cell.labels.clone();
            cells.extend([
                cell.hardware.clone(),
                row.level.clone(),
                format!("{:.3} ± {:.3}", row.joules_per_mb.mean, row.joules_per_mb.ci95),
                format!("{:.1} ± {:.1} %", row.spares_percent.mean, row.spares_percent.ci95),
                format!("{:.0}", row.node_ns_per_byte),
                match row.break_even_ns {
                    0.0 => "-".to_owned(),
                    limit => format!("{limit:.0}"),
                },
            ]);
            cells
        })
    });
    let costs = Table { title: String::new(), columns, rows: rows.collect() };
    let look = style::look();
    let mut text = render(&data, look) + "\n\n" + &render(&costs, look) + "\n";
    text += &style::dim(
        "Joules for 10^6 bytes of the original, radio and rest of the node for as long as it takes included; means\n\
         over runs ± 95 % confidence interval. Break-even: nanoseconds of the node's processor for a byte.\n",
    );
    text
}
