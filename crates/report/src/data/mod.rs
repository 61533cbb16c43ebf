//! The numbers behind a plot, for the plots that a page's script draws and for CSV.

mod csv;
mod embed;
mod pack;

use lasthop_observe::sequence::Series;
use serde::{Deserialize, Serialize};

use crate::model::Table;
use crate::plot::Curve;

pub(crate) use embed::fitted;
pub use embed::{EmbeddedData, MOST_EMBEDDED};

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(into = "EmbeddedData", try_from = "EmbeddedData")]
pub enum Data {
    Sequence {
        title: String,
        series: Series,
    },
    /// Curves in one panel, or in several panels below each other.
    Chart {
        title: String,
        chart: Chart,
    },
    /// Any other plot: a page shows its numbers as a table.
    Table(Table),
}

/// Panels of curves that share their horizontal axis.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Chart {
    /// Title of the horizontal axis, with the unit.
    pub x_label: String,
    /// Logarithmic, with a separate position for zero.
    pub log_x: bool,
    /// End of the time axis in seconds; `None` if it is no time axis.
    pub end_s: Option<f64>,
    /// From top to bottom: title of the vertical axis, and curves.
    pub panels: Vec<(String, Vec<Curve>)>,
}

impl Data {
    pub fn title(&self) -> &str {
        match self {
            Data::Sequence { title, .. } | Data::Chart { title, .. } => title,
            Data::Table(table) => &table.title,
        }
    }

    /// The title as a portable file name, without an extension.
    pub(crate) fn file_name(&self) -> String {
        let safe = |c: char| if c.is_ascii_alphanumeric() || "=.+%".contains(c) { c } else { '-' };
        let name: String = self.title().chars().map(safe).take(100).collect();
        let parts: Vec<&str> = name.split('-').filter(|part| !part.is_empty()).collect();
        if parts.is_empty() { "numbers".to_owned() } else { parts.join("-") }
    }

    /// Whether the page's script can draw it.
    pub(crate) fn is_live(&self) -> bool {
        match self {
            Data::Sequence { series, .. } => !series.sent.is_empty(),
            Data::Chart { chart, .. } => chart.points() > 0,
            Data::Table(_) => false,
        }
    }
}

impl Chart {
    fn points(&self) -> usize {
        self.panels.iter().flat_map(|(_, curves)| curves).map(|curve| curve.points.len()).sum()
    }
}
