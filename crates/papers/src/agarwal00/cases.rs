//! The variables of the experiments: MTU, changes to the stack, RTS and CTS, other senders; and how they are measured
//! and shown.

use lasthop_observe::metrics::{NodeEnergy, RunMetrics};
use lasthop_observe::stats::Summary;
use lasthop_proto::event::Cause;
use lasthop_report::model::{Figure, Table};

use super::setup::{RUN_S, TESTBED};
use crate::figure::{Axes, curves, line, published_line};
use crate::measure::timeouts;
use crate::table::{row, table};
use crate::{Bench, Interrupted, Runs, short};

/// The four sizes of 5.1.
pub(super) const MTUS: [u32; 4] = [500, 1000, 1500, 2296];
/// The MTU of the driver and of Ethernet.
pub(super) const USUAL: u32 = 1500;

/// The receiver's window in Linux 2.2.
const WINDOW: u32 = 32_767;

/// The initial window of Linux 2.2.
pub(super) const FROM_TWO: Changes = &["host.*.initial-window=2"];

/// Settings of the stacks or the medium.
pub(super) type Changes = &'static [&'static str];

/// Unmodified Linux.
pub(super) const STOCK: Changes = &[];
/// 5.2. Without SACK the sender repairs losses as NewReno.
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
/// 5.6: ACKs by a timer only, not for every second segment, and before the window is exhausted.
pub(super) const BY_TIME: Changes =
    &[r#"host.receiver.delayed-ack={ every = "none", timeout = "500ms" }"#];
/// 5.7: for packets of more than 1000 bytes.
pub(super) const RTS: Changes = &["dcf.rts-threshold=1000B"];

/// Runs of each case: the thesis made five runs (5), which correspond to 20 seeds of other papers' experiments.
pub(super) fn seeds(bench: &Bench<'_>) -> u32 {
    bench.seeds.div_ceil(4).max(2).min(bench.seeds)
}

/// A case: changes to the testbed.
#[derive(Clone, Debug)]
pub(super) struct Case(Vec<String>);

impl Case {
    pub(super) fn new(mtu: u32, parts: &[Changes]) -> Case {
        // The paper equates "MSS" and "MTU"; a segment is 40 bytes of headers smaller.
        let mss = format!("host.*.mss={}", mtu - 40);
        // An established connection: see the assumptions.
        let open = format!("host.*.initial-window={}", WINDOW.div_ceil(mtu - 52));
        let parts = parts.iter().flat_map(|part| part.iter()).map(|c| (*c).to_owned());
        Case([mss, open].into_iter().chain(parts).collect())
    }

    /// The same with further settings.
    pub(super) fn with(mut self, changes: &[&str]) -> Case {
        self.0.extend(changes.iter().map(|c| (*c).to_owned()));
        self
    }

    pub(super) fn changes(&self) -> &[String] {
        &self.0
    }
}

/// The runs of `cases`, side by side.
pub(super) fn run<const N: usize>(
    bench: &mut Bench<'_>,
    cases: &[Case; N],
) -> Result<[Runs; N], Interrupted> {
    let n = seeds(bench);
    batch(bench, cases.each_ref().map(|case| (case, n)))
}

/// The runs of cases, each with its own number of seeds, side by side.
pub(super) fn batch<const N: usize>(
    bench: &mut Bench<'_>,
    cases: [(&Case, u32); N],
) -> Result<[Runs; N], Interrupted> {
    let runs = bench.batch(TESTBED, &cases.map(|(case, n)| (case.changes(), n)))?;
    Ok(runs.try_into().unwrap_or_else(|_| unreachable!("as many as were asked for")))
}

/// Energy use of `host`; `None` shows as NaN wherever it is used.
pub(super) fn node<'a>(m: &'a RunMetrics, host: &str) -> Option<&'a NodeEnergy> {
    m.energy.iter().find(|node| node.host == host)
}

fn of(m: &RunMetrics, host: &str, metric: impl Fn(&NodeEnergy) -> f64) -> f64 {
    node(m, host).map_or(f64::NAN, metric)
}

/// Lifetime of a full battery of `host`, in minutes.
pub(super) fn minutes(host: &'static str) -> impl Fn(&RunMetrics) -> f64 {
    move |m| of(m, host, |node| node.lifetime_s / 60.0)
}

/// Payload sent and received per full battery of `host`, in millions of bytes.
pub(super) fn megabytes(host: &'static str) -> impl Fn(&RunMetrics) -> f64 {
    move |m| of(m, host, |node| node.bytes_per_battery / 1e6)
}

/// Payload per joule of `host`.
pub(super) fn per_joule(host: &'static str) -> impl Fn(&RunMetrics) -> f64 {
    move |m| of(m, host, |node| node.bytes_per_joule)
}

/// Throughput of the sender in kB/s.
pub(super) fn kbps(m: &RunMetrics) -> f64 {
    m.aggregate_throughput / 1000.0
}

/// `count` events of a run, extrapolated to a full battery of the sender.
fn per_battery(m: &RunMetrics, count: f64) -> f64 {
    of(m, "sender", |node| count * node.lifetime_s / m.end_s)
}

/// Data retransmissions of the sender per full battery.
pub(super) fn retransmissions(m: &RunMetrics) -> f64 {
    per_battery(m, m.sum(|f| f.host_retransmissions()) as f64)
}

