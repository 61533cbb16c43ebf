//! Section 5: short transfers and many connections. Right-edge recovery (Figure 7) and integrated congestion control
//! and loss recovery (Figures 8, 9, 11 and 12), on the router of Figure 10.

use lasthop_report::plot::{Curve, Pen};
use lasthop_trace::sequence::Series;
use lasthop_trace::stats::{Summary, jain_index, quantile};

use super::range::WEB as CLAIM;
use crate::figure::{Axes, curves};
use crate::measure;
use crate::table::table;
use crate::{Bench, Claim, Finding, Interrupted};

/// The router of Figure 10.
pub(super) const TESTBED: &str = include_str!("web.toml");

/// A sender with SACK.
const SACK: [&str; 1] = ["host.s.tcp=sack"];
/// Reno, with new data for the first two duplicate ACKs.
const RIGHT_EDGE: [&str; 2] = ["host.s.tcp=reno", "host.s.limited-transmit=true"];
/// Reno alone: the baseline of right-edge recovery.
const RENO: [&str; 1] = ["host.s.tcp=reno"];
/// SACK, with new data for the first two duplicate ACKs.
const SACK_EDGE: [&str; 2] = ["host.s.tcp=sack", "host.s.limited-transmit=true"];
/// Integrated control of all connections to one host.
const INTEGRATED: [&str; 1] = ["host.s.tcp=tcp-int"];

/// One run: its series and its timeouts.
struct Run {
    series: Vec<Series>,
    timeouts: f64,
}

impl Run {
    /// Bytes acknowledged on flow `i` between two times in seconds.
    fn acked(&self, i: usize, from: f64, to: f64) -> f64 {
        let at = |time: f64| {
            let acked = self.series.get(i).map_or(&[][..], |series| &series.acked);
            let n = acked.partition_point(|(at, _)| *at <= time);
            n.checked_sub(1).map_or(0.0, |last| acked[last].1 as f64)
        };
        at(to) - at(from)
    }
}

/// All runs of a case.
struct Runs(Vec<Run>);

impl Runs {
    fn run(bench: &Bench<'_>, changes: &[&str], tcp: &[&str]) -> Result<Runs, Interrupted> {
        let changes = [changes, tcp].concat();
        let run = |seed| {
            let recording = bench.record(TESTBED, &changes, seed);
            let timeouts = measure::timeouts(&recording.result.metrics);
            Run { series: recording.series, timeouts }
        };
        bench.each_seed(bench.seeds, run).map(Runs)
    }

    fn over(&self, of: impl Fn(&Run) -> f64) -> Summary {
        Summary::of(&self.0.iter().map(of).collect::<Vec<_>>())
    }

    fn timeouts(&self) -> Summary {
        self.over(|run| run.timeouts)
    }

    /// Adds a plot of the bytes sent by every connection in the first run, as in Figures 7 to 12.
    fn draw(&self, finding: &mut Finding, title: &str, names: &[&str]) {
        let Some(first) = self.0.first() else { return };
        let all = names.iter().zip(&first.series).map(|(name, series)| Curve {
            name: (*name).to_owned(),
            pen: Pen::Points,
            points: series.sent.iter().map(|s| (s.at_s, s.start as f64 / 1000.0, 0.0)).collect(),
        });
        let axes = Axes { x: "time (s)", y: "sequence (kB)", log_x: false };
        let caption = "A mark for each segment sent, seed 1.";
        finding.figures.push(curves(title, axes, all.collect(), caption));
    }
}

const CROSSED: [&str; 2] = [
    "horizon=10s",
    "transfer=[{ from = 's', to = 'r1', bytes = 'unlimited' }, \
     { from = 'ct1', to = 'ct2', count = 40, cross = true, on-off = { on = '500ms', off = '500ms' } }]",
];

pub(super) const F7: Claim = Claim {
    id: "D-F7",
    place: "5.1, Figure 7",
    setup: "one 10 s transfer through a router with cross traffic and frequent losses; SACK against \
            right-edge recovery",
    published: "right-edge recovery is more than twice as fast; far fewer coarse time-outs",
    cost: 4,
    run: Some(f7),
    ..CLAIM
};

