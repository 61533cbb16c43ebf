//! Alternatives to the assumptions.

use super::setup::{AVERAGING_KEY, LAN, WAN};
use crate::{Claim, Open, Testbed, Values};

const TCP: &str = "TCP is the Tahoe of";
const RECOVERY: &str = "Local recovery is stop-and-wait";
const BACKOFF: &str = "The random backoff is uniform";
const NOTHING_LOST: &str = "In section 5 the link layer retransmits";
const AVERAGING: &str = "Several runs have the throughput";

pub(super) static TESTBED: Testbed =
    Testbed { key: "bakshi96", texts: &[WAN, LAN], open: OPEN, shorter: &[], seeds: 4 };

pub(super) const CLAIM: Claim = Claim { testbed: Some(&TESTBED), ..Claim::of("bakshi96") };

const OPEN: &[Open] = &[
    Open {
        keys: &[AVERAGING_KEY],
        assumed: "totals",
        values: Values::Words(&["totals", "runs"]),
        assumption: AVERAGING,
        why: "All bytes over all time, or the mean of each run's throughput.",
    },
    Open {
        keys: &["host.fixed.timer-order"],
        assumed: "first",
        values: Values::Words(&["last", "first"]),
        assumption: TCP,
        why: "ns of 1996 starts the timer before the backoff doubles, RFC 6298 and later versions after it.",
    },
    Open {
        keys: &["host.fixed.stamps", "host.mobile.stamps"],
        assumed: "true",
        values: Values::Words(&["false", "true"]),
        assumption: TCP,
        why: "In ns of 1996 each new ACK gives a round trip; BSD times one packet at a time.",
    },
    Open {
        keys: &["host.fixed.rtt-arithmetic"],
        assumed: "integer",
        values: Values::Words(&["exact", "integer"]),
        assumption: TCP,
        why: "ns of 1996 averages in whole eighths and quarters of a tick, as BSD; later versions could be finer.",
    },
    Open {
        keys: &["host.fixed.fast-backoff"],
        assumed: "true",
        values: Values::Words(&["false", "true"]),
        assumption: TCP,
        why: "In ns of 1996 a fast retransmit backs off as well, in BSD it does not.",
    },
    Open {
        keys: &["host.fixed.slow-start"],
        assumed: "below",
        values: Values::Words(&["up", "below"]),
        assumption: TCP,
        why: "ns ends slow start at the threshold, BSD above it.",
    },
    Open {
        keys: &["host.fixed.ssthresh-min"],
        assumed: "0",
        values: Values::Words(&["0", "2"]),
        assumption: TCP,
        why: "ns of 1996 has no least threshold, BSD and RFC 5681 have two segments.",
    },
    Open {
        keys: &["host.fixed.rto-initial"],
        assumed: "3s",
        values: Values::Words(&["1s", "3s", "6s"]),
        assumption: TCP,
        why: "Versions of ns began with 3 and with 6 s, RFC 6298 with 1 s.",
    },
    Open {
        keys: &["host.fixed.rto-rule"],
        assumed: "rfc6298",
        values: Values::Words(&["rfc6298", "jacobson"]),
        assumption: TCP,
        why: "With or without a tick as the least of the deviations' part.",
    },
    Open {
        keys: &["host.fixed.halving"],
        assumed: "window",
        values: Values::Words(&["window", "flight"]),
        assumption: TCP,
        why: "ns halves the smaller of its windows, RFC 5681 what is in flight.",
    },
    Open {
        keys: &["host.fixed.growth"],
        assumed: "rfc5681",
        values: Values::Words(&["rfc5681", "bsd"]),
        assumption: TCP,
        why: "4.4BSD added an eighth of a segment for each ACK, ns did not.",
    },
    Open {
        keys: &["host.fixed.delayed-ack.every", "host.mobile.delayed-ack.every"],
        assumed: "1",
        values: Values::Words(&["1", "2"]),
        assumption: TCP,
        why: "The simulator's sinks answered each packet; BSD each second one.",
    },
    Open {
        keys: &["bakshi96-wan: path.wire.link.delay"],
        assumed: "2ms",
        values: Values::Log(1.0, 50.0, "ms"),
        assumption: "Links delay by",
        why: "From a wire within a building to one across a country.",
    },
    Open {
        keys: &["path.air.local-recovery.max-retransmits"],
        assumed: "1000000",
        values: Values::Words(&["12", "13", "1000000"]),
        assumption: NOTHING_LOST,
        why: "Thirteen retransmissions as in the example, thirteen transmissions, or no limit.",
    },
    Open {
        keys: &["bakshi96-wan: path.air.local-recovery.backoff"],
        assumed: "50ms",
        values: Values::Log(10.0, 100.0, "ms"),
        assumption: BACKOFF,
        why: "The paper says only that it is random; fractions of a frame to a packet.",
    },
    Open {
        keys: &["bakshi96-wan: path.air.local-recovery.backoff-max"],
        assumed: "800ms",
        values: Values::Log(100.0, 3200.0, "ms"),
        assumption: BACKOFF,
        why: "From one that hardly grows to most of a bad period.",
    },
    Open {
        keys: &["bakshi96-lan: path.air.local-recovery.backoff-max"],
        assumed: "7680us",
        values: Values::Log(1.0, 800.0, "ms"),
        assumption: BACKOFF,
        why: "From one slot to the times of the wide area.",
    },
    Open {
        keys: &["path.air.local-recovery.ack"],
        assumed: "1B",
        values: Values::Words(&["1B", "4B", "8B", "20B", "40B"]),
        assumption: RECOVERY,
        why: "A single byte, a number and a checksum, up to a whole header of TCP/IP.",
    },
    Open {
        keys: &["path.air.local-recovery.unit"],
        assumed: "fragment",
        values: Values::Words(&["fragment", "packet"]),
        assumption: RECOVERY,
        why: "Packets of the link level, or packets of the network level.",
    },
    Open {
        keys: &["errors.ber-good"],
        assumed: "1e-6",
        values: Values::Log(0.67e-6, 1.5e-6, ""),
        assumption: "Bit error rates hold for the bits before coding",
        why: "The rate before or after the factor 1.5 of coding.",
    },
    Open {
        keys: &["errors.reciprocal"],
        assumed: "true",
        values: Values::Words(&["false", "true"]),
        assumption: "Both directions of the radio are good and bad together",
        why: "Each direction could have its own good and bad periods.",
    },
];
