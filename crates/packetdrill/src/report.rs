//! Results of many scripts: counts in total and by folder.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::run::Verdict;

/// Numbers of scripts that passed, failed and could not be run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Counts {
    /// All expectations held.
    pub pass: usize,
    /// An expectation failed.
    pub fail: usize,
    /// The script uses a missing feature.
    pub unsupported: usize,
}

impl Counts {
    /// Counts one verdict.
    pub fn add(&mut self, verdict: &Verdict) {
        match verdict {
            Verdict::Pass => self.pass += 1,
            Verdict::Fail { .. } => self.fail += 1,
            Verdict::Unsupported { .. } => self.unsupported += 1,
        }
    }

    /// Number of all scripts.
    pub fn all(&self) -> usize {
        self.pass + self.fail + self.unsupported
    }
}

/// The counts of each folder: the path of a script without its name.
pub fn by_folder<'a>(
    results: impl Iterator<Item = (&'a str, &'a Verdict)>,
) -> BTreeMap<String, Counts> {
    let mut folders: BTreeMap<String, Counts> = BTreeMap::new();
    for (path, verdict) in results {
        let folder = path.rsplit_once('/').map_or(".", |(folder, _)| folder);
        folders.entry(folder.to_owned()).or_default().add(verdict);
    }
    folders
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_have_counts_of_their_own() {
        let fail = Verdict::Fail { line: 1, expected: String::new(), got: String::new() };
        let results = [("a/x.pkt", &Verdict::Pass), ("a/y.pkt", &fail), ("z.pkt", &fail)];
        let folders = by_folder(results.into_iter());
        assert_eq!(folders["a"], Counts { pass: 1, fail: 1, unsupported: 0 });
        assert_eq!((folders["."].fail, folders["."].all()), (1, 1));
    }
}