/// 5.1: right-edge recovery compared with SACK, a transfer of 10 s among much cross traffic.
fn f7(bench: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
    let mut rows =
        table("One transfer of 10 s among cross traffic", "<sender | kB acknowledged | time-outs");
    let mut cases = Vec::new();
    let mut each: Vec<Vec<f64>> = Vec::new();
    for (name, tcp) in [
        ("SACK", &SACK[..]),
        ("right edge", &RIGHT_EDGE),
        ("Reno", &RENO),
        ("SACK, right edge", &SACK_EDGE),
    ] {
        let runs = Runs::run(bench, &CROSSED, tcp)?;
        let bytes = runs.over(|run| run.acked(0, 0.0, 10.0) / 1000.0);
        let timeouts = runs.timeouts();
        finding.measure(format!("{name}, acknowledged in 10 s"), bytes, "kB");
        finding.measure(format!("{name}, coarse time-outs"), timeouts, "per run");
        let cells = [format!("{:.0}", bytes.mean), format!("{:.1}", timeouts.mean)];
        rows.rows.push(core::iter::once(name.to_owned()).chain(cells).collect());
        runs.draw(finding, &format!("Figure 7: {name}"), &[name]);
        cases.push((bytes.mean, timeouts.mean));
        each.push(runs.0.iter().map(|run| run.acked(0, 0.0, 10.0)).collect());
    }
    finding.tables.push(rows);
    // The paper's figure is one run of each.
    let pairs = each[1].iter().flat_map(|edge| each[0].iter().map(move |sack| edge / sack));
    let pairs: Vec<f64> = pairs.collect();
    let above = pairs.iter().filter(|ratio| **ratio > 2.0).count();
    finding.note(format!(
        "the figure of the paper is one run of each: of the {} pairs of a run here with right-edge recovery and one \
         with \
         SACK, {:.1} % have it more than twice as fast, and the 95th percentile is {:.2} times",
        pairs.len(),
        100.0 * above as f64 / pairs.len() as f64,
        quantile(&pairs, 0.95).unwrap_or(f64::NAN)
    ));
    let times = |a: usize, b: usize| (cases[a].0 / cases[b].0, cases[a].1 / cases[b].1);
    let (sack, edge, reno, both) = (0, 1, 2, 3);
    let (faster, timeouts) = times(edge, sack);
    finding.require(
        faster >= 1.6,
        format!("right edge is {faster:.2} times as fast as SACK, wanted at least 1.6"),
    );
    finding.require(
        cases[edge].1 <= cases[sack].1 / 2.0,
        format!("right edge has {timeouts:.2} times SACK's time-outs, wanted at most half"),
    );
    let (beside_reno, beside_sack) = (times(edge, reno), times(both, sack));
    finding.note(format!(
        "Beside Reno without it, right-edge recovery is {:.2} times as fast with {:.2} times the time-outs; beside \
         SACK without it, SACK with it is {:.2} times as fast with {:.2} times the time-outs",
        beside_reno.0, beside_reno.1, beside_sack.0, beside_sack.1
    ));
    Ok(())
}

const FOUR: [&str; 3] = [
    "horizon=10s",
    "path.router.link.queue=2p",
    "transfer=[{ from = 's', to = 'r1', bytes = 'unlimited', start = '0s' }, \
     { from = 's', to = 'r1', bytes = 'unlimited', start = '2s' }, \
     { from = 's', to = 'r1', bytes = 'unlimited', start = '4s' }, \
     { from = 's', to = 'r1', bytes = 'unlimited', start = '6s' }]",
];
const STARTS: [&str; 4] = ["from 0 s", "from 2 s", "from 4 s", "from 6 s"];

pub(super) const F8_F9: Claim = Claim {
    id: "D-F8-F9",
    place: "5.2.2, Figures 8 and 9",
    setup: "four transfers starting at 0, 2, 4, 6 s, ending at 10 s, 3-packet buffer; SACK against TCP-INT",
    published: "SACK: two of four flows get < 10 % of the bytes; TCP-INT: equal shares, almost no coarse \
            time-outs, slightly fewer bytes in all",
    cost: 2,
    run: Some(f8_f9),
    ..CLAIM
};

