//! Alternatives to the assumptions.

use super::setup::{MANY, SATELLITE, SLOW, WAN};
use crate::testbed::{
    BSD_DEFLATION, BSD_EXIT_GROWTH, BSD_GROWTH, BSD_HALVING, BSD_RTO_MIN, BSD_RTT_FROM_SYN,
    WEST97_LAN as LAN,
};
use crate::{Claim, Open, Testbed, Values};

const SNOOP: &str = "Snoop retransmits on one duplicate ACK";
const TIMERS: &str = "Timers and round trips follow 4.4BSD's";

/// The testbed of the tables and of the wide-area transfers.
pub(super) const TESTBED: Testbed =
    Testbed { key: "west97", texts: &[LAN, SLOW, WAN], open: OPEN, shorter: &[], seeds: 3 };

pub(super) const CLAIM: Claim = Claim { testbed: Some(&TESTBED), ..Claim::of("west97") };

/// The satellite hop, whose buffers are part of the question.
pub(super) const FAR: Testbed = Testbed {
    key: "west97-satellite",
    texts: &[SATELLITE],
    open: match OPEN.split_last() {
        Some((_buffers, others)) => others,
        None => OPEN,
    },
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
        keys: &["path.verdi.persist"],
        assumed: "200ms",
        values: Values::Log(100.0, 800.0, "ms"),
        assumption: SNOOP,
        why: "parsa98 4 gives 200 ms for the same agent; ticks of the time were 200 or 500 ms.",
    },
    Open {
        keys: &["path.verdi.min-timeout"],
        assumed: "100ms",
        values: Values::Log(40.0, 400.0, "ms"),
        assumption: SNOOP,
        why: "The snoop of ns-2 has 100 ms, parsa98 4 has 40, balakrishnan97's reference 200.",
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
    Open { assumption: "The congestion window opens by one segment", ..BSD_GROWTH },
    Open { assumption: "The congestion window opens by one segment", ..BSD_EXIT_GROWTH },
    Open { assumption: "The congestion window opens by one segment", ..BSD_DEFLATION },
    Open { assumption: TIMERS, ..BSD_HALVING },
    Open { assumption: TIMERS, ..BSD_RTO_MIN },
    Open { assumption: TIMERS, ..BSD_RTT_FROM_SYN },
    Open {
        keys: &["host.fixed.delayed-ack.every", "host.mobile.delayed-ack.every"],
        assumed: "2",
        values: Values::Words(&["1", "2", "3"]),
        assumption: TIMERS,
        why: "4.4BSD acknowledges when two segments' worth of bytes have come: each second segment of full size, each \
              third of a shorter one.",
    },
    Open {
        keys: &[
            "host.fixed.send-buffer",
            "host.fixed.recv-buffer",
            "host.mobile.send-buffer",
            "host.mobile.recv-buffer",
        ],
        assumed: "16KiB",
        values: Values::Words(&["16KiB", "17520B"]),
        assumption: "Socket buffers are 16 KiB",
        why: "FreeBSD's default is 16 KiB; 4.4BSD rounds it up to whole segments when a connection is made.",
    },
];
