//! Errors of a testbed, with remedies.

use std::fmt::Display;

/// Reason why a testbed cannot be made.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    /// The attempted action and the system's error.
    pub message: String,
    /// The remedy; may be empty.
    pub help: String,
}

impl Error {
    /// An error with its remedy.
    pub fn new(message: impl Into<String>, help: impl Into<String>) -> Error {
        Error { message: message.into(), help: help.into() }
    }
}

/// Adds the attempted action to an error of the system, without a remedy.
pub(crate) trait Tried<T> {
    /// `action` completes the phrase "cannot ...".
    fn tried<D: Display>(self, action: impl FnOnce() -> D) -> Result<T, Error>;
}

impl<T, E: Display> Tried<T> for Result<T, E> {
    fn tried<D: Display>(self, action: impl FnOnce() -> D) -> Result<T, Error> {
        self.map_err(|error| {
            Error::new(
                format!("cannot {}: {error}", action()),
                "`lasthop doctor` looks for the cause",
            )
        })
    }
}
