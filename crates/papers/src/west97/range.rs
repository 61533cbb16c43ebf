//! Alternatives to the assumptions.

use super::setup::{MANY, OVERLAP_KEY, SATELLITE, SLOW, WAN};
use crate::testbed::WEST97_LAN as LAN;
use crate::{Claim, Open, Testbed, Values};

const SNOOP: &str = "Snoop retransmits on one duplicate ACK";

/// The testbed of the tables and of the wide-area transfers.
pub(super) const TESTBED: Testbed =
    Testbed { key: "west97", texts: &[LAN, SLOW, WAN], open: OPEN, shorter: &[], seeds: 3 };

pub(super) const CLAIM: Claim = Claim { testbed: Some(&TESTBED), ..Claim::of("west97") };

/// The satellite hop.
pub(super) const FAR: Testbed = Testbed {
    key: "west97-satellite",
    texts: &[SATELLITE],
    open: OPEN,
    shorter: &["transfer.bytes=2000000"],
    seeds: 3,
};

/// Several connections.
pub(super) const CROWD: Testbed = Testbed {
    key: "west97-many",
    texts: &[MANY],
    open: OPEN,
    shorter: &["transfer.bytes=200000"],
    seeds: 2,
};

const OPEN: &[Open] = &[
    Open {
        keys: &["path.verdi.rtt-fault"],
        assumed: "true",
        values: Values::Words(&["false", "true"]),
        assumption: "Snoop measures round trips of its own",
        why: "parsa98 5.2.2 found in Berkeley's snoop, which this testbed ran, that round trips of repeated packets \
              are measured as well.",
    },
    Open {
        keys: &["path.verdi.burst-check"],
        assumed: "true",
        values: Values::Words(&["false", "true"]),
        assumption: "Snoop repeats the packet after",
        why: "A port of the authors' code of 1999 has it; their snoop for ns of July 1997 does not.",
    },
    Open {
        keys: &["path.verdi.persist"],
        assumed: "500ms",
        values: Values::Log(200.0, 1000.0, "ms"),
        assumption: SNOOP,
        why: "Not the 200 ms to which parsa98 4 changed it; ticks of the time were 200 or 500 ms.",
    },
    Open {
        keys: &["path.verdi.min-timeout"],
        assumed: "100ms",
        values: Values::Log(40.0, 500.0, "ms"),
        assumption: SNOOP,
        why: "From the 40 ms to which parsa98 4 changed it to the 500 ms of the authors' snoop for ns until July 1997; \
              later versions had 100 ms.",
    },
    Open {
        keys: &["path.verdi.initial-timeout"],
        assumed: "1100ms",
        values: Values::Log(200.0, 3000.0, "ms"),
        assumption: SNOOP,
        why: "Whatever a timeout without a measured round trip can be.",
    },
    Open {
        keys: &["path.verdi.timeout-rule"],
        assumed: "srtt-plus-var",
        values: Values::Words(&["srtt-plus-var", "twice-srtt"]),
        assumption: SNOOP,
        why: "The snoop of ns-2 adds four deviations; parsa98 4 and balakrishnan97's reference double the round trip.",
    },
    Open {
        keys: &["path.verdi.priority"],
        assumed: "true",
        values: Values::Words(&["false", "true"]),
        assumption: SNOOP,
        why: "The paper does not say whether repeated packets go before those that wait for the radio.",
    },
    Open {
        keys: &["host.fixed.timestamps", "host.mobile.timestamps"],
        assumed: "false",
        values: Values::Words(&["false", "true"]),
        assumption: "Hosts offer no timestamps",
        why: "The kernel's default was to offer them; a boot script could switch them off.",
    },
    Open {
        keys: &[OVERLAP_KEY],
        assumed: "ignore",
        values: Values::Words(&["restart", "ignore"]),
        assumption: "In six-packet bursts",
        why: "5.2.2 has the mean distance of onsets, which holds if an onset within a burst begins it anew, and six \
              packets a burst, which holds if it does not.",
    },
];
