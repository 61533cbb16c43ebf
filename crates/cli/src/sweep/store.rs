//! Finished runs on disk, one per line of `runs.jsonl`, so that a sweep resumes after an interruption.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use lasthop_batch::files::remove_abandoned;
use lasthop_scenario::Run;
use lasthop_sim::runs::RunResult;
use serde::{Deserialize, Serialize};

use crate::failure::Failure;

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
    path: PathBuf,
    stored: BTreeMap<String, RunResult>,
    file: Mutex<File>,
}

impl Store {
    /// Opens the store in a directory of results; creates it if needed. An unreadable line counts as missing,
    /// since the last one may be incomplete.
    pub fn open(results: &Path) -> Result<Store, Failure> {
        for dir in [results, &results.join("trace")] {
            remove_abandoned(dir);
        }
        let path = results.join(RUNS_FILE);
        let failed = |error| Failure::file(&path, error, "choose another directory with `-o DIR`");
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(failed(error)),
        };
        let lines = text.split(|byte| *byte == b'\n');
        let lines = lines.filter_map(|line| serde_json::from_slice::<Line<RunResult>>(line).ok());
        let stored = lines.map(|line| (line.key, line.run)).collect();
        let mut file = File::options().append(true).create(true).open(&path).map_err(failed)?;
        if text.last().is_some_and(|byte| *byte != b'\n') {
            file.write_all(b"\n").map_err(failed)?;
        }
        Ok(Store { path, stored, file: Mutex::new(file) })
    }

    /// The stored result of `run`, if there is one.
    pub fn load(&self, run: &Run) -> Option<RunResult> {
        let result = self.stored.get(&run.key.to_string())?;
        (result.seed == run.seed).then(|| result.clone())
    }

    /// Stores a result. It is not synced: a run that a power cut damages is repeated.
    pub fn save(&self, run: &Run, result: &RunResult) -> Result<(), Failure> {
        let line = Line { key: run.key.to_string(), run: result };
        let written = serde_json::to_vec(&line).map_err(io::Error::other).and_then(|mut line| {
            line.push(b'\n');
            // In one piece, so that lines of two programs do not mix.
            self.file.lock().unwrap_or_else(PoisonError::into_inner).write_all(&line)
        });
        written.map_err(|error| {
            Failure::file(&self.path, error, "finished runs are stored; is there room?")
        })
    }
}
