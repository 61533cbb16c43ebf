//! Ware and others 2019, and Sarpkaya and others 2025: the share of a BBR flow next to loss-based flows.

use lasthop_observe::metrics::RunMetrics;
use lasthop_observe::stats::quantile;

use super::{delivered, quarter};
use crate::figure::{Axes, curves, line, published_line};
use crate::table::{row, table};
use crate::{Bench, Bound, Estimate, Finding, Interrupted, Runs};

/// Buffers in products of rate and delay.
const BUFFERS: [f64; 7] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0];
/// CUBIC flows next to one BBR flow.
const FLOWS: [u32; 5] = [1, 2, 4, 8, 16];
/// Buffer of that comparison.
const DEEP: f64 = 32.0;
/// Rate in packets of 1500 bytes per second, and round trip in seconds.
const RATE: f64 = 10e6 / 12_000.0;
const ROUND_TRIP: f64 = 0.04;
/// Duration in seconds, of which the first part is for convergence.
const DURATION: f64 = 400.0;
const CONVERGENCE: f64 = 100.0;
/// Published median errors of the model next to CUBIC and next to Reno, in percent.
const ERRORS: [f64; 2] = [5.0, 8.0];

const LINK: &str = include_str!("sharing.toml");

/// The model's part of the link in percent, for one BBR flow and a buffer of `x` products.
fn model(x: f64) -> f64 {
    let q = x * RATE * ROUND_TRIP;
    let p = (0.5 - 0.5 / x - 4.0 / q).max(0.0);
    // Probing takes as long as the queue takes to drain, 200 ms and a round trip, every 10 s.
    let probing = (q / RATE + 0.2 + ROUND_TRIP) / 10.0;
    100.0 * (1.0 - p) * (1.0 - probing)
}

/// Part of the first flow in percent after convergence, in each run: runs of the same seed begin alike, so the
/// difference of a long and a short one is the rest of the time.
#[derive(Debug)]
struct Parts(Vec<f64>);

impl Parts {
    fn of(short: &Runs, long: &Runs) -> Parts {
        let part = |(before, after): (&RunMetrics, &RunMetrics)| {
            let rest = |i: usize| delivered(after, i) - delivered(before, i);
            let all: f64 = (0..after.flows.len()).map(rest).sum();
            100.0 * rest(0) / all
        };
        let metrics =
            |runs: &'_ Runs| runs.all().iter().map(|run| run.metrics.clone()).collect::<Vec<_>>();
        let (short, long) = (metrics(short), metrics(long));
        Parts(short.iter().zip(&long).map(part).collect())
    }

    fn mean(&self) -> Estimate {
        Estimate::of(&[&self.0], |m| m[0])
    }
}

/// The parts of a flow of `tcp` next to `others` flows of `rival` with each of `queues`.
fn parts(
    bench: &mut Bench<'_>,
    (tcp, rival, others): (&str, &str, u32),
    queues: &[f64],
) -> Result<Vec<Parts>, Interrupted> {
    let seeds = quarter(bench);
    let sets = queues.iter().flat_map(|x| {
        [CONVERGENCE, DURATION].map(|horizon| {
            [
                format!("host.bbr.tcp={tcp}"),
                format!("host.rival.tcp={rival}"),
                format!("line.link.queue={:.0}p", x * RATE * ROUND_TRIP),
                format!("horizon={horizon}s"),
            ]
        })
    });
    let text = LINK.replace("count = 1", &format!("count = {others}"));
    let all = bench.each(&text, &sets.collect::<Vec<_>>(), seeds)?;
    let pairs = all.chunks_exact(2).map(|pair| Parts::of(&pair[0], &pair[1]));
    Ok(pairs.collect())
}

/// The median error of the model in percent.
fn median_error(all: &[Parts]) -> Estimate {
    let series: Vec<&[f64]> = all.iter().map(|parts| &parts.0[..]).collect();
    Estimate::of(&series, |means| {
        let error = |(mean, x): (&f64, &f64)| 100.0 * (model(*x) / mean - 1.0).abs();
        let errors: Vec<f64> = means.iter().zip(&BUFFERS).map(error).collect();
        quantile(&errors, 0.5).unwrap_or(f64::NAN)
    })
}

