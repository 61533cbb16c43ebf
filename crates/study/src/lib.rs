//! Studies: questions about a scenario that need many runs, such as the gain of each scheme, the devices to change, or
//! the cost for a battery.
//!
//! The crate is pure: values in, ranked alternatives and pages out. A study lays out its runs as a [`Plan`], and the
//! caller passes a [`Runner`] that makes them. A program can use threads and store finished runs. A browser page can
//! make the runs one after the other:
//!
//! ```
//! use lasthop_sim::runs::{Results, Setup};
//! use lasthop_study::{Error, Source, compare};
//!
//! let text = lasthop_scenario::example("rivals").map(|example| example.text).unwrap_or_default();
//! let source = Source { origin: "rivals", name: "rivals", text };
//! let set = ["runs=2", "transfer.bytes=50kB"].map(|set| lasthop_scenario::Argument::Set(set.to_owned()));
//! let asked = compare::Options { schemes: &["sack".to_owned(), "snoop".to_owned()], ..compare::Options::default() };
//! let comparison = compare::lay_out(&source, &set, &asked)?;
//! let document = compare::answer(&comparison, &mut |plan| {
//!     Ok::<_, Error>(Results::simulated(plan, Setup::default()))
//! })?;
//! assert_eq!(document.results.points[0].schemes.len(), 3);
//! # Ok::<(), Error>(())
//! ```

#![allow(missing_docs, reason = "only crates of this workspace use it")]

pub mod advise;
pub mod battery;
pub mod capture;
pub mod compare;
mod document;
pub mod energy;
pub mod explain;
pub mod ranking;
pub mod sweep;
pub mod tables;
pub mod theory;
pub mod traces;

pub use document::{Alternative, Document, Ranked, rank};
pub use lasthop_scenario::{Argument, Plan, Warning};
use lasthop_sim::runs::Results;

/// Makes the runs of a plan. Fewer results than runs mean that the user interrupted.
pub type Runner<'a, E> = dyn FnMut(&Plan) -> Result<Results, E> + 'a;

#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// Its name in error messages.
    pub origin: &'a str,
    /// The scenario's name, unless the text has one.
    pub name: &'a str,
    pub text: &'a str,
}

impl Source<'_> {
    fn plan(&self, arguments: &[Argument]) -> Result<(Plan, Vec<Warning>), Error> {
        lasthop_scenario::parse(self.text, self.name, arguments)
            .map_err(|error| self.wrong(error, arguments))
    }

    /// The error of the text or of `arguments`.
    fn wrong(&self, error: lasthop_scenario::Error, arguments: &[Argument]) -> Error {
        let (origin, text) = (self.origin.to_owned(), self.text.to_owned());
        Error::Scenario { origin, text, arguments: arguments.to_vec(), error }
    }
}

/// Reason why a study cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An invalid argument.
    #[error("{message}")]
    Input {
        message: String,
        /// A valid alternative.
        help: String,
    },
    /// An invalid scenario, or an invalid setting.
    #[error("{error}")]
    Scenario {
        /// Its name in error messages.
        origin: String,
        /// The scenario's text.
        text: String,
        /// The settings.
        arguments: Vec<Argument>,
        /// The error, with its position in one of them.
        error: lasthop_scenario::Error,
    },
}

impl Error {
    fn input(message: impl Into<String>, help: impl Into<String>) -> Error {
        Error::Input { message: message.into(), help: help.into() }
    }
}
