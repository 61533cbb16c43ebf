//! The tests of all programs, each run alone: its duration, and the mutants that it reaches.

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

/// A test without a mutant.
#[derive(Clone, Debug)]
pub struct Test {
    pub program: Program,
    /// Its name with modules.
    pub name: String,
    /// Duration, with the start of the program.
    pub took: Duration,
    /// The mutants that it reaches.
    pub reached: BTreeSet<u32>,
}

/// Success, duration and reached mutants of a test.
type Notes = (bool, Duration, BTreeSet<u32>);

/// Runs each test without a mutant, and returns those that reach one; `own` are the packages with mutants. A failing
/// test is left out. The results are stored in a file of `dir`, so that a restarted campaign need not repeat them; the
/// Boolean is true if all were stored.
///
/// # Errors
///
/// A program does not start, or `dir` is not writable.
/// When a program cannot be started, or `dir` not be written.
pub fn all(programs: &[Program], own: &[String], dir: &Path) -> io::Result<(Vec<Test>, bool)> {
    let notes = dir.join("tests.txt");
    let known = fs::read_to_string(&notes).unwrap_or_default();
    let known: BTreeMap<&str, &str> =
        known.lines().filter_map(|line| line.split_once("\t|\t")).collect();
    let mut requested = Vec::new();
    for program in programs {
        let built = fs::metadata(&program.path)?.modified()?;
        for name in names(program)? {
            let key = format!("{} {built:?} {name}", program.path.display());
            requested.push((program, name, key));
        }
    }
    let is_known = requested.iter().all(|(_, _, key)| known.contains_key(&**key));
    let found = Mutex::new(vec![None; requested.len()]);
    at_once(requested.iter().enumerate(), |(i, (program, name, key))| {
        let noted = match known.get(&**key).and_then(|text| noted(text)) {
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
    for ((program, name, key), noted) in requested.into_iter().zip(found) {
        let Some((passed, took, reached)) = noted else { continue };
        let list: Vec<String> = reached.iter().map(u32::to_string).collect();
        lines += &format!("{key}\t|\t{passed}\t{}\t{}\n", took.as_millis(), list.join(","));
        let test = Test { program: program.clone(), name, took, reached };
        if !passed {
            eprintln!("{} fails without a mutant, and is left out", test.full_name());
        } else if !test.reached.is_empty() {
            tests.push(test);
        }
    }
    fs::write(&notes, lines)?;
    Ok((tests, is_known))
}

fn noted(line: &str) -> Option<Notes> {
    let mut fields = line.split('\t');
    let passed = fields.next()? == "true";
    let took = Duration::from_millis(fields.next()?.parse().ok()?);
    let reached = fields.next()?.split(',').filter_map(|n| n.parse().ok()).collect();
    Some((passed, took, reached))
}

fn names(program: &Program) -> io::Result<Vec<String>> {
    let mut command = Command::new(&program.path);
    let output =
        command.args(["--list", "--format", "terse"]).current_dir(&program.dir).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect())
}

/// Maximum duration of a test alone.
const LONGEST: Duration = Duration::from_secs(60);
/// The same for packages without mutants, whose long tests are not used.
const LONGEST_OF_OTHERS: Duration = Duration::from_secs(10);

/// Runs the test called `name`, with `number` in the name of its notes.
fn alone(program: &Program, name: &str, number: usize, limit: Duration) -> io::Result<Notes> {
    // Some tests run as another user, who must be able to write the file as well.
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
    let reached = fs::read_to_string(&notes)?;
    fs::remove_file(&notes)?;
    Ok((passed, took, reached.lines().filter_map(|line| line.parse().ok()).collect()))
}

/// Address space limit of a test in KiB: a mutant that allocates without end must not exhaust the machine.
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
    // Shrinking takes time; that the test fails is enough.
    command.env("PROPTEST_MAX_SHRINK_ITERS", "0").env("PROPTEST_FAILURE_PERSISTENCE", "off");
    command
}

/// Number of failures that count: tests on real packets may fail by chance on a busy machine.
fn chances(program: &Program) -> u32 {
    if program.package == "lasthop-live" { 2 } else { 1 }
}

impl Test {
    /// Program and test, for reports.
    pub fn full_name(&self) -> String {
        format!("{}: {}", self.program.name, self.name)
    }

    /// The test fails with the mutant `number`, or takes longer than five times its duration plus five seconds.
    ///
    /// # Errors
    ///
    /// The program does not start.
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
