//! The testbed of all experiments.

use crate::Claim;

pub(super) const CLAIM: Claim = Claim::of("agarwal00");

/// Two laptops and an interfering node (5, Figure 5.1; 5.11).
pub(super) const TESTBED: &str = include_str!("testbed.toml");

/// Duration of a run in seconds: steady state. With intermittent interference it is five minutes, with one burst.
pub(super) const RUN_S: f64 = 100.0;
