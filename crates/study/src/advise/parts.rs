//! Parts of the advice in words, for a terminal and for the page.

use lasthop_analyze::Diagnosis;
use lasthop_report::number::{KIB, in_mbit, short};
use lasthop_scenario::AS_IS;

use super::{Advice, Elsewhere, Fault, ModelComparison, Shorter, Waiting};
use crate::capture::congestion::Recognition;
use crate::compare::PointRanking;
use crate::tables;

/// Minimum share of the link's capacity that needs no remedy.
const COPES: f64 = 0.8;

/// The answer if a fault determines the rate of the transfer.
pub const NOT_SIMULATED: &str = "No scheme is simulated: the rate of this transfer is the fault's, not the link's. \
    Capture again after the repair, or state the link, `--rate 20mbit`.";

/// Lines below a heading.
#[derive(Clone, Debug)]
pub struct Part {
    pub title: String,
    pub lines: Vec<String>,
}

impl Part {
    fn new(title: &str, lines: Vec<String>) -> Part {
        Part { title: title.to_owned(), lines }
    }
}

/// Faults in the capture with their remedies; none without a fault.
pub fn repairs(faults: &[Fault]) -> Option<Part> {
    let of = |Fault { transfer, diagnosis, .. }: &Fault| {
        let of = transfer.as_ref().map_or(String::new(), |title| format!("{title}: "));
        let Diagnosis { confidence, evidence, remedy, .. } = diagnosis;
        [format!("{of}{evidence} ({confidence})"), format!("    remedy: {remedy}")]
    };
    let lines = faults.iter().flat_map(of).collect();
    let part = Part::new("What the capture shows, to be repaired first", lines);
    (!faults.is_empty()).then_some(part)
}

/// The model compared with the capture, with reasons for differences.
pub fn model(comparison: &ModelComparison) -> Part {
    let mut lines = Vec::new();
    if !comparison.agrees {
        lines.push(format!(
            "the model has {} times the throughput of the capture: the results below are the model's",
            short(comparison.ratio)
        ));
        lines.extend(comparison.why.iter().cloned());
        if comparison.why.is_empty() {
            lines.push("no tested change of the model explains the difference".to_owned());
        }
    }
    let Recognition { control, confidence, evidence, .. } = &comparison.likeness;
    lines.push(match control {
        Some(control) => {
            let sure = (confidence * 100.0).min(99.0);
            format!("the sender looks like {}, {sure:.0} % sure: {evidence}", control.name())
        }
        None => {
            format!("the capture does not show the congestion control of the sender: {evidence}")
        }
    });
    for (source, figures) in
        [("captured", &comparison.captured), ("modelled", &comparison.modelled)]
    {
        lines.push(format!(
            "{source}  {}, {:.2} % lost, round trip {:.0} ms, {:.0} KiB in flight",
            in_mbit(figures.throughput),
            figures.loss * 100.0,
            figures.rtt * 1e3,
            figures.window / KIB
        ));
    }
    Part::new("The capture and the model", lines)
}

/// The present rate of the sender.
pub fn present(advice: &Advice, place: &PointRanking) -> Option<String> {
    let rate = in_mbit(place.scheme(AS_IS)?.standing.value.mean);
    let share = advice.share_of_capacity.map_or(String::new(), |share| {
        format!(", {:.0} % of the link's capacity with these losses", 100.0 * share)
    });
    Some(format!("The sender as it is gets {rate}{share}"))
}

/// Queueing delay and its remedies.
pub fn waiting(all: &Waiting, threshold: f64) -> Part {
    let &Waiting { delay, empty, ref shorter, ref elsewhere } = all;
    let ms = |seconds: f64| short((seconds * 1e3).round());
    let mut lines = vec![format!(
        "data takes {} ms from end to end at the median, {} ms of it in queues; other traffic in these queues waits as \
         long",
        ms(delay),
        ms(delay - empty),
    )];
    if shorter.is_empty() {
        lines.push("no tested scheme halves this delay without a loss of throughput".to_owned());
    }
    for Shorter { name, delay, times } in shorter {
        lines.push(format!("{name:<22} {} ms, {times:.2} times the throughput", ms(*delay)));
    }
    for Elsewhere { name, link, requests, times } in elsewhere {
        let requests = requests.as_ref().map_or(String::new(), |period| {
            format!(", where a device may request a grant every {period}")
        });
        lines.push(format!(
            "{name:<22} not here: {times:.2} times the throughput on the same link as `--link {link}`{requests}"
        ));
    }
    if !shorter.is_empty() {
        let percent = short(threshold * 100.0);
        lines.push(format!(
            "(schemes that at least halve the waiting time, and cost at most {percent} % of the throughput)"
        ));
    }
    Part::new("The queue", lines)
}

/// Reason for no advice: the sender is fast enough, the runs are too few, or no scheme fits; and sentences about it.
pub fn nothing(advice: &Advice, place: &PointRanking, faulty: bool) -> (&'static str, Vec<String>) {
    let mut others = place.schemes.iter().filter(|row| row.name() != AS_IS);
    let best = others.find(|row| row.standing.ratio.is_some());
    let may_help = best
        .and_then(|row| row.standing.ratio)
        .is_some_and(|ratio| ratio.mean > 1.0 + advice.threshold);
    let why = match advice.share_of_capacity {
        _ if faulty => "Nothing beyond the repair above.",
        _ if may_help => "Nothing for certain.",
        _ if advice.beside.as_ref().is_some_and(|it| !it.agrees) => {
            "Nothing in the model, which differs from the capture: see its explanations above."
        }
        Some(share) if share < COPES => "Nothing: no scheme addresses the limit of this sender.",
        _ => "Nothing: your sender already copes.",
    };
    let percent = short(advice.threshold * 100.0);
    let mut text = vec![format!("No scheme gains more than {percent} % with confidence.")];
    if let Some(best) = best {
        let more = if may_help { " More runs may decide: `--seeds 100`." } else { "" };
        text.push(format!(
            "The best of the others, {}, would have {} times the throughput.{more}",
            best.name(),
            tables::times(best, best.standing.ratio.as_ref(), 2)
        ));
    }
    (why, text)
}
