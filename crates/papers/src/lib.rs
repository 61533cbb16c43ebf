//! The papers: their systems, their claims, and the experiments that test the claims.
//!
//! Each paper has a module. [`Paper::claims`] lists its claims with their experiments; their texts are in `claims.toml`. [`evaluate`] runs one. A claim is never loosened: its conditions are code in the
//! experiment, and a failed condition makes the verdict.

#![allow(missing_docs, reason = "only crates of this workspace use it")]

mod agarwal00;
mod assumptions;
mod bakshi96;
mod balakrishnan97;
mod bench;
mod claim;
mod explore;
mod figure;
mod finding;
mod measure;
mod modern;
mod open;
mod parsa98;
mod record;
mod related;
pub mod systems;
mod table;
mod testbed;
mod west97;

pub use bench::{Bench, Interrupted, Runs};
pub use claim::{Claim, ClaimText, Experiment, Paper};
pub use explore::{ConditionResult, Trial, aligned};
pub use finding::{Bound, Condition, Finding};
pub use lasthop_report::estimate::Estimate;
pub use open::{Open, Testbed, Values};
pub use record::{Record, Recorded, record};

pub(crate) use bench::scenario;
pub(crate) use lasthop_report::number::short;

use lasthop_report::model::ClaimResult;

/// The papers, in the order of reports.
pub static PAPERS: [Paper; 5] =
    [west97::PAPER, parsa98::PAPER, bakshi96::PAPER, balakrishnan97::PAPER, agarwal00::PAPER];

/// Works that the papers cite. Their claims are evaluated on request only.
pub static RELATED: Paper = related::PAPER;

/// Results published since. Their claims are evaluated on request only.
pub static MODERN: Paper = modern::PAPER;

/// Studies that the papers propose, without a sentence that a measurement could contradict. They are evaluated on
/// request only.
pub static EXPERIMENTS: Paper = Paper {
    key: "experiments",
    title: "Studies that the papers propose (answers, not claims)",
    claims: west97::EXPERIMENTS,
};

/// The papers, then the cited works, then later ones.
pub fn works() -> impl Iterator<Item = &'static Paper> {
    PAPERS.iter().chain(APART.iter().map(|(_, work)| *work))
}

/// Works apart from the papers: what their claims are called, and the work.
pub static APART: [(&str, &Paper); 3] =
    [("related work", &RELATED), ("modern results", &MODERN), ("proposed studies", &EXPERIMENTS)];

/// Every claim of the papers, in order.
pub fn claims() -> impl Iterator<Item = &'static Claim> {
    PAPERS.iter().flat_map(|paper| paper.claims)
}

/// Every claim of the papers, then those of the works apart.
pub fn all_claims() -> impl Iterator<Item = &'static Claim> {
    works().flat_map(|work| work.claims)
}

/// The claims named in `words`, by id or by the key of a paper, in the order of reports; all claims of the papers if
/// `words` is empty.
///
/// # Errors
///
/// An unknown word.
pub fn choose(words: &[String]) -> Result<Vec<&'static Claim>, &String> {
    let names = |word: &String, claim: &Claim| word == claim.paper || word == claim.id;
    if let Some(unknown) = words.iter().find(|word| !all_claims().any(|claim| names(word, claim))) {
        return Err(unknown);
    }
    Ok(match words.is_empty() {
        true => claims().collect(),
        false => all_claims().filter(|claim| words.iter().any(|word| names(word, claim))).collect(),
    })
}

/// A claim with its result.
#[derive(Debug)]
pub struct ClaimEvaluation {
    /// For tables and programs.
    pub result: ClaimResult,
    /// Tables and figures for the report.
    pub finding: Finding,
}

/// Runs the experiment of `claim`.
///
/// # Errors
///
/// [`Interrupted`] when the bench's observer requested a stop.
pub fn evaluate(claim: &Claim, bench: &mut Bench<'_>) -> Result<ClaimEvaluation, Interrupted> {
    let (finding, text) = (Finding::of(bench, claim.run)?, claim.text());
    let result = ClaimResult {
        id: claim.id.to_owned(),
        paper: claim.paper.to_owned(),
        place: text.place.clone(),
        setup: text.setup.clone(),
        published: text.published.clone(),
        measured: finding.measured.clone(),
        conditions: finding.judged(),
        runs: finding.runs,
        verdict: finding.verdict(),
        reason: finding.reason(),
        notes: finding.notes.clone(),
    };
    Ok(ClaimEvaluation { result, finding })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_claim_has_a_name_of_its_own_an_experiment_and_its_paper() {
        let ids: BTreeSet<&str> = all_claims().map(|c| c.id).collect();
        assert_eq!(ids.len(), all_claims().count());
        assert_eq!(claims().count(), 70);
        for paper in works() {
            for claim in paper.claims {
                assert_eq!(claim.paper, paper.key, "{}", claim.id);
                let text = claim.text();
                let texts = [claim.id, &text.place, &text.setup, &text.published];
                assert!(texts.iter().all(|text| !text.is_empty()), "{}", claim.id);
            }
        }
    }

    #[test]
    fn each_cost_is_of_a_claim() {
        for line in include_str!("costs.txt").lines() {
            let (id, cost) = line.split_once(' ').unwrap();
            assert!(all_claims().any(|claim| claim.id == id), "costs.txt: {line}");
            assert!(cost.parse::<u64>().is_ok(), "costs.txt: {line}");
        }
    }

    #[test]
    fn related_work_is_evaluated_on_request() {
        let count = |word: &str| choose(&[word.to_owned()]).ok().map(|chosen| chosen.len());
        assert_eq!(choose(&[]).unwrap().len(), claims().count());
        assert_eq!(count("related"), Some(RELATED.claims.len()));
        assert_eq!(count("W-T1"), Some(1));
        assert_eq!(count("W-T999"), None);
    }
}
