//! Many cases, in processes of their own: one that crashes, hangs or takes too much memory costs its case and no more.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// What a worker says of a case, a line each: `case N begins`, then `case N` and one of `ended`, `none`, `wrong: ...`.
pub mod says {
    /// Before it begins.
    pub const BEGINS: &str = "begins";
    /// No valid scenario was found.
    pub const NONE: &str = "none";
    /// The run ended, or was cut off, and nothing is wrong; events follow.
    pub const ENDED: &str = "ended";
    /// Something is wrong; what follows.
    pub const WRONG: &str = "wrong:";
}

/// What many cases came to.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Runs that nothing was wrong with.
    pub ended: u64,
    /// Cases without a valid scenario.
    pub none: u64,
    /// Events of the runs that ended.
    pub events: u64,
    /// What was wrong, by case.
    pub wrong: Vec<(u64, String)>,
}

impl Tally {
    /// Takes in another.
    pub fn add(&mut self, other: Tally) {
        self.ended += other.ended;
        self.none += other.none;
        self.events += other.events;
        self.wrong.extend(other.wrong);
    }
}

/// One worker and what it says.
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
        // It has ended if all went well.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// How often the patience a case may last by the clock where its process hardly gets a processor.
const WAITING: u32 = 20;

/// The time of processors that a process has had, in hundredths of a second.
fn ticks(id: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    // The name may have spaces.
    let behind = stat.rsplit(')').next().unwrap_or_default();
    behind.split_whitespace().skip(11).take(2).filter_map(|n| n.parse::<u64>().ok()).sum()
}

/// Has one worker after another do the cases `first`, `first + step`, ... while `goes_on` says so of the next one.
/// `start` makes the command that does them from a case on. A case that takes more than `patience` of a processor, or
/// many times that by the clock, is wrong.
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
            let Some((_, said)) = line.strip_prefix("case ").and_then(|rest| rest.split_once(' '))
            else {
                continue;
            };
            if said == says::BEGINS {
                continue;
            }
            if said == says::NONE {
                tally.none += 1;
            } else if let Some(events) = said.strip_prefix(says::ENDED) {
                tally.ended += 1;
                tally.events += events.trim().parse::<u64>().unwrap_or(0);
            } else if let Some(what) = said.strip_prefix(says::WRONG) {
                tally.wrong.push((next, what.trim().to_owned()));
            }
            next += step;
            (before, waited) = (ticks(worker.child.id()), 0);
        }
    }
    Ok(tally)
}
