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

use crate::{Claim, Paper};

pub(crate) const PAPER: Paper = Paper {
    key: "agarwal00",
    title: "S. Agarwal: Conserving Energy in TCP for Mobile Ad-Hoc Networks. Thesis, Oregon State University, 2000",
    claims: &[
        range::LONG.named("A-CAL", calibration::run),
        range::CLAIM.named("A-MSS", sizes::mss),
        range::CLAIM.named("A-SACK", sizes::sack),
        range::CLAIM.named("A-OPTIONS", options::options),
        range::CLAIM.named("A-DELACK", options::by_time),
        range::CLAIM.named("A-BEST", best::best),
        range::CLAIM.named("A-RECEIVER", best::receiver),
        range::LONG.named("A-ERRORS", errors::errors),
        range::LONG.named("A-T5.1", interference::table_5_1),
        Claim { of_this_machine: true, ..setup::CLAIM.named("A-CHECKSUM", checksum::run) },
        Claim { of_this_machine: true, ..setup::CLAIM.named("A-LOOKUP", lookup::run) },
        setup::CLAIM.named("A-LIVE", live::live),
    ],
};

#[cfg(test)]
mod tests;
