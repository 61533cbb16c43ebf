//! Stores of batches, which allow many processes and machines to work on one sweep.
//!
//! A store holds immutable objects by name. If an object exists already, the writer compares. [`Directory`] is a store
//! on any file system, possibly shared by several machines. Other stores, such as a bucket, implement [`Store`].

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use lasthop_scenario::plan::RESULTS;
use serde::{Deserialize, Serialize};

use crate::Error;

/// Immutable objects by name.
pub trait Store: Sync {
    /// Its name in messages.
    fn title(&self) -> String;

    /// An object with this name exists.
    ///
    /// # Errors
    ///
    /// Those of the store.
    fn has(&self, name: &str) -> io::Result<bool>;

    /// The names of all objects, in any order.
    ///
    /// # Errors
    ///
    /// Those of the store.
    fn list(&self) -> io::Result<Vec<String>>;

    /// An object; `None` if it does not exist.
    ///
    /// # Errors
    ///
    /// Those of the store.
    fn get(&self, name: &str) -> io::Result<Option<Vec<u8>>>;

    /// Writes an object atomically. Returns false, without a change, if the name exists.
    ///
    /// # Errors
    ///
    /// Those of the store.
    fn put_if_absent(&self, name: &str, bytes: &[u8]) -> io::Result<bool>;
}

/// A directory as a store.
#[derive(Clone, Debug)]
pub struct Directory(PathBuf);

impl Directory {
    /// An existing store.
    ///
    /// # Errors
    ///
    /// There is no such directory.
    pub fn open(dir: &Path) -> Result<Directory, Error> {
        if !dir.is_dir() {
            let message = "there is no such directory";
            let error = io::Error::new(io::ErrorKind::NotFound, message);
            return Err(Error::file(
                dir,
                error,
                "give a directory that `lasthop sweep --store` wrote to",
            ));
        }
        Ok(Directory(dir.to_owned()))
    }

    /// A store, created if needed.
    ///
    /// # Errors
    ///
    /// The directory cannot be created.
    pub fn create(dir: &Path) -> Result<Directory, Error> {
        fs::create_dir_all(dir)
            .map_err(|error| Error::file(dir, error, "choose another directory for the store"))?;
        Ok(Directory(dir.to_owned()))
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
}

impl Store for Directory {
    fn title(&self) -> String {
        self.0.display().to_string()
    }

    fn has(&self, name: &str) -> io::Result<bool> {
        self.0.join(name).try_exists()
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let names = fs::read_dir(&self.0)?.map(|entry| Ok(entry?.file_name().into_string().ok()));
        let names: Vec<Option<String>> = names.collect::<io::Result<_>>()?;
        Ok(names.into_iter().flatten().filter(|name| !name.starts_with('.')).collect())
    }

    fn get(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        match fs::read(self.0.join(name)) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn put_if_absent(&self, name: &str, bytes: &[u8]) -> io::Result<bool> {
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

/// The object with the version of a store.
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

/// The error of a store for an object.
pub(crate) fn failed(store: &dyn Store, name: &str, error: io::Error) -> Error {
    let help = "what is in the store stays; is there room, and may you read and write there?";
    Error::file(&Path::new(&store.title()).join(name), error, help)
}

/// Checks that a store has results of this version, or none. `mark` writes the version to a new store.
///
/// # Errors
///
/// The store has another version; the message has both.
pub(crate) fn same_version(store: &dyn Store, mark: bool) -> Result<(), Error> {
    let wrong = |error| failed(store, MARK, error);
    let ours = Version::ours();
    let found = match store.get(MARK).map_err(wrong)? {
        None if mark => {
            let text = serde_json::to_vec(&ours).map_err(|error| wrong(error.into()))?;
            if store.put_if_absent(MARK, &text).map_err(wrong)? {
                return Ok(());
            }
            store.get(MARK).map_err(wrong)?
        }
        found => found,
    };
    let Some(found) = found else {
        let help = "a store is what `lasthop sweep --store` writes to";
        return Err(Error::input(format!("{} is no store: it has no {MARK}", store.title()), help));
    };
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
