//! Sections 4.1 and 4.4.2: the cable modem with three return channels, and packet radio over several hops.

use lasthop_proto::event::Cause;
use lasthop_report::model::{Column, Measured, Table};
use lasthop_report::plot::LineChart;
use lasthop_trace::metrics::RunMetrics;
use lasthop_trace::stats::Summary;

use super::simulations::{asymmetric, mbps, radio};
use crate::bakshi96::{figure, line};
use crate::bench::{Bench, Interrupted, Runs};
use crate::finding::{Finding, short};
use crate::west97::Experiment;

/// The experiment for the claim `id`.
pub fn experiment(id: &str) -> Option<Experiment> {
    Some(match id {
        "D-F6" => f6,
        "D-MAC" => mac,
        _ => return None,
    })
}

/// Socket buffers in KB (Figure 6: 8 to 64).
const BUFFERS: [u32; 6] = [8, 16, 24, 32, 48, 64];
/// From here on the claim compares.
const FROM: u32 = 32;

/// A return channel: its name, and what is set for it.
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

/// The runs with a return channel, a socket buffer in KB at both ends, and `more` set. Nothing is random in them, so
/// there is one.
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
    let changes: Vec<&str> = changes.iter().map(String::as_str).collect();
    let seeds = core::mem::replace(&mut bench.seeds, 1);
    let runs = bench.runs(&asymmetric(), &changes);
    bench.seeds = seeds;
    runs
}

/// ACKs that the queue of the return channel dropped.
fn lost_acks(m: &RunMetrics) -> f64 {
    m.sum(|f| f.dropped_acks.get(Cause::QueueFull)) as f64
}

/// 4.1, Figure 6: throughput of the cable modem by its return channel and the socket buffer.
fn f6(bench: &mut Bench<'_>) -> Result<Finding, Interrupted> {
    let mut finding = Finding::new(1);
    let mut series = Vec::new();
    let mut means = Vec::new();
    for channel in RETURNS {
        let mut row: Vec<Summary> = Vec::new();
        for buffer in BUFFERS {
            row.push(cable(bench, channel, buffer, &[])?.summary(mbps));
        }
        series
            .push(line(channel.0, BUFFERS.iter().map(|b| f64::from(*b)).zip(row.iter().copied())));
        means.push(row);
    }
    for (i, buffer) in BUFFERS.iter().enumerate() {
        for (channel, row) in RETURNS.iter().zip(&means) {
            let label = format!("{}, {buffer} KB", channel.0);
            finding.measured.push(Measured::new(label, &row[i], "Mb/s", None));
        }
        if *buffer < FROM {
            continue;
        }
        for pair in [0, 1] {
            let (better, worse) = (means[pair][i].mean, means[pair + 1][i].mean);
            finding.above(
                &format!("{} over {} at {buffer} KB", RETURNS[pair].0, RETURNS[pair + 1].0),
                better / worse,
                1.0,
            );
        }
    }
    let plain = cable(bench, RETURNS[2], 64, &[])?;
    let short_headers = cable(bench, RETURNS[1], 64, &[])?;
    finding.note(format!(
        "at 64 KB the dial-up line drops {} ACKs of its full queue without compression and {} with it",
        short(plain.summary(lost_acks).mean),
        short(short_headers.summary(lost_acks).mean),
    ));
    let no_delay = ["path.return.link.delay=0ms"];
    let (far, near) = (
        cable(bench, RETURNS[1], 32, &[])?.summary(mbps),
        cable(bench, RETURNS[1], 32, &no_delay)?.summary(mbps),
    );
    finding.note(format!(
        "the delay of the modem decides as well: dial-up with compression at 32 KB carries {} Mb/s, and {} Mb/s if the \
         modem had no delay",
        short(far.mean),
        short(near.mean)
    ));
    let rows = BUFFERS.iter().enumerate().map(|(i, buffer)| {
        let cells = means.iter().map(|row| lasthop_report::number::summary(&row[i]));
        core::iter::once(buffer.to_string()).chain(cells).collect()
    });
    let mut columns = vec![Column::number("socket buffer, KB")];
    columns.extend(RETURNS.iter().map(|(name, _)| Column::number(*name)));
    finding.tables.push(Table {
        title: "Figure 6: throughput in Mb/s by return channel".to_owned(),
        columns,
        rows: rows.collect(),
    });
    let title = "Figure 6: cable modem by return channel";
    let chart = LineChart {
        title: title.to_owned(),
        x_label: "socket buffer (KB)".to_owned(),
        y_label: "throughput (Mb/s)".to_owned(),
        log_x: false,
        series,
    };
    finding.figures.push(figure(&chart.plot(), title, "Nothing is random, so there is one run."));
    Ok(finding)
}

