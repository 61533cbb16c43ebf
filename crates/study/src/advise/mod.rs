//! Advice: compares all schemes on a link and reports which ones help.

mod estimate;
mod extra;
mod faults;
mod flips;
mod kinds;
mod known;
mod link;
mod measured;
mod model;
mod page;
pub mod parts;
mod remedy;
mod signature;
mod unseen;
mod waiting;

use lasthop_proto::tcp::TcpConfig;
use lasthop_proto::tcp::words::{self, Deployment, Keyword};
use lasthop_proto::units::Rate;
use lasthop_scenario::{AS_IS, LeftOut, schemes_of};
use serde::Serialize;

use crate::compare::{self, Options, PointRanking, Points, Row};
use crate::{Document, Error, Runner, Source};
pub use estimate::{CapturedSender, Estimate, Estimation};
pub use faults::{Fault, is_decided};
pub use flips::{Flip, Flips};
pub use kinds::LinkKind;
pub use known::{Basis, Fact, LinkOptions};
pub use link::{Direction, Duplex, FIFO, Link, MTU, NO_ARQ};
pub use model::{AGREES, Figures, ModelComparison};
pub use page::{page, page_of_faults, single_changes};
pub use remedy::{Remedy, remedies};
pub use waiting::{Elsewhere, Shorter, Waiting};

/// Maximum number of schemes compared again on other links.
const LOOKED_AT_AGAIN: usize = 6;
/// Maximum number of their runs.
const RUNS_AGAIN: u32 = 6;

/// Number of remedies listed individually.
pub const MAX_LISTED: usize = 8;

/// Schemes that depend on the delivery of damaged packets.
const BY_DAMAGE: [&str; 3] = ["eln", "eln-rxmt", "eln-named"];

/// Parties that may change something: the option's name, and that of [`lasthop_scenario::Scheme::change`].
pub const PARTIES: [(&str, &str); 6] = [
    ("sender", "sender"),
    ("receiver", "receiver"),
    ("base-station", "base station"),
    ("link", "link"),
    ("router", "router"),
    ("gateway", "gateway"),
];

/// The link and the options of the advice.
#[derive(Debug)]
pub struct Question<'a> {
    pub link: &'a Link,
    /// Number of seeds.
    pub runs: u32,
    /// Schemes near the top get more seeds, all others fewer.
    pub race: bool,
    /// Minimum gain worth a change, as a share: 0.05 is 5 %.
    pub gain: f64,
    /// Parties that may change something, by the names of [`lasthop_scenario::Scheme::change`]; empty for all.
    pub can: &'a [String],
    /// Compare again for other losses and delays.
    pub vary: bool,
}

/// The complete advice.
#[derive(Debug, Serialize)]
pub struct Advice {
    /// The parameters of the link and their sources.
    pub facts: Vec<Fact>,
    /// Notes about them.
    pub notes: Vec<String>,
    /// The modelled sender compared with the captured one, if there is a capture.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub beside: Option<ModelComparison>,
    /// Minimum gain, as a share.
    pub threshold: f64,
    /// The captured throughput in bytes per second, if there is a capture. A scheme helps only if it exceeds this by
    /// the threshold, independent of the throughput of the modelled sender.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub there: Option<f64>,
    /// Whether at least one scheme gains significantly more than the threshold.
    pub anything_helps: bool,
    /// Throughput of the unchanged sender as a share of the link's capacity with these losses.
    pub share_of_capacity: Option<f64>,
    /// Names of the schemes that help, the best first.
    pub helps: Vec<String>,
    /// Queueing delay, if it exceeds the propagation delay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting: Option<Waiting>,
    /// Results for other losses, delays and transfers.
    pub sensitivity: Vec<Variation>,
    /// Assumptions that would change the best scheme.
    pub flips: Flips,
    /// All schemes.
    pub comparison: Document<Points>,
}

/// The same question for another link.
#[derive(Debug, Serialize)]
pub struct Variation {
    /// The difference.
    pub what: String,
    /// The best scheme that gains more than the threshold there; `None` if none does.
    pub best: Option<String>,
    /// Its throughput divided by that of the unchanged sender.
    pub times: Option<f64>,
    /// Whether the best scheme is also the best one there, alone or tied, or no scheme helps on either link.
    pub stays: bool,
}

/// Other links: name, factor of loss, factor of delay.
const VARIATIONS: [(&str, f64, f64); 4] = [
    ("half the loss", 0.5, 1.0),
    ("twice the loss", 2.0, 1.0),
    ("half the delay", 1.0, 0.5),
    ("twice the delay", 1.0, 2.0),
];

/// Other transfers, as shares of the bytes.
const SIZES: [f64; 2] = [0.1, 4.0];

