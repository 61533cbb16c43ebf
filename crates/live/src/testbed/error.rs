//! What went wrong with a testbed, and what to do about it.

use std::fmt::Display;

/// Why a testbed cannot be had as it was asked for.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    /// What was tried, and what the system answered.
    pub message: String,
    /// What to do about it; may be empty.
    pub help: String,
}

impl Error {
    /// An error with its remedy.
    pub fn new(message: impl Into<String>, help: impl Into<String>) -> Error {
        Error { message: message.into(), help: help.into() }
    }
}

/// Says what was tried when the system refused, where no better remedy is known than the system's words.
pub(crate) trait Tried<T> {
    /// `what` completes "cannot ...".
    fn tried<D: Display>(self, what: impl FnOnce() -> D) -> Result<T, Error>;
}

impl<T, E: Display> Tried<T> for Result<T, E> {
    fn tried<D: Display>(self, what: impl FnOnce() -> D) -> Result<T, Error> {
        self.map_err(|error| {
            Error::new(
                format!("cannot {}: {error}", what()),
                "`lasthop doctor` looks for the cause",
            )
        })
    }
}
