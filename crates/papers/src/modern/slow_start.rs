//! RFC 9406: retransmissions with HyStart++ and with standard slow start.

use crate::figure::{bar, bars};
use crate::measure::{count, mbps, timeouts};
use crate::table::{row, table};
use crate::{Bench, Bound, Finding, Interrupted};

const LINK: &str = include_str!("slow_start.toml");

/// Round trips in ms.
const TRIPS: [u32; 5] = [10, 20, 50, 100, 200];

pub(super) fn hystart(bench: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
    finding.runs = 1;
    let mut rows = table(
        "Retransmitted segments and Mbit/s",
        "round trip, ms | standard slow start | HyStart++ | Mbit/s, standard | Mbit/s, HyStart++ | timeouts, standard",
    );
    let mut sums = [0.0; 2];
    let mut rates = [0.0; 2];
    let mut groups = Vec::new();
    let again = count(|flow| flow.host_retransmissions());
    for trip in TRIPS {
        let packets = (100e6 * f64::from(trip) / 1e3 / 12_000.0).round();
        let bytes = format!("transfer.bytes={}kB", 125 * trip);
        let delay = format!("line.link.delay={}us", 500 * trip);
        let queue = format!("line.link.queue={packets}p");
        let mut both = Vec::new();
        for (i, tcp) in ["host.server.tcp=rack", "host.server.tcp=cubic"].into_iter().enumerate() {
            let runs = bench.alike(LINK, &[tcp, bytes.as_str(), delay.as_str(), queue.as_str()])?;
            sums[i] += runs.mean(&again);
            rates[i] += runs.mean(mbps) / TRIPS.len() as f64;
            both.push(runs);
        }
        let [standard, gentle] = [both[0].mean(&again), both[1].mean(&again)];
        finding.measure(format!("{trip} ms: segments again, standard slow start"), standard, "");
        finding.measure(format!("{trip} ms: segments again, HyStart++"), gentle, "");
        let mbit = [both[0].mean(mbps), both[1].mean(mbps)];
        let lost = both[0].mean(timeouts);
        rows.rows.push(row(&[&trip, &standard, &gentle, &mbit[0], &mbit[1], &lost]));
        groups.push((format!("{trip} ms"), vec![bar(standard), bar(gentle)]));
    }
    finding.tables.push(rows);
    let fewer = 100.0 * (1.0 - sums[1] / sums[0]);
    finding.compare("fewer retransmitted bytes over all round trips", fewer, "%", 50.0);
    finding.require_bound(
        "fewer retransmitted bytes over all round trips, %,",
        fewer,
        Bound::AtLeast(50.0),
    );
    finding.above("mean goodput with HyStart++ by that of slow start", rates[1] / rates[0], 1.0);
    let series = [("standard slow start", false), ("HyStart++", false)];
    let caption =
        "Ten bandwidth-delay products over 100 Mb/s with a buffer of one. Published: half as many.";
    finding.figures.push(bars(
        "RFC 9406, 5: retransmitted segments",
        "segments retransmitted",
        series,
        groups,
        caption,
    ));
    Ok(())
}
