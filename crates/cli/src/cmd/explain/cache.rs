//! Cache of evaluated sets in `sets.jsonl`, one per line, so that an interrupted command resumes. A line is
//! valid only for the same program and question.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use lasthop_batch::lock;
use lasthop_papers::{Claim, ConditionResult, Trial};
use lasthop_sim::runs::Observer;
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::lines::Lines;
use crate::progress::Progress;
use crate::version;

/// A question: the set, the number of seeds, and the program.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Question {
    /// [`version::build`].
    build: String,
    claims: Vec<String>,
    seeds: u32,
    whole: bool,
    set: Vec<String>,
}

/// The remedy of a failure.
const HELP: &str = "is there room, and may you write there?";

/// A line of the file.
#[derive(Serialize, Deserialize, Debug)]
struct Line {
    #[serde(flatten)]
    question: Question,
    judged: Vec<ConditionResult>,
}

/// Results of conditions by question.
pub struct ConditionCache {
    /// The program's build; empty if it cannot be determined, so that no result is stored.
    build: String,
    claims: Vec<String>,
    answers: BTreeMap<Question, Vec<ConditionResult>>,
    lines: Option<Lines>,
}

impl ConditionCache {
    /// Opens the cache of `claims` in `dir`. New results are added to it. Without a directory nothing is
    /// stored.
    pub fn open(dir: Option<&Path>, claims: &[&'static Claim]) -> Result<ConditionCache, Failure> {
        let claims = claims.iter().map(|claim| claim.id.to_owned()).collect();
        let build = version::build();
        let mut cache = ConditionCache { build, claims, answers: BTreeMap::new(), lines: None };
        let Some(path) = dir.map(|dir| dir.join("sets.jsonl")) else { return Ok(cache) };
        let (lines, stored) = Lines::open::<Line>(&path, HELP)?;
        let ours = |line: &Line| line.question.build == cache.build && !cache.build.is_empty();
        let answers = stored.into_iter().filter(ours).map(|line| (line.question, line.judged));
        cache.answers = answers.collect();
        if cache.answers.is_empty() {
            lines.clear(HELP)?;
        }
        cache.lines = Some(lines);
        Ok(cache)
    }

    /// Conditions under each of `sets`, from the cache if possible. `None` for sets that were not started.
    pub fn judge_all(
        &mut self,
        trial: &Trial<'_>,
        sets: &[Vec<String>],
        observer: &dyn Observer,
        progress: &Progress,
    ) -> Result<Vec<Option<Vec<ConditionResult>>>, Failure> {
        let question = |set: &Vec<String>| Question {
            build: self.build.clone(),
            claims: self.claims.clone(),
            seeds: trial.seeds,
            whole: trial.whole,
            set: set.clone(),
        };
        // Samples may contain a set several times, which is evaluated once.
        let mut seen = BTreeSet::new();
        let mut new = |set: &Vec<String>| {
            !self.answers.contains_key(&question(set)) && seen.insert(set.clone())
        };
        let missing: Vec<Vec<String>> = sets.iter().filter(|set| new(set)).cloned().collect();
        progress.begin_at((sets.len() - missing.len()) as u64);
        let failure = Mutex::new(None);
        let found = trial.judge_all(&missing, observer, &|i, judged| {
            progress.step("sets");
            let line = Line { question: question(&missing[i]), judged: judged.to_vec() };
            let added = self.lines.as_ref().map_or(Ok(()), |lines| lines.add(&line, HELP));
            if let Err(error) = added {
                *lock(&failure) = Some(error);
            }
        });
        progress.finish();
        if let Some(failure) = failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
            return Err(failure);
        }
        let questions = missing.iter().map(&question).collect::<Vec<_>>();
        let all = sets.iter().map(&question).collect::<Vec<_>>();
        for (question, judged) in questions.into_iter().zip(found) {
            if let Some(judged) = judged {
                self.answers.insert(question, judged);
            }
        }
        Ok(all.iter().map(|question| self.answers.get(question).cloned()).collect())
    }
}
