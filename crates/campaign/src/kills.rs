//! A sweep that is killed again and again: whoever starts it once more must end with the files of one that never was.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use lasthop_proto::rng::Stream;
use rustix::process::{Pid, Signal, kill_process};

/// What is run: its words, without the directory of its results.
pub const SWEEP: &[&str] = &["run", "west97-lan", "--seeds", "300"];
/// Finished runs in the order in which they finished, which may differ.
const UNORDERED: &str = "runs.jsonl";

/// What many kills came to.
#[derive(Clone, Debug, Default)]
pub struct Kills {
    /// Processes that were killed before they ended.
    pub kills: u64,
    /// Sweeps that came to their end after some.
    pub sweeps: u64,
    /// What was wrong.
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

fn tree(root: &Path) -> io::Result<BTreeMap<String, Vec<u8>>> {
    let mut found = BTreeMap::new();
    files(root, root, &mut found)?;
    Ok(found)
}

fn sweep(program: &Path, out: &Path) -> io::Result<Child> {
    let mut command = Command::new(program);
    command.args(SWEEP).arg("-o").arg(out);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()
}

/// What differs between the results of two sweeps.
fn differences(one: &Path, other: &Path) -> io::Result<Vec<String>> {
    let (one, other) = (tree(one)?, tree(other)?);
    let names: Vec<&String> =
        one.keys().chain(other.keys().filter(|name| !one.contains_key(*name))).collect();
    let differs = |name: &&String| !name.ends_with(UNORDERED) && one.get(*name) != other.get(*name);
    Ok(names.into_iter().filter(differs).cloned().collect())
}

/// Kills sweeps of `program` below `base` until `count` were killed. A sweep takes `takes` where nobody kills it.
///
/// # Errors
///
/// Files could not be read or written, or the program could not be started.
#[expect(clippy::disallowed_methods, reason = "real processes are killed at any time")]
pub fn kills(program: &Path, base: &Path, count: u64, takes: Duration) -> io::Result<Kills> {
    let mut dice = Stream::new(1, "kills");
    let mut all = Kills::default();
    let (whole, killed) = (base.join("whole"), base.join("killed"));
    let status = sweep(program, &whole)?.wait()?;
    if !status.success() {
        return Err(io::Error::other(format!("a sweep that nobody killed ended so: {status}")));
    }
    while all.kills < count {
        let mut child = sweep(program, &killed)?;
        let wait = Duration::from_nanos(dice.below(takes.as_nanos() as u64));
        std::thread::sleep(wait);
        let signal =
            [Signal::KILL, Signal::KILL, Signal::TERM, Signal::INT][dice.below(4) as usize];
        let ended = match child.try_wait()? {
            Some(status) => Some(status),
            None => {
                let id = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
                // It may have ended since.
                let _ = id.map(|id| kill_process(id, signal));
                let status = child.wait()?;
                all.kills += u64::from(!status.success());
                status.success().then_some(status)
            }
        };
        let Some(status) = ended else { continue };
        if !status.success() {
            all.wrong.push(format!("after {} kills it ends so: {status}", all.kills));
        }
        for name in differences(&whole, &killed)? {
            all.wrong.push(format!("after {} kills {name} differs", all.kills));
        }
        all.sweeps += 1;
        fs::remove_dir_all(&killed)?;
    }
    Ok(all)
}
