//! Fault campaigns: randomized tests in large numbers.
//!
//! [`text`] generates valid but hostile scenarios, with every key of every part at its extremes. [`examine`] runs one
//! and checks its result. The program (`make campaign`) runs many of them in separate processes, so that a crash, a
//! hang or excessive memory costs one case and is counted. [`kills`] kills a sweep repeatedly and checks for lost
//! results; [`stations`], [`tunnels`] and [`testbeds`] do the same under load. [`disk`] runs commands on full disks,
//! [`memory`] with too little memory, and [`clock`] with a wall clock that jumps.

#![allow(missing_docs, reason = "only crates of this workspace use it")]

pub mod clock;
pub mod disk;
pub mod examine;
pub mod kills;
pub mod memory;
pub mod report;
pub mod stations;
pub mod testbeds;
pub mod text;
pub mod tunnels;
pub mod workers;
