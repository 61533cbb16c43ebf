//! Exhaustive exploration: a run for every combination of fates of the first packets.
//!
//! A router with `fates` decides the fate of each packet ([`lasthop_proto::link::Fates`]); a radio with a scripted channel
//! decides the fate of each frame ([`lasthop_proto::channel::Scripted`]). [`search`] runs every pattern with a limited number of
//! faults among a limited number of first packets. A run is copied before each packet, so that patterns share their common
//! beginning. [`oracle`] has the conditions that each run must fulfil. Patterns with fewer faults come first, so the first
//! violation has the fewest.

#![allow(missing_docs, reason = "only crates of this workspace use it")]

mod found;
pub mod oracle;
mod pattern;
pub mod search;

pub use found::{Costly, Exploration, Level, OneFate, Run, Violation};
pub use pattern::{Fault, Pattern};
pub use search::{Method, Options, deciders, explore, resume};
