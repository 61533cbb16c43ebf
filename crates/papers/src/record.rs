//! The last reproduction of all claims: verdicts by claim, with version and seeds. `make papers` writes it.

use std::collections::BTreeMap;

use lasthop_report::model::Verdict;

/// Verdicts of a reproduction.
#[derive(Clone, Debug, Default)]
pub struct Record {
    /// Version of lasthop.
    pub lasthop: &'static str,
    /// Seeds per case, and the first of them.
    pub seeds: u32,
    pub first_seed: u64,
    claims: BTreeMap<&'static str, Recorded>,
}

/// The result of a claim.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Recorded {
    pub verdict: Verdict,
    /// Conditions that hold, fail and depend on the seeds.
    pub conditions: [u32; 3],
}

impl Record {
    pub fn claim(&self, id: &str) -> Option<Recorded> {
        self.claims.get(id).copied()
    }

    /// The seeds, such as `seeds 1 to 20`.
    pub fn seeds(&self) -> String {
        format!("seeds {} to {}", self.first_seed, self.first_seed + u64::from(self.seeds) - 1)
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

/// A line `lasthop VERSION`, a line `seeds FIRST COUNT`, and a line for each claim: id, verdict, and the numbers of its
/// conditions that hold, fail and are undecided. The error is the malformed line.
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
            ["seeds", first, count] => {
                self.first_seed = first.parse().ok()?;
                self.seeds = count.parse().ok()?;
            }
            [id, verdict, holds, fails, undecided] => {
                let all = [Verdict::Holds, Verdict::Fails, Verdict::Undecided, Verdict::NotRun];
                let verdict = all.into_iter().find(|v| v.word() == verdict)?;
                let [holds, fails, undecided] = [holds, fails, undecided].map(str::parse);
                let conditions = [holds.ok()?, fails.ok()?, undecided.ok()?];
                self.claims.insert(id, Recorded { verdict, conditions });
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
            read("lasthop 9.1.0\nseeds 21 20\nW-F9 holds 2 0 0\nW-T3 fails 10 2 1\n").unwrap();
        assert_eq!((record.lasthop, record.seeds().as_str()), ("9.1.0", "seeds 21 to 40"));
        let failed = Recorded { verdict: Verdict::Fails, conditions: [10, 2, 1] };
        assert_eq!(record.claim("W-T3"), Some(failed));
        assert_eq!(record.claim("W-T4"), None);
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
