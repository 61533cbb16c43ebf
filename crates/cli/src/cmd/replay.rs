//! `lasthop replay`: compares lasthop's TCP with the kernel's under the same packet losses.

use std::path::{Path, PathBuf};

use lasthop_proto::link::Ordinals;
use lasthop_study::replay::{self, KernelOrders, NAME, PATH, Pattern, Recording, SENDERS};

use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::progress::Progress;
use crate::show::replay::ReplayAnswer;
use crate::stop::Stop;
use crate::sweep::testbed::{self, Order as Runs};
use crate::{format, output, show};

/// Size limit of a recording, bytes.
const LARGEST: u64 = 64 << 20;

/// Compare the kernel's TCP with lasthop's under the same packet losses
#[derive(clap::Args, Debug)]
pub struct ReplayArgs {
    /// Congestion control of the kernel; lasthop uses its rack, cubic or bbr
    #[arg(long, value_name = "NAME", default_value = SENDERS[0].0, value_parser = SENDERS.map(|(name, _)| name))]
    kernel: String,
    /// Lose these packets with data: numbers and ranges, separated by commas
    #[arg(long, value_name = "NUMBERS", value_parser = numbers)]
    drop_data: Option<String>,
    /// Lose these ACKs: numbers and ranges, separated by commas
    #[arg(long, value_name = "NUMBERS", value_parser = numbers)]
    drop_acks: Option<String>,
    /// Number of random loss patterns
    #[arg(long, value_name = "N", default_value_t = 50, conflicts_with_all = ["drop_data", "drop_acks"],
          value_parser = clap::value_parser!(u32).range(1..=10_000))]
    patterns: u32,
    /// Run every pattern of at most N losses among the first packets and ACKs, instead of random patterns
    #[arg(long, value_name = "N", conflicts_with_all = ["drop_data", "drop_acks", "patterns", "seed"],
          value_parser = clap::value_parser!(u32).range(1..=3))]
    exhaustive: Option<u32>,
    /// With --exhaustive: number of packets with data, and of ACKs, that can be lost
    #[arg(long, value_name = "K", default_value_t = 8, requires = "exhaustive", value_parser = clap::value_parser!(u64).range(1..=40))]
    among: u64,
    /// Seed of the random patterns
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Number of sent segments to compare
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..))]
    segments: u32,
    /// Number of runs of the kernel with each pattern, since its behaviour varies
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    repeat: u32,
    /// Record the kernel's segments in this file
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Compare with the recording in this file, without running the kernel
    #[arg(long, value_name = "FILE",
          conflicts_with_all = ["kernel", "drop_data", "drop_acks", "patterns", "exhaustive", "among", "seed", "repeat", "record"])]
    recorded: Option<PathBuf>,
}

/// Runs the command.
pub fn run(args: &ReplayArgs, json: bool) -> Result<Outcome, Failure> {
    let recorded = args.recorded.as_deref().map(read).transpose()?;
    let stop = Stop::listen()?;
    let (answer, recording) = match &recorded {
        Some(recording) => (against(args, recording, &stop)?, None),
        None => live(args, json, &stop)?,
    };
    if let (Some(path), Some(recording)) = (&args.record, &recording) {
        output::write(path, output::json(recording)?.as_bytes())?;
    }
    if json {
        output::print_json(format::REPLAY, &answer)?;
    } else {
        output::print(&show::replay::text(&answer))?;
    }
    Ok(if answer.patterns.len() < answer.asked && stop.requested() {
        Outcome::Interrupted
    } else {
        Outcome::Done
    })
}

/// A list of packet numbers.
fn numbers(text: &str) -> Result<String, String> {
    match Ordinals::parse(text) {
        Some(_) => Ok(text.to_owned()),
        None => Err(
            "not a list of packets; number packets from 1, in ascending order, for example 3,8-10"
                .to_owned(),
        ),
    }
}

/// Reads a recording.
fn read(path: &Path) -> Result<Recording, Failure> {
    let help = "`lasthop replay --record FILE` writes one";
    let fail = |error| Failure::file(path, error, help);
    if std::fs::metadata(path).map_err(fail)?.len() > LARGEST {
        return Err(Failure::input(format!("{}: too large for a recording", path.display()), help));
    }
    let text = std::fs::read_to_string(path).map_err(fail)?;
    Recording::parse(&text)
        .map_err(|error| Failure::input(format!("{}: {error}", path.display()), help))
}

/// The answer without any pattern.
fn nothing_yet(
    args: &ReplayArgs,
    kernel: &str,
    release: &str,
    requested: usize,
) -> Result<ReplayAnswer, Failure> {
    let Some(ours) = replay::ours(kernel) else {
        return Err(Failure::input(format!("`{kernel}` is no kernel of a replay"), ""));
    };
    let (kernel, release) = (kernel.to_owned(), release.to_owned());
    let segments = args.segments;
    Ok(ReplayAnswer {
        kernel,
        release,
        ours,
        segments,
        equal: 0,
        asked: requested,
        spoiled: 0,
        patterns: Vec::new(),
    })
}

/// Compares lasthop's TCP with a recording.
fn against(args: &ReplayArgs, recording: &Recording, stop: &Stop) -> Result<ReplayAnswer, Failure> {
    let Recording { kernel, release, patterns, .. } = recording;
    let mut answer = nothing_yet(args, kernel, release, patterns.len())?;
    for recorded in patterns {
        if stop.requested() {
            break;
        }
        let KernelOrders { pattern, .. } = recorded;
        answer.add(pattern, &recorded.orders(), &replay::simulate(answer.ours, pattern)?);
    }
    Ok(answer)
}

/// Compares lasthop's TCP with the kernel of this machine.
fn live(
    args: &ReplayArgs,
    json: bool,
    stop: &Stop,
) -> Result<(ReplayAnswer, Option<Recording>), Failure> {
    let patterns = match (&args.drop_data, &args.drop_acks) {
        (None, None) if args.exhaustive.is_some() => {
            Pattern::every(args.exhaustive.unwrap_or_default(), args.among)
        }
        (None, None) => Pattern::drawn(args.seed, args.patterns as usize),
        (data, acks) => vec![Pattern {
            drop_data: data.clone().unwrap_or_default(),
            drop_acks: acks.clone().unwrap_or_default(),
        }],
    };
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut answer = nothing_yet(args, &args.kernel, release.trim(), patterns.len())?;
    let mut recording = Recording::new(&args.kernel, release.trim());
    let progress = Progress::new(patterns.len() as u64, json);
    for pattern in &patterns {
        progress.show(pattern.to_string());
        let ours = replay::simulate(answer.ours, pattern)?;
        let runs = Runs {
            name: NAME.to_owned(),
            text: PATH.to_owned(),
            set: replay::kernel_arguments(&args.kernel, pattern),
            seeds: (1..=args.repeat.into()).collect(),
            replay: true,
            ..Runs::default()
        };
        let mut kernel = Vec::new();
        let carried = testbed::carry_out_replay(&runs, stop, |order, lost_frames| {
            // Lost frames outside the pattern would falsify the run.
            if lost_frames == 0 {
                kernel.push(order)
            } else {
                answer.spoiled += 1
            }
            Ok(())
        });
        if let Err(failure) = carried {
            progress.finish();
            return Err(failure);
        }
        if stop.requested() {
            break;
        }
        if !kernel.is_empty() {
            answer.add(pattern, &kernel, &ours);
            recording.add(pattern, &kernel);
        }
        progress.step(&pattern.to_string());
    }
    progress.finish();
    Ok((answer, Some(recording)))
}
