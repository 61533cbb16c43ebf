//! The analysis of a capture as text.

use std::fmt::Write as _;

use lasthop_analyze::Cause;
use lasthop_study::capture::matched::{self, Pair};
use lasthop_study::capture::{Capture, DESCRIBED, summary};

use crate::style;

/// Limit of directions in the table.
const LISTED: usize = 20;

/// The whole analysis of a capture for a terminal.
pub fn text(capture: &Capture) -> String {
    let mut text = String::new();
    let mut heading = capture.heading().into_iter();
    // Writing to a string cannot fail.
    let _ =
        writeln!(text, "{}: {}", style::heading(&capture.file), heading.next().unwrap_or_default());
    heading.for_each(|line| text += &format!("{line}\n"));
    if !capture.analysis.connections.is_empty() {
        text += &format!("\n{}\n", super::notes::table(&summary(capture, LISTED)));
    }
    let transfers = capture.transfers();
    for transfer in transfers.iter().take(DESCRIBED) {
        let number = transfer.connection.number;
        let _ = writeln!(text, "\n{}", style::heading(&format!("{number}: {}", transfer.title())));
        for (name, value) in transfer.facts() {
            let value = match (name, transfer.data.verdict.cause) {
                ("verdict", Cause::NoLoss) => style::good(&value),
                ("verdict", _) => style::bad(&value),
                _ => value,
            };
            let _ = writeln!(text, "  {}  {value}", style::dim(&format!("{name:<10}")));
        }
    }
    for silent in capture.silent().iter().take(DESCRIBED) {
        let number = silent.connection.number;
        let _ = writeln!(text, "\n{}", style::heading(&format!("{number}: {}", silent.title())));
        for (name, value) in silent.diagnoses() {
            let _ = writeln!(text, "  {}  {value}", style::dim(&format!("{name:<10}")));
        }
    }
    match transfers.len().saturating_sub(DESCRIBED) {
        0 if transfers.is_empty() => text += "\nno connection carried data\n",
        0 => {}
        more => {
            let _ = writeln!(
                text,
                "\nand {more} smaller transfers; `--connection` chooses one, `--json` has them all"
            );
        }
    }
    text
}

/// The comparison of two captures as text.
pub fn pair(pair: &Pair) -> String {
    let mut text = format!("{}:\n", style::heading(&pair.title()));
    pair.heading().into_iter().for_each(|line| text += &format!("{line}\n"));
    for crossing in pair.crossings() {
        let _ = writeln!(text, "\n{}", style::heading(&matched::title(crossing)));
        for (name, value) in matched::facts(crossing) {
            let _ = writeln!(text, "  {}  {value}", style::dim(&format!("{name:<10}")));
        }
    }
    text
}
