//! Figure 7 (5.1): basic TCP, throughput against packet size.

use lasthop_report::model::{Column, Figure, Measured, Table};
use lasthop_report::plot::{LineChart, LineSeries};
use lasthop_trace::metrics::RunMetrics;
use lasthop_trace::stats::Summary;

use super::{BAD, SIZES, Scheme, bound, figure, kbps, line, published, wan};
use crate::bench::{Bench, Interrupted};
use crate::finding::{Finding, short};

/// A number of each run by packet size, for each bad period.
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
        let mut columns = vec![Column::number("packet size, B")];
        columns.extend(BAD.iter().map(|bad| Column::number(format!("bad {bad} s"))));
        let rows = SIZES.iter().map(|size| {
            let cells = self.by_bad(*size);
            let cells = cells.iter().map(lasthop_report::number::summary);
            core::iter::once(size.to_string()).chain(cells).collect()
        });
        Table { title: title.to_owned(), columns, rows: rows.collect() }
    }

    pub(super) fn chart(
        &self,
        title: &str,
        y_label: &str,
        given: &[LineSeries],
        caption: &str,
    ) -> Figure {
        let mut series = self.lines();
        series.extend_from_slice(given);
        let chart = LineChart {
            title: title.to_owned(),
            x_label: "packet size (B)".to_owned(),
            y_label: y_label.to_owned(),
            log_x: false,
            series,
        };
        figure(&chart.plot(), title, caption)
    }
}

/// The bounds of 5.1, for a caption.
pub(super) fn bounds() -> String {
    let each = BAD.map(|bad| short(bound(12.8, 10.0, f64::from(bad))));
    format!("The bounds for bad periods of 1 to 4 s are {} kb/s.", each.join(", "))
}

fn stall_time(m: &RunMetrics) -> f64 {
    m.flows.iter().map(|flow| flow.stall_time_s).sum()
}

/// Figure 7.
pub fn f7(bench: &mut Bench<'_>) -> Result<Finding, Interrupted> {
    let mut finding = Finding::new(bench.seeds);
    let basic = Sweep::run(bench, Scheme::Basic, kbps)?;
    for (size, bad, given) in
        [(512, 1, Some(8.7)), (1536, 1, None), (1536, 4, Some(4.5)), (128, 1, None), (384, 3, None)]
    {
        let label = format!("{size} B, bad {bad} s");
        finding.measured.push(Measured::new(label, basic.at(size, bad), "kb/s", given));
    }
    for bad in BAD {
        let best = basic.best(bad);
        finding.require(
            (256..=768).contains(&best),
            format!(
                "the best packet size for a bad period of {bad} s is {best} B, wanted 256 to 768"
            ),
        );
    }
    let gain = 100.0 * (basic.at(512, 1).mean / basic.at(1536, 1).mean - 1.0);
    finding.within("512 B at 1 s in kb/s", basic.at(512, 1).mean, 8.7 * 0.85, 8.7 * 1.15);
    finding.within("its gain over 1536 B in %", gain, 15.0, 45.0);
    finding.within("1536 B at 4 s in kb/s", basic.at(1536, 4).mean, 4.5 * 0.75, 4.5 * 1.25);
    let falls = SIZES.iter().all(|size| {
        let mut by_bad = basic.by_bad(*size);
        by_bad.reverse();
        super::rises(&by_bad)
    });
    finding.require(falls, "throughput falls as bad periods grow, at every packet size");
    finding.note(format!(
        "the best sizes for 1 to 4 s are {} B (published: 512 B at 1 s, 384 B at 3 s)",
        BAD.map(|bad| basic.best(bad).to_string()).join(", ")
    ));
    let mut stalled = |size| {
        let runs = wan(bench, Scheme::Basic, size, 1, &[])?;
        Ok((runs.timeouts().mean, runs.summary(stall_time).mean))
    };
    let (three, two) = (stalled(1280)?, stalled(1536)?);
    finding.note(format!(
        "a window of 4 KB holds three packets of 1280 B and two of 1536 B, whose round trips vary less, so that the \
         time-outs are shorter: at 1 s, {} of them cost {} s of stalls at 1280 B, and {} cost {} s at 1536 B",
        short(three.0),
        short(three.1),
        short(two.0),
        short(two.1)
    ));
    finding.tables.push(basic.table("Figure 7: throughput of basic TCP in kb/s"));
    finding.figures.push(basic.chart(
        "Figure 7: basic TCP, wide area",
        "throughput (kb/s)",
        // 512 B are "about 30 %" above 1536 B.
        &published(&[(1, 512.0, 8.7), (1, 1536.0, 8.7 / 1.3), (4, 1536.0, 4.5)]),
        &format!("Bands are 95 % confidence intervals. {}", bounds()),
    ));
    Ok(finding)
}
