//! What the pages of several commands have in common.

use lasthop_report::model::{Column, Section, Table};
use lasthop_scenario::LeftOut;

/// What was left out and why, if anything was; `what` heads the names.
pub fn left_out(what: &str, all: &[LeftOut]) -> Option<Section> {
    if all.is_empty() {
        return None;
    }
    let rows = all.iter().map(|l| vec![l.name.clone(), l.reason.clone()]);
    let columns = vec![Column::text(what), Column::text("why")];
    let table = Table { title: String::new(), columns, rows: rows.collect() };
    Some(Section { title: "Left out".to_owned(), tables: vec![table], ..Section::default() })
}

/// The seeds of the runs, which follow one another.
pub fn seeds(seeds: &[u64]) -> String {
    match (seeds.first(), seeds.last()) {
        (Some(first), Some(last)) if first < last => format!("{first}..{last}"),
        (Some(only), _) => only.to_string(),
        _ => String::new(),
    }
}
