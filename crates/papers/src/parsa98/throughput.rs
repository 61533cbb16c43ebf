//! Throughput and goodput: Figures 9, 10, 11 and 15, Table 1 (5.1.1, 5.1.2, 5.2.1).

use lasthop_report::model::Figure;
use lasthop_report::plot::{Curve, Pen};

use super::cases::Protocol::{Snoop, SnoopFixed, Tulip, TulipPlain, Unaided};
use super::cases::{Sweeps, Window, bit_errors, case, goodput, ideal_goodput, run, timeouts};
use super::{CLAIM, TESTBED};
use crate::figure::{Axes, BANDS, curves, progress};
use crate::measure::{count, kbps, transfer_time};
use crate::table::{mean_and_interval, table};
use crate::{Bench, Claim, Finding, Interrupted, Runs};

/// Error rates of experiment 1, in bits per million.
pub(super) const LOW: [f64; 6] = [0.0, 0.5, 2.0, 3.9, 7.5, 15.0];
/// Error rates of experiment 2.
pub(super) const HIGH: [f64; 5] = [15.0, 30.0, 45.0, 60.0, 75.0];

/// Bytes of the whole transfer.
const WHOLE: f64 = 10e6;

pub(super) const F9: Claim = Claim {
    id: "T-F9",
    place: "5.1.1, Figure 9",
    setup: "10 MB, 10 Mb/s wired + 1 Mb/s half-duplex wireless (802.11 PHY, FAMA-NCS MAC), 1400 B packets, \
            42 KB window, BER 3.9e-6 and 15e-6",
    published: "at 15e-6 TCP alone is only 30 % through when TULIP and snoop are done; no TCP time-out \
            with either; TULIP slightly ahead",
    cost: 72,
    run: Some(f9),
    ..CLAIM
};

/// Figure 9: the progress of a transfer with each protocol.
fn f9(bench: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
    for (rate, part) in [(3.9, "(a) 3.9"), (15.0, "(b) 15")] {
        let cases = [Tulip, Snoop, Unaided]
            .map(|protocol| (protocol.name(), case(protocol, Window::Large, &bit_errors(rate))));
        let title = format!("Figure 9 {part} bit errors per million");
        let words = (title.as_str(), "Seed 1, window 42 KB.");
        finding.figures.push(progress(bench, TESTBED, cases, 1400.0, words)?);
    }
    let errors = bit_errors(15.0);
    let tulip = run(bench, Tulip, Window::Large, &errors)?;
    let snoop = run(bench, Snoop, Window::Large, &errors)?;
    let both = tulip.mean(transfer_time).max(snoop.mean(transfer_time));
    let mut changes = case(Unaided, Window::Large, &errors);
    changes.push(format!("horizon={both:.3}s"));
    let cut = bench.runs(TESTBED, &changes)?;
    let delivered = count(|f| f.delivered);
    let through = cut.summary(|m| 100.0 * delivered(m) / WHOLE);
    let label = "unaided, delivered when TULIP and snoop are done";
    finding.compare(label, through, "%", 30.0);
    for (name, runs) in [("TULIP", &tulip), ("snoop", &snoop)] {
        finding.measure(format!("{name}, throughput"), runs.summary(kbps), "kb/s");
        let label = format!("{name}, TCP time-outs");
        finding.compare(label, runs.summary(timeouts), "per run", 0.0);
    }
    finding.within("unaided, percent through,", through.mean, 15.0, 50.0);
    finding.within("time-outs with TULIP", tulip.mean(timeouts), 0.0, 0.0);
    for rate in [3.9, 15.0] {
        let errors = bit_errors(rate);
        let tulip = run(bench, Tulip, Window::Large, &errors)?.mean(kbps);
        let snoop = run(bench, Snoop, Window::Large, &errors)?.mean(kbps);
        let text = format!("at {rate} per million TULIP ({tulip:.1} kb/s)");
        finding.require(tulip >= snoop, format!("{text} is not behind snoop ({snoop:.1})"));
    }
    Ok(())
}

pub(super) const F10: Claim = Claim {
    id: "T-F10",
    place: "5.1.1, Figure 10",
    setup: "BER 0..15e-6, windows 42 KB and 16 KB",
    published: "MAC acceleration is worth 4-5 % at BER 0; unaided TCP keeps up below 0.5e-6; no difference \
            between the windows",
    cost: 833,
    run: Some(f10),
    ..CLAIM
};

