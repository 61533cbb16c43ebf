//! The last reproduction of all claims: verdicts by claim, with version and seeds. `make papers` writes it.

use core::fmt;
use std::collections::BTreeMap;

use lasthop_report::model::Verdict;

/// Verdicts of a reproduction.
#[derive(Clone, Debug, Default)]
pub struct Record {
    /// Version of lasthop.
    pub lasthop: &'static str,
    /// The seeds of all claims without seeds of their own.
    pub seeds: Seeds,
    claims: BTreeMap<&'static str, Recorded>,
}

/// Seeds of each case.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Seeds {
    pub first: u64,
    pub count: u32,
}

impl Seeds {
    fn of(first: &str, count: &str) -> Option<Seeds> {
        Some(Seeds { first: first.parse().ok()?, count: count.parse().ok()? })
    }
}

/// Such as `seeds 1 to 20`.
impl fmt::Display for Seeds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "seeds {} to {}", self.first, self.first + u64::from(self.count) - 1)
    }
}

/// The result of a claim.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Recorded {
    pub verdict: Verdict,
    /// Conditions that hold, fail and depend on the seeds.
    pub conditions: [u32; 3],
    /// Its own seeds, if blocks of as many seeds as usual differ in the verdict.
    pub seeds: Option<Seeds>,
}

impl Record {
    pub fn claim(&self, id: &str) -> Option<Recorded> {
        self.claims.get(id).copied()
    }

    /// The seeds of those of `claims` that have seeds of their own.
    pub fn own_seeds(&self, claims: &[&str]) -> Option<Seeds> {
        claims.iter().find_map(|id| self.claim(id)?.seeds)
    }
}

/// The last reproduction.
///
/// # Panics
///
/// If its file has a malformed line.
pub fn record() -> Record {
    match read(include_str!("record.txt")) {
        Ok(record) => record,
        Err(line) => panic!("record.txt: {line}"),
    }
}

/// A line `lasthop VERSION`, a line `seeds FIRST COUNT`, and a line for each claim: id, verdict, the numbers of its
/// conditions that hold, fail and are undecided, and FIRST COUNT if it has seeds of its own. The error is the malformed
/// line.
fn read(text: &'static str) -> Result<Record, &'static str> {
    let mut record = Record::default();
    text.lines().try_for_each(|line| record.take(line).ok_or(line))?;
    Ok(record)
}

impl Record {
    fn take(&mut self, line: &'static str) -> Option<()> {
        let words: Vec<&'static str> = line.split_whitespace().collect();
        match words[..] {
            ["lasthop", version] => self.lasthop = version,
            ["seeds", first, count] => self.seeds = Seeds::of(first, count)?,
            [id, verdict, holds, fails, undecided, ref own @ ..] => {
                let all = [Verdict::Holds, Verdict::Fails, Verdict::Undecided, Verdict::NotRun];
                let verdict = all.into_iter().find(|v| v.word() == verdict)?;
                let [holds, fails, undecided] = [holds, fails, undecided].map(str::parse);
                let conditions = [holds.ok()?, fails.ok()?, undecided.ok()?];
                let seeds = match own {
                    [] => None,
                    [first, count] => Some(Seeds::of(first, count)?),
                    _ => return None,
                };
                self.claims.insert(id, Recorded { verdict, conditions, seeds });
            }
            _ => return None,
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_has_version_seeds_and_verdicts() {
        let record =
            read("lasthop 9.1.0\nseeds 21 20\nW-F9 holds 2 0 0\nW-T3 fails 10 2 1 41 120\n")
                .unwrap();
        let seeds = record.seeds.to_string();
        assert_eq!((record.lasthop, seeds.as_str()), ("9.1.0", "seeds 21 to 40"));
        let seeds = Some(Seeds { first: 41, count: 120 });
        let failed = Recorded { verdict: Verdict::Fails, conditions: [10, 2, 1], seeds };
        assert_eq!(record.claim("W-T3"), Some(failed));
        assert_eq!(record.claim("W-T4"), None);
        for line in ["seeds 1", "W-F9 holds 2 0", "W-F9 holds 2 0 0 21", "W-F9 wins 2 0 0"] {
            assert_eq!(read(line).unwrap_err(), line);
        }
    }

    #[test]
    fn every_claim_was_reproduced() {
        let record = record();
        for claim in crate::claims() {
            let of = record.claim(claim.id);
            assert!(
                of.is_some_and(|of| of.verdict != Verdict::NotRun),
                "{}: make papers",
                claim.id
            );
        }
        assert_eq!(record.claims.len(), crate::claims().count(), "make papers");
    }
}
