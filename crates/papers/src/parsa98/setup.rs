//! The testbed of all experiments.

/// A source on a wire, a base station, a wireless host (5, Figure 8).
pub(super) const TESTBED: &str = include_str!("testbed.toml");
