//! Compares the model with the capture, and searches links that would explain a difference.

use lasthop_analyze::Cause;
use lasthop_observe::stats::Summary;
use lasthop_proto::units::{Probability, Rate, Span};
use lasthop_sim::runs::CellResults;
use serde::Serialize;

use super::estimate::CapturedSender;
use super::link::{Duplex, Link};
use crate::capture::congestion::{Control, Recognition};
use crate::{Error, Runner, Source};

/// Maximum relative difference of two throughputs that agree.
pub const AGREES: f64 = 0.15;
/// Loss rate from which losses that the model lacks are named.
const MANY: f64 = 0.001;
/// Minimum ratio of observed losses to those of the link that counts as more.
const MORE: f64 = 1.1;
/// Standard deviations from the mean within which a single transfer may be by chance.
const CHANCE: f64 = 2.0;
/// Maximum number of runs of the model.
const RUNS: u32 = 5;

/// Figures of a sender on a path.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Figures {
    /// Payload without retransmissions, in bytes per second.
    pub throughput: f64,
    /// Lost packets per data packet.
    pub loss: f64,
    /// Mean round trip in seconds.
    pub rtt: f64,
    /// Mean flight in bytes: throughput times round trip.
    pub window: f64,
    /// Standard deviation of the throughput between runs, as a share of its mean; `None` for a single run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spread: Option<f64>,
}

impl Figures {
    fn new(throughput: f64, loss: f64, rtt: f64) -> Figures {
        Figures { throughput, loss, rtt, window: throughput * rtt, spread: None }
    }

    /// Means over the runs of a cell; an ACK returns after `back` seconds.
    fn of(cell: &CellResults, back: f64) -> Figures {
        let mean = |of: &dyn Fn(&lasthop_sim::runs::RunResult) -> f64| {
            Summary::of(&cell.runs.iter().map(of).collect::<Vec<f64>>()).mean
        };
        let flow = |sum: fn(&lasthop_observe::metrics::FlowMetrics) -> f64| {
            move |run: &lasthop_sim::runs::RunResult| run.metrics.flows.iter().map(sum).sum::<f64>()
        };
        let sent = mean(&flow(|f| f.originated.total() as f64));
        let lost = mean(&flow(|f| f.dropped.total() as f64));
        let flows = mean(&flow(|_| 1.0)).max(1.0);
        // Of all packets: the sender's estimates are sampled at losses, where queues are full.
        let rtt = mean(&flow(|f| f.delay.mean_s)) / flows + back;
        let all: Vec<f64> = cell.runs.iter().map(|run| run.metrics.aggregate_throughput).collect();
        let throughput = Summary::of(&all);
        let spread = (throughput.n > 1).then(|| throughput.sd / throughput.mean.max(1.0));
        Figures { spread, ..Figures::new(throughput.mean, lost / sent.max(1.0), rtt) }
    }
}

/// The model compared with the capture.
#[derive(Clone, Debug, Serialize)]
pub struct ModelComparison {
    pub captured: Figures,
    /// The modelled sender on the modelled link.
    pub modelled: Figures,
    /// Modelled throughput divided by captured throughput.
    pub ratio: f64,
    /// Whether they differ by at most [`AGREES`].
    pub agrees: bool,
    /// Possible explanations of the difference, a sentence each.
    pub why: Vec<String>,
    /// The congestion control that fits the capture best.
    pub likeness: Recognition,
}

/// The note that the difference may be chance, if a single transfer may deviate so far because of its lost packets.
fn chance(modelled: &Figures, captured: &CapturedSender) -> Option<String> {
    let spread = modelled.spread?;
    let far = (captured.throughput / modelled.throughput.max(1.0) - 1.0).abs();
    (far <= CHANCE * spread).then(|| {
        format!(
            "one transfer differs from the next by {:.0} % in the model (standard deviation), by which packets are lost",
            spread * 100.0
        )
    })
}

fn close(ratio: f64) -> bool {
    (ratio - 1.0).abs() <= AGREES
}

/// The figures of the sender of `link` in the model; `None` if the user interrupted.
fn modelled<E: From<Error>>(
    link: &Link,
    runs: u32,
    run: &mut Runner<'_, E>,
) -> Result<Option<Figures>, E> {
    let text = link.scenario(runs)?;
    let source = Source { origin: "the link", name: "advise", text: &text };
    let (plan, _) = source.plan(&[])?;
    let results = run(&plan)?;
    let cell = results.cells.first().filter(|cell| cell.runs.len() == runs as usize);
    let request = link.kind.map_or(Span::ZERO, |kind| Span(kind.own_round_trip().0 / 2));
    let back = (link.delay + link.wired_delay + request).as_secs_f64();
    Ok(cell.map(|cell| Figures::of(cell, back)))
}

