//! The last reproduction of all claims: verdicts by claim, with version and seeds. `make papers` writes it.

use core::fmt;
use std::collections::BTreeMap;

use lasthop_report::model::Verdict;
use serde::Deserialize;

/// Verdicts of a reproduction.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// Version of lasthop.
    pub lasthop: String,
    /// The seeds of all claims without seeds of their own.
    pub seeds: Seeds,
    claims: BTreeMap<String, Recorded>,
}

/// Seeds of each case.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Seeds {
    pub first: u64,
    pub count: u32,
}

/// Such as `seeds 1 to 20`.
impl fmt::Display for Seeds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "seeds {} to {}", self.first, self.first + u64::from(self.count) - 1)
    }
}

/// The result of a claim.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
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
/// If its file is malformed: it is part of this crate.
pub fn record() -> Record {
    match toml::from_str(include_str!("record.toml")) {
        Ok(record) => record,
        Err(error) => panic!("crates/papers/src/record.toml: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_has_version_seeds_and_verdicts() {
        let record: Record = toml::from_str(
            "lasthop = '9.1.0'\nseeds = { first = 21, count = 20 }\n[claims]\n\
             W-F9 = { verdict = 'holds', conditions = [2, 0, 0] }\n\
             W-T3 = { verdict = 'fails', conditions = [10, 2, 1], seeds = { first = 41, count = 120 } }\n",
        )
        .unwrap();
        assert_eq!(record.seeds.to_string(), "seeds 21 to 40");
        let seeds = Some(Seeds { first: 41, count: 120 });
        let failed = Recorded { verdict: Verdict::Fails, conditions: [10, 2, 1], seeds };
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
