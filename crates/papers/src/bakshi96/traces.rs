//! Figures 3 to 5 (4.2.1): one connection through the same bad periods: basic, with local recovery, and with EBSN.

use lasthop_observe::sequence::{BadPeriod, SendKind, SentPacket, Series};
use lasthop_observe::stats::Summary;
use lasthop_report::model::{Figure, Table};
use lasthop_report::plot::PacketTrace;

use super::recovery::ALTERNATIVES;
use super::setup::{RT_MAX, Scheme, WAN};
use crate::measure::kbps;
use crate::table::{row, table};
use crate::{Bench, Bound, Estimate, Finding, Interrupted};

/// The channel of the example: 10 s good, 4 s bad, constant. Its link layer has the stated RT_max.
const EXAMPLE: [&str; 5] =
    ["errors.bad=4s", "errors.deterministic=true", "errors.ber-good=0", "errors.ber-bad=1", RT_MAX];
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
    finding.measure("bad periods with a source timeout", share, "%");
    let timeouts = mean(&all, |t| t.series.timeouts.len() as f64);
    finding.measure("source timeouts per run", timeouts, "");
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
    Figure::new(
        &plot,
        &title,
        "A mark for each packet that the source sends, the first seed. Packets of 576 bytes, window of 4 KB; \
         the channel \
         is bad for 4 s after each 10 s.",
    )
}

/// The events in each bad period of a trace.
fn by_period(trace: &Trace, number: u32) -> Table {
    let mut rows = table(
        format!("Figure {number}, the first seed"),
        "<bad period | <source timeouts until the next | packets retransmitted",
    );
    for (bad, expired) in trace.series.bad.iter().zip(&trace.expired) {
        let until = bad.from_s + GOOD_S + BAD_S;
        let again =
            |s: &&SentPacket| s.kind != SendKind::First && s.at_s >= bad.from_s && s.at_s < until;
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

/// The times of Figure 3 in 3.4 and 4.2.1: packet, number of earlier retransmissions, time of the retransmission.
const PRINTED: [(u32, usize, f64); 2] = [(44, 0, 25.9), (44, 1, 28.3)];
/// The packets lost in the bad period of 24 to 28 s (4.2.1).
const LOST: (u32, u32) = (44, 50);
/// The timeout in Figure 4: packet and time (4.2.1).
const LATE: (u32, f64) = (27, 13.75);
/// Tolerance of these times, in seconds.
const OFF_S: f64 = 0.15;

/// Figure 3: every bad period ends in a timeout.
pub(super) fn f3(bench: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
    // Only the phase of an unused clock is random here, so all runs are equal.
    for trace in &traces(bench, finding, Scheme::Basic, 1, 3)? {
        let (with, of) = (trace.with_timeout(), trace.expired.len());
        let share = 100.0 * with as f64 / of as f64;
        let text = format!("{with} of {of} bad periods have a timeout");
        finding.judge("bad periods with a timeout, %,", share, Bound::AtLeast(100.0), text);
        for (number, before, published) in PRINTED {
            let at = sent(&trace.series, number).get(1 + before).copied().unwrap_or(f64::NAN);
            let times = ["once more", "a second time"][before];
            finding.compare(format!("packet {number} is sent {times}"), at, "s", published);
            let quantity = format!("packet {number} is sent {times}, s,");
            finding.within(quantity, at, published - OFF_S, published + OFF_S);
        }
        let within = trace.series.lost.iter().filter(|lost| (24.0..28.0).contains(&lost.at_s));
        let numbers: Vec<f64> = within.map(|l| (l.start / u64::from(PAYLOAD)) as f64).collect();
        let first = numbers.iter().copied().fold(f64::INFINITY, f64::min);
        let last = numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        for (quantity, got, published) in [("first", first, LOST.0), ("last", last, LOST.1)] {
            let published = f64::from(published);
            finding.compare(format!("{quantity} packet lost from 24 to 28 s"), got, "", published);
            let quantity = format!("{quantity} packet lost from 24 to 28 s");
            finding.within(quantity, got, published, published);
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

/// Figure 4: local recovery survives most bad periods without the source.
pub(super) fn f4(bench: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
    // 20 seeds leave the share of bad periods uncertain by two points, and it is close to half.
    let seeds = bench.many * bench.seeds;
    let all = traces(bench, finding, Scheme::Recovery, seeds, 4)?;
    let with: Vec<f64> = all.iter().map(|t| t.with_timeout() as f64).collect();
    let periods: Vec<f64> = all.iter().map(|t| t.expired.len() as f64).collect();
    let share = Estimate::of(&[&with, &periods], |m| 100.0 * m[0] / m[1]);
    finding.above("bad periods with a timeout, %,", share, 0.0);
    finding.below("bad periods with a timeout, %,", share, 50.0);
    // The timeout in the first bad period: its packet and its time.
    let late = |t: &Trace| {
        let at = *t.expired.first()?.first()?;
        let again =
            |sent: &&SentPacket| (sent.at_s - at).abs() < 0.001 && sent.kind != SendKind::First;
        let packet = t.series.sent.iter().find(again)?.start / u64::from(PAYLOAD);
        Some((packet as f64, at))
    };
    let (packets, times): (Vec<f64>, Vec<f64>) = all.iter().filter_map(late).unzip();
    let mean_of = |of: &[f64]| match of.len() {
        0 => Estimate::from(f64::NAN),
        _ => Estimate::from(Summary::of(of)),
    };
    let (number, published) = (f64::from(LATE.0), LATE.1);
    finding.compare("first timeout from 10 to 24 s, packet", mean_of(&packets), "", number);
    finding.compare("first timeout from 10 to 24 s", mean_of(&times), "s", published);
    finding.within("first timeout from 10 to 24 s, packet", mean_of(&packets), number, number);
    let quantity = "first timeout from 10 to 24 s, s,";
    finding.within(quantity, mean_of(&times), published - OFF_S, published + OFF_S);
    let calm = all.iter().filter(|t| t.expired.get(1).is_some_and(Vec::is_empty)).count();
    let calm = Estimate::share(calm, all.len());
    finding.above("runs without a timeout from 24 to 38 s, %,", calm, 0.0);
    if !bench.is_shown() {
        return Ok(());
    }
    finding.note(format!("{} of {} runs time out from 10 to 24 s", times.len(), all.len()));
    let mut rows =
        table("Figure 4 by the link layer", "<link layer | bad periods with a timeout, % | kb/s");
    for (name, more) in ALTERNATIVES {
        let all = each_seed(bench, Scheme::Recovery, more, bench.seeds)?;
        let (periods, with) = counted(&all);
        let throughput = mean(&all, |t| t.throughput);
        rows.rows.push(row(&[&name, &(100.0 * with as f64 / periods as f64), &throughput]));
    }
    finding.tables.push(rows);
    Ok(())
}

/// Figure 5: with EBSN the source never times out.
pub(super) fn f5(bench: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
    let all = traces(bench, finding, Scheme::Ebsn, bench.seeds, 5)?;
    let timeouts: usize = all.iter().map(|t| t.series.timeouts.len()).sum();
    let runs = all.len();
    let text = format!("there are {timeouts} source timeouts in {runs} runs, wanted none");
    finding.judge("source timeouts", timeouts as f64, Bound::AtMost(0.0), text);
    Ok(())
}
