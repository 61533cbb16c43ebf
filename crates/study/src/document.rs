//! The common result of all studies that rank alternatives.

use lasthop_scenario::{Family, LeftOut, Scheme};
use lasthop_sim::runs::Setup;
use serde::Serialize;

use crate::ranking::{Judgement, Standing, standings_of_looks};

/// An alternative, or the baseline itself. The unchanged scenario sets its varied keys to their first values.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Alternative {
    pub name: String,
    /// The part of the network where a scheme acts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub family: Option<Family>,
    /// Devices that must be changed, if known: see [`Scheme::change`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub change: Option<Vec<String>>,
    /// Description in a few words.
    pub what: String,
    /// How it is available today: see [`Scheme::run`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// Its settings, as `KEY=VALUE`.
    pub sets: Vec<String>,
}

impl Alternative {
    /// An alternative known only by its settings.
    pub fn setting(name: &str, description: impl Into<String>, sets: Vec<String>) -> Alternative {
        let (name, description) = (name.to_owned(), description.into());
        Alternative { name, family: None, change: None, what: description, run: None, sets }
    }

    /// The devices to change, as text.
    pub fn deployed(&self) -> String {
        match self.change.as_deref() {
            None | Some([]) => "–".to_owned(),
            Some(change) => change.join(", "),
        }
    }
}

impl From<&Scheme> for Alternative {
    fn from(scheme: &Scheme) -> Alternative {
        let sets = scheme.settings().map(|(key, value)| format!("{key}={value}")).collect();
        Alternative {
            family: Some(scheme.family),
            change: Some(scheme.change.clone()),
            run: scheme.run.clone(),
            ..Alternative::setting(&scheme.name, scheme.what.as_str(), sets)
        }
    }
}

/// An alternative with its rank.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Ranked<M> {
    #[serde(flatten)]
    pub alternative: Alternative,
    /// Its rank and the figures behind it.
    #[serde(flatten)]
    pub standing: Standing,
    /// Further measured figures.
    #[serde(flatten)]
    pub measured: M,
}

impl<M> Ranked<M> {
    pub fn name(&self) -> &str {
        &self.alternative.name
    }

    /// Whether it is significantly better than the baseline.
    pub fn helps(&self) -> bool {
        self.standing.judgement == Judgement::Better
    }
}

/// Ranks alternatives, the best first. `values` has the ranked figure of each alternative, by seed; `baseline` is the
/// index of the baseline, and `measured` returns further figures by index.
pub fn rank<M>(
    alternatives: Vec<Alternative>,
    values: &[Vec<f64>],
    baseline: usize,
    measured: impl FnMut(usize) -> M,
) -> Vec<Ranked<M>> {
    rank_of_looks(alternatives, values, baseline, 1, measured)
}

/// Like [`rank`], after `looks` interim analyses that selected the alternatives with more seeds; see
/// [`standings_of_looks`].
pub fn rank_of_looks<M>(
    alternatives: Vec<Alternative>,
    values: &[Vec<f64>],
    baseline: usize,
    looks: u32,
    mut measured: impl FnMut(usize) -> M,
) -> Vec<Ranked<M>> {
    let all = alternatives.into_iter().zip(standings_of_looks(values, baseline, looks)).enumerate();
    let mut ranked: Vec<Ranked<M>> = all
        .map(|(i, (alternative, standing))| Ranked { alternative, standing, measured: measured(i) })
        .collect();
    ranked.sort_by(|a, b| {
        let best = b.standing.value.mean.total_cmp(&a.standing.value.mean);
        a.standing.rank.cmp(&b.standing.rank).then(best)
    });
    ranked
}

/// The result of a study.
#[derive(Clone, Debug, Serialize)]
pub struct Document<S> {
    /// Version of lasthop.
    pub lasthop: String,
    /// Commit that this version was built from, if that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<&'static str>,
    /// Name of the scenario.
    pub name: String,
    /// The command that reproduces it.
    pub command: String,
    /// The path from left to right.
    pub path: String,
    /// The transfers, one per line.
    pub transfers: Vec<String>,
    /// The baseline, where there is a choice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub baseline: Option<String>,
    /// Seeds of the runs of each alternative near the top; others may have `fewer`.
    pub seeds: Vec<u64>,
    /// Runs of each alternative far from the top, if those have fewer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fewer: Option<u32>,
    /// The results of this study, with its ranked alternatives.
    #[serde(flatten)]
    pub results: S,
    /// Alternatives that do not apply.
    pub left_out: Vec<LeftOut>,
    /// Alternatives with missing runs, because the study was interrupted.
    pub unfinished: Vec<String>,
    /// At least one alternative is significantly better than the baseline; `None` if not part of the question.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub anything_helps: Option<bool>,
}

impl<S> Document<S> {
    /// A complete document about the scenario `name` with the texts of `setup`.
    pub(crate) fn new(name: &str, setup: &Setup, seeds: Vec<u64>, results: S) -> Document<S> {
        let Setup { command, path, transfers, .. } = setup.clone();
        Document {
            lasthop: lasthop_sim::version::VERSION.to_owned(),
            commit: lasthop_sim::version::COMMIT,
            name: name.to_owned(),
            command,
            path,
            transfers,
            baseline: None,
            seeds,
            fewer: None,
            results,
            left_out: Vec::new(),
            unfinished: Vec::new(),
            anything_helps: None,
        }
    }

    /// Whether all runs were made.
    pub fn is_complete(&self) -> bool {
        self.unfinished.is_empty()
    }
}
