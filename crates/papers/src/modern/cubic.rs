//! RFC 9438: windows of CUBIC and Reno at given losses, and the losses that permit a given rate.

use lasthop_observe::metrics::RunMetrics;

use crate::figure::{self, Axes, line, published_line};
use crate::table::{row, table};
use crate::{Bench, Estimate, Finding, Interrupted};

use super::TOLERANCE;

pub(super) const LINK: &str = include_str!("cubic.toml");

/// A row of Tables 1 and 2: round trip in ms, losses, windows of Reno and of CUBIC with C = 0.4 in segments.
type Row = (u32, f64, f64, f64);

const TABLES: [Row; 5] = [
    (100, 1e-2, 12.0, 12.0),
    (100, 1e-3, 38.0, 38.0),
    (100, 1e-4, 120.0, 187.0),
    (10, 1e-2, 12.0, 12.0),
    (10, 1e-3, 38.0, 38.0),
];

/// The mean window: segments delivered per round trip.
fn window(round_trip_s: f64) -> impl Fn(&RunMetrics) -> f64 {
    move |m| m.aggregate_throughput * round_trip_s / 1000.0
}

/// RFC 9438 5.1.
pub(super) fn cubic_reno(bench: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
    let mut rows = table(
        "Mean windows in segments",
        "<round trip, losses | Reno | published | CUBIC | published",
    );
    let mut curves = [Vec::new(), Vec::new()];
    for (round_trip, p, reno, cubic) in TABLES {
        let delay = format!("far.link.delay={}us", 500 * round_trip);
        let loss = format!("losses.cross.loss={}%", 100.0 * p);
        let mut both = Vec::new();
        for (name, tcp, published) in
            [("Reno", "host.server.tcp=newreno", reno), ("CUBIC", "host.server.tcp=cubic", cubic)]
        {
            // Slow start before the first loss would exceed the mean for most of a run.
            let ssthresh = format!("host.server.initial-ssthresh={:.0}", 1000.0 * published);
            let runs = bench.runs(LINK, &[tcp, &delay, &loss, &ssthresh])?;
            let mean = runs.summary(window(f64::from(round_trip) / 1000.0));
            let case = format!("{name}, {round_trip} ms, losses of {p}");
            finding.compare(&case, mean, "segments", published);
            finding.near(format!("{case}: window in segments"), mean, published, TOLERANCE);
            both.push((mean, runs));
        }
        let above = both[1].1.percent_above(&both[0].1, window(1.0));
        let quantity = format!("{round_trip} ms, losses of {p}: CUBIC above Reno");
        match reno == cubic {
            true => finding.equal(quantity, above, 10.0),
            false => finding.above(format!("{quantity} in %"), above, 0.0),
        }
        let case = format!("{round_trip} ms, {p}");
        rows.rows.push(row(&[&case, &both[0].0, &reno, &both[1].0, &cubic]));
        if round_trip == 100 {
            for (curve, (mean, _)) in curves.iter_mut().zip(&both) {
                curve.push((p, *mean));
            }
        }
    }
    finding.tables.push(rows);
    let [reno, cubic] = curves;
    let given = |of: fn(&Row) -> f64| {
        let far = TABLES.iter().filter(|row| row.0 == 100);
        far.map(|row| (row.1, of(row))).collect::<Vec<_>>()
    };
    let series = vec![
        line("Reno", reno),
        line("CUBIC", cubic),
        published_line("published: Reno".to_owned(), given(|row| row.2)),
        published_line("published: CUBIC".to_owned(), given(|row| row.3)),
    ];
    let axes = Axes { x: "share of packets lost", y: "mean window (segments)", log_x: true };
    let caption = "Round trips of 100 ms. Rings are those of Table 1.";
    finding.figures.push(figure::curves(
        "RFC 9438, Table 1: windows of Reno and CUBIC",
        axes,
        series,
        caption,
    ));
    Ok(())
}

/// A row of Table 3: sender, its name in scenarios, rate in Mb/s, losses, and mean window in segments.
type Needed = (&'static str, &'static str, f64, f64, f64);

const NEEDED: [Needed; 6] = [
    ("Reno", "newreno", 1.0, 2.0e-2, 8.3),
    ("Reno", "newreno", 10.0, 2.0e-4, 83.3),
    ("Reno", "newreno", 100.0, 2.0e-6, 833.3),
    ("CUBIC", "cubic", 1.0, 2.0e-2, 8.3),
    ("CUBIC", "cubic", 10.0, 2.9e-4, 83.3),
    ("CUBIC", "cubic", 100.0, 1.4e-5, 833.3),
];
/// Duration of a transfer in seconds: five losses of Reno at 100 Mb/s.
const LONG: f64 = 300.0;

