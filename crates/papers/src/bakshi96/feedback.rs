//! Source quench instead of EBSN (4.2.2), and the effect of the source's clock (4.2.1, 6).

use lasthop_trace::stats::Summary;

use super::{BAD, CLAIM, Scheme, many, wan};
use crate::measure::{kbps, timeouts};
use crate::table::{mean_and_interval, table};
use crate::{Bench, Bound, Claim, Finding, Interrupted, short};

/// The packet size of the example (4.2.1).
const SIZE: u32 = 576;
/// The longest of the mean bad periods.
const LONGEST: u32 = BAD[BAD.len() - 1];

pub(super) const QUENCH: Claim = Claim {
    id: "B-QUENCH",
    place: "4.2.2",
    setup: "ICMP source quench from the base station instead of EBSN",
    published: "does not prevent the time-outs of packets already under way; no gain",
    cost: 10,
    run: Some(quench),
    ..CLAIM
};

/// Source quench does not help.
fn quench(bench: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
    let mut rows = table(
        format!("Packets of {SIZE} bytes"),
        "<bad period | local recovery, kb/s | time-outs | source quench, kb/s | time-outs | EBSN, kb/s | time-outs",
    );
    for bad in BAD {
        let mut cells = vec![format!("{bad} s")];
        let mut of = Vec::new();
        for scheme in [Scheme::Recovery, Scheme::Quench, Scheme::Ebsn] {
            let runs = wan(bench, scheme, SIZE, bad, &[])?;
            let (throughput, timeouts) = (runs.summary(kbps), runs.timeouts());
            cells.extend([mean_and_interval(&throughput), mean_and_interval(&timeouts)]);
            if bad == LONGEST {
                let label = |what| format!("{}, {what}, bad {bad} s", scheme.name());
                finding.measure(label("throughput"), throughput, "kb/s");
                finding.measure(label("time-outs"), timeouts, "per run");
            }
            of.push((throughput.mean, timeouts.mean));
        }
        let what = format!("throughput with source quench over that without, bad {bad} s,");
        finding.below(what, of[1].0 / of[0].0, 1.1 + 1e-9);
        finding.above(format!("its time-outs per run, bad {bad} s,"), of[1].1, 0.0);
        rows.rows.push(cells);
    }
    finding.tables.push(rows);
    Ok(())
}

/// Clocks of the source in ms.
const TICKS: [u32; 3] = [100, 300, 500];

/// The settings of a clock of `tick` ms: the minimum timeout is two ticks.
fn clock(tick: u32) -> [String; 2] {
    [format!("host.fixed.granularity={tick}ms"), format!("host.fixed.rto-min={}ms", 2 * tick)]
}

/// Timeouts of local recovery and throughput of EBSN at each of [`TICKS`] on one network.
type ByTick = [(f64, f64); TICKS.len()];

/// Measures a network with each clock, with a table.
fn by_tick(
    bench: &mut Bench<'_>,
    finding: &mut Finding,
    network: &str,
    title: String,
) -> Result<ByTick, Interrupted> {
    let mut rows =
        table(title, "<clock | local recovery, kb/s | time-outs | EBSN, kb/s | time-outs");
    let mut all = ByTick::default();
    for (tick, found) in TICKS.into_iter().zip(&mut all) {
        let [clock, least] = clock(tick);
        let more = [clock.as_str(), least.as_str()];
        let mut cells = vec![format!("{tick} ms")];
        for scheme in [Scheme::Recovery, Scheme::Ebsn] {
            let runs = match network {
                "wide area" => wan(bench, scheme, SIZE, LONGEST, &more)?,
                _ => super::lan::runs(bench, scheme, 1600, &more)?,
            };
            let (rate, expired) = (runs.summary(kbps), runs.timeouts());
            cells.extend([mean_and_interval(&rate), mean_and_interval(&expired)]);
            let label = |what| format!("{network}, {} with {tick} ms, {what}", scheme.name());
            finding.measure(label("time-outs"), expired, "per run");
            finding.measure(label("throughput"), rate, "kb/s");
            match scheme {
                Scheme::Recovery => found.0 = expired.mean,
                _ => found.1 = rate.mean,
            }
        }
        rows.rows.push(cells);
    }
    finding.tables.push(rows);
    Ok(all)
}

pub(super) const TICK: Claim = Claim {
    id: "B-TICK",
    place: "4.2.1, 6",
    setup: "timer granularity 100 ms against 300-500 ms, local recovery with and without EBSN",
    published: "local recovery alone suffers from fine timers, EBSN does not",
    cost: 21,
    run: Some(tick),
    ..CLAIM
};

/// Fine clocks harm local recovery only.
fn tick(bench: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
    let title = format!("Wide area, packets of {SIZE} bytes, bad periods of {LONGEST} s");
    let wide = by_tick(bench, finding, "wide area", title)?;
    let title = "Local area, bad periods of 1.6 s".to_owned();
    let local = by_tick(bench, finding, "local area", title)?;
    // The claim is about the wide area (4.2.1); the tables show the local area too. Runs with equal seeds have the same
    // bad periods, so they are compared in pairs, with ten times the seeds.
    let last = TICKS.len() - 1;
    let mut timed_out = |tick: u32| {
        let [clock, least] = clock(tick);
        let runs = many(bench, Scheme::Recovery, SIZE, LONGEST, &[&clock, &least])?;
        Ok(runs.each(timeouts))
    };
    let (fine, coarse) = (timed_out(TICKS[0])?, timed_out(TICKS[last])?);
    let more = Summary::of_differences(&fine, &coarse).unwrap_or_else(|| Summary::of(&[]));
    finding.measure("more time-outs of local recovery at 100 ms than at 500 ms", more, "per run");
    finding.judge(
        "time-outs a run more at 100 ms than at 500 ms, the interval's lower end,",
        more.low(),
        Bound::Above(0.0),
        format!(
            "local recovery times out {} times a run more at 100 ms than at 500 ms, within ± {} (95 %), \
             wanted above 0",
            short(more.mean),
            short(more.ci95)
        ),
    );
    let most = wide.iter().map(|w| w.1).fold(f64::NEG_INFINITY, f64::max);
    let least = wide.iter().map(|w| w.1).fold(f64::INFINITY, f64::min);
    let spread = 100.0 * (most / least - 1.0);
    finding.below("the spread of EBSN's throughput across ticks in %", spread, 5.0);
    finding.note(format!(
        "on the local area, where round trips are shorter than the ticks, local recovery times out {} times a run at \
         100 ms and {} at 500 ms",
        short(local[0].0),
        short(local[last].0)
    ));
    Ok(())
}
