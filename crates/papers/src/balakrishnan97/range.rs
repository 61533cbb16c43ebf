//! Alternatives to the assumptions: for the testbed of sections 2 and 3, and the simulations of 4 and 5.
//!
//! The queue in front of the radio is not among them. With less than a window of 46 packets it would drop packets
//! without any error, unlike the published 1.5 Mb/s; a longer one never fills.

use super::simulations::{ASYMMETRIC, FIGURE_5, RADIO as PACKET_RADIO};
use super::testbed::{LAN, WAN};
use super::web;
use crate::testbed::{
    BSD_DEFLATION, BSD_EXIT_GROWTH, BSD_GROWTH, BSD_HALVING, BSD_RTO_MIN, BSD_RTT_FROM_SYN,
    WEST97_LAN,
};
use crate::{Claim, Open, Testbed, Values};

const PLAIN: Claim = Claim::of("balakrishnan97");

/// A claim about the testbed of sections 2 and 3.
pub(super) const CLAIM: Claim = Claim { testbed: Some(&DAEDALUS), ..PLAIN };

/// One about the simulations of section 4.
pub(super) const SIMULATED: Claim = Claim { testbed: Some(&ASYMMETRY), ..PLAIN };
/// One about those of section 5.
pub(super) const WEB: Claim = Claim { testbed: Some(&ROUTER), ..PLAIN };
/// A claim about a base station that is killed.
pub(super) const KILLED: Claim = Claim { testbed: Some(&SEMANTICS), ..PLAIN };

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
    Open { assumption: HOSTS, ..BSD_GROWTH },
    Open { assumption: "Hosts acknowledge in bytes", ..BSD_EXIT_GROWTH },
    Open { assumption: "Hosts acknowledge in bytes", ..BSD_DEFLATION },
    Open { assumption: HOSTS, ..BSD_HALVING },
    Open { assumption: HOSTS, ..BSD_RTO_MIN },
    Open { assumption: HOSTS, ..BSD_RTT_FROM_SYN },
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

static ASYMMETRY: Testbed = Testbed {
    key: "daedalus-asymmetric",
    texts: &[ASYMMETRIC, FIGURE_5, PACKET_RADIO],
    open: IN_SECTION_4,
    shorter: &[],
    seeds: 2,
};

const NS: &str = "The simulations have the Reno of ns-2";
const FIGURE: &str = "Server, two routers, client";
const BUFFERS: &str = "Buffers of 10 packets";
const RICOCHET: &str = "Packet radio has 100 kb/s";

const IN_SECTION_4: &[Open] = &[
    Open {
        keys: &["host.server.growth"],
        assumed: "rfc5681",
        values: Values::Words(&["rfc5681", "bsd"]),
        assumption: NS,
        why: "4.4BSD added an eighth of a segment for each ACK, ns-2 does not.",
    },
    Open {
        keys: &["host.server.exit-growth"],
        assumed: "true",
        values: Values::Words(&["false", "true"]),
        assumption: NS,
        why: "ns-2's window also grows on the ACK that ends a recovery; RFC 5681's does not.",
    },
    Open {
        keys: &["host.server.slow-start"],
        assumed: "below",
        values: Values::Words(&["up", "below"]),
        assumption: NS,
        why: "ns-2 ends slow start at the threshold, BSD above it.",
    },
    Open {
        keys: &["host.server.halving"],
        assumed: "window",
        values: Values::Words(&["window", "flight"]),
        assumption: NS,
        why: "ns-2 halves the smaller of its windows, RFC 5681 what is in flight.",
    },
    Open {
        keys: &["host.server.rto-min"],
        assumed: "200ms",
        values: Values::Words(&["200ms", "500ms", "1s"]),
        assumption: NS,
        why: "Two beats of 100 ms, BSD's tick, RFC 6298's least.",
    },
    Open {
        keys: &["path.forward.link.delay"],
        assumed: "5ms",
        values: Values::Log(1.0, 50.0, "ms"),
        assumption: FIGURE,
        why: "From a line within a building to one across a country.",
    },
    Open {
        keys: &["path.forward.link.queue"],
        assumed: "9p",
        values: Values::Words(&["9p", "10p"]),
        assumption: BUFFERS,
        why: "4.3 has 10 packets: with the one that is being sent, as in a DropTail queue of ns, or without it.",
    },
    Open {
        keys: &["path.return.link.queue"],
        assumed: "9p",
        values: Values::Words(&["9p", "10p"]),
        assumption: BUFFERS,
        why: "The same on the way back, where ACKs wait.",
    },
    Open {
        keys: &["path.radio.half-duplex-hops.turnaround"],
        assumed: "13.25ms",
        values: Values::Log(5.0, 30.0, "ms"),
        assumption: RICOCHET,
        why: "4.4.2 speaks of a latency for each packet and gives no figure: from less than half to more than twice \
              what the authors' simulator has.",
    },
    Open {
        keys: &["path.radio.half-duplex-hops.backoff"],
        assumed: "20ms",
        values: Values::Log(5.0, 80.0, "ms"),
        assumption: RICOCHET,
        why: "The paper gives none: from a quarter of the simulator's unit to four times that.",
    },
    Open {
        keys: &["path.radio.radio.delay"],
        assumed: "10ms",
        values: Values::Log(1.0, 30.0, "ms"),
        assumption: RICOCHET,
        why: "The paper gives none: from a fast processor to three times what the simulator has.",
    },
];

