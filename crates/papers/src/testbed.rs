//! Testbeds shared by several papers.

/// Ravel, Verdi, Chopin (west97 4.0, Figure 8): fixed host, Ethernet, base station, WaveLAN, mobile host.
pub(crate) const WEST97_LAN: &str = include_str!("west97/lan.toml");

/// One byte error per 64 KB on average, for data and for ACKs (west97 4.3 and 5.2.1, balakrishnan97 3.1).
pub(crate) const SINGLE: &str =
    r#"errors={ model = "exponential", mean = "64KiB", on = ["data", "ack"] }"#;

/// An unchanged testbed.
pub(crate) const UNCHANGED: &[&str] = &[];