/// Packets of 1500 bytes in Mb/s.
fn packets_mbps(m: &RunMetrics) -> f64 {
    let packets = |flow: &lasthop_observe::metrics::FlowMetrics| {
        flow.delivered as f64 / f64::from(flow.mss) / flow.transfer_time_s
    };
    m.flows.first().map_or(f64::NAN, packets) * 1500.0 * 8.0 / 1e6
}

/// RFC 9438 5.2.
pub(super) fn rates(bench: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
    finding.runs = 1;
    let changes = NEEDED.map(|(_, tcp, mbps, p, window)| {
        let gap = (1.0 / p).round() as u64;
        // Enough losses for twice the published rate.
        let packets = 2.0 * mbps * 1e6 / 12_000.0 * LONG;
        let lost: Vec<String> = (1..=(packets * p) as u64).map(|n| (n * gap).to_string()).collect();
        [
            format!("host.server.tcp={tcp}"),
            format!("horizon={LONG}s"),
            "host.server.mss=1460".to_owned(),
            "host.client.mss=1460".to_owned(),
            format!("host.server.initial-ssthresh={:.0}", 1460.0 * window),
            format!("losses.cross.drop-data={}", lost.join(", ")),
        ]
    });
    let all = bench.each(LINK, &changes, 1)?;
    let mut rows =
        table("Rates in Mb/s at the published losses", "<sender | <losses | Mb/s | published");
    let mut curves = [("Reno", Vec::new()), ("CUBIC", Vec::new())];
    for ((name, _, mbps, p, _), runs) in NEEDED.iter().zip(&all) {
        let rate = Estimate::from(runs.mean(packets_mbps));
        let case = format!("{name}, losses of {p:e}");
        finding.compare(&case, rate, "Mb/s", *mbps);
        finding.near(format!("{case}: rate in Mb/s"), rate, *mbps, TOLERANCE);
        rows.rows.push(row(&[name, &format!("{p:e}"), &rate, mbps]));
        let curve = curves.iter_mut().find(|(of, _)| of == name);
        curve.into_iter().for_each(|(_, points)| points.push((*p, rate)));
    }
    finding.tables.push(rows);
    let rates: Vec<f64> = all.iter().map(|runs| runs.mean(packets_mbps)).collect();
    changed(bench, finding, &changes, &rates)?;
    let published = |name: &str| {
        let of = NEEDED.iter().filter(|row| row.0 == name).map(|row| (row.3, row.2));
        published_line(format!("published: {name}"), of.collect::<Vec<_>>())
    };
    let mut series: Vec<_> = curves.into_iter().map(|(name, points)| line(name, points)).collect();
    series.extend(["Reno", "CUBIC"].map(published));
    let axes = Axes { x: "share of packets lost", y: "rate (Mb/s)", log_x: true };
    let caption = "Packets of 1500 bytes, a round trip of 100 ms. Rings are those of Table 3.";
    finding.figures.push(figure::curves(
        "RFC 9438, Table 3: rates and losses",
        axes,
        series,
        caption,
    ));
    Ok(())
}

/// The one change of each sender for a second run: losses repaired by SACK, and CUBIC as RFC 9438 writes it, where the
/// preset has that of Linux.
const CHANGES: [(&str, &str, &str); 2] = [
    ("Reno", "repair by SACK", "host.server.tcp=sack"),
    ("CUBIC", "the growth of RFC 9438", "host.server.growth=rfc5681"),
];
/// Highest rate in Mb/s of these runs.
const CHANGED: f64 = 10.0;

/// Adds rates with one change, and a note where a rate agrees with it only.
fn changed(
    bench: &mut Bench<'_>,
    finding: &mut Finding,
    changes: &[[String; 6]],
    rates: &[f64],
) -> Result<(), Interrupted> {
    let mut rows = table("With one change", "<sender | <change | <losses | Mb/s | published");
    let near = |rate: f64, mbps: f64| (rate / mbps - 1.0).abs() <= TOLERANCE;
    for (((name, _, mbps, p, _), settings), before) in NEEDED.iter().zip(changes).zip(rates) {
        let Some((_, description, change)) = CHANGES.iter().find(|change| change.0 == *name) else {
            continue;
        };
        if *mbps > CHANGED {
            continue;
        }
        let set: Vec<&str> = settings.iter().map(String::as_str).chain([*change]).collect();
        let rate = bench.batch(LINK, &[(&set[..], 1)])?.swap_remove(0).mean(packets_mbps);
        finding.compare(format!("{name} with {description}, losses of {p:e}"), rate, "Mb/s", *mbps);
        rows.rows.push(row(&[name, description, &format!("{p:e}"), &rate, mbps]));
        if !near(*before, *mbps) && near(rate, *mbps) {
            let rate = crate::short(rate);
            finding.note(format!(
                "With {description} alone, {name} has {rate} Mb/s at losses of {p:e}"
            ));
        }
    }
    finding.tables.push(rows);
    Ok(())
}