/// Hops of the packet radio network.
const HOPS: [u32; 2] = [2, 3];
/// Connections at once.
const CONNECTIONS: [u32; 2] = [1, 4];
/// What filters ACKs: the queue of every station towards the sender.
const FILTER: &str = "radio.discipline-left=ack-filter";

/// The runs over `hops` hops with so many connections, and `more` set.
fn packet_radio(
    bench: &mut Bench<'_>,
    hops: u32,
    connections: u32,
    more: &[&str],
) -> Result<Runs, Interrupted> {
    let hops = format!("path.radio.half-duplex-hops.hops={hops}");
    let count = format!("transfer.count={connections}");
    bench.runs(&radio(), &[&[hops.as_str(), count.as_str()], more].concat())
}

/// Packets without data that crossed the whole radio network.
fn acks_carried(m: &RunMetrics) -> f64 {
    m.stages
        .iter()
        .filter(|stage| stage.name == "radio")
        .map(|stage| (stage.packets - stage.data_packets) as f64)
        .sum()
}

/// 4.4.2: ACK filtering at every station of a packet radio network.
fn mac(bench: &mut Bench<'_>) -> Result<Finding, Interrupted> {
    let mut finding = Finding::new(bench.seeds);
    let mut rows = Vec::new();
    for hops in HOPS {
        for connections in CONNECTIONS {
            let fifo = packet_radio(bench, hops, connections, &[])?;
            let filter = packet_radio(bench, hops, connections, &[FILTER])?;
            let label = match connections {
                1 => format!("{hops} hops, one connection"),
                n => format!("{hops} hops, {n} connections"),
            };
            let (without, with) = (fifo.summary(kbps), filter.summary(kbps));
            finding.measured.push(Measured::new(format!("{label}, FIFO"), &without, "kb/s", None));
            finding.measured.push(Measured::new(format!("{label}, filter"), &with, "kb/s", None));
            finding.above(
                &format!("gain by the filter with {label}, in %"),
                100.0 * (with.mean / without.mean - 1.0),
                10.0,
            );
            let (before, after) =
                (fifo.summary(|m| m.jain_index), filter.summary(|m| m.jain_index));
            if connections > 1 {
                finding.require(
                    after.mean >= before.mean,
                    format!(
                        "Jain's index with {label} is {:.3} with the filter, wanted at least {:.3}",
                        after.mean, before.mean
                    ),
                );
            }
            let cell = lasthop_report::number::summary;
            rows.push(vec![
                label,
                cell(&without),
                cell(&with),
                cell(&before),
                cell(&after),
                cell(&fifo.timeouts()),
                cell(&filter.timeouts()),
                cell(&fifo.summary(acks_carried)),
                cell(&filter.summary(acks_carried)),
            ]);
        }
    }
    let fixed = ["path.radio.half-duplex-hops.turnaround=0ms"];
    let still = packet_radio(bench, HOPS[0], 1, &fixed)?.summary(kbps);
    let filtered = packet_radio(bench, HOPS[0], 1, &[fixed[0], FILTER])?.summary(kbps);
    finding.note(format!(
        "without any turn-around {} hops carry {} kb/s, and {} with the filter",
        HOPS[0],
        short(still.mean),
        short(filtered.mean)
    ));
    finding.tables.push(Table {
        title: "4.4.2: packet radio, first in first out against ACK filter".to_owned(),
        columns: vec![
            Column::text("network"),
            Column::number("FIFO, kb/s"),
            Column::number("filter, kb/s"),
            Column::number("FIFO, Jain"),
            Column::number("filter, Jain"),
            Column::number("FIFO, time-outs"),
            Column::number("filter, time-outs"),
            Column::number("FIFO, ACKs carried"),
            Column::number("filter, ACKs carried"),
        ],
        rows,
    });
    Ok(finding)
}