/// Links like `link` with the description of their difference. An estimated rate is varied as well: to its bounds
/// `rates`, or to more than observed.
fn variations(link: &Link, rates: Option<(Rate, Rate)>, unknown: bool) -> Vec<(String, Link)> {
    let scaled =
        VARIATIONS.into_iter().filter(|(_, loss, _)| *loss == 1.0 || link.loss.get() > 0.0);
    let mut all: Vec<(String, Link)> = scaled
        .map(|(difference, loss, delay)| (difference.to_owned(), link.scaled(loss, delay)))
        .collect();
    let sizes = SIZES.into_iter().filter_map(|share| link.with_share(share));
    all.extend(sizes.map(|link| (format!("with {}", known::in_megabytes(link.bytes())), link)));
    let twice = Rate::from_bps(link.rate.bps().saturating_mul(2)).filter(|_| unknown);
    let ends = rates.map_or(twice.into_iter().collect(), |(low, high)| vec![low, high]);
    for rate in ends.into_iter().filter(|rate| *rate != link.rate) {
        let rate_back = if link.rate_back == link.rate { rate } else { link.rate_back };
        all.push((format!("at {rate}"), Link { rate, rate_back, ..link.clone() }));
    }
    all
}

fn is_estimated(facts: &[Fact], option: &str) -> bool {
    facts.iter().any(|fact| fact.what == option && fact.from == Basis::Estimated)
}

/// Makes the runs; `None` if the user interrupted.
///
/// # Errors
///
/// The sender is unknown, or `run` fails.
pub fn ask<E: From<Error>>(
    question: &Question<'_>,
    facts: Vec<Fact>,
    estimate: Estimate,
    run: &mut Runner<'_, E>,
) -> Result<Option<Advice>, E> {
    let Question { link, runs, race, gain, can, vary } = *question;
    let Estimate { mut notes, captured, rates, .. } = estimate;
    notes.extend(link.beyond_first_timeout().map(|whole| {
        format!(
            "the first timeout of a sender is 1 s (RFC 6298), and a full packet and its ACK take {:.1} s here without \
             any queue: SYNs are retransmitted while their answer is in flight; and this advice is for transfers: for a \
             device that reports a few bytes use `lasthop battery` and `lasthop run nb-iot`",
            whole.as_secs_f64()
        )
    }));
    let rates = rates.filter(|_| is_estimated(&facts, "rate"));
    let model_comparison = match &captured {
        Some(captured) => match model::compare_with_capture(link, rates, captured, runs, run)? {
            None => return Ok(None),
            model_comparison => model_comparison,
        },
        None => None,
    };
    let (schemes, left_out) = candidates(link)?;
    let options =
        |schemes| Options { schemes, handoffs: link.handoff.as_ref(), ..Options::default() };
    let Some(mut comparison) = compared(link, (runs, race), &options(&schemes), can, run)? else {
        return Ok(None);
    };
    comparison.left_out.extend(left_out);
    let Some(place) = comparison.results.points.first() else { return Ok(None) };
    let there =
        model_comparison.as_ref().map(|model_comparison| model_comparison.captured.throughput);
    let helps: Vec<String> = helping(place, gain, there).map(|row| row.name().to_owned()).collect();
    let again = looked_at_again(place, &helps);
    let mut sensitivity = Vec::new();
    let unknown = is_estimated(&facts, "rate");
    for (difference, link) in variations(link, rates, unknown).into_iter().filter(|_| vary) {
        let runs = runs.min(RUNS_AGAIN);
        let Some(other) = compared(&link, (runs, false), &options(&again), &[], run)? else {
            return Ok(None);
        };
        let there = other.results.points.first();
        sensitivity.extend(there.map(|there| variation(difference, there, &helps, gain)));
    }
    let flip_options = (again.as_slice(), helps.as_slice(), gain);
    let flips = match vary {
        true => flips::flips(link, &facts, flip_options, run)?,
        false => Some(Flips::default()),
    };
    let Some(flips) = flips else { return Ok(None) };
    let mut waiting = waiting::waiting(link, place, gain);
    if let Some(all) = &mut waiting {
        for kind in kinds::checked(link) {
            let names: Vec<String> = all.shorter.iter().map(|scheme| scheme.name.clone()).collect();
            if names.is_empty() {
                break;
            }
            let runs = runs.min(RUNS_AGAIN);
            let options = Options { schemes: &names, ..Options::default() };
            let other = compared(&kind.like(link), (runs, false), &options, &[], run)?;
            let Some(other) = other else { return Ok(None) };
            other.results.points.first().into_iter().for_each(|there| all.check(kind, there, gain));
        }
        all.shorter.truncate(waiting::NAMED);
    }
    let own = place.scheme(AS_IS).map(|row| row.standing.value.mean);
    Ok(Some(Advice {
        facts,
        notes,
        beside: model_comparison,
        threshold: gain,
        there,
        anything_helps: !helps.is_empty(),
        share_of_capacity: own.zip(place.bounds.capacity).map(|(own, capacity)| own / capacity),
        helps,
        waiting,
        sensitivity,
        flips,
        comparison,
    }))
}

