//! The limits of the transfers of a cell in two sentences.

use lasthop_observe::metrics::{FlowMetrics, RunMetrics};
use lasthop_observe::timeouts::TimeoutCauses;
use lasthop_proto::event::Cause;
use lasthop_report::number::{plural, short};
use lasthop_sim::runs::{CellResults, Results};

/// Maximum number of cells that are explained below a table.
pub(super) const MAX_CELLS: usize = 8;

/// Minimum share of the time for a limit to be listed.
const MIN_SHARE: f64 = 0.05;

/// Stall time and length of the transfers of a cell, in seconds, and their counts.
#[derive(Default)]
struct Stalls {
    stalled_s: f64,
    total_s: f64,
    stalls: u64,
    timeouts: u64,
}

impl Stalls {
    fn of(cell: &CellResults) -> Stalls {
        let mut sum = Stalls::default();
        for run in &cell.runs {
            for flow in run.metrics.flows.iter().filter(|flow| flow.delivered > 0) {
                sum.stalled_s += flow.stall_time_s;
                sum.total_s += length_s(&run.metrics, flow);
                sum.stalls += flow.stalls;
                sum.timeouts += flow.timeouts;
            }
        }
        sum
    }
}

/// From the opening of a flow to its completion, or to the end of the run.
fn length_s(run: &RunMetrics, flow: &FlowMetrics) -> f64 {
    let opened_s = flow.opened_s.unwrap_or(run.end_s);
    (flow.completed_s.unwrap_or(run.end_s) - opened_s).max(0.0)
}

/// An explanation for each cell in the order of the results, with the title of the cell; none for more than eight cells.
pub fn explanations(results: &Results) -> Vec<(String, String)> {
    if results.cells.len() > MAX_CELLS {
        return Vec::new();
    }
    let cells = results.cells.iter();
    let explained = cells.filter_map(|cell| {
        let harm = without(results, cell).and_then(|other| harm(cell, other));
        let text = [Some(explanation(cell)?), harm].into_iter().flatten();
        Some((results.title(cell), text.collect::<Vec<_>>().join(" ")))
    });
    explained.collect()
}

/// The cell that differs from `cell` by the label `none` on one axis.
fn without<'r>(results: &'r Results, cell: &CellResults) -> Option<&'r CellResults> {
    let differing = |other: &&CellResults| {
        let mut pairs = other.labels.iter().zip(&cell.labels).filter(|(a, b)| a != b);
        pairs.next().is_some_and(|(a, _)| a == "none") && pairs.next().is_none()
    };
    results.cells.iter().find(differing)
}

/// Why `cell` is slower than `other`, which lacks its agent or its link layer: packets lost, by cause, and the signs of
/// loss that the base station hid; `None` if it is not slower with confidence.
fn harm(cell: &CellResults, other: &CellResults) -> Option<String> {
    let [rate, other_rate] = [cell, other].map(|cell| cell.mean("throughput"));
    if rate?.high() >= other_rate?.low() {
        return None;
    }
    let sum = |cell: &CellResults, count: &dyn Fn(&FlowMetrics) -> u64| -> u64 {
        cell.runs.iter().flat_map(|run| &run.metrics.flows).map(count).sum()
    };
    let more =
        |count: &dyn Fn(&FlowMetrics) -> u64| sum(cell, count).saturating_sub(sum(other, count));
    let lost = more(&|flow| flow.dropped.total_of(Cause::is_loss));
    let queue = more(&|flow| flow.dropped.get(Cause::QueueFull)).min(lost);
    let twice = more(&|flow| flow.redundant);
    let delay = |cell: &CellResults| {
        let flows = cell.runs.iter().flat_map(|run| &run.metrics.flows);
        let (sum, packets) = flows.fold((0.0, 0), |(sum, packets), flow| {
            let of = flow.delay.packets;
            (sum + flow.delay.mean_s * of as f64, packets + of)
        });
        short(sum / packets as f64)
    };
    let mut text = format!(
        "Slower than without it: {lost} more packets lost, {queue} of them in a full queue, and {twice} more arrived \
         twice; the mean delay is {} s instead of {} s.",
        delay(cell),
        delay(other),
    );
    let hidden = sum(cell, &|flow| flow.dropped_acks.get(Cause::SuppressedDupAck));
    if hidden > 0 {
        let again = sum(cell, &FlowMetrics::local_retransmissions);
        let timer = sum(cell, &|flow| flow.originated.get(Cause::LocalTimeout));
        text += &format!(
            " The base station hid {} from the sender and repeated {}, {timer} of them by its timer",
            plural(hidden, "duplicate ACK"),
            plural(again, "packet"),
        );
        text += match 2 * queue > lost {
            true => ": it hid the drops of the queue too, so the sender slowed down late.",
            false => ".",
        };
    }
    Some(text)
}

