//! Alternatives to the assumptions.

use super::setup::TESTBED as TEXT;
use crate::{Claim, Open, Testbed, Values};

const TIMES: &str = "TCP measures round trips in whole units";
const TIMERS: &str = "Snoop times a packet from when it leaves";

pub(super) static TESTBED: Testbed = Testbed {
    key: "parsa98",
    texts: &[TEXT],
    open: OPEN,
    shorter: &["transfer.bytes=1000000"],
    seeds: 2,
};

pub(super) const CLAIM: Claim = Claim { testbed: Some(&TESTBED), ..Claim::of("parsa98") };

const OPEN: &[Open] = &[
    Open {
        keys: &["path.base.min-timeout"],
        assumed: "40ms",
        values: Values::Log(30.0, 120.0, "ms"),
        assumption: TIMERS,
        why: "4 states 40 ms, Figure 18(b) shows 60 ms; the snoop of ns-2 has 100.",
    },
    Open {
        keys: &["path.base.initial-timeout"],
        assumed: "200ms",
        values: Values::Log(50.0, 1000.0, "ms"),
        assumption: TIMERS,
        why: "Whatever a timeout without a measured round trip can be.",
    },
    Open {
        keys: &["path.base.burst-check"],
        assumed: "false",
        values: Values::Words(&["false", "true"]),
        assumption: "Snoop has no check for bursts",
        why: "A port of the authors' code of 1999 has it; their snoop for ns of July 1997 does not.",
    },
    Open {
        keys: &["path.base.from-departure"],
        assumed: "true",
        values: Values::Words(&["false", "true"]),
        assumption: TIMERS,
        why: "Snoop as published times packets from their arrival.",
    },
    Open {
        keys: &["path.base.priority"],
        assumed: "true",
        values: Values::Words(&["false", "true"]),
        assumption: "Snoop's retransmissions go before",
        why: "The paper does not say whether repeated packets go before those that wait for the radio.",
    },
    Open {
        keys: &["path.radio.radio.overhead"],
        assumed: "0.2ms",
        values: Values::Linear(0.1, 0.4, "ms"),
        assumption: "Each radio frame takes 0.2 ms",
        why: "From a short preamble to a long one with ramps and processing.",
    },
    Open {
        keys: &["path.processing.link.delay"],
        assumed: "0.1ms",
        values: Values::Log(0.04, 1.0, "ms"),
        assumption: "The wireless host takes 0.1 ms",
        why: "More than the 30 us in which an answer must begin; hosts of the time took up to a millisecond.",
    },
    Open {
        keys: &["path.wire.link.delay"],
        assumed: "1ms",
        values: Values::Log(0.2, 20.0, "ms"),
        assumption: "The base station queues 50 packets",
        why: "From a wire within a building to one across a region.",
    },
    Open {
        keys: &["host.fixed.rto-min"],
        assumed: "500ms",
        values: Values::Words(&["500ms", "1s", "1500ms"]),
        assumption: TIMES,
        why: "One to three units of 500 ms.",
    },
    Open {
        keys: &["host.mobile.delayed-ack.every"],
        assumed: "1",
        values: Values::Words(&["1", "2"]),
        assumption: TIMES,
        why: "REAL's receiver is not described; RFC 1122's may wait for a second segment.",
    },
    Open {
        keys: &["host.fixed.growth"],
        assumed: "rfc5681",
        values: Values::Words(&["rfc5681", "bsd"]),
        assumption: TIMES,
        why: "4.4BSD added an eighth of a segment for each ACK.",
    },
];
