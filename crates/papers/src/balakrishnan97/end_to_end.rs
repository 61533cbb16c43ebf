//! Section 3.1.2, Figure 3: protocols of the two ends alone.

use super::testbed::{ERRORS, LAN, Protocol, Row, WAN, above, row, rows, show};
use crate::bench::{Bench, Interrupted};
use crate::finding::Finding;
use crate::west97::Experiment;

/// The experiment for the claim `id`.
pub fn experiment(id: &str) -> Option<Experiment> {
    Some(match id {
        "D-F3-LAN" => lan,
        "D-F3-WAN" => wan,
        _ => return None,
    })
}

const ELN: &[&str] = &["host.fixed.tcp=eln", "host.mobile.eln=checksum"];
const ELN_RXMT: &[&str] = &["host.fixed.tcp=eln-rxmt", "host.mobile.eln=checksum"];
const SMART: &[&str] = &["host.fixed.tcp=smart", "host.mobile.tcp=smart"];

/// The five of Figure 3.
const PROTOCOLS: [Protocol; 5] = [
    Protocol { name: "Reno", changes: &[], published: None },
    Protocol { name: "NewReno", changes: &["host.fixed.tcp=newreno"], published: None },
    Protocol { name: "SMART", changes: SMART, published: Some(1.25) },
    Protocol { name: "ELN", changes: ELN, published: None },
    Protocol { name: "ELN-RXMT", changes: ELN_RXMT, published: None },
];

/// Socket buffers of 8 KB.
const SMALL: [&str; 4] = [
    "host.fixed.send-buffer=8192",
    "host.fixed.recv-buffer=8192",
    "host.mobile.send-buffer=8192",
    "host.mobile.recv-buffer=8192",
];

fn times(a: &Row, b: &Row) -> f64 {
    a.mbps() / b.mbps()
}

/// Figure 3, local network, with large and small socket buffers.
fn lan(bench: &mut Bench<'_>) -> Result<Finding, Interrupted> {
    let mut finding = Finding::new(bench.seeds);
    let ideal = bench.runs(LAN, &[])?.summary(super::testbed::mbps).mean;
    let large = rows(bench, LAN, &[ERRORS], &PROTOCOLS)?;
    let small = rows(bench, LAN, &[&[ERRORS][..], &SMALL].concat(), &PROTOCOLS)?;
    let small: Vec<Row> = small.into_iter().map(|row| Row { published: None, ..row }).collect();
    show(&mut finding, "Figure 3, LAN, 64 KB", &large);
    show(&mut finding, "Figure 3, LAN, 8 KB", &small);
    let reno = row(&large, "Reno");
    finding.below("Reno in % of the error-free transfer", 100.0 * reno.mbps() / ideal, 55.0);
    finding.within("NewReno above Reno in %", above(row(&large, "NewReno"), reno), 5.0, 35.0);
    let eln = times(row(&large, "ELN"), reno);
    finding.require(eln >= 1.7, format!("ELN has {eln:.2} times Reno's throughput, wanted 1.7"));
    finding.within("SMART in Mb/s", row(&large, "SMART").mbps(), 1.10, 1.40);
    let gain = |rows: &[Row]| above(row(rows, "ELN-RXMT"), row(rows, "ELN"));
    let (with_large, with_small) = (gain(&large), gain(&small));
    finding.require(
        with_small > with_large,
        format!(
            "ELN-RXMT gains {with_small:.1} % over ELN with 8 KB and {with_large:.1} % with 64 KB, wanted more with 8 KB"
        ),
    );
    Ok(finding)
}

/// Figure 3, over the Internet.
fn wan(bench: &mut Bench<'_>) -> Result<Finding, Interrupted> {
    let mut finding = Finding::new(bench.seeds);
    let ideal = bench.runs(WAN, &[])?.summary(super::testbed::mbps).mean;
    let rows = rows(bench, WAN, &[ERRORS], &PROTOCOLS)?;
    let published = |row: Row| Row { published: (row.name == "Reno").then_some(0.31), ..row };
    let rows: Vec<Row> = rows.into_iter().map(published).collect();
    show(&mut finding, "Figure 3, WAN", &rows);
    let reno = row(&rows, "Reno");
    finding.below("Reno in % of the error-free transfer", 100.0 * reno.mbps() / ideal, 28.0);
    let newreno = times(row(&rows, "NewReno"), reno);
    finding.within("NewReno's throughput over Reno's", newreno, 1.6, 3.0);
    let eln = times(row(&rows, "ELN"), reno);
    finding.require(eln >= 1.8, format!("ELN has {eln:.2} times Reno's throughput, wanted 1.8"));
    Ok(finding)
}
