//! `lasthop load`: round trips while bulk transfers fill the path.

mod document;
mod shown;

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use lasthop_live::clock::Clock;
use lasthop_live::endpoint::{
    DEFAULT_PORT, EndpointError, LoadObserver, LoadOptions, LoadReport, Phase, SendOptions,
    Session, load,
};
use lasthop_proto::units::Span;
use lasthop_report::number::Units;
use lasthop_study::load::{Measurement, figure};

use super::plot::Form;
use crate::failure::Failure;
use crate::progress::Progress;
use crate::stop::Stop;
use crate::study_args;
use crate::transfer::{Destination, Family};
use crate::{Outcome, format, output};

/// Names of the files of `-o`.
const JSON: &str = "load.json";
const FIGURE: &str = "load.svg";

const EXAMPLES: &str = "\
Examples:
  lasthop load laptop                         idle, up, down and both, 10 s each
  lasthop load 10.0.1.1:9 --down --seconds 20      downloads only, longer
  lasthop load laptop --congestion bbr --streams 1
  lasthop load laptop --plot load.pdf         rates and round trips over time
  lasthop load laptop --json > load.json      for `lasthop advise --measured load.json`

At the other end `lasthop discard` of this version listens. The idle phase is always the first:
round trips under load are compared with it. Rates and round trips under load are those of the
steady part of a phase, from a quarter of it to its end. Probes have a separate connection, new
connections, and the bulk connections themselves. Grades by the increase of the median on the
separate connection: A+ below 5 ms, A 30, B 60, C 200, D 400, else F.
Exit code 1 if the measurement broke off, 130 after Ctrl-C; both print the finished phases.";

/// Measure the latency of a link under load, against `lasthop discard`
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Where `lasthop discard` listens [default port: 9009]
    #[arg(value_name = "HOST[:PORT]")]
    destination: Destination,
    /// Uploads; without --up, --down and --both all three
    #[arg(long)]
    up: bool,
    /// Downloads
    #[arg(long)]
    down: bool,
    /// Uploads and downloads at the same time
    #[arg(long)]
    both: bool,
    /// Duration of each phase, in seconds
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=60))]
    seconds: u16,
    /// Bulk connections of each direction
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=24))]
    streams: u16,
    /// Interval of probes
    #[arg(long, value_name = "TIME", default_value = "20ms", value_parser = interval)]
    every: Span,
    /// Congestion control of both kernels, such as `reno` or `cubic` [default: that of each kernel]
    #[arg(long, value_name = "NAME")]
    congestion: Option<String>,
    /// How long to wait for a connection
    #[arg(long, value_name = "TIME", default_value = "10s")]
    connect_timeout: Span,
    /// Draw rates and round trips over time: FILE.svg, FILE.pdf or FILE.png
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    /// Write the JSON and the figure to this directory
    #[arg(long, short, value_name = "DIR")]
    output: Option<PathBuf>,
    /// The units of rates: megabits, or kilobytes of 1024 bytes
    #[arg(long, value_name = "UNITS", value_parser = study_args::units(), ignore_case = true, default_value = "mbit")]
    units: Units,
    /// IPv4 only
    #[arg(short = '4', conflicts_with = "ipv6")]
    ipv4: bool,
    /// IPv6 only
    #[arg(short = '6')]
    ipv6: bool,
}

fn interval(word: &str) -> Result<Span, String> {
    let span = word.parse::<Span>().map_err(|error| error.to_string())?;
    if (Span::millis(1)..=Span::secs(1)).contains(&span) {
        Ok(span)
    } else {
        Err("out of range; from 1ms to 1s, for example 20ms".to_owned())
    }
}

impl Args {
    fn phases(&self) -> Vec<Phase> {
        let all = !(self.up || self.down || self.both);
        let selected = |phase: &Phase| match phase {
            Phase::Idle => true,
            Phase::Up => all || self.up,
            Phase::Down => all || self.down,
            Phase::Both => all || self.both,
        };
        Phase::ALL.into_iter().filter(selected).collect()
    }

