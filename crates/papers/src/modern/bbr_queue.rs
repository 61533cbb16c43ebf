//! Cardwell and others 2017, Figures 6 to 8: the queue of a BBR flow, and shares of several.

use lasthop_observe::metrics::{Datagrams, RunMetrics};
use lasthop_observe::sequence::Series;
use lasthop_report::plot::{Curve, Pen};

use super::TOLERANCE;
use crate::figure::{Axes, curves};
use crate::table::{row, table};
use crate::{Bench, Bound, Finding, Interrupted};

const ONE: &str = include_str!("bbr_queue.toml");

/// Payload of a packet.
const PAYLOAD: f64 = 1448.0;
/// Product of rate and delay in packets, and the buffer of the scenario in those.
const PRODUCT: f64 = 10e6 * 0.04 / 12_000.0;
const BUFFER: f64 = 8.0;

/// Time in seconds and data in flight beyond the product of rate and delay, in products, at each ACK.
fn queue_of(series: &Series) -> Vec<(f64, f64)> {
    let mut sent = series.sent.iter().peekable();
    let mut highest = 0;
    let point = |(at, acked): &(f64, u64)| {
        while let Some(next) = sent.next_if(|next| next.at_s <= *at) {
            highest = highest.max(next.end);
        }
        (*at, highest.saturating_sub(*acked) as f64 / PAYLOAD / PRODUCT - 1.0)
    };
    series.acked.iter().map(point).collect()
}

/// Waits of the small packets `i` in products of rate and delay: longest and mean.
fn waits(m: &RunMetrics, i: usize) -> [f64; 2] {
    // A wait of 40 ms is a product.
    let of = |probe: &Datagrams| [probe.delay_max_s / 0.04, probe.delay_mean_s / 0.04];
    m.datagrams.get(i).map_or([f64::NAN; 2], of)
}

pub(super) fn queue(bench: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
    finding.runs = 1;
    let mut drawn = Vec::new();
    let mut all = Vec::new();
    for (name, change) in [("BBR", "host.server.tcp=bbr"), ("CUBIC", "host.server.tcp=cubic")] {
        bench.check_interrupt()?;
        let recording = bench.record(ONE, &[change], bench.first_seed);
        let series = recording.series.first().cloned().unwrap_or_default();
        let points = queue_of(&series).into_iter().map(|(at, queue)| (at, queue.max(0.0), 0.0));
        drawn.push(Curve { name: name.to_owned(), pen: Pen::Line, points: points.collect() });
        all.push((recording.result.metrics, series));
    }
    let [(bbr, _), (_, cubic)] = &all[..] else { return Ok(()) };
    let [startup, _] = waits(bbr, 0);
    let [_, steady] = waits(bbr, 1);
    finding.compare("BBR, longest queue of the first second", startup, "products", 2.0);
    let quantity = "BBR, longest queue of the first second, products,";
    finding.require_bound(quantity, startup, Bound::AtMost(2.0));
    finding.compare("BBR, mean queue from 1 to 8 s", steady, "products", 0.0);
    finding.below("BBR, mean queue from 1 to 8 s, products,", steady, 0.1);
    // A cycle begins with a loss at a full buffer; the recovery of a second is no part of it.
    let from = cubic.lost.first().map_or(f64::NAN, |lost| lost.at_s + 1.0);
    let windows = cubic.windows.iter().filter(|window| window.at_s > from);
    let queues =
        windows.map(|window| 100.0 * (f64::from(window.cwnd) / PAYLOAD / PRODUCT - 1.0) / BUFFER);
    let queues: Vec<f64> = queues.collect();
    let full = queues.iter().copied().fold(f64::NAN, f64::max);
    let least = queues.iter().copied().fold(f64::NAN, f64::min);
    let least_is = "CUBIC, least queue after the first loss, part of the buffer";
    let full_is = "CUBIC, longest queue after the first loss, part of the buffer";
    finding.compare(least_is, least, "%", 70.0);
    finding.compare(full_is, full, "%", 100.0);
    finding.within(format!("{least_is}, %,"), least, 65.0, 75.0);
    finding.within(format!("{full_is}, %,"), full, 95.0, 105.0);
    let mut rows = table("Queues", "<figure | measured | published");
    rows.rows.push(row(&[&"BBR, startup, longest, products", &startup, &"at most 2"]));
    rows.rows.push(row(&[&"BBR, 1 to 8 s, mean, products", &steady, &"essentially none"]));
    rows.rows.push(row(&[&"CUBIC, cycle, least, % of the buffer", &least, &"70"]));
    rows.rows.push(row(&[&"CUBIC, cycle, longest, % of the buffer", &full, &"100"]));
    finding.tables.push(rows);
    for (name, level) in [("published: buffer", BUFFER), ("published: 70 % of it", 0.7 * BUFFER)] {
        let points = vec![(0.0, level, 0.0), (60.0, level, 0.0)];
        drawn.push(Curve { name: name.to_owned(), pen: Pen::Dashes, points });
    }
    let axes = Axes { x: "time (s)", y: "data beyond the product (products)", log_x: false };
    let caption = "10 Mb/s and 40 ms, a buffer of eight products. Data in flight counts until it is acknowledged in order, so \
                   recoveries exceed the buffer.";
    finding.figures.push(curves("BBR 2017, Figures 6 and 7: queues", axes, drawn, caption));
    Ok(())
}

const SEVERAL: &str = include_str!("bbr_fair.toml");

/// Acknowledged Mb/s from `from` to `to`.
fn rate(series: &Series, from: f64, to: f64) -> f64 {
    let acked = |at: f64| {
        let before = series.acked.iter().take_while(|(time, _)| *time <= at).last();
        before.map_or(0.0, |(_, acked)| *acked as f64)
    };
    (acked(to) - acked(from)) * 8.0 / 1e6 / (to - from)
}

pub(super) fn fair(bench: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
    finding.runs = 1;
    bench.check_interrupt()?;
    let recording = bench.record(SEVERAL, &[] as &[&str], bench.first_seed);
    let mut rows = table("Mb/s of each flow", "<flow | 10 to 20 s | 50 to 60 s | fair share");
    let all: Vec<f64> = recording.series.iter().map(|series| rate(series, 50.0, 60.0)).collect();
    let share = all.iter().sum::<f64>() / all.len() as f64;
    let mut drawn = Vec::new();
    for (i, series) in recording.series.iter().enumerate() {
        let name = format!("flow {}", i + 1);
        finding.compare(format!("{name}, 50 to 60 s"), all[i], "Mb/s", share);
        finding.near(format!("{name}, 50 to 60 s, Mb/s,"), all[i], share, TOLERANCE);
        rows.rows.push(row(&[&name, &rate(series, 10.0, 20.0), &all[i], &share]));
        let points = (0..60).map(f64::from);
        let points = points.map(|at| (at + 0.5, rate(series, at, at + 1.0), 0.0)).collect();
        drawn.push(Curve { name, pen: Pen::Line, points });
    }
    finding.require_bound("flows with data", all.len() as f64, Bound::Within(5.0, 5.0));
    finding.tables.push(rows);
    let points = vec![(10.0, share, 0.0), (60.0, share, 0.0)];
    let name = "published: the fair share".to_owned();
    drawn.push(Curve { name, pen: Pen::Dashes, points });
    let axes = Axes { x: "time (s)", y: "throughput (Mb/s)", log_x: false };
    let caption = "Means of a second. Flows begin two seconds apart.";
    finding.figures.push(curves("BBR 2017, Figure 8: shares of five flows", axes, drawn, caption));
    Ok(())
}
