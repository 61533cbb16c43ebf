//! `lasthop packetdrill`: packetdrill scripts against lasthop's TCP and the kernel's.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use lasthop_packetdrill::diff::{self, Difference};
use lasthop_packetdrill::report::{Counts, by_folder};
use lasthop_packetdrill::run::own::Own;
use lasthop_packetdrill::run::{Entry, EntryKind, Outcome as Played, Rules, Verdict, play};
use lasthop_packetdrill::script::{FaultKind, Script};
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::stop::Stop;
use crate::{format, output, style};

/// The largest folder: beyond this many scripts the argument is a mistake.
const FILES_MAX: usize = 10_000;

/// Run packetdrill scripts against lasthop's TCP, the kernel's, or both
#[derive(clap::Args, Debug)]
pub struct PacketdrillArgs {
    /// Scripts, or folders with *.pkt files
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Whose TCP is tested; `both` also compares what the two send
    #[arg(long, value_name = "TCP", default_value = "self", value_parser = ["self", "kernel", "both"])]
    against: String,
    /// Ignore PSH, padding, the order of options and echoed timestamps
    #[arg(long)]
    loose: bool,
    /// The default
    #[arg(long, hide = true, conflicts_with = "loose")]
    strict: bool,
    /// Print all packets and calls
    #[arg(long)]
    packets: bool,
    /// Runs against the kernel that a script has, of which one must pass: other programs disturb its times
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=20))]
    tries: u32,
}

impl PacketdrillArgs {
    /// Whether the script runs against lasthop's TCP and against the kernel's.
    fn sides(&self) -> (bool, bool) {
        (self.against != "kernel", self.against != "self")
    }
}

/// The order for the hidden command.
#[derive(Serialize, Deserialize, Debug)]
pub struct Order {
    text: String,
    rules: Rules,
}

/// Its answer.
#[derive(Serialize, Deserialize, Debug)]
enum Line {
    Played(Played),
    Error { message: String, help: String },
}

/// A script and its results.
#[derive(Serialize, Debug)]
struct ScriptOutcome {
    file: String,
    #[serde(rename = "self", skip_serializing_if = "Option::is_none")]
    own: Option<Played>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kernel: Option<Played>,
    #[serde(skip_serializing_if = "Option::is_none")]
    difference: Option<Difference>,
}

impl ScriptOutcome {
    /// A script without a run.
    fn not_run(args: &PacketdrillArgs, path: &Path, reason: NotRun) -> ScriptOutcome {
        let verdict = Verdict::Unsupported { line: reason.line, feature: reason.feature };
        let played = Played { verdict, notes: Vec::new(), trace: Vec::new() };
        let (own, kernel) = args.sides();
        ScriptOutcome {
            file: path.display().to_string(),
            own: own.then(|| played.clone()),
            kernel: kernel.then_some(played),
            difference: None,
        }
    }
}

/// Runs the command.
pub fn run(args: &PacketdrillArgs, json: bool) -> Result<Outcome, Failure> {
    let files = files(&args.files)?;
    let stop = Stop::listen()?;
    let (own, kernel) = args.sides();
    let mut results = Vec::new();
    for path in &files {
        if stop.requested() {
            return Ok(output::interrupted(None));
        }
        let outcome = match load(path) {
            Ok((text, script)) => one(args, path, &text, &script, &stop)?,
            Err(NotRun { failure: Some(failure), .. }) if files.len() == 1 => return Err(*failure),
            // The other scripts of a folder are run.
            Err(reason) => ScriptOutcome::not_run(args, path, reason),
        };
        if !json {
            output::print(&script_text(args, &outcome))?;
        }
        results.push(outcome);
    }
    let sides: Vec<(&str, Vec<(&str, &Verdict)>)> = [("self", own), ("kernel", kernel)]
        .into_iter()
        .filter(|(_, requested)| *requested)
        .map(|(name, _)| (name, verdicts(&results, name)))
        .collect();
    let passed = sides.iter().all(|(_, all)| all.iter().all(|(_, v)| **v == Verdict::Pass));
    if json {
        let folders: BTreeMap<&str, BTreeMap<String, Counts>> =
            sides.iter().map(|(name, all)| (*name, by_folder(all.iter().copied()))).collect();
        output::print_json(
            format::PACKETDRILL,
            &serde_json::json!({
                "scripts": results, "folders": folders,
            }),
        )?;
    } else {
        output::print(&summary(&sides))?;
    }
    Ok(if passed { Outcome::Done } else { Outcome::No })
}

const HELP: &str = "name a script, as fast-retransmit.pkt, or a folder with *.pkt files";

