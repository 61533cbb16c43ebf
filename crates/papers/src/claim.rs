//! What a claim is: a published result and the experiment that tests it; and what a paper is.

use lasthop_report::model::Assumption;

use crate::bench::{Bench, Interrupted};
use crate::finding::Finding;
use crate::open::{Open, Testbed};

/// Runs what is to be run on the bench and adds what it finds to the finding, whose runs are those of the bench until
/// it says otherwise.
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
    /// What was run.
    pub setup: &'static str,
    /// What was found.
    pub published: &'static str,
    /// What it costs to evaluate beside the others, so that the time left can be estimated: tenths of a second with 20
    /// seeds on a machine with two cores, as `lasthop reproduce --timings` prints them. Only the ratios matter. Claims
    /// share runs: each is charged with those that it is the first to need.
    pub cost: u64,
    /// Whether what is measured is this machine and not a run of the simulator: then figures differ from run to run.
    pub of_this_machine: bool,
    /// The experiment, if there is one.
    pub run: Option<Experiment>,
    /// What it runs on, where what that leaves open is known.
    pub testbed: Option<&'static Testbed>,
    /// What the experiment leaves open beside the testbed, or with other values.
    pub open: &'static [Open],
}

impl Claim {
    /// A claim of `paper` of which nothing else is known: what the constants of the experiments are completed from.
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

    /// Why nothing is tried in place of what its experiment assumes; `None` where there is a testbed for that.
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

/// A paper.
#[derive(Clone, Copy, Debug)]
pub struct Paper {
    /// Key.
    pub key: &'static str,
    /// Authors, title, year: what a reader would look it up by.
    pub title: &'static str,
    /// Its claims, in the order of the paper.
    pub claims: &'static [Claim],
    /// What its experiments assume where it is silent, each with the reason.
    pub assumed: &'static [(&'static str, &'static str)],
}

impl Paper {
    /// What its experiments assume, for a report.
    pub fn assumptions(&self) -> impl Iterator<Item = Assumption> {
        let row = |(what, why): &(&str, &str)| Assumption {
            what: (*what).to_owned(),
            why: (*why).to_owned(),
        };
        self.assumed.iter().map(row)
    }
}
