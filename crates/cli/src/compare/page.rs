//! A comparison as one page: bars, curves over the losses, and tables.

use lasthop_report::html;
use lasthop_report::model::{Again, Column, Figure, Page, Section, Table};
use lasthop_report::plot::{Bar, BarChart, BarGroup, BarSeries, Curve, Curves, Pen, Plot};

use super::show::{self, BOUNDS};
use super::{Document, Place, Row};
use crate::pages;
use crate::sweep::table::KB;

/// More bars than this do not fit.
const MOST_BARS: usize = 16;
/// More schemes than this nobody can tell apart in a plot of curves; the bounds come on top.
const MOST_CURVES: usize = 5;

/// The page.
pub fn page(document: &Document) -> String {
    let mut sections = Vec::new();
    if document.points.len() > 1 {
        let axis = document.axis.as_deref().unwrap_or("");
        sections.push(Section {
            title: "Over the losses".to_owned(),
            text: vec![
                "The baseline and the best scheme of each family, with what theory allows. The link less its losses is \
                 what a scheme could deliver that wastes nothing; the formulas are for TCP end to end."
                    .to_owned(),
            ],
            tables: vec![show::matrix(axis, &document.points)],
            figures: vec![Figure {
                svg: curves(document).inline(),
                title: "throughput against losses".to_owned(),
                caption: "Means over runs; whiskers are 95 % confidence intervals, drawn a little beside each other. \
                          Broken lines are theory."
                    .to_owned(),
            }],
            ..Section::default()
        });
    }
    sections.extend(document.points.iter().map(|place| section(document, place)));
    sections.extend(pages::left_out("scheme", &document.left_out));
    let mut facts = vec![("Path".to_owned(), document.path.clone())];
    facts.extend(document.transfers.iter().map(|line| ("Transfer".to_owned(), line.clone())));
    facts.push(("Baseline".to_owned(), document.baseline.clone()));
    html::render(&Page {
        title: format!("{}: schemes compared", document.name),
        subtitle: format!(
            "{} runs of each scheme, simulated, all with the same channels",
            document.seeds.len()
        ),
        facts,
        sections,
        assumptions: Vec::new(),
        again: Again {
            commands: vec![document.command.clone()],
            seeds: pages::seeds(&document.seeds),
            version: document.lasthop.clone(),
        },
    })
}

fn section(document: &Document, place: &Place) -> Section {
    let title = match (&document.axis, &place.label) {
        (Some(axis), Some(label)) => format!("{axis} = {label}"),
        _ => "Ranking".to_owned(),
    };
    Section {
        title,
        text: vec![show::bounds(place) + ".", show::NOTE.replace('\n', " ")],
        tables: vec![show::ranking(place), sets(place)],
        figures: vec![Figure {
            svg: bars(document, place).inline(),
            title: "throughput".to_owned(),
            caption: "Means over runs, the best first; whiskers are 95 % confidence intervals."
                .to_owned(),
        }],
        ..Section::default()
    }
}

/// What each scheme is.
fn sets(place: &Place) -> Table {
    let columns =
        vec![Column::text("scheme"), Column::text("what it does"), Column::text("what it sets")];
    let rows = place
        .schemes
        .iter()
        .map(|row| vec![row.scheme.name.clone(), row.scheme.what.clone(), row.sets.join(" ")]);
    Table { title: String::new(), columns, rows: rows.collect() }
}

/// The plots as files of their own: name and text.
pub fn pictures(document: &Document) -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = document
        .points
        .iter()
        .enumerate()
        .map(|(i, place)| (format!("ranking-{}.svg", i + 1), bars(document, place).svg()))
        .collect();
    if document.points.len() > 1 {
        all.push(("losses.svg".to_owned(), curves(document).svg()));
    }
    all
}

/// Bars of the schemes of one point, the best first.
pub fn bars(document: &Document, place: &Place) -> Plot {
    let bar = |row: &Row| BarGroup {
        label: row.scheme.name.clone(),
        bars: vec![Some(Bar {
            value: row.standing.value.mean / KB,
            ci: row.standing.value.ci95 / KB,
        })],
    };
    let mut groups: Vec<BarGroup> = place.schemes.iter().take(MOST_BARS).map(bar).collect();
    // The baseline is always there.
    let baseline =
        place.schemes.iter().skip(MOST_BARS).find(|row| row.scheme.name == document.baseline);
    if let (Some(row), Some(last)) = (baseline, groups.last_mut()) {
        *last = bar(row);
    }
    let most = place
        .bounds
        .capacity
        .map_or(String::new(), |c| format!(", the link less its losses {:.0}", c / KB));
    let label = place.label.as_ref().map_or(String::new(), |label| format!(" at {label}"));
    BarChart {
        title: format!("{}{label}: throughput (KB/s)", document.name),
        y_label: "throughput (KB/s)".to_owned(),
        series: vec![BarSeries {
            name: format!("mean of {} runs{most}", document.seeds.len()),
            published: false,
        }],
        groups,
    }
    .plot()
}

/// Throughput over the losses that the baseline met, with the bounds.
pub fn curves(document: &Document) -> Plot {
    let mut shown: Vec<String> = vec![document.baseline.clone()];
    let order = show::order(&document.points);
    let family = |name: &String| {
        let rows = document.points.iter().flat_map(|place| &place.schemes);
        rows.clone().find(|row| row.scheme.name == *name).map(|row| row.scheme.family)
    };
    for name in &order {
        let known = shown.iter().any(|other| {
            other == name || (family(other) == family(name) && *other != document.baseline)
        });
        if !known && shown.len() < MOST_CURVES {
            shown.push(name.clone());
        }
    }
    let x = |place: &Place| place.bounds.loss * 100.0;
    let mut curves: Vec<Curve> = shown
        .iter()
        .map(|name| {
            let points = document.points.iter().filter_map(|place| {
                let row = place.schemes.iter().find(|row| row.scheme.name == *name)?;
                let value = &row.standing.value;
                Some((x(place), value.mean / KB, value.ci95 / KB))
            });
            Curve { name: name.clone(), pen: Pen::Whiskers, points: points.collect() }
        })
        .collect();
    for (name, of) in BOUNDS {
        let points =
            document.points.iter().filter_map(|place| Some((x(place), of(place)? / KB, 0.0)));
        curves.push(Curve { name: name.to_owned(), pen: Pen::Dashes, points: points.collect() });
    }
    for curve in &mut curves {
        curve.points.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
    Curves {
        title: format!("{}: throughput against losses", document.name),
        x_label: "packets with data lost (%)".to_owned(),
        y_label: "throughput (KB/s)".to_owned(),
        log_x: false,
        curves,
    }
    .plot()
}
