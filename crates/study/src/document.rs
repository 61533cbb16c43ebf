//! What every study that ranks has in common: alternatives, how each stands beside a baseline, and what was run.

use lasthop_lab::Setup;
use lasthop_scenario::{Family, LeftOut, Scheme};
use serde::Serialize;

use crate::ranking::{Judgement, Standing, standings_of_looks};

/// Something that could be had instead of the baseline, or that itself. The scenario as it is sets what it varies to its
/// first points.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Alternative {
    /// Its name.
    pub name: String,
    /// Where in the network it works, if it is a scheme.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub family: Option<Family>,
    /// What must be replaced or installed to have it, if that is known: see [`Scheme::change`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub change: Option<Vec<String>>,
    /// What it is, in a few words.
    pub what: String,
    /// How it can be had today: see [`Scheme::run`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// What it sets, as `KEY=VALUE`.
    pub sets: Vec<String>,
}

impl Alternative {
    /// One of which nothing is known but what it sets.
    pub fn setting(name: &str, what: impl Into<String>, sets: Vec<String>) -> Alternative {
        let (name, what) = (name.to_owned(), what.into());
        Alternative { name, family: None, change: None, what, run: None, sets }
    }

    /// What must be deployed, in words.
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

/// An alternative beside the others.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Ranked<M> {
    /// What it is.
    #[serde(flatten)]
    pub alternative: Alternative,
    /// What it is ranked by, beside the others.
    #[serde(flatten)]
    pub standing: Standing,
    /// What else was measured.
    #[serde(flatten)]
    pub measured: M,
}

impl<M> Ranked<M> {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.alternative.name
    }

    /// Whether it is better than the baseline, with confidence.
    pub fn helps(&self) -> bool {
        self.standing.judgement == Judgement::Better
    }
}

/// Puts alternatives in order, the best first. `values` has for each of them what it is ranked by, in the order of the
/// seeds; `baseline` is the place of the one that they are compared with, and `measured` tells what else is known of
/// the one at a place.
pub fn rank<M>(
    alternatives: Vec<Alternative>,
    values: &[Vec<f64>],
    baseline: usize,
    measured: impl FnMut(usize) -> M,
) -> Vec<Ranked<M>> {
    rank_of_looks(alternatives, values, baseline, 1, measured)
}

/// The same where it was decided in so many `looks` which alternatives get more seeds; see [`standings_of_looks`].
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

/// Everything that a study says.
#[derive(Clone, Debug, Serialize)]
pub struct Document<S> {
    /// Version of lasthop that made it.
    pub lasthop: String,
    /// Commit that this version was built from, if that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<&'static str>,
    /// Name of the scenario.
    pub name: String,
    /// The command that makes it again.
    pub command: String,
    /// The path from left to right.
    pub path: String,
    /// What is transferred.
    pub transfers: Vec<String>,
    /// What the others are compared with, where there is a choice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub baseline: Option<String>,
    /// Seeds of the runs of each alternative; of each near the top, where others have `fewer`.
    pub seeds: Vec<u64>,
    /// Runs of each alternative that was far from the top, if those have fewer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fewer: Option<u32>,
    /// What this study says beyond that, the ranked alternatives among it.
    #[serde(flatten)]
    pub said: S,
    /// Alternatives that do not apply.
    pub left_out: Vec<LeftOut>,
    /// Alternatives of which not all runs were made, since somebody interrupted.
    pub unfinished: Vec<String>,
    /// Whether any alternative is better than the baseline, with confidence; where that is what was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub anything_helps: Option<bool>,
}

impl<S> Document<S> {
    /// A document about the scenario `name`, set up as `setup` says, in which nothing is missing.
    pub(crate) fn new(name: &str, setup: &Setup, seeds: Vec<u64>, said: S) -> Document<S> {
        let Setup { command, path, transfers, .. } = setup.clone();
        Document {
            lasthop: lasthop_version::VERSION.to_owned(),
            commit: lasthop_version::COMMIT,
            name: name.to_owned(),
            command,
            path,
            transfers,
            baseline: None,
            seeds,
            fewer: None,
            said,
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
