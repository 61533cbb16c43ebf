//! Section 5: short transfers and many connections. Right-edge recovery (Figure 7) and integrated congestion control
//! and loss recovery (Figures 8, 9, 11 and 12), on the router of Figure 10.

use lasthop_observe::sequence::Series;
use lasthop_observe::stats::{Summary, jain_index, quantile};
use lasthop_report::plot::{Curve, Pen};

use crate::figure::{Axes, curves};
use crate::measure;
use crate::table::{Cell, table};
use crate::{Bench, Bound, Estimate, Finding, Interrupted};

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

    fn each(&self, of: impl Fn(&Run) -> f64) -> Vec<f64> {
        self.0.iter().map(of).collect()
    }

    /// Adds a plot of the bytes sent by every connection in the first run, as in Figures 7 to 12.
    fn draw(&self, finding: &mut Finding, title: &str, names: &[&str]) {
        let all = names.iter().enumerate().filter_map(|(i, name)| self.curve(i, name));
        finding.figures.push(curves(title, SEQUENCE, all.collect(), MARKS));
    }

    /// The segments that flow `i` sends in the first run.
    fn curve(&self, i: usize, name: &str) -> Option<Curve> {
        let series = self.0.first()?.series.get(i)?;
        let points = series.sent.iter().map(|s| (s.at_s, s.start as f64 / 1000.0, 0.0)).collect();
        Some(Curve { name: name.to_owned(), pen: Pen::Points, points })
    }
}

const SEQUENCE: Axes<'_> = Axes { x: "time (s)", y: "sequence (kB)", log_x: false };
const MARKS: &str = "A mark for each segment sent, the first seed.";

const CROSSED: [&str; 2] = [
    "horizon=10s",
    "transfer=[{ from = 's', to = 'r1', bytes = 'unlimited' }, \
     { from = 'ct1', to = 'ct2', count = 40, cross = true, on-off = { on = '500ms', off = '500ms' } }]",
];

