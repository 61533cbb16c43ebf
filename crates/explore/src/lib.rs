//! Exhaustive exploration: a run for every combination of fates of the first packets.
//!
//! A router with `fates` decides about one packet at a time ([`lasthop_proto::link::Fates`]), a radio whose channel is scripted
//! about each frame ([`lasthop_proto::channel::Scripted`]). [`search`] runs every pattern of up to so many faults among the
//! first so many packets. A run is copied before each packet, so that patterns share what they have in common. [`oracle`] says
//! what must hold in each run. The first violation has the fewest faults.

#![allow(missing_docs, reason = "only crates of this workspace use it")]

mod found;
pub mod oracle;
mod pattern;
pub mod search;

pub use found::{Costly, Exploration, Level, OneFate, Run, Violation};
pub use pattern::{Fault, Pattern};
pub use search::{Method, Options, deciders, explore, resume};
