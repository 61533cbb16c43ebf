//! Figures 3 to 5 (4.2.1): one connection through the same bad periods: basic, with local recovery, and with EBSN.

use lasthop_report::model::{Figure, Table};
use lasthop_report::plot::PacketTrace;
use lasthop_trace::sequence::{BadPeriod, SendKind, Sent, Series};

use super::recovery::BACKOFFS;
use super::{CLAIM, Scheme, WAN};
use crate::figure::figure;
use crate::measure::kbps;
use crate::table::{row, table};
use crate::{Bench, Bound, Claim, Finding, Interrupted};

/// The channel of the example: 10 s good, 4 s bad, constant.
const EXAMPLE: [&str; 4] =
    ["errors.bad=4s", "errors.deterministic=true", "errors.ber-good=0", "errors.ber-bad=1"];
const GOOD_S: f64 = 10.0;
const BAD_S: f64 = 4.0;
/// The vertical axis counts packets modulo this.
const MODULO: u32 = 90;
/// Payload of a packet of 576 bytes.
const PAYLOAD: u32 = 536;

/// One run, with its bad periods.
struct Trace {
    series: Series,
    /// For each bad period, the timeouts in it or before the next.
    expired: Vec<Vec<f64>>,
    throughput: f64,
}

impl Trace {
    fn with_timeout(&self) -> usize {
        self.expired.iter().filter(|times| !times.is_empty()).count()
    }
}

/// The bad periods that begin before `end`.
fn bad_periods(end: f64) -> Vec<BadPeriod> {
    (0_u32..)
        .map(|k| GOOD_S + f64::from(k) * (GOOD_S + BAD_S))
        .take_while(|from_s| *from_s < end)
        .map(|from_s| BadPeriod { from_s, to_s: from_s + BAD_S })
        .collect()
}

fn trace(bench: &Bench<'_>, scheme: Scheme, more: &[&str], seed: u64) -> Option<Trace> {
    let changes = [&EXAMPLE, scheme.changes(), more].concat();
    let recording = bench.record(WAN, &changes, seed);
    let mut series = recording.series.into_iter().next()?;
    // The radio reports a state change with the next frame; these are the true times.
    series.bad = bad_periods(series.end_s);
    let cycle = GOOD_S + BAD_S;
    let expired = series
        .bad
        .iter()
        .map(|bad| {
            let within = |at: &&f64| **at >= bad.from_s && **at < bad.from_s + cycle;
            series.timeouts.iter().filter(within).copied().collect()
        })
        .collect();
    let metrics = &recording.result.metrics;
    Some(Trace { series, expired, throughput: kbps(metrics) })
}

/// One trace for each seed.
fn each_seed(
    bench: &Bench<'_>,
    scheme: Scheme,
    more: &[&str],
    seeds: u32,
) -> Result<Vec<Trace>, Interrupted> {
    let all = bench.each_seed(seeds, |seed| trace(bench, scheme, more, seed))?;
    Ok(all.into_iter().flatten().collect())
}

/// The number of bad periods in all traces, and of those with a timeout.
fn counted(all: &[Trace]) -> (usize, usize) {
    let periods = all.iter().map(|t| t.expired.len()).sum();
    (periods, all.iter().map(Trace::with_timeout).sum())
}

fn mean(all: &[Trace], of: impl Fn(&Trace) -> f64) -> f64 {
    all.iter().map(of).sum::<f64>() / all.len() as f64
}

/// One trace for each seed, with figures of all and the drawing of the first.
fn traces(
    bench: &Bench<'_>,
    finding: &mut Finding,
    scheme: Scheme,
    seeds: u32,
    number: u32,
) -> Result<Vec<Trace>, Interrupted> {
    let all = each_seed(bench, scheme, &[], seeds)?;
    finding.runs = seeds;
    let (periods, expired) = counted(&all);
    finding.measure("bad periods per run", mean(&all, |t| t.expired.len() as f64), "");
    let share = 100.0 * expired as f64 / periods as f64;
    finding.measure("bad periods with a source time-out", share, "%");
    let timeouts = mean(&all, |t| t.series.timeouts.len() as f64);
    finding.measure("source time-outs per run", timeouts, "");
    finding.measure("throughput", mean(&all, |t| t.throughput), "kb/s");
    if let Some(trace) = all.first() {
        finding.tables.push(by_period(trace, number));
        finding.figures.push(drawn(trace, scheme, number));
    }
    Ok(all)
}

fn drawn(trace: &Trace, scheme: Scheme, number: u32) -> Figure {
    let title = format!("Figure {number}: {}", scheme.name());
    let plot =
        PacketTrace { title: &title, series: &trace.series, payload: PAYLOAD, modulo: MODULO }
            .plot();
    figure(
        &plot,
        &title,
        "A mark for each packet that the source sends, seed 1. Packets of 576 bytes, window of 4 KB; the channel \
         is bad for 4 s after each 10 s.",
    )
}

/// The events in each bad period of a trace.
fn by_period(trace: &Trace, number: u32) -> Table {
    let mut rows = table(
        format!("Figure {number}, seed 1"),
        "<bad period | <source time-outs until the next | packets sent again",
    );
    for (bad, expired) in trace.series.bad.iter().zip(&trace.expired) {
        let until = bad.from_s + GOOD_S + BAD_S;
        let again = |s: &&Sent| s.kind != SendKind::First && s.at_s >= bad.from_s && s.at_s < until;
        let again = trace.series.sent.iter().filter(again).count();
        let times: Vec<String> = expired.iter().map(|at| format!("{at:.2} s")).collect();
        let period = format!("{}-{} s", bad.from_s, bad.to_s);
        rows.rows.push(row(&[&period, &times.join(", "), &again.to_string()]));
    }
    rows
}

