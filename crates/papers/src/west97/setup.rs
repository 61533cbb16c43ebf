//! Testbeds and agents that the experiments share.

use crate::Bench;

/// The LAN with the wireless link slowed to 14.6 KB/s (5.3).
pub(super) const SLOW: &str = include_str!("slow.toml");
/// Chopin to Tucson (5.1, Figure 11).
pub(super) const WAN: &str = include_str!("wan.toml");
/// A satellite hop (5.3 end, 7.0).
pub(super) const SATELLITE: &str = include_str!("satellite.toml");
/// Several connections (7.0).
pub(super) const MANY: &str = include_str!("many.toml");

/// Each error destroys six consecutive packets (5.2.2).
pub(super) const BURSTS: &str = r#"errors={ model = "packet-bursts", packets = 6, mean = "64KiB", overlap = "ignore", on = ["data", "ack"] }"#;
/// The reading of an onset within a burst.
pub(super) const OVERLAP_KEY: &str = "reading.overlap";

/// The errors of an experiment, with the reading of overlapping bursts.
pub(super) fn errors(bench: &Bench<'_>, errors: &str) -> String {
    match bench.setting(OVERLAP_KEY) {
        Some("restart") => restarting(errors),
        _ => errors.to_owned(),
    }
}

/// Bursts that an onset within them begins anew.
pub(super) fn restarting(errors: &str) -> String {
    errors.replace(r#"overlap = "ignore""#, r#"overlap = "restart""#)
}

/// Snoop at the base station.
pub(super) const SNOOP: &[&str] = &["agent=snoop"];
/// Snoop with partial acknowledgements as measured in the paper (4.2): one for every packet, and a sender with a
/// constant timeout.
pub(super) const ACKP: &[&str] =
    &["agent=snoop+ackp", "path.verdi.ackp-mode=every-packet", "host.fixed.ackp=constant"];
/// Snoop with partial acknowledgements as designed in the paper (3.3, 3.4).
pub(super) const ACKP_FULL: &[&str] =
    &["agent=snoop+ackp", "path.verdi.ackp-mode=full", "host.fixed.ackp=rearm"];
