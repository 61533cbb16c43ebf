//! Claims and papers: a claim is a published result with the experiment that tests it.

use lasthop_report::model::Assumption;

use crate::bench::{Bench, Interrupted};
use crate::finding::Finding;
use crate::open::{Open, Testbed};

/// Makes the runs of a claim on the bench and adds the results to the finding, whose number of runs is that of the
/// bench by default.
pub type Experiment = fn(&mut Bench<'_>, &mut Finding) -> Result<(), Interrupted>;

/// A published result. Figures are the papers' own.
#[derive(Clone, Copy, Debug)]
pub struct Claim {
    /// Stable name.
    pub id: &'static str,
    /// Key of the paper.
    pub paper: &'static str,
    /// Table, figure or section.
    pub place: &'static str,
    /// The runs, as text.
    pub setup: &'static str,
    /// The published result, as text.
    pub published: &'static str,
    /// Cost of the evaluation, for the estimate of the remaining time: tenths of a second with 20 seeds on two cores,
    /// as printed by `lasthop reproduce --timings`. Only the ratios matter. Shared runs count for the first claim that
    /// needs them.
    pub cost: u64,
    /// The measurement is of this machine, not of a simulation, so figures differ between runs.
    pub of_this_machine: bool,
    /// The experiment, if there is one.
    pub run: Option<Experiment>,
    /// The testbed, where its open parameters are known.
    pub testbed: Option<&'static Testbed>,
    /// Open parameters of the experiment besides those of the testbed, or with other values.
    pub open: &'static [Open],
}

impl Claim {
    /// A claim of `paper` with empty fields, the base of the constants of experiments.
    pub const fn of(paper: &'static str) -> Claim {
        Claim {
            id: "",
            paper,
            place: "",
            setup: "",
            published: "",
            cost: 1,
            of_this_machine: false,
            run: None,
            testbed: None,
            open: &[],
        }
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
    /// Assumptions of its experiments where it is silent, each with the reason.
    pub assumed: &'static [(&'static str, &'static str)],
    /// Its sentences with a number or an order that no claim tests.
    pub untested: &'static [Untested],
}

/// A sentence of a paper with a number or an order that no claim tests.
#[derive(Clone, Copy, Debug)]
pub struct Untested {
    /// Section.
    pub place: &'static str,
    /// The sentence in our words.
    pub says: &'static str,
    /// Why it is not tested.
    pub why: &'static str,
}

impl Untested {
    pub(crate) const fn new(
        place: &'static str,
        says: &'static str,
        why: &'static str,
    ) -> Untested {
        Untested { place, says, why }
    }
}

impl Paper {
    /// The assumptions, for a report.
    pub fn assumptions(&self) -> impl Iterator<Item = Assumption> {
        let row = |(assumption, why): &(&str, &str)| Assumption {
            what: (*assumption).to_owned(),
            why: (*why).to_owned(),
        };
        self.assumed.iter().map(row)
    }
}
