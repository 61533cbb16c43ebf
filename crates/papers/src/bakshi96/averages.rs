//! How throughput is averaged over runs (1), and its standard deviation (5).

use super::lan;
use super::setup::{AVERAGING_KEY, BAD, SIZES, Scheme};
use super::size::Sweep;
use crate::measure::kbps;
use crate::table::{row, table};
use crate::{Bench, Estimate, Finding, Interrupted, Runs};

/// Throughput of several runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Averaging {
    /// All bytes over all time: a run counts for the time that it takes.
    Totals,
    /// The mean of the throughputs of the runs.
    Runs,
}

impl Averaging {
    pub(super) fn of(bench: &Bench<'_>) -> Averaging {
        match bench.setting(AVERAGING_KEY) {
            Some("runs") => Averaging::Runs,
            _ => Averaging::Totals,
        }
    }

    /// A function of the throughputs of some cases, in kb/s.
    pub(super) fn estimate(self, cases: &[&Runs], of: impl Fn(&[f64]) -> f64) -> Estimate {
        match self {
            Averaging::Runs => {
                let series: Vec<Vec<f64>> = cases.iter().map(|runs| runs.each(kbps)).collect();
                Estimate::of(&series.iter().map(Vec::as_slice).collect::<Vec<_>>(), of)
            }
            Averaging::Totals => {
                let kilobits = |runs: &&Runs| {
                    runs.each(|m| m.flows.iter().map(|f| f.delivered as f64 * 0.008).sum())
                };
                let bits: Vec<Vec<f64>> = cases.iter().map(kilobits).collect();
                let rates = cases.iter().map(|runs| runs.each(kbps));
                let time = |(bits, rates): (&Vec<f64>, Vec<f64>)| -> Vec<f64> {
                    bits.iter().zip(rates).map(|(kilobits, rate)| kilobits / rate).collect()
                };
                let seconds: Vec<Vec<f64>> = bits.iter().zip(rates).map(time).collect();
                let series: Vec<&[f64]> = bits.iter().chain(&seconds).map(Vec::as_slice).collect();
                let n = cases.len();
                Estimate::of(&series, |m| of(&(0..n).map(|i| m[i] / m[n + i]).collect::<Vec<_>>()))
            }
        }
    }

    /// The throughput of one case in kb/s.
    pub(super) fn rate(self, runs: &Runs) -> Estimate {
        self.estimate(&[runs], |m| m[0])
    }
}

/// The standard deviation of a run's throughput, relative to its mean, in percent.
fn relative(runs: &Runs) -> Estimate {
    let each = runs.each(kbps);
    let squares: Vec<f64> = each.iter().map(|x| x * x).collect();
    Estimate::of(&[&each, &squares], |m| 100.0 * (m[1] / m[0] / m[0] - 1.0).max(0.0).sqrt())
}

/// 5: the standard deviation of all results.
pub(super) fn deviation(bench: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
    let mut rows = table(
        "Standard deviation of the throughput of one run, % of the mean",
        "<figure | least | most | runs for 4 % of the mean",
    );
    let mut all = Vec::new();
    for (figure, scheme) in [("Figure 7", Scheme::Basic), ("Figure 8", Scheme::Ebsn)] {
        let sweep = Sweep::run(bench, scheme, super::size::Metric::Rate(Averaging::Runs))?;
        let cells = BAD.iter().flat_map(|bad| SIZES.map(|size| (size, *bad)));
        all.push((figure, cells.map(|(size, bad)| relative(sweep.runs(size, bad))).collect()));
    }
    let mut local = Vec::new();
    for scheme in [Scheme::Basic, Scheme::Ebsn] {
        for bad in lan::BAD_MS {
            local.push(relative(&lan::runs(bench, scheme, bad, &[])?));
        }
    }
    all.push(("Figure 10", local));
    for (figure, cells) in all {
        let cells: Vec<Estimate> = cells;
        let by_value = |a: &&Estimate, b: &&Estimate| a.value.total_cmp(&b.value);
        let (Some(least), Some(most)) =
            (cells.iter().min_by(by_value), cells.iter().max_by(by_value))
        else {
            continue;
        };
        finding.measure(format!("{figure}, largest standard deviation of a run"), *most, "%");
        finding.below(format!("{figure}: largest standard deviation of a run in %"), *most, 4.0);
        let runs = (most.value / 4.0) * (most.value / 4.0);
        rows.rows.push(row(&[&figure, least, most, &runs.ceil()]));
    }
    finding.note(
        "good and bad periods are exponential, so that the bad time of a run alone deviates by more than 4 %: the \
         sentence can hold for means of many runs, whose number the paper does not give; the table has the number \
         that it takes",
    );
    finding.tables.push(rows);
    Ok(())
}
