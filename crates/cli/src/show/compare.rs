//! A comparison as text.

use lasthop_report::number::plural;
use lasthop_study::Document;
use lasthop_study::compare::{NOTE, Points, matrix, ranking, theory};

use super::notes::{missing, note, table, too_few};
use crate::style;

/// Legend of the table of several points.
const NOTE_OF_POINTS: &str = "\
Mean throughput in Mbit/s. *: the best at this point, or not distinguishable from it. +, -: better or worse
than the baseline with confidence, all comparisons of the point together (Holm, 5 %).";

/// The whole answer for a terminal; empty if the baseline is not finished.
pub fn text(document: &Document<Points>) -> String {
    let Points { axis, points } = &document.results;
    let Some(first) = points.first() else { return String::new() };
    let runs = plural(document.seeds.len() as u64, "run");
    let baseline = document.baseline.as_deref().unwrap_or_default();
    let as_is = first.scheme(baseline).filter(|_| baseline == lasthop_scenario::AS_IS);
    let sets = as_is.map_or(String::new(), |row| row.alternative.sets.join(" "));
    let sets = if sets.is_empty() { sets } else { format!(" ({sets})") };
    let mut text = format!(
        "{}: {} schemes, {runs} of each, compared with {baseline}{sets}\n",
        style::heading(&document.name),
        first.schemes.len(),
    );
    text += &match points.as_slice() {
        [only] => {
            format!(
                "{}\n\n{}\n{}\n",
                table(&ranking(only)),
                theory(only),
                style::dim(&style::paragraph(NOTE))
            )
        }
        several => {
            let axis = axis.as_deref().unwrap_or("");
            format!(
                "{}\n\n{}\n",
                table(&matrix(axis, several)),
                style::dim(&style::paragraph(NOTE_OF_POINTS))
            )
        }
    };
    text += &too_few(document, 20);
    for place in points {
        let at = place.label.as_ref().map_or(String::new(), |label| format!(" at {label}"));
        for row in &place.schemes {
            if let Some(complete) = row.measured.complete.filter(|n| *n < document.seeds.len()) {
                text += &note(&format!("{}{at}: {complete} of {runs} completed", row.name()));
            }
        }
    }
    text + &missing(document)
}
