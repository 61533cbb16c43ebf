//! Sections 4.1 and 4.4.2: the cable modem with three return channels, and packet radio over several hops.

use lasthop_observe::metrics::RunMetrics;
use lasthop_observe::stats::Summary;
use lasthop_report::number;

use super::simulations::{ASYMMETRIC, RADIO};
use crate::figure::{Axes, curves, line};
use crate::measure::{jain, lost_acks, mbps};
use crate::table::{row, table};
use crate::{Bench, Finding, Interrupted, Runs, short};

/// Socket buffers in KB (Figure 6: 8 to 64).
const BUFFERS: [u32; 6] = [8, 16, 24, 32, 48, 64];
/// The claim compares from this buffer on.
const FROM: u32 = 32;

/// A return channel: its name and settings.
type Return = (&'static str, &'static [&'static str]);

/// The return channels of Figure 6.
const RETURNS: [Return; 3] = [
    ("Ethernet", &["link.rate-left=10mbit"]),
    (
        "dial-up, compression",
        &["link.rate-left=28.8kbit", "link.delay=25ms", "link.header-compression=vj"],
    ),
    ("dial-up", &["link.rate-left=28.8kbit", "link.delay=25ms"]),
];

/// The runs with a return channel, a socket buffer in KB at both ends, and the settings `more`. Nothing is random, so
/// there is a single run.
fn cable(
    bench: &mut Bench<'_>,
    channel: Return,
    buffer: u32,
    more: &[&str],
) -> Result<Runs, Interrupted> {
    let of_return = |change: &str| format!("path.return.{change}");
    let mut changes = vec![
        format!("host.server.send-buffer={buffer}KiB"),
        format!("host.home.recv-buffer={buffer}KiB"),
    ];
    changes.extend(channel.1.iter().copied().map(of_return));
    changes.extend(more.iter().map(|change| (*change).to_owned()));
    Ok(bench.batch(ASYMMETRIC, &[(&changes, 1)])?.swap_remove(0))
}

/// 4.1, Figure 6: throughput of the cable modem by its return channel and the socket buffer.
pub(super) fn f6(bench: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
    finding.runs = 1;
    let mut means: Vec<Vec<Summary>> = Vec::new();
    for channel in RETURNS {
        let row = BUFFERS.iter().map(|b| Ok(cable(bench, channel, *b, &[])?.summary(mbps)));
        means.push(row.collect::<Result<_, Interrupted>>()?);
    }
    let channels = RETURNS.map(|(name, _)| name);
    let headings = format!("socket buffer, KB | {}", channels.join(" | "));
    let mut rows = table("Figure 6: throughput in Mb/s by return channel", &headings);
    for (i, buffer) in BUFFERS.iter().enumerate() {
        for (channel, row) in channels.iter().zip(&means) {
            finding.measure(format!("{channel}, {buffer} KB"), row[i], "Mb/s");
        }
        for pair in [0, 1].into_iter().filter(|_| *buffer >= FROM) {
            let quantity = format!("{} over {} at {buffer} KB", channels[pair], channels[pair + 1]);
            finding.above(quantity, means[pair][i].mean / means[pair + 1][i].mean, 1.0);
        }
        let cells = means.iter().map(|row| number::summary(&row[i]));
        rows.rows.push(core::iter::once(buffer.to_string()).chain(cells).collect());
    }
    finding.tables.push(rows);
    let [_, compressed, plain] = RETURNS;
    finding.note(format!(
        "at 64 KB the dial-up line drops {} ACKs of its full queue without compression and {} with it",
        short(cable(bench, plain, 64, &[])?.mean(lost_acks)),
        short(cable(bench, compressed, 64, &[])?.mean(lost_acks)),
    ));
    finding.note(format!(
        "the delay of the modem decides as well: dial-up with compression at 32 KB carries {} Mb/s, and {} Mb/s if \
         the modem had no delay",
        short(cable(bench, compressed, 32, &[])?.mean(mbps)),
        short(cable(bench, compressed, 32, &["path.return.link.delay=0ms"])?.mean(mbps))
    ));
    let series = channels
        .iter()
        .zip(means)
        .map(|(channel, row)| line(channel, BUFFERS.iter().map(|b| f64::from(*b)).zip(row)));
    let axes = Axes { x: "socket buffer (KB)", y: "throughput (Mb/s)", log_x: false };
    let caption = "Nothing is random, so there is one run.";
    let title = "Figure 6: cable modem by return channel";
    finding.figures.push(curves(title, axes, series.collect(), caption));
    Ok(())
}

/// Hops of the packet radio network.
const HOPS: [u32; 2] = [2, 3];
/// Simultaneous connections.
const CONNECTIONS: [u32; 2] = [1, 4];
/// ACK filtering in the queue of every station towards the sender.
const FILTER: &str = "radio.discipline-left=ack-filter";

/// The runs over `hops` hops with `connections` connections, and the settings `more`.
fn packet_radio(
    bench: &mut Bench<'_>,
    hops: u32,
    connections: u32,
    more: &[&str],
) -> Result<Runs, Interrupted> {
    let hops = format!("path.radio.half-duplex-hops.hops={hops}");
    let count = format!("transfer.count={connections}");
    bench.runs(RADIO, &[&[hops.as_str(), count.as_str()], more].concat())
}

/// Packets without data that crossed the whole radio network.
fn acks_carried(m: &RunMetrics) -> f64 {
    let radio = m.stages.iter().filter(|stage| stage.name == "radio");
    radio.map(|stage| (stage.packets - stage.data_packets) as f64).sum()
}

/// Throughput of all transfers in kb/s.
fn kbps(m: &RunMetrics) -> f64 {
    1000.0 * mbps(m)
}

/// 4.4.2: ACK filtering at every station of a packet radio network.
pub(super) fn mac(bench: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
    let headings = ["kb/s", "Jain", "timeouts", "ACKs carried"]
        .map(|quantity| format!("FIFO, {quantity} | filter, {quantity}"))
        .join(" | ");
    let mut rows = table(
        "4.4.2: packet radio, first in first out against ACK filter",
        &format!("<network | {headings}"),
    );
    for (hops, connections) in HOPS.into_iter().flat_map(|h| CONNECTIONS.map(|c| (h, c))) {
        let fifo = packet_radio(bench, hops, connections, &[])?;
        let filter = packet_radio(bench, hops, connections, &[FILTER])?;
        let label = match connections {
            1 => format!("{hops} hops, one connection"),
            n => format!("{hops} hops, {n} connections"),
        };
        let (without, with) = (fifo.summary(kbps), filter.summary(kbps));
        finding.measure(format!("{label}, FIFO"), without, "kb/s");
        finding.measure(format!("{label}, filter"), with, "kb/s");
        let quantity = format!("gain by the filter with {label}, in %");
        finding.above(quantity, filter.percent_above(&fifo, kbps), 10.0);
        let (before, after) = (fifo.summary(jain), filter.summary(jain));
        if connections > 1 {
            let more = filter.difference(&fifo, jain);
            finding.above(format!("Jain's index more with the filter, {label},"), more, 0.0);
        }
        rows.rows.push(row(&[
            &label,
            &without,
            &with,
            &before,
            &after,
            &fifo.timeouts(),
            &filter.timeouts(),
            &fifo.summary(acks_carried),
            &filter.summary(acks_carried),
        ]));
    }
    finding.tables.push(rows);
    let fixed = "path.radio.half-duplex-hops.turnaround=0ms";
    finding.note(format!(
        "without any turn-around {} hops carry {} kb/s, and {} with the filter",
        HOPS[0],
        short(packet_radio(bench, HOPS[0], 1, &[fixed])?.mean(kbps)),
        short(packet_radio(bench, HOPS[0], 1, &[fixed, FILTER])?.mean(kbps))
    ));
    Ok(())
}

#[cfg(test)]
mod tests {
    use lasthop_proto::event::Cause;

    use super::*;
    use crate::measure::count;
    use crate::scenario;
    use crate::testbed::UNCHANGED;

    #[test]
    fn every_topology_is_a_scenario() {
        assert_eq!(scenario(ASYMMETRIC, UNCHANGED).path.len(), 2);
        assert_eq!(scenario(RADIO, &[FILTER]).path.len(), 2);
    }

    /// Each mechanism compared with its absence, same scenario and seeds.
    #[test]
    fn each_mechanism_has_its_claimed_effect() {
        let mut bench = Bench::new(3, &());
        let mut cell = |channel, more: &[&str]| {
            let runs = cable(&mut bench, channel, 64, more).unwrap();
            (runs.mean(mbps), runs.mean(lost_acks))
        };
        let (plain, dropped) = cell(RETURNS[2], &[]);
        let (compressed, dropped_short) = cell(RETURNS[1], &[]);
        let (filtered, dropped_filtered) =
            cell(RETURNS[2], &["path.return.link.discipline-left=ack-filter"]);
        assert!(compressed > plain, "compression: {compressed} against {plain}");
        assert!(dropped > 0.0 && dropped_short < dropped, "{dropped_short} of {dropped}");
        assert!(dropped_filtered < dropped, "filter: {dropped_filtered} of {dropped}");
        assert!((filtered - plain).abs() > 0.01 * plain, "filter: {filtered} against {plain}");

        let mut air = |more: &[&str]| packet_radio(&mut bench, 3, 1, more).unwrap();
        let (fifo, filter) = (air(&[]), air(&[FILTER]));
        assert!(filter.mean(acks_carried) < fifo.mean(acks_carried));
        let still = air(&["path.radio.half-duplex-hops.turnaround=0ms"]);
        assert!(still.mean(kbps) > fifo.mean(kbps), "the turn-around costs");
        let near = packet_radio(&mut bench, 1, 1, &[]).unwrap();
        assert!(near.mean(kbps) > fifo.mean(kbps), "each hop costs");
    }

    #[test]
    fn reconstructed_acks_raise_the_throughput() {
        let text = lasthop_scenario::example("satellite-dialup").map_or("", |example| example.text);
        let filter = "path.return.link.discipline-left=ack-filter";
        let mut bench = Bench::new(1, &());
        let mut cell = |agent: &str| {
            let runs = bench.runs(text, &[filter, &format!("agent={agent}")]).unwrap();
            let forged = count(|f| f.originated_acks.get(Cause::ReconstructedAck));
            (runs.mean(mbps), runs.mean(forged))
        };
        let (without, none) = cell("none");
        let (with, forged) = cell("ack-reconstruction");
        assert!(none == 0.0 && forged > 100.0, "{forged} filled in");
        assert!(with > without, "{with} against {without} Mb/s");
    }
}
