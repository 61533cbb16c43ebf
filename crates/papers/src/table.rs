//! Tables of an experiment and their cells.

use lasthop_observe::stats::Summary;
use lasthop_report::model::{Column, Table};
use lasthop_report::number;

use crate::Estimate;
use crate::bench::Runs;

/// A table without rows. The headings are those of [`Column::list`].
pub(crate) fn table(title: impl Into<String>, headings: &str) -> Table {
    Table { title: title.into(), columns: Column::list(headings), rows: Vec::new() }
}

pub(crate) fn row(cells: &[&dyn Cell]) -> Vec<String> {
    cells.iter().map(|cell| cell.cell()).collect()
}

/// A value of a cell.
pub(crate) trait Cell {
    fn cell(&self) -> String;
}

impl Cell for &str {
    fn cell(&self) -> String {
        (*self).to_owned()
    }
}

impl Cell for String {
    fn cell(&self) -> String {
        self.clone()
    }
}

impl Cell for u32 {
    fn cell(&self) -> String {
        self.to_string()
    }
}

impl Cell for f64 {
    fn cell(&self) -> String {
        number::short(*self)
    }
}

impl Cell for Summary {
    fn cell(&self) -> String {
        number::summary(self)
    }
}

impl Cell for Estimate {
    fn cell(&self) -> String {
        self.to_string()
    }
}

/// The number of complete runs.
impl Cell for Runs {
    fn cell(&self) -> String {
        format!("{} of {}", self.complete(), self.all().len())
    }
}