/// The schemes to compare on other links: all that help, then the best others.
fn looked_at_again(place: &PointRanking, helps: &[String]) -> Vec<String> {
    let mut again: Vec<String> = helps.to_vec();
    for name in place.schemes.iter().map(Row::name) {
        if name != AS_IS && again.iter().all(|other| other != name) {
            again.push(name.to_owned());
        }
    }
    again.truncate(LOOKED_AT_AGAIN);
    again
}

/// The deployment of the TCP `name`, which is also the name of its scheme.
fn deployment(name: &str) -> Option<Deployment> {
    words::find(name).map(|word| word.deployment)
}

/// Whether a sender spreads its segments over time without the scheme `pacing`.
fn is_paced(word: &Keyword) -> bool {
    let mut config = TcpConfig::linux();
    (word.apply)(&mut config);
    config.pacing
}

/// The names of the schemes to compare, and the schemes that a comparison on this link cannot evaluate.
fn candidates(link: &Link) -> Result<(Vec<String>, Vec<LeftOut>), Error> {
    let sender = link.sender.as_str();
    let text = link.scenario(1)?;
    let source = Source { origin: "the link", name: "advise", text: &text };
    let all = schemes_of(&text).map_err(|error| source.wrong(error, &[]))?;
    let current = link::is_current(sender);
    let superseded = |name: &str| current && deployment(name) == Some(Deployment::Superseded);
    let paces = words::find(sender).is_some_and(is_paced);
    let there = |name: &str| paces && name == "pacing";
    let names = all.into_iter().map(|scheme| scheme.name);
    let names = names.filter(|name| !superseded(name) && !there(name));
    let (blind, names): (Vec<String>, Vec<String>) =
        names.partition(|name| !link.damage && BY_DAMAGE.contains(&name.as_str()));
    let reason = "it needs damaged packets that arrive, and here they vanish; `--losses damage` lets them arrive";
    let left_out = blind.into_iter().map(|name| LeftOut { name, reason: reason.to_owned() });
    Ok((names, left_out.collect()))
}

/// Compares the requested schemes on `link` that only the parties `can` must change.
fn compared<E: From<Error>>(
    link: &Link,
    (runs, race): (u32, bool),
    options: &Options<'_>,
    can: &[String],
    run: &mut Runner<'_, E>,
) -> Result<Option<Document<Points>>, E> {
    let text = link.scenario(runs)?;
    let source = Source { origin: "the link", name: "advise", text: &text };
    // Schemes that are derived from a link do not exist on every link.
    let known = schemes_of(&text).map_err(|error| source.wrong(error, &[]))?;
    let there = |name: &&String| known.iter().any(|scheme| scheme.name == **name);
    let schemes: Vec<String> = options.schemes.iter().filter(there).cloned().collect();
    let options = &Options { schemes: &schemes, ..*options };
    let mut comparison = compare::lay_out(&source, &[], options)?;
    if !can.is_empty() {
        let within = |word: &String| can.contains(word) || word == "nothing";
        let names = comparison.schemes.iter().filter(|scheme| scheme.name != AS_IS);
        let names: Vec<String> = names
            .filter(|scheme| scheme.change.iter().all(within))
            .map(|scheme| scheme.name.clone())
            .collect();
        if names.is_empty() {
            let help = "permit more changes: sender, receiver, base-station, link, router, gateway";
            return Err(
                Error::input(format!("no scheme changes only {}", can.join(", ")), help).into()
            );
        }
        comparison = compare::lay_out(&source, &[], &Options { schemes: &names, ..*options })?;
    }
    let document = match race {
        true => {
            let race = compare::Race::of(comparison.schemes.len(), runs);
            compare::raced(&comparison, race, run)?
        }
        false => compare::answer(&comparison, run)?,
    };
    Ok(Some(document).filter(Document::is_complete))
}

/// The schemes that gain significantly more than `gain`, the best first, and exceed the captured throughput `there` by
/// as much, if known.
pub fn helping(place: &PointRanking, gain: f64, there: Option<f64>) -> impl Iterator<Item = &Row> {
    place.schemes.iter().filter(move |row| {
        row.helps()
            && row.standing.ratio.is_some_and(|ratio| ratio.low > 1.0 + gain)
            && there.is_none_or(|there| row.standing.value.mean > there * (1.0 + gain))
    })
}

fn variation(difference: String, there: &PointRanking, helps: &[String], gain: f64) -> Variation {
    let best = helping(there, gain, None).next();
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
        what: difference,
        best: best.map(|row| row.name().to_owned()),
        times: best.and_then(|row| row.standing.ratio).map(|ratio| ratio.mean),
        stays,
    }
}
