//! Runs in the testbed: a process for each cell, one after the other, since each has the machine to itself.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use lasthop_lab::RunResult;

use crate::cmd::testbed_run::{Line, Order};
use crate::failure::Failure;
use crate::stop::Stop;

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

/// Carries out `order`; each finished run is handed to `done`. Stops early when asked to, without an error.
pub fn carry_out(
    order: &Order,
    stop: &Stop,
    mut done: impl FnMut(RunResult) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let broken = |what: &str, error: &dyn std::fmt::Display| {
        Failure::input(
            format!("the testbed: {what}: {error}"),
            "`lasthop doctor` looks for the cause",
        )
    };
    let program = std::env::current_exe().unwrap_or_else(|_| PathBuf::from("lasthop"));
    let mut child = Command::new(program)
        .arg("testbed-run")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        // Ctrl-C is for us; we tell it.
        .process_group(0)
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
