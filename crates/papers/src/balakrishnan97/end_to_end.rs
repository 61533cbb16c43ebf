//! Section 3.1.2, Figure 3: end-to-end protocols.

use super::range::CLAIM;
use super::testbed::{LAN, Protocol, Rows, WAN};
use crate::measure::mbps;
use crate::testbed::{SINGLE as ERRORS, UNCHANGED};
use crate::{Bench, Bound, Claim, Finding, Interrupted};

/// The five of Figure 3.
const PROTOCOLS: [Protocol; 5] = [
    ("Reno", &[]),
    ("NewReno", &["host.fixed.tcp=newreno"]),
    ("SMART", &["host.fixed.tcp=smart", "host.mobile.tcp=smart"]),
    ("ELN", &["host.fixed.tcp=eln", "host.mobile.eln=checksum"]),
    ("ELN-RXMT", &["host.fixed.tcp=eln-rxmt", "host.mobile.eln=checksum"]),
];

/// The errors, with socket buffers of 8 KB.
const SMALL: [&str; 5] = [
    ERRORS,
    "host.fixed.send-buffer=8192",
    "host.fixed.recv-buffer=8192",
    "host.mobile.send-buffer=8192",
    "host.mobile.recv-buffer=8192",
];

/// Requires ELN to have at least `least` times Reno's throughput.
fn eln(finding: &mut Finding, rows: &Rows, least: f64) {
    let times = rows.times("ELN", "Reno");
    let text = format!("ELN has {times:.2} times Reno's throughput, wanted {least}");
    finding.judge("ELN over Reno", times, Bound::AtLeast(least), text);
}

/// Reno's throughput in percent of that without errors.
fn reno(bench: &mut Bench<'_>, testbed: &str, rows: &Rows) -> Result<f64, Interrupted> {
    Ok(100.0 * rows.mbps("Reno") / bench.runs(testbed, UNCHANGED)?.mean(mbps))
}

pub(super) const F3_LAN: Claim = Claim {
    id: "D-F3-LAN",
    place: "3.1.2, Figure 3",
    setup: "end-to-end protocols, LAN: Reno, NewReno, SMART SACK, ELN, ELN-RXMT; 64 KB and 8 KB socket \
            buffers",
    published: "Reno below 50 % of the link; NewReno 10-25 % above Reno; ELN over twice Reno; ELN-RXMT's \
            gain larger with 8 KB buffers; SMART SACK 1.25 Mb/s, best of them; all goodputs near 97.7 %",
    cost: 27,
    run: Some(lan),
    ..CLAIM
};

/// Figure 3, local network, with large and small socket buffers.
fn lan(bench: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
    let large = Rows::run(bench, LAN, &[ERRORS], &PROTOCOLS, &[("SMART", 1.25)])?;
    let small = Rows::run(bench, LAN, &SMALL, &PROTOCOLS, &[])?;
    large.show(finding, "Figure 3, LAN, 64 KB");
    small.show(finding, "Figure 3, LAN, 8 KB");
    finding.below("Reno in % of the error-free transfer", reno(bench, LAN, &large)?, 55.0);
    finding.within("NewReno above Reno in %", large.above("NewReno", "Reno"), 5.0, 35.0);
    eln(finding, &large, 1.7);
    finding.within("SMART in Mb/s", large.mbps("SMART"), 1.10, 1.40);
    let [with_large, with_small] = [&large, &small].map(|rows| rows.above("ELN-RXMT", "ELN"));
    let text = format!(
        "ELN-RXMT gains {with_small:.1} % over ELN with 8 KB and {with_large:.1} % with 64 KB"
    );
    let what = "gain of ELN-RXMT with 8 KB less that with 64 KB";
    let text = format!("{text}, wanted more with 8 KB");
    finding.judge(what, with_small - with_large, Bound::Above(0.0), text);
    Ok(())
}

pub(super) const F3_WAN: Claim = Claim {
    id: "D-F3-WAN",
    place: "3.1.2, Figure 3",
    setup: "the same over the WAN",
    published: "Reno 0.31 Mb/s, below 25 %; NewReno about 2.3 times Reno; ELN over twice",
    cost: 16,
    run: Some(wan),
    ..CLAIM
};

/// Figure 3, over the Internet.
fn wan(bench: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
    let rows = Rows::run(bench, WAN, &[ERRORS], &PROTOCOLS, &[("Reno", 0.31)])?;
    rows.show(finding, "Figure 3, WAN");
    finding.below("Reno in % of the error-free transfer", reno(bench, WAN, &rows)?, 28.0);
    let newreno = rows.times("NewReno", "Reno");
    finding.within("NewReno's throughput over Reno's", newreno, 1.6, 3.0);
    eln(finding, &rows, 1.8);
    Ok(())
}
