//! Results of a sweep as text.

use lasthop_report::table::{Look, render, render_lean};
use lasthop_report::wrap::columns;
use lasthop_sim::runs::Results;
use lasthop_study::sweep::{self, Room, remarks, table};

use super::notes::note;
use crate::style;

/// The whole answer for a terminal.
pub fn text(results: &Results) -> String {
    let (heading, table) = (style::heading(&results.name), terminal_table(results));
    let how = style::paragraph(sweep::note());
    let mut text = format!("{heading}\n{table}\n{}\n", style::dim(&how));
    text.push_str(&explained(results));
    text.extend(remarks(results).iter().map(|remark| note(remark)));
    text
}

/// The explanations of the cells, one paragraph each.
fn explained(results: &Results) -> String {
    let paragraphs = sweep::explanations(results).into_iter().map(|(title, text)| {
        let title = if title.is_empty() { String::new() } else { format!("{title}: ") };
        style::paragraph(&format!("{title}{text}")) + "\n"
    });
    paragraphs.collect()
}

/// The table for stdout, limited to the terminal's width.
fn terminal_table(results: &Results) -> String {
    let (look, wide) = (style::look(), table(results, Room::Wide));
    match look {
        Look::Terminal(room) => {
            let text = render(&wide, Look::Plain);
            match text.lines().all(|line| columns(line) <= room.into()) {
                true => text,
                false => render_lean(&table(results, Room::Narrow), look),
            }
        }
        Look::Plain => render(&wide, Look::Plain),
    }
}
