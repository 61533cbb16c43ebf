//! A comparison as text.

use lasthop_lab::ranking::{Judgement, Standing};
use lasthop_report::model::{Column, Table};
use lasthop_report::number;
use lasthop_report::table::render;
use lasthop_trace::stats::Summary;

use super::{Document, Place, Row};
use crate::style;
use crate::sweep::table::KB;

/// How the table is to be read.
pub const NOTE: &str = "\
Means over runs ± 95 % confidence interval, KB = 1024 B. `times`: how often the baseline's throughput, by runs of
the same seed, with the 95 % interval. Schemes of one rank are not told apart from its first. better, worse: with confidence, all
comparisons together (Holm, 5 %). radio gp: full packets needed / data packets sent over the radio.";

/// Everything, for a terminal.
pub fn text(document: &Document) -> String {
    let mut text = format!(
        "{}: {} schemes, {} of each, beside {}\n",
        style::heading(&document.name),
        document.points.first().map_or(0, |place| place.schemes.len()),
        runs(document.seeds.len()),
        document.baseline
    );
    match document.points.as_slice() {
        [only] => {
            text += &render(&ranking(only), style::look());
            text += &format!("\n\n{}\n{}\n", bounds(only), style::dim(NOTE));
        }
        several => {
            let axis = document.axis.as_deref().unwrap_or("");
            text += &render(&matrix(axis, several), style::look());
            text += &format!(
                "\n\n{}\n",
                style::dim(
                    "Mean throughput in KB/s (KB = 1024 B). *: the best at this point, or not told apart from it. \
                     +, -: better or worse\nthan the baseline with confidence, all comparisons of the point together (Holm, 5 %)."
                )
            );
        }
    }
    text + &remarks(document)
}

fn runs(n: usize) -> String {
    if n == 1 { "1 run".to_owned() } else { format!("{n} runs") }
}

/// What is missing, and why.
pub fn remarks(document: &Document) -> String {
    let mut text = String::new();
    if document.seeds.len() < 2 {
        text += &format!(
            "{} one run tells nothing about chance; `--seeds 20` does\n",
            style::bad("note:")
        );
    }
    let incomplete = document.points.iter().flat_map(|place| &place.schemes);
    for row in incomplete {
        if let Some(complete) = row.complete.filter(|n| *n < document.seeds.len()) {
            text += &format!(
                "{} {}: {complete} of {} completed\n",
                style::bad("note:"),
                row.scheme.name,
                runs(document.seeds.len())
            );
        }
    }
    if !document.unfinished.is_empty() {
        text += &format!("not finished: {}\n", document.unfinished.join(", "));
    }
    if !document.left_out.is_empty() {
        text += "left out:\n";
        for left in &document.left_out {
            text += &format!("  {}: {}\n", left.name, left.reason);
        }
    }
    text
}

/// The schemes of one point as a table, the best first.
pub fn ranking(place: &Place) -> Table {
    let radio = place.schemes.iter().any(|row| row.wireless_goodput.is_some());
    let mut columns = vec![
        Column::number("rank"),
        Column::text("scheme"),
        Column::number("KB/s"),
        Column::number("times"),
        Column::text("beside the baseline"),
        Column::number("timeouts"),
    ];
    columns.extend(radio.then(|| Column::number("radio gp")));
    columns.push(Column::text("to be changed"));
    let tied = |row: &Row| {
        let same = place.schemes.iter().filter(|r| r.standing.rank == row.standing.rank);
        if same.count() > 1 { "=" } else { "" }
    };
    let rows = place.schemes.iter().map(|row| {
        let mut cells = vec![
            format!("{}{}", row.standing.rank, tied(row)),
            row.scheme.name.clone(),
            number::summary(&kilobytes(&row.standing.value)),
            times(row),
            judged(&row.standing).to_owned(),
            number::short(round(row.timeouts.mean)),
        ];
        let share = |s: Summary| format!("{:.3}", s.mean);
        cells.extend(radio.then(|| row.wireless_goodput.map_or("–".to_owned(), share)));
        cells.push(row.deployed());
        cells
    });
    Table { title: String::new(), columns, rows: rows.collect() }
}

