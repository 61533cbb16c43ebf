//! The papers: their systems, what they claim, and the experiments that hold the claims to the test.
//!
//! [`claims()`] lists what was published. Each paper whose experiments exist has a module of its own; [`evaluate`]
//! runs them. A claim is never loosened: its conditions stand in code beside the experiment, and a condition
//! that fails makes the verdict.

pub mod agarwal00;
pub mod bakshi96;
pub mod balakrishnan97;
pub mod bench;
pub mod claims;
mod cost;
pub mod finding;
pub mod live;
pub mod parsa98;
pub mod systems;
pub mod west97;

pub use bench::{Bench, Interrupted};
pub use claims::{Claim, PAPERS, claims};
pub use cost::cost;
pub use finding::Finding;

use lasthop_report::model::{Assumption, ClaimResult, Verdict};

/// A claim with what became of it.
#[derive(Debug)]
pub struct Evaluated {
    /// For tables and programs.
    pub result: ClaimResult,
    /// Tables and figures for the report.
    pub finding: Option<Finding>,
}

/// Whether there is an experiment for `claim`.
pub fn has_experiment(claim: &Claim) -> bool {
    experiment(claim.id).is_some()
}

/// Whether what `claim` measures is this machine and not a run of the simulator: then figures differ from run to run.
pub fn is_of_this_machine(claim: &Claim) -> bool {
    agarwal00::OF_THIS_MACHINE.contains(&claim.id)
}

fn experiment(id: &str) -> Option<west97::Experiment> {
    west97::experiment(id)
        .or_else(|| bakshi96::experiment(id))
        .or_else(|| parsa98::experiment(id))
        .or_else(|| balakrishnan97::experiment(id))
        .or_else(|| agarwal00::experiment(id))
}

/// What the experiments of `paper` assume where the paper is silent.
pub fn assumptions(paper: &str) -> Vec<Assumption> {
    match paper {
        "west97" => west97::assumptions(),
        "bakshi96" => bakshi96::assumptions(),
        "parsa98" => parsa98::assumptions(),
        "balakrishnan97" => balakrishnan97::assumptions(),
        "agarwal00" => agarwal00::assumptions(),
        _ => Vec::new(),
    }
}

/// Assumptions, each as what is assumed and why.
pub(crate) fn assumed(table: &[(&str, &str)]) -> Vec<Assumption> {
    let row = |(what, why): &(&str, &str)| Assumption {
        what: (*what).to_owned(),
        why: (*why).to_owned(),
    };
    table.iter().map(row).collect()
}

/// Runs the experiment of `claim`, if there is one.
///
/// # Errors
///
/// [`Interrupted`] when the bench's observer said stop.
pub fn evaluate(claim: &Claim, bench: &mut Bench<'_>) -> Result<Evaluated, Interrupted> {
    let finding = match experiment(claim.id) {
        Some(run) => Some(run(bench)?),
        None => None,
    };
    let (measured, runs, verdict, reason) = match &finding {
        Some(f) => (f.measured.clone(), f.runs, f.verdict(), f.reason()),
        None => (Vec::new(), 0, Verdict::NotRun, "there is no experiment for it yet".to_owned()),
    };
    let result = ClaimResult {
        id: claim.id.to_owned(),
        paper: claim.paper.to_owned(),
        place: claim.place.to_owned(),
        setup: claim.setup.to_owned(),
        published: claim.published.to_owned(),
        measured,
        runs,
        verdict,
        reason,
    };
    Ok(Evaluated { result, finding })
}
