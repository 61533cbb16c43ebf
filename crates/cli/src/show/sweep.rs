//! Results of a sweep as text.

use lasthop_lab::Results;
use lasthop_report::table::{Look, render};
use lasthop_study::sweep::{NOTE, Room, remarks, table};

use super::note;
use crate::style;

/// Everything, for a terminal.
pub fn text(results: &Results) -> String {
    let (heading, table) = (style::heading(&results.name), shown(results));
    let mut text = format!("{heading}\n{table}\n{}\n", style::dim(NOTE));
    text.extend(remarks(results).iter().map(|remark| note(remark)));
    text
}

/// The table for stdout: as wide as the terminal allows.
fn shown(results: &Results) -> String {
    let look = style::look();
    let Look::Terminal(columns) = look else {
        return render(&table(results, Room::Wide), Look::Plain);
    };
    let fits = |text: &String| text.lines().all(|line| line.chars().count() <= columns.into());
    [Room::Wide, Room::Narrow]
        .iter()
        .map(|room| render(&table(results, *room), Look::Plain))
        .find(fits)
        .unwrap_or_else(|| render(&table(results, Room::Narrow), look))
}
