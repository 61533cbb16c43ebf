//! What the experiments vary: the MTU, what is done to the stack, RTS and CTS, who else sends; and how that is measured
//! and shown.

use lasthop_report::model::{Column, Figure, Table};
use lasthop_report::plot::{LineChart, LineSeries, Point};
use lasthop_trace::metrics::{NodeEnergy, RunMetrics};
use lasthop_trace::stats::Summary;

use super::TESTBED;
use crate::bakshi96::figure;
use crate::bench::{Bench, Interrupted, Runs};
use crate::finding::short;

/// The four sizes of 5.1.
pub(super) const MTUS: [u32; 4] = [500, 1000, 1500, 2296];
/// What the driver and every Ethernet have.
pub(super) const USUAL: u32 = 1500;

/// The receiver's window in Linux 2.2.
const WINDOW: u32 = 32_767;

/// The window with which Linux 2.2 begins.
pub(super) const FROM_TWO: Changes = &["host.*.initial-window=2"];

/// What is set about the stacks or the medium.
pub(super) type Changes = &'static [&'static str];

/// Linux as it comes.
pub(super) const STOCK: Changes = &[];
/// 5.2. Without SACK a loss is repaired as by NewReno.
pub(super) const SACK_OFF: Changes = &[
    "host.sender.tcp=newreno",
    "host.sender.sack=false",
    "host.receiver.tcp=newreno",
    "host.receiver.sack=false",
];
/// 5.3.
pub(super) const SCALE_OFF: Changes =
    &["host.sender.window-scale=false", "host.receiver.window-scale=false"];
/// 5.4.
pub(super) const STAMPS_OFF: Changes =
    &["host.sender.timestamps=false", "host.receiver.timestamps=false"];
/// 5.5.
pub(super) const PREDICTED: Changes =
    &["host.sender.prediction=before-paws", "host.receiver.prediction=before-paws"];
/// 5.6: no ACK for every second segment, only for time, and where the window would run out.
pub(super) const BY_TIME: Changes =
    &[r#"host.receiver.delayed-ack={ every = "none", timeout = "500ms" }"#];
/// 5.7: for packets of more than 1000 bytes.
pub(super) const RTS: Changes = &["dcf.rts-threshold=1000B"];

/// Runs of each case: the thesis ran five times (5), which is what 20 seeds of other papers' experiments become here.
pub(super) fn seeds(bench: &Bench<'_>) -> u32 {
    bench.seeds.div_ceil(4).max(2).min(bench.seeds)
}

/// A case: what is changed about the testbed.
#[derive(Clone, Debug)]
pub(super) struct Case(Vec<String>);

impl Case {
    pub(super) fn new(mtu: u32, parts: &[Changes]) -> Case {
        // "MSS" and "MTU" are one thing in the paper; a segment has 40 bytes of headers less.
        let mss = format!("host.*.mss={}", mtu - 40);
        // A connection that is open: see the assumptions.
        let open = format!("host.*.initial-window={}", WINDOW.div_ceil(mtu - 52));
        let parts = parts.iter().flat_map(|part| part.iter()).map(|c| (*c).to_owned());
        Case([mss, open].into_iter().chain(parts).collect())
    }

    /// The same, with more set.
    pub(super) fn with(mut self, changes: &[&str]) -> Case {
        self.0.extend(changes.iter().map(|c| (*c).to_owned()));
        self
    }

    pub(super) fn changes(&self) -> Vec<&str> {
        self.0.iter().map(String::as_str).collect()
    }
}

/// The runs of `cases`, side by side.
pub(super) fn run(bench: &mut Bench<'_>, cases: &[Case]) -> Result<Vec<Runs>, Interrupted> {
    let n = seeds(bench);
    let changes: Vec<Vec<&str>> = cases.iter().map(Case::changes).collect();
    let jobs: Vec<(&[&str], u32)> = changes.iter().map(|c| (c.as_slice(), n)).collect();
    bench.batch(TESTBED, &jobs)
}

/// What `host` has spent; its absence shows as no number wherever it is used.
pub(super) fn node<'a>(m: &'a RunMetrics, host: &str) -> Option<&'a NodeEnergy> {
    m.energy.iter().find(|node| node.host == host)
}

fn of(m: &RunMetrics, host: &str, what: impl Fn(&NodeEnergy) -> f64) -> f64 {
    node(m, host).map_or(f64::NAN, what)
}

/// How long a full battery of `host` lasts, in minutes.
pub(super) fn minutes(host: &'static str) -> impl Fn(&RunMetrics) -> f64 {
    move |m| of(m, host, |node| node.lifetime_s / 60.0)
}

/// Payload sent and received with a full battery of `host`, in millions of bytes.
pub(super) fn megabytes(host: &'static str) -> impl Fn(&RunMetrics) -> f64 {
    move |m| of(m, host, |node| node.bytes_per_battery / 1e6)
}

/// Payload for each joule of `host`.
pub(super) fn per_joule(host: &'static str) -> impl Fn(&RunMetrics) -> f64 {
    move |m| of(m, host, |node| node.bytes_per_joule)
}

/// Throughput of the sender in kB/s.
pub(super) fn kbps(m: &RunMetrics) -> f64 {
    m.aggregate_throughput / 1000.0
}

/// Data packets that the sender sent again, for a full battery.
pub(super) fn retransmissions(m: &RunMetrics) -> f64 {
    let sent = m.sum(|f| f.host_retransmissions()) as f64;
    of(m, "sender", |node| sent * node.lifetime_s / m.end_s)
}

