//! Section 3.2, Figure 4: split connections.

use super::testbed::{LAN, Protocol, Rows, WAN};
use crate::measure::mbps;
use crate::testbed::SINGLE as ERRORS;
use crate::{Bench, Bound, Finding, Interrupted};

/// The base station's TCP is that of the hosts, with the paper's buffer.
pub(super) const PRESET: &str = "split-preset=freebsd-2.1";
pub(super) const BUFFER: &str = "buffer=64KiB";

/// The two of Figure 4, and their baseline.
const PROTOCOLS: [Protocol; 3] = [
    ("SPLIT", &["agent=split", PRESET, BUFFER]),
    (
        "SPLIT-SACK",
        &[
            "agent=split-sack",
            PRESET,
            BUFFER,
            "path.base.split-sack=smart",
            "host.mobile.smart=true",
        ],
    ),
    ("LL-SACK-TCP-AWARE", &["agent=snoop-smart", "host.fixed.sack=true", "host.mobile.sack=true"]),
];

/// Figure 4.
pub(super) fn f4(bench: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
    for (name, testbed, published) in [
        ("LAN", LAN, [("SPLIT", 0.6), ("SPLIT-SACK", 1.3)]),
        ("WAN", WAN, [("SPLIT", 0.58), ("SPLIT-SACK", 1.1)]),
    ] {
        let rows = Rows::run(bench, testbed, &[ERRORS], &PROTOCOLS, &published)?;
        rows.show(finding, &format!("Figure 4, {name}"));
        for (protocol, published) in published {
            let quantity = format!("{protocol} over the {name} in Mb/s");
            finding.near(&quantity, rows.mbps(protocol), published, 0.15);
            let ahead = rows.ahead(protocol, &["LL-SACK-TCP-AWARE"]);
            let quantity = format!("{protocol} over the {name} less LL-SACK-TCP-AWARE, Mb/s,");
            finding.require_bound(quantity, ahead, Bound::AtMost(0.0));
        }
        let reno = bench.runs(testbed, &[ERRORS])?;
        let above = rows.get("SPLIT").runs.percent_above(&reno, mbps);
        match name {
            "LAN" => finding.equal("SPLIT above Reno end to end, LAN", above, 10.0),
            // 0.58 against 0.31 Mb/s: "significantly better".
            _ => finding.above("SPLIT above Reno end to end, WAN, in %", above, 20.0),
        }
    }
    Ok(())
}
