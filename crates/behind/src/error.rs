//! Errors of links.

use std::{fmt, io};

/// Why a link cannot be made, and the remedy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Error {
    /// The failed action, and the system's error.
    pub message: String,
    /// Remedy; may be empty.
    pub help: String,
}

impl Error {
    pub(crate) fn new(message: impl Into<String>, help: impl Into<String>) -> Error {
        Error { message: message.into(), help: help.into() }
    }

    pub(crate) fn of(action: &str, error: &io::Error) -> Error {
        Error::new(format!("cannot {action}: {error}"), "")
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        if self.help.is_empty() { Ok(()) } else { write!(f, "; {}", self.help) }
    }
}

impl std::error::Error for Error {}

impl From<lasthop_live::testbed::Error> for Error {
    fn from(error: lasthop_live::testbed::Error) -> Error {
        Error { message: error.message, help: error.help }
    }
}
