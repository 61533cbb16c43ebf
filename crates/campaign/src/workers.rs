//! Cases in separate processes: a crash, a hang or excessive memory costs one case only.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

/// Lines of a worker's output: `case N` and one of `ended`, `none`, `wrong: ...`.
pub mod progress {
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

/// Runs the cases `first`, `first + step`, ... in one worker after another, as long as `goes_on` accepts the next one.
/// `start` makes the command that runs cases from a given one. A worker that ends has a fault in its case: it limits its own
/// memory and processor time.
///
/// # Errors
///
/// No worker could be started.
pub fn drive(
    first: u64,
    step: u64,
    start: &dyn Fn(u64) -> Command,
    goes_on: &dyn Fn(u64) -> bool,
) -> std::io::Result<Tally> {
    let mut tally = Tally::default();
    let mut next = first;
    while goes_on(next) {
        let mut command = start(next);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut worker = command.spawn()?;
        let out = worker.stdout.take().ok_or_else(|| std::io::Error::other("no pipe"))?;
        for line in BufReader::new(out).lines().map_while(Result::ok) {
            let Some((_, report)) =
                line.strip_prefix("case ").and_then(|rest| rest.split_once(' '))
            else {
                continue;
            };
            if report == progress::NONE {
                tally.none += 1;
            } else if let Some(events) = report.strip_prefix(progress::ENDED) {
                tally.ended += 1;
                tally.events += events.trim().parse::<u64>().unwrap_or(0);
            } else if let Some(message) = report.strip_prefix(progress::WRONG) {
                tally.wrong.push((next, message.trim().to_owned()));
            }
            next += step;
            if !goes_on(next) {
                break;
            }
        }
        // It has ended already unless there are enough cases.
        let _ = worker.kill();
        let how = worker.wait()?;
        if goes_on(next) {
            tally.wrong.push((next, format!("its process ended: {how}")));
            next += step;
        }
    }
    Ok(tally)
}
