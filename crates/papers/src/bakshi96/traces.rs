//! Figures 3 to 5 (4.2.1): one connection through the same bad periods, with nothing, local recovery, and EBSN.

use lasthop_report::model::{Column, Figure, Measured, Table};
use lasthop_report::plot::PacketTrace;
use lasthop_trace::sequence::{BadPeriod, Series};

use super::recovery::BACKOFFS;
use super::{Scheme, WAN, figure};
use crate::bench::{Bench, Interrupted};
use crate::finding::{Finding, short};

/// The channel of the example: 10 s good, 4 s bad, as regular as clockwork.
const EXAMPLE: [&str; 4] =
    ["errors.bad=4s", "errors.deterministic=true", "errors.ber-good=0", "errors.ber-bad=1"];
const GOOD_S: f64 = 10.0;
const BAD_S: f64 = 4.0;
/// Packet numbers begin again there.
const MODULO: u32 = 90;
/// Payload of a packet of 576 bytes.
const PAYLOAD: u32 = 536;

/// One run, with its bad periods.
struct Trace {
    series: Series,
    /// For each bad period, when the timer expired in it or before the next.
    expired: Vec<Vec<f64>>,
    throughput: f64,
    /// The longest time in which nothing was delivered, in seconds.
    longest_stall: f64,
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
    // The radio tells a turn with the next frame; these are the turns themselves.
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
    let longest_stall = metrics.flows.iter().map(|f| f.longest_stall_s).fold(0.0, f64::max);
    Some(Trace { series, expired, throughput: super::kbps(metrics), longest_stall })
}

/// One trace for each seed.
fn each_seed(
    bench: &Bench<'_>,
    scheme: Scheme,
    more: &[&str],
    seeds: u32,
) -> Result<Vec<Trace>, Interrupted> {
    let mut all = Vec::new();
    for seed in 1..=u64::from(seeds) {
        if bench.stopped() {
            return Err(Interrupted);
        }
        all.extend(trace(bench, scheme, more, seed));
    }
    Ok(all)
}

/// How many bad periods there are in all traces, and how many of them have a time-out.
fn counted(all: &[Trace]) -> (usize, usize) {
    let periods = all.iter().map(|t| t.expired.len()).sum();
    (periods, all.iter().map(Trace::with_timeout).sum())
}

fn mean(all: &[Trace], of: impl Fn(&Trace) -> f64) -> f64 {
    all.iter().map(of).sum::<f64>() / all.len() as f64
}

/// One trace for each seed, and the figure of the first.
fn traces(
    bench: &Bench<'_>,
    scheme: Scheme,
    seeds: u32,
    number: u32,
) -> Result<(Vec<Trace>, Finding), Interrupted> {
    let all = each_seed(bench, scheme, &[], seeds)?;
    let mut finding = Finding::new(seeds);
    let (periods, expired) = counted(&all);
    let share = 100.0 * expired as f64 / periods as f64;
    let timeouts = mean(&all, |t| t.series.timeouts.len() as f64);
    let bad = mean(&all, |t| t.expired.len() as f64);
    let throughput = mean(&all, |t| t.throughput);
    finding.measured.extend([
        plain("bad periods per run", bad, ""),
        plain("bad periods with a source time-out", share, "%"),
        plain("source time-outs per run", timeouts, ""),
        plain("throughput", throughput, "kb/s"),
    ]);
    if let Some(trace) = all.first() {
        finding.tables.push(table(trace, number));
        finding.figures.push(drawn(trace, scheme, number));
    }
    Ok((all, finding))
}

fn plain(label: &str, value: f64, unit: &str) -> Measured {
    Measured {
        label: label.to_owned(),
        mean: value,
        ci: 0.0,
        unit: unit.to_owned(),
        published: None,
    }
}

fn drawn(trace: &Trace, scheme: Scheme, number: u32) -> Figure {
    let title = format!("Figure {number}: {}", scheme.name());
    let plot =
        PacketTrace { title: &title, series: &trace.series, payload: PAYLOAD, modulo: MODULO }
            .plot();
    figure(
        &plot,
        &title,
        "A mark for each packet that the source sends, seed 1. Packets of 576 bytes, window of 4 KB; the channel is \
         bad for 4 s after each 10 s.",
    )
}

