//! Errors of a batch of runs.

use std::io;
use std::path::PathBuf;

/// Why a batch of runs could not be made or stored.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An error of a study or its scenario.
    #[error("{0}")]
    Study(#[from] lasthop_study::Error),
    /// A cell of a sweep cannot be built.
    #[error("{0}")]
    Scenario(#[from] lasthop_scenario::Error),
    /// An invalid argument.
    #[error("{message}")]
    Input {
        message: String,
        /// A valid alternative.
        help: String,
    },
    /// A file cannot be read or written.
    #[error("{}: {error}", path.display())]
    File {
        path: PathBuf,
        /// The system's error.
        error: io::Error,
        /// A remedy.
        help: String,
    },
}

impl Error {
    pub(crate) fn input(message: impl Into<String>, help: impl Into<String>) -> Error {
        Error::Input { message: message.into(), help: help.into() }
    }

    #[cfg(feature = "parquet")]
    pub(crate) fn file(path: &std::path::Path, error: io::Error, help: impl Into<String>) -> Error {
        Error::File { path: path.to_owned(), error, help: help.into() }
    }
}
