//! Studies with the thread pool of this crate. The caller shows the results.

use lasthop_scenario::{Argument, Plan};
use lasthop_sim::runs::{Results, Setup};
use lasthop_study::advise::{self, Advice, Estimate, Link, LinkOptions, Remedy};
use lasthop_study::{Document, Source, compare, energy};

use crate::{Error, Work, run};

/// Makes the runs of a study; `command` is stored in the results.
fn maker<'a>(
    command: &'a str,
    work: &'a Work<'a>,
) -> impl FnMut(&Plan) -> Result<Results, Error> + 'a {
    move |plan| run(plan, command, work)
}

/// Compares schemes. [`Document::is_complete`] is false after an interruption.
///
/// # Errors
///
/// The scenario, `arguments` or the options are invalid.
pub fn compare(
    source: &Source<'_>,
    arguments: &[Argument],
    options: &compare::Options<'_>,
    command: &str,
    work: &Work<'_>,
) -> Result<Document<compare::Points>, Error> {
    let comparison = compare::lay_out(source, arguments, options)?;
    compare::answer(&comparison, &mut maker(command, work))
}

/// Battery lifetimes and the changes that save most; `hardware` and `host` as in `lasthop energy`.
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

/// Advice on a link.
#[derive(Debug)]
pub struct AdviceResult {
    /// The link with all parameters.
    pub link: Link,
    /// The scenario of the runs.
    pub scenario: String,
    pub advice: Advice,
    /// The best first.
    pub remedies: Vec<Remedy>,
}

/// The options of `lasthop advise`.
#[derive(Clone, PartialEq, Debug)]
pub struct AdviceOptions {
    /// Runs of each scheme; `None` for as many as the link needs.
    pub seeds: Option<u32>,
    /// Minimum gain worth a change, as a share: 0.05 is 5 %.
    pub gain: f64,
    /// Parties that may change something; empty for all.
    pub can: Vec<String>,
    /// Compare again for other losses and delays.
    pub vary: bool,
}

/// Advises; `None` if `work` was interrupted.
///
/// # Errors
///
/// The description of the link is invalid.
pub fn advise(
    given: LinkOptions,
    estimate: Estimate,
    wish: &AdviceOptions,
    work: &Work<'_>,
) -> Result<Option<AdviceResult>, Error> {
    let AdviceOptions { seeds, gain, vary, .. } = *wish;
    let (link, facts) = given.link(&estimate)?;
    let runs = seeds.unwrap_or_else(|| link.runs());
    let scenario = link.scenario(runs)?;
    let question =
        advise::Question { link: &link, runs, race: seeds.is_none(), gain, can: &wish.can, vary };
    let advice = advise::ask(&question, facts, estimate, &mut maker("", work))?;
    Ok(advice.map(|advice| {
        let remedies = advise::remedies(&advice, &link);
        AdviceResult { link, scenario, advice, remedies }
    }))
}