/// Throughput of all transfers of a run in kb/s of payload.
fn kbps(m: &RunMetrics) -> f64 {
    1000.0 * mbps(m)
}

/// What the paper leaves open.
pub(super) const ASSUMED: &[(&str, &str)] = &[
    (
        "Figure 6 was measured; it is simulated on the topology of Figure 5, with packets of 1000 bytes and buffers of 10 \
         packets, for 50 s.",
        "The text gives neither the rates nor the buffers of the Hybrid network. Figure 5 was chosen by the authors to \
         model it.",
    ),
    (
        "The dial-up line has 28.8 kb/s, and its modems delay each ACK by 50 ms; the Ethernet return has 10 Mb/s and no \
         delay of its own.",
        "28.8 kb/s is the faster of the return channels of Table 1. 4.1 says that the Ethernet has much lower delay than \
         the dial-up lines; 50 ms is what V.34 modems of the time took each way. A line delays both directions here, so \
         it is set to 25 ms: only the sum counts.",
    ),
    (
        "Packet radio has 100 kb/s, a turn-around of 13.25 ms for each packet, 10 ms to pass a packet on, headers and \
         polls of 16 bytes, back-offs in units of 20 ms that double and have a random part.",
        "4.4.2 gives no numbers. These are the defaults of the multi-hop medium access for ns, \"modeled after Metricom's \
         Ricochet\", by the same authors. What follows a failed poll is theirs as well, but for a bound of the back-off.",
    ),
    (
        "ACKs are filtered in the queue of every station towards the sender, and the sender is plain Reno.",
        "4.2.2 has the filter where an ACK is about to be enqueued, at routers and hosts. 4.4.2 names filtering alone; \
         the sender adaptation is mentioned for the experiments of 4.3 only.",
    ),
    (
        "Several connections are four, from one server to one host, begun at the same time, for 50 s.",
        "4.4.2 says \"multiple connections are simultaneously active\"; 50 s are the transfers of 4.3.",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::scenario;

    #[test]
    fn every_topology_is_a_scenario() {
        assert_eq!(scenario(&asymmetric(), &[]).path.len(), 2);
        assert_eq!(scenario(&radio(), &[FILTER]).path.len(), 2);
    }

    /// Each mechanism against its absence, same scenario and seeds.
    #[test]
    fn what_is_swapped_for_its_absence_changes_what_it_claims_to_change() {
        let mut bench = Bench::new(3, &());
        let mut cell = |channel, more: &[&str]| {
            let runs = cable(&mut bench, channel, 64, more).unwrap();
            (runs.summary(mbps).mean, runs.summary(lost_acks).mean)
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
        assert!(filter.summary(acks_carried).mean < fifo.summary(acks_carried).mean);
        let still = air(&["path.radio.half-duplex-hops.turnaround=0ms"]);
        assert!(still.summary(kbps).mean > fifo.summary(kbps).mean, "the turn-around costs");
        let near = packet_radio(&mut bench, 1, 1, &[]).unwrap();
        assert!(near.summary(kbps).mean > fifo.summary(kbps).mean, "each hop costs");
    }

    #[test]
    fn acks_that_are_filled_in_keep_the_clock_of_a_sender() {
        let text = lasthop_scenario::example("satellite-dialup").map_or("", |example| example.text);
        let filter = "path.return.link.discipline-left=ack-filter";
        let mut bench = Bench::new(1, &());
        let mut cell = |agent: &str| {
            let runs = bench.runs(text, &[filter, &format!("agent={agent}")]).unwrap();
            let forged =
                |m: &RunMetrics| m.sum(|f| f.originated_acks.get(Cause::ReconstructedAck)) as f64;
            (runs.summary(mbps).mean, runs.summary(forged).mean)
        };
        let (without, none) = cell("none");
        let (with, forged) = cell("ack-reconstruction");
        assert!(none == 0.0 && forged > 100.0, "{forged} filled in");
        assert!(with > without, "{with} against {without} Mb/s");
    }
}
