//! What could be instead of what is assumed of the testbed of sections 2 and 3.
//!
//! The queue before the radio is not among it: one that holds less than a window of 46 packets loses some without any
//! error, against the published 1.5 Mb/s, and a longer one never fills.

use super::testbed::{LAN, WAN};
use crate::{Claim, Open, Testbed, Values};

/// A claim about it.
pub(super) const CLAIM: Claim = Claim { testbed: Some(&DAEDALUS), ..super::CLAIM };

const HOSTS: &str = "Hosts and base station run the TCP";
const BASE: &str = "The base station's timers are twice";
const RADIO: &str = "Each radio frame takes";
const HOPS: &str = "The 16 Internet hops";

static DAEDALUS: Testbed = Testbed {
    key: "daedalus",
    texts: &[LAN, WAN],
    open: OPEN,
    shorter: &["transfer.bytes=1048576"],
    seeds: 2,
};

const OPEN: &[Open] = &[
    Open {
        keys: &["host.fixed.maxseg", "host.mobile.maxseg"],
        assumed: "1460B",
        values: Values::Words(&["600B", "1300B", "1460B", "2190B"]),
        assumption: "Hosts acknowledge in bytes",
        why: "An ACK for each twice as many bytes: for each first, second, third or fourth segment of 1400 (or 1388). \
              Receivers that answer each segment were known; the second is RFC 5681's, the third 4.4BSD's where its \
              own segments have 1460 bytes, the fourth that of three such segments.",
    },
    Open {
        keys: &["host.fixed.growth", "host.mobile.growth"],
        assumed: "rfc5681",
        values: Values::Words(&["rfc5681", "bsd"]),
        assumption: HOSTS,
        why: "4.4BSD added an eighth of a segment for each ACK.",
    },
    Open {
        keys: &["host.fixed.exit-growth", "host.mobile.exit-growth"],
        assumed: "false",
        values: Values::Words(&["false", "true"]),
        assumption: "Hosts acknowledge in bytes",
        why: "4.4BSD's window also grew on the ACK that ends a recovery.",
    },
    Open {
        keys: &["host.fixed.deflation", "host.mobile.deflation"],
        assumed: "always",
        values: Values::Words(&["always", "past-threshold"]),
        assumption: "Hosts acknowledge in bytes",
        why: "4.4BSD's window stayed inflated where exactly three duplicate ACKs had come.",
    },
    Open {
        keys: &["host.fixed.halving", "host.mobile.halving"],
        assumed: "window",
        values: Values::Words(&["window", "flight"]),
        assumption: HOSTS,
        why: "4.4BSD halves the smaller of the windows, RFC 5681 what is in flight.",
    },
    Open {
        keys: &["host.fixed.rto-min", "host.mobile.rto-min"],
        assumed: "1s",
        values: Values::Words(&["500ms", "1s", "1500ms"]),
        assumption: HOSTS,
        why: "One to three ticks of 500 ms; 4.4BSD has two.",
    },
    Open {
        keys: &["host.fixed.rtt-from-syn", "host.mobile.rtt-from-syn"],
        assumed: "true",
        values: Values::Words(&["false", "true"]),
        assumption: HOSTS,
        why: "Systems of the time differed in whether the handshake's round trip counts.",
    },
    Open {
        keys: &["host.fixed.timestamps", "host.mobile.timestamps"],
        assumed: "false",
        values: Values::Words(&["false", "true"]),
        assumption: HOSTS,
        why: "Timestamps would be one reason why segments have 1400 bytes.",
    },
    Open {
        keys: &["path.base.timeout-rule"],
        assumed: "twice-srtt",
        values: Values::Words(&["twice-srtt", "srtt-plus-var"]),
        assumption: BASE,
        why: "The description that section 2 sums up doubles the round trip, the snoop of ns-2 adds four deviations.",
    },
    Open {
        keys: &["path.base.min-timeout"],
        assumed: "200ms",
        values: Values::Log(40.0, 500.0, "ms"),
        assumption: BASE,
        why: "200 ms is known of the comparison; parsa98 4 has 40 ms for the same agent, BSD's slow tick is 500.",
    },
    Open {
        keys: &["path.base.persist"],
        assumed: "200ms",
        values: Values::Log(100.0, 800.0, "ms"),
        assumption: BASE,
        why: "parsa98 4 gives 200 ms; ticks of the time were 200 or 500 ms.",
    },
    Open {
        keys: &["path.base.priority"],
        assumed: "true",
        values: Values::Words(&["false", "true"]),
        assumption: BASE,
        why: "The paper does not say whether repeated packets go before those that wait for the radio.",
    },
    Open {
        keys: &["path.base.rtt-fault"],
        assumed: "false",
        values: Values::Words(&["false", "true"]),
        assumption: BASE,
        why: "parsa98 5.2.2 found this fault in Berkeley's snoop.",
    },
    Open {
        keys: &["path.wavelan.radio.overhead"],
        assumed: "1.226ms",
        values: Values::Linear(1.0, 1.4, "ms"),
        assumption: RADIO,
        why: "Fitted to the 1.5 Mb/s of a transfer without errors, as far as its last digit goes.",
    },
    Open {
        keys: &["path.internet.link.rate"],
        assumed: "1389kbit",
        values: Values::Log(1200.0, 2000.0, "kbit"),
        assumption: HOPS,
        why: "The wide-area figures are below 1.4 Mb/s, and the Internet of the time had lines of 1.5 and 2 Mb/s.",
    },
    Open {
        keys: &["path.internet.link.delay"],
        assumed: "59ms",
        values: Values::Linear(30.0, 90.0, "ms"),
        assumption: HOPS,
        why: "Round trips over 16 hops of the time: from across a region to across a continent and back.",
    },
];
