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

/// How advice is asked for, as of `lasthop advise`.
#[derive(Clone, PartialEq, Debug)]
pub struct Wish {
    /// Runs of each scheme; as many as the link needs if nothing is said.
    pub seeds: Option<u32>,
    /// The least gain worth a change, as a share: 0.05 is 5 %.
    pub gain: f64,
    /// Who can be changed; everybody if that is empty.
    pub can: Vec<String>,
    /// Whether to ask again for other losses and delays.
    pub vary: bool,
}

/// Advises; nothing if `work` said stop.
///
/// # Errors
///
/// What is wrong with the description of the link.
pub fn advise(
    given: Given,
    estimate: Estimate,
    wish: &Wish,
    work: &Work<'_>,
) -> Result<Option<Advised>, Error> {
    let Wish { seeds, gain, vary, .. } = *wish;
    let (link, facts) = given.link(&estimate)?;
    let runs = seeds.unwrap_or_else(|| link.runs());
    let scenario = link.scenario(runs)?;
    let question =
        advise::Question { link: &link, runs, race: seeds.is_none(), gain, can: &wish.can, vary };
    let advice = advise::ask(&question, facts, estimate, &mut maker("", work))?;
    Ok(advice.map(|advice| {
        let remedies = advise::remedies(&advice, &link);
        Advised { link, scenario, advice, remedies }
    }))
}
