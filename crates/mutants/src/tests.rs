//! The tests of all programs, each run by itself: how long it takes, and which mutants it comes by.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::Duration;
use std::{env, fs, io, process};

use crate::clock::{Clock, passes};
use crate::run::at_once;
use crate::tree::Program;

/// A test as it ran without a mutant.
#[derive(Clone, Debug)]
pub struct Test {
    /// The program that it is part of.
    pub program: Program,
    /// Its name there, with its modules.
    pub name: String,
    /// How long it took, with the start of the program.
    pub took: Duration,
    /// The mutants that it comes by.
    pub seen: BTreeSet<u32>,
}

/// What is noted of a test: whether it passed, how long it took, what it came by.
type Noted = (bool, Duration, BTreeSet<u32>);

/// Runs each test without a mutant, and gives those that come by one; `own` are the packages with mutants. A test that fails by itself tells nothing and is
/// left out. What was found stands in a file of `dir`, so that a campaign that is begun again need not ask again; also
/// told is whether that was so for all.
///
/// # Errors
/// When a program cannot be started, or `dir` not be written.
pub fn all(programs: &[Program], own: &[String], dir: &Path) -> io::Result<(Vec<Test>, bool)> {
    let notes = dir.join("tests.txt");
    let known = fs::read_to_string(&notes).unwrap_or_default();
    let known: BTreeMap<&str, &str> =
        known.lines().filter_map(|line| line.split_once("\t|\t")).collect();
    let mut asked = Vec::new();
    for program in programs {
        let built = fs::metadata(&program.path)?.modified()?;
        for name in names(program)? {
            let key = format!("{} {built:?} {name}", program.path.display());
            asked.push((program, name, key));
        }
    }
    let is_known = asked.iter().all(|(_, _, key)| known.contains_key(&**key));
    let found = Mutex::new(vec![None; asked.len()]);
    at_once(asked.iter().enumerate(), |(i, (program, name, key))| {
        let noted = match known.get(&**key).and_then(|told| noted(told)) {
            Some(noted) => noted,
            None => {
                let is_own = own.contains(&program.package);
                alone(program, name, i, if is_own { LONGEST } else { LONGEST_OF_OTHERS })?
            }
        };
        if let Ok(mut found) = found.lock() {
            found[i] = Some(noted);
        }
        Ok(())
    })?;
    let found = found.into_inner().map_err(io::Error::other)?;
    let (mut tests, mut lines) = (Vec::new(), String::new());
    for ((program, name, key), noted) in asked.into_iter().zip(found) {
        let Some((passed, took, seen)) = noted else { continue };
        let list: Vec<String> = seen.iter().map(u32::to_string).collect();
        lines += &format!("{key}\t|\t{passed}\t{}\t{}\n", took.as_millis(), list.join(","));
        let test = Test { program: program.clone(), name, took, seen };
        if !passed {
            eprintln!("{} fails without a mutant, and is left out", test.full_name());
        } else if !test.seen.is_empty() {
            tests.push(test);
        }
    }
    fs::write(&notes, lines)?;
    Ok((tests, is_known))
}

fn noted(line: &str) -> Option<Noted> {
    let mut fields = line.split('\t');
    let passed = fields.next()? == "true";
    let took = Duration::from_millis(fields.next()?.parse().ok()?);
    let seen = fields.next()?.split(',').filter_map(|n| n.parse().ok()).collect();
    Some((passed, took, seen))
}

/// The names of a program's tests.
fn names(program: &Program) -> io::Result<Vec<String>> {
    let mut command = Command::new(&program.path);
    let output =
        command.args(["--list", "--format", "terse"]).current_dir(&program.dir).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect())
}

/// How long a test may take by itself.
const LONGEST: Duration = Duration::from_secs(60);
/// The same of packages whose sources are not changed: what takes longer is not asked anyway.
const LONGEST_OF_OTHERS: Duration = Duration::from_secs(10);

/// Runs the test called `name`, the `number`th of all.
fn alone(program: &Program, name: &str, number: usize, limit: Duration) -> io::Result<Noted> {
    // Some tests run as nobody: that user must be able to write it as well.
    let notes = env::temp_dir().join(format!("lasthop-mutants-{}-{number}", process::id()));
    fs::write(&notes, "")?;
    fs::set_permissions(&notes, fs::Permissions::from_mode(0o666))?;
    let mut command = command(program, name);
    command.env("LASTHOP_MUTANTS_SEEN", &notes);
    let (mut passed, mut took) = (false, Duration::ZERO);
    for _ in 0..chances(program) {
        let clock = Clock::start();
        passed = passes(&mut command, limit)?;
        took = clock.elapsed();
        if passed || took > limit {
            break;
        }
    }
    let seen = fs::read_to_string(&notes)?;
    fs::remove_file(&notes)?;
    Ok((passed, took, seen.lines().filter_map(|line| line.parse().ok()).collect()))
}

/// Memory that a test may address, in KiB: a mutant that collects without end must not take the machine's.
const MEMORY: u64 = 8 << 20;

fn command(program: &Program, name: &str) -> Command {
    let mut command = Command::new("sh");
    command
        .args(["-c", &format!(r#"ulimit -v {MEMORY}; exec "$0" "$@""#)])
        .arg(&program.path)
        .args(["--exact", name])
        .current_dir(&program.dir)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    // Not a shrunk example for each mutant: that it fails is enough.
    command.env("PROPTEST_MAX_SHRINK_ITERS", "0").env("PROPTEST_FAILURE_PERSISTENCE", "off");
    command
}

/// How often a test has to fail: those of real packets may do so by chance on a busy machine.
fn chances(program: &Program) -> u32 {
    if program.package == "lasthop-live" { 2 } else { 1 }
}

impl Test {
    /// Program and test, for reports.
    pub fn full_name(&self) -> String {
        format!("{}: {}", self.program.name, self.name)
    }

    /// Whether it fails with the mutant `number`, or takes five times as long and five seconds.
    ///
    /// # Errors
    /// When its program cannot be started.
    pub fn fails(&self, number: u32) -> io::Result<bool> {
        let mut command = command(&self.program, &self.name);
        command.env("LASTHOP_MUTANT", number.to_string());
        let limit = Duration::from_secs(5) + self.took * 5;
        for _ in 0..chances(&self.program) {
            if passes(&mut command, limit)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
