//! Evaluated claims on disk, one file `claims/ID.json` each. An interrupted command resumes, and a report
//! combines the claims of several commands.
//!
//! A stored result replaces an evaluation if program and seeds are equal; no other option affects a verdict.
//! The program is identified by its version and its file, since a version has many builds during development.

use std::fs;
use std::path::{Path, PathBuf};

use lasthop_papers::{ClaimEvaluation, all_claims};
use lasthop_report::model::{ClaimResult, Figure, Table};
use lasthop_report::number::plural;
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::{output, version};

/// Origin of a result.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug)]
pub struct Origin {
    /// Runs per case.
    pub seeds: u32,
    /// First seed.
    #[serde(default = "first")]
    pub first_seed: u64,
    /// Version of lasthop.
    pub lasthop: String,
    /// The program's file: length and modification time. Empty if unknown.
    pub build: String,
}

fn first() -> u64 {
    1
}

impl Origin {
    /// Results of this program for `seeds` seeds from `first_seed` on.
    pub fn new(seeds: u32, first_seed: u64) -> Origin {
        let lasthop = version::LINE.to_owned();
        Origin { seeds, first_seed, lasthop, build: version::build() }
    }

    /// Whether a result with this origin is valid for `now`.
    fn serves(&self, now: &Origin) -> bool {
        self == now && !self.build.is_empty()
    }

    /// As text, with differences to the present program.
    pub fn words(&self, now: &Origin) -> String {
        let Origin { seeds, first_seed, lasthop, .. } = self;
        let same_seeds = (self.seeds, self.first_seed) == (now.seeds, now.first_seed);
        let stale = match (self.build == now.build, same_seeds) {
            (true, true) => "",
            (true, false) => ", other seeds than in the last run",
            (false, _) => ", another build than that of the last run",
        };
        let from = if *first_seed == 1 { String::new() } else { format!(" from {first_seed} on") };
        let seeds = plural((*seeds).into(), "seed");
        format!("Evaluated with {seeds}{from} by lasthop {lasthop}{stale}.")
    }
}

/// An evaluated claim.
#[derive(Serialize, Deserialize, Debug)]
pub struct StoredClaim {
    /// The program and seeds of its evaluation.
    pub origin: Origin,
    /// The verdict and the figures.
    pub result: ClaimResult,
    /// For the report.
    pub tables: Vec<Table>,
    /// For the report.
    pub figures: Vec<Figure>,
    /// Whether it was found on disk.
    #[serde(skip)]
    pub found: bool,
}

/// A claim in JSON.
#[derive(Serialize)]
pub struct ClaimAnswer<'a> {
    #[serde(flatten)]
    result: &'a ClaimResult,
    seeds: u32,
    first_seed: u64,
    lasthop: &'a str,
    /// Whether it was made with another program or other seeds than the last run.
    stale: bool,
}

impl StoredClaim {
    /// A claim that was just evaluated.
    pub fn new(
        ClaimEvaluation { result, finding }: ClaimEvaluation,
        origin: Origin,
    ) -> StoredClaim {
        let (tables, figures) = (finding.tables, finding.figures);
        StoredClaim { origin, result, tables, figures, found: false }
    }

    /// The claim in JSON; `now` is the last run.
    pub fn answer(&self, now: &Origin) -> ClaimAnswer<'_> {
        let Origin { seeds, first_seed, lasthop, .. } = &self.origin;
        let (seeds, first_seed) = (*seeds, *first_seed);
        ClaimAnswer { result: &self.result, seeds, first_seed, lasthop, stale: self.origin != *now }
    }
}

/// A directory with a report and its claims.
#[derive(Debug)]
pub struct Store {
    /// The directory.
    pub dir: PathBuf,
    claims: PathBuf,
}

impl Store {
    /// Opens the store in `dir`; creates it if needed.
    pub fn open(dir: &Path) -> Result<Store, Failure> {
        let claims = dir.join("claims");
        output::prepare(&claims)?;
        Ok(Store { dir: dir.to_owned(), claims })
    }

    fn path(&self, id: &str) -> PathBuf {
        self.claims.join(format!("{id}.json"))
    }

    /// Stores an evaluated claim, and replaces an earlier one.
    pub fn save(&self, claim: &StoredClaim) -> Result<(), Failure> {
        output::write(&self.path(&claim.result.id), output::json(claim)?.as_bytes())
    }

    /// The stored claim `id`. An unreadable file counts as missing.
    fn load(&self, id: &str) -> Option<StoredClaim> {
        let claim: StoredClaim = serde_json::from_slice(&fs::read(self.path(id)).ok()?).ok()?;
        (claim.result.id == id).then_some(StoredClaim { found: true, ..claim })
    }

    /// The stored claim `id`, if it is valid for `now`.
    pub fn valid(&self, id: &str, now: &Origin) -> Option<StoredClaim> {
        self.load(id).filter(|claim| claim.origin.serves(now))
    }

    /// All stored claims, in the order of the papers.
    pub fn all(&self) -> Vec<StoredClaim> {
        all_claims().filter_map(|claim| self.load(claim.id)).collect()
    }
}
