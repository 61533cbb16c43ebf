//! The model beside what was captured: how far apart they are, and what would bring them together.

use lasthop_analyze::Cause;
use lasthop_lab::CellResults;
use lasthop_proto::units::{Probability, Rate};
use lasthop_trace::stats::Summary;
use serde::Serialize;

use super::estimate::Captured;
use super::link::{Duplex, Link};
use crate::capture::congestion::{Control, Likeness};
use crate::{Error, Runner, Source};

/// Throughputs that are further apart, as a share of the captured one, differ.
pub const AGREES: f64 = 0.15;
/// Losses that are so many times those of the link are more.
const MORE: f64 = 1.1;
/// Standard deviations from the mean that one transfer may be by chance.
const CHANCE: f64 = 2.0;
/// Runs of the model, at most.
const RUNS: u32 = 5;

/// What a sender did on a path.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Figures {
    /// Payload, each byte once, in bytes a second.
    pub throughput: f64,
    /// Lost packets by packets with data.
    pub loss: f64,
    /// The mean round trip in seconds.
    pub rtt: f64,
    /// Bytes under way on the mean: throughput by round trip.
    pub window: f64,
    /// The standard deviation of the throughput from run to run, as a share of its mean; nothing of one run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spread: Option<f64>,
}

impl Figures {
    fn new(throughput: f64, loss: f64, rtt: f64) -> Figures {
        Figures { throughput, loss, rtt, window: throughput * rtt, spread: None }
    }

    /// Means over the runs of a cell.
    fn of(cell: &CellResults) -> Figures {
        let mean = |of: &dyn Fn(&lasthop_lab::RunResult) -> f64| {
            Summary::of(&cell.runs.iter().map(of).collect::<Vec<f64>>()).mean
        };
        let flow = |sum: fn(&lasthop_trace::metrics::FlowMetrics) -> f64| {
            move |run: &lasthop_lab::RunResult| run.metrics.flows.iter().map(sum).sum::<f64>()
        };
        let sent = mean(&flow(|f| f.originated.total() as f64));
        let lost = mean(&flow(|f| f.dropped.total() as f64));
        let flows = mean(&flow(|_| 1.0)).max(1.0);
        let rtt = mean(&flow(|f| f.srtt.mean_s)) / flows;
        let all: Vec<f64> = cell.runs.iter().map(|run| run.metrics.aggregate_throughput).collect();
        let throughput = Summary::of(&all);
        let spread = (throughput.n > 1).then(|| throughput.sd / throughput.mean.max(1.0));
        Figures { spread, ..Figures::new(throughput.mean, lost / sent.max(1.0), rtt) }
    }
}

/// The model beside the capture.
#[derive(Clone, Debug, Serialize)]
pub struct Beside {
    /// What was captured.
    pub captured: Figures,
    /// The modelled sender on the modelled link.
    pub modelled: Figures,
    /// The modelled throughput by the captured one.
    pub ratio: f64,
    /// Whether they are closer than [`AGREES`].
    pub agrees: bool,
    /// What would explain the difference, a sentence each.
    pub why: Vec<String>,
    /// Which congestion control the capture looks like.
    pub likeness: Likeness,
}

/// Whether one transfer may be so far from the mean of `modelled` by which of its packets were lost.
fn chance(modelled: &Figures, captured: &Captured) -> Option<String> {
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

/// What the sender of `link` does there; nothing if somebody asked to stop.
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
    Ok(cell.map(Figures::of))
}

/// The model beside what was captured; nothing if somebody asked to stop.
pub(super) fn beside<E: From<Error>>(
    link: &Link,
    rates: Option<(Rate, Rate)>,
    captured: &Captured,
    runs: u32,
    run: &mut Runner<'_, E>,
) -> Result<Option<Beside>, E> {
    let runs = runs.min(RUNS);
    let Some(figures) = modelled(link, runs, run)? else { return Ok(None) };
    let by = |figures: Figures| figures.throughput / captured.throughput.max(1.0);
    let mut beside = Beside {
        captured: Figures::new(captured.throughput, captured.loss, captured.rtt),
        modelled: figures,
        ratio: by(figures),
        agrees: close(by(figures)),
        why: Vec::new(),
        likeness: captured.likeness.clone(),
    };
    if beside.agrees {
        return Ok(Some(beside));
    }
    if let Some(idle) = captured.idle {
        let text = "the application had nothing to send for {} % of the time";
        beside.why.push(text.replace("{}", &format!("{:.0}", idle * 100.0)));
    }
    if let Some(bytes) = link.window {
        beside
            .why
            .push(format!("a window of {bytes} B held the sender, which may be its own buffer"));
    }
    if let Some(why) = chance(&figures, captured) {
        beside.why.push(why);
    }
    for (what, other) in explanations(link, rates, captured) {
        let Some(figures) = modelled(&other, runs, run)? else { return Ok(None) };
        if close(by(figures)) {
            beside.why.push(format!("it would agree {what}"));
        }
    }
    Ok(Some(beside))
}

/// Links that may be meant instead, and what sets them apart.
fn explanations(
    link: &Link,
    rates: Option<(Rate, Rate)>,
    captured: &Captured,
) -> Vec<(String, Link)> {
    let mut all = Vec::new();
    for rate in rates.map_or(Vec::new(), |(low, high)| vec![low, high]) {
        if rate != link.rate {
            let rate_back = if link.rate_back == link.rate { rate } else { link.rate_back };
            let what = format!("with a link of {rate} (`--rate {rate}`)");
            all.push((what, Link { rate, rate_back, ..link.clone() }));
        }
    }
    if link.loss.get() > 0.0 {
        let what = "if its losses were a full queue's (`--loss 0`)".to_owned();
        all.push((what, Link { loss: Probability::ZERO, ..link.clone() }));
    }
    let more = captured.loss > link.loss.get() * MORE;
    if let Some(loss) = Probability::new(captured.loss).filter(|_| more) {
        let percent = (captured.loss * 1e4).round() / 100.0;
        let what = format!("if all of its losses were the link's (`--loss {percent}%`)");
        all.push((what, Link { loss, ..link.clone() }));
    }
    for (word, duplex) in Duplex::WORDS.into_iter().filter(|(_, duplex)| *duplex != link.duplex) {
        let what = format!("on a link of another duplex (`--duplex {word}`)");
        all.push((what, Link { duplex, ..link.clone() }));
    }
    // Without SACK it may be the Reno of before RFC 2582.
    let old = (link.sender == "newreno").then_some("reno");
    let others = Control::ALL.map(Control::word).into_iter().chain(old);
    for word in others.filter(|word| *word != link.sender) {
        let what = format!("with another sender (`--sender {word}`)");
        all.push((what, Link { sender: word.to_owned(), ..link.clone() }));
    }
    if captured.cause == Cause::Queue {
        // A short queue that was hardly ever empty.
        let what = "with a longer queue (`--queue 200p`)".to_owned();
        all.push((what, Link { queue: "200p".to_owned(), ..link.clone() }));
    }
    all
}
