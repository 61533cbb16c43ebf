//! The testbeds of the claims.

use super::setup::{MANY, SATELLITE, SLOW, WAN};
use crate::testbed::WEST97_LAN as LAN;
use crate::{Claim, Testbed};

/// The testbed of the tables and of the wide-area transfers.
pub(super) const TESTBED: Testbed =
    Testbed { key: "west97", texts: &[LAN, SLOW, WAN], open: "west97", shorter: &[], seeds: 3 };

pub(super) const CLAIM: Claim = Claim { testbed: Some(&TESTBED), ..Claim::of("west97") };

/// The satellite hop.
pub(super) const FAR: Testbed = Testbed {
    key: "west97-satellite",
    texts: &[SATELLITE],
    open: "west97",
    shorter: &["transfer.bytes=2000000"],
    seeds: 3,
};

/// Several connections.
pub(super) const CROWD: Testbed = Testbed {
    key: "west97-many",
    texts: &[MANY],
    open: "west97",
    shorter: &["transfer.bytes=200000"],
    seeds: 2,
};
