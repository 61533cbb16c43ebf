//! Finished runs on disk, one per line of `runs.jsonl`, so that a sweep resumes after an interruption.

use std::collections::BTreeMap;
use std::path::Path;

use lasthop_batch::files::remove_abandoned;
use lasthop_scenario::Run;
use lasthop_sim::runs::RunResult;
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::lines::Lines;

/// Name of the file in a directory of results.
pub const RUNS_FILE: &str = "runs.jsonl";

/// A line. The key covers everything that affects the result.
#[derive(Serialize, Deserialize)]
struct Line<R> {
    key: String,
    run: R,
}

/// The finished runs of a directory of results.
#[derive(Debug)]
pub struct Store {
    stored: BTreeMap<String, RunResult>,
    lines: Lines,
}

impl Store {
    /// Opens the store in a directory of results; creates it if needed.
    pub fn open(results: &Path) -> Result<Store, Failure> {
        for dir in [results, &results.join("trace")] {
            remove_abandoned(dir);
        }
        let help = "choose another directory with `-o DIR`";
        let (lines, stored) = Lines::open::<Line<RunResult>>(&results.join(RUNS_FILE), help)?;
        Ok(Store { stored: stored.into_iter().map(|line| (line.key, line.run)).collect(), lines })
    }

    /// The stored result of `run`, if there is one.
    pub fn load(&self, run: &Run) -> Option<RunResult> {
        let result = self.stored.get(&run.key.to_string())?;
        (result.seed == run.seed).then(|| result.clone())
    }

    /// Stores a result.
    pub fn save(&self, run: &Run, result: &RunResult) -> Result<(), Failure> {
        let line = Line { key: run.key.to_string(), run: result };
        self.lines.add(&line, "finished runs are stored; is there room?")
    }
}