/// 5.1: right-edge recovery compared with SACK, a transfer of 10 s among much cross traffic.
pub(super) fn f7(bench: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
    let mut rows =
        table("One transfer of 10 s among cross traffic", "<sender | kB acknowledged | timeouts");
    let (mut each, mut expired): (Vec<Vec<f64>>, Vec<Vec<f64>>) = Default::default();
    let mut drawn = Vec::new();
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
        finding.measure(format!("{name}, coarse timeouts"), timeouts, "per run");
        let cells = [format!("{:.0}", bytes.mean), format!("{:.1}", timeouts.mean)];
        rows.rows.push(core::iter::once(name.to_owned()).chain(cells).collect());
        if name == "SACK" || name == "right edge" {
            drawn.extend(runs.curve(0, name));
        }
        each.push(runs.each(|run| run.acked(0, 0.0, 10.0)));
        expired.push(runs.each(|run| run.timeouts));
    }
    finding.tables.push(rows);
    finding.figures.push(curves("Figure 7: SACK and right-edge recovery", SEQUENCE, drawn, MARKS));
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
    let of = |i: usize| (&each[i], &expired[i]);
    let times = |a: usize, b: usize| {
        let ((bytes, timeouts), (other, more)) = (of(a), of(b));
        (Estimate::ratio(bytes, other), Estimate::ratio(timeouts, more))
    };
    let (sack, edge, reno, both) = (0, 1, 2, 3);
    let (faster, timeouts) = times(edge, sack);
    // "More than twice as fast."
    finding.above("right edge over SACK", faster, 2.0);
    finding.require_bound("timeouts of right edge over SACK's", timeouts, Bound::AtMost(0.5));
    let (ratio_to_reno, ratio_to_sack) = (times(edge, reno), times(both, sack));
    finding.note(format!(
        "Compared with Reno without it, right-edge recovery is {} times as fast with {} times the timeouts; compared \
         with SACK without it, SACK with it is {} times as fast with {} times the timeouts",
        ratio_to_reno.0.cell(),
        ratio_to_reno.1.cell(),
        ratio_to_sack.0.cell(),
        ratio_to_sack.1.cell()
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
/// Figures of each run of four transfers.
struct Four {
    jain: Vec<f64>,
    timeouts: Vec<f64>,
    total: Vec<f64>,
    /// Bytes of the transfers from 2 and from 6 s.
    late: Vec<f64>,
    /// Transfers with less than 10 % of the bytes.
    small: Estimate,
}

const STARTS: [&str; 4] = ["from 0 s", "from 2 s", "from 4 s", "from 6 s"];

/// 5.2.2: four transfers to one host through a router with a buffer of three packets.
pub(super) fn f8_f9(bench: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
    let mut rows = table(
        "Four transfers to one host, kB acknowledged",
        &format!("<sender | {} | Jain 6-10 s | timeouts", STARTS.join(" | ")),
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
        finding.measure(format!("{name}, coarse timeouts"), timeouts, "per run");
        finding.measure(format!("{name}, acknowledged in 10 s"), total, "kB");
        finding.measure(format!("{name}, transfers with less than 10 %"), small, "of 4");
        let mut row = vec![name.to_owned()];
        let of_flow = |i: usize| runs.over(|run| each(run, 0.0)[i] / 1000.0).mean;
        row.extend((0..4).map(|i| format!("{:.0}", of_flow(i))));
        row.extend([format!("{:.3}", jain.mean), format!("{:.1}", timeouts.mean)]);
        rows.rows.push(row);
        runs.draw(finding, figure, &STARTS);
        let sum = |run: &Run| each(run, 0.0).iter().sum::<f64>();
        cases.push(Four {
            jain: runs.each(|run| jain_index(&each(run, 6.0))),
            timeouts: runs.each(|run| run.timeouts),
            total: runs.each(sum),
            late: runs.each(|run| run.acked(1, 0.0, 10.0) + run.acked(3, 0.0, 10.0)),
            small: small.into(),
        });
    }
    finding.tables.push(rows);
    let (sack, int) = (&cases[0], &cases[1]);
    // "The connections from 2 s and 6 s account for a minuscule (< 10 %) fraction of the bytes."
    let late = Estimate::ratio(&sack.late, &sack.total).scaled(100.0);
    finding.compare("SACK, share of the connections from 2 s and 6 s", late, "%", 10.0);
    finding.below("SACK: share of the connections from 2 s and 6 s in %", late, 10.0);
    finding.near("SACK: transfers with less than 10 % of the bytes", sack.small, 2.0, 0.15);
    let jain = Estimate::of(&[&int.jain], |m| m[0]);
    finding.above("TCP-INT's Jain index", jain, 0.9);
    finding.above(
        "TCP-INT's Jain index less SACK's",
        Estimate::difference(&int.jain, &sack.jain),
        0.0,
    );
    let times = Estimate::ratio(&int.timeouts, &sack.timeouts);
    finding.below("TCP-INT's timeouts over SACK's", times, 0.25);
    // "Slightly less."
    let above = Estimate::percent_above(&int.total, &sack.total);
    finding.within("TCP-INT's bytes above SACK's in %", above, -15.0, 0.0);
    let larger = [&FOUR[..], &["path.router.link.queue=3p"]].concat();
    let total = |tcp: &[&str]| {
        let runs = Runs::run(bench, &larger, tcp)?;
        Ok(runs.over(|run| [0, 1, 2, 3].map(|i| run.acked(i, 0.0, 10.0)).iter().sum()).mean)
    };
    let (sack, int): (f64, f64) = (total(&SACK)?, total(&INTEGRATED)?);
    finding.note(format!(
        "the buffer decides, and its reading is ours: a buffer of 3 packets is taken for two that wait and one that is \
         sent; if three wait, TCP-INT's bytes are {:.1} % above SACK's",
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

/// 5.2.3: one connection to the first host, one and then two to the second.
pub(super) fn f11_f12(bench: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
    let mut rows = table(
        "From 15 to 30 s, kB acknowledged",
        &format!("<sender | {} | R2 / R1 | timeouts", CONNECTIONS.join(" | ")),
    );
    for (name, figure, tcp, published) in [
        ("SACK", "Figure 11: three TCP-SACK transfers to two hosts", SACK, 2.0),
        ("TCP-INT", "Figure 12: three TCP-INT transfers to two hosts", INTEGRATED, 1.0),
    ] {
        let runs = Runs::run(bench, &TWO_HOSTS, &tcp)?;
        let each = [0, 1, 2].map(|i| runs.over(|run| run.acked(i, 15.0, 30.0) / 1000.0));
        // Shares of all runs together: the ratio of one run is arbitrary when a transfer stalls.
        let series = [0, 1, 2].map(|i| runs.each(|run| run.acked(i, 15.0, 30.0)));
        let of = |of: fn(&[f64]) -> f64| Estimate::of(&[&series[0], &series[1], &series[2]], of);
        let ratio = of(|m| (m[1] + m[2]) / m[0]);
        for (connection, bytes) in CONNECTIONS.iter().zip(each) {
            finding.measure(format!("{name}, {connection}, 15 to 30 s"), bytes, "kB");
        }
        finding.near(format!("R2's share over R1's with {name}"), ratio, published, 0.15);
        // Each connection as much as the other host's with SACK, half of it with TCP-INT.
        for (connection, share) in [("B", of(|m| m[1] / m[0])), ("C", of(|m| m[2] / m[0]))] {
            finding.near(
                format!("{name}: connection {connection} over A"),
                share,
                published / 2.0,
                0.15,
            );
        }
        let mut row = vec![name.to_owned()];
        row.extend(each.iter().map(|bytes| format!("{:.0}", bytes.mean)));
        row.extend([ratio.cell(), format!("{:.1}", runs.timeouts().mean)]);
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