/// Data packets, for a full battery of the sender.
pub(super) fn packets(m: &RunMetrics) -> f64 {
    let sent = m.sum(|f| f.new_packets) as f64;
    of(m, "sender", |node| sent * node.lifetime_s / m.end_s)
}

/// By how many percent `what` is more in `changed` than in `base`: pair by pair, since both ran with the same seeds.
pub(super) fn gain(changed: &Runs, base: &Runs, what: impl Fn(&RunMetrics) -> f64) -> Summary {
    let (changed, base) = (changed.each(&what), base.each(&what));
    let percent: Vec<f64> =
        changed.iter().zip(&base).map(|(new, old)| 100.0 * (new / old - 1.0)).collect();
    Summary::of(&percent)
}

pub(super) fn shown(summary: &Summary) -> String {
    lasthop_report::number::summary(summary)
}

/// A gain in words: with its sign, and its interval where that shows.
pub(super) fn percent(summary: &Summary) -> String {
    match (summary.mean.abs() < 0.005, summary.ci95 < 0.005) {
        (true, true) => "no difference".to_owned(),
        (false, true) => format!("{:+.2} %", summary.mean),
        _ => format!("{:+.2} ± {:.2} %", summary.mean, summary.ci95),
    }
}

/// One line of a figure: a case by MTU.
pub(super) struct Line<'a> {
    pub(super) name: &'a str,
    pub(super) runs: Vec<(u32, Runs)>,
}

/// The runs of `parts` at every MTU.
pub(super) fn line<'a>(
    bench: &mut Bench<'_>,
    name: &'a str,
    parts: &[Changes],
) -> Result<Line<'a>, Interrupted> {
    let cases = MTUS.map(|mtu| Case::new(mtu, parts));
    let runs = run(bench, &cases)?;
    Ok(Line { name, runs: MTUS.into_iter().zip(runs).collect() })
}

impl Line<'_> {
    pub(super) fn at(&self, mtu: u32) -> Option<&Runs> {
        self.runs.iter().find(|(x, _)| *x == mtu).map(|(_, runs)| runs)
    }

    /// The mean of something by MTU.
    pub(super) fn means(&self, what: impl Fn(&RunMetrics) -> f64) -> Vec<f64> {
        self.runs.iter().map(|(_, runs)| runs.summary(&what).mean).collect()
    }
}

/// A figure over the MTU.
pub(super) fn chart(
    lines: &[Line<'_>],
    what: impl Fn(&RunMetrics) -> f64,
    y_label: &str,
    title: &str,
) -> Figure {
    chart_beside(lines, what, y_label, title, &[])
}

/// The same with published values: an MTU and a value for each line.
pub(super) fn chart_beside(
    lines: &[Line<'_>],
    what: impl Fn(&RunMetrics) -> f64,
    y_label: &str,
    title: &str,
    published: &[(u32, f64)],
) -> Figure {
    let series = lines.iter().map(|line| LineSeries {
        name: line.name.to_owned(),
        published: false,
        points: line
            .runs
            .iter()
            .map(|(mtu, runs)| {
                let y = runs.summary(&what);
                Point { x: f64::from(*mtu), y: y.mean, ci: y.ci95 }
            })
            .collect(),
    });
    let published = lines.iter().zip(published).map(|(line, (mtu, y))| LineSeries {
        name: format!("{}, published", line.name),
        published: true,
        points: vec![Point { x: f64::from(*mtu), y: *y, ci: 0.0 }],
    });
    let series = series.chain(published);
    let plot = LineChart {
        title: title.to_owned(),
        x_label: "MTU, bytes".to_owned(),
        y_label: y_label.to_owned(),
        log_x: false,
        series: series.collect(),
    };
    let n = lines.iter().flat_map(|l| &l.runs).map(|(_, r)| r.all().len()).max().unwrap_or(0);
    let caption = format!(
        "Runs of {} s, {n} for each point, extrapolated to a full battery. Bands are 95 % confidence intervals, mostly \
         thinner than the line.",
        short(super::RUN_S)
    );
    figure(&plot.plot(), title, &caption)
}

pub(super) const BYTES: &str = "megabytes per battery";
pub(super) const LIFETIME: &str = "minutes per battery";

/// Every number of each case by MTU.
pub(super) fn table(title: &str, lines: &[Line<'_>], host: &'static str) -> Table {
    let mut table = Table {
        title: title.to_owned(),
        columns: vec![
            Column::number("MTU"),
            Column::text("stack"),
            Column::number("MB per battery"),
            Column::number("minutes"),
            Column::number("bytes per joule"),
            Column::number("kB/s"),
            Column::number("W of the work"),
            Column::number("W of the radio"),
            Column::number("data packets sent again"),
        ],
        rows: Vec::new(),
    };
    let watts = |what: fn(&NodeEnergy) -> f64| {
        move |m: &RunMetrics| of(m, host, |node| what(node) / m.end_s)
    };
    let work = watts(|n| n.spent.processing);
    let radio = watts(|n| n.spent.doze + n.spent.idle + n.spent.receive + n.spent.transmit);
    for mtu in MTUS {
        for line in lines {
            let Some(runs) = line.at(mtu) else { continue };
            table.rows.push(vec![
                mtu.to_string(),
                line.name.to_owned(),
                shown(&runs.summary(megabytes(host))),
                shown(&runs.summary(minutes(host))),
                shown(&runs.summary(per_joule(host))),
                shown(&runs.summary(kbps)),
                shown(&runs.summary(work)),
                shown(&runs.summary(radio)),
                shown(&runs.summary(retransmissions)),
            ]);
        }
    }
    table
}
