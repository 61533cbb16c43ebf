//! `lasthop testbed cpu`: CPU time of the kernel's TCP.

use std::io::{Read as _, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use lasthop_live::testbed::cpu_bench::{LEAST_MSS, Laboratory, MOST_MSS};
use lasthop_observe::cpu_time::{Case, ENOUGH, Ends, Measurement, Sample, cases};
use lasthop_observe::stats::Middle;
use lasthop_proto::units::Bytes;
use lasthop_report::cpu_tables as report;
use lasthop_report::number;
use lasthop_report::table;
use serde::Serialize;

use crate::child;
use crate::cpu::{Line, Order, measure};
use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::progress::Progress;
use crate::stop::Stop;
use crate::{format, output, style};

pub const EXAMPLES: &str = "\
Examples:
  lasthop testbed cpu                                   five segment sizes, about a minute
  lasthop testbed cpu --mss 1460 --repetitions 20       one, more exactly
  lasthop testbed cpu --mss 500,8960 --bytes 64MB --json > cpu.json

CPU time is assigned to sender and receiver by thread; docs/how-to/testbed.md says how.
Works without root; as root, the kernel's threads stay on the processors of their ends.
Exit code 130 after Ctrl-C: finished rounds are shown.";

/// What to measure.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Segment sizes in bytes, 88 to 8960 [default: 500,1000,1460,2296,8960]
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_values_t = lasthop_papers::live::SIZES,
          hide_default_value = true,
          value_parser = clap::value_parser!(u16).range(i64::from(LEAST_MSS)..=i64::from(MOST_MSS)))]
    mss: Vec<u16>,
    /// Bytes of each transfer [default: 16MB]
    #[arg(long, value_name = "SIZE", default_value = "16MB", hide_default_value = true)]
    bytes: Bytes,
    /// How often each case is measured; intervals need six
    #[arg(long, short = 'n', value_name = "N", default_value_t = ENOUGH,
          value_parser = clap::value_parser!(u32).range(1..=10_000))]
    repetitions: u32,
}

impl Args {
    fn order(&self) -> Result<Order, Failure> {
        if self.bytes.0 == 0 {
            return Err(Failure::input(
                "a transfer of no bytes costs nothing for each of them",
                "give a size, for example --bytes 16MB",
            ));
        }
        let mut sizes = Vec::new();
        for mss in &self.mss {
            if !sizes.contains(mss) {
                sizes.push(*mss);
            }
        }
        Ok(Order { sizes, bytes: self.bytes.0, rounds: self.repetitions })
    }

    /// Runs the command.
    pub fn run(&self, json: bool) -> Result<Outcome, Failure> {
        let order = self.order()?;
        let stop = Stop::listen()?;
        let total = cases(&order.sizes).len() as u64 * u64::from(order.rounds);
        let progress = Progress::new(total, json);
        let measured = measure(&order, &|| stop.requested(), |sample, _| {
            progress.step(&format!("round {} of {}", sample.round + 1, order.rounds));
        });
        progress.finish();
        let measured = measured?;
        if json {
            output::print_json(format::TESTBED, &CpuAnswer::of(&measured))?;
        } else {
            show(&measured)?;
        }
        let all = measured.samples.len() as u64 == total;
        Ok(if all { Outcome::Done } else { Outcome::Interrupted })
    }
}

fn show(measured: &Measurement) -> Result<(), Failure> {
    let mut text = String::new();
    let look = style::look();
    for one in report::tables(measured) {
        text += &format!("{}\n", table::render(&one, look));
    }
    for line in facts(measured) {
        text += &format!("{line}\n");
    }
    output::print(&text)
}

