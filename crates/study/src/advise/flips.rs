//! Searches assumptions that would change the best scheme, and the values at which they do.

use lasthop_proto::units::Span;
use serde::Serialize;

use super::link::{Duplex, FIFO, Link, NO_ARQ};
use super::{Basis, Fact, compared};
use crate::compare::{Options, PointRanking};
use crate::{Error, Runner};

/// Number of schemes compared.
const LOOKED_AT: usize = 4;
/// Runs of each scheme.
const RUNS: u32 = 4;
/// Number of bisections in the search for a value.
const STEPS: u32 = 4;

/// An assumption under which another scheme would be the best.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Flip {
    /// The name of its option.
    pub what: &'static str,
    /// The assumed value.
    pub assumed: String,
    /// The value at which the best scheme changes; for a number, the nearest one found.
    pub at: String,
    /// The best scheme there; `None` if none gains enough.
    pub best: Option<String>,
}

#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Flips {
    /// Assumptions that change the best scheme.
    pub found: Vec<Flip>,
    /// Assumptions that do not change it within the varied range.
    pub firm: Vec<String>,
    /// Runs made for the search.
    pub runs: u64,
}

/// How an assumption is changed.
enum Change {
    /// To other names.
    Words(&'static [&'static str], fn(&mut Link, &str)),
    /// To numbers between the assumed value and these ends, with the format of a number.
    Number(f64, &'static [f64], fn(&mut Link, f64), fn(f64) -> String),
}

fn change(option: &str, link: &Link) -> Option<Change> {
    let losses = link.loss.get() > 0.0;
    Some(match option {
        "duplex" => Change::Words(&["half"], |link, _| link.duplex = Duplex::Half),
        "discipline" if link.discipline == FIFO => {
            Change::Words(&["fq-codel"], |link, word| link.discipline = word.to_owned())
        }
        "arq" if link.arq == NO_ARQ && losses => {
            Change::Words(&["ll-sack"], |link, word| link.arq = word.to_owned())
        }
        "losses" if losses && link.burst < 1.5 => {
            Change::Words(&["damage"], |link, _| link.damage = true)
        }
        "burst" if losses => {
            let set = |link: &mut Link, n: f64| link.burst = n.round();
            Change::Number(1.0, &[8.0], set, |n| format!("{:.0}", n.round()))
        }
        "queue" => {
            let packets = link.queue.strip_suffix('p')?.parse().ok()?;
            let set = |link: &mut Link, n: f64| link.queue = format!("{:.0}p", n.round().max(2.0));
            Change::Number(packets, &[10.0, 1000.0], set, |n| format!("{:.0}p", n.round()))
        }
        "customers" => {
            let set = |link: &mut Link, n: f64| link.customers = n.round() as u32;
            Change::Number(1.0, &[16.0], set, |n| format!("{:.0}", n.round()))
        }
        "wired-delay" => {
            let ms = link.wired_delay.as_secs_f64() * 1e3;
            let set = |link: &mut Link, ms: f64| link.wired_delay = Span::from_secs_f64(ms / 1e3);
            (ms > 0.0)
                .then_some(Change::Number(ms, &[1.0, 200.0], set, |ms| format!("{ms:.1}ms")))?
        }
        _ => return None,
    })
}

/// Varies the assumptions; `None` if the user interrupted.
pub(super) fn flips<E: From<Error>>(
    link: &Link,
    facts: &[Fact],
    options: (&[String], &[String], f64),
    run: &mut Runner<'_, E>,
) -> Result<Option<Flips>, E> {
    let (again, helps, gain) = options;
    let schemes = &again[..again.len().min(LOOKED_AT)];
    let first = helps.first().map(String::as_str);
    let mut all = Flips::default();
    for fact in facts.iter().filter(|fact| fact.from == Basis::Assumed) {
        let Some(change) = change(fact.what, link) else { continue };
        let mut best = |link: &Link| -> Result<Option<Option<String>>, E> {
            let options =
                Options { schemes, handoffs: link.handoff.as_ref(), ..Options::default() };
            let Some(document) = compared(link, (RUNS, false), &options, &[], run)? else {
                return Ok(None);
            };
            all.runs += u64::from(RUNS) * (schemes.len() as u64 + 1);
            Ok(document.results.points.first().map(|place| turned(place, first, gain)))
        };
        let mut found = Vec::new();
        let mut add_flip = |at: String, best: &str| {
            let (what, assumed) = (fact.what, fact.value.clone());
            let best = (!best.is_empty()).then(|| best.to_owned());
            found.push(Flip { what, assumed, at, best });
        };
        match change {
            Change::Words(words, set) => {
                for word in words {
                    let mut other = link.clone();
                    set(&mut other, word);
                    let Some(best) = best(&other)? else { return Ok(None) };
                    best.iter().for_each(|best| add_flip((*word).to_owned(), best));
                }
            }
            Change::Number(from, ends, set, write) => {
                for end in ends {
                    let mut at = |value: f64| {
                        let mut other = link.clone();
                        set(&mut other, value);
                        best(&other)
                    };
                    let Some(last) = at(*end)? else { return Ok(None) };
                    let Some(mut winner) = last else { continue };
                    // The change lies between the last value without it and the first value with it.
                    let (mut holds, mut turns) = (from, *end);
                    for _ in 0..STEPS {
                        let middle = (holds * turns).sqrt();
                        match at(middle)? {
                            None => return Ok(None),
                            Some(None) => holds = middle,
                            Some(Some(best)) => (turns, winner) = (middle, best),
                        }
                    }
                    add_flip(write(turns), &winner);
                }
            }
        }
        if found.is_empty() {
            all.firm.push(fact.what.to_owned());
        }
        all.found.append(&mut found);
    }
    Ok(Some(all))
}

/// The scheme that replaces `first` as the best: its name, or `Some(None)` for no scheme; `None` where `first` stays
/// best. The comparison uses means, since the runs are few: another scheme must be ahead by `gain`.
fn turned(place: &PointRanking, first: Option<&str>, gain: f64) -> Option<String> {
    let times = |name: &str| {
        let row = place.scheme(name)?;
        Some(row.standing.ratio.map_or(0.0, |ratio| ratio.mean))
    };
    // A scheme that is derived from the link may not exist on this link, and is then not compared.
    let own = first.map_or(Some(0.0), times)?;
    let others = place.schemes.iter().map(|row| row.name());
    let best = others
        .filter_map(|name| Some((name, times(name)?)))
        .max_by(|a, b| a.1.total_cmp(&b.1))
        .filter(|(_, times)| *times > 1.0 + gain);
    match (first, best) {
        (None, None) => None,
        (Some(_), None) => Some(String::new()),
        (_, Some((name, times))) => (times > own.max(1.0) * (1.0 + gain)).then(|| name.to_owned()),
    }
}
