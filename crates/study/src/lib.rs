//! Studies: questions about a scenario that take many runs to answer. What gains how much, what to change, what it
//! costs a battery.
//!
//! Pure: values in, ranked alternatives and pages out. A study says which runs it needs as a [`Plan`]; who makes them
//! is handed in as a [`Runner`], so that a program can use its threads and keep what is finished, and a browser page
//! can make one after the other:
//!
//! ```
//! use lasthop_lab::{Results, Setup};
//! use lasthop_study::{Error, Source, compare};
//!
//! let text = lasthop_scenario::example("rivals").map(|example| example.text).unwrap_or_default();
//! let source = Source { origin: "rivals", name: "rivals", text };
//! let set = ["runs=2", "transfer.bytes=50kB"].map(|set| lasthop_scenario::Argument::Set(set.to_owned()));
//! let asked = compare::Asked { schemes: &["sack".to_owned(), "snoop".to_owned()], ..compare::Asked::default() };
//! let comparison = compare::lay_out(&source, &set, &asked)?;
//! let document = compare::answer(&comparison, &mut |plan| {
//!     Ok::<_, Error>(Results::simulated(plan, Setup::default()))
//! })?;
//! assert_eq!(document.said.points[0].schemes.len(), 3);
//! # Ok::<(), Error>(())
//! ```

pub mod advise;
pub mod battery;
pub mod capture;
pub mod compare;
pub mod compress;
mod document;
pub mod energy;
pub mod explain;
pub mod ranking;
pub mod replay;
pub mod sweep;
pub mod tables;
pub mod theory;
pub mod traces;

pub use document::{Alternative, Document, Ranked, rank};
pub use lasthop_report::number::Units;

use lasthop_lab::Results;
use lasthop_scenario::{Argument, Plan, Warning};

/// Who makes the runs of a plan. Fewer runs than the plan has mean that somebody asked to stop.
pub type Runner<'a, E> = dyn FnMut(&Plan) -> Result<Results, E> + 'a;

/// A scenario as text.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// What messages call it.
    pub origin: &'a str,
    /// The scenario's name, where the text gives none.
    pub name: &'a str,
    /// The text.
    pub text: &'a str,
}

impl Source<'_> {
    /// Parses the text.
    fn plan(&self, arguments: &[Argument]) -> Result<(Plan, Vec<Warning>), Error> {
        lasthop_scenario::parse(self.text, self.name, arguments)
            .map_err(|error| self.wrong(error, arguments))
    }

    /// What is wrong with the text or with `arguments`.
    fn wrong(&self, error: lasthop_scenario::Error, arguments: &[Argument]) -> Error {
        let (origin, text) = (self.origin.to_owned(), self.text.to_owned());
        Error::Scenario { origin, text, arguments: arguments.to_vec(), error }
    }
}

/// Why a question cannot be answered.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A wrong argument.
    #[error("{message}")]
    Input {
        /// What is wrong.
        message: String,
        /// What would be right.
        help: String,
    },
    /// A scenario is wrong, or what is to be set in it.
    #[error("{error}")]
    Scenario {
        /// What messages call it.
        origin: String,
        /// Its text.
        text: String,
        /// What was to be set.
        arguments: Vec<Argument>,
        /// What is wrong, with its place in one of them.
        error: lasthop_scenario::Error,
    },
}

impl Error {
    /// A wrong argument.
    fn input(message: impl Into<String>, help: impl Into<String>) -> Error {
        Error::Input { message: message.into(), help: help.into() }
    }
}
