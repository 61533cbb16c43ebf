//! The content of a page. The caller supplies all of it, and this module computes nothing from traces.

use serde::{Deserialize, Serialize};

use crate::data::Data;
use crate::estimate::Estimate;
use crate::plot::Plot;

/// The result of reproducing a published result.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    Holds,
    Fails,
    /// The interval of a measured value crosses the bound: other seeds could decide otherwise.
    Undecided,
    /// It was not run.
    NotRun,
}

impl Verdict {
    /// The name in files and tables: `holds`, `fails`, `undecided`, `not-run`.
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Holds => "holds",
            Verdict::Fails => "fails",
            Verdict::Undecided => "undecided",
            Verdict::NotRun => "not-run",
        }
    }
}

/// A measured figure, with the published number if there is one.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct MeasuredFigure {
    /// The quantity, such as `Reno throughput`.
    pub label: String,
    /// Mean over the runs.
    #[serde(flatten)]
    pub mean: Estimate,
    /// Unit, such as `KB/s`; empty for a bare number.
    pub unit: String,
    /// The published number, in the same unit.
    pub published: Option<f64>,
}

/// A condition of a published result: a measured value and its bound.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ConditionFigure {
    /// The measured quantity, with its unit.
    pub what: String,
    #[serde(flatten)]
    pub measured: Estimate,
    /// The bound as text, such as `at most 5`.
    pub wanted: String,
    pub verdict: Verdict,
}

/// A published result and its measurement.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ClaimResult {
    /// Stable name, such as `W-T1`.
    pub id: String,
    /// Key of the paper, such as `west97`.
    pub paper: String,
    /// Table, figure or section in the paper.
    #[serde(rename = "where")]
    pub place: String,
    /// The runs, in words.
    pub setup: String,
    /// The paper's own figures, in words.
    pub published: String,
    pub measured: Vec<MeasuredFigure>,
    /// The conditions of the verdict; all of them must hold.
    #[serde(default)]
    pub conditions: Vec<ConditionFigure>,
    /// Runs of each mean.
    pub runs: u32,
    pub verdict: Verdict,
    /// The reason of the verdict; for a claim that fails, the likely cause.
    pub reason: String,
    /// Remarks, which `reason` has as well.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// A plot with its texts.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Figure {
    /// Inline SVG from [`crate::plot::Plot::inline`]. It is the only text that the page does not escape.
    pub svg: String,
    /// Subject of the plot, in a few words.
    pub title: String,
    /// Explanation of the plot.
    pub caption: String,
    /// The numbers behind the plot: the page's script draws them and exports them as CSV.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Data>,
    /// Plots of one section with the same group share their time axis and cursor.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// Name of the figure on its page, for links to it; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub anchor: String,
}

impl Figure {
    pub fn new(plot: &Plot, title: impl Into<String>, caption: impl Into<String>) -> Figure {
        Figure {
            svg: plot.inline(),
            title: title.into(),
            caption: caption.into(),
            data: Some(plot.data().clone()),
            group: String::new(),
            anchor: String::new(),
        }
    }
}

/// A link to a part of the time axis of a figure.
#[derive(Clone, PartialEq, Debug)]
pub struct EventLink {
    pub text: String,
    /// The [`Figure::anchor`] of a figure on the same page.
    pub figure: String,
    /// The part of the time axis that the plot shows then, in seconds.
    pub from_s: f64,
    pub to_s: f64,
}

/// A sentence that lists events of a run.
#[derive(Clone, PartialEq, Debug)]
pub struct Events {
    /// The beginning of the sentence, without a colon.
    pub lead: String,
    pub links: Vec<EventLink>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Column {
    /// Heading, with the unit if there is one.
    pub title: String,
    /// Whether the column holds numbers, which are aligned to the right.
    pub numeric: bool,
}

impl Column {
    pub fn text(title: impl Into<String>) -> Column {
        Column { title: title.into(), numeric: false }
    }

    pub fn number(title: impl Into<String>) -> Column {
        Column { title: title.into(), numeric: true }
    }

    /// Columns of `headings`, which are separated by ` | `. A heading with `<` in front is that of a column of text, all
    /// others are those of numbers.
    pub fn list(headings: &str) -> Vec<Column> {
        let column = |heading: &str| match heading.strip_prefix('<') {
            Some(words) => Column::text(words),
            None => Column::number(heading),
        };
        headings.split(" | ").map(column).collect()
    }
}

/// A table of words and numbers, for terminals and pages.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Table {
    /// May be empty.
    pub title: String,
    pub columns: Vec<Column>,
    /// Each row has a cell for each column.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// The same table with a title.
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

#[derive(Clone, PartialEq, Debug, Default)]
pub struct Section {
    /// Heading; if empty, the name of the claim is the heading.
    pub title: String,
    /// Paragraphs.
    pub text: Vec<String>,
    /// Events of runs, below the paragraphs.
    pub events: Vec<Events>,
    /// The claim that the section is about.
    pub claim: Option<ClaimResult>,
    pub tables: Vec<Table>,
    pub figures: Vec<Figure>,
}

/// A decision where a paper leaves a parameter open.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Assumption {
    pub what: String,
    /// The reason and its source.
    pub why: String,
}

/// How to reproduce the page.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Again {
    /// Command lines, in order.
    pub commands: Vec<String>,
    /// Seeds, such as `1..20`.
    pub seeds: String,
    /// Version of lasthop.
    pub version: String,
}

#[derive(Clone, PartialEq, Debug, Default)]
pub struct Page {
    /// Name of the scenario or the paper.
    pub title: String,
    /// One line below the title.
    pub subtitle: String,
    /// Facts about the setup, as name and value.
    pub facts: Vec<(String, String)>,
    pub sections: Vec<Section>,
    pub assumptions: Vec<Assumption>,
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
            measured: vec![MeasuredFigure {
                label: "Reno".into(),
                mean: Estimate { value: 97.0, ci: Some(2.0) },
                unit: "KB/s".into(),
                published: Some(98.36),
            }],
            conditions: vec![ConditionFigure {
                what: "Reno in KB/s".into(),
                measured: Estimate::from(97.0),
                wanted: "90 to 110".into(),
                verdict: Verdict::Holds,
            }],
            runs: 20,
            verdict: Verdict::NotRun,
            reason: "too few seeds".into(),
            notes: Vec::new(),
        };
        let json = serde_json::to_value(&claim).unwrap();
        for key in ["id", "paper", "where", "published", "measured", "runs", "verdict", "reason"] {
            assert!(json.get(key).is_some(), "{key}");
        }
        assert_eq!(json["verdict"], "not-run");
        assert_eq!(json["measured"][0]["value"], 97.0);
        assert_eq!(json["measured"][0]["interval95"], serde_json::json!([95.0, 99.0]));
        assert!(json["conditions"][0]["interval95"].is_null(), "no interval was measured");
        assert_eq!(serde_json::from_value::<ClaimResult>(json).unwrap(), claim);
    }
}
