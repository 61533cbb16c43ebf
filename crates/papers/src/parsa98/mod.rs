//! Parsa & Garcia-Luna-Aceves 1998: TULIP, snoop and TCP alone over a half-duplex radio with medium access.
//!
//! One set of values serves every experiment: see `testbed.toml` beside this file.

mod both_ways;
mod bursts;
mod cases;
mod closer;
mod delay;
mod throughput;

use lasthop_report::model::Assumption;

use crate::west97::Experiment;

/// A source on a wire, a base station, a wireless host (5, Figure 8).
pub const TESTBED: &str = include_str!("testbed.toml");

/// The experiment for the claim `id`.
pub fn experiment(id: &str) -> Option<Experiment> {
    Some(match id {
        "T-F9" => throughput::f9,
        "T-F10" => throughput::f10,
        "T-T1" => throughput::t1,
        "T-F12" => closer::f12,
        "T-F13" => closer::f13,
        "T-F14" => delay::f14,
        "T-F15" => throughput::f15,
        "T-F16" => delay::f16,
        "T-F17" => delay::f17,
        "T-T2" => bursts::t2,
        "T-F19" => bursts::f19,
        "T-BIDIR" => both_ways::run,
        _ => return None,
    })
}

/// What the paper leaves open, the same for all of its experiments.
pub fn assumptions() -> Vec<Assumption> {
    Vec::new()
}
