//! Compares the analysis of a folder of captures with `tshark` and `tcptrace`, direction by direction, and groups the
//! differences by the rule that explains them.
//!
//!     cargo run --release -p lasthop-analyze --example captures -- DIR
//!
//! `--page` prints the counts as the tables of docs/how-to/analyze.md.
//!
//! A program that is missing is named with the command that installs it, and left out. gzip unpacks compressed
//! captures. The exit code is 1 if a difference has no rule.

mod ours;
mod tcptrace;
mod tshark;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output};

use lasthop_analyze::{Config, analyze_capture};

/// Larger files are left out: the other programs hold much more than a file in memory.
const MAX_SIZE: u64 = 200 << 20;

/// Seconds that another program may take for one file.
const PATIENCE: &str = "120";

/// Examples that are listed for each rule.
const EXAMPLES: usize = 3;

/// The program, what it counts, and why its count is another one.
type Rule = (&'static str, &'static str, &'static str);

/// The programs that are compared with; Debian's packages have their names.
const PROGRAMS: [&str; 2] = ["tshark", "tcptrace"];

fn is_installed(program: &str) -> bool {
    let output =
        Command::new(program).arg(if program == "tshark" { "--version" } else { "-v" }).output();
    !output.is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound)
}

/// Counts of compared items and of differences.
#[derive(Default)]
struct Tally {
    files: u64,
    left_out: BTreeMap<&'static str, Vec<String>>,
    /// Files and directions that agree with each program, of how many.
    files_equal: BTreeMap<&'static str, (u64, u64)>,
    directions_equal: BTreeMap<&'static str, (u64, u64)>,
    differences: BTreeMap<Rule, (u64, Vec<String>)>,
}

impl Tally {
    /// Differences of one direction of a file from `program`, with their rules.
    fn direction(
        &mut self,
        program: &'static str,
        at: &str,
        differences: &[(&'static str, &'static str, String)],
    ) {
        let (equal, all) = self.directions_equal.entry(program).or_default();
        *all += 1;
        *equal += u64::from(differences.is_empty());
        for (field, why, difference) in differences {
            let (count, examples) = self.differences.entry((program, field, why)).or_default();
            *count += 1;
            if examples.len() < EXAMPLES {
                examples.push(format!("{at}: {difference}"));
            }
        }
    }

    fn file(&mut self, program: &'static str, equal: bool) {
        let (good, all) = self.files_equal.entry(program).or_default();
        *all += 1;
        *good += u64::from(equal);
    }

    /// The counts as Markdown.
    fn page(&self) {
        println!("| compared with | files that agree | directions that agree |\n|---|---|---|");
        for (program, (equal, all)) in &self.files_equal {
            let (directions, of) = self.directions_equal.get(program).copied().unwrap_or_default();
            println!("| {program} | {equal} of {all} | {directions} of {of} |");
        }
        println!("\n| program | count | directions | rule of the difference |\n|---|---|---|---|");
        for ((program, field, why), (count, _)) in &self.differences {
            println!("| {program} | {field} | {count} | {why} |");
        }
        for (why, files) in &self.left_out {
            println!("\n{} files left out: {why}.", files.len());
        }
    }

    fn print(&self) {
        println!("{} files analysed", self.files);
        for (why, files) in &self.left_out {
            println!("{} left out: {why}, as {}", files.len(), files[0]);
        }
        for (program, (equal, all)) in &self.files_equal {
            let (directions, of) = self.directions_equal.get(program).copied().unwrap_or_default();
            println!("{program}: {equal} of {all} files agree, {directions} of {of} directions");
        }
        for ((program, field, why), (count, examples)) in &self.differences {
            println!("\n{program} {field}: {count} directions: {why}");
            examples.iter().for_each(|example| println!("    {example}"));
        }
    }
}

fn main() -> ExitCode {
    let (options, dirs): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|argument| argument == "--page");
    let [dir] = &dirs[..] else {
        eprintln!("name a folder of captures");
        return ExitCode::from(2);
    };
    let have = PROGRAMS.map(is_installed);
    for (program, _) in PROGRAMS.into_iter().zip(have).filter(|(_, have)| !have) {
        eprintln!(
            "{program} is missing and not compared with; `apt-get install {program}` installs it"
        );
    }
    let mut files = Vec::new();
    list(Path::new(dir), &mut files);
    files.sort();
    let scratch = std::env::temp_dir().join(format!("captures-{}", std::process::id()));
    if let Err(error) = std::fs::create_dir_all(&scratch) {
        eprintln!("{}: {error}", scratch.display());
        return ExitCode::from(2);
    }
    let mut tally = Tally::default();
    for file in &files {
        compare(file, have, &scratch, &mut tally);
    }
    let _ = std::fs::remove_dir_all(&scratch);
    if options.is_empty() {
        tally.print()
    } else {
        tally.page()
    }
    let unexplained = tally.differences.keys().any(|(.., why)| *why == UNEXPLAINED);
    ExitCode::from(u8::from(unexplained))
}

/// The rule of differences that have none.
const UNEXPLAINED: &str = "no rule explains it";

/// All files below `dir`.
fn list(dir: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(dir) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        match path.symlink_metadata() {
            Ok(meta) if meta.is_dir() => list(&path, files),
            Ok(meta) if meta.is_file() => files.push(path),
            _ => {}
        }
    }
}

/// Runs a program with a limit of time; its output if it ended well.
fn run(program: &str, arguments: &[&str]) -> Option<Output> {
    let mut command = Command::new("timeout");
    command.arg(PATIENCE).arg(program).args(arguments);
    // A user's preferences must not change what we compare with.
    command.env("WIRESHARK_CONFIG_DIR", std::env::temp_dir());
    command.output().ok().filter(|output| output.status.success())
}

fn compare(file: &Path, have: [bool; 2], scratch: &Path, tally: &mut Tally) {
    let name = file.display().to_string();
    let mut left_out = |why| tally.left_out.entry(why).or_default().push(name.clone());
    if file.metadata().map_or(u64::MAX, |meta| meta.len()) > MAX_SIZE {
        return left_out("too large");
    }
    let Ok(mut bytes) = std::fs::read(file) else { return left_out("unreadable") };
    let mut file = file.to_owned();
    if bytes.starts_with(&[0x1f, 0x8b]) {
        let Some(plain) = run("gzip", &["-dc", &name]) else { return left_out("unreadable") };
        bytes = plain.stdout;
        file = scratch.join("plain");
        if std::fs::write(&file, &bytes).is_err() {
            return left_out("unreadable");
        }
    }
    let Ok(analysis) = analyze_capture(&bytes, Config::default()) else {
        return left_out("no capture that lasthop reads");
    };
    tally.files += 1;
    let path = file.display().to_string();
    let ours = ours::directions(&analysis);
    if have[0] {
        match tshark::directions(&path) {
            Some(theirs) => tshark::compare(&name, &analysis, &ours, &theirs, tally),
            None => tally.left_out.entry("tshark fails").or_default().push(name.clone()),
        }
    }
    if have[1] {
        match tcptrace::directions(&path, &bytes, scratch) {
            Some(theirs) => tcptrace::compare(&name, &ours, &theirs, tally),
            None => tally.left_out.entry("tcptrace fails").or_default().push(name.clone()),
        }
    }
}
