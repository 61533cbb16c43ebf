//! What a page shows. The caller fills these in; nothing here is computed from a trace.

use lasthop_trace::stats::Summary;
use serde::{Deserialize, Serialize};

use crate::data::Data;
use crate::plot::Plot;

/// Whether a published result was found again.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It was.
    Holds,
    /// It was not.
    Fails,
    /// It was not tried.
    NotRun,
}

impl Verdict {
    /// The word used in files and tables: `holds`, `fails`, `not-run`.
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Holds => "holds",
            Verdict::Fails => "fails",
            Verdict::NotRun => "not-run",
        }
    }
}

/// A measured figure, with what was published for it where a number was.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(into = "MeasuredJson", from = "MeasuredJson")]
pub struct Measured {
    /// What was measured, such as `Reno throughput`.
    pub label: String,
    /// Mean over the runs.
    pub mean: f64,
    /// Half the width of the 95 % confidence interval; zero when there is none.
    pub ci: f64,
    /// Unit, such as `KB/s`; empty for a bare number.
    pub unit: String,
    /// The published number, in the same unit.
    pub published: Option<f64>,
}

impl Measured {
    /// The mean of `summary` with its interval.
    pub fn new(
        label: impl Into<String>,
        summary: &Summary,
        unit: impl Into<String>,
        published: Option<f64>,
    ) -> Measured {
        Measured {
            label: label.into(),
            mean: summary.mean,
            ci: summary.ci95,
            unit: unit.into(),
            published,
        }
    }
}

/// How a [`Measured`] stands in JSON: the interval by its ends, so that no reader has to know that the
/// other form is half a width.
#[derive(Serialize, Deserialize)]
struct MeasuredJson {
    label: String,
    // What is no number stands there as `null`.
    value: Option<f64>,
    interval95: (Option<f64>, Option<f64>),
    unit: String,
    published: Option<f64>,
}

impl From<Measured> for MeasuredJson {
    fn from(m: Measured) -> MeasuredJson {
        MeasuredJson {
            label: m.label,
            value: Some(m.mean),
            interval95: (Some(m.mean - m.ci), Some(m.mean + m.ci)),
            unit: m.unit,
            published: m.published,
        }
    }
}

impl From<MeasuredJson> for Measured {
    fn from(m: MeasuredJson) -> Measured {
        let [mean, low, high] =
            [m.value, m.interval95.0, m.interval95.1].map(|value| value.unwrap_or(f64::NAN));
        let ci = (high - low) / 2.0;
        Measured { label: m.label, mean, ci, unit: m.unit, published: m.published }
    }
}

/// One published result beside what was measured.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ClaimResult {
    /// Stable name, such as `W-T1`.
    pub id: String,
    /// Key of the paper, such as `west97`.
    pub paper: String,
    /// Table, figure or section in the paper.
    #[serde(rename = "where")]
    pub place: String,
    /// What is run.
    pub setup: String,
    /// The paper's own figures, in words.
    pub published: String,
    /// What was measured.
    pub measured: Vec<Measured>,
    /// Runs behind each mean.
    pub runs: u32,
    /// Whether it was found again.
    pub verdict: Verdict,
    /// Why the verdict is what it is; for a claim that fails, the likely cause.
    pub reason: String,
}

/// A drawing with words around it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Figure {
    /// Inline SVG, as [`crate::plot::Plot::inline`] gives it. It is the one text that the page does not
    /// escape.
    pub svg: String,
    /// What it shows, in a few words.
    pub title: String,
    /// How to read it.
    pub caption: String,
    /// What it is drawn from: a page's script draws that, and offers it as CSV.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Data>,
    /// Pictures of one section and one group have their time axis and cursor in common.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub group: String,
}

impl Figure {
    /// A plot with what it shows and how to read it.
    pub fn new(plot: &Plot, title: impl Into<String>, caption: impl Into<String>) -> Figure {
        Figure {
            svg: plot.inline(),
            title: title.into(),
            caption: caption.into(),
            data: Some(plot.data().clone()),
            group: String::new(),
        }
    }
}

/// A column of a table.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Column {
    /// Heading, with the unit where there is one.
    pub title: String,
    /// Whether it holds numbers, which are aligned to the right.
    pub numeric: bool,
}

impl Column {
    /// A column of words.
    pub fn text(title: impl Into<String>) -> Column {
        Column { title: title.into(), numeric: false }
    }

    /// A column of numbers.
    pub fn number(title: impl Into<String>) -> Column {
        Column { title: title.into(), numeric: true }
    }
}

/// A table of words and numbers, for terminals and pages alike.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Table {
    /// What it shows; may be empty.
    pub title: String,
    /// Columns from left to right.
    pub columns: Vec<Column>,
    /// Rows from top to bottom, a cell for each column.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// The same under a title.
    pub fn titled(self, title: impl Into<String>) -> Table {
        Table { title: title.into(), ..self }
    }

    /// A table without a title.
    pub fn new(
        columns: impl IntoIterator<Item = Column>,
        rows: impl IntoIterator<Item = Vec<String>>,
    ) -> Table {
        let (columns, rows) = (columns.into_iter().collect(), rows.into_iter().collect());
        Table { title: String::new(), columns, rows }
    }
}

/// A part of a page.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Section {
    /// Heading; a section of a claim may leave it empty and is headed by the claim's name.
    pub title: String,
    /// Paragraphs.
    pub text: Vec<String>,
    /// The claim that it is about, if it is about one.
    pub claim: Option<ClaimResult>,
    /// Tables.
    pub tables: Vec<Table>,
    /// Drawings.
    pub figures: Vec<Figure>,
}

/// Something that a paper leaves open and we had to decide.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Assumption {
    /// What was assumed.
    pub what: String,
    /// Why, and on whose word.
    pub why: String,
}

/// How to get the same page again.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Again {
    /// Command lines, in order.
    pub commands: Vec<String>,
    /// Seeds used, such as `1..20`.
    pub seeds: String,
    /// Version of lasthop.
    pub version: String,
}

/// The page.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Page {
    /// The scenario's or the paper's name.
    pub title: String,
    /// One line under it.
    pub subtitle: String,
    /// Facts about the setup, as name and value.
    pub facts: Vec<(String, String)>,
    /// Parts, from top to bottom.
    pub sections: Vec<Section>,
    /// What was assumed.
    pub assumptions: Vec<Assumption>,
    /// How to run it again.
    pub again: Again,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_has_the_fields_that_programs_read() {
        let claim = ClaimResult {
            id: "W-T1".into(),
            paper: "west97".into(),
            place: "5.2.1, Table 1".into(),
            setup: String::new(),
            published: "98.36 KB/s".into(),
            measured: vec![Measured {
                label: "Reno".into(),
                mean: 97.0,
                ci: 2.0,
                unit: "KB/s".into(),
                published: Some(98.36),
            }],
            runs: 20,
            verdict: Verdict::NotRun,
            reason: "too few seeds".into(),
        };
        let json = serde_json::to_value(&claim).unwrap();
        for key in ["id", "paper", "where", "published", "measured", "runs", "verdict", "reason"] {
            assert!(json.get(key).is_some(), "{key}");
        }
        assert_eq!(json["verdict"], "not-run");
        assert_eq!(json["measured"][0]["value"], 97.0);
        assert_eq!(json["measured"][0]["interval95"], serde_json::json!([95.0, 99.0]));
        assert_eq!(serde_json::from_value::<ClaimResult>(json).unwrap(), claim);
    }
}
