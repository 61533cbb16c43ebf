#![doc = include_str!("../README.md")]
#![cfg(target_os = "linux")]

mod error;
mod host;
mod link;
mod network;
mod steps;
mod sys;

pub use error::Error;
pub use host::Host;
pub use lasthop_live::shell::{Direction, End, Ended, Tallied, Waits};
pub use link::Link;
pub use network::Network;
