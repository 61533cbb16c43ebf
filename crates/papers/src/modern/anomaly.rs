//! The rate anomaly of 802.11b: one host at a low rate slows all others.

use std::fmt::Write as _;

use lasthop_observe::metrics::RunMetrics;

use crate::figure::{Axes, curves, line};
use crate::table::{row, table};
use crate::{Bench, Bound, Estimate, Finding, Interrupted};

/// The rates of the slow host, in Mb/s.
const SLOW: [f64; 4] = [11.0, 5.5, 2.0, 1.0];
/// Maximum difference of the throughputs of a fast and of the slow host: equal chances of access are equal
/// throughputs.
const ALIKE: f64 = 10.0;

/// A cell of `hosts` hosts; the first one has the rate `slow`. ACKs have the highest of the basic rates.
fn cell(hosts: usize, slow: f64) -> String {
    let mut text = String::from("name = \"rate-anomaly\"\nhorizon = \"30s\"\n\n[host.server]\n");
    for i in 0..hosts {
        let _ = write!(
            text,
            "[host.h{i}]\n[[transfer]]\nfrom = \"h{i}\"\nto = \"server\"\nudp = {{ rate = \"12mbit\", size = \"1500B\" }}\n"
        );
    }
    let _ = write!(
        text,
        "[[path]]\nlink = {{ rate = \"100mbit\", delay = \"1ms\" }}\n[[path]]\nagent = \"none\"\n[[path]]\n\
         radio = {{ rate = \"11mbit\", delay = \"1us\", queue = \"50p\" }}\nmac = \"dcf\"\n\
         dcf = {{ control-rate = \"2mbit\", stations = [{{ host = \"h0\", rate = \"{slow}mbit\" }}] }}\n"
    );
    text
}

/// Throughput of host `i` in Mb/s.
fn of_host(i: usize) -> impl Fn(&RunMetrics) -> f64 {
    move |m| m.datagrams.get(i).map_or(f64::NAN, |d| d.delivered as f64 * 8e-6 / m.end_s)
}

/// Mean throughput of the fast hosts in Mb/s.
fn of_fast(hosts: usize) -> impl Fn(&RunMetrics) -> f64 {
    move |m| (1..hosts).map(|i| of_host(i)(m)).sum::<f64>() / (hosts - 1) as f64
}

pub(super) fn anomaly(bench: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
    let mut rows = table(
        "Throughput of each host, Mb/s",
        "hosts | rate of the slow one | slow | each of the others | of that without a slow one, %",
    );
    let mut drawn = Vec::new();
    for hosts in 2..=5 {
        let mut alone = None;
        let mut points = Vec::new();
        for rate in SLOW {
            let none: [&str; 0] = [];
            let runs = bench.runs(&cell(hosts, rate), &none)?;
            let (slow, fast) = (runs.summary(of_host(0)), runs.summary(of_fast(hosts)));
            let before = alone.get_or_insert_with(|| runs.each(of_fast(hosts)));
            let each = runs.each(of_fast(hosts));
            let share = Estimate::ratio(&each, before).scaled(100.0);
            rows.rows.push(row(&[&(hosts as u32), &rate, &slow, &fast, &share]));
            points.push((rate, fast));
            let which = format!("{hosts} hosts, one at {rate} Mb/s");
            if rate < 11.0 {
                finding.below(format!("{which}: each of the others in Mb/s"), fast, rate);
            }
            let unlike = Estimate::percent_above(&each, &runs.each(of_host(0)));
            let quantity = format!("{which}: each of the others above the slow one in %");
            finding.require_bound(&quantity, unlike, Bound::AtMost(ALIKE));
            finding.require_bound(&quantity, unlike, Bound::AtLeast(-ALIKE));
        }
        drawn.push(line(&format!("{hosts} hosts"), points));
    }
    finding.tables.push(rows);
    finding.figures.push(curves(
        "One slow host: throughput of each of the others",
        Axes { x: "rate of the slow host (Mb/s)", y: "Mb/s", log_x: true },
        drawn,
        "Each host has packets to send at any time.",
    ));
    Ok(())
}
