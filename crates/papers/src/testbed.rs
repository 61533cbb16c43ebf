//! Testbeds and open parameters shared by several papers.

use crate::{Open, Values};

/// Ravel, Verdi, Chopin (west97 4.0, Figure 8): fixed host, Ethernet, base station, WaveLAN, mobile host.
pub(crate) const WEST97_LAN: &str = include_str!("west97/lan.toml");

/// One byte error per 64 KB on average, for data and for ACKs (west97 4.3 and 5.2.1, balakrishnan97 3.1).
pub(crate) const SINGLE: &str =
    r#"errors={ model = "exponential", mean = "64KiB", on = ["data", "ack"] }"#;

/// An unchanged testbed.
pub(crate) const UNCHANGED: &[&str] = &[];

// Open parameters of hosts whose TCP is close to that of 4.4BSD. A testbed adds its assumption.

pub(crate) const BSD_GROWTH: Open = Open {
    keys: &["host.fixed.growth", "host.mobile.growth"],
    assumed: "rfc5681",
    values: Values::Words(&["rfc5681", "bsd"]),
    assumption: "",
    why: "4.4BSD added an eighth of a segment for each ACK.",
};

pub(crate) const BSD_EXIT_GROWTH: Open = Open {
    keys: &["host.fixed.exit-growth", "host.mobile.exit-growth"],
    assumed: "false",
    values: Values::Words(&["false", "true"]),
    assumption: "",
    why: "4.4BSD's window also grew on the ACK that ends a recovery.",
};

pub(crate) const BSD_DEFLATION: Open = Open {
    keys: &["host.fixed.deflation", "host.mobile.deflation"],
    assumed: "always",
    values: Values::Words(&["always", "past-threshold"]),
    assumption: "",
    why: "4.4BSD's window stayed inflated where exactly three duplicate ACKs had come.",
};

pub(crate) const BSD_HALVING: Open = Open {
    keys: &["host.fixed.halving", "host.mobile.halving"],
    assumed: "window",
    values: Values::Words(&["window", "flight"]),
    assumption: "",
    why: "4.4BSD halves the smaller of the windows, RFC 5681 what is in flight.",
};

pub(crate) const BSD_RTO_MIN: Open = Open {
    keys: &["host.fixed.rto-min", "host.mobile.rto-min"],
    assumed: "1s",
    values: Values::Words(&["500ms", "1s", "1500ms"]),
    assumption: "",
    why: "One to three ticks of 500 ms; 4.4BSD has two.",
};

pub(crate) const BSD_RTT_FROM_SYN: Open = Open {
    keys: &["host.fixed.rtt-from-syn", "host.mobile.rtt-from-syn"],
    assumed: "true",
    values: Values::Words(&["false", "true"]),
    assumption: "",
    why: "Systems of the time differed in whether the handshake's round trip counts.",
};
