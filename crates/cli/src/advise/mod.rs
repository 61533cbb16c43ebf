//! Advice: from a link to what would help on it, by a comparison of all schemes.

pub mod estimate;
pub mod link;
pub mod remedy;
pub mod show;

use std::num::NonZeroUsize;

use lasthop_lab::ranking::Judgement;
use lasthop_scenario::{AS_IS, Wanted, schemes};
use serde::Serialize;

use crate::compare::{self, Document, Measured, Place, Row};
use crate::failure::Failure;
use crate::scenario::Text;
use crate::stop::Stop;
use link::{Fact, Link};

/// Schemes that are looked at again on other links.
const LOOKED_AT_AGAIN: usize = 6;
/// Runs of each of them, at most.
const RUNS_AGAIN: u32 = 6;

/// TCPs that a sender of today has outgrown: nobody would go back to one of them.
const OUTGROWN: [&str; 5] = ["tahoe", "reno", "newreno", "sack", "right-edge"];
/// Senders of today.
const OF_TODAY: [&str; 4] = ["linux", "rack", "cubic", "bbr"];

/// What advice is given about, and how.
#[derive(Debug)]
pub struct Question<'a> {
    /// The link.
    pub link: &'a Link,
    /// Seeds.
    pub runs: u32,
    /// The least gain worth a change, as a share: 0.05 is 5 %.
    pub gain: f64,
    /// Whether to ask again for other losses and delays.
    pub vary: bool,
    /// Threads.
    pub jobs: Option<NonZeroUsize>,
    /// No progress on stderr.
    pub quiet: bool,
    /// Asked between two runs.
    pub stop: &'a Stop,
}

/// Everything that is said.
#[derive(Debug, Serialize)]
pub struct Advice {
    /// What is known of the link, and from where.
    pub facts: Vec<Fact>,
    /// What else there is to know about that.
    pub notes: Vec<String>,
    /// The least gain that counts, as a share.
    pub threshold: f64,
    /// Whether anything gains more than that, with confidence.
    pub anything_helps: bool,
    /// What the sender gets as it is, as a share of what the link could carry with these losses.
    pub share_of_capacity: Option<f64>,
    /// What helps, the best first, by names.
    pub helps: Vec<String>,
    /// Other losses and delays.
    pub sensitivity: Vec<Variation>,
    /// All schemes.
    pub comparison: Document,
}

/// The same question for another link.
#[derive(Debug, Serialize)]
pub struct Variation {
    /// What is different.
    pub what: &'static str,
    /// The best scheme that gains more than the threshold there; none if nothing does.
    pub best: Option<String>,
    /// How often the throughput of the sender as it is the best one has.
    pub times: Option<f64>,
    /// Whether the best of the link itself is the best there too, alone or tied; or whether nothing helps here as there.
    pub stays: bool,
}

/// Makes the runs; nothing if somebody asked to stop.
pub fn ask(
    question: &Question<'_>,
    facts: Vec<Fact>,
    notes: Vec<String>,
) -> Result<Option<Advice>, Failure> {
    let wanted = Wanted::Named(candidates(&question.link.sender));
    let Some(comparison) = compared(question, question.link, question.runs, &wanted)? else {
        return Ok(None);
    };
    let Some(place) = comparison.points.first() else { return Ok(None) };
    let helps: Vec<String> =
        helping(place, question.gain).map(|row| row.scheme.name.clone()).collect();
    let mut again: Vec<String> = helps.clone();
    again.extend(place.schemes.iter().map(|row| row.scheme.name.clone()));
    again.retain(|name| name != AS_IS);
    let mut seen: Vec<String> = Vec::new();
    again.retain(|name| {
        !seen.contains(name) && {
            seen.push(name.clone());
            true
        }
    });
    again.truncate(LOOKED_AT_AGAIN);
    let mut sensitivity = Vec::new();
    let lossy = question.link.loss.get() > 0.0;
    let variations = [
        ("half the loss", 0.5, 1.0),
        ("twice the loss", 2.0, 1.0),
        ("half the delay", 1.0, 0.5),
        ("twice the delay", 1.0, 2.0),
    ];
    for (what, loss, delay) in variations.into_iter().filter(|_| question.vary) {
        if loss != 1.0 && !lossy {
            continue;
        }
        let link = question.link.scaled(loss, delay);
        let runs = question.runs.min(RUNS_AGAIN);
        let Some(other) = compared(question, &link, runs, &Wanted::Named(again.clone()))? else {
            return Ok(None);
        };
        sensitivity.extend(
            other.points.first().map(|there| variation(what, there, &helps, question.gain)),
        );
    }
    let capacity = place.bounds.capacity;
    let own = as_is(place).map(|row| row.standing.value.mean);
    Ok(Some(Advice {
        facts,
        notes,
        threshold: question.gain,
        anything_helps: !helps.is_empty(),
        share_of_capacity: own.zip(capacity).map(|(own, capacity)| own / capacity),
        helps,
        sensitivity,
        comparison,
    }))
}

/// The schemes that are looked at for a sender.
fn candidates(sender: &str) -> Vec<String> {
    let of_today = OF_TODAY.contains(&sender);
    let outgrown = |name: &str| of_today && OUTGROWN.contains(&name);
    schemes().into_iter().map(|scheme| scheme.name).filter(|name| !outgrown(name)).collect()
}

fn compared(
    question: &Question<'_>,
    link: &Link,
    runs: u32,
    wanted: &Wanted,
) -> Result<Option<Document>, Failure> {
    let text = Text {
        origin: "the link".to_owned(),
        name: "advise".to_owned(),
        text: link.scenario(runs)?,
    };
    let comparison = lasthop_scenario::compare(&text.text, &text.name, &[], wanted, &[], None)
        .map_err(|error| text.failure(*error.0, &[]))?;
    let Measured { results, complete } =
        compare::measure_with(&comparison, None, question.jobs, question.quiet, question.stop)?;
    Ok(complete.then(|| compare::rank(&comparison, &results, String::new())))
}

/// The schemes that gain more than `gain` with confidence, the best first.
pub fn helping(place: &Place, gain: f64) -> impl Iterator<Item = &Row> {
    place.schemes.iter().filter(move |row| {
        row.standing.judgement == Judgement::Better
            && row.standing.ratio.is_some_and(|ratio| ratio.low > 1.0 + gain)
    })
}

/// The sender as it is.
pub fn as_is(place: &Place) -> Option<&Row> {
    place.schemes.iter().find(|row| row.scheme.name == AS_IS)
}

fn variation(what: &'static str, there: &Place, helps: &[String], gain: f64) -> Variation {
    let best = helping(there, gain).next();
    let first = helps.first();
    let of_first = first.and_then(|name| there.schemes.iter().find(|row| row.scheme.name == *name));
    let stays = match (first, best) {
        (None, None) => true,
        (None, Some(_)) | (Some(_), None) => false,
        (Some(_), Some(best)) => {
            of_first.is_some_and(|row| row.standing.rank <= best.standing.rank)
        }
    };
    Variation {
        what,
        best: best.map(|row| row.scheme.name.clone()),
        times: best.and_then(|row| row.standing.ratio).map(|ratio| ratio.mean),
        stays,
    }
}
