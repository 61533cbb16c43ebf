//! Packet delay: Figures 14, 16 and 17 (5.1.5, 5.2.2).

use lasthop_report::model::Measured;

use super::cases::Protocol::{Snoop, SnoopMended, Tulip, Unaided};
use super::cases::{
    Window, bit_errors, delay, delay_chart, deviation, figure, find, mean, sweeps, table,
};
use super::throughput::{HIGH, LOW};
use crate::bench::{Bench, Interrupted};
use crate::finding::Finding;

const CAPTION: &str = "Mean over the packets of a run and over the runs; whiskers are the standard deviation over the \
                       packets of a run.";

/// Figure 14: delay at low error rates.
pub fn f14(bench: &mut Bench<'_>) -> Result<Finding, Interrupted> {
    let mut finding = Finding::new(bench.seeds);
    let mut means = Vec::new();
    for (window, part) in Window::BOTH.into_iter().zip(["(a)", "(b)"]) {
        let sweeps = sweeps(bench, &[Tulip, Snoop], window, &LOW, bit_errors)?;
        let name = window.name();
        let title = format!("Figure 14 {part}: packet delay, window {name}");
        let plot = delay_chart(&sweeps.iter().collect::<Vec<_>>(), false, &title);
        finding.figures.push(figure(&plot, &title, CAPTION));
        finding.tables.push(table(&title, &sweeps));
        let at = |protocol, rate| find(&sweeps, protocol).and_then(|s| s.at(rate));
        for rate in LOW {
            let (tulip, snoop) = (mean(at(Tulip, rate), delay), mean(at(Snoop, rate), delay));
            finding.require(
                tulip < snoop,
                format!("{name}, {rate} per million: TULIP's delay ({tulip:.1} ms) is below snoop's ({snoop:.1})"),
            );
            means.push((window, rate, tulip, snoop));
        }
        // "As the error rates increase": the upper half of the axis.
        for rate in LOW.into_iter().filter(|rate| *rate >= 7.5) {
            let of = |protocol| mean(at(protocol, rate), deviation);
            let (tulip, snoop) = (of(Tulip), of(Snoop));
            finding.require(
                tulip < snoop,
                format!("{name}, {rate} per million: TULIP's deviation ({tulip:.1} ms) is below snoop's ({snoop:.1})"),
            );
        }
        for (label, protocol) in [("TULIP", Tulip), ("snoop", Snoop)] {
            if let Some(runs) = at(protocol, 15.0) {
                let what = format!("{name}, {label} at 15 per million");
                finding.measured.extend([
                    Measured::new(format!("{what}, delay"), &runs.summary(delay), "ms", None),
                    Measured::new(
                        format!("{what}, deviation"),
                        &runs.summary(deviation),
                        "ms",
                        None,
                    ),
                ]);
            }
        }
    }
    let of = |window, rate| means.iter().find(|m| m.0 == window && m.1 == rate);
    for rate in LOW {
        let (Some(large), Some(small)) = (of(Window::Large, rate), of(Window::Small, rate)) else {
            continue;
        };
        for (name, ratio) in [("TULIP", small.2 / large.2), ("snoop", small.3 / large.3)] {
            finding.below(
                &format!("{name}, {rate} per million: delay with 16 KB over that with 42 KB"),
                ratio,
                0.5,
            );
        }
    }
    Ok(finding)
}

/// Delay at high error rates with `window`: charts, table, figures.
fn high(
    bench: &mut Bench<'_>,
    finding: &mut Finding,
    window: Window,
    place: &str,
) -> Result<Vec<super::cases::Sweep>, Interrupted> {
    let sweeps = sweeps(bench, &[Tulip, SnoopMended, Snoop, Unaided], window, &HIGH, bit_errors)?;
    let pick = |protocols: &[super::cases::Protocol]| {
        protocols.iter().filter_map(|p| find(&sweeps, *p)).collect::<Vec<_>>()
    };
    let name = window.name();
    let title = format!("{place} (a): packet delay, window {name}: snoop and nothing");
    let plot = delay_chart(&pick(&[Snoop, SnoopMended, Unaided]), false, &title);
    finding.figures.push(figure(&plot, &title, CAPTION));
    let title = format!("{place} (b): packet delay, window {name}: TULIP and snoop");
    let plot = delay_chart(&pick(&[Tulip, SnoopMended]), false, &title);
    finding.figures.push(figure(&plot, &title, CAPTION));
    finding.tables.push(table(&format!("{place}: window {name}"), &sweeps));
    for protocol in [Tulip, SnoopMended, Snoop] {
        if let Some(runs) = find(&sweeps, protocol).and_then(|s| s.at(75.0)) {
            let what = format!("{} at 75 per million", protocol.name());
            finding.measured.extend([
                Measured::new(format!("{what}, delay"), &runs.summary(delay), "ms", None),
                Measured::new(format!("{what}, deviation"), &runs.summary(deviation), "ms", None),
            ]);
        }
    }
    Ok(sweeps)
}

/// "Significantly lowered" (5.2.2): by a fifth at least.
const MUCH: f64 = 0.8;

/// Figure 16: delay at high error rates, and what the mended fault is worth.
pub fn f16(bench: &mut Bench<'_>) -> Result<Finding, Interrupted> {
    let mut finding = Finding::new(bench.seeds);
    let sweeps = high(bench, &mut finding, Window::Large, "Figure 16")?;
    let at = |protocol, rate| find(&sweeps, protocol).and_then(|s| s.at(rate));
    for rate in HIGH.into_iter().filter(|rate| *rate > 35.0) {
        let of = |protocol| (mean(at(protocol, rate), delay), mean(at(protocol, rate), deviation));
        let (tulip, mended, fault) = (of(Tulip), of(SnoopMended), of(Snoop));
        let words = format!("{rate} per million:");
        finding.below(
            &format!("{words} delay of snoop mended over unmended"),
            mended.0 / fault.0,
            MUCH,
        );
        finding.below(
            &format!("{words} deviation of snoop mended over unmended"),
            mended.1 / fault.1,
            MUCH,
        );
        finding.below(
            &format!("{words} delay of TULIP over snoop mended"),
            tulip.0 / mended.0,
            1.0,
        );
        finding.below(
            &format!("{words} deviation of TULIP over snoop mended"),
            tulip.1 / mended.1,
            1.0,
        );
    }
    Ok(finding)
}

/// Figure 17: the same with the small window.
pub fn f17(bench: &mut Bench<'_>) -> Result<Finding, Interrupted> {
    let mut finding = Finding::new(bench.seeds);
    let sweeps = high(bench, &mut finding, Window::Small, "Figure 17")?;
    let at = |protocol| mean(find(&sweeps, protocol).and_then(|s| s.at(75.0)), delay);
    let ratio = at(SnoopMended) / at(Tulip);
    finding.above("delay of snoop, mended, over TULIP's at 75 per million", ratio, 1.7);
    Ok(finding)
}
