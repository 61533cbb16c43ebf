//! The origin of results: everything needed to reproduce them.

use lasthop_scenario::plan::RESULTS;
use lasthop_scenario::{Argument, Digest, Grid, Plan, Scenario};
use serde::{Deserialize, Serialize};

/// The origin of a table. Equal text and arguments give equal results with the same version.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Provenance {
    /// Version of lasthop.
    pub lasthop: String,
    /// Commit that this version was built from, if that is known. The same runs have the same name in spite of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// [`RESULTS`] of that version: raised when results change without a new version number.
    pub results: u32,
    /// Name of the scenario.
    pub name: String,
    /// Text of the scenario.
    pub text: String,
    /// `--set` and `--vary` arguments in order, each as option and value.
    pub arguments: Vec<[String; 2]>,
    /// A table of sets in CSV that replaces the axes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub points: Option<String>,
    /// A custom congestion control: its name, its version, and its host, if not all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control: Option<(String, String, Option<String>)>,
    /// Number of cells.
    pub cells: u64,
    /// First seed of the first cell.
    pub first_seed: u64,
    /// Number of seeds of the first cell.
    pub seeds: u32,
    /// The axes.
    pub axes: Vec<String>,
}

impl Provenance {
    /// The origin of a plan from `text` with `arguments`.
    pub fn new(plan: &Plan, text: &str, arguments: &[Argument]) -> Provenance {
        let first = plan.cells.first().map(|cell| &cell.scenario);
        let axes = plan.axes.iter().map(|axis| axis.name.clone()).collect();
        Provenance {
            name: plan.name.clone(),
            ..Provenance::of(first, plan.cells.len(), axes, text, arguments)
        }
    }

    /// The origin of a grid from `text` with `arguments` and `points`.
    pub fn of_grid(
        grid: &Grid,
        text: &str,
        arguments: &[Argument],
        points: Option<&str>,
    ) -> Provenance {
        Provenance {
            points: points.map(str::to_owned),
            ..Provenance::of(Some(grid.first()), grid.cells(), grid.axes(), text, arguments)
        }
    }

    fn of(
        first: Option<&Scenario>,
        cells: usize,
        axes: Vec<String>,
        text: &str,
        arguments: &[Argument],
    ) -> Provenance {
        let both = |a: &Argument| [a.option().to_owned(), a.text().to_owned()];
        Provenance {
            lasthop: lasthop_sim::version::VERSION.to_owned(),
            commit: lasthop_sim::version::COMMIT.map(str::to_owned),
            results: RESULTS,
            name: first.map_or(String::new(), |scenario| scenario.name.clone()),
            text: text.to_owned(),
            arguments: arguments.iter().map(both).collect(),
            points: None,
            control: None,
            cells: cells as u64,
            first_seed: first.map_or(0, |scenario| scenario.first_seed),
            seeds: first.map_or(0, |scenario| scenario.runs),
            axes,
        }
    }

    /// A difference between rows of `self` and `other` that has no column. Axes and seeds have one.
    pub fn difference(&self, other: &Provenance) -> Option<&'static str> {
        let sets = |of: &Provenance| {
            let is_hidden = |[option, text]: &&[String; 2]| {
                option == "--set" && !text.starts_with("seed=") && !text.starts_with("runs=")
            };
            of.arguments.iter().filter(is_hidden).cloned().collect::<Vec<_>>()
        };
        match () {
            () if self.text != other.text => Some("another scenario"),
            () if sets(self) != sets(other) => Some("other values of `--set`"),
            () if self.control != other.control => Some("another congestion control"),
            () => None,
        }
    }

    /// A digest of all fields.
    pub fn digest(&self) -> Digest {
        // Two builds of one version make the same runs.
        let named = Provenance { commit: None, ..self.clone() };
        Digest::default()
            .bytes(serde_json::to_string(&named).expect("settings are JSON").as_bytes())
    }
}