/// Notes for readers of the tables.
fn facts(measured: &Measurement) -> Vec<String> {
    let about = &measured.about;
    let mut facts = vec![format!(
        "{} of {}, {}; Linux {}, {}, the sender on {}, the receiver on {}{}",
        number::plural(measured.samples.len() as u64, "transfer"),
        number::plural(measured.bytes, "byte"),
        number::plural(measured.rounds().into(), "complete round"),
        about.kernel,
        number::plural(about.processors as u64, "processor"),
        about.pinned.0,
        about.pinned.1,
        if about.kernel_threads_pinned {
            ""
        } else {
            "; the kernel's threads not pinned (root could pin them)"
        },
    )];
    if measured.rounds() < ENOUGH {
        facts.push(style::dim(&format!("intervals need {ENOUGH} complete rounds")));
    }
    if let Some(share) = measured.share_of_busy() {
        facts.push(format!(
            "{} % of the busy time of all processors is counted here{}",
            number::short((share * 1000.0).round() / 10.0),
            if share < 0.9 { "; other programs used the rest" } else { "" },
        ));
    }
    let rate = |apart| measured.softirqs_per_packet(apart).map_or("–".to_owned(), number::short);
    facts.push(format!(
        "softirqs that received packets, for each packet: {} on cables that separate the ends, {} on the others",
        rate(true),
        rate(false),
    ));
    let again: u64 = measured.samples.iter().map(|s| s.retransmitted).sum();
    facts.push(format!("retransmitted: {}", number::plural(again, "segment")));
    facts
}

/// The measurement for a program: medians, and every sample.
#[derive(Serialize)]
struct CpuAnswer<'a> {
    #[serde(flatten)]
    about: &'a lasthop_observe::cpu_time::About,
    bytes: u64,
    rounds: u32,
    /// Share of the processors' busy time that was attributed.
    share_of_busy: Option<f64>,
    results: Vec<Row>,
    samples: &'a [Sample],
}

/// Medians of a case.
#[derive(Serialize)]
struct Row {
    #[serde(flatten)]
    case: Case,
    /// CPU seconds per 10^9 bytes; `null` if the ends are not separate.
    sender: Option<Middle>,
    receiver: Option<Middle>,
    both: Option<Middle>,
    /// Ratio of CPU time to that of the defaults.
    sender_ratio: Option<Middle>,
    receiver_ratio: Option<Middle>,
    both_ratio: Option<Middle>,
    /// Number of segments from the sender and from the receiver.
    segments: Option<Middle>,
    acks: Option<Middle>,
}

impl CpuAnswer<'_> {
    fn of(measured: &Measurement) -> CpuAnswer<'_> {
        let row = |case: &Case| {
            let case = *case;
            let apart = |ends| ends == Ends::Both || case.wire.apart();
            let seconds = |ends| measured.seconds_per_gb(case, ends).filter(|_| apart(ends));
            let ratio = |ends| measured.ratio_to_base(case, ends).filter(|_| apart(ends));
            Row {
                case,
                sender: seconds(Ends::Sender),
                receiver: seconds(Ends::Receiver),
                both: seconds(Ends::Both),
                sender_ratio: ratio(Ends::Sender),
                receiver_ratio: ratio(Ends::Receiver),
                both_ratio: ratio(Ends::Both),
                segments: measured.middle(case, |s| s.segments as f64),
                acks: measured.middle(case, |s| s.acks as f64),
            }
        };
        CpuAnswer {
            about: &measured.about,
            bytes: measured.bytes,
            rounds: measured.rounds(),
            share_of_busy: measured.share_of_busy(),
            results: measured.cases.iter().map(row).collect(),
            samples: &measured.samples,
        }
    }
}

/// Writes a line; returns false if stdout is closed.
fn write_line(line: &Line) -> bool {
    let text = serde_json::to_string(line).unwrap_or_default();
    writeln!(std::io::stdout().lock(), "{text}").is_ok()
}

/// Main function of the measuring process. It ends when its stdin is closed.
pub fn serve() -> Result<Outcome, Failure> {
    let order: Order = child::order("lasthop testbed cpu")?;
    // First, since this process must have a single thread.
    let result = Laboratory::enter().and_then(|mut laboratory| {
        write_line(&Line::About(laboratory.about().clone()));
        let stop = Arc::new(AtomicBool::new(false));
        let raised = stop.clone();
        std::thread::spawn(move || {
            let _ = std::io::stdin().read_to_end(&mut Vec::new());
            raised.store(true, Ordering::Relaxed);
        });
        let cases = cases(&order.sizes);
        let report = |sample| write_line(&Line::Sample(sample));
        laboratory.run(&cases, order.bytes, order.rounds, &stop, report)
    });
    match result {
        Ok(()) => Ok(Outcome::Done),
        Err(error) => {
            write_line(&Line::Error { message: error.message, help: error.help });
            Ok(Outcome::No)
        }
    }
}
