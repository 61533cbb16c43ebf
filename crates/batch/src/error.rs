//! Why a batch of runs could not be made or kept.

use std::io;
use std::path::{Path, PathBuf};

/// Why a batch of runs could not be made or kept.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A study or its scenario is wrong.
    #[error("{0}")]
    Study(#[from] lasthop_study::Error),
    /// A wrong argument.
    #[error("{message}")]
    Input {
        /// What is wrong.
        message: String,
        /// What would be right.
        help: String,
    },
    /// A file cannot be read or written.
    #[error("{}: {error}", path.display())]
    File {
        /// Which file.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
        /// What to do about it.
        help: String,
    },
}

impl Error {
    /// A wrong argument.
    pub(crate) fn input(message: impl Into<String>, help: impl Into<String>) -> Error {
        Error::Input { message: message.into(), help: help.into() }
    }

    /// A file that cannot be read or written.
    pub(crate) fn file(path: &Path, error: io::Error, help: impl Into<String>) -> Error {
        Error::File { path: path.to_owned(), error, help: help.into() }
    }
}
