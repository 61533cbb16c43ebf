//! Runs mutants: each with the tests that reach it, until one fails.

use std::fmt;
use std::sync::Mutex;
use std::time::Duration;
use std::{io, thread};

use crate::places::Mutant;
use crate::tests::Test;

/// The result of a mutant.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The test that failed, or did not end.
    Caught(String),
    /// The digest test that failed; no test quicker than [`LONG`] failed before.
    Digest(String),
    /// All tests that reach it passed.
    Missed,
    /// No test reaches it.
    Unreached,
    /// It does not compile.
    NoProgram,
    /// It is in a constant, where no branch is possible.
    Unplaced,
}

impl Outcome {
    /// Parses the outcome of the mutant `name` from a line of a list.
    pub fn of_line(line: &str, name: &str) -> Option<Outcome> {
        let mut fields = line.split('\t');
        let (_, text, _) = (fields.next()?, fields.next()?, fields.next()?);
        let all = [Outcome::Missed, Outcome::Unreached, Outcome::NoProgram, Outcome::Unplaced];
        if fields.next()? != name {
            return None;
        }
        let caught = text.strip_prefix("caught by ").map(|by| Outcome::Caught(by.to_owned()));
        let digest = text.strip_prefix("by a digest alone: ");
        let caught = caught.or_else(|| digest.map(|by| Outcome::Digest(by.to_owned())));
        caught.or_else(|| all.into_iter().find(|outcome| outcome.to_string() == text))
    }

    pub fn is_missed(&self) -> bool {
        matches!(self, Outcome::Missed | Outcome::Unreached)
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::Caught(by) => write!(f, "caught by {by}"),
            Outcome::Digest(by) => write!(f, "by a digest alone: {by}"),
            Outcome::Missed => f.write_str("MISSED"),
            Outcome::Unreached => f.write_str("MISSED, no test comes by"),
            Outcome::NoProgram => f.write_str("no program"),
            Outcome::Unplaced => f.write_str("in a constant"),
        }
    }
}

/// Maximum duration of a test of another package than the mutant's.
const CHEAP: Duration = Duration::from_secs(2);
/// The same for digest tests.
const CHEAP_DIGEST: Duration = Duration::from_secs(8);

/// Tests that compare a digest of everything, by program and prefix of their name. They detect a change without its
/// cause, so they run last.
const DIGESTS: [(&str, &str); 5] = [
    ("sim/determinism", ""),
    ("campaign/short", "net::"),
    ("live/frames", "what_becomes_of_bytes"),
    ("proto/lasthop_proto", "tunnel::net::"),
    ("proto/agents", "handoff_net::"),
];

/// Longer tests run after the digests.
const LONG: Duration = Duration::from_secs(2);

/// Runs a mutant with the tests that reach it: those of its package, then quick ones of others, digests, and long
/// ones; the quickest first.
///
/// # Errors
///
/// A program does not start.
pub fn try_one(mutant: &Mutant, tests: &[Test]) -> io::Result<Outcome> {
    let is_digest = |test: &Test| {
        let is = |(program, name): &(&str, &str)| {
            test.program.name == *program && test.name.starts_with(name)
        };
        DIGESTS.iter().any(is)
    };
    let is_own = |test: &Test| test.program.package == mutant.package;
    let mut order: Vec<&Test> =
        tests.iter().filter(|t| t.reached.contains(&mutant.number)).collect();
    if order.is_empty() {
        return Ok(Outcome::Unreached);
    }
    let cheap = |test: &Test| if is_digest(test) { CHEAP_DIGEST } else { CHEAP };
    order.retain(|test| is_own(test) || test.took <= cheap(test));
    order.sort_by_key(|test| (test.took > LONG, is_digest(test), !is_own(test), test.took));
    for test in order {
        if test.fails(mutant.number)? {
            let name = test.full_name();
            return Ok(if is_digest(test) { Outcome::Digest(name) } else { Outcome::Caught(name) });
        }
    }
    Ok(Outcome::Missed)
}

/// Calls `work` for each of `items`, in parallel on all processors; the first error ends it.
pub fn at_once<T: Send>(
    items: impl IntoIterator<Item = T, IntoIter: Send>,
    work: impl Fn(T) -> io::Result<()> + Sync,
) -> io::Result<()> {
    let left = Mutex::new(items.into_iter());
    let next = || left.lock().ok()?.next();
    let worker = || {
        while let Some(item) = next() {
            work(item)?;
        }
        Ok(())
    };
    thread::scope(|scope| {
        let workers = thread::available_parallelism().map_or(1, usize::from);
        let running: Vec<_> = (0..workers).map(|_| scope.spawn(worker)).collect();
        let mut ended = running.into_iter().map(|thread| thread.join());
        ended.try_for_each(|end| end.unwrap_or_else(|_| Err(io::Error::other("a thread panicked"))))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Outcomes survive writing and parsing.
    #[test]
    fn outcomes_are_read_again() {
        let all = [
            Outcome::Caught("proto/tcp: f".to_owned()),
            Outcome::Digest("sim/determinism: g".to_owned()),
            Outcome::Missed,
            Outcome::Unreached,
            Outcome::NoProgram,
            Outcome::Unplaced,
        ];
        for outcome in all {
            let line = format!("7\t{outcome}\tFnValue\ta.rs:1:2: replace f");
            assert_eq!(Outcome::of_line(&line, "a.rs:1:2: replace f"), Some(outcome));
            assert_eq!(Outcome::of_line(&line, "a.rs:1:2: replace g"), None);
        }
    }

    #[test]
    fn each_item_is_worked_on_once_and_an_error_is_returned() {
        let done = Mutex::new(Vec::new());
        let work = |i: u32| {
            done.lock().unwrap().push(i);
            if i == 50 { Err(io::Error::other("fifty")) } else { Ok(()) }
        };
        assert!(at_once(0..50, work).is_ok());
        let mut seen = std::mem::take(&mut *done.lock().unwrap());
        seen.sort_unstable();
        assert_eq!(seen, (0..50).collect::<Vec<_>>());
        assert_eq!(at_once(0..=50, work).unwrap_err().to_string(), "fifty");
    }
}
