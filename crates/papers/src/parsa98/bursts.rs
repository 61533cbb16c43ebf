//! Burst losses and fading: Table 2, Figures 18 and 19 (5.3).

use lasthop_report::number;

use super::cases::Protocol::{Snoop, SnoopFixed, Tulip, Unaided};
use super::cases::{Sweeps, Window, case, delay, deviation, run, timeouts};
use super::setup::TESTBED;
use crate::figure::{WHISKERS, bar, bars, published_bar, sequence};
use crate::measure::kbps;
use crate::table::{Cell, table};
use crate::{Bench, Estimate, Finding, Interrupted};

/// Bursts of `packets` data packets, one in every 64 KB on average, uniformly distributed. The handshake of medium
/// access is not hit, or no second packet of a burst would ever be sent (5.3.1).
pub(super) fn bursts(packets: u32) -> String {
    format!(
        "errors={{ model = 'packet-bursts', packets = {packets}, mean = '64KiB', spacing = 'uniform', \
         on = ['data'], only = ['data'] }}"
    )
}

/// A row of Table 2: throughput in kb/s, delay and its deviation in ms.
type Row = [f64; 3];

/// The published values for bursts of 2, 4 and 6 packets: TULIP, then snoop.
const TABLE: [(u32, Row, Row); 3] = [
    (2, [587.3, 540.0, 56.0], [562.6, 582.0, 60.0]),
    (4, [550.0, 579.0, 74.0], [527.6, 621.0, 84.0]),
    (6, [516.1, 618.0, 98.0], [496.4, 660.0, 114.0]),
];

/// Table 2 and Figure 18: bursts of data packets.
pub(super) fn t2(bench: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
    let mut groups = Vec::new();
    let mut rows = table(
        "Table 2: bursts every 64 KB, window 42 KB (published in brackets)",
        "burst | <protocol | kb/s | delay ms | deviation ms | TCP timeouts",
    );
    for (packets, tulip, snoop) in TABLE {
        let mut reached = Vec::new();
        for (protocol, published) in [(Tulip, tulip), (Snoop, snoop)] {
            let runs = run(bench, protocol, Window::Large, &bursts(packets))?;
            let got = [kbps, delay, deviation].map(|of| runs.summary(of));
            let name = format!("{}, bursts of {packets}", protocol.name());
            let mut row = vec![packets.cell(), protocol.name().to_owned()];
            for (i, (quantity, unit)) in
                [("throughput", "kb/s"), ("delay", "ms"), ("deviation", "ms")].iter().enumerate()
            {
                row.push(format!("{} ({})", number::summary(&got[i]), published[i]));
                finding.compare(format!("{name}, {quantity}"), got[i], unit, published[i]);
            }
            row.push(runs.summary(timeouts).cell());
            rows.rows.push(row);
            finding.near(format!("{name}, throughput in kb/s,"), got[0], published[0], 0.15);
            finding.near(format!("{name}, delay in ms,"), got[1], published[1], 0.15);
            finding.near(format!("{name}, deviation in ms,"), got[2], published[2], 0.15);
            let name = format!("{}, {packets}", protocol.name());
            groups.push((name, vec![published_bar(published[0]), bar(got[0])]));
            reached.push(runs);
        }
        let ahead = reached[0].percent_above(&reached[1], kbps);
        let published = 100.0 * (tulip[0] / snoop[0] - 1.0);
        finding.near(
            format!("bursts of {packets}: TULIP ahead of snoop in %,"),
            ahead,
            published,
            0.15,
        );
    }
    finding.tables.push(rows);
    let title = "Table 2: throughput by protocol and packets in a burst";
    let series = [("published", true), ("measured", false)];
    finding.figures.push(bars(title, "throughput, kb/s", series, groups, WHISKERS));
    if !bench.is_shown() {
        return Ok(());
    }
    for (protocol, part) in [(Tulip, "(a)"), (Snoop, "(b)")] {
        bench.check_interrupt()?;
        let mut changes = case(protocol, Window::Large, &bursts(6));
        changes.push("horizon=10s".to_owned());
        let recording = bench.record(TESTBED, &changes, bench.first_seed);
        let Some(series) = recording.series.first() else { continue };
        // The first burst and the time after it.
        let first = series.lost.first().map_or(0.0, |l| l.at_s);
        let title = format!("Figure 18 {part}: a burst of six packets, {}", protocol.name());
        let part = Some(((first - 0.1).max(0.0), first + 0.5));
        let caption = "The first seed, the first burst of the transfer.";
        finding.figures.push(sequence(&title, series, part, caption));
    }
    Ok(())
}

