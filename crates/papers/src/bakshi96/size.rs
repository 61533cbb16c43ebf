//! Figure 7 (5.1): basic TCP, throughput against packet size.

use lasthop_report::model::{Figure, Table};
use lasthop_report::plot::LineSeries;
use lasthop_trace::metrics::RunMetrics;
use lasthop_trace::stats::Summary;

use super::{BAD, CLAIM, SIZES, Scheme, bound, many, published, rises, wan};
use crate::figure::{Axes, line, lines};
use crate::measure::{kbps, stall_time};
use crate::table::{mean_and_interval, table};
use crate::{Bench, Bound, Claim, Finding, Interrupted, short};

/// A figure of each run by packet size, for each bad period.
pub(super) struct Sweep(Vec<Vec<Summary>>);

impl Sweep {
    pub(super) fn run(
        bench: &mut Bench<'_>,
        scheme: Scheme,
        of: impl Fn(&RunMetrics) -> f64,
    ) -> Result<Sweep, Interrupted> {
        let mut sweep = Vec::new();
        for bad in BAD {
            let mut row = Vec::new();
            for size in SIZES {
                row.push(wan(bench, scheme, size, bad, &[])?.summary(&of));
            }
            sweep.push(row);
        }
        Ok(Sweep(sweep))
    }

    /// By packet size, for one bad period in seconds.
    pub(super) fn by_size(&self, bad: u32) -> &[Summary] {
        let i = BAD.iter().position(|b| *b == bad).unwrap_or(0);
        &self.0[i]
    }

    /// By bad period, for one packet size.
    pub(super) fn by_bad(&self, size: u32) -> Vec<Summary> {
        let i = SIZES.iter().position(|s| *s == size).unwrap_or(0);
        self.0.iter().map(|row| row[i]).collect()
    }

    pub(super) fn at(&self, size: u32, bad: u32) -> &Summary {
        let i = SIZES.iter().position(|s| *s == size).unwrap_or(0);
        &self.by_size(bad)[i]
    }

    /// The packet size with the largest mean for a bad period.
    pub(super) fn best(&self, bad: u32) -> u32 {
        let row = self.by_size(bad);
        let best = (0..row.len()).max_by(|a, b| row[*a].mean.total_cmp(&row[*b].mean));
        SIZES[best.unwrap_or(0)]
    }

    /// A line for each bad period.
    pub(super) fn lines(&self) -> Vec<LineSeries> {
        let of = |bad: &u32| {
            let points =
                SIZES.iter().map(|s| f64::from(*s)).zip(self.by_size(*bad).iter().copied());
            line(&format!("bad {bad} s"), points)
        };
        BAD.iter().map(of).collect()
    }

    pub(super) fn table(&self, title: &str) -> Table {
        let bad = BAD.map(|bad| format!("bad {bad} s")).join(" | ");
        let mut rows = table(title, &format!("packet size, B | {bad}"));
        rows.rows.extend(SIZES.map(|size| {
            let cells = self.by_bad(size);
            core::iter::once(size.to_string()).chain(cells.iter().map(mean_and_interval)).collect()
        }));
        rows
    }

    /// A line for each bad period, and the `given` points.
    pub(super) fn chart(
        &self,
        title: &str,
        y: &str,
        given: &[LineSeries],
        caption: &str,
    ) -> Figure {
        let mut series = self.lines();
        series.extend_from_slice(given);
        lines(title, Axes { x: "packet size (B)", y, log_x: false }, series, caption)
    }
}

/// The bounds of 5.1, for a caption.
pub(super) fn bounds() -> String {
    let each = BAD.map(|bad| short(bound(12.8, 10.0, f64::from(bad))));
    format!("The bounds for bad periods of 1 to 4 s are {} kb/s.", each.join(", "))
}

pub(super) const F7: Claim = Claim {
    id: "B-F7",
    place: "5.1, Figure 7",
    setup: "100 KB, packet sizes 128..1536 B, good 10 s, bad 1..4 s (exponential), BER 1e-6 / 1e-2; basic \
            Tahoe, no local recovery",
    published: "an optimum packet size exists and depends on the bad period (512 B at 1 s: 8.7 kb/s, about \
            30 % above 1536 B; 384 B at 3 s); 4.5 kb/s at 1536 B and 4 s; throughput falls with the bad \
            period",
    cost: 11,
    run: Some(f7),
    ..CLAIM
};

/// Figure 7.
fn f7(bench: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
    let basic = Sweep::run(bench, Scheme::Basic, kbps)?;
    // The decisive cases have ten times the seeds: 20 seeds gave gains from 1 to 11 %.
    let mut exact = Vec::new();
    for (size, bad, given) in [(512, 1, Some(8.7)), (1536, 1, None), (1536, 4, Some(4.5))] {
        let runs = many(bench, Scheme::Basic, size, bad, &[])?.summary(kbps);
        finding.compare(format!("{size} B, bad {bad} s"), runs, "kb/s", given);
        exact.push(runs.mean);
    }
    for (size, bad) in [(128, 1), (384, 3)] {
        finding.measure(format!("{size} B, bad {bad} s"), basic.at(size, bad), "kb/s");
    }
    for bad in BAD {
        let best = basic.best(bad);
        let text = format!("the best packet size for a bad period of {bad} s is {best} B");
        let what = format!("best packet size for a bad period of {bad} s, B,");
        let bound = Bound::Within(256.0, 768.0);
        finding.judge(what, f64::from(best), bound, format!("{text}, wanted 256 to 768"));
    }
    let gain = 100.0 * (exact[0] / exact[1] - 1.0);
    finding.near("512 B at 1 s in kb/s", exact[0], 8.7, 0.15);
    finding.within("its gain over 1536 B in %", gain, 15.0, 45.0);
    finding.near("1536 B at 4 s in kb/s", exact[2], 4.5, 0.25);
    let falls = SIZES.iter().all(|size| {
        let by_bad: Vec<Summary> = basic.by_bad(*size).into_iter().rev().collect();
        rises(&by_bad)
    });
    finding.require(falls, "throughput falls as bad periods grow, at every packet size");
    finding.note(format!(
        "the best sizes for 1 to 4 s are {} B (published: 512 B at 1 s, 384 B at 3 s)",
        BAD.map(|bad| basic.best(bad).to_string()).join(", ")
    ));
    if !bench.is_shown() {
        return Ok(());
    }
    let three = wan(bench, Scheme::Basic, 1280, 1, &[])?;
    let two = wan(bench, Scheme::Basic, 1536, 1, &[])?;
    finding.note(format!(
        "a window of 4 KB holds three packets of 1280 B and two of 1536 B, whose round trips vary less, so that the \
         time-outs are shorter: at 1 s, {} of them cost {} s of stalls at 1280 B, and {} cost {} s at 1536 B",
        short(three.timeouts().mean),
        short(three.mean(stall_time)),
        short(two.timeouts().mean),
        short(two.mean(stall_time))
    ));
    finding.tables.push(basic.table("Figure 7: throughput of basic TCP in kb/s"));
    finding.figures.push(basic.chart(
        "Figure 7: basic TCP, wide area",
        "throughput (kb/s)",
        // 512 B are "about 30 %" above 1536 B.
        &published(&[(1, 512.0, 8.7), (1, 1536.0, 8.7 / 1.3), (4, 1536.0, 4.5)]),
        &format!("Bands are 95 % confidence intervals. {}", bounds()),
    ));
    Ok(())
}