/// Share of stalls, causes of timeouts and limits of the senders of a cell, as a text; `None` if no flow delivered
/// data.
fn explanation(cell: &CellResults) -> Option<String> {
    let stalls = Stalls::of(cell);
    if stalls.total_s <= 0.0 {
        return None;
    }
    let mut sentences = vec![stalled(&stalls, cell.runs.len())];
    let causes = cell.runs.iter().filter_map(|run| run.metrics.timeout_causes);
    sentences.extend(causes.reduce(TimeoutCauses::plus).and_then(|causes| expired(&causes)));
    sentences.extend(limited(cell));
    Some(sentences.join(" "))
}

fn stalled(sum: &Stalls, runs: usize) -> String {
    let of_each =
        if runs > 1 { format!(" of {}", plural(runs as u64, "run")) } else { String::new() };
    if sum.stalls == 0 {
        return match sum.timeouts {
            0 => format!("No transfer{of_each} stalled, and no timer expired."),
            n => format!("No transfer{of_each} stalled; {} cost less.", plural(n, "timeout")),
        };
    }
    let (stalled, total) = (sum.stalled_s, sum.total_s);
    let share = 100.0 * stalled / total;
    let expired = match sum.timeouts {
        0 => "no timer expired".to_owned(),
        n => format!("{} expired", plural(n, "timer")),
    };
    format!(
        "{} took {stalled:.1} of {total:.1} s{of_each} ({share:.0} %); {expired}.",
        plural(sum.stalls, "stall")
    )
}

/// The most frequent causes of timeouts, and the remedy that would have avoided most of them.
fn expired(causes: &TimeoutCauses) -> Option<String> {
    let by_cause = [
        (causes.no_duplicate_acks, "without a duplicate ACK"),
        (causes.few_duplicate_acks, "after one or two duplicate ACKs"),
        (causes.in_recovery, "during a fast recovery"),
        (causes.repeated, "for a segment that a timeout had repeated"),
    ];
    let mut named: Vec<(u64, &str)> = by_cause.into_iter().filter(|(n, _)| *n > 0).collect();
    named.sort_by_key(|(n, _)| core::cmp::Reverse(*n));
    named.truncate(2);
    if named.is_empty() {
        return None;
    }
    let named: Vec<String> = named.iter().map(|(n, why)| format!("{n} {why}")).collect();
    let remedies = [
        (causes.avoided_by_limited_transmit, "limited transmit (RFC 3042)"),
        (causes.avoided_by_sack, "SACK"),
        (causes.avoided_by_tail_loss_probe, "a tail loss probe (RFC 8985)"),
    ];
    let best = remedies.into_iter().max_by_key(|(n, _)| *n).filter(|(n, _)| *n > 0);
    let best = best.map_or_else(String::new, |(n, remedy)| format!("; {remedy} avoids up to {n}"));
    Some(format!("Timeouts: {}{best}.", named.join(", ")))
}

/// Shares of the time for which each limit stopped the senders.
fn limited(cell: &CellResults) -> Option<String> {
    const LIMITS: [(&str, &str); 5] = [
        ("limited_application", "the application"),
        ("limited_send_buffer", "the send buffer"),
        ("limited_receive_window", "the receive window"),
        ("limited_congestion_window", "the congestion window"),
        ("limited_pacing", "pacing"),
    ];
    let known = |name: &str| cell.mean(name).map(|summary| summary.mean);
    let carried = |flow: &FlowMetrics| flow.delivered > 0;
    let flows = || cell.runs.iter().flat_map(|run| &run.metrics.flows);
    if known("limited_application").is_none() {
        let unknown = flows().any(carried);
        return unknown.then(|| {
            "The limits of the sender are unknown: QUIC and Linux before 4.10 do not count them.".to_owned()
        });
    }
    // Linux has a single counter for both.
    let joint = known("limited_pacing").is_none();
    let mut shares = LIMITS.map(|(name, limit)| match name {
        "limited_congestion_window" if joint => (known(name), "the congestion window or pacing"),
        _ => (known(name), limit),
    });
    shares.sort_by(|a, b| b.0.unwrap_or(0.0).total_cmp(&a.0.unwrap_or(0.0)));
    let named = shares
        .iter()
        .filter_map(|(share, limit)| Some((share.filter(|s| *s >= MIN_SHARE)?, limit)));
    let named: Vec<String> = named
        .enumerate()
        .map(|(i, (share, limit))| {
            let share = format!("{:.0} %", 100.0 * share);
            match i {
                0 => format!("{limit} limited senders for {share} of the time"),
                _ => format!("{limit} for {share}"),
            }
        })
        .collect();
    let mut text = named.join(", ");
    text.get_mut(..1)?.make_ascii_uppercase();
    Some(text + ".")
}
