//! Work in a separate process, which can enter a network namespace.
//!
//! It is this program with a hidden command. It reads its order as one line of JSON from stdin, and writes
//! lines of JSON to stdout. It stops when stdin is closed, so it ends with its parent, even after a crash.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::failure::Failure;

/// Interval between checks of `stop`.
const LOOK: Duration = Duration::from_millis(50);

/// Whether to read on after a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Remaining {
    /// Read the next line.
    More,
    /// The answer is complete; the process may end.
    Nothing,
}

/// Dropping it closes the child's stdin and waits for its end.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        // The child ends when its stdin is closed.
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

/// Fails where there are no testbeds; `instead` names an alternative.
pub fn needs_linux(instead: &str) -> Result<(), Failure> {
    if cfg!(live) {
        return Ok(());
    }
    Err(Failure::input(
        "the testbed is made of Linux's network namespaces",
        format!("run it on Linux, or in a virtual machine{instead}"),
    ))
}

/// Reads the order of this hidden process from stdin. `command` is the public command that starts it.
pub fn order<T: DeserializeOwned>(command: &str) -> Result<T, Failure> {
    let mut line = String::new();
    let read = std::io::stdin().lock().read_line(&mut line);
    read.map_err(|error| error.to_string())
        .and_then(|_| serde_json::from_str(&line).map_err(|error| error.to_string()))
        .map_err(|error| Failure::input(error, format!("this command is for `{command}`")))
}

/// Starts the hidden command `arguments`, sends it `order`, and passes each line of its output to `on_line`.
/// Ends early without an error when `stop` is set.
pub fn converse<Line: DeserializeOwned>(
    arguments: &[&str],
    order: &impl Serialize,
    stop: &dyn Fn() -> bool,
    mut on_line: impl FnMut(Line) -> Result<Remaining, Failure>,
) -> Result<(), Failure> {
    let broken = |problem: &str, error: &dyn std::fmt::Display| {
        Failure::input(
            format!("the testbed: {problem}: {error}"),
            "`lasthop doctor` looks for the cause",
        )
    };
    let program = std::env::current_exe().unwrap_or_else(|_| PathBuf::from("lasthop"));
    let mut command = Command::new(program);
    // Ctrl-C reaches this process only, which stops the child.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let mut child = command
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map(Ended)
        .map_err(|error| broken("cannot start a process", &error))?;
    let mut text = serde_json::to_vec(order).map_err(|error| broken("order", &error))?;
    text.push(b'\n');
    if let Some(stdin) = &mut child.0.stdin {
        stdin.write_all(&text).map_err(|error| broken("cannot send it the order", &error))?;
    }
    let Some(stdout) = child.0.stdout.take() else { return Ok(()) };
    let (sender, lines) = channel();
    let reader = std::thread::spawn(move || {
        for line in BufReader::new(stdout).lines() {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    let mut all = false;
    let result = loop {
        match lines.recv_timeout(LOOK) {
            Ok(Ok(line)) => match serde_json::from_str(&line) {
                Ok(line) => match on_line(line) {
                    Ok(remaining) => {
                        all |= remaining == Remaining::Nothing;
                        // Lines may follow each other without a pause.
                        if !all && stop() {
                            break Ok(());
                        }
                    }
                    Err(failure) => break Err(failure),
                },
                Err(error) => break Err(broken("cannot parse its answer", &error)),
            },
            Ok(Err(error)) => break Err(broken("cannot read its answer", &error)),
            Err(RecvTimeoutError::Timeout) if stop() => break Ok(()),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) if all => break Ok(()),
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