/// Error rates of the good state, in bits per million.
const GOOD: [f64; 6] = [0.01, 0.1, 1.0, 10.0, 30.0, 100.0];

/// A pedestrian's channel (5.3.2): half of the bits are wrong in the bad state.
pub(super) fn fading(ppm: f64) -> String {
    format!(
        "errors={{ model = 'two-state', speed = '2km/h', carrier = '2.4GHz', margin = '20dB', \
         ber-good = '{ppm}e-6', ber-bad = 0.5 }}"
    )
}

/// Figure 19: Markov fading at walking speed.
pub(super) fn f19(bench: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
    let protocols = [Tulip, Snoop, SnoopFixed, Unaided];
    let sweeps = Sweeps::run(bench, &protocols, Window::Large, &GOOD, fading)?;
    finding.figures.push(sweeps.throughput_chart(
        "Figure 19 (a): throughput with fading at 2 km/h",
        true,
        None,
        "The axis has the error rate of the good state. Bands are 95 % confidence intervals.",
    ));
    finding.figures.push(sweeps.delay_chart(
        "Figure 19 (b): packet delay with fading at 2 km/h",
        &protocols,
        true,
        "Whiskers are the standard deviation over packets.",
    ));
    finding.tables.push(sweeps.table("Figure 19: error rates of the good state"));
    let at = |protocol, rate| sweeps.mean(protocol, rate, kbps);
    let ratio = |rate| sweeps.ratio((Snoop, Tulip), rate, kbps);
    for rate in [0.01, 0.1, 1.0] {
        let quantity = format!("{rate} per million: throughput of snoop over TULIP's");
        finding.within(quantity, ratio(rate), 0.9, 1.1);
    }
    // "Begins to diverge and fall below TULIP once error rates exceed 10".
    finding.below("snoop over TULIP at 30 per million", ratio(30.0), 0.95);
    finding.below("snoop over TULIP at 100 per million", ratio(100.0), 0.95);
    let [of30, of100] = [30.0, 100.0]
        .map(|rate| [sweeps.at(Snoop, rate).each(kbps), sweeps.at(Tulip, rate).each(kbps)]);
    let falls =
        Estimate::of(&[&of30[0], &of30[1], &of100[0], &of100[1]], |m| m[0] / m[1] - m[2] / m[3]);
    finding.above("snoop over TULIP at 30 per million, less that at 100,", falls, 0.0);
    let fixed = |rate| at(SnoopFixed, rate) / at(Tulip, rate);
    finding.note(format!(
        "Snoop is the one with the fault, as the figures of experiment 3 call it; the fixed one reaches {:.2} of \
         TULIP's throughput at 30 and {:.2} at 100 per million",
        fixed(30.0),
        fixed(100.0)
    ));
    let unaided = |over, under| sweeps.at(Unaided, over).ratio(sweeps.at(Unaided, under), kbps);
    let quantity = "unaided at 0.1 over unaided at 0.01 per million";
    finding.within(quantity, unaided(0.1, 0.01), 0.9, 1.1);
    finding.below("unaided at 1 over unaided at 0.1 per million", unaided(1.0, 0.1), 0.95);
    finding.below("unaided at 10 over unaided at 1 per million", unaided(10.0, 1.0), 0.9);
    for rate in [0.01, 0.1, 1.0, 10.0] {
        let ratio = sweeps.ratio((Snoop, Tulip), rate, delay);
        finding.within(
            format!("{rate} per million: delay of snoop over TULIP's"),
            ratio,
            0.8,
            1.25,
        );
    }
    for rate in GOOD {
        let more = sweeps.at(Snoop, rate).difference(sweeps.at(Tulip, rate), deviation);
        finding.above(
            format!("{rate} per million: deviation of snoop less TULIP's, ms,"),
            more,
            0.0,
        );
    }
    for (quantity, of) in [("delay", delay as fn(&_) -> _), ("deviation", deviation)] {
        let ratio = sweeps.ratio((Tulip, Snoop), 100.0, of);
        finding.below(format!("100 per million: {quantity} of TULIP over snoop's"), ratio, 0.8);
        for protocol in [Tulip, Snoop] {
            let runs = sweeps.at(protocol, 100.0);
            let who = protocol.name();
            finding.measure(
                format!("{who} at 100 per million, {quantity}"),
                runs.summary(of),
                "ms",
            );
        }
    }
    Ok(())
}
