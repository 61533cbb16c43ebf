//! Plots and tables as snapshots, so that a change of a drawing shows in review.

use lasthop_observe::metrics::{FlowMetrics, RunMetrics};
use lasthop_observe::sequence::{Lost, SendKind, SentPacket, Series, Window};
use lasthop_observe::stalls::Stall;
use lasthop_report::estimate::Estimate;
use lasthop_report::model::{ClaimResult, MeasuredFigure, Verdict};
use lasthop_report::plot::{
    Bar, BarChart, BarGroup, BarSeries, Curve, Curves, Pen, Plot, RankValue, Ranks, Theme,
    TimeSequence,
};
use lasthop_report::table::{self, Look};

/// Six packets; the fourth is lost and retransmitted after a timeout.
fn series() -> Series {
    let sent = |i: u64, at_s, kind| SentPacket { at_s, start: i * 1024, end: (i + 1) * 1024, kind };
    let mut all: Vec<_> = (0..4).map(|i| sent(i, 0.1 + i as f64 * 0.1, SendKind::First)).collect();
    all.push(sent(3, 1.4, SendKind::Timeout));
    all.extend((4..6).map(|i| sent(i, 1.1 + i as f64 * 0.1, SendKind::First)));
    Series {
        cells: Vec::new(),
        flow: "10.0.0.1:1024>10.0.1.1:9".into(),
        sent: all,
        acked: vec![(0.15, 0), (0.25, 1024), (0.35, 2048), (0.45, 3072), (1.5, 4096), (1.6, 6144)],
        lost: vec![Lost { at_s: 0.41, start: 3072, end: 4096 }],
        timeouts: vec![1.4],
        windows: vec![
            Window { at_s: 0.1, cwnd: 1024, ssthresh: 65_535 },
            Window { at_s: 0.35, cwnd: 4096, ssthresh: 65_535 },
            Window { at_s: 1.4, cwnd: 1024, ssthresh: 2048 },
        ],
        stalls: vec![Stall { from_s: 0.36, to_s: 1.46 }],
        bad: Vec::new(),
        end_s: 1.7,
    }
}

/// One element per line, so that a difference shows its position.
fn lines(plot: &Plot) -> String {
    plot.inline().replace("><", ">\n<")
}

#[test]
fn time_sequence() {
    let series = series();
    let plot = TimeSequence { title: "Reno", series: &series, part: None }.plot();
    insta::assert_snapshot!(lines(&plot));
}

#[test]
fn bars() {
    let bar = |value, ci| Some(Bar { value, ci });
    let chart = BarChart {
        title: "Throughput".into(),
        y_label: "KB/s".into(),
        series: ["published", "measured"]
            .map(|name| BarSeries { name: name.into(), published: name == "published" })
            .into(),
        groups: vec![
            BarGroup { label: "Reno".into(), bars: vec![bar(98.36, 0.0), bar(104.9, 10.6)] },
            BarGroup { label: "snoop".into(), bars: vec![bar(185.91, 0.0), None] },
        ],
    };
    insta::assert_snapshot!(lines(&chart.plot()));
}

fn sweep(log_x: bool) -> Curves {
    let points = [(0.0, 1.4), (1.0, 1.3), (10.0, 0.9), (f64::NAN, 1.0)];
    Curves {
        title: "Sweep".into(),
        x_label: "BER (1e-6)".into(),
        y_label: "Mbit/s".into(),
        log_x,
        curves: [("snoop", Pen::Band), ("snoop, published", Pen::Rings)]
            .map(|(name, pen)| Curve {
                name: name.into(),
                pen,
                points: points.map(|(x, y)| (x, y, 0.05)).into(),
            })
            .into(),
    }
}

#[test]
fn line_chart() {
    insta::assert_snapshot!(lines(&sweep(false).plot()));
}

#[test]
fn undrawable_values_are_left_out() {
    for chart in [sweep(true), Curves { curves: Vec::new(), ..sweep(false) }] {
        let svg = chart.plot().inline();
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }
}

#[test]
fn a_png_shows_ink_and_text_on_a_machine_without_fonts() {
    let series = series();
    let plot = TimeSequence { title: "Reno", series: &series, part: None }.plot();
    let (light, dark) = (plot.png(Theme::Light, 1.0).unwrap(), plot.png(Theme::Dark, 1.0).unwrap());
    assert!(light.starts_with(b"\x89PNG") && dark.starts_with(b"\x89PNG"));
    assert_ne!(light, dark);
    let empty = Series { end_s: 1.7, ..Series::default() };
    let titled = |title| TimeSequence { title, series: &empty, part: None }.plot();
    let with = titled("HHHHHHHHHH").png(Theme::Light, 1.0).unwrap();
    assert_ne!(with, titled("").png(Theme::Light, 1.0).unwrap(), "text is drawn");
    assert!(plot.png(Theme::Light, 0.0).is_err());
}

fn claim() -> ClaimResult {
    let figure = |label: &str, mean, ci, published| MeasuredFigure {
        label: label.into(),
        mean: Estimate::new(mean, ci),
        unit: "KB/s".into(),
        published,
    };
    ClaimResult {
        id: "W-T1".into(),
        paper: "west97".into(),
        place: "Table 1".into(),
        setup: String::new(),
        published: String::new(),
        measured: vec![figure("Reno", 104.9, 10.6, Some(98.36)), figure("snoop", 188.2, 2.1, None)],
        conditions: Vec::new(),
        runs: 20,
        verdict: Verdict::Holds,
        reason: "within its bounds\u{1b}[31m".into(),
        notes: Vec::new(),
    }
}

#[test]
fn tables() {
    let run = |throughput| RunMetrics {
        aggregate_throughput: throughput,
        flows: vec![FlowMetrics {
            timeouts: 7,
            wired_packets: 4,
            ideal_packets: 3,
            ..FlowMetrics::default()
        }],
        ..RunMetrics::default()
    };
    let (reno, none) = ([run(98e3), run(104e3), run(99e3)], [RunMetrics::default()]);
    let runs = table::run_summary("Runs", &[("Reno".into(), &reno), ("nothing".into(), &none)]);
    let text = [
        table::render(&table::claim_figures(&claim()), Look::Terminal(80)),
        table::render(&table::verdicts(&[claim()]), Look::Terminal(60)),
        table::render(&table::verdicts(&[claim()]), Look::Plain),
        table::render(&runs, Look::Plain),
    ];
    insta::assert_snapshot!(text.join("\n\n"));
    let many: Vec<_> = (0..5).map(|i| (format!("case {i}"), &reno[..])).collect();
    let turned = table::run_summary("Many", &many);
    assert_eq!((turned.rows.len(), turned.rows[4][0].as_str()), (5, "case 4 (n=3)"));
    assert_eq!(turned.columns[1].title, "throughput (Mbit/s)");
    assert!(turned.rows.iter().all(|row| row.len() == turned.columns.len()));
}

#[test]
fn ranks() {
    let estimate =
        |value: f64, half: f64| RankValue { value, interval: (value - half, value + half) };
    let chart = Ranks {
        title: "What decides W-T4".into(),
        x_label: "share of the variance (%)".into(),
        series: vec!["alone".into(), "with all others".into()],
        rows: vec![
            ("path.verdi.rtt-fault".into(), vec![estimate(34.0, 12.0), estimate(60.0, 30.0)]),
            ("path.verdi.persist".into(), vec![estimate(13.0, 9.0), estimate(47.0, 27.0)]),
        ],
    };
    insta::assert_snapshot!(lines(&chart.plot()));
}
