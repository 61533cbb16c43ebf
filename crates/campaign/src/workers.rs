//! Cases in separate processes: a crash, a hang or excessive memory costs one case only.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// Lines of a worker's output: `case N begins`, then `case N` and one of `ended`, `none`, `wrong: ...`.
pub mod progress {
    pub const BEGINS: &str = "begins";
    /// No valid scenario was found.
    pub const NONE: &str = "none";
    /// The run ended or reached its limit without a fault; the number of events follows.
    pub const ENDED: &str = "ended";
    /// A fault; its text follows.
    pub const WRONG: &str = "wrong:";
}

/// Results of many cases.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Runs without a fault.
    pub ended: u64,
    /// Cases without a valid scenario.
    pub none: u64,
    /// Events of the runs that ended.
    pub events: u64,
    /// Faults by case.
    pub wrong: Vec<(u64, String)>,
}

impl Tally {
    pub fn add(&mut self, other: Tally) {
        self.ended += other.ended;
        self.none += other.none;
        self.events += other.events;
        self.wrong.extend(other.wrong);
    }
}

/// A worker process and its output.
struct Worker {
    child: Child,
    lines: Receiver<String>,
}

impl Worker {
    fn start(command: &mut Command) -> std::io::Result<Worker> {
        let mut child =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let out = child.stdout.take().ok_or_else(|| std::io::Error::other("no pipe"))?;
        let (say, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(out).lines().map_while(Result::ok) {
                if say.send(line).is_err() {
                    break;
                }
            }
        });
        Ok(Worker { child, lines })
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // It has ended already unless something failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Factor by which a case may exceed its patience in wall-clock time, when its process gets little processor time.
const WAITING: u32 = 20;

/// Processor time of a process, in hundredths of a second.
fn ticks(id: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    // The name may contain spaces.
    let behind = stat.rsplit(')').next().unwrap_or_default();
    behind.split_whitespace().skip(11).take(2).filter_map(|n| n.parse::<u64>().ok()).sum()
}

/// Runs the cases `first`, `first + step`, ... in one worker after another, as long as `goes_on` accepts the next one.
/// `start` makes the command that runs cases from a given one. A case that takes more than `patience` of processor
/// time, or many times that by the clock, is a fault.
///
/// # Errors
///
/// No worker could be started.
pub fn drive(
    first: u64,
    step: u64,
    patience: Duration,
    start: &dyn Fn(u64) -> Command,
    goes_on: &dyn Fn(u64) -> bool,
) -> std::io::Result<Tally> {
    let mut tally = Tally::default();
    let mut next = first;
    while goes_on(next) {
        let mut worker = Worker::start(&mut start(next))?;
        let (mut before, mut waited) = (0, 0);
        while goes_on(next) {
            let line = match worker.lines.recv_timeout(patience) {
                Ok(line) => line,
                Err(RecvTimeoutError::Timeout)
                    if waited < WAITING
                        && u128::from(ticks(worker.child.id()).saturating_sub(before)) * 10
                            < patience.as_millis() =>
                {
                    waited += 1;
                    continue;
                }
                Err(RecvTimeoutError::Timeout) => {
                    tally.wrong.push((next, format!("no end within {patience:?}")));
                    next += step;
                    break;
                }
                Err(RecvTimeoutError::Disconnected) => {
                    let how = worker.child.wait()?;
                    tally.wrong.push((next, format!("its process ended: {how}")));
                    next += step;
                    break;
                }
            };
            let Some((_, report)) =
                line.strip_prefix("case ").and_then(|rest| rest.split_once(' '))
            else {
                continue;
            };
            if report == progress::BEGINS {
                continue;
            }
            if report == progress::NONE {
                tally.none += 1;
            } else if let Some(events) = report.strip_prefix(progress::ENDED) {
                tally.ended += 1;
                tally.events += events.trim().parse::<u64>().unwrap_or(0);
            } else if let Some(message) = report.strip_prefix(progress::WRONG) {
                tally.wrong.push((next, message.trim().to_owned()));
            }
            next += step;
            (before, waited) = (ticks(worker.child.id()), 0);
        }
    }
    Ok(tally)
}
