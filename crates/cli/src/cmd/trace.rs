//! `lasthop trace`: files with the capacity of a link over time.

use std::path::{Path, PathBuf};

use clap::{Subcommand, ValueEnum};
use lasthop_proto::link::varied::Trace;
use lasthop_proto::units::{Rate, Span};
use lasthop_study::traces::{self, Content, ConvertedTrace, Hints, Model, Role, Statistics};

use super::analyze::GIB;
use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::scenario::or_run;
use crate::show::trace::TraceSummary;
use crate::{format, output, show};

/// The mean delay of the record whose figures `starlink` has.
const MEAN_DELAY_MS: f64 = 10.5;

/// Show, make and convert traces: the capacity of a link over time
#[derive(clap::Args, Debug)]
pub struct TraceArgs {
    #[command(subcommand)]
    command: Verb,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// Print the rates and the longest outage of a trace, with a picture
    Show {
        /// Trace, or a file that `convert` can read
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// Length of a window; each rate is the mean of one window
        #[arg(long, value_name = "TIME", default_value = "1s")]
        window: Span,
        /// Also write the picture to this file
        #[arg(long, value_name = "FILE")]
        svg: Option<PathBuf>,
        #[command(flatten)]
        meant: TableOptions,
    },
    /// Make a synthetic trace
    Make(Make),
    /// Convert a capture, a result of a measuring program, a table or another trace to a trace or a CSV file
    Convert {
        /// Capture, result of iperf or ping, trace of CellReplay, table, or trace
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// Output format [default: csv for a trace or a file without rates, mahimahi for other files]
        #[arg(long, value_name = "FORM")]
        to: Option<Form>,
        /// Length of a window for the rates of a CSV file
        #[arg(long, value_name = "TIME", default_value = "100ms")]
        window: Span,
        /// Period of a trace from a CSV file [default: the period of the file, or the time of its last line]
        #[arg(long, value_name = "TIME")]
        duration: Option<Span>,
        #[command(flatten)]
        meant: TableOptions,
        /// Write to this file instead of stdout
        #[arg(long, short, value_name = "FILE")]
        output: Option<PathBuf>,
    },
}

/// Facts that a measured table or result lacks.
#[derive(clap::Args, Debug, Default)]
struct TableOptions {
    /// Direction to convert, if a table or a result has both
    #[arg(long, value_name = "DIRECTION")]
    direction: Option<Way>,
    /// Column of the rates in a table: its name, or its number from 1
    #[arg(long, value_name = "COLUMN")]
    column: Option<String>,
    /// Column of the times in a table: its name, or its number from 1
    #[arg(long, value_name = "COLUMN")]
    time_column: Option<String>,
    /// The values of a table without names of columns [default: rates, if they have a unit]
    #[arg(long, value_name = "QUANTITY")]
    quantity: Option<QuantityWord>,
    /// Unit of the rates in a table, for example kbit or Mbit/s
    #[arg(long, value_name = "UNIT")]
    unit: Option<String>,
    /// Time from one line to the next, in a file with values alone
    #[arg(long, value_name = "TIME")]
    step: Option<Span>,
}

impl TableOptions {
    fn hints(&self) -> Hints {
        Hints {
            column: self.column.clone(),
            time: self.time_column.clone(),
            unit: self.unit.clone(),
            down: self.direction.map(|way| matches!(way, Way::Down)),
            step: self.step.filter(|step| *step > Span::ZERO),
            role: self.quantity.map(|quantity| match quantity {
                QuantityWord::Rate => Role::Rate,
                QuantityWord::Delay | QuantityWord::RoundTrip => Role::Delay,
                QuantityWord::Loss => Role::Loss,
            }),
            round_trip: matches!(self.quantity, Some(QuantityWord::RoundTrip)),
            ..Hints::default()
        }
    }
}

#[derive(ValueEnum, Clone, Copy, Debug)]
enum QuantityWord {
    /// Rates
    Rate,
    /// Delays of one direction
    Delay,
    /// Round-trip times: each direction has half of them
    RoundTrip,
    /// Shares of lost packets
    Loss,
}

#[derive(ValueEnum, Clone, Copy, Debug)]
enum Way {
    /// Towards the measuring device
    Down,
    /// From the measuring device
    Up,
}

#[derive(clap::Args, Debug)]
struct Make {
    /// Model of the link
    #[arg(value_name = "MODEL")]
    model: Kind,
    /// Rate of constant, maximum rate of lte, or mean rate of starlink
    #[arg(long, value_name = "RATE", default_value = "12mbit")]
    rate: Rate,
    /// Rates of markov in order; it changes only between neighbours
    #[arg(long, value_name = "RATES", value_delimiter = ',', default_value = "1mbit,5mbit,20mbit")]
    rates: Vec<Rate>,
    /// Mean time that markov stays at a rate
    #[arg(long, value_name = "TIME", default_value = "1s")]
    dwell: Span,
    /// Also write the rates and delays of starlink to this file, for `measured` of a link or a radio
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Period after which the trace repeats
    #[arg(long, value_name = "TIME", default_value = "60s")]
    duration: Span,
    /// Seed of the random numbers
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Write to this file instead of stdout
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(ValueEnum, Clone, Copy, Debug)]
enum Kind {
    /// The same rate at all times
    Constant,
    /// A rate that changes at random times
    Markov,
    /// A cellular link: the rate is a random walk with outages
    Lte,
    /// A terminal of Starlink: every 15 s another satellite after a gap
    Starlink,
}

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum Form {
    /// A trace for Mahimahi's mm-link
    Mahimahi,
    /// A CSV file: each line has a time and a rate
    Csv,
}

