//! Finished runs on disk: `runs/<key>.json`, one file each, so that a sweep continues where it stopped.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use lasthop_lab::RunResult;
use lasthop_scenario::Run;

use crate::failure::Failure;
use crate::output::AtomicFile;

/// The directory of finished runs.
#[derive(Debug)]
pub struct Store(PathBuf);

impl Store {
    /// The store in a directory of results; made if it is not there.
    pub fn open(results: &Path) -> Result<Store, Failure> {
        let dir = results.join("runs");
        fs::create_dir_all(&dir).map_err(|error| {
            Failure::file(&dir, error, "choose another directory with `-o DIR`")
        })?;
        Ok(Store(dir))
    }

    fn path(&self, run: &Run) -> PathBuf {
        self.0.join(format!("{}.json", run.key))
    }

    /// The result of `run` if it is there and whole. The key covers all that bears on a result; a file that
    /// does not read as one of this run counts as missing, and is replaced.
    pub fn load(&self, run: &Run) -> Option<RunResult> {
        let text = fs::read(self.path(run)).ok()?;
        let result: RunResult = serde_json::from_slice(&text).ok()?;
        (result.seed == run.seed).then_some(result)
    }

    /// Keeps a result. Not forced to the disk: what a power cut spoils is run again.
    pub fn save(&self, run: &Run, result: &RunResult) -> Result<(), Failure> {
        let path = self.path(run);
        let written = serde_json::to_vec(result).map_err(std::io::Error::other).and_then(|text| {
            let mut file = AtomicFile::create(&path)?;
            file.write_all(&text)?;
            file.commit_unsynced()
        });
        written
            .map_err(|error| Failure::file(&path, error, "finished runs are kept; is there room?"))
    }
}
