//! Files with a line of JSON for each finished piece of work, so that an interrupted command resumes.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use lasthop_batch::lock;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::failure::Failure;

/// A file to which lines are added.
#[derive(Debug)]
pub struct Lines {
    path: PathBuf,
    file: Mutex<File>,
}

impl Lines {
    /// Opens the file, creates it if needed, and returns its lines. An unreadable line counts as missing, since the
    /// last one may be incomplete. `help` is the remedy of a failure.
    pub fn open<T: DeserializeOwned>(path: &Path, help: &str) -> Result<(Lines, Vec<T>), Failure> {
        let failed = |error| Failure::file(path, error, help);
        let text = match fs::read(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(failed(error)),
        };
        let lines = text.split(|byte| *byte == b'\n');
        let lines = lines.filter_map(|line| serde_json::from_slice(line).ok()).collect();
        let mut file = File::options().append(true).create(true).open(path).map_err(failed)?;
        if text.last().is_some_and(|byte| *byte != b'\n') {
            file.write_all(b"\n").map_err(failed)?;
        }
        Ok((Lines { path: path.to_owned(), file: Mutex::new(file) }, lines))
    }

    /// Removes all lines.
    pub fn clear(&self, help: &str) -> Result<(), Failure> {
        let file = lock(&self.file);
        file.set_len(0).map_err(|error| Failure::file(&self.path, error, help))
    }

    /// Adds a line. It is not synced: work that a power cut damages is repeated.
    pub fn add(&self, line: &impl Serialize, help: &str) -> Result<(), Failure> {
        let written = serde_json::to_vec(line).map_err(io::Error::other).and_then(|mut line| {
            line.push(b'\n');
            lock(&self.file).write_all(&line)
        });
        written.map_err(|error| Failure::file(&self.path, error, help))
    }
}
