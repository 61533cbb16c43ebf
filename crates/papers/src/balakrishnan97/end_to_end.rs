//! Section 3.1.2, Figure 3: end-to-end protocols.

use super::testbed::{LAN, Protocol, Rows, WAN};
use crate::measure::{mbps, wireless};
use crate::testbed::{SINGLE as ERRORS, UNCHANGED};
use crate::{Bench, Estimate, Finding, Interrupted};

/// The five of Figure 3.
const PROTOCOLS: [Protocol; 5] = [
    ("Reno", &[]),
    ("NewReno", &["host.fixed.tcp=newreno"]),
    ("SMART", &["host.fixed.tcp=smart", "host.mobile.tcp=smart"]),
    ("ELN", &["host.fixed.tcp=eln", "host.mobile.eln=checksum"]),
    ("ELN-RXMT", &["host.fixed.tcp=eln-rxmt", "host.mobile.eln=checksum"]),
];

/// The best link layer of Figure 2.
const LOCAL: [Protocol; 1] = [(
    "LL-SACK-TCP-AWARE",
    &["agent=snoop-smart", "host.fixed.sack=true", "host.mobile.sack=true"],
)];

/// The errors, with socket buffers of 8 KB.
const SMALL: [&str; 5] = [
    ERRORS,
    "host.fixed.send-buffer=8192",
    "host.fixed.recv-buffer=8192",
    "host.mobile.send-buffer=8192",
    "host.mobile.recv-buffer=8192",
];

/// Reno's throughput in percent of that without errors.
fn reno(bench: &mut Bench<'_>, testbed: &str, rows: &Rows) -> Result<Estimate, Interrupted> {
    let ideal = bench.runs(testbed, UNCHANGED)?;
    Ok(rows.get("Reno").runs.ratio(&ideal, mbps).scaled(100.0))
}

/// Figure 3, local network, with large and small socket buffers.
pub(super) fn lan(bench: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
    let large = Rows::run(bench, LAN, &[ERRORS], &PROTOCOLS, &[("SMART", 1.25)])?;
    let small = Rows::run(bench, LAN, &SMALL, &PROTOCOLS, &[])?;
    let optimal = PROTOCOLS.map(|(name, _)| (name, 97.7));
    large.show_with(finding, "Figure 3, LAN, 64 KB", &optimal);
    small.show(finding, "Figure 3, LAN, 8 KB");
    finding.below("Reno in % of the error-free transfer", reno(bench, LAN, &large)?, 50.0);
    finding.within("NewReno above Reno in %", large.above("NewReno", "Reno"), 10.0, 25.0);
    // "Over two times better" than Reno names no network: D-F3-WAN requires it.
    for eln in ["ELN", "ELN-RXMT"] {
        finding.above(format!("{eln} above NewReno in %"), large.above(eln, "NewReno"), 0.0);
    }
    finding.near("SMART in Mb/s", large.mbps("SMART"), 1.25, 0.15);
    let ahead = large.ahead("SMART", &["Reno", "NewReno", "ELN", "ELN-RXMT"]);
    finding.above("SMART less the next best, Mb/s,", ahead, 0.0);
    let local = Rows::run(bench, LAN, &[ERRORS], &LOCAL, &[])?;
    let series = [large.get("SMART").runs.each(mbps), local.get(LOCAL[0].0).runs.each(mbps)];
    let behind = Estimate::of(&[&series[0], &series[1]], |m| 100.0 * (1.0 - m[0] / m[1]));
    // "About 10 - 15 %".
    finding.compare("SMART below the best link layer", behind, "%", 12.5);
    finding.within("SMART below the best link layer in %", behind, 9.5, 15.5);
    for (name, _) in PROTOCOLS {
        let goodput = large.get(name).runs.summary(wireless);
        finding.within(format!("{name}, wireless goodput in %"), goodput, 97.0, 98.4);
    }
    let series = [&large, &small]
        .map(|rows| [rows.get("ELN-RXMT").runs.each(mbps), rows.get("ELN").runs.each(mbps)]);
    let [[a, b], [c, d]] = &series;
    let more = Estimate::of(&[a, b, c, d], |m| 100.0 * (m[2] / m[3] - m[0] / m[1]));
    finding.above("gain of ELN-RXMT with 8 KB less that with 64 KB, points,", more, 0.0);
    Ok(())
}

/// Figure 3, over the Internet.
pub(super) fn wan(bench: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
    let rows = Rows::run(bench, WAN, &[ERRORS], &PROTOCOLS, &[("Reno", 0.31)])?;
    rows.show(finding, "Figure 3, WAN");
    finding.below("Reno in % of the error-free transfer", reno(bench, WAN, &rows)?, 25.0);
    finding.near("Reno in Mb/s", rows.mbps("Reno"), 0.31, 0.15);
    finding.near("NewReno's throughput over Reno's", rows.times("NewReno", "Reno"), 2.3, 0.15);
    for eln in ["ELN", "ELN-RXMT"] {
        finding.above(format!("{eln} over Reno"), rows.times(eln, "Reno"), 2.0);
        finding.above(format!("{eln} above NewReno in %"), rows.above(eln, "NewReno"), 0.0);
    }
    Ok(())
}
