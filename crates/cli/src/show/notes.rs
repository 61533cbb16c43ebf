//! Tables and notes that all studies share.

use lasthop_report::model::Table;
use lasthop_report::table::render;
use lasthop_study::Document;

use crate::style;

/// A table, limited to the terminal's width.
pub(super) fn table(table: &Table) -> String {
    render(table, style::look())
}

/// A remark that begins with `note:`.
pub(super) fn note(text: &str) -> String {
    format!("{} {text}\n", style::bad("note:"))
}

/// A note that a single run has no interval; `seeds` seeds would suffice.
pub(super) fn too_few<S>(document: &Document<S>, seeds: u32) -> String {
    match document.seeds.len() {
        0 | 1 => note(&format!("one run has no confidence interval; use `--seeds {seeds}`")),
        _ => String::new(),
    }
}

/// Notes about missing results, with reasons.
pub(super) fn missing<S>(document: &Document<S>) -> String {
    let mut text = String::new();
    if !document.is_complete() {
        text += &format!("not finished: {}\n", document.unfinished.join(", "));
    }
    if !document.left_out.is_empty() {
        text += "left out:\n";
    }
    text.extend(document.left_out.iter().map(|l| format!("  {}: {}\n", l.name, l.reason)));
    text
}
