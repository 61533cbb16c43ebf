//! Fault campaigns: randomized tests in large numbers.
//!
//! [`text`] generates valid but hostile scenarios, with every key of every part at its extremes. [`examine`] runs one
//! and checks its result. The program (`make campaign`) runs many of them in separate processes, so that a crash, a
//! hang or excessive memory costs one case and is counted. The script `disturb` kills commands that write files, fills
//! their disks, and takes their memory.

#![allow(missing_docs, reason = "only crates of this workspace use it")]

pub mod examine;
pub mod text;
pub mod workers;