/// Compares the model with the capture; `None` if the user interrupted.
pub(super) fn compare_with_capture<E: From<Error>>(
    link: &Link,
    rates: Option<(Rate, Rate)>,
    captured: &CapturedSender,
    runs: u32,
    run: &mut Runner<'_, E>,
) -> Result<Option<ModelComparison>, E> {
    let runs = runs.min(RUNS);
    let Some(figures) = modelled(link, runs, run)? else { return Ok(None) };
    let by = |figures: Figures| figures.throughput / captured.throughput.max(1.0);
    let mut comparison = ModelComparison {
        captured: Figures::new(captured.throughput, captured.loss, captured.rtt),
        modelled: figures,
        ratio: by(figures),
        agrees: close(by(figures)),
        why: Vec::new(),
        likeness: captured.recognition.clone(),
    };
    if comparison.agrees {
        return Ok(Some(comparison));
    }
    if let Some(idle) = captured.idle {
        let text = "the application had nothing to send for {} % of the time";
        comparison.why.push(text.replace("{}", &format!("{:.0}", idle * 100.0)));
    }
    if let Some(bytes) = link.window {
        comparison
            .why
            .push(format!("a window of {bytes} B held the sender, which may be its own buffer"));
    }
    if captured.loss > MANY && captured.loss > MORE * figures.loss {
        comparison.why.push(format!(
            "{:.2} % of the captured data packets were lost, and {:.2} % in the model: this link repairs its losses itself, or \
             they happened elsewhere",
            captured.loss * 100.0,
            figures.loss * 100.0
        ));
    }
    if let Some(why) = chance(&figures, captured) {
        comparison.why.push(why);
    }
    for (condition, other) in explanations(link, rates, captured) {
        let Some(figures) = modelled(&other, runs, run)? else { return Ok(None) };
        if close(by(figures)) {
            comparison.why.push(format!("it would agree {condition}"));
        }
    }
    Ok(Some(comparison))
}

/// Other links that could explain the capture, with the description of their difference.
fn explanations(
    link: &Link,
    rates: Option<(Rate, Rate)>,
    captured: &CapturedSender,
) -> Vec<(String, Link)> {
    let mut all = Vec::new();
    for rate in rates.map_or(Vec::new(), |(low, high)| vec![low, high]) {
        if rate != link.rate {
            let rate_back = if link.rate_back == link.rate { rate } else { link.rate_back };
            let condition = format!("with a link of {rate} (`--rate {rate}`)");
            all.push((condition, Link { rate, rate_back, ..link.clone() }));
        }
    }
    if link.loss.get() > 0.0 {
        let condition = "if its losses were a full queue's (`--loss 0`)".to_owned();
        all.push((condition, Link { loss: Probability::ZERO, ..link.clone() }));
    }
    let more = captured.loss > link.loss.get() * MORE;
    if let Some(loss) = Probability::new(captured.loss).filter(|_| more) {
        let percent = (captured.loss * 1e4).round() / 100.0;
        let condition = format!("if all of its losses were the link's (`--loss {percent}%`)");
        all.push((condition, Link { loss, ..link.clone() }));
    }
    for (word, duplex) in Duplex::WORDS.into_iter().filter(|(_, duplex)| *duplex != link.duplex) {
        let condition = format!("on a link of another duplex (`--duplex {word}`)");
        all.push((condition, Link { duplex, ..link.clone() }));
    }
    // Without SACK it may be a Reno from before RFC 2582.
    let old = (link.sender == "newreno").then_some("reno");
    let others = Control::ALL.map(Control::word).into_iter().chain(old);
    for word in others.filter(|word| *word != link.sender) {
        let condition = format!("with another sender (`--sender {word}`)");
        all.push((condition, Link { sender: word.to_owned(), ..link.clone() }));
    }
    if captured.cause == Cause::Queue {
        // A short queue that is hardly ever empty in the capture.
        let condition = "with a longer queue (`--queue 200p`)".to_owned();
        all.push((condition, Link { queue: "200p".to_owned(), ..link.clone() }));
    }
    all
}
