//! Results in a file, so that a search that was stopped continues.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use lasthop_batch::lock;
use lasthop_explore::{Exploration, Options};
use lasthop_scenario::{Digest, RunKey, Scenario};

use crate::failure::Failure;
use crate::output;

/// No file of results is larger.
const LARGEST: u64 = 1 << 30;

/// Results by a hash of scenario, seed, options and version.
pub(super) struct Store {
    /// Without a path nothing is stored.
    path: Option<PathBuf>,
    /// Second half of every key: a hash of the options that change results. The first half is that of the scenario.
    suffix: String,
    seed: u64,
    results: Mutex<BTreeMap<String, Exploration>>,
}

impl Store {
    /// Reads the file, if it is there.
    pub fn open(path: Option<&Path>, seed: u64, options: &Options) -> Result<Store, Failure> {
        let Options { faults, first, fates, .. } = options;
        let words: Vec<&str> = fates.iter().map(|fate| fate.word()).collect();
        let text = format!("{faults} {first} {words:?} {}", lasthop_sim::version::LINE);
        let suffix = Digest::default().bytes(text.as_bytes()).to_string();
        let results = path.map_or(Ok(BTreeMap::new()), read)?;
        Ok(Store { path: path.map(Path::to_owned), suffix, seed, results: Mutex::new(results) })
    }

    fn key(&self, scenario: &Scenario) -> String {
        format!("{}-{}", RunKey::of(scenario, self.seed), self.suffix)
    }

    /// The stored results of this scenario.
    pub fn begun(&self, scenario: &Scenario) -> Exploration {
        if self.path.is_none() {
            return Exploration::default();
        }
        let results = lock(&self.results);
        results.get(&self.key(scenario)).cloned().unwrap_or_default()
    }

    /// Stores results, and writes the file.
    pub fn put(&self, scenario: &Scenario, found: &Exploration) -> Result<(), Failure> {
        let Some(path) = &self.path else { return Ok(()) };
        let key = self.key(scenario);
        let mut results = lock(&self.results);
        results.insert(key, found.clone());
        output::write(path, output::json(&*results)?.as_bytes())
    }
}

fn read(path: &Path) -> Result<BTreeMap<String, Exploration>, Failure> {
    let help = "name a file that `lasthop explore -o` wrote, or one that is not there yet";
    let failed = |error| Failure::file(path, error, help);
    match fs::metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(BTreeMap::new()),
        Err(error) => return Err(failed(error)),
        Ok(found) if found.len() > LARGEST || !found.is_file() => {
            let message = format!("{}: no file of results", path.display());
            return Err(Failure::input(message, help));
        }
        Ok(_) => {}
    }
    let text = fs::read_to_string(path).map_err(failed)?;
    serde_json::from_str(&text).map_err(|error| {
        Failure::input(format!("{}: no results of an exploration: {error}", path.display()), help)
    })
}
