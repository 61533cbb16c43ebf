//! The files of captures: tables, plots with the numbers behind them, and the page.

use lasthop_report::plot::Plot;

use super::matched::Pair;
use super::page::{page, plot};
use super::tables::{over_time_csv, sequence_csv, summary_csv, volumes_csv};
use super::{Capture, DESCRIBED, over_time};

/// The content of a file.
#[derive(Debug)]
pub enum Content {
    /// Comma-separated values.
    Table(String),
    /// A plot; the format completes the name of its file.
    Plot(Box<Plot>),
    /// The page, which has no name of its own.
    Page(String),
}

/// Passes each file to `write`, with its name. `command` repeats the analysis.
///
/// # Errors
///
/// The first error of `write`.
pub fn files<E>(
    captures: &[Capture],
    pairs: &[Pair],
    command: String,
    mut write: impl FnMut(String, Content) -> Result<(), E>,
) -> Result<(), E> {
    for (i, capture) in captures.iter().enumerate() {
        // Captures from two directories may have the same name.
        let before = if captures.len() > 1 { format!("capture-{}-", i + 1) } else { String::new() };
        write(format!("{before}connections.csv"), Content::Table(summary_csv(capture)))?;
        for transfer in capture.transfers().iter().take(DESCRIBED) {
            let name = format!("{before}{}", transfer.file_name());
            write(name.clone(), Content::Plot(Box::new(plot(transfer))))?;
            write(format!("{name}-over-time"), Content::Plot(Box::new(over_time(transfer))))?;
            write(format!("{name}.csv"), Content::Table(sequence_csv(transfer)))?;
            write(format!("{name}-over-time.csv"), Content::Table(over_time_csv(transfer)))?;
            write(format!("{name}-throughput.csv"), Content::Table(volumes_csv(transfer)))?;
        }
    }
    for (i, pair) in pairs.iter().enumerate() {
        for (k, crossing) in pair.crossings().into_iter().enumerate() {
            let name = format!("between-{}-and-{}-{}", i + 1, i + 2, k + 1);
            write(name.clone(), Content::Plot(Box::new(pair.plot(crossing))))?;
            write(format!("{name}.csv"), Content::Table(pair.csv(crossing)))?;
        }
    }
    write(String::new(), Content::Page(page(captures, pairs, command)))
}