/// Runs the command.
pub fn run(args: &TraceArgs, json: bool) -> Result<Outcome, Failure> {
    match &args.command {
        Verb::Show { file, window, svg, meant } => {
            let (measured, _) = read(file, meant)?;
            let trace = measured.trace(None).map_err(|error| refused(file, error))?;
            let statistics = traces::statistics(&trace, millis(*window));
            if let Some(svg) = svg {
                let name = file.file_name().unwrap_or_default().to_string_lossy();
                output::write(svg, traces::plot(&name, &statistics).svg().as_bytes())?;
            }
            print_summary(file, statistics, measured.understood, json)?;
        }
        Verb::Make(make) => {
            let trace = traces::make(&make.model(), make.duration, make.seed)?;
            let text = lines(&trace);
            make.write_table()?;
            write(make.output.as_deref(), Some(&trace), Vec::new(), &text, json)?;
        }
        Verb::Convert { file, to, window, duration, meant, output } => {
            let (measured, was_trace) = read(file, meant)?;
            let rates = measured.has_rates();
            let to = to.unwrap_or(if was_trace || !rates { Form::Csv } else { Form::Mahimahi });
            let trace = match to {
                // Only its summary needs the trace.
                Form::Csv => measured.trace(*duration).ok(),
                Form::Mahimahi => {
                    Some(measured.trace(*duration).map_err(|error| refused(file, error))?)
                }
            };
            let text = match (&measured.content, &trace, to) {
                (_, Some(trace), Form::Mahimahi) => lines(trace),
                // A capture and a trace have no rates but those of windows.
                _ => measured.csv(millis(*window)),
            };
            write(output.as_deref(), trace.as_ref(), measured.understood, &text, json)?;
        }
    }
    Ok(Outcome::Done)
}

impl Make {
    /// Writes the file of rates and delays.
    fn write_table(&self) -> Result<(), Failure> {
        let Some(path) = &self.record else { return Ok(()) };
        if !matches!(self.model, Kind::Starlink) {
            let message = "`--record` belongs to the model `starlink`";
            return Err(Failure::input(message, "leave it out, or write `starlink`"));
        }
        let rows = traces::starlink_table(self.rate, MEAN_DELAY_MS, self.duration, self.seed)?;
        output::write(path, rows.as_bytes())
    }

    fn model(&self) -> Model {
        match self.model {
            Kind::Constant => Model::Constant { rate: self.rate },
            Kind::Markov => Model::Markov { rates: self.rates.clone(), dwell: self.dwell },
            Kind::Lte => Model::Lte { peak: self.rate },
            Kind::Starlink => Model::Starlink { rate: self.rate },
        }
    }
}

/// A window in milliseconds.
fn millis(window: Span) -> u32 {
    u32::try_from(window.0 / 1_000_000).unwrap_or(u32::MAX)
}

/// Content of a file.
fn bytes(path: &Path) -> Result<Vec<u8>, Failure> {
    let help = "give a trace of mm-link, a capture, a result of `iperf3 --json` or a CSV file";
    let fail = |error| Failure::file(path, error, help);
    if std::fs::metadata(path).map_err(fail)?.len() > GIB {
        let help = "at most 1 GiB is read: cut it by `head -n` or `editcap`";
        return Err(Failure::input(format!("{}: too large", path.display()), help));
    }
    std::fs::read(path).map_err(fail)
}

fn refused(path: &Path, error: lasthop_study::Error) -> Failure {
    match error {
        lasthop_study::Error::Input { message, help } => {
            Failure::input(format!("{}: {message}", path.display()), or_run(path, &help))
        }
        error => error.into(),
    }
}

/// Reads a trace, or converts a file to one. Returns whether it was a trace.
fn read(path: &Path, meant: &TableOptions) -> Result<(ConvertedTrace, bool), Failure> {
    let bytes = bytes(path)?;
    let read = traces::read(&bytes, &meant.hints());
    let read = read.map_err(|error| refused(path, error))?;
    let digits = |byte: &u8| byte.is_ascii_digit() || byte.is_ascii_whitespace();
    let was_trace = matches!(read.content, Content::Trace(_)) && bytes.iter().all(digits);
    Ok((read, was_trace))
}

/// The lines of a trace.
fn lines(trace: &Trace) -> String {
    trace.times().map(|time| format!("{time}\n")).collect()
}

/// Writes a file and prints its summary, or prints its contents.
fn write(
    to: Option<&Path>,
    trace: Option<&Trace>,
    understood: Vec<String>,
    text: &str,
    json: bool,
) -> Result<(), Failure> {
    let Some(path) = to else {
        understood.iter().for_each(|line| eprintln!("{line}"));
        return output::exact(text);
    };
    output::write(path, text.as_bytes())?;
    match trace {
        Some(trace) => print_summary(path, traces::statistics(trace, 1000), understood, json),
        None => {
            understood.iter().for_each(|line| eprintln!("{line}"));
            Ok(())
        }
    }
}

fn print_summary(
    file: &Path,
    statistics: Statistics,
    understood: Vec<String>,
    json: bool,
) -> Result<(), Failure> {
    let summary = TraceSummary { file: file.display().to_string(), statistics, understood };
    if json {
        output::print_json(format::TRACE, &summary)
    } else {
        output::print(&show::trace::text(&summary))
    }
}
