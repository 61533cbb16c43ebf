//! Draws one of everything from made-up numbers, to look at: `cargo run --example gallery -- DIR`.

use std::error::Error;
use std::path::PathBuf;

use lasthop_observe::sequence::{Lost, SendKind, SentPacket, Series, Window};
use lasthop_observe::stalls::Stall;
use lasthop_report::estimate::Estimate;
use lasthop_report::model::{
    Again, Assumption, ClaimResult, Column, Figure, MeasuredFigure, Page, Section, Table, Verdict,
};
use lasthop_report::plot::{
    Bar, BarChart, BarGroup, BarSeries, Curve, Curves, Pen, Plot, Theme, TimeSequence,
};
use lasthop_report::{html, table};

const MSS: u64 = 1460;

/// Something like west97's Figure 10: a transfer that loses packets, recovers from most and stalls at some.
fn transfer() -> Series {
    let mut series = Series { flow: "10.0.0.1:1024>10.0.1.1:9".into(), ..Series::default() };
    let (mut now, mut at, mut cwnd) = (0.05, 0u64, 2920.0f64);
    let mut next = 40;
    for packet in 0..1370u64 {
        let sent = SentPacket { at_s: now, start: at, end: at + MSS, kind: SendKind::First };
        series.sent.push(sent);
        at += MSS;
        now += 0.0071;
        cwnd = (cwnd + 1460.0 * 1460.0 / cwnd).min(16_384.0);
        series.acked.push((now + 0.007, at.saturating_sub(2 * MSS)));
        if packet == next {
            series.lost.push(Lost { at_s: sent.at_s + 0.003, start: sent.start, end: sent.end });
            let stall = packet % 4 == 0;
            let wait = if stall { 0.9 + (packet % 5) as f64 * 0.15 } else { 0.03 };
            let kind = if stall { SendKind::Timeout } else { SendKind::Fast };
            if stall {
                series.stalls.push(Stall { from_s: now, to_s: now + wait });
                series.timeouts.push(now + wait);
            }
            now += wait;
            series.sent.push(SentPacket { at_s: now, kind, ..sent });
            let ssthresh = (cwnd / 2.0).max(2920.0) as u32;
            cwnd = if stall { 1460.0 } else { cwnd / 2.0 };
            series.windows.push(Window { at_s: now, cwnd: cwnd as u32, ssthresh });
            next += 17 + packet * 7 % 53;
        }
        series.windows.push(Window { at_s: now, cwnd: cwnd as u32, ssthresh: 8192 });
    }
    series.end_s = now + 0.02;
    series
}

fn bars() -> BarChart {
    let bar = |value, ci| Some(Bar { value, ci });
    let group =
        |label: &str, bars: [Option<Bar>; 2]| BarGroup { label: label.into(), bars: bars.into() };
    let series = |name: &str, published| BarSeries { name: name.into(), published };
    BarChart {
        title: "Throughput with single-bit errors (west97 Table 1)".into(),
        y_label: "throughput (KB/s)".into(),
        series: vec![series("published", true), series("measured", false)],
        groups: vec![
            group("no errors", [bar(199.92, 0.0), bar(198.7, 0.3)]),
            group("Reno", [bar(98.36, 0.0), bar(104.9, 10.6)]),
            group("snoop", [bar(185.91, 0.0), bar(188.2, 2.1)]),
            group("snoop + ACKP", [bar(185.07, 0.0), None]),
        ],
    }
}

fn lines() -> Curves {
    let line = |name: &str, pen, scale: f64, ci: f64| Curve {
        name: name.into(),
        pen,
        points: [0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 35.0, 60.0, 100.0]
            .map(|x: f64| (x, 1.4 / (1.0 + x * scale), ci * x.sqrt()))
            .into(),
    };
    Curves {
        title: "Throughput against bit error rate, 42 KB window".into(),
        x_label: "bit error rate (per million)".into(),
        y_label: "throughput (Mbit/s)".into(),
        log_x: true,
        curves: vec![
            line("TULIP", Pen::Band, 0.004, 0.004),
            line("snoop", Pen::Band, 0.016, 0.008),
            line("TCP alone", Pen::Band, 0.12, 0.006),
            line("TULIP, published", Pen::Rings, 0.0037, 0.0),
            line("snoop, published", Pen::Rings, 0.018, 0.0),
        ],
    }
}

fn claim() -> ClaimResult {
    let figure = |label: &str, mean, ci, unit: &str, published| MeasuredFigure {
        label: label.into(),
        mean: Estimate::new(mean, ci),
        unit: unit.into(),
        published: Some(published),
    };
    ClaimResult {
        id: "W-T1".into(),
        paper: "west97".into(),
        place: "5.2.1, Table 1".into(),
        setup: "2,000,000 B, 20 runs, single errors, mean 64 KB apart, on data and on ACKs".into(),
        published: "ideal 199.92 KB/s; Reno 98.36; snoop 185.91; snoop+ACKP 185.07".into(),
        measured: vec![
            figure("ideal throughput", 198.7, 0.31, "KB/s", 199.92),
            figure("Reno throughput", 104.9, 10.6, "KB/s", 98.36),
            figure("Reno goodput", 97.31, 0.14, "%", 97.4),
            figure("Reno timeouts", 6.85, 1.2, "", 7.5),
            figure("snoop throughput", 188.2, 2.1, "KB/s", 185.91),
            figure("snoop wireless goodput", 97.28, 0.11, "%", 97.3),
        ],
        conditions: Vec::new(),
        runs: 20,
        verdict: Verdict::Holds,
        reason: "every figure within its bound; Reno is 3 points above, within 8".into(),
        notes: Vec::new(),
    }
}

