//! RFC 5348 3.1: the throughput equation of Reno.

use lasthop_observe::metrics::{FlowMetrics, RunMetrics};

use super::{TOLERANCE, quarter};
use crate::figure::{Axes, curves, line, published_line};
use crate::table::{row, table};
use crate::{Bench, Estimate, Finding, Interrupted};

const LINK: &str = include_str!("equation.toml");

/// Round trip, timeout and segment of the scenario, in seconds and bytes.
const ROUND_TRIP: f64 = 0.25;
const TIMEOUT: f64 = 1.0;
const SEGMENT: f64 = 1000.0;
/// Random losses in percent.
const LOSSES: [f64; 6] = [0.1, 0.3, 1.0, 3.0, 5.0, 10.0];

/// Sent data packets.
fn sent(flow: &FlowMetrics) -> f64 {
    (flow.new_packets + flow.host_retransmissions()) as f64
}

/// Sending rate in bytes per second.
fn rate(m: &RunMetrics) -> f64 {
    m.flows.first().map_or(f64::NAN, |flow| sent(flow) * SEGMENT / m.end_s)
}

/// Loss events by sent packets: recoveries and timeouts.
fn events(m: &RunMetrics) -> f64 {
    let of = |flow: &FlowMetrics| (flow.fast_retransmits + flow.timeouts) as f64 / sent(flow);
    m.flows.first().map_or(f64::NAN, of)
}

/// The equation with b = 1, in bytes per second.
fn law(p: f64) -> f64 {
    let by_acks = ROUND_TRIP * (2.0 * p / 3.0).sqrt();
    let by_timeouts = TIMEOUT * 3.0 * (3.0 * p / 8.0).sqrt() * p * (1.0 + 32.0 * p * p);
    SEGMENT / (by_acks + by_timeouts)
}

pub(super) fn equation(bench: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
    let seeds = quarter(bench);
    finding.runs = seeds;
    let sets = LOSSES.map(|loss| [format!("losses.cross.loss={loss}%")]);
    let all = bench.each(LINK, &sets, seeds)?;
    let mut rows = table(
        "Sending rates in Mbit/s",
        "packets lost, % | loss events, % of packets | Mbit/s | by the equation",
    );
    let mut points = Vec::new();
    for (loss, runs) in LOSSES.iter().zip(&all) {
        let (rates, ps) = (runs.each(rate), runs.each(events));
        let of_law = Estimate::of(&[&ps], |m| law(m[0]) * 8e-6);
        let measured = Estimate::of(&[&rates], |m| m[0] * 8e-6);
        let case = format!("losses of {loss} %");
        finding.compare(format!("{case}: sending rate"), measured, "Mbit/s", of_law.value);
        let ratio = Estimate::of(&[&rates, &ps], |m| m[0] / law(m[1]));
        finding.near(format!("{case}: sending rate by the equation"), ratio, 1.0, TOLERANCE);
        let p = Estimate::of(&[&ps], |m| 100.0 * m[0]);
        rows.rows.push(row(&[loss, &p, &measured, &of_law]));
        points.push((p.value / 100.0, measured));
    }
    finding.tables.push(rows);
    let published: Vec<(f64, f64)> = points.iter().map(|(p, _)| (*p, law(*p) * 8e-6)).collect();
    let series =
        vec![line("Reno", points), published_line("published: the equation".to_owned(), published)];
    let axes = Axes { x: "loss events by packets", y: "sending rate (Mbit/s)", log_x: true };
    let caption = "Segments of 1000 bytes, a round trip of 250 ms, a timeout of 1 s.";
    finding.figures.push(curves("RFC 5348, 3.1: the rate of Reno", axes, series, caption));
    Ok(())
}
