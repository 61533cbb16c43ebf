//! Veno and Westwood: senders that were made for random losses of wireless links.

use super::delivered;
use crate::figure::{Axes, curves, line};
use crate::measure::mbps;
use crate::table::{row, table};
use crate::{Bench, Bound, Estimate, Finding, Interrupted, Runs};

/// A path whose queue holds one product of rate and round trip at 100 ms. Data packets are lost at random behind it.
const PATH: &str = r#"
name = "random-losses"
horizon = "100s"
transfer = { from = "server", to = "client", bytes = "unlimited" }

[host.server]
preset = "linux"
[host.client]
preset = "linux"

[[path]]
name = "line"
link = { rate = "10mbit", delay = "50ms", queue = "83p" }
[[path]]
name = "air"
cross = { loss = "0%" }
"#;

/// A second sender.
const RIVAL: &str = r#"
[host.rival]
side = "left"
preset = "linux"
"#;
const TWO: &str = "transfer=[{ from = 'server', to = 'client', bytes = 'unlimited' }, \
                   { from = 'rival', to = 'client', bytes = 'unlimited', start = '1s' }]";

fn run(bench: &mut Bench<'_>, tcp: &str, changes: &[&str]) -> Result<Runs, Interrupted> {
    let tcp = format!("host.server.tcp={tcp}");
    bench.runs(PATH, &[&[tcp.as_str()], changes].concat())
}

/// One-way delays in ms.
const DELAYS: [u32; 4] = [10, 25, 50, 100];

pub(super) fn veno(bench: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
    let mut rows = table(
        "Veno and Reno with 1 % of random loss",
        "round trip, ms | Reno, Mb/s | Veno, Mb/s | gain, %",
    );
    let (mut gains, mut points) = (Vec::new(), Vec::new());
    for delay in DELAYS {
        let delay_set = format!("line.link.delay={delay}ms");
        let changes = ["air.cross.loss=1%", delay_set.as_str()];
        let (reno, veno) = (run(bench, "rack", &changes)?, run(bench, "veno", &changes)?);
        let gain = veno.percent_above(&reno, mbps);
        let trip = 2 * delay;
        finding.measure(format!("gain at {trip} ms"), gain, "%");
        finding.above(format!("gain over Reno at {trip} ms in %"), gain, 0.0);
        rows.rows.push(row(&[&trip, &reno.summary(mbps), &veno.summary(mbps), &gain]));
        points.push((f64::from(trip), gain));
        gains.push(gain);
    }
    let by_value = |a: &&Estimate, b: &&Estimate| a.value.total_cmp(&b.value);
    let most = gains.iter().max_by(by_value).copied().unwrap_or(Estimate::from(f64::NAN));
    finding.compare("largest gain over Reno", most, "%", 80.0);
    finding.near("largest gain over Reno in %", most, 80.0, 0.15);
    // A connection of Reno next to one of Veno has what it has next to another one of Reno.
    let next_to = |bench: &mut Bench<'_>, other: &str| {
        let tcp = format!("host.rival.tcp={other}");
        bench.runs(&format!("{PATH}{RIVAL}"), &["host.server.tcp=rack", TWO, &tcp])
    };
    let (reno, veno) = (next_to(bench, "rack")?, next_to(bench, "veno")?);
    let change = veno.percent_above(&reno, |m| delivered(m, 0));
    finding.measure("Reno next to Veno compared with Reno next to Reno", change, "%");
    let quantity = "throughput of Reno next to Veno above that next to Reno in %";
    finding.require_bound(quantity, change, Bound::AtLeast(-15.0));
    finding.tables.push(rows);
    finding.figures.push(curves(
        "Veno: gain over Reno with 1 % of random loss",
        Axes { x: "round trip (ms)", y: "gain (%)", log_x: true },
        vec![line("Veno", points)],
        "Bands are 95 % confidence intervals.",
    ));
    Ok(())
}

/// Random losses in percent.
const LOSSES: [f64; 5] = [0.0, 0.1, 0.5, 1.0, 5.0];

pub(super) fn westwood(bench: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
    let mut rows = table("Westwood and Reno", "loss, % | Reno, Mb/s | Westwood, Mb/s | gain, %");
    let mut all: Vec<(Runs, Runs)> = Vec::new();
    for loss in LOSSES {
        let changes = format!("air.cross.loss={loss}%");
        let reno = run(bench, "rack", &[&changes])?;
        let westwood = run(bench, "westwood", &[&changes])?;
        let gain = westwood.percent_above(&reno, mbps);
        finding.measure(format!("gain with {loss} % of loss"), gain, "%");
        finding.above(format!("gain over Reno with {loss} % of loss in %"), gain, 0.0);
        rows.rows.push(row(&[&loss, &reno.summary(mbps), &westwood.summary(mbps), &gain]));
        all.push((reno, westwood));
    }
    finding.tables.push(rows);
    // "Most significant with lossy links": each gain with losses exceeds that without.
    let (plain_reno, plain) = &all[0];
    for ((reno, westwood), loss) in all.iter().zip(LOSSES).skip(1) {
        let each = [westwood, reno, plain, plain_reno].map(|runs| runs.each(mbps));
        let series = each.each_ref().map(Vec::as_slice);
        let more = Estimate::of(&series, |m| 100.0 * (m[0] / m[1] - m[2] / m[3]));
        finding.above(format!("gain with {loss} % of loss less that without, points,"), more, 0.0);
    }
    // "Not very sensitive": of its own throughput Westwood loses less than Reno.
    let each = [&all[3].1, plain, &all[3].0, plain_reno].map(|runs| runs.each(mbps));
    let series = each.each_ref().map(Vec::as_slice);
    let retained = Estimate::of(&series, |m| m[0] / m[1]).scaled(100.0);
    finding.measure("of the throughput without loss, retained at 1 %", retained, "%");
    let more = Estimate::of(&series, |m| 100.0 * (m[0] / m[1] - m[2] / m[3]));
    finding.above("share of the throughput retained at 1 % less Reno's, points,", more, 0.0);
    Ok(())
}
