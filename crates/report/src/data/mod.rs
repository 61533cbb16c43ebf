//! What a picture is drawn from: for the plots that a page's script draws, and for CSV.

mod csv;
mod embed;
mod pack;

use lasthop_trace::sequence::Series;
use serde::{Deserialize, Serialize};

use crate::model::Table;
use crate::plot::Curve;

pub(crate) use embed::fitted;
pub use embed::{Embedded, MOST_EMBEDDED};

/// The numbers of a picture.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(into = "Embedded", try_from = "Embedded")]
pub enum Data {
    /// A time-sequence plot.
    Sequence {
        /// Heading.
        title: String,
        /// The flow.
        series: Series,
    },
    /// Curves in one panel or several below each other.
    Chart {
        /// Heading.
        title: String,
        /// The panels.
        chart: Chart,
    },
    /// Anything else: a table is all that a page has of it.
    Table(Table),
}

/// Panels of curves that share their horizontal axis.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Chart {
    /// Title of the horizontal axis, with the unit.
    pub x_label: String,
    /// Whether it is logarithmic, with a place for zero.
    pub log_x: bool,
    /// Where a time axis ends, in seconds; none if it is no time axis.
    pub end_s: Option<f64>,
    /// From top to bottom: title of the vertical axis, and curves.
    pub panels: Vec<(String, Vec<Curve>)>,
}

impl Data {
    /// The heading of the picture.
    pub fn title(&self) -> &str {
        match self {
            Data::Sequence { title, .. } | Data::Chart { title, .. } => title,
            Data::Table(table) => &table.title,
        }
    }

    /// The heading as a name that every file system takes, without an ending.
    pub(crate) fn file_name(&self) -> String {
        let safe = |c: char| if c.is_ascii_alphanumeric() || "=.+%".contains(c) { c } else { '-' };
        let name: String = self.title().chars().map(safe).take(100).collect();
        let parts: Vec<&str> = name.split('-').filter(|part| !part.is_empty()).collect();
        if parts.is_empty() { "numbers".to_owned() } else { parts.join("-") }
    }

    /// Whether a script can draw it.
    pub(crate) fn is_live(&self) -> bool {
        match self {
            Data::Sequence { series, .. } => !series.sent.is_empty(),
            Data::Chart { chart, .. } => chart.points() > 0,
            Data::Table(_) => false,
        }
    }
}

impl Chart {
    /// How many points there are in all.
    fn points(&self) -> usize {
        self.panels.iter().flat_map(|(_, curves)| curves).map(|curve| curve.points.len()).sum()
    }
}