fn round(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

fn kilobytes(s: &Summary) -> Summary {
    Summary { mean: s.mean / KB, sd: s.sd / KB, ci95: s.ci95 / KB, ..*s }
}

/// The ratio with its interval.
pub fn times(row: &Row) -> String {
    match &row.standing.ratio {
        _ if row.standing.judgement == Judgement::Baseline => "1".to_owned(),
        None => "–".to_owned(),
        Some(r) if r.low == r.high => format!("{:.2}", r.mean),
        Some(r) => format!("{:.2} ({:.2} to {:.2})", r.mean, r.low, r.high),
    }
}

/// The judgement in words.
pub fn judged(standing: &Standing) -> &'static str {
    match standing.judgement {
        Judgement::Baseline => "the baseline",
        Judgement::Better => "better",
        Judgement::Worse => "worse",
        Judgement::Tie if standing.difference.sd == 0.0 && standing.difference.mean == 0.0 => {
            "the same"
        }
        Judgement::Tie => "no difference",
        Judgement::Unknown => "not known",
    }
}

/// A rate in KB/s, as bounds and means over many points are shown.
pub fn kb(value: Option<f64>) -> String {
    match value.map(|v| v / KB) {
        None => "–".to_owned(),
        Some(v) if v >= 1000.0 => number::short(v.round()),
        Some(v) if v < 10.0 => format!("{v:.2}"),
        Some(v) => format!("{v:.1}"),
    }
}

/// What theory allows at a point, in a line.
pub fn bounds(place: &Place) -> String {
    let b = &place.bounds;
    format!(
        "theory at {} % of the data packets lost and a round trip of {} ms: the link less its losses {} KB/s, \
         TCP end to end {} (Mathis), {} (PFTK)",
        number::short((b.loss * 1e4).round() / 100.0),
        number::short((b.rtt_s * 1e4).round() / 10.0),
        kb(b.capacity),
        kb(b.mathis),
        kb(b.pftk)
    )
}

/// The names of all schemes, the best on the whole first.
pub fn order(points: &[Place]) -> Vec<String> {
    let mut names: Vec<(usize, f64, String)> = Vec::new();
    for row in points.iter().flat_map(|place| &place.schemes) {
        match names.iter_mut().find(|(_, _, name)| *name == row.scheme.name) {
            Some((rank, sum, _)) => {
                *rank += row.standing.rank;
                *sum += row.standing.value.mean;
            }
            None => {
                names.push((row.standing.rank, row.standing.value.mean, row.scheme.name.clone()))
            }
        }
    }
    names.sort_by(|a, b| a.0.cmp(&b.0).then(b.1.total_cmp(&a.1)));
    names.into_iter().map(|(_, _, name)| name).collect()
}

/// Schemes by points of the axis.
pub fn matrix(axis: &str, points: &[Place]) -> Table {
    let mut columns = vec![Column::text(format!("scheme \\ {axis}"))];
    columns.extend(points.iter().map(|p| Column::number(p.label.clone().unwrap_or_default())));
    columns.push(Column::text("to be changed"));
    let cell = |place: &Place, name: &str| {
        let Some(row) = place.schemes.iter().find(|row| row.scheme.name == name) else {
            return "–".to_owned();
        };
        let best = if row.standing.rank == 1 { "*" } else { "" };
        let sign = match row.standing.judgement {
            Judgement::Better => "+",
            Judgement::Worse => "-",
            _ => "",
        };
        format!("{best}{sign} {}", kb(Some(row.standing.value.mean))).trim_start().to_owned()
    };
    let mut rows: Vec<Vec<String>> = order(points)
        .iter()
        .map(|name| {
            let mut cells = vec![name.clone()];
            cells.extend(points.iter().map(|place| cell(place, name)));
            let row = points.iter().flat_map(|p| &p.schemes).find(|row| row.scheme.name == *name);
            cells.push(row.map_or(String::new(), Row::deployed));
            cells
        })
        .collect();
    for (name, of) in BOUNDS {
        let mut cells = vec![name.to_owned()];
        cells.extend(points.iter().map(|place| kb(of(place))));
        cells.push(String::new());
        rows.push(cells);
    }
    Table { title: String::new(), columns, rows }
}

/// A bound: its name and how it is read.
type Bound = (&'static str, fn(&Place) -> Option<f64>);

/// The bounds, as rows of tables and curves of plots.
pub const BOUNDS: [Bound; 3] = [
    ("link less losses", |place| place.bounds.capacity),
    ("Mathis", |place| place.bounds.mathis),
    ("PFTK", |place| place.bounds.pftk),
];
