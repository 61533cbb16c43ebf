//! Packet delay: Figures 14, 16 and 17 (5.1.5, 5.2.2).

use lasthop_observe::metrics::RunMetrics;

use super::cases::Protocol::{self, Snoop, SnoopFixed, Tulip, Unaided};
use super::cases::{Sweeps, Window, bit_errors, delay, deviation};
use super::throughput::{HIGH, LOW};
use crate::{Bench, Finding, Interrupted};

const CAPTION: &str = "Mean over the packets of a run and over the runs; whiskers are the standard deviation over the \
                       packets of a run.";

/// Delay and deviation of a protocol as measured figures, with labels that begin with `prefix`.
fn measure(finding: &mut Finding, sweeps: &Sweeps, protocol: Protocol, rate: f64, prefix: &str) {
    let runs = sweeps.at(protocol, rate);
    finding.measure(format!("{prefix}, delay"), runs.summary(delay), "ms");
    finding.measure(format!("{prefix}, deviation"), runs.summary(deviation), "ms");
}

/// Figure 14: delay at low error rates.
pub(super) fn f14(bench: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
    let mut both = Vec::new();
    for (window, part) in Window::BOTH.into_iter().zip(["(a)", "(b)"]) {
        let sweeps = Sweeps::run(bench, &[Tulip, Snoop], window, &LOW, bit_errors)?;
        let name = window.name();
        let title = format!("Figure 14 {part}: packet delay, window {name}");
        finding.figures.push(sweeps.delay_chart(&title, &[Tulip, Snoop], false, CAPTION));
        finding.tables.push(sweeps.table(&title));
        let mut lower = |quantity: &str, of: fn(&RunMetrics) -> f64, rate: f64| {
            let more = sweeps.at(Snoop, rate).difference(sweeps.at(Tulip, rate), of);
            let quantity =
                format!("{name}, {rate} per million: {quantity} of snoop less that of TULIP, ms,");
            finding.above(quantity, more, 0.0);
        };
        LOW.into_iter().for_each(|rate| lower("delay", delay, rate));
        // "As the error rates increase": the upper half of the axis.
        let upper = LOW.into_iter().filter(|rate| *rate >= 7.5);
        upper.for_each(|rate| lower("deviation", deviation, rate));
        for protocol in [Tulip, Snoop] {
            let prefix = format!("{name}, {} at 15 per million", protocol.name());
            measure(finding, &sweeps, protocol, 15.0, &prefix);
        }
        both.push(sweeps);
    }
    for rate in LOW {
        for protocol in [Tulip, Snoop] {
            let [large, small] = [0, 1].map(|i| both[i].at(protocol, rate));
            let name = protocol.name();
            let quantity =
                format!("{name}, {rate} per million: delay with 16 KB over that with 42 KB");
            finding.below(quantity, small.ratio(large, delay), 0.5);
        }
    }
    Ok(())
}

/// Delay at high error rates with `window`: charts, table, figures.
fn high(
    bench: &mut Bench<'_>,
    finding: &mut Finding,
    window: Window,
    place: &str,
) -> Result<Sweeps, Interrupted> {
    let protocols = [Tulip, SnoopFixed, Snoop, Unaided];
    let sweeps = Sweeps::run(bench, &protocols, window, &HIGH, bit_errors)?;
    let name = window.name();
    let title = |part: &str| format!("{place} {part}: packet delay, window {name}");
    let (a, b) = (title("(a)") + ": snoop and nothing", title("(b)") + ": TULIP and snoop");
    finding.figures.extend([
        sweeps.delay_chart(&a, &[Snoop, SnoopFixed, Unaided], false, CAPTION),
        sweeps.delay_chart(&b, &[Tulip, SnoopFixed], false, CAPTION),
    ]);
    finding.tables.push(sweeps.table(&format!("{place}: window {name}")));
    for protocol in [Tulip, SnoopFixed, Snoop] {
        let prefix = format!("{} at 75 per million", protocol.name());
        measure(finding, &sweeps, protocol, 75.0, &prefix);
    }
    Ok(sweeps)
}

/// "Significantly lowered", "significantly larger" (5.2.2): at least by a fifth.
const MUCH: f64 = 0.8;

/// Figure 16: delay at high error rates, and the effect of the fault.
pub(super) fn f16(bench: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
    let sweeps = high(bench, finding, Window::Large, "Figure 16")?;
    for rate in HIGH.into_iter().filter(|rate| *rate > 35.0) {
        for (names, over, under) in [
            ("snoop fixed over unfixed", SnoopFixed, Snoop),
            ("TULIP over snoop fixed", Tulip, SnoopFixed),
        ] {
            for (quantity, of) in [("delay", delay as fn(&_) -> _), ("deviation", deviation)] {
                let ratio = sweeps.ratio((over, under), rate, of);
                finding.below(format!("{rate} per million: {quantity} of {names}"), ratio, MUCH);
            }
        }
    }
    let spread = |m: &RunMetrics| delay(m) + deviation(m);
    for rate in HIGH.into_iter().filter(|rate| *rate <= 60.0) {
        let ratio = sweeps.ratio((Unaided, Snoop), rate, delay);
        finding.below(format!("{rate} per million: delay of TCP alone over snoop's"), ratio, 1.0);
        let ratio = sweeps.ratio((Unaided, Snoop), rate, spread);
        let quantity = format!("{rate} per million: delay and deviation of TCP alone over snoop's");
        finding.above(quantity, ratio, 1.0);
    }
    Ok(())
}

/// Figure 17: the same with the small window.
pub(super) fn f17(bench: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
    let sweeps = high(bench, finding, Window::Small, "Figure 17")?;
    // "An average packet delay of more than twice that of TULIP."
    let ratio = sweeps.ratio((SnoopFixed, Tulip), 75.0, delay);
    finding.above("delay of snoop, fixed, over TULIP's at 75 per million", ratio, 2.0);
    let ratio = sweeps.ratio((SnoopFixed, Tulip), 75.0, deviation);
    finding.above("deviation of snoop, fixed, over TULIP's at 75 per million", ratio, 1.0);
    let large = Sweeps::run(bench, &[Tulip, SnoopFixed], Window::Large, &HIGH, bit_errors)?;
    for protocol in [Tulip, SnoopFixed] {
        for rate in HIGH {
            let ratio = sweeps.at(protocol, rate).ratio(large.at(protocol, rate), delay);
            let who = protocol.name();
            let quantity =
                format!("{who}, {rate} per million: delay with 16 KB over that with 42 KB");
            finding.below(quantity, ratio, MUCH);
        }
    }
    Ok(())
}
