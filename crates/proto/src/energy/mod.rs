//! What a choice of TCP costs a battery (agarwal00).
//!
//! Nothing here takes part in a run. A host tells what its stack does for each segment ([`Work`]), a radio hop what is on
//! the air ([`crate::event::AirEvent`]); from the two an observer works out what a [`Hardware`] draws.

pub mod costs;
mod hardware;
mod operation;

pub use hardware::{Hardware, RadioPower};
pub use operation::{Operation, Work};