/// The scripts that the arguments name, in the order of their paths below a folder.
fn files(named: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut all = Vec::new();
    for path in named {
        let meta = fs::metadata(path).map_err(|error| Failure::file(path, error, HELP))?;
        match meta.is_dir() {
            true => below(path, &mut all, 0)?,
            false => all.push(path.clone()),
        }
    }
    match all.len() {
        0 => {
            let folders: Vec<String> =
                named.iter().map(|path| path.display().to_string()).collect();
            let none = format!("there is no *.pkt file in {}", folders.join(", "));
            Err(Failure::input(none, HELP))
        }
        n if n > FILES_MAX => Err(Failure::input(
            format!("{n} scripts are too many"),
            format!("name a folder with at most {FILES_MAX}"),
        )),
        _ => Ok(all),
    }
}

fn below(folder: &Path, all: &mut Vec<PathBuf>, depth: u32) -> Result<(), Failure> {
    let failed = |error| Failure::file(folder, error, HELP);
    let mut entries: Vec<PathBuf> = fs::read_dir(folder)
        .map_err(failed)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()
        .map_err(failed)?;
    entries.sort();
    for path in entries {
        let link =
            fs::symlink_metadata(&path).map_err(|error| Failure::file(&path, error, HELP))?;
        if link.is_dir() && depth < 32 {
            below(&path, all, depth + 1)?;
        } else if path.extension().is_some_and(|ext| ext == "pkt") && all.len() <= FILES_MAX {
            all.push(path);
        }
    }
    Ok(())
}

/// Why a script is not run.
struct NotRun {
    /// The line, from 1.
    line: u32,
    feature: String,
    /// The error if it is the only script, unless only a feature is missing.
    failure: Option<Box<Failure>>,
}

/// A script and its text.
fn load(path: &Path) -> Result<(String, Script), NotRun> {
    let name = path.display();
    let unread = |failure: Failure| {
        let message = failure.to_string();
        let reason = message.strip_prefix(&format!("{name}: ")).unwrap_or(&message).to_owned();
        NotRun { line: 1, feature: reason, failure: Some(Box::new(failure)) }
    };
    let text = File::open(path)
        .map_err(|error| Failure::file(path, error, HELP))
        .and_then(|mut file| crate::scenario::read(&mut file, path, HELP))
        .map_err(unread)?;
    if text.trim().is_empty() {
        return Err(unread(Failure::input(format!("{name}: the script is empty"), HELP)));
    }
    match Script::parse(&text) {
        Ok(script) => Ok((text, script)),
        Err(fault) => {
            let help = "docs/how-to/packetdrill.md describes the language";
            let failure = (fault.kind == FaultKind::Syntax)
                .then(|| Box::new(Failure::input(format!("{name}: {fault}"), help)));
            Err(NotRun { line: fault.line, feature: fault.message, failure })
        }
    }
}

fn one(
    args: &PacketdrillArgs,
    path: &Path,
    text: &str,
    script: &Script,
    stop: &Stop,
) -> Result<ScriptOutcome, Failure> {
    let rules = Rules { strict: args.strict || !args.loose, ..Rules::default() };
    let (own, kernel) = args.sides();
    let ours = own.then(|| play(script, &mut Own::default(), &rules));
    let theirs = kernel.then(|| on_kernel(text, &rules, args.tries, stop)).transpose()?;
    // A failed run has no trace after the failure.
    let difference = (own && kernel && theirs.is_some())
        .then(|| {
            let rules = Rules { observe: true, ..rules.clone() };
            let theirs = on_kernel(text, &rules, 1, stop)?;
            Ok::<_, Failure>(diff::from_kernel(script, &theirs.trace, tick(), &rules))
        })
        .transpose()?
        .flatten();
    let file = path.display().to_string();
    Ok(ScriptOutcome { file, own: ours, kernel: theirs, difference })
}

#[cfg(live)]
fn on_kernel(text: &str, rules: &Rules, tries: u32, stop: &Stop) -> Result<Played, Failure> {
    use crate::child::{self, Remaining};
    let order = Order { text: text.to_owned(), rules: rules.clone() };
    let mut last = None;
    for _ in 0..tries {
        child::converse(
            &["packetdrill-run"],
            &order,
            &|| stop.requested(),
            |line: Line| match line {
                Line::Played(played) => {
                    last = Some(played);
                    Ok(Remaining::Nothing)
                }
                Line::Error { message, help } => Err(Failure::input(message, help)),
            },
        )?;
        match &last {
            Some(played) if !matches!(played.verdict, Verdict::Fail { .. }) => break,
            _ => {}
        }
    }
    last.ok_or_else(|| Failure::input("the run against the kernel was stopped", "run it again"))
}

