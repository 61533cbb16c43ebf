//! Section 5: short transfers and many connections. Right-edge recovery (Figure 7) and integrated congestion control and
//! loss recovery (Figures 8, 9, 11 and 12), on the router of Figure 10.

use lasthop_report::model::{Column, Figure, Measured, Table};
use lasthop_report::plot::{Curve, Curves, Pen};
use lasthop_trace::sequence::Series;
use lasthop_trace::stats::{Summary, jain_index};

use crate::bench::{Bench, Interrupted};
use crate::finding::Finding;
use crate::west97::Experiment;

/// The router of Figure 10.
pub const TESTBED: &str = include_str!("web.toml");

/// The experiment for the claim `id`.
pub fn experiment(id: &str) -> Option<Experiment> {
    Some(match id {
        "D-F7" => f7,
        "D-F8-F9" => f8_f9,
        "D-F11-F12" => f11_f12,
        _ => return None,
    })
}

/// What is assumed where the paper is silent.
pub(super) const ASSUMPTIONS: &[(&str, &str)] = &[
    (
        "5: access links of 10 Mb/s and 10 ms, a bottleneck of 1.5 Mb/s and 50 ms, 1000 B segments, windows of 20 segments, \
         a clock of 100 ms, every segment acknowledged.",
        "The paper names its simulator, not its parameters. These are the rates, sizes and windows of the tests that came \
         with ns in 1997; the delays give a round trip across a continent.",
    ),
    (
        "5.1.2 and 5.2.3: the router has a buffer of 6 packets beside the one that it sends.",
        "5.2.2 says 3 for its own test and nothing for the others; 6 is what the tests of ns use most.",
    ),
    (
        "5: each packet waits up to 5 ms, at random, before the router; packets keep their order.",
        "Where nothing is random, the phases of the senders decide whose packets find the buffer full (Floyd and Jacobson \
         1992). A random time as long as the bottleneck takes for a packet is their remedy, and ns has it.",
    ),
    (
        "5.1.2: the cross traffic is 40 Reno connections from CT1 to CT2; 5.2.3: four. Each is on and off, 500 ms each on \
         average, exponentially.",
        "\"A significant amount\" to force \"frequent losses and small congestion windows\": with 40 a SACK sender has fewer than \
         four segments in flight on average. \"Several\" are four. 500 ms are the defaults of ns.",
    ),
    (
        "5.2: TCP-INT counts an ACK on another connection for a segment sent later like a duplicate ACK. Where no duplicate \
         ACK speaks for a segment, it is lost only if the next one of its connection is missed as well, or a segment sent \
         400 ms later has arrived. One timer for all connections; partial ACKs in a recovery show the next loss.",
        "The paper says that later packets on other connections tell of a loss, not how many and when. So it is in ns \
         (`TCP/Int`), which the authors wrote.",
    ),
];

/// The sender whose losses SACK repairs.
const SACK: [&str; 1] = ["host.s.tcp=sack"];
/// Reno, with new data for the first two duplicate ACKs.
const RIGHT_EDGE: [&str; 2] = ["host.s.tcp=reno", "host.s.limited-transmit=true"];
/// Reno alone: what right-edge recovery is beside nothing.
const RENO: [&str; 1] = ["host.s.tcp=reno"];
/// What SACK itself gains.
const SACK_EDGE: [&str; 2] = ["host.s.tcp=sack", "host.s.limited-transmit=true"];
/// All connections to one host together.
const INTEGRATED: [&str; 1] = ["host.s.tcp=tcp-int"];

/// One run: its series and its time-outs.
struct Run {
    series: Vec<Series>,
    timeouts: f64,
}

impl Run {
    /// Bytes acknowledged on flow `i` from `from` to `to` seconds.
    fn acked(&self, i: usize, from: f64, to: f64) -> f64 {
        let at = |time: f64| {
            let acked = self.series.get(i).map_or(&[][..], |series| &series.acked);
            let n = acked.partition_point(|(at, _)| *at <= time);
            n.checked_sub(1).map_or(0.0, |last| acked[last].1 as f64)
        };
        at(to) - at(from)
    }
}

fn runs(bench: &Bench<'_>, changes: &[&str], tcp: &[&str]) -> Result<Vec<Run>, Interrupted> {
    let changes = [changes, tcp].concat();
    let mut all = Vec::new();
    for seed in 1..=u64::from(bench.seeds) {
        if bench.stopped() {
            return Err(Interrupted);
        }
        let recording = bench.record(TESTBED, &changes, seed);
        let timeouts = recording.result.metrics.sum(|f| f.timeouts) as f64;
        all.push(Run { series: recording.series, timeouts });
    }
    Ok(all)
}

fn over(runs: &[Run], of: impl Fn(&Run) -> f64) -> Summary {
    Summary::of(&runs.iter().map(of).collect::<Vec<_>>())
}