/// Adds measured and computed parts of `tcp` next to CUBIC and Reno; the median errors.
fn compare(
    bench: &mut Bench<'_>,
    finding: &mut Finding,
    (name, tcp): (&str, &str),
    title: &str,
) -> Result<[Estimate; 2], Interrupted> {
    finding.runs = quarter(bench);
    let mut rows = table(
        format!("Part of the link of one {name} flow in %"),
        "<buffer, products | next to CUBIC | next to Reno | model",
    );
    let cubic = parts(bench, (tcp, "cubic", 1), &BUFFERS)?;
    let both = [cubic, parts(bench, (tcp, "rack", 1), &BUFFERS)?];
    for (i, x) in BUFFERS.iter().enumerate() {
        let parts = [both[0][i].mean(), both[1][i].mean()];
        for (rival, part) in ["CUBIC", "Reno"].iter().zip(parts) {
            finding.compare(format!("{rival}, buffer of {x}: {name}"), part, "%", model(*x));
        }
        rows.rows.push(row(&[&crate::short(*x), &parts[0], &parts[1], &model(*x)]));
    }
    finding.tables.push(rows);
    let means = |parts: &[Parts]| {
        BUFFERS.iter().copied().zip(parts.iter().map(Parts::mean)).collect::<Vec<_>>()
    };
    let series = vec![
        line(&format!("{name} next to CUBIC"), means(&both[0])),
        line(&format!("{name} next to Reno"), means(&both[1])),
        published_line("published: model of version 1".to_owned(), BUFFERS.map(|x| (x, model(x)))),
    ];
    let axes =
        Axes { x: "buffer (products of rate and delay)", y: "part of the link (%)", log_x: true };
    let caption = "10 Mb/s and 40 ms, from 100 to 400 s.";
    finding.figures.push(curves(title, axes, series, caption));
    Ok([median_error(&both[0]), median_error(&both[1])])
}

pub(super) fn bbr(bench: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
    let title = "Ware 2019, Figure 8: the part of a BBR flow";
    let errors = compare(bench, finding, ("BBR", "bbr"), title)?;
    for ((rival, error), published) in ["CUBIC", "Reno"].iter().zip(errors).zip(ERRORS) {
        finding.compare(
            format!("median error of the model next to {rival}"),
            error,
            "%",
            published,
        );
        let quantity = format!("median error of the model next to {rival}, %,");
        finding.require_bound(quantity, error, Bound::AtMost(published));
    }
    let mut rows = table("Part of one BBR flow with a buffer of 32 products", "CUBIC flows | %");
    let mut alone: Option<Parts> = None;
    for others in FLOWS {
        let part = parts(bench, ("bbr", "cubic", others), &[DEEP])?.swap_remove(0);
        let of = part.mean();
        rows.rows.push(row(&[&others, &of]));
        finding.compare(format!("{others} CUBIC flows: BBR"), of, "%", model(DEEP));
        match &alone {
            None => alone = Some(part),
            Some(alone) => {
                let more = Estimate::percent_above(&part.0, &alone.0);
                finding.equal(format!("part next to {others} CUBIC flows and to one"), more, 10.0);
            }
        }
    }
    finding.tables.push(rows);
    Ok(())
}

pub(super) fn bbr3(bench: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
    let title = "Sarpkaya 2025: the part of a flow with BBR version 3";
    let errors = compare(bench, finding, ("BBR 3", "bbr3"), title)?;
    for ((rival, tcp), error) in [("CUBIC", "cubic"), ("Reno", "rack")].iter().zip(errors) {
        let before = median_error(&parts(bench, ("bbr", tcp, 1), &BUFFERS)?);
        finding.measure(
            format!("median error of the model next to {rival}, version 1"),
            before,
            "%",
        );
        finding.measure(
            format!("median error of the model next to {rival}, version 3"),
            error,
            "%",
        );
        // Clearly: more than the largest published error for version 1, and more than that of version 1 here.
        let least = before.high().max(ERRORS[1]);
        finding.above(
            format!("median error of the model next to {rival}, version 3, %,"),
            error,
            least,
        );
    }
    Ok(())
}
