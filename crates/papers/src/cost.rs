//! What each claim costs to evaluate beside the others, so that an estimate of the time left is worth something.
//!
//! Tenths of a second with 20 seeds on a machine with two cores, as `lasthop reproduce --timings` prints them; only
//! the ratios matter. Claims share runs: each is charged with those that it is the first to need.

use crate::Claim;

const COSTS: &[(&str, u64)] = &[];

/// What `claim` costs; a claim that is not in the table counts as a cheap one.
pub fn cost(claim: &Claim) -> u64 {
    COSTS.iter().find(|(id, _)| *id == claim.id).map_or(1, |(_, cost)| *cost)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{claims, has_experiment};

    #[test]
    fn every_experiment_has_its_cost() {
        for claim in claims().filter(|claim| has_experiment(claim)) {
            assert!(COSTS.iter().any(|(id, _)| *id == claim.id), "{} has no cost", claim.id);
        }
    }
}
