//! Cache of evaluated sets in `sets.jsonl`, one per line, so that an interrupted command resumes. A line is
//! valid only for the same program and question.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use lasthop_papers::{Claim, ConditionResult, Trial};
use lasthop_sim::runs::Observer;
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
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
    file: Option<(PathBuf, File)>,
}

impl ConditionCache {
    /// Opens the cache of `claims` in `dir`. New results are added to it. Without a directory nothing is
    /// stored.
    pub fn open(dir: Option<&Path>, claims: &[&'static Claim]) -> Result<ConditionCache, Failure> {
        let claims = claims.iter().map(|claim| claim.id.to_owned()).collect();
        let build = version::build();
        let mut cache = ConditionCache { build, claims, answers: BTreeMap::new(), file: None };
        let Some(path) = dir.map(|dir| dir.join("sets.jsonl")) else { return Ok(cache) };
        let text = fs::read_to_string(&path).unwrap_or_default();
        // The last line may be incomplete.
        let lines = text.lines().filter_map(|line| serde_json::from_str::<Line>(line).ok());
        let ours = |line: &Line| line.question.build == cache.build && !cache.build.is_empty();
        cache.answers = lines.filter(ours).map(|line| (line.question, line.judged)).collect();
        let failed = |error| Failure::file(&path, error, "is there room, and may you write there?");
        let options = OpenOptions::new().append(true).create(true).clone();
        // Results of other builds are obsolete.
        if cache.answers.is_empty() {
            fs::write(&path, "").map_err(failed)?;
        }
        let mut file = options.open(&path).map_err(failed)?;
        if !text.is_empty() && !text.ends_with('\n') {
            file.write_all(b"\n").map_err(failed)?;
        }
        cache.file = Some((path, file));
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
        let file = Mutex::new(self.file.as_mut());
        let failure = Mutex::new(None);
        let found = trial.judge_all(&missing, observer, &|i, judged| {
            progress.step("sets");
            let line = Line { question: question(&missing[i]), judged: judged.to_vec() };
            let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
            let Some((path, file)) = file.as_mut() else { return };
            let written = serde_json::to_string(&line)
                .map_err(std::io::Error::other)
                .and_then(|text| writeln!(file, "{text}"));
            if let Err(error) = written {
                let help = "is there room, and may you write there?";
                *failure.lock().unwrap_or_else(PoisonError::into_inner) =
                    Some(Failure::file(path, error, help));
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