/// 5.2.2: four transfers to one host through a router with a buffer of three packets.
fn f8_f9(bench: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
    let mut rows = table(
        "Four transfers to one host, kB acknowledged",
        &format!("<sender | {} | Jain 6-10 s | time-outs", STARTS.join(" | ")),
    );
    let mut cases = Vec::new();
    for (name, figure, tcp) in [
        ("SACK", "Figure 8: four TCP-SACK transfers", SACK),
        ("TCP-INT", "Figure 9: four TCP-INT transfers", INTEGRATED),
    ] {
        let runs = Runs::run(bench, &FOUR, &tcp)?;
        let each = |run: &Run, from| [0, 1, 2, 3].map(|i| run.acked(i, from, 10.0));
        let jain = runs.over(|run| jain_index(&each(run, 6.0)));
        let total = runs.over(|run| each(run, 0.0).iter().sum::<f64>() / 1000.0);
        let small = runs.over(|run| {
            let bytes = each(run, 0.0);
            let total: f64 = bytes.iter().sum();
            bytes.iter().filter(|bytes| **bytes < 0.1 * total).count() as f64
        });
        let timeouts = runs.timeouts();
        finding.measure(format!("{name}, Jain index of 6 to 10 s"), jain, "");
        finding.measure(format!("{name}, coarse time-outs"), timeouts, "per run");
        finding.measure(format!("{name}, acknowledged in 10 s"), total, "kB");
        finding.measure(format!("{name}, transfers with less than 10 %"), small, "of 4");
        let mut row = vec![name.to_owned()];
        let of_flow = |i: usize| runs.over(|run| each(run, 0.0)[i] / 1000.0).mean;
        row.extend((0..4).map(|i| format!("{:.0}", of_flow(i))));
        row.extend([format!("{:.3}", jain.mean), format!("{:.1}", timeouts.mean)]);
        rows.rows.push(row);
        runs.draw(finding, figure, &STARTS);
        cases.push((jain.mean, timeouts.mean, total.mean));
    }
    finding.tables.push(rows);
    let (sack, int) = (cases[0], cases[1]);
    finding.above("TCP-INT's Jain index", int.0, 0.9);
    finding.above("TCP-INT's Jain index, against SACK's,", int.0, sack.0);
    finding.below("TCP-INT's time-outs per run, against a quarter of SACK's,", int.1, sack.1 / 4.0);
    let beside = 100.0 * (int.2 / sack.2 - 1.0);
    finding.within("TCP-INT's bytes beside SACK's in %", beside, -15.0, 5.0);
    let larger = [&FOUR[..], &["path.router.link.queue=3p"]].concat();
    let total = |tcp: &[&str]| {
        let runs = Runs::run(bench, &larger, tcp)?;
        Ok(runs.over(|run| [0, 1, 2, 3].map(|i| run.acked(i, 0.0, 10.0)).iter().sum()).mean)
    };
    let (sack, int): (f64, f64) = (total(&SACK)?, total(&INTEGRATED)?);
    finding.note(format!(
        "the buffer decides: where three packets wait beside the one that is sent, and not two, TCP-INT's bytes are \
         {:.1} % beside SACK's",
        100.0 * (int / sack - 1.0)
    ));
    Ok(())
}

const TWO_HOSTS: [&str; 2] = [
    "horizon=30s",
    "transfer=[{ from = 's', to = 'r1', bytes = 'unlimited' }, \
     { from = 's', to = 'r2', bytes = 'unlimited' }, \
     { from = 's', to = 'r2', bytes = 'unlimited', start = '15s' }, \
     { from = 'ct1', to = 'ct2', count = 4, cross = true, on-off = { on = '500ms', off = '500ms' } }]",
];
const CONNECTIONS: [&str; 3] = ["A, to R1", "B, to R2", "C, to R2"];

pub(super) const F11_F12: Claim = Claim {
    id: "D-F11-F12",
    place: "5.2.3, Figures 11 and 12",
    setup: "one connection to host 1, one then two (from 15 s) to host 2, cross traffic; SACK against \
            TCP-INT",
    published: "SACK shares by connection (host 2 gets twice); TCP-INT shares by host",
    cost: 6,
    run: Some(f11_f12),
    ..CLAIM
};

/// 5.2.3: one connection to the first host, one and then two to the second.
fn f11_f12(bench: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
    let mut rows = table(
        "From 15 to 30 s, kB acknowledged",
        &format!("<sender | {} | R2 / R1 | time-outs", CONNECTIONS.join(" | ")),
    );
    for (name, figure, tcp, low, high) in [
        ("SACK", "Figure 11: three TCP-SACK transfers to two hosts", SACK, 1.6, 2.4),
        ("TCP-INT", "Figure 12: three TCP-INT transfers to two hosts", INTEGRATED, 0.8, 1.25),
    ] {
        let runs = Runs::run(bench, &TWO_HOSTS, &tcp)?;
        let each = [0, 1, 2].map(|i| runs.over(|run| run.acked(i, 15.0, 30.0) / 1000.0));
        // Shares of all runs together: the ratio of one run is arbitrary when a transfer stalls.
        let ratio = (each[1].mean + each[2].mean) / each[0].mean;
        for (connection, bytes) in CONNECTIONS.iter().zip(each) {
            finding.measure(format!("{name}, {connection}, 15 to 30 s"), bytes, "kB");
        }
        finding.within(format!("R2's share over R1's with {name}"), ratio, low, high);
        let mut row = vec![name.to_owned()];
        row.extend(each.iter().map(|bytes| format!("{:.0}", bytes.mean)));
        row.extend([format!("{ratio:.2}"), format!("{:.1}", runs.timeouts().mean)]);
        rows.rows.push(row);
        runs.draw(finding, figure, &CONNECTIONS);
    }
    finding.tables.push(rows);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario;

    #[test]
    fn the_testbed_and_every_case_of_it_parse() {
        for (changes, transfers) in [(&CROSSED[..], 2), (&FOUR[..], 4), (&TWO_HOSTS[..], 4)] {
            for tcp in [&SACK[..], &RIGHT_EDGE[..], &INTEGRATED[..]] {
                let scenario = scenario(TESTBED, &[changes, tcp].concat());
                assert_eq!(scenario.transfers.len(), transfers);
                assert!(scenario.transfers.iter().all(|t| !t.ends()));
            }
        }
    }
}