/// Data packets per full battery of the sender.
pub(super) fn packets(m: &RunMetrics) -> f64 {
    per_battery(m, m.sum(|f| f.new_packets) as f64)
}

/// Packets dropped by medium access per full battery of the sender.
pub(super) fn given_up(m: &RunMetrics) -> f64 {
    per_battery(m, m.stages.iter().map(|s| s.dropped.get(Cause::RetryLimit)).sum::<u64>() as f64)
}

/// Timeouts of the sender per full battery.
pub(super) fn expirations(m: &RunMetrics) -> f64 {
    per_battery(m, timeouts(m))
}

/// By how many percent `metric` is larger in `changed` than in `base`, in pairs of equal seeds.
pub(super) fn gain(changed: &Runs, base: &Runs, metric: impl Fn(&RunMetrics) -> f64) -> Summary {
    let (changed, base) = (changed.each(&metric), base.each(&metric));
    let percent: Vec<f64> =
        changed.iter().zip(&base).map(|(new, old)| 100.0 * (new / old - 1.0)).collect();
    Summary::of(&percent)
}

/// A gain with its sign, and its interval where that is visible.
pub(super) fn percent(summary: &Summary) -> String {
    match (summary.mean.abs() < 0.005, summary.ci95 < 0.005) {
        (true, true) => "no difference".to_owned(),
        (false, true) => format!("{:+.2} %", summary.mean),
        _ => format!("{:+.2} ± {:.2} %", summary.mean, summary.ci95),
    }
}

/// One line of a figure: a case at each of [`MTUS`].
#[derive(Clone)]
pub(super) struct Line {
    pub(super) name: &'static str,
    pub(super) runs: [Runs; MTUS.len()],
}

impl Line {
    /// The runs of `parts`.
    pub(super) fn run(
        bench: &mut Bench<'_>,
        name: &'static str,
        parts: &[Changes],
    ) -> Result<Line, Interrupted> {
        Ok(Line { name, runs: run(bench, &MTUS.map(|mtu| Case::new(mtu, parts)))? })
    }

    /// The runs at one of [`MTUS`].
    ///
    /// # Panics
    ///
    /// For any other MTU.
    pub(super) fn at(&self, mtu: u32) -> &Runs {
        match self.by_mtu().find(|(x, _)| *x == mtu) {
            Some((_, runs)) => runs,
            None => unreachable!("nothing was run at an MTU of {mtu}"),
        }
    }

    /// Each MTU with its runs.
    fn by_mtu(&self) -> impl Iterator<Item = (u32, &Runs)> {
        MTUS.into_iter().zip(&self.runs)
    }

    /// The mean of something by MTU.
    pub(super) fn means(&self, metric: impl Fn(&RunMetrics) -> f64) -> [f64; MTUS.len()] {
        self.runs.each_ref().map(|runs| runs.mean(&metric))
    }
}

/// A figure over the MTU.
pub(super) fn chart(
    all: &[Line],
    metric: impl Fn(&RunMetrics) -> f64,
    y_label: &str,
    title: &str,
) -> Figure {
    chart_with_published(all, metric, y_label, title, &[])
}

/// The same with published values: an MTU and a value for each line.
pub(super) fn chart_with_published(
    all: &[Line],
    metric: impl Fn(&RunMetrics) -> f64,
    y: &str,
    title: &str,
    published: &[(u32, f64)],
) -> Figure {
    let measured = all.iter().map(|of| {
        let points = of.by_mtu().map(|(mtu, runs)| (f64::from(mtu), runs.summary(&metric)));
        line(of.name, points)
    });
    let published = all.iter().zip(published).map(|(of, (mtu, y))| {
        published_line(format!("{}, published", of.name), [(f64::from(*mtu), *y)])
    });
    let n = all.iter().flat_map(|l| &l.runs).map(|r| r.all().len()).max().unwrap_or(0);
    let caption = format!(
        "Runs of {} s, {n} for each point, extrapolated to a full battery. Bands are 95 % confidence intervals, \
         mostly thinner than the line.",
        short(RUN_S)
    );
    let axes = Axes { x: "MTU, bytes", y, log_x: false };
    curves(title, axes, measured.chain(published).collect(), &caption)
}

pub(super) const BYTES: &str = "megabytes per battery";
pub(super) const LIFETIME: &str = "minutes per battery";

/// All numbers of each case by MTU.
pub(super) fn by_mtu(title: &str, all: &[Line], host: &'static str) -> Table {
    let mut rows = table(
        title,
        "MTU | <stack | MB per battery | minutes | bytes per joule | kB/s | W of the work | W of the radio | \
         data packets retransmitted",
    );
    let watts = |metric: fn(&NodeEnergy) -> f64| {
        move |m: &RunMetrics| of(m, host, |node| metric(node) / m.end_s)
    };
    for mtu in MTUS {
        for line in all {
            let runs = line.at(mtu);
            rows.rows.push(row(&[
                &mtu,
                &line.name,
                &runs.summary(megabytes(host)),
                &runs.summary(minutes(host)),
                &runs.summary(per_joule(host)),
                &runs.summary(kbps),
                &runs.summary(watts(|n| n.spent.processing)),
                &runs.summary(watts(radio_joules)),
                &runs.summary(retransmissions),
            ]));
        }
    }
    rows
}

/// Energy of a host's radio, in joules.
pub(super) fn radio_joules(node: &NodeEnergy) -> f64 {
    node.spent.doze + node.spent.idle + node.spent.receive + node.spent.transmit
}
