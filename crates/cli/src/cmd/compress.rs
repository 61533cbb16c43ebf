//! `lasthop compress`: whether compression before sending saves energy.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use lasthop_report::model::{Column, Table};
use lasthop_report::number::{plural, short};
use lasthop_report::table::render;
use lasthop_scenario::Axis;
use lasthop_sim::runs::{Results, Setup};
use lasthop_study::compress::{Cell, LevelMeasurement, ProcessorOverrides, answer};
use serde::Serialize;

use super::run::Changes;
use crate::compress;
use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::scenario::Text;
use crate::{format, output, style};

/// Limit of bytes read from a file.
const LONGEST: u64 = 8 << 20;

/// Does compressing before sending spare a battery? Real compressors, on your data
#[derive(clap::Args, Debug)]
pub struct CompressArgs {
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
struct CompressionAnswer {
    file: String,
    bytes: usize,
    /// Instructions per second of compression on this machine.
    machine_instructions_per_s: f64,
    levels: Vec<LevelMeasurement>,
    cells: Vec<Cell>,
}

/// Runs the command.
pub fn run(args: &CompressArgs, json: bool) -> Result<Outcome, Failure> {
    let data = read(&args.file)?;
    if !positive(args.cpu_power) || !positive(args.cpu_speed) {
        return Err(Failure::input(
            "`--cpu-power` and `--cpu-speed` are numbers above 0".to_owned(),
            "for example `--cpu-power 4 --cpu-speed 90`",
        ));
    }
    let arguments = args.changes.arguments();
    let text = Text::load(&args.scenario, &arguments)?;
    let (plan, _) = text.plan(&arguments)?;
    let failed = |error| Failure::file(&args.file, error, "the compressor failed");
    let speed = compress::this_machine().map_err(failed)?;
    let levels = compress::measure(&data, speed).map_err(failed)?;
    let instructions_per_s = args.cpu_speed.map(|millions| millions * 1e6);
    let given = ProcessorOverrides { instructions_per_s, watts: args.cpu_power };
    let cells = answer::<Failure>(&plan, &levels, given, &mut |plan| {
        Ok(Results::simulated(plan, Setup::default()))
    })?;
    let answer = CompressionAnswer {
        file: args.file.display().to_string(),
        bytes: data.len(),
        machine_instructions_per_s: speed,
        levels,
        cells,
    };
    if json {
        output::print_json(format::COMPRESS, &answer)?;
    } else {
        output::print(&tables(&answer, &plan.axes))?;
    }
    Ok(Outcome::Done)
}

fn positive(number: Option<f64>) -> bool {
    number.is_none_or(|number| number.is_finite() && number > 0.0)
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    let help = "give a sample of the data to send, for example `lasthop compress README.md`";
    let file = std::fs::File::open(path).map_err(|error| Failure::file(path, error, help))?;
    let mut data = Vec::new();
    file.take(LONGEST).read_to_end(&mut data).map_err(|error| Failure::file(path, error, help))?;
    if data.is_empty() {
        return Err(Failure::input(format!("{}: the file is empty", path.display()), help));
    }
    Ok(data)
}

/// The compressed size, and its cost.
fn tables(answer: &CompressionAnswer, axes: &[Axis]) -> String {
    let data = Table {
        title: format!("{}: {}", answer.file, plural(answer.bytes as u64, "byte")),
        ..Table::new(
            Column::list("<level | left | ns/byte here | fastest .. slowest | instructions/byte"),
            answer.levels.iter().map(|m| {
                vec![
                    m.level.clone(),
                    format!("{:.1} %", m.ratio * 100.0),
                    format!("{:.2}", m.ns_per_byte),
                    format!("{:.2} .. {:.2}", m.ns_range[0], m.ns_range[1]),
                    format!("{:.0}", m.instructions_per_byte),
                ]
            }),
        )
    };
    let look = style::look();
    let mut text = render(&data, look) + "\n\n" + &render(&costs(&answer.cells, axes), look) + "\n";
    text += &style::dim(&style::paragraph(
        "Joules for 10^6 bytes of the original, including the radio and the rest of the node during the transfer; means\n\
         over runs ± 95 % confidence interval. Break-even: nanoseconds of the node's processor for a byte.\n",
    ));
    for cell in &answer.cells {
        text += &recommendation(cell);
    }
    text
}

/// The advice for one combination, and its reason.
fn recommendation(cell: &Cell) -> String {
    let r = &cell.recommended;
    let at: Vec<&str> = cell.labels.iter().chain([&cell.hardware]).map(String::as_str).collect();
    let at = style::heading(&at.join(", "));
    let (sending, compressing) = (r.sending_j * 1e6, r.compressing_j * 1e6);
    let why = format!(
        "a byte takes {} uJ to send and {} uJ of the processor to compress, and {:.0} % of the bytes remain",
        short(sending),
        short(compressing),
        r.ratio * 100.0
    );
    let advice = match (&r.level, r.from_bytes, r.from_loss) {
        (Some(level), Some(bytes), _) => format!(
            "{level} saves {:.0} %; messages that are compressed alone pay from {bytes} bytes on",
            r.spares_percent.mean
        ),
        (Some(level), None, _) => format!(
            "{level} saves {:.0} %, but nothing for short messages (up to 4 KiB) that are compressed alone",
            r.spares_percent.mean
        ),
        (None, _, Some(loss)) => format!(
            "send it as it is: {} would pay from a loss of {:.0} % on, if all lost packets are retransmitted",
            r.best,
            loss * 100.0
        ),
        (None, _, None) => format!("send it as it is: {} would pay at no loss", r.best),
    };
    format!("{at}: {advice}\n  why: {why}\n")
}

/// The cost of each level in each combination of the axes.
fn costs(cells: &[Cell], axes: &[Axis]) -> Table {
    let mut columns: Vec<Column> = axes.iter().map(|axis| Column::text(&axis.name)).collect();
    columns.extend(["hardware", "level"].map(Column::text));
    columns.extend(["J/MB", "spares", "node ns/byte", "break-even"].map(Column::number));
    let all = cells.iter().flat_map(|cell| cell.rows.iter().map(move |row| (cell, row)));
    let rows = all.map(|(cell, row)| {
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
    });
    Table::new(columns, rows)
}
