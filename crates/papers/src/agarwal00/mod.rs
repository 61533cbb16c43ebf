//! Agarwal 2000: battery cost of TCP's options, segment sizes and ACKs on a laptop with 802.11b.
//!
//! One set of values serves all experiments: see `testbed.toml` in this folder.

mod best;
mod budget;
mod calibration;
mod cases;
mod checksum;
mod clock;
mod errors;
mod interference;
mod live;
mod lookup;
mod options;
mod range;
mod setup;
mod sizes;

use crate::Paper;

pub(crate) const PAPER: Paper = Paper {
    key: "agarwal00",
    title: "S. Agarwal: Conserving Energy in TCP for Mobile Ad-Hoc Networks. Thesis, Oregon State University, 2000",
    claims: &[
        calibration::CAL,
        sizes::MSS,
        sizes::SACK,
        options::OPTIONS,
        options::DELACK,
        best::BEST,
        best::RECEIVER,
        errors::ERRORS,
        interference::T5_1,
        checksum::CHECKSUM,
        lookup::LOOKUP,
        live::LIVE,
    ],
};

#[cfg(test)]
mod tests;
