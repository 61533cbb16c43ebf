//! Runs in the testbed: a process for each cell, one after the other, since each has the machine to itself.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use lasthop_lab::RunResult;
use lasthop_scenario::{Argument, Scenario};
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::stop::Stop;

/// What to run. The scenario is parsed again here; the same text and arguments give the same plan.
#[derive(Clone, Default, Serialize, Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct Order {
    /// Name of the scenario, where its text gives none.
    pub name: String,
    /// The scenario's text.
    pub text: String,
    /// `--set` arguments in order.
    pub set: Vec<String>,
    /// `--vary` arguments in order.
    pub vary: Vec<String>,
    /// Which cell of the plan.
    pub cell: usize,
    /// Seeds of the runs.
    pub seeds: Vec<u64>,
    /// Where the trace of the first run goes.
    pub trace: Option<Trace>,
}

impl Order {
    /// The arguments of the command line.
    pub fn arguments(&self) -> Vec<Argument> {
        let set = self.set.iter().cloned().map(Argument::Set);
        set.chain(self.vary.iter().cloned().map(Argument::Vary)).collect()
    }

    /// The scenario of the cell, if text and arguments have such a one.
    pub fn scenario(&self) -> Option<Scenario> {
        let (mut plan, _) =
            lasthop_scenario::parse(&self.text, &self.name, &self.arguments()).ok()?;
        (self.cell < plan.cells.len()).then(|| plan.cells.swap_remove(self.cell).scenario)
    }
}

/// Where a trace goes.
#[derive(Clone, Serialize, Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct Trace {
    /// A folder that does not exist yet.
    pub folder: PathBuf,
    /// Title of its plots.
    pub title: String,
}

/// A line of the answer.
#[derive(Serialize, Deserialize, Debug)]
#[serde(rename_all = "lowercase")]
pub enum Line {
    /// A run goes on.
    Progress(Progress),
    /// A run is done.
    Run(Box<RunResult>),
    /// It cannot go on.
    Error {
        /// What is wrong.
        message: String,
        /// What to do about it.
        help: String,
    },
}

/// How far a run is: it takes as long as its transfers do, and somebody may be waiting.
#[derive(Clone, Copy, Serialize, Deserialize, Debug)]
pub struct Progress {
    /// Its seed.
    pub seed: u64,
    /// Bytes that have arrived, of all transfers.
    pub delivered: u64,
    /// Bytes that will; `None` where a transfer has no end.
    pub wanted: Option<u64>,
    /// Seconds since it began.
    pub seconds: f64,
}

/// Between two looks at whether somebody asked to stop.
const LOOK: Duration = Duration::from_millis(50);

/// The process is ended and waited for when it is no longer needed, however that comes about.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        // It ends when its stdin does.
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

/// Carries out `order`; `under_way` is told how far a run is, and each finished
/// run is handed to `done`. Stops early when asked to, without an error.
pub fn carry_out(
    order: &Order,
    stop: &Stop,
    mut under_way: impl FnMut(&Progress),
    mut done: impl FnMut(RunResult) -> Result<(), Failure>,
) -> Result<(), Failure> {
    if !cfg!(target_os = "linux") {
        return Err(Failure::input(
            "the testbed is made of Linux's network namespaces",
            "run it on Linux, or in a virtual machine; `--world sim` runs everywhere",
        ));
    }
    let broken = |what: &str, error: &dyn std::fmt::Display| {
        Failure::input(
            format!("the testbed: {what}: {error}"),
            "`lasthop doctor` looks for the cause",
        )
    };
    let program = std::env::current_exe().unwrap_or_else(|_| PathBuf::from("lasthop"));
    let mut command = Command::new(program);
    // Ctrl-C is for us; we tell it.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let mut child = command
        .arg("testbed-run")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map(Ended)
        .map_err(|error| broken("cannot start a process", &error))?;
    let mut text = serde_json::to_vec(order).map_err(|error| broken("order", &error))?;
    text.push(b'\n');
    if let Some(stdin) = &mut child.0.stdin {
        stdin.write_all(&text).map_err(|error| broken("cannot tell it what to do", &error))?;
    }
    let Some(stdout) = child.0.stdout.take() else { return Ok(()) };
    let (tell, lines) = channel();
    let reader = std::thread::spawn(move || {
        for line in BufReader::new(stdout).lines() {
            if tell.send(line).is_err() {
                return;
            }
        }
    });
    let mut finished = 0;
    let result = loop {
        match lines.recv_timeout(LOOK) {
            Ok(Ok(line)) => match serde_json::from_str(&line) {
                Ok(Line::Progress(progress)) => under_way(&progress),
                Ok(Line::Run(result)) => {
                    finished += 1;
                    if let Err(failure) = done(*result) {
                        break Err(failure);
                    }
                }
                Ok(Line::Error { message, help }) => break Err(Failure::input(message, help)),
                Err(error) => break Err(broken("its answer makes no sense", &error)),
            },
            Ok(Err(error)) => break Err(broken("cannot read its answer", &error)),
            Err(RecvTimeoutError::Timeout) if stop.requested() => break Ok(()),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) if finished == order.seeds.len() => break Ok(()),
            Err(RecvTimeoutError::Disconnected) => {
                let how =
                    child.0.wait().map_or_else(|e| e.to_string(), |status| status.to_string());
                break Err(broken("its process ended early", &how));
            }
        }
    };
    drop(child);
    let _ = reader.join();
    result
}
