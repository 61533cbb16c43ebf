//! Figure 7 (5.1): basic TCP, throughput against packet size.

use lasthop_report::model::{Figure, Table};
use lasthop_report::plot::Curve;

use super::averages::Averaging;
use super::setup::{BAD, SIZES, Scheme, bound, published, sent_again, wan};
use crate::figure::{Axes, curves, line};
use crate::measure::stall_time;
use crate::table::{Cell, table};
use crate::{Bench, Estimate, Finding, Interrupted, Runs, short};

/// Seeds of the sweeps, in multiples of the usual number: 20 seeds gave gains from 1 to 11 %.
const TIMES: u32 = 5;

/// The figure of a sweep.
#[derive(Clone, Copy)]
pub(super) enum Metric {
    /// Throughput in kb/s.
    Rate(Averaging),
    /// Retransmitted payload of the source in KB.
    SentAgain,
}

impl Metric {
    /// A function of the figures of some cases.
    fn estimate(self, cases: &[&Runs], of: impl Fn(&[f64]) -> f64) -> Estimate {
        match self {
            Metric::Rate(averaging) => averaging.estimate(cases, of),
            Metric::SentAgain => {
                let each: Vec<Vec<f64>> = cases.iter().map(|runs| runs.each(sent_again)).collect();
                Estimate::of(&each.iter().map(Vec::as_slice).collect::<Vec<_>>(), of)
            }
        }
    }
}

/// Runs by packet size, for each bad period; all with the same seeds.
pub(super) struct Sweep {
    quantity: Metric,
    cells: Vec<Vec<Runs>>,
}

impl Sweep {
    pub(super) fn run(
        bench: &mut Bench<'_>,
        scheme: Scheme,
        quantity: Metric,
    ) -> Result<Sweep, Interrupted> {
        bench.with_times(TIMES, |bench| Sweep::with_usual_seeds(bench, scheme, quantity))
    }

    pub(super) fn with_usual_seeds(
        bench: &mut Bench<'_>,
        scheme: Scheme,
        quantity: Metric,
    ) -> Result<Sweep, Interrupted> {
        let mut cells = Vec::new();
        for bad in BAD {
            let row = SIZES.iter().map(|size| wan(bench, scheme, *size, bad, &[]));
            cells.push(row.collect::<Result<_, _>>()?);
        }
        Ok(Sweep { quantity, cells })
    }

    pub(super) fn runs(&self, size: u32, bad: u32) -> &Runs {
        let column = SIZES.iter().position(|s| *s == size).expect("a size of the sweep");
        let row = BAD.iter().position(|b| *b == bad).expect("a bad period of the sweep");
        &self.cells[row][column]
    }

    pub(super) fn at(&self, size: u32, bad: u32) -> Estimate {
        self.quantity.estimate(&[self.runs(size, bad)], |m| m[0])
    }

    /// A function of the figures of some cases, each a packet size and a bad period.
    pub(super) fn of(&self, cases: &[(u32, u32)], of: impl Fn(&[f64]) -> f64) -> Estimate {
        let runs: Vec<&Runs> = cases.iter().map(|(size, bad)| self.runs(*size, *bad)).collect();
        self.quantity.estimate(&runs, of)
    }

    /// The weakest of the steps through each of `rows`, which should all be up; the interval is for all of them.
    pub(super) fn weakest(&self, rows: &[Vec<(u32, u32)>]) -> Estimate {
        let steps: Vec<&[(u32, u32)]> = rows.iter().flat_map(|row| row.windows(2)).collect();
        let runs = self.cells[0][0].all().len();
        let step = |pair: &&[(u32, u32)]| self.of(pair, |m| m[1] - m[0]).among(steps.len(), runs);
        Estimate::weakest(steps.iter().map(step))
    }

    /// How far the best of the sizes `these` is ahead of the best other one, for a bad period.
    pub(super) fn ahead(&self, these: &[u32], bad: u32) -> Estimate {
        let cases = SIZES.map(|size| (size, bad));
        let best = |m: &[f64], own: bool| {
            let of = SIZES.iter().zip(m).filter(|(size, _)| these.contains(size) == own);
            of.map(|(_, mean)| *mean).fold(f64::NEG_INFINITY, f64::max)
        };
        self.of(&cases, |m| best(m, true) - best(m, false))
    }

    /// The packet size with the largest mean for a bad period.
    fn best(&self, bad: u32) -> u32 {
        let by_value = |a: &u32, b: &u32| self.at(*a, bad).value.total_cmp(&self.at(*b, bad).value);
        SIZES.into_iter().max_by(by_value).unwrap_or(SIZES[0])
    }

    /// A line for each bad period.
    pub(super) fn lines(&self) -> Vec<Curve> {
        let of = |bad: &u32| {
            let points = SIZES.map(|size| (f64::from(size), self.at(size, *bad)));
            line(&format!("bad {bad} s"), points)
        };
        BAD.iter().map(of).collect()
    }

