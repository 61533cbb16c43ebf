//! Sweeps and runs that are killed repeatedly. The last start must leave the same files as an undisturbed run; files
//! under a final name must be complete.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use lasthop_proto::rng::Stream;
use rustix::process::{Pid, Signal, kill_process};

use crate::clock::Jumps;
use crate::disk::is_temporary;

/// A command that is killed.
#[derive(Clone, Copy, Debug)]
pub struct Job {
    /// Its name in tables.
    pub name: &'static str,
    /// Its arguments, without the directory of results.
    pub words: &'static [&'static str],
}

pub const SWEEP: Job = Job {
    name: "a sweep, started again until it is done",
    words: &["run", "west97-lan", "--seeds", "300"],
};
/// One run of each of three agents, with events, captures and plots.
pub const RUN: Job = Job {
    name: "a run with all of its traces, started again until it is done",
    words: &[
        "run",
        "west97-lan",
        "--seeds",
        "1",
        "--details",
        "all",
        "--details-size",
        "unlimited",
    ],
};
/// Finished runs in order of completion, which varies.
const UNORDERED: &str = "runs.jsonl";

/// Results of many kills.
#[derive(Clone, Debug, Default)]
pub struct Kills {
    /// Processes killed before they ended.
    pub kills: u64,
    /// Jobs that completed after some kills.
    pub ended: u64,
    /// Faults found.
    pub wrong: Vec<String>,
}

fn files(root: &Path, at: &Path, into: &mut BTreeMap<String, Vec<u8>>) -> io::Result<()> {
    for entry in fs::read_dir(at)? {
        let path = entry?.path();
        if path.is_dir() {
            files(root, &path, into)?;
        } else {
            let name = path.strip_prefix(root).unwrap_or(&path).display().to_string();
            into.insert(name, fs::read(&path)?);
        }
    }
    Ok(())
}

pub(crate) fn tree(root: &Path) -> io::Result<BTreeMap<String, Vec<u8>>> {
    let mut found = BTreeMap::new();
    files(root, root, &mut found)?;
    Ok(found)
}

fn start(program: &Path, job: Job, out: &Path) -> io::Result<Child> {
    let mut command = Command::new(program);
    command.args(job.words).arg("-o").arg(out);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()
}

/// Runs `job` of `program` below `base` on a wall clock that jumps. Returns the differences from a run on the normal
/// clock.
///
/// # Errors
///
/// Files could not be read or written, the program could not be started, or the clock cannot jump here.
pub fn on_a_clock_that_jumps(program: &Path, base: &Path, job: Job) -> io::Result<Vec<String>> {
    let (whole, other) = (base.join("whole"), base.join("jumped"));
    for out in [&whole, &other] {
        let _ = fs::remove_dir_all(out);
    }
    let status = start(program, job, &whole)?.wait()?;
    if !status.success() {
        return Err(io::Error::other(format!("on the machine's clock it ended with {status}")));
    }
    let jumps = Jumps::new(base)?;
    let mut command = Command::new(program);
    command.args(job.words).arg("-o").arg(&other).stdin(Stdio::null()).stdout(Stdio::null());
    let status = jumps.on(&mut command).stderr(Stdio::null()).status()?;
    let mut wrong = differences(&whole, &other)?;
    if !status.success() {
        wrong.push(format!("it ended with {status}"));
    }
    Ok(wrong)
}

/// Differences between the results of two sweeps.
fn differences(one: &Path, other: &Path) -> io::Result<Vec<String>> {
    let (one, other) = (tree(one)?, tree(other)?);
    let names: Vec<&String> =
        one.keys().chain(other.keys().filter(|name| !one.contains_key(*name))).collect();
    let differs = |name: &&String| !name.ends_with(UNORDERED) && one.get(*name) != other.get(*name);
    Ok(names.into_iter().filter(differs).cloned().collect())
}

/// Files that a killed job left under final names with content that differs from a complete job.
fn halves(whole: &Path, killed: &Path) -> io::Result<Vec<String>> {
    if !killed.exists() {
        return Ok(Vec::new());
    }
    let (whole, left) = (tree(whole)?, tree(killed)?);
    let wrong = |(name, bytes): &(&String, &Vec<u8>)| {
        !is_temporary(name) && !name.ends_with(UNORDERED) && whole.get(*name) != Some(bytes)
    };
    Ok(left
        .iter()
        .filter(wrong)
        .map(|(name, bytes)| format!("{name} ({} bytes)", bytes.len()))
        .collect())
}

/// Kills `job` of `program` below `base` `count` times. An undisturbed job takes `takes`.
///
/// # Errors
///
/// Files could not be read or written, or the program could not be started.
#[expect(clippy::disallowed_methods, reason = "real processes are killed at any time")]
pub fn kills(
    program: &Path,
    base: &Path,
    job: Job,
    count: u64,
    takes: Duration,
) -> io::Result<Kills> {
    let mut dice = Stream::new(1, "kills");
    let mut all = Kills::default();
    let (whole, killed) = (base.join("whole"), base.join("killed"));
    let status = start(program, job, &whole)?.wait()?;
    if !status.success() {
        return Err(io::Error::other(format!("a process that was not killed ended with {status}")));
    }
    while all.kills < count {
        let mut child = start(program, job, &killed)?;
        let wait = Duration::from_nanos(dice.below(takes.as_nanos() as u64));
        std::thread::sleep(wait);
        let signal =
            [Signal::KILL, Signal::KILL, Signal::TERM, Signal::INT][dice.below(4) as usize];
        let ended = match child.try_wait()? {
            Some(status) => Some(status),
            None => {
                let id = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
                // The process may have ended since.
                let _ = id.map(|id| kill_process(id, signal));
                let status = child.wait()?;
                all.kills += u64::from(!status.success());
                status.success().then_some(status)
            }
        };
        let Some(status) = ended else {
            for name in halves(&whole, &killed)? {
                all.wrong.push(format!("kill {} leaves {name}, which is incomplete", all.kills));
            }
            continue;
        };
        if !status.success() {
            all.wrong.push(format!("after {} kills it ends with {status}", all.kills));
        }
        for name in differences(&whole, &killed)? {
            all.wrong.push(format!("after {} kills {name} differs", all.kills));
        }
        all.ended += 1;
        fs::remove_dir_all(&killed)?;
    }
    Ok(all)
}
