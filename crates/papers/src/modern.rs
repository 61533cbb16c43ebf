//! Results published since the five papers that lasthop's machines can answer, each cited by title and section.
//!
//! These claims are separate from those of the papers, as related work is. Only what could be read is here.

use lasthop_trace::metrics::RunMetrics;

use crate::figure::{Axes, line, lines, published_line};
use crate::table::{row, table};
use crate::{Bench, Claim, Finding, Interrupted, Paper};

pub(crate) const PAPER: Paper = Paper {
    key: "modern",
    title: "Results published since (not among the claims of the papers)",
    claims: &[CUBIC_RENO],
    assumed: &[
        (
            "Each packet is lost with the stated probability, independently of others; receivers acknowledge each \
             packet.",
            "RFC 9438 5.1 computes windows from deterministic losses, one in 1/p packets, and without delayed ACKs.",
        ),
        (
            "Slow start ends at the published window.",
            "The tables are of the steady state, which a transfer without losses at its start reaches late.",
        ),
    ],
    untested: &[],
};

/// Segments of 1000 bytes over a link that never limits them.
const LINK: &str = r#"
name = "rfc9438"
horizon = "100s"
transfer = { from = "server", to = "client", bytes = "unlimited" }

[host.server]
preset = "linux"
mss = 1000
send-buffer = "16MB"
window-scale = true
[host.client]
preset = "linux"
mss = 1000
recv-buffer = "16MB"
window-scale = true
delayed-ack = "off"

[[path]]
name = "losses"
cross = { loss = "0%" }

[[path]]
name = "far"
link = { rate = "1gbit", delay = "50ms", queue = "10000p" }
"#;

/// A row of Tables 1 and 2: round trip in ms, losses, windows of Reno and of CUBIC with C = 0.4 in segments.
type Row = (u32, f64, f64, f64);

const TABLES: [Row; 5] = [
    (100, 1e-2, 12.0, 12.0),
    (100, 1e-3, 38.0, 38.0),
    (100, 1e-4, 120.0, 187.0),
    (10, 1e-2, 12.0, 12.0),
    (10, 1e-3, 38.0, 38.0),
];

const CUBIC_RENO: Claim = Claim {
    id: "M-CUBIC-RENO",
    place: "RFC 9438 (L. Xu and others: CUBIC for Fast and Long-Distance Networks, 2023), 5.1, Tables 1 and 2",
    setup: "one transfer with CUBIC or Reno, random losses of 1e-2 to 1e-4, round trips of 10 and 100 ms",
    published: "average windows: CUBIC as Reno where Reno does well, 12 segments at 1e-2 and 38 at 1e-3; at 1e-4 and \
            100 ms 187 against 120",
    cost: 60,
    run: Some(cubic_reno),
    ..Claim::of("modern")
};

/// The mean window in segments: what is delivered in a round trip.
fn window(round_trip_s: f64) -> impl Fn(&RunMetrics) -> f64 {
    move |m| m.aggregate_throughput * round_trip_s / 1000.0
}

/// RFC 9438 5.1.
fn cubic_reno(bench: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
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
            finding.near(format!("{case}: window in segments"), mean, published, 0.25);
            both.push((mean, runs));
        }
        let above = both[1].1.percent_above(&both[0].1, window(1.0));
        let what = format!("{round_trip} ms, losses of {p}: CUBIC above Reno");
        match reno == cubic {
            true => finding.equal(what, above, 10.0),
            false => finding.above(format!("{what} in %"), above, 0.0),
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
    finding.figures.push(lines(
        "RFC 9438, Table 1: windows of Reno and CUBIC",
        axes,
        series,
        caption,
    ));
    Ok(())
}
