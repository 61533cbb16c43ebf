//! Tries mutants: each with the tests that come by it, one after the other, until one fails.

use std::fmt;
use std::sync::Mutex;
use std::time::Duration;
use std::{io, thread};

use crate::places::Mutant;
use crate::tests::Test;

/// What became of a mutant.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// This test failed, or did not end.
    Caught(String),
    /// This one failed, which compares with a digest, and none before that takes less than [`LONG`].
    Digest(String),
    /// All tests that come by passed.
    Missed,
    /// No test comes by.
    Unreached,
    /// The compiler refuses it.
    NoProgram,
    /// It stands where no branch can: in a constant.
    Unplaced,
}

impl Outcome {
    /// The outcome that `line` of a list tells of the mutant `name`.
    pub fn of_line(line: &str, name: &str) -> Option<Outcome> {
        let mut fields = line.split('\t');
        let (_, told, _) = (fields.next()?, fields.next()?, fields.next()?);
        let all = [Outcome::Missed, Outcome::Unreached, Outcome::NoProgram, Outcome::Unplaced];
        if fields.next()? != name {
            return None;
        }
        let caught = told.strip_prefix("caught by ").map(|by| Outcome::Caught(by.to_owned()));
        let digest = told.strip_prefix("by a digest alone: ");
        let caught = caught.or_else(|| digest.map(|by| Outcome::Digest(by.to_owned())));
        caught.or_else(|| all.into_iter().find(|outcome| outcome.to_string() == told))
    }

    /// Whether no test failed.
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

/// How long a test of another package than the mutant's may take to be asked.
const CHEAP: Duration = Duration::from_secs(2);
/// The same of tests that compare with a digest.
const CHEAP_DIGEST: Duration = Duration::from_secs(8);

/// Tests that compare with a digest of all that happens, by program and the beginning of their name: one that differs says
/// that something did, and at best in which system. They are asked last.
const DIGESTS: [(&str, &str); 5] = [
    ("sim/determinism", ""),
    ("campaign/short", "net::"),
    ("live/frames", "what_becomes_of_bytes"),
    ("proto/lasthop_proto", "tunnel::net::"),
    ("proto/agents", "handoff_net::"),
];

/// What takes longer is asked after the digests.
const LONG: Duration = Duration::from_secs(2);

/// Tries a mutant with the tests that come by: first those of its own package, then those of others that are quick,
/// then digests, then what takes long; the quickest first.
///
/// # Errors
/// When a program cannot be started.
pub fn try_one(mutant: &Mutant, tests: &[Test]) -> io::Result<Outcome> {
    let is_digest = |test: &Test| {
        let is = |(program, name): &(&str, &str)| {
            test.program.name == *program && test.name.starts_with(name)
        };
        DIGESTS.iter().any(is)
    };
    let is_own = |test: &Test| test.program.package == mutant.package;
    let mut order: Vec<&Test> = tests.iter().filter(|t| t.seen.contains(&mutant.number)).collect();
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

/// Does `work` for each of `items`, as many at once as there are processors; the first error ends it.
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

    /// What was found before is read again as it was written.
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
    fn each_item_is_worked_on_once_and_an_error_is_told() {
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
