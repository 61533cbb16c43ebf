//! Alternatives to the assumptions.
//!
//! The cost of the work on a segment is not among them: base and capacity would follow from it, and every experiment
//! has a table with half and twice the cost. Section 4.5 gives the ACK frequency of the receiver.

use super::setup::{self, TESTBED as TEXT};
use crate::{Claim, Open, Testbed, Values};

/// Steady state: ten seconds give the same result as a hundred, except for rare events.
static STEADY: Testbed = Testbed { shorter: &["horizon=10s"], ..WHOLE };
/// For experiments that need the whole run.
static WHOLE_RUNS: Testbed = WHOLE;

const WHOLE: Testbed =
    Testbed { key: "agarwal00", texts: &[TEXT], open: OPEN, shorter: &[], seeds: 2 };

/// A claim about the testbed.
pub(super) const CLAIM: Claim = Claim { testbed: Some(&STEADY), ..setup::CLAIM };
/// A claim whose runs cannot be shorter: an emptied battery, intermittent interference, rare events.
pub(super) const LONG: Claim = Claim { testbed: Some(&WHOLE_RUNS), ..setup::CLAIM };

const LINUX: &str = "Linux 2.2: SACK";
const RADIO: &str = "802.11b in ad-hoc mode";
const CHANNEL: &str = "The channel: one bit in 10^8";

const OPEN: &[Open] = &[
    Open {
        keys: &["errors.ber"],
        assumed: "1e-8",
        values: Values::Log(1e-10, 1e-5, ""),
        assumption: CHANNEL,
        why: "From a hundredth of what is assumed to a rate that damages one packet of 1500 bytes in nine.",
    },
    Open {
        keys: &["path.air.dcf.control-rate"],
        assumed: "2mbit",
        values: Values::Words(&["1mbit", "2mbit"]),
        assumption: RADIO,
        why: "The thesis names no basic rate; 802.11 began with 1 and 2 Mb/s.",
    },
    Open {
        keys: &["path.air.dcf.short-retries"],
        assumed: "7",
        values: Values::Words(&["4", "7"]),
        assumption: RADIO,
        why: "The thesis names no limit; these are the two of 802.11, for short and for long frames.",
    },
    Open {
        keys: &["path.air.radio.queue"],
        assumed: "100p",
        values: Values::Words(&["10p", "50p", "100p"]),
        assumption: LINUX,
        why: "Linux gave an Ethernet 100 packets; a driver may hold fewer, and the thesis does not say.",
    },
    Open {
        keys: &["host.sender.rto-min", "host.receiver.rto-min"],
        assumed: "200ms",
        values: Values::Words(&["200ms", "1s"]),
        assumption: LINUX,
        why: "The kernel's source has HZ/5, RFC 2988 of the same year 1 s.",
    },
];
