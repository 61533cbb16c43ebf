//! The directory of a sweep, which allows many processes and machines to work on it.
//!
//! It has immutable files by name, most of them batches in Parquet. If a file exists already, the writer compares.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use lasthop_scenario::plan::RESULTS;
use serde::{Deserialize, Serialize};

use crate::Error;

/// A directory, on any file system, possibly shared by several machines.
#[derive(Clone, Debug)]
pub struct Store(PathBuf);

impl Store {
    /// A store, created if needed.
    ///
    /// # Errors
    ///
    /// The directory cannot be created.
    pub fn create(dir: &Path) -> Result<Store, Error> {
        fs::create_dir_all(dir)
            .map_err(|error| Error::file(dir, error, "choose another directory for the store"))?;
        Ok(Store(dir.to_owned()))
    }

    /// An own temporary file: two processes, possibly on two machines, never write to the same one.
    fn aside(&self, name: &str) -> io::Result<(PathBuf, File)> {
        for n in 0.. {
            let path = self.0.join(format!(".{name}.{}-{n}.tmp", std::process::id()));
            match File::create_new(&path) {
                Ok(file) => return Ok((path, file)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && n < 1000 => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::Error::from(io::ErrorKind::AlreadyExists))
    }

    /// Its name in messages.
    pub fn title(&self) -> String {
        self.0.display().to_string()
    }

    pub(crate) fn has(&self, name: &str) -> io::Result<bool> {
        self.0.join(name).try_exists()
    }

    pub(crate) fn list(&self) -> io::Result<Vec<String>> {
        let names = fs::read_dir(&self.0)?.map(|entry| Ok(entry?.file_name().into_string().ok()));
        let names: Vec<Option<String>> = names.collect::<io::Result<_>>()?;
        Ok(names.into_iter().flatten().filter(|name| !name.starts_with('.')).collect())
    }

    pub(crate) fn get(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        match fs::read(self.0.join(name)) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes a file atomically. Returns false, without a change, if the name exists.
    pub(crate) fn put_if_absent(&self, name: &str, bytes: &[u8]) -> io::Result<bool> {
        let target = self.0.join(name);
        let (temporary, mut file) = self.aside(name)?;
        // A hard link fails if the name exists. Some file systems have no hard links.
        let put =
            file.write_all(bytes).and_then(|()| file.sync_all()).and_then(
                |()| match fs::hard_link(&temporary, &target) {
                    Ok(()) => Ok(true),
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
                    Err(_) if target.try_exists()? => Ok(false),
                    Err(_) => fs::rename(&temporary, &target).map(|()| true),
                },
            );
        let _ = fs::remove_file(&temporary);
        put
    }
}

/// The file with the version of a store.
pub const MARK: &str = "lasthop-store.json";

/// The version of a store's results.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Version {
    pub lasthop: String,
    pub results: u32,
}

impl Version {
    pub fn ours() -> Version {
        Version { lasthop: env!("CARGO_PKG_VERSION").to_owned(), results: RESULTS }
    }
}

impl core::fmt::Display for Version {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "lasthop {} (results {})", self.lasthop, self.results)
    }
}

/// The version of this program and of its results, in the format of a store.
pub fn version() -> String {
    Version::ours().to_string()
}

/// The error of a store for a file.
pub(crate) fn failed(store: &Store, name: &str, error: io::Error) -> Error {
    let help = "what is in the store stays; is there room, and may you read and write there?";
    Error::file(&Path::new(&store.title()).join(name), error, help)
}

/// Checks that a store has results of this version, and writes the version to a new store.
///
/// # Errors
///
/// The store has another version; the message has both.
pub(crate) fn same_version(store: &Store) -> Result<(), Error> {
    let wrong = |error| failed(store, MARK, error);
    let ours = Version::ours();
    if store.get(MARK).map_err(wrong)?.is_none() {
        let text = serde_json::to_vec(&ours).map_err(|error| wrong(error.into()))?;
        store.put_if_absent(MARK, &text).map_err(wrong)?;
    }
    let found = store.get(MARK).map_err(wrong)?.unwrap_or_default();
    let theirs: Version = serde_json::from_slice(&found).map_err(|error| wrong(error.into()))?;
    if theirs != ours {
        return Err(Error::input(
            format!(
                "{} has results of {theirs}, and this is {ours}: versions do not mix",
                store.title()
            ),
            "take another store, or that version",
        ));
    }
    Ok(())
}
