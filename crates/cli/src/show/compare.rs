//! A comparison as text.

use lasthop_report::number::plural;
use lasthop_study::Document;
use lasthop_study::compare::{NOTE, Points, matrix, ranking, theory};

use super::{missing, note, table, too_few};
use crate::style;

/// How the table of several points is to be read.
const NOTE_OF_POINTS: &str = "\
Mean throughput in KB/s (KB = 1024 B). *: the best at this point, or not told apart from it. +, -: better or worse
than the baseline with confidence, all comparisons of the point together (Holm, 5 %).";

/// Everything, for a terminal; nothing if the baseline is not finished.
pub fn text(document: &Document<Points>) -> String {
    let Points { axis, points } = &document.said;
    let Some(first) = points.first() else { return String::new() };
    let runs = plural(document.seeds.len() as u64, "run");
    let mut text = format!(
        "{}: {} schemes, {runs} of each, beside {}\n",
        style::heading(&document.name),
        first.schemes.len(),
        document.baseline.as_deref().unwrap_or_default()
    );
    text += &match points.as_slice() {
        [only] => {
            format!("{}\n\n{}\n{}\n", table(&ranking(only)), theory(only), style::dim(NOTE))
        }
        several => {
            let axis = axis.as_deref().unwrap_or("");
            format!("{}\n\n{}\n", table(&matrix(axis, several)), style::dim(NOTE_OF_POINTS))
        }
    };
    text += &too_few(document, 20);
    for row in points.iter().flat_map(|place| &place.schemes) {
        if let Some(complete) = row.measured.complete.filter(|n| *n < document.seeds.len()) {
            text += &note(&format!("{}: {complete} of {runs} completed", row.name()));
        }
    }
    text + &missing(document)
}
