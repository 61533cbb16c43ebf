//! Section 3.2, Figure 4: split connections.

use super::testbed::{ERRORS, LAN, Protocol, WAN, row, rows, show};
use crate::bench::{Bench, Interrupted};
use crate::finding::Finding;
use crate::west97::Experiment;

/// The experiment for the claim `id`.
pub fn experiment(id: &str) -> Option<Experiment> {
    Some(match id {
        "D-F4" => f4,
        _ => return None,
    })
}

/// The two of Figure 4, and what they are compared with.
const fn protocols(split: f64, selective: f64) -> [Protocol; 3] {
    [
        Protocol { name: "SPLIT", changes: &["agent=split"], published: Some(split) },
        Protocol {
            name: "SPLIT-SACK",
            changes: &["agent=split-sack", "path.base.split-sack=smart", "host.mobile.smart=true"],
            published: Some(selective),
        },
        Protocol {
            name: "LL-SACK-TCP-AWARE",
            changes: &["agent=snoop-smart", "host.fixed.sack=true", "host.mobile.sack=true"],
            published: None,
        },
    ]
}

/// Figure 4.
fn f4(bench: &mut Bench<'_>) -> Result<Finding, Interrupted> {
    let mut finding = Finding::new(bench.seeds);
    for (name, testbed, published) in [("LAN", LAN, [0.6, 1.3]), ("WAN", WAN, [0.58, 1.1])] {
        let rows = rows(bench, testbed, &[ERRORS], &protocols(published[0], published[1]))?;
        show(&mut finding, &format!("Figure 4, {name}"), &rows);
        let best = row(&rows, "LL-SACK-TCP-AWARE").mbps();
        for (row, published) in rows.iter().zip(published) {
            let what = format!("{} over the {name} in Mb/s", row.name);
            finding.within(&what, row.mbps(), 0.8 * published, 1.2 * published);
            finding.require(
                row.mbps() <= best,
                format!(
                    "{what} is {:.2}, wanted no more than LL-SACK-TCP-AWARE's {best:.2}",
                    row.mbps()
                ),
            );
        }
    }
    Ok(finding)
}