/// Figure 10: throughput at low error rates.
fn f10(bench: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
    let protocols = [Tulip, Snoop, Unaided];
    let mut all = Vec::new();
    for (window, part) in Window::BOTH.into_iter().zip(["(a)", "(b)"]) {
        let sweeps = Sweeps::run(bench, &protocols, window, &LOW, bit_errors)?;
        let title = format!("Figure 10 {part}: throughput, window {}", window.name());
        finding.figures.push(sweeps.throughput_chart(&title, false, BANDS));
        finding.tables.push(sweeps.table(&title));
        all.push(sweeps);
    }
    let over = |a: f64, b: f64| 100.0 * (a / b - 1.0);
    for (sweeps, window) in all.iter().zip(Window::BOTH) {
        let at = |protocol, rate| sweeps.mean(protocol, rate, kbps);
        let (tulip, snoop, name) = (at(Tulip, 0.0), at(Snoop, 0.0), window.name());
        let what = format!("{name}, no errors: TULIP ahead of snoop in %,");
        finding.within(what, over(tulip, snoop), 3.0, 7.0);
        let behind = 100.0 * (1.0 - at(Unaided, 0.5) / at(Snoop, 0.5));
        let what = format!("{name}, 0.5 per million: unaided behind snoop in %,");
        finding.within(what, behind, -5.0, 5.0);
        if window == Window::Large {
            let plain = run(bench, TulipPlain, window, &bit_errors(0.0))?.mean(kbps);
            let ahead = "TULIP ahead of snoop, no errors";
            finding.compare(ahead, over(tulip, snoop), "%", 4.5);
            let ahead = "TULIP ahead of TULIP without acceleration, no errors";
            finding.compare(ahead, over(tulip, plain), "%", 4.5);
        }
    }
    for protocol in protocols {
        for rate in LOW {
            let [large, small] = [0, 1].map(|i| all[i].mean(protocol, rate, kbps));
            let what = format!("{}, {rate} per million: 16 KB against 42 KB", protocol.name());
            finding.within(format!("{what} in %,"), over(small, large), -5.0, 5.0);
        }
    }
    Ok(())
}

pub(super) const T1: Claim = Claim {
    id: "T-T1",
    place: "5.1.2, Table 1 and Figure 11",
    setup: "BER 15e-6, 42 KB window",
    published: "goodput TULIP 0.840 (ideal 0.841), snoop 0.829 (0.831), none 0.814 (0.834); TCP time-outs \
            0, 0, 732; redundant packets 0, 0, 158",
    run: Some(t1),
    ..CLAIM
};

/// Table 1 and Figure 11: goodput, timeouts, redundant packets.
fn t1(bench: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
    let mut rows = table(
        "Table 1: 15 bit errors per million, window 42 KB (published in brackets)",
        "<protocol | packets lost | ideal goodput | achieved goodput | TCP time-outs | redundant packets",
    );
    for (protocol, published) in [
        (Tulip, [0.159, 0.841, 0.840, 0.0, 0.0]),
        (Snoop, [0.169, 0.831, 0.829, 0.0, 0.0]),
        (Unaided, [0.166, 0.834, 0.814, 732.0, 158.0]),
    ] {
        let runs = run(bench, protocol, Window::Large, &bit_errors(15.0))?;
        let name = protocol.name();
        let got = [
            runs.summary(|m| 1.0 - ideal_goodput(m)),
            runs.summary(ideal_goodput),
            runs.summary(goodput),
            runs.summary(timeouts),
            runs.summary(count(|f| f.redundant)),
        ];
        let mut row = vec![name.to_owned()];
        row.extend(
            got.iter().zip(published).map(|(s, p)| format!("{} ({p})", mean_and_interval(s))),
        );
        rows.rows.push(row);
        for (i, what, unit) in [
            (1, "ideal goodput", ""),
            (2, "achieved goodput", ""),
            (3, "TCP time-outs", "per run"),
            (4, "redundant packets", "per run"),
        ] {
            finding.compare(format!("{name}, {what}"), got[i], unit, published[i]);
        }
        let below = runs.mean(|m| ideal_goodput(m) - goodput(m));
        let what = format!("{name}, goodput below ideal by");
        match protocol {
            Unaided => finding.above(what, below, 0.01),
            _ => finding.within(what, below, -0.005, 0.005),
        }
        let what = format!("{name}, TCP time-outs");
        match protocol {
            Unaided => finding.within(what, got[3].mean, 400.0, 1100.0),
            Tulip => finding.within(what, got[3].mean, 0.0, 0.0),
            _ => finding.below(what, got[3].mean, 3.0),
        }
    }
    finding.tables.push(rows);
    let sweeps = Sweeps::run(bench, &[Tulip, Snoop, Unaided], Window::Large, &LOW, bit_errors)?;
    finding.figures.push(figure_11(&sweeps));
    Ok(())
}

