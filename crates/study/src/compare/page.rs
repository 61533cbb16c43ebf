//! A comparison as one page: bars, curves over the loss rate, and tables.

use lasthop_report::model::{Figure, Section};
use lasthop_report::number::{MBIT, RATE_UNIT, plural};
use lasthop_report::plot::{Cross, Crosses, Curve, Curves, Pen, Plot};

use super::tables::{self, BOUNDS, words};
use super::{PointRanking, Points, Row};
use crate::Document;
use crate::tables::page as rendered;

/// Maximum number of bars that fit.
const MOST_BARS: usize = 16;
/// Maximum number of distinguishable crosses.
const MOST_CROSSES: usize = 12;
/// Maximum number of distinguishable curves, besides the bounds.
const MOST_CURVES: usize = 5;

/// The page of a comparison.
pub fn page(document: &Document<Points>) -> String {
    rendered(document, "schemes compared", "scheme", sections(document))
}

/// The sections of that page.
pub fn sections(document: &Document<Points>) -> Vec<Section> {
    let Points { axis, points } = &document.results;
    let mut sections = Vec::new();
    if points.len() > 1 {
        sections.push(Section {
            title: "Over the losses".to_owned(),
            text: vec![
                "The baseline and the best scheme of each family, with what theory allows. The link less its losses is \
                 what a scheme could deliver that wastes nothing; the formulas are for TCP end to end."
                    .to_owned(),
            ],
            tables: vec![tables::matrix(axis.as_deref().unwrap_or(""), points)],
            figures: vec![Figure::new(
                &curves(document),
                "throughput against losses",
                "Means over runs with 95 % confidence intervals: bands, or whiskers side by side. \
                 Broken lines are theory.",
            )],
            ..Section::default()
        });
    }
    sections.extend(points.iter().map(|place| section(document, place)));
    sections
}

fn section(document: &Document<Points>, place: &PointRanking) -> Section {
    let title = match (&document.results.axis, &place.label) {
        (Some(axis), Some(label)) => format!("{axis} = {label}"),
        _ => "Ranking".to_owned(),
    };
    Section {
        title,
        text: vec![tables::theory(place) + ".", tables::NOTE.replace('\n', " ")],
        tables: vec![tables::ranking(place), words().sets(&place.schemes)],
        figures: vec![
            Figure::new(
                &bars(document, place),
                "throughput",
                "Means over runs, the best first; whiskers are 95 % confidence intervals.",
            ),
            Figure::new(
                &crosses(document, place),
                "throughput against delay",
                "Means over runs of what packets of data took from end to end; crosses are 95 % confidence intervals.",
            ),
        ],
        ..Section::default()
    }
}

/// The plots as separate files, and their numbers: name and text.
pub fn pictures(document: &Document<Points>) -> Vec<(String, String)> {
    let points = &document.results.points;
    let mut plots: Vec<(String, Plot)> = Vec::new();
    for (i, place) in points.iter().enumerate() {
        plots.push((format!("ranking-{}", i + 1), bars(document, place)));
        plots.push((format!("delay-{}", i + 1), crosses(document, place)));
    }
    if points.len() > 1 {
        plots.push(("losses".to_owned(), curves(document)));
    }
    let files = |(name, plot): (String, Plot)| {
        [(format!("{name}.svg"), plot.svg()), (format!("{name}.csv"), plot.data().csv())]
    };
    plots.into_iter().flat_map(files).collect()
}

/// The best schemes of one point, and the baseline.
fn best<'a>(document: &Document<Points>, place: &'a PointRanking, most: usize) -> Vec<&'a Row> {
    let mut shown: Vec<&Row> = place.schemes.iter().take(most).collect();
    // The baseline is always included.
    let mut others = place.schemes.iter().skip(most);
    let baseline = others.find(|row| document.baseline.as_deref() == Some(row.name()));
    if let (Some(row), Some(last)) = (baseline, shown.last_mut()) {
        *last = row;
    }
    shown
}