fn figure(plot: &Plot, title: &str, caption: &str) -> Figure {
    Figure::new(plot, title, caption)
}

fn page(sequence: &Plot, close: &Plot, bars: &Plot, lines: &Plot) -> Page {
    let fails = ClaimResult {
        id: "W-T2".into(),
        place: "5.2.2, Table 2".into(),
        verdict: Verdict::Fails,
        reason: "Reno reaches 11 % of ideal, not below 8 %; the burst model of the testbed is not described".into(),
        measured: Vec::new(),
        ..claim()
    };
    let not_run = ClaimResult {
        id: "W-SATELLITE".into(),
        place: "7.0".into(),
        verdict: Verdict::NotRun,
        reason: "left out by the command line".into(),
        runs: 0,
        ..fails.clone()
    };
    let by_stage = Table {
        title: "By stage".into(),
        columns: vec![
            Column::text("stage"),
            Column::number("packets"),
            Column::number("damaged"),
            Column::number("goodput"),
        ],
        rows: vec![
            vec!["ethernet →".into(), "1\u{2009}407".into(), "0".into(), "0.974 ± 0.001".into()],
            vec![
                "wavelan →".into(),
                "1\u{2009}407".into(),
                "36.6 ± 2.4".into(),
                "0.974 ± 0.001".into(),
            ],
        ],
    };
    Page {
        title: "west97: snoop and partial acknowledgements".into(),
        subtitle:
            "What a 2 Mb/s wireless LAN with errors does to TCP Reno, and which losses a base station repairs"
                .into(),
        facts: vec![
            ("Paper".into(), "West, Texas A&M, 1997".into()),
            ("Path".into(), "10 Mb/s Ethernet | snoop | 2 Mb/s WaveLAN".into()),
            ("Transfer".into(), "2 000 000 B, fixed to mobile".into()),
            ("World".into(), "sim".into()),
        ],
        sections: vec![
            Section {
                title: "single-bit errors on a LAN".into(),
                claim: Some(claim()),
                tables: vec![by_stage],
                figures: vec![
                    figure(
                        bars,
                        "Published and measured",
                        "Whiskers are 95 % confidence intervals over 20 seeds.",
                    ),
                    figure(
                        sequence,
                        "Seed 7, Reno",
                        "Flat parts are stalls: the sender waits for its timer.",
                    ),
                    figure(close, "A closer look", "The first loss and its repair."),
                ],
                ..Section::default()
            },
            Section { claim: Some(fails), ..Section::default() },
            Section { claim: Some(not_run), ..Section::default() },
            Section {
                title: "Sweep".into(),
                text: vec![
                    "Throughput falls with the error rate; local recovery postpones it.".into(),
                ],
                figures: vec![figure(
                    lines,
                    "Sweep",
                    "Bands are 95 % confidence intervals; rings are read off the paper’s figure.",
                )],
                ..Section::default()
            },
        ],
        assumptions: vec![Assumption {
            what: "Receive buffers are 16 KiB.".into(),
            why: "FreeBSD 2.1's default; the paper names the system, not the size.".into(),
        }],
        again: Again {
            commands: vec!["lasthop reproduce west97 --seeds 20 --report out/".into()],
            seeds: "1..20".into(),
            version: "0.1.0".into(),
        },
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let dir = PathBuf::from(std::env::args().nth(1).ok_or("which directory?")?);
    std::fs::create_dir_all(&dir)?;
    let series = transfer();
    let sequence =
        TimeSequence { title: "TCP Reno, one error per 64 KB", series: &series, part: None }.plot();
    let close = TimeSequence {
        title: "TCP Reno, around the first losses",
        series: &series,
        part: Some((0.2, 1.9)),
    }
    .plot();
    let (bars, lines) = (bars().plot(), lines().plot());
    for (name, plot) in
        [("sequence", &sequence), ("close", &close), ("bars", &bars), ("lines", &lines)]
    {
        std::fs::write(dir.join(format!("{name}.svg")), plot.svg())?;
        std::fs::write(dir.join(format!("{name}-light.png")), plot.png(Theme::Light, 1.5)?)?;
        std::fs::write(dir.join(format!("{name}-dark.png")), plot.png(Theme::Dark, 1.5)?)?;
    }
    std::fs::write(dir.join("page.html"), html::render(&page(&sequence, &close, &bars, &lines)))?;
    println!("{}", table::render(&table::claim_figures(&claim()), table::Look::Terminal(80)));
    println!("{}", table::render(&table::verdicts(&[claim()]), table::Look::Terminal(80)));
    println!("{}", table::render(&table::verdicts(&[claim()]), table::Look::Plain));
    Ok(())
}