static ROUTER: Testbed = Testbed {
    key: "daedalus-web",
    texts: &[web::TESTBED],
    open: IN_SECTION_5,
    shorter: &[],
    seeds: 3,
};

const LINES: &str = "5: access links of 10 Mb/s";
const JITTER: &str = "5: packets do not wait at random";
const SLOTS: &str = "5.1.2 and 5.2.3: the router has a buffer";

const IN_SECTION_5: &[Open] = &[
    Open {
        keys: &["path.access.link.delay"],
        assumed: "10ms",
        values: Values::Log(1.0, 50.0, "ms"),
        assumption: LINES,
        why: "From a line within a building to one across a country.",
    },
    Open {
        keys: &["path.router.link.delay"],
        assumed: "50ms",
        values: Values::Log(10.0, 100.0, "ms"),
        assumption: LINES,
        why: "From across a region to across an ocean.",
    },
    Open {
        keys: &["path.router.link.rate"],
        assumed: "1.5mbit",
        values: Values::Words(&["800kbit", "1.5mbit"]),
        assumption: LINES,
        why: "Tests of ns in 1997 had 0.8 and 1.5 Mb/s.",
    },
    Open {
        keys: &[
            "host.s.send-buffer",
            "host.ct1.send-buffer",
            "host.r1.recv-buffer",
            "host.r2.recv-buffer",
            "host.ct2.recv-buffer",
        ],
        assumed: "20000B",
        values: Values::Words(&["8000B", "20000B", "50000B"]),
        assumption: LINES,
        why: "A source of ns began with 20 segments; the paper has no window here: less than half, more than twice.",
    },
    Open {
        keys: &["host.s.rto-min", "host.ct1.rto-min"],
        assumed: "200ms",
        values: Values::Words(&["200ms", "500ms", "1s"]),
        assumption: LINES,
        why: "Two beats of 100 ms, BSD's tick, RFC 6298's least.",
    },
    Open {
        keys: &["host.s.granularity", "host.ct1.granularity"],
        assumed: "100ms",
        values: Values::Words(&["100ms", "500ms"]),
        assumption: LINES,
        why: "ns has 100 ms, BSD 500.",
    },
    Open {
        keys: &["host.s.slow-start", "host.ct1.slow-start"],
        assumed: "below",
        values: Values::Words(&["up", "below"]),
        assumption: NS,
        why: "ns-2 ends slow start at the threshold, BSD above it.",
    },
    Open {
        keys: &["host.s.exit-growth", "host.ct1.exit-growth"],
        assumed: "true",
        values: Values::Words(&["false", "true"]),
        assumption: NS,
        why: "ns-2's window also grows on the ACK that ends a recovery; RFC 5681's does not.",
    },
    Open {
        keys: &["host.s.halving", "host.ct1.halving"],
        assumed: "window",
        values: Values::Words(&["window", "flight"]),
        assumption: NS,
        why: "ns-2 halves the smaller of its windows, RFC 5681 what is in flight.",
    },
    Open {
        keys: &["path.processing.cross.jitter"],
        assumed: "0ms",
        values: Values::Words(&["0ms", "1ms", "5ms"]),
        assumption: JITTER,
        why: "The default of ns; the remedy for phase effects is a random time of up to a packet's on the bottleneck.",
    },
    Open {
        keys: &["path.router.link.queue"],
        assumed: "5p",
        values: Values::Words(&["4p", "5p", "9p", "19p"]),
        assumption: SLOTS,
        why: "Limits of 5, 6, 10 and 20 packets in ns, which hold one less; only 5.2.2 gives its own.",
    },
];

static SEMANTICS: Testbed = Testbed {
    key: "daedalus-killed",
    texts: &[WEST97_LAN],
    open: WHEN_KILLED,
    shorter: &[],
    seeds: 2,
};

const BORROWED: &str = "D-ACKSPLIT runs on the LAN of west97";

const WHEN_KILLED: &[Open] = &[
    Open {
        keys: &["path.wavelan.radio.overhead"],
        assumed: "0.65ms",
        values: Values::Linear(0.3, 1.3, "ms"),
        assumption: BORROWED,
        why: "From less than half of what west97's error-free case gives to what this paper's does.",
    },
    Open {
        keys: &["path.wavelan.radio.queue"],
        assumed: "50p",
        values: Values::Words(&["10p", "50p"]),
        assumption: BORROWED,
        why: "BSD's interface queue held 50 packets; a driver may stop at fewer.",
    },
    Open {
        keys: &["host.fixed.send-buffer", "host.mobile.recv-buffer"],
        assumed: "17520B",
        values: Values::Words(&["17520B", "65535B"]),
        assumption: BORROWED,
        why: "west97's buffers, and this paper's.",
    },
    Open { assumption: BORROWED, ..BSD_RTO_MIN },
];