/// A tick of the kernel's clock, in nanoseconds.
#[cfg(live)]
fn tick() -> u64 {
    use nix::time::{ClockId, clock_getres};
    clock_getres(ClockId::CLOCK_MONOTONIC_COARSE).map_or(1, |tick| tick.tv_nsec().max(1) as u64)
}

#[cfg(not(live))]
fn tick() -> u64 {
    1
}

#[cfg(not(live))]
fn on_kernel(_: &str, _: &Rules, _: u32, _: &Stop) -> Result<Played, Failure> {
    crate::child::needs_linux(", or use `--against self`")?;
    Err(Failure::input("there is no Linux here", "use `--against self`"))
}

/// `lasthop packetdrill-run`: one script against the kernel, in a separate process.
#[cfg(live)]
pub fn run_on_kernel() -> Result<Outcome, Failure> {
    use lasthop_packetdrill::run::kernel::Kernel;
    let order: Order = crate::child::order("lasthop packetdrill --against kernel")?;
    let line = match (Kernel::enter(), Script::parse(&order.text)) {
        (Err(error), _) => Line::Error { message: error.message, help: error.help },
        (_, Err(fault)) => Line::Error { message: fault.to_string(), help: String::new() },
        (Ok(mut world), Ok(script)) => Line::Played(play(&script, &mut world, &order.rules)),
    };
    output::exact(&(serde_json::to_string(&line).expect("a line is JSON") + "\n"))?;
    Ok(Outcome::Done)
}

fn verdicts<'a>(results: &'a [ScriptOutcome], side: &str) -> Vec<(&'a str, &'a Verdict)> {
    let of = |outcome: &'a ScriptOutcome| match side {
        "self" => outcome.own.as_ref(),
        _ => outcome.kernel.as_ref(),
    };
    results.iter().filter_map(|r| Some((r.file.as_str(), &of(r)?.verdict))).collect()
}

/// The text of a script's result.
fn script_text(args: &PacketdrillArgs, outcome: &ScriptOutcome) -> String {
    let mut text = String::new();
    let sides = [("self", &outcome.own), ("kernel", &outcome.kernel)];
    let several = args.against == "both";
    for (name, played) in sides {
        let Some(played) = played else { continue };
        let side = if several { format!(" ({name})") } else { String::new() };
        if args.packets {
            played.trace.iter().for_each(|entry| text += &line(entry));
        }
        let file = &outcome.file;
        text += &match &played.verdict {
            Verdict::Pass => format!("{} {file}{side}\n", style::good("pass")),
            Verdict::Fail { line, expected, got } => format!(
                "{} {file}:{line}{side}\n  expected {expected}\n  got      {got}\n",
                style::bad("FAIL")
            ),
            Verdict::Unsupported { line, feature } => {
                format!("{} {file}:{line}{side}: {feature}\n", style::bold("unsupported"))
            }
        };
        for (line, note) in &played.notes {
            text += &format!("  {} {file}:{line}: not applied: {note}\n", style::dim("note"));
        }
    }
    if let Some(difference) = &outcome.difference {
        text += &format!("  first difference, by {}:\n", difference.what);
        difference.before.iter().for_each(|entry| text += &line(entry));
        for (name, entries) in [("self", &difference.first), ("kernel", &difference.second)] {
            text += &format!("  {name}:\n");
            if entries.is_empty() {
                text += "    nothing more\n";
            }
            entries.iter().for_each(|entry| text += &line(entry));
        }
    }
    text
}

fn line(entry: &Entry) -> String {
    let sign = match entry.kind {
        EntryKind::Arrived => "<",
        EntryKind::Sent => ">",
        EntryKind::Called => "=",
        EntryKind::Printed => "#",
    };
    format!("    {:>12.6} {sign} {}\n", entry.at as f64 / 1e9, entry.text)
}

/// Counts by folder and in all.
fn summary(sides: &[(&str, Vec<(&str, &Verdict)>)]) -> String {
    let mut text = String::new();
    for (name, all) in sides {
        let folders = by_folder(all.iter().copied());
        let mut total = Counts::default();
        all.iter().for_each(|(_, verdict)| total.add(verdict));
        text +=
            &format!("\n{}\n", style::heading(&format!("against {name}: pass, fail, unsupported")));
        if folders.len() > 1 {
            for (folder, Counts { pass, fail, unsupported }) in &folders {
                text += &format!("  {pass:>4} {fail:>4} {unsupported:>4}  {folder}\n");
            }
        }
        let Counts { pass, fail, unsupported } = total;
        text += &format!("  {pass:>4} {fail:>4} {unsupported:>4}  of {}\n", total.all());
    }
    text
}