/// What every connection had sent by when, in the first run, as Figures 7 to 12 show it.
fn figure(runs: &[Run], title: &str, names: &[&str]) -> Option<Figure> {
    let first = runs.first()?;
    let curves = names.iter().zip(&first.series).map(|(name, series)| Curve {
        name: (*name).to_owned(),
        pen: Pen::Points,
        points: series.sent.iter().map(|s| (s.at_s, s.start as f64 / 1000.0, 0.0)).collect(),
    });
    let plot = Curves {
        title: title.to_owned(),
        x_label: "time (s)".to_owned(),
        y_label: "sequence (kB)".to_owned(),
        log_x: false,
        curves: curves.collect(),
    };
    Some(Figure {
        svg: plot.plot().inline(),
        title: title.to_owned(),
        caption: "A mark for each segment sent, seed 1.".to_owned(),
    })
}

const F7: [&str; 2] = [
    "horizon=10s",
    r#"transfer=[{ from = "s", to = "r1", bytes = "unlimited" }, { from = "ct1", to = "ct2", count = 40, cross = true, on-off = { on = "500ms", off = "500ms" } }]"#,
];

/// 5.1: right-edge recovery against SACK, a transfer of 10 s among much cross traffic.
fn f7(bench: &mut Bench<'_>) -> Result<Finding, Interrupted> {
    let mut finding = Finding::new(bench.seeds);
    let mut table = Table {
        title: "One transfer of 10 s among cross traffic".to_owned(),
        columns: vec![
            Column::text("sender"),
            Column::number("kB acknowledged"),
            Column::number("time-outs"),
        ],
        rows: Vec::new(),
    };
    let mut cases = Vec::new();
    for (name, tcp) in [
        ("SACK", &SACK[..]),
        ("right edge", &RIGHT_EDGE[..]),
        ("Reno", &RENO[..]),
        ("SACK, right edge", &SACK_EDGE[..]),
    ] {
        let all = runs(bench, &F7, tcp)?;
        let bytes = over(&all, |run| run.acked(0, 0.0, 10.0) / 1000.0);
        let timeouts = over(&all, |run| run.timeouts);
        finding.measured.extend([
            Measured::new(format!("{name}, acknowledged in 10 s"), &bytes, "kB", None),
            Measured::new(format!("{name}, coarse time-outs"), &timeouts, "per run", None),
        ]);
        table.rows.push(vec![
            name.to_owned(),
            format!("{:.0}", bytes.mean),
            format!("{:.1}", timeouts.mean),
        ]);
        finding.figures.extend(figure(&all, &format!("Figure 7: {name}"), &[name]));
        cases.push((bytes.mean, timeouts.mean));
    }
    let [sack, edge, reno, both] = cases[..] else { return Ok(finding) };
    finding.require(
        edge.0 / sack.0 >= 1.6,
        format!("right edge is {:.2} times as fast as SACK, wanted at least 1.6", edge.0 / sack.0),
    );
    finding.require(
        edge.1 <= sack.1 / 2.0,
        format!(
            "right edge has {:.2} times SACK's time-outs, wanted at most half",
            edge.1 / sack.1
        ),
    );
    finding.note(format!(
        "Beside Reno without it, right-edge recovery is {:.2} times as fast with {:.2} times the time-outs; beside SACK \
         without it, SACK with it is {:.2} times as fast with {:.2} times the time-outs",
        edge.0 / reno.0,
        edge.1 / reno.1,
        both.0 / sack.0,
        both.1 / sack.1
    ));
    finding.tables.push(table);
    Ok(finding)
}

const F8: [&str; 3] = [
    "horizon=10s",
    "path.router.link.queue=3p",
    r#"transfer=[{ from = "s", to = "r1", bytes = "unlimited", start = "0s" }, { from = "s", to = "r1", bytes = "unlimited", start = "2s" }, { from = "s", to = "r1", bytes = "unlimited", start = "4s" }, { from = "s", to = "r1", bytes = "unlimited", start = "6s" }]"#,
];
const STARTS: [&str; 4] = ["from 0 s", "from 2 s", "from 4 s", "from 6 s"];