fn figure_11(sweeps: &Sweeps) -> Figure {
    let mut all: Vec<Curve> = sweeps
        .each()
        .map(|(protocol, points)| {
            let point = |(_, runs): (_, &Runs)| {
                let y = runs.summary(goodput);
                (1.0 - runs.mean(ideal_goodput), y.mean, y.ci95)
            };
            let points = points.into_iter().map(point).collect();
            Curve { name: protocol.name().to_owned(), pen: Pen::Whiskers, points }
        })
        .collect();
    let ideal = vec![(0.0, 1.0, 0.0), (0.17, 0.83, 0.0)];
    all.push(Curve { name: "ideal".to_owned(), pen: Pen::Line, points: ideal });
    let x = "share of data packets that the channel destroys";
    let caption = "Packets delivered over data packets sent on the air; window 42 KB. Whiskers are 95 % confidence \
                   intervals.";
    let axes = Axes { x, y: "goodput", log_x: false };
    curves("Figure 11: goodput over the radio", axes, all, caption)
}

pub(super) const F15: Claim = Claim {
    id: "T-F15",
    place: "5.2.1, Figure 15",
    setup: "BER 15e-6..75e-6",
    published: "unaided TCP nearly stands still above 30e-6; snoop falls off above 30e-6; TULIP declines \
            slowly, up to 3 times snoop",
    cost: 1220,
    run: Some(f15),
    ..CLAIM
};

/// Figure 15: throughput at high error rates.
fn f15(bench: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
    let protocols = [Tulip, SnoopFixed, Snoop, Unaided];
    for (window, part) in Window::BOTH.into_iter().zip(["(a)", "(b)"]) {
        let sweeps = Sweeps::run(bench, &protocols, window, &HIGH, bit_errors)?;
        let name = window.name();
        let title = format!("Figure 15 {part}: throughput at high error rates, window {name}");
        finding.figures.push(sweeps.throughput_chart(&title, false, BANDS));
        finding.tables.push(sweeps.table(&title));
        for (label, protocol, rate) in [
            ("unaided at 45", Unaided, 45.0),
            ("TULIP at 75", Tulip, 75.0),
            ("mended snoop at 75", SnoopFixed, 75.0),
        ] {
            let throughput = sweeps.at(protocol, rate).summary(kbps);
            finding.measure(format!("{name}, {label} per million"), throughput, "kb/s");
        }
        let share = 100.0 * sweeps.mean(Unaided, 45.0, kbps) / 1000.0;
        finding.below(format!("{name}: unaided at 45 per million, % of the link,"), share, 5.0);
        for snoop in [SnoopFixed, Snoop] {
            let ratio = sweeps.mean(Tulip, 75.0, kbps) / sweeps.mean(snoop, 75.0, kbps);
            let text = format!("{name}: TULIP over {} at 75 per million", snoop.name());
            finding.require(ratio >= 2.0, format!("{text} is {ratio:.2}, wanted at least 2"));
        }
        if window == Window::Large {
            high_end(bench, finding)?;
        }
    }
    Ok(())
}

/// 5.2 mentions 85 % lost packets at the high end: that is an error rate of 165 per million.
fn high_end(bench: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
    let mut at = |protocol, ppm| run(bench, protocol, Window::Large, &bit_errors(ppm));
    let (tulip, snoop) = (at(Tulip, 165.0)?, at(SnoopFixed, 165.0)?);
    let printed = at(Tulip, 75.0)?;
    let lost = |runs: &Runs| 100.0 * (1.0 - runs.mean(ideal_goodput));
    finding.note(format!(
        "At 75 per million {:.0} % of the data packets are lost here; the paper says 85 %. At 165 per million, \
         where {:.0} % are lost, TULIP's throughput is {:.1} times that of the mended snoop",
        lost(&printed),
        lost(&tulip),
        tulip.mean(kbps) / snoop.mean(kbps)
    ));
    Ok(())
}
