//! Runs on real packets that are killed at any time: no process, interface or incomplete result may remain.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use lasthop_proto::rng::Stream;
use rustix::process::Signal;

use crate::disk::{grows, is_temporary};
use crate::kills::{Kills, tree};
use crate::stations::{PATIENCE, run, signal};

/// A run on real packets: two hosts and a link between them.
const SCENARIO: &str = "name = \"real\"\ntransfer = { from = \"fixed\", to = \"mobile\", bytes = \"1MB\" }\n\
    [host.fixed]\n[host.mobile]\n[[path]]\nlink = { rate = \"10mbit\", delay = \"5ms\" }\n";

fn start(program: &Path, out: &Path) -> io::Result<Child> {
    let mut command = Command::new(program);
    let file = out.with_extension("toml");
    fs::write(&file, SCENARIO)?;
    command.arg("run").arg(file).args(["--world", "testbed", "--seeds", "1", "-o"]).arg(out);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()
}

/// Processes of `program`, and interfaces.
fn left(program: &Path) -> io::Result<BTreeSet<String>> {
    let mut left = BTreeSet::new();
    for line in run("ip -o link")?.lines() {
        left.insert(format!("interface {}", line.split(": ").nth(1).unwrap_or_default()));
    }
    let own = std::process::id();
    for entry in fs::read_dir("/proc")?.flatten() {
        let is_ours = fs::read_link(entry.path().join("exe")).is_ok_and(|file| file == program);
        let name = entry.file_name();
        if is_ours && name.to_str() != Some(&own.to_string()) {
            left.insert(format!("process {}", name.display()));
        }
    }
    Ok(left)
}

/// Kills `count` testbeds of `program`, with results below `base`. Must run in separate namespaces, a PID namespace
/// among them. An undisturbed run takes `takes`.
///
/// # Errors
///
/// The program cannot run on real packets here, or files could not be read.
#[expect(clippy::disallowed_methods, reason = "real processes are killed at any time")]
pub fn kills(program: &Path, base: &Path, count: u64, takes: Duration) -> io::Result<Kills> {
    let mut dice = Stream::new(1, "testbeds");
    let mut all = Kills::default();
    let before = left(program)?;
    let out = base.join("testbed");
    let _ = fs::remove_dir_all(&out);
    let status = start(program, &out)?.wait()?;
    if !status.success() {
        return Err(io::Error::other(format!("a testbed that was not killed ended with {status}")));
    }
    let names: BTreeSet<String> = tree(&out)?.into_keys().collect();
    while all.kills < count {
        let n = all.kills;
        fs::remove_dir_all(&out)?;
        let mut child = start(program, &out)?;
        std::thread::sleep(Duration::from_nanos(dice.below(takes.as_nanos() as u64)));
        let kind = [Signal::KILL, Signal::KILL, Signal::TERM, Signal::INT][dice.below(4) as usize];
        let ended = child.try_wait()?;
        signal(&child, kind);
        let status = child.wait()?;
        match ended {
            Some(status) if status.success() => all.ended += 1,
            Some(status) => all.wrong.push(format!("kill {n}: it had ended with {status}")),
            None => all.kills += 1,
        }
        // The kernel removes namespaces some time after their last process.
        let begun = Instant::now();
        let mut more: Vec<String> = left(program)?.difference(&before).cloned().collect();
        while !more.is_empty() && begun.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(20));
            more = left(program)?.difference(&before).cloned().collect();
        }
        for leftover in more {
            all.wrong.push(format!("kill {n} ({status}) left behind: {leftover}"));
        }
        fs::create_dir_all(&out)?;
        for (name, bytes) in tree(&out)? {
            if !is_temporary(&name) && !grows(&name) && (!names.contains(&name) || bytes.is_empty())
            {
                all.wrong
                    .push(format!("kill {n} ({status}) left {name}, with {} bytes", bytes.len()));
            }
        }
        if out.join("results.json").exists() {
            let mut command = Command::new(program);
            command.arg("report").arg(&out).arg("-o").arg(base.join("testbed.html"));
            let status = command
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status()?;
            if !status.success() {
                all.wrong.push(format!("kill {n} left results that cannot be read: {status}"));
            }
        }
    }
    let status = start(program, &out)?.wait()?;
    if !status.success() {
        all.wrong.push(format!("the last one ended with {status}"));
    }
    Ok(all)
}