    pub(super) fn table(&self, title: &str) -> Table {
        let bad = BAD.map(|bad| format!("bad {bad} s")).join(" | ");
        let mut rows = table(title, &format!("packet size, B | {bad}"));
        rows.rows.extend(SIZES.map(|size| {
            let cells = BAD.map(|bad| self.at(size, bad).cell());
            core::iter::once(size.to_string()).chain(cells).collect()
        }));
        rows
    }

    /// A line for each bad period, and the `given` points.
    pub(super) fn chart(&self, title: &str, y: &str, given: &[Curve], caption: &str) -> Figure {
        let mut series = self.lines();
        series.extend_from_slice(given);
        let seeds = self.cells[0][0].all().len();
        let caption = format!("{caption} {seeds} seeds; bands are 95 % confidence intervals.");
        curves(title, Axes { x: "packet size (B)", y, log_x: false }, series, &caption)
    }
}

/// The bounds of 5.1, for a caption.
pub(super) fn bounds() -> String {
    let each = BAD.map(|bad| short(bound(12.8, 10.0, f64::from(bad))));
    format!("The bounds for bad periods of 1 to 4 s are {} kb/s.", each.join(", "))
}

/// Sizes among which the best one is to be.
const MIDDLE: [u32; 5] = [256, 384, 512, 640, 768];

/// Published points, and the bounds of 5.1, which the paper marks at the right edge of its figures.
pub(super) fn with_bounds(given: &[(u32, f64, f64)]) -> Vec<Curve> {
    let bounds = BAD.map(|bad| (bad, 1536.0, bound(12.8, 10.0, f64::from(bad))));
    published(&[given, &bounds].concat())
}

/// Figure 7.
pub(super) fn f7(bench: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
    let averaging = Averaging::of(bench);
    let basic = Sweep::run(bench, Scheme::Basic, Metric::Rate(averaging))?;
    for (size, bad, given) in
        [(512, 1, Some(8.7)), (1536, 1, None), (1536, 4, Some(4.5)), (128, 1, None), (384, 3, None)]
    {
        finding.compare(format!("{size} B, bad {bad} s"), basic.at(size, bad), "kb/s", given);
    }
    for bad in BAD {
        let quantity = format!("bad {bad} s: best of 256 to 768 B less the best other size, kb/s,");
        finding.above(quantity, basic.ahead(&MIDDLE, bad), 0.0);
    }
    for (size, bad) in [(512, 1), (384, 3)] {
        let quantity = format!("bad {bad} s: {size} B less the best other size, kb/s,");
        finding.above(quantity, basic.ahead(&[size], bad), 0.0);
        let beyond = SIZES.into_iter().filter(|other| *other >= size).rev();
        let beyond: Vec<_> = beyond.map(|size| (size, bad)).collect();
        let quantity =
            format!("bad {bad} s: smallest fall from one size beyond {size} B to the next, kb/s,");
        finding.above(quantity, basic.weakest(&[beyond]), 0.0);
    }
    finding.near("512 B at 1 s in kb/s", basic.at(512, 1), 8.7, 0.15);
    let gain = basic.of(&[(512, 1), (1536, 1)], |m| 100.0 * (m[0] / m[1] - 1.0));
    finding.near("its gain over 1536 B in %", gain, 30.0, 0.15);
    finding.near("1536 B at 4 s in kb/s", basic.at(1536, 4), 4.5, 0.15);
    let shorter = |size: u32| BAD.into_iter().rev().map(|bad| (size, bad)).collect();
    let quantity = "smallest gain by bad periods that are a second shorter, over all sizes, kb/s,";
    finding.above(quantity, basic.weakest(&SIZES.map(shorter)), 0.0);
    finding.note(format!(
        "the best sizes for 1 to 4 s are {} B (published: 512 B at 1 s, 384 B at 3 s)",
        BAD.map(|bad| basic.best(bad).to_string()).join(", ")
    ));
    if !bench.is_shown() {
        return Ok(());
    }
    let other = Averaging::Runs.rate(basic.runs(1536, 4));
    finding.note(format!(
        "throughput is all bytes over all time (1); the mean of each run's throughput would be {} kb/s at 1536 \
         B and 4 s",
        other.cell()
    ));
    let (three, two) = (basic.runs(1280, 1), basic.runs(1536, 1));
    finding.note(format!(
        "a window of 4 KB holds three packets of 1280 B and two of 1536 B, whose round trips vary less, so that the \
         timeouts are shorter: at 1 s, {} of them cost {} s of stalls at 1280 B, and {} cost {} s at 1536 B",
        short(three.timeouts().mean),
        short(three.mean(stall_time)),
        short(two.timeouts().mean),
        short(two.mean(stall_time))
    ));
    finding.tables.push(basic.table("Figure 7: throughput of basic TCP in kb/s"));
    // 512 B are "about 30 %" above 1536 B.
    let given = [(1, 512.0, 8.7), (1, 1536.0, 8.7 / 1.3), (4, 1536.0, 4.5)];
    finding.figures.push(basic.chart(
        "Figure 7: basic TCP, wide area",
        "throughput (kb/s)",
        &with_bounds(&given),
        &format!(
            "Rings are published: what the text states, and the bounds at 1536 B. {}",
            bounds()
        ),
    ));
    Ok(())
}