/// 5.2.2: four transfers to one host through a router with a buffer of three packets.
fn f8_f9(bench: &mut Bench<'_>) -> Result<Finding, Interrupted> {
    let mut finding = Finding::new(bench.seeds);
    let mut table = Table {
        title: "Four transfers to one host, kB acknowledged".to_owned(),
        columns: std::iter::once(Column::text("sender"))
            .chain(STARTS.map(Column::number))
            .chain([Column::number("Jain 6-10 s"), Column::number("time-outs")])
            .collect(),
        rows: Vec::new(),
    };
    let mut cases = Vec::new();
    for (name, figure_name, tcp) in [
        ("SACK", "Figure 8: four TCP-SACK transfers", &SACK[..]),
        ("TCP-INT", "Figure 9: four TCP-INT transfers", &INTEGRATED[..]),
    ] {
        let all = runs(bench, &F8, tcp)?;
        let jain = over(&all, |run| {
            jain_index(&core::array::from_fn::<f64, 4, _>(|i| run.acked(i, 6.0, 10.0)))
        });
        let each = |run: &Run| core::array::from_fn::<f64, 4, _>(|i| run.acked(i, 0.0, 10.0));
        let total = over(&all, |run| each(run).iter().sum::<f64>() / 1000.0);
        let small = over(&all, |run| {
            let total: f64 = each(run).iter().sum();
            each(run).iter().filter(|bytes| **bytes < 0.1 * total).count() as f64
        });
        let timeouts = over(&all, |run| run.timeouts);
        finding.measured.extend([
            Measured::new(format!("{name}, Jain index of 6 to 10 s"), &jain, "", None),
            Measured::new(format!("{name}, coarse time-outs"), &timeouts, "per run", None),
            Measured::new(format!("{name}, acknowledged in 10 s"), &total, "kB", None),
            Measured::new(format!("{name}, transfers with less than 10 %"), &small, "of 4", None),
        ]);
        let mut row = vec![name.to_owned()];
        row.extend((0..4).map(|i| format!("{:.0}", over(&all, |run| each(run)[i] / 1000.0).mean)));
        row.extend([format!("{:.3}", jain.mean), format!("{:.1}", timeouts.mean)]);
        table.rows.push(row);
        finding.figures.extend(figure(&all, figure_name, &STARTS));
        cases.push((jain.mean, timeouts.mean, total.mean));
    }
    let [sack, int] = cases[..] else { return Ok(finding) };
    finding.above("TCP-INT's Jain index", int.0, 0.9);
    finding.above("TCP-INT's Jain index, against SACK's,", int.0, sack.0);
    finding.below("TCP-INT's time-outs per run, against a quarter of SACK's,", int.1, sack.1 / 4.0);
    finding.within(
        "TCP-INT's bytes beside SACK's in %",
        100.0 * (int.2 / sack.2 - 1.0),
        -15.0,
        5.0,
    );
    finding.tables.push(table);
    Ok(finding)
}

const F11: [&str; 2] = [
    "horizon=30s",
    r#"transfer=[{ from = "s", to = "r1", bytes = "unlimited" }, { from = "s", to = "r2", bytes = "unlimited" }, { from = "s", to = "r2", bytes = "unlimited", start = "15s" }, { from = "ct1", to = "ct2", count = 4, cross = true, on-off = { on = "500ms", off = "500ms" } }]"#,
];
const CONNECTIONS: [&str; 3] = ["A, to R1", "B, to R2", "C, to R2"];

/// 5.2.3: one connection to the first host, one and then two to the second.
fn f11_f12(bench: &mut Bench<'_>) -> Result<Finding, Interrupted> {
    let mut finding = Finding::new(bench.seeds);
    let mut table = Table {
        title: "From 15 to 30 s, kB acknowledged".to_owned(),
        columns: std::iter::once(Column::text("sender"))
            .chain(CONNECTIONS.map(Column::number))
            .chain([Column::number("R2 / R1"), Column::number("time-outs")])
            .collect(),
        rows: Vec::new(),
    };
    for (name, figure_name, tcp, low, high) in [
        ("SACK", "Figure 11: three TCP-SACK transfers to two hosts", &SACK[..], 1.6, 2.4),
        ("TCP-INT", "Figure 12: three TCP-INT transfers to two hosts", &INTEGRATED[..], 0.8, 1.25),
    ] {
        let all = runs(bench, &F11, tcp)?;
        let late = |i: usize| over(&all, |run| run.acked(i, 15.0, 30.0) / 1000.0);
        let each = [late(0), late(1), late(2)];
        // Shares of all runs together: a ratio of one run can be anything when a transfer stands still.
        let ratio = (each[1].mean + each[2].mean) / each[0].mean;
        let timeouts = over(&all, |run| run.timeouts);
        for (connection, bytes) in CONNECTIONS.iter().zip(&each) {
            let label = format!("{name}, {connection}, 15 to 30 s");
            finding.measured.push(Measured::new(label, bytes, "kB", None));
        }
        finding.within(&format!("R2's share over R1's with {name}"), ratio, low, high);
        let mut row = vec![name.to_owned()];
        row.extend(each.iter().map(|bytes| format!("{:.0}", bytes.mean)));
        row.extend([format!("{ratio:.2}"), format!("{:.1}", timeouts.mean)]);
        table.rows.push(row);
        finding.figures.extend(figure(&all, figure_name, &CONNECTIONS));
    }
    finding.tables.push(table);
    Ok(finding)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::scenario;

    #[test]
    fn the_testbed_and_every_case_of_it_parse() {
        for (changes, transfers) in [(&F7[..], 2), (&F8[..], 4), (&F11[..], 4)] {
            for tcp in [&SACK[..], &RIGHT_EDGE[..], &INTEGRATED[..]] {
                let scenario = scenario(TESTBED, &[changes, tcp].concat());
                assert_eq!(scenario.transfers.len(), transfers);
                assert!(scenario.transfers.iter().all(|t| !t.ends()));
            }
        }
    }
}