/// What happened in each bad period of a trace.
fn table(trace: &Trace, number: u32) -> Table {
    let rows = trace.series.bad.iter().zip(&trace.expired).map(|(bad, expired)| {
        let again = trace
            .series
            .sent
            .iter()
            .filter(|s| s.kind != lasthop_trace::sequence::SendKind::First)
            .filter(|s| s.at_s >= bad.from_s && s.at_s < bad.from_s + GOOD_S + BAD_S);
        let times: Vec<String> = expired.iter().map(|at| format!("{at:.2} s")).collect();
        vec![format!("{}-{} s", bad.from_s, bad.to_s), times.join(", "), again.count().to_string()]
    });
    Table {
        title: format!("Figure {number}, seed 1"),
        columns: vec![
            Column::text("bad period"),
            Column::text("source time-outs until the next"),
            Column::number("packets sent again"),
        ],
        rows: rows.collect(),
    }
}

/// Figure 3: every bad period ends in a time-out.
pub fn f3(bench: &mut Bench<'_>) -> Result<Finding, Interrupted> {
    // Nothing is left to chance here: one run is all runs.
    let (all, mut finding) = traces(bench, Scheme::Basic, 1, 3)?;
    for trace in &all {
        let (with, of) = (trace.with_timeout(), trace.expired.len());
        finding
            .require(with == of && of > 0, format!("{with} of {of} bad periods have a time-out"));
        if let Some(third) = trace.series.bad.get(1) {
            let again = |number: u64| {
                let at = |s: &&lasthop_trace::sequence::Sent| {
                    s.start == number * u64::from(PAYLOAD) && s.at_s < third.from_s + GOOD_S + BAD_S
                };
                trace.series.sent.iter().filter(at).map(|s| s.at_s).collect::<Vec<_>>()
            };
            let numbers = 0..trace.series.sent.len() as u64;
            let twice = numbers
                .map(|n| (n, again(n)))
                .filter(|(_, at)| at.len() == 3)
                .find(|(_, at)| at[0] < third.to_s && at[1] > third.from_s);
            if let Some((number, at)) = twice {
                finding.note(format!(
                    "in the bad period from {} s packet {number}, sent at {:.1} s, is sent again at {:.1} and {:.1} s \
                     (published: packet 44, at 25.9 and 28.3 s)",
                    short(third.from_s), at[0], at[1], at[2]
                ));
            }
        }
    }
    Ok(finding)
}

/// Figure 4: local recovery gets most bad periods over without the source.
pub fn f4(bench: &mut Bench<'_>) -> Result<Finding, Interrupted> {
    let seeds = bench.seeds;
    let (all, mut finding) = traces(bench, Scheme::Recovery, seeds, 4)?;
    let (periods, with) = counted(&all);
    let found = format!("{with} of {periods} bad periods have a time-out");
    finding.require(with > 0, format!("{found}, wanted at least one"));
    finding.require(2 * with < periods, format!("{found}, wanted fewer than half"));
    if with == 0 {
        finding.note(format!(
            "the source's time-out is longer than the bad periods last, whose longest silence is {} s: before the first one \
             slow start has just filled the queue, so that rttvar is large, and the later ones find that the first was \
             measured. The paper's source expired at 13.75 s, 3.75 s after the period began",
            short(all.iter().map(|t| t.longest_stall).fold(0.0, f64::max))
        ));
    }
    let mut rows = Vec::new();
    for (name, more) in BACKOFFS {
        let all = each_seed(bench, Scheme::Recovery, more, seeds)?;
        let (periods, with) = counted(&all);
        let throughput = short(mean(&all, |t| t.throughput));
        rows.push(vec![name.to_owned(), format!("{with} of {periods}"), throughput]);
    }
    finding.tables.push(Table {
        title: "Figure 4 by the back-off, all seeds".to_owned(),
        columns: vec![
            Column::text("back-off"),
            Column::text("bad periods with a time-out"),
            Column::number("kb/s"),
        ],
        rows,
    });
    Ok(finding)
}

/// Figure 5: with EBSN the source never times out.
pub fn f5(bench: &mut Bench<'_>) -> Result<Finding, Interrupted> {
    let seeds = bench.seeds;
    let (all, mut finding) = traces(bench, Scheme::Ebsn, seeds, 5)?;
    let timeouts: usize = all.iter().map(|t| t.series.timeouts.len()).sum();
    finding.require(
        timeouts == 0,
        format!("there are {timeouts} source time-outs in {} runs, wanted none", all.len()),
    );
    Ok(finding)
}
