//! Claims and papers: a claim is a published result with the experiment that tests it.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

use crate::bench::{Bench, Interrupted};
use crate::finding::Finding;
use crate::open::Testbed;

/// Makes the runs of a claim on the bench and adds the results to the finding, whose number of runs is that of the
/// bench by default.
pub type Experiment = fn(&mut Bench<'_>, &mut Finding) -> Result<(), Interrupted>;

/// The texts of a claim. Figures are the papers' own.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClaimText {
    /// Table, figure or section.
    pub place: String,
    /// The runs.
    pub setup: String,
    /// The published result.
    pub published: String,
}

/// The texts of all claims by their names, from the `claims.toml` of each paper.
static TEXTS: LazyLock<BTreeMap<String, ClaimText>> = LazyLock::new(|| {
    let files = [
        include_str!("west97/claims.toml"),
        include_str!("parsa98/claims.toml"),
        include_str!("bakshi96/claims.toml"),
        include_str!("balakrishnan97/claims.toml"),
        include_str!("agarwal00/claims.toml"),
        include_str!("related/claims.toml"),
        include_str!("modern/claims.toml"),
    ];
    let read = |file: &str| -> BTreeMap<String, ClaimText> {
        toml::from_str(file).unwrap_or_else(|error| panic!("claims.toml: {error}"))
    };
    files.into_iter().flat_map(read).collect()
});

/// A published result.
#[derive(Clone, Copy, Debug)]
pub struct Claim {
    /// Stable name.
    pub id: &'static str,
    /// Key of the paper.
    pub paper: &'static str,
    /// The measurement is of this machine, not of a simulation, so figures differ between runs.
    pub of_this_machine: bool,
    pub run: Experiment,
    /// The testbed, where its open parameters are known.
    pub testbed: Option<&'static Testbed>,
}

impl Claim {
    /// A claim of `paper` with empty fields, the base of the constants of experiments.
    pub const fn of(paper: &'static str) -> Claim {
        Claim {
            id: "",
            paper,
            of_this_machine: false,
            run: |_, _| unreachable!("a claim has an experiment"),
            testbed: None,
        }
    }

    /// The claim `id`, which `run` tests, on the same testbed.
    pub(crate) const fn named(self, id: &'static str, run: Experiment) -> Claim {
        Claim { id, run, ..self }
    }

    /// Its texts.
    ///
    /// # Panics
    ///
    /// If the paper's file is malformed or does not have the claim: it is part of this crate.
    pub fn text(&self) -> &'static ClaimText {
        &TEXTS[self.id]
    }

    /// Cost of the evaluation, for the estimate of the remaining time: tenths of a second with 20 seeds on two cores, as
    /// printed by `lasthop reproduce --timings`. Only the ratios matter. Shared runs count for the first claim that
    /// needs them.
    pub fn cost(&self) -> u64 {
        let lines = include_str!("costs.txt").lines().filter_map(|line| line.split_once(' '));
        let own = lines.filter(|(id, _)| *id == self.id).find_map(|(_, cost)| cost.parse().ok());
        own.unwrap_or(1)
    }

    /// Why the claim has no open parameters; `None` if it has a testbed.
    pub fn closed(&self) -> Option<&'static str> {
        match (self.testbed, self.of_this_machine) {
            (Some(_), _) => None,
            (None, true) => Some("it measures this machine, whose figures differ by themselves"),
            (None, false) => {
                Some("a script of the paper gives each packet, and leaves nothing open")
            }
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Paper {
    pub key: &'static str,
    /// Authors, title, year.
    pub title: &'static str,
    /// In the order of the paper.
    pub claims: &'static [Claim],
}