    fn addresses(&self) -> Result<Vec<SocketAddr>, Failure> {
        self.destination.addresses(match (self.ipv4, self.ipv6) {
            (true, _) => Family::V4,
            (_, true) => Family::V6,
            _ => Family::Any,
        })
    }
}

/// Runs the command.
pub fn run(args: &Args, json: bool) -> Result<Outcome, Failure> {
    // Wrong names are reported before the measurement.
    let form = args.plot.as_deref().map(Form::of).transpose()?;
    if let Some(dir) = &args.output {
        output::prepare(dir)?;
    }
    let stop = Stop::listen()?;
    let session = Session { clock: Clock::start(), stop: stop.flag() };
    let phases = args.phases();
    let progress = Progress::of_work(phases.len() as u64 * u64::from(args.seconds) * 10, json);
    let watch = Watch { progress: &progress, units: args.units };
    let result = measured(args, phases, &session, &watch);
    progress.finish();
    let (to, report) = result?;
    let document = document::of(&to, args, &report);
    // The result is printed even if a file cannot be written.
    let written = write(args, form, &document);
    if json {
        output::print_json(format::LOAD, &document)?;
    } else if !document.phases.is_empty() {
        output::print(&shown::text(&document, args.units))?;
    }
    written?;
    Ok(match (report.complete, stop.requested()) {
        (true, _) => Outcome::Done,
        (false, true) => Outcome::Interrupted,
        (false, false) => Outcome::No,
    })
}

/// Writes the figure of `--plot`, and the files of `-o`.
fn write(args: &Args, form: Option<Form>, document: &Measurement) -> Result<(), Failure> {
    if let (Some(path), Some(form)) = (&args.plot, form) {
        draw(path, form, document, args.units)?;
    }
    if let Some(dir) = &args.output {
        let text = output::json(&format::LOAD.of(document))?;
        output::write(&dir.join(JSON), text.as_bytes())?;
        draw(&dir.join(FIGURE), Form::Svg, document, args.units)?;
    }
    Ok(())
}

fn draw(path: &Path, form: Form, document: &Measurement, units: Units) -> Result<(), Failure> {
    let theme = lasthop_report::plot::Theme::Light;
    output::write(path, &form.bytes(&figure(document, units), theme)?)
}

/// Measures against the first address that answers.
fn measured(
    args: &Args,
    phases: Vec<Phase>,
    session: &Session<'_>,
    watch: &Watch<'_>,
) -> Result<(String, LoadReport), Failure> {
    let mut options = LoadOptions {
        send: SendOptions::new(([127, 0, 0, 1], DEFAULT_PORT).into()),
        phases,
        duration: Span::secs(args.seconds.into()),
        streams: args.streams,
        interval: args.every,
    };
    let mut last = None;
    for to in args.addresses()? {
        options.send = SendOptions {
            congestion: args.congestion.clone(),
            connect_timeout: args.connect_timeout,
            ..SendOptions::new(to)
        };
        match load(&options, session, watch) {
            Ok(report) => return Ok((to.to_string(), report)),
            Err(error) if error.is_of_the_way() => last = Some(error),
            Err(error) => return Err(error.into()),
        }
    }
    let none = || EndpointError::from(io::Error::from(io::ErrorKind::AddrNotAvailable));
    Err(last.unwrap_or_else(none).into())
}

/// Shows the progress.
struct Watch<'a> {
    progress: &'a Progress,
    units: Units,
}

impl LoadObserver for Watch<'_> {
    fn phase(&self, phase: Phase) {
        self.progress.show(phase.to_string());
    }

    fn progress(&self, phase: Phase, elapsed: Span, up: u64, down: u64) {
        let rate = |bytes: u64| self.units.rate(bytes as f64 / elapsed.as_secs_f64().max(0.1));
        let up = (up > 0).then(|| format!(", up {}", rate(up)));
        let down = (down > 0).then(|| format!(", down {}", rate(down)));
        let rates: String = up.into_iter().chain(down).collect();
        self.progress.show(format!("{phase}{rates}"));
        // The bar advances by one for each report of the phase, which are a tenth of a second apart.
        self.progress.advance(1);
    }
}
