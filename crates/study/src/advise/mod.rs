//! Advice: from a link to what would help on it, by a comparison of all schemes.

mod estimate;
mod known;
mod link;
mod remedy;

use lasthop_scenario::{AS_IS, schemes};
use serde::Serialize;

use crate::compare::{self, Asked, Place, Points, Row};
use crate::{Document, Error, Runner, Source};
pub use estimate::{Estimate, Estimated};
pub use known::{Basis, Fact, Given};
pub use link::{Direction, Link};
pub use remedy::{Remedy, remedies};

/// Schemes that are looked at again on other links.
const LOOKED_AT_AGAIN: usize = 6;
/// Runs of each of them, at most.
const RUNS_AGAIN: u32 = 6;

/// What helps is told one by one up to here.
pub const TOLD: usize = 8;

/// TCPs that a sender of today has outgrown: nobody would go back to one of them.
const OUTGROWN: [&str; 5] = ["tahoe", "reno", "newreno", "sack", "right-edge"];
/// Senders of today.
const OF_TODAY: [&str; 7] = ["linux", "rack", "cubic", "bbr", "hybla", "westwood", "veno"];

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
    pub comparison: Document<Points>,
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
    /// Whether the best of the link itself is the best there too, alone or tied; or whether nothing helps here as
    /// there.
    pub stays: bool,
}

/// Other links that are looked at: what they are called, and by how much loss and delay are scaled.
const VARIATIONS: [(&str, f64, f64); 4] = [
    ("half the loss", 0.5, 1.0),
    ("twice the loss", 2.0, 1.0),
    ("half the delay", 1.0, 0.5),
    ("twice the delay", 1.0, 2.0),
];

/// Makes the runs; nothing if somebody asked to stop.
///
/// # Errors
///
/// If there is no such sender, and whatever `run` fails of.
pub fn ask<E: From<Error>>(
    question: &Question<'_>,
    facts: Vec<Fact>,
    notes: Vec<String>,
    run: &mut Runner<'_, E>,
) -> Result<Option<Advice>, E> {
    let Question { link, runs, gain, vary } = *question;
    let Some(comparison) = compared(link, runs, &candidates(&link.sender), run)? else {
        return Ok(None);
    };
    let Some(place) = comparison.said.points.first() else { return Ok(None) };
    let helps: Vec<String> = helping(place, gain).map(|row| row.name().to_owned()).collect();
    let again = looked_at_again(place, &helps);
    let mut sensitivity = Vec::new();
    for (what, loss, delay) in VARIATIONS.into_iter().filter(|_| vary) {
        if loss != 1.0 && link.loss.get() <= 0.0 {
            continue;
        }
        let link = link.scaled(loss, delay);
        let Some(other) = compared(&link, runs.min(RUNS_AGAIN), &again, run)? else {
            return Ok(None);
        };
        let there = other.said.points.first();
        sensitivity.extend(there.map(|there| variation(what, there, &helps, gain)));
    }
    let own = place.scheme(AS_IS).map(|row| row.standing.value.mean);
    Ok(Some(Advice {
        facts,
        notes,
        threshold: gain,
        anything_helps: !helps.is_empty(),
        share_of_capacity: own.zip(place.bounds.capacity).map(|(own, capacity)| own / capacity),
        helps,
        sensitivity,
        comparison,
    }))
}

/// The schemes that are looked at on other links: what helps, and then the best of the others.
fn looked_at_again(place: &Place, helps: &[String]) -> Vec<String> {
    let mut again: Vec<String> = helps.to_vec();
    for name in place.schemes.iter().map(Row::name) {
        if name != AS_IS && again.iter().all(|other| other != name) {
            again.push(name.to_owned());
        }
    }
    again.truncate(LOOKED_AT_AGAIN);
    again
}

/// The schemes that are looked at for a sender.
fn candidates(sender: &str) -> Vec<String> {
    let of_today = OF_TODAY.contains(&sender);
    let outgrown = |name: &str| of_today && OUTGROWN.contains(&name);
    schemes().into_iter().map(|scheme| scheme.name).filter(|name| !outgrown(name)).collect()
}

fn compared<E: From<Error>>(
    link: &Link,
    runs: u32,
    schemes: &[String],
    run: &mut Runner<'_, E>,
) -> Result<Option<Document<Points>>, E> {
    let text = link.scenario(runs)?;
    let source = Source { origin: "the link", name: "advise", text: &text };
    let asked = Asked { schemes, handoffs: link.handoff.as_ref(), ..Asked::default() };
    let comparison = compare::lay_out(&source, &[], &asked)?;
    let document = compare::answer(&comparison, run)?;
    Ok(Some(document).filter(Document::is_complete))
}

/// The schemes that gain more than `gain` with confidence, the best first.
pub fn helping(place: &Place, gain: f64) -> impl Iterator<Item = &Row> {
    place.schemes.iter().filter(move |row| {
        row.helps() && row.standing.ratio.is_some_and(|ratio| ratio.low > 1.0 + gain)
    })
}

fn variation(what: &'static str, there: &Place, helps: &[String], gain: f64) -> Variation {
    let best = helping(there, gain).next();
    let first = helps.first();
    let of_first = first.and_then(|name| there.scheme(name));
    let stays = match (first, best) {
        (None, None) => true,
        (None, Some(_)) | (Some(_), None) => false,
        (Some(_), Some(best)) => {
            of_first.is_some_and(|row| row.standing.rank <= best.standing.rank)
        }
    };
    Variation {
        what,
        best: best.map(|row| row.name().to_owned()),
        times: best.and_then(|row| row.standing.ratio).map(|ratio| ratio.mean),
        stays,
    }
}
