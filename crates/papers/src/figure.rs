//! Figures of an experiment.

use lasthop_observe::sequence::Series;
use lasthop_report::model::Figure;
use lasthop_report::plot::{Bar, BarChart, BarGroup, BarSeries, Curve, Curves, Pen, TimeSequence};

use crate::{Bench, Estimate, Interrupted};

pub(crate) const BANDS: &str = "Bands are 95 % confidence intervals.";
pub(crate) const WHISKERS: &str = "Whiskers are 95 % confidence intervals.";

/// Titles of the axes; the horizontal one may be logarithmic.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Axes<'a> {
    pub(crate) x: &'a str,
    pub(crate) y: &'a str,
    pub(crate) log_x: bool,
}

/// A line of means with their intervals.
pub(crate) fn line<E: Into<Estimate>>(
    name: &str,
    points: impl IntoIterator<Item = (f64, E)>,
) -> Curve {
    let point = |(x, estimate): (f64, E)| {
        let Estimate { value, ci } = estimate.into();
        (x, value, ci.unwrap_or(0.0))
    };
    let points = points.into_iter().map(point).collect();
    Curve { name: name.to_owned(), pen: Pen::Band, points }
}

/// Published points.
pub(crate) fn published_line(name: String, points: impl IntoIterator<Item = (f64, f64)>) -> Curve {
    let points = points.into_iter().map(|(x, y)| (x, y, 0.0)).collect();
    Curve { name, pen: Pen::Rings, points }
}

/// A chart of curves, each with its own pen.
pub(crate) fn curves(title: &str, axes: Axes<'_>, curves: Vec<Curve>, caption: &str) -> Figure {
    let plot = Curves {
        title: title.to_owned(),
        x_label: axes.x.to_owned(),
        y_label: axes.y.to_owned(),
        log_x: axes.log_x,
        curves,
    };
    Figure::new(&plot.plot(), title, caption)
}

/// Progress of a transfer, with a published point, on the testbed `text`, for each case of a name and its changes: acknowledged packets of
/// `payload` bytes over time, with the first seed.
pub(crate) fn progress<S: AsRef<str>>(
    bench: &Bench<'_>,
    text: &str,
    cases: impl IntoIterator<Item = (&'static str, Vec<S>)>,
    payload: f64,
    (title, caption): (&str, &str),
    published: Option<(&str, (f64, f64))>,
) -> Result<Figure, Interrupted> {
    let mut all = Vec::new();
    for (name, changes) in cases {
        bench.check_interrupt()?;
        let recording = bench.record(text, &changes, bench.first_seed);
        let acked = recording.series.first().map(|s| s.acked.iter()).into_iter().flatten();
        let points = acked.map(|(at, to)| (*at, *to as f64 / payload, 0.0)).collect();
        all.push(Curve { name: name.to_owned(), pen: Pen::Line, points });
    }
    let given = published.map(|(name, (x, y))| Curve {
        name: name.to_owned(),
        pen: Pen::Points,
        points: vec![(x, y, 0.0)],
    });
    all.extend(given);
    let axes = Axes { x: "time (s)", y: "packets acknowledged", log_x: false };
    Ok(curves(title, axes, all, caption))
}

/// A bar of a mean with its interval.
pub(crate) fn bar(value: impl Into<Estimate>) -> Option<Bar> {
    let Estimate { value, ci } = value.into();
    Some(Bar { value, ci: ci.unwrap_or(0.0) })
}

/// A bar of a published value.
pub(crate) fn published_bar(value: f64) -> Option<Bar> {
    Some(Bar { value, ci: 0.0 })
}

/// Groups of bars: `series` has a name for each bar of a group and whether it was published, `groups` the groups' names
/// and bars.
pub(crate) fn bars<S: Into<String>, G: Into<String>>(
    title: &str,
    y_label: &str,
    series: impl IntoIterator<Item = (S, bool)>,
    groups: impl IntoIterator<Item = (G, Vec<Option<Bar>>)>,
    caption: &str,
) -> Figure {
    let series = series.into_iter();
    let groups = groups.into_iter();
    let chart = BarChart {
        title: title.to_owned(),
        y_label: y_label.to_owned(),
        series: series
            .map(|(name, published)| BarSeries { name: name.into(), published })
            .collect(),
        groups: groups.map(|(label, bars)| BarGroup { label: label.into(), bars }).collect(),
    };
    Figure::new(&chart.plot(), title, caption)
}

/// The time-sequence plot of a transfer, or of a part of it in seconds.
pub(crate) fn sequence(
    title: &str,
    series: &Series,
    part: Option<(f64, f64)>,
    caption: &str,
) -> Figure {
    Figure::new(&TimeSequence { title, series, part }.plot(), title, caption)
}