/// The times at which the source sends packet `number`.
fn sent(series: &Series, number: u32) -> Vec<f64> {
    let start = u64::from(number) * u64::from(PAYLOAD);
    series.sent.iter().filter(|s| s.start == start).map(|s| s.at_s).collect()
}

/// The times in 4.2.1: packet, number of earlier retransmissions, time of the retransmission.
const PRINTED: [(u32, usize, f64); 3] = [(27, 0, 13.75), (44, 0, 25.9), (44, 1, 28.3)];
/// Tolerance of these times, in seconds.
const OFF_S: f64 = 0.15;

pub(super) const F3: Claim = Claim {
    id: "B-F3",
    place: "4.2.1, Figure 3",
    setup: "Tahoe, 576 B packets, 4 KB window, MTU 128 B fragments, 56 kb/s wired, 12.8 kb/s effective \
            wireless, 100 ms tick; deterministic 10 s good / 4 s bad",
    published: "every bad period loses the packets in flight and ends in a time-out; packet 27 times out at \
            13.75 s (Figure 4), packet 44 at 25.9 s, and is retransmitted again at 28.3 s",
    run: Some(f3),
    ..CLAIM
};

/// Figure 3: every bad period ends in a timeout.
fn f3(bench: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
    // Only the phase of an unused clock is random here, so all runs are equal.
    for trace in &traces(bench, finding, Scheme::Basic, 1, 3)? {
        let (with, of) = (trace.with_timeout(), trace.expired.len());
        let share = 100.0 * with as f64 / of as f64;
        let text = format!("{with} of {of} bad periods have a time-out");
        finding.judge("bad periods with a time-out, %,", share, Bound::AtLeast(100.0), text);
        for (number, before, published) in PRINTED {
            let at = sent(&trace.series, number).get(1 + before).copied().unwrap_or(f64::NAN);
            let times = ["once more", "a second time"][before];
            finding.compare(format!("packet {number} is sent {times}"), at, "s", published);
            let text =
                format!("packet {number} is sent {times} at {at:.2} s, wanted {published} s");
            let what = format!("packet {number} is sent {times}, s,");
            let bound = Bound::Within(published - OFF_S, published + OFF_S);
            finding.judge(what, at, bound, text);
        }
        let last = PRINTED[PRINTED.len() - 1].2;
        let again = |number: &u64| {
            let start = number * u64::from(PAYLOAD);
            trace.series.sent.iter().filter(|s| s.start == start && s.at_s < last).count()
        };
        let most = (0..trace.series.sent.len() as u64).map(|number| again(&number)).max();
        let text = format!("before, no packet is sent more than {} times", most.unwrap_or(0));
        let most = most.map_or(f64::NAN, |most| most as f64);
        finding.judge("times that a packet is sent before", most, Bound::AtMost(3.0), text);
    }
    Ok(())
}

pub(super) const F4: Claim = Claim {
    id: "B-F4",
    place: "4.2.1, Figure 4",
    setup: "the same with local recovery (random back-off, at most 13 tries)",
    published: "most bad periods cause no source retransmission, some cause a source time-out and a \
            redundant retransmission",
    cost: 4,
    run: Some(f4),
    ..CLAIM
};

/// Figure 4: local recovery survives most bad periods without the source.
fn f4(bench: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
    let seeds = bench.seeds;
    let all = traces(bench, finding, Scheme::Recovery, seeds, 4)?;
    let (periods, with) = counted(&all);
    let found = format!("{with} of {periods} bad periods have a time-out");
    let share = 100.0 * with as f64 / periods as f64;
    let what = "bad periods with a time-out, %,";
    finding.judge(what, share, Bound::Above(0.0), format!("{found}, wanted at least one"));
    finding.judge(what, share, Bound::Below(50.0), format!("{found}, wanted fewer than half"));
    if !bench.is_shown() {
        return Ok(());
    }
    let first = all.iter().filter_map(|t| t.expired.first()?.first().copied());
    let first: Vec<f64> = first.collect();
    let earliest = first.iter().copied().fold(f64::INFINITY, f64::min);
    finding.note(format!(
        "in {} of {} runs the first bad period has a time-out, the earliest at {earliest:.2} s (published: packet 27, \
         at 13.75 s)",
        first.len(),
        all.len()
    ));
    let mut rows = table(
        "Figure 4 by the back-off, all seeds",
        "<back-off | <bad periods with a time-out | kb/s",
    );
    for (name, more) in BACKOFFS {
        let all = each_seed(bench, Scheme::Recovery, more, seeds)?;
        let (periods, with) = counted(&all);
        let throughput = mean(&all, |t| t.throughput);
        rows.rows.push(row(&[&name, &format!("{with} of {periods}"), &throughput]));
    }
    finding.tables.push(rows);
    Ok(())
}

pub(super) const F5: Claim = Claim {
    id: "B-F5",
    place: "4.2.1, Figure 5",
    setup: "the same with EBSN after every failed attempt",
    published: "no source time-out",
    run: Some(f5),
    ..CLAIM
};

/// Figure 5: with EBSN the source never times out.
fn f5(bench: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
    let all = traces(bench, finding, Scheme::Ebsn, bench.seeds, 5)?;
    let timeouts: usize = all.iter().map(|t| t.series.timeouts.len()).sum();
    let runs = all.len();
    let text = format!("there are {timeouts} source time-outs in {runs} runs, wanted none");
    finding.judge("source time-outs", timeouts as f64, Bound::AtMost(0.0), text);
    Ok(())
}