/// Throughput against delay of the schemes at one point.
fn crosses(document: &Document<Points>, place: &PointRanking) -> Plot {
    let label = place.label.as_ref().map_or(String::new(), |label| format!(" at {label}"));
    let cross = |row: &Row| {
        let (rate, delay) =
            (row.standing.value.in_units_of(MBIT), row.measured.delay?.in_units_of(1e-3));
        Some(Cross {
            name: row.name().to_owned(),
            x: (delay.mean, delay.ci95),
            y: (rate.mean, rate.ci95),
        })
    };
    Crosses {
        title: format!("{}{label}: throughput against delay", document.name),
        x_label: "mean delay of packets with data (ms)".to_owned(),
        y_label: format!("throughput ({})", RATE_UNIT),
        crosses: best(document, place, MOST_CROSSES).into_iter().filter_map(cross).collect(),
    }
    .plot()
}

/// Bars of the schemes at one point, the best first.
fn bars(document: &Document<Points>, place: &PointRanking) -> Plot {
    let shown = best(document, place, MOST_BARS);
    let most = place
        .bounds
        .capacity
        .map_or(String::new(), |c| format!(", the link less its losses {:.0}", c / MBIT));
    let label = place.label.as_ref().map_or(String::new(), |label| format!(" at {label}"));
    let rate = format!("throughput ({})", RATE_UNIT);
    words().bars(
        format!("{}{label}: {rate}", document.name),
        &rate,
        format!("mean of {}{most}", plural(document.seeds.len() as u64, "run")),
        shown.into_iter(),
    )
}

/// Minimum ratio of loss rates that are drawn on a logarithmic axis.
const SPREAD: f64 = 8.0;

/// Throughput over the loss rate of the baseline, with the bounds.
fn curves(document: &Document<Points>) -> Plot {
    let points = &document.results.points;
    let x = |place: &PointRanking| place.bounds.loss * 100.0;
    let mut curves: Vec<Curve> = drawn(document)
        .into_iter()
        .map(|name| {
            let points = points.iter().filter_map(|place| {
                let value = place.scheme(&name)?.standing.value.in_units_of(MBIT);
                Some((x(place), value.mean, value.ci95))
            });
            Curve { points: points.collect(), name, pen: Pen::Whiskers }
        })
        .collect();
    for (name, of) in BOUNDS {
        let points = points.iter().filter_map(|place| Some((x(place), of(place)? / MBIT, 0.0)));
        let points: Vec<_> = points.collect();
        let curve = Curve { name: name.to_owned(), pen: Pen::Dashes, points };
        curves.extend((!curve.points.is_empty()).then_some(curve));
    }
    for curve in &mut curves {
        curve.points.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
    // Small loss rates matter most, and a linear axis would give its space to the large ones.
    let losses = || curves.iter().flat_map(|curve| &curve.points).map(|p| p.0);
    let least = losses().filter(|loss| *loss > 0.0).fold(f64::INFINITY, f64::min);
    let log_x = losses().fold(0.0, f64::max) >= SPREAD * least;
    Curves {
        title: format!("{}: throughput against losses", document.name),
        x_label: "packets with data lost (%)".to_owned(),
        y_label: format!("throughput ({})", RATE_UNIT),
        log_x,
        curves,
    }
    .plot()
}

/// The schemes with a curve: the baseline and the best of each family.
fn drawn(document: &Document<Points>) -> Vec<String> {
    let points = &document.results.points;
    let family = |name: &String| {
        points.iter().find_map(|place| place.scheme(name)).map(|row| row.alternative.family)
    };
    let mut drawn: Vec<String> = document.baseline.iter().cloned().collect();
    for name in tables::order(points) {
        let known = drawn.iter().any(|other| {
            let is_baseline = document.baseline.as_ref() == Some(other);
            *other == name || (family(other) == family(&name) && !is_baseline)
        });
        if !known && drawn.len() < MOST_CURVES {
            drawn.push(name);
        }
    }
    drawn
}
