//! Studies, from what is asked to the answer. What becomes of the answer is the caller's.

use lasthop_lab::{Results, Setup};
use lasthop_scenario::{Argument, Plan};
use lasthop_study::advise::{self, Advice, Estimate, Given, Link, Remedy};
use lasthop_study::{Document, Source, compare, energy};

use crate::{Error, Work, run};

/// Makes the runs of a study, and says what they are with `command`.
fn maker<'a>(
    command: &'a str,
    work: &'a Work<'a>,
) -> impl FnMut(&Plan) -> Result<Results, Error> + 'a {
    move |plan| run(plan, command, work)
}

/// Compares schemes. The document says itself whether it is complete ([`Document::is_complete`]).
///
/// # Errors
///
/// What is wrong with the scenario, with `arguments` or with what is asked.
pub fn compare(
    source: &Source<'_>,
    arguments: &[Argument],
    asked: &compare::Asked<'_>,
    command: &str,
    work: &Work<'_>,
) -> Result<Document<compare::Points>, Error> {
    let comparison = compare::lay_out(source, arguments, asked)?;
    compare::answer(&comparison, &mut maker(command, work))
}

/// Says how long batteries last and which change would save most; `hardware` and `host` as of `lasthop energy`.
///
/// # Errors
///
/// As [`compare()`].
pub fn energy(
    source: Source<'_>,
    arguments: Vec<Argument>,
    hardware: Option<&str>,
    host: Option<&str>,
    command: &str,
    work: &Work<'_>,
) -> Result<Document<energy::Energy>, Error> {
    let question = energy::Question::new(source, arguments, hardware, host)?;
    let setup = Setup::new(command.to_owned(), &question.plan());
    energy::answer(&question, &setup, &mut maker(command, work))
}

/// What would help on a link.
#[derive(Debug)]
pub struct Advised {
    /// The link as it was taken.
    pub link: Link,
    /// The scenario that was run.
    pub scenario: String,
    /// The answer.
    pub advice: Advice,
    /// What to deploy, the best first.
    pub remedies: Vec<Remedy>,
}

/// Advises. `seeds` and `gain` (a share: 0.05 is 5 %) as of `lasthop advise`; nothing if `work` said stop.
///
/// # Errors
///
/// What is wrong with the description of the link.
pub fn advise(
    given: Given,
    estimate: Estimate,
    seeds: Option<u32>,
    gain: f64,
    vary: bool,
    work: &Work<'_>,
) -> Result<Option<Advised>, Error> {
    let (link, facts) = given.link(&estimate)?;
    let runs = seeds.unwrap_or_else(|| link.runs());
    let scenario = link.scenario(runs)?;
    let question = advise::Question { link: &link, runs, gain, can: &[], vary };
    let advice = advise::ask(&question, facts, estimate, &mut maker("", work))?;
    Ok(advice.map(|advice| {
        let remedies = advise::remedies(&advice, &link);
        Advised { link, scenario, advice, remedies }
    }))
}
