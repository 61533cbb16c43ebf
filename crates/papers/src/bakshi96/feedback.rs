//! Source quench instead of EBSN (4.2.2), and the effect of the source's clock (4.2.1, 6).

use super::averages::Averaging;
use super::setup::{BAD, Scheme, many, wan};
use crate::measure::timeouts;
use crate::table::{Cell, table};
use crate::{Bench, Estimate, Finding, Interrupted, Runs, short};

/// The packet size of the example (4.2.1).
const SIZE: u32 = 576;
/// The longest of the mean bad periods.
const LONGEST: u32 = BAD[BAD.len() - 1];

/// Source quench does not help.
pub(super) fn quench(bench: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
    let averaging = Averaging::of(bench);
    let mut rows = table(
        format!("Packets of {SIZE} bytes"),
        "<bad period | local recovery, kb/s | timeouts | source quench, kb/s | timeouts | EBSN, kb/s | timeouts",
    );
    for bad in BAD {
        let mut cells = vec![format!("{bad} s")];
        let mut of: Vec<Runs> = Vec::new();
        for scheme in [Scheme::Recovery, Scheme::Quench, Scheme::Ebsn] {
            let runs = wan(bench, scheme, SIZE, bad, &[])?;
            let (throughput, timeouts) = (averaging.rate(&runs), runs.timeouts());
            cells.extend([throughput.cell(), timeouts.cell()]);
            if bad == LONGEST {
                let label = |quantity| format!("{}, {quantity}, bad {bad} s", scheme.name());
                finding.measure(label("throughput"), throughput, "kb/s");
                finding.measure(label("timeouts"), timeouts, "per run");
            }
            of.push(runs);
        }
        let quantity = format!("throughput with source quench over that without, bad {bad} s,");
        let times = averaging.estimate(&[&of[1], &of[0]], |m| m[0] / m[1]);
        finding.below(quantity, times, 1.1 + 1e-9);
        finding.above(format!("its timeouts per run, bad {bad} s,"), of[1].timeouts(), 0.0);
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

/// Mean timeouts of local recovery, and the runs of EBSN, at each of [`TICKS`] on one network.
type ByTick = Vec<(f64, Runs)>;

/// Measures a network with each clock, with a table.
fn by_tick(
    bench: &mut Bench<'_>,
    finding: &mut Finding,
    network: &str,
    title: String,
) -> Result<ByTick, Interrupted> {
    let mut rows = table(title, "<clock | local recovery, kb/s | timeouts | EBSN, kb/s | timeouts");
    let averaging = Averaging::of(bench);
    let mut all = ByTick::new();
    for tick in TICKS {
        let [clock, least] = clock(tick);
        let more = [clock.as_str(), least.as_str()];
        let mut cells = vec![format!("{tick} ms")];
        let mut found = Vec::new();
        for scheme in [Scheme::Recovery, Scheme::Ebsn] {
            let runs = match network {
                "wide area" => wan(bench, scheme, SIZE, LONGEST, &more)?,
                _ => super::lan::runs(bench, scheme, 1600, &more)?,
            };
            let (rate, expired) = (averaging.rate(&runs), runs.timeouts());
            cells.extend([rate.cell(), expired.cell()]);
            let label =
                |quantity| format!("{network}, {} with {tick} ms, {quantity}", scheme.name());
            finding.measure(label("timeouts"), expired, "per run");
            finding.measure(label("throughput"), rate, "kb/s");
            found.push((expired.mean, runs));
        }
        rows.rows.push(cells);
        if let [(expired, _), (_, runs)] = &found[..] {
            all.push((*expired, runs.clone()));
        }
    }
    finding.tables.push(rows);
    Ok(all)
}

/// Fine clocks harm local recovery only.
pub(super) fn tick(bench: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
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
    let more = Estimate::difference(&fine, &coarse);
    finding.measure("more timeouts of local recovery at 100 ms than at 500 ms", more, "per run");
    finding.above("timeouts a run more at 100 ms than at 500 ms", more, 0.0);
    let ebsn: Vec<&Runs> = wide.iter().map(|(_, runs)| runs).collect();
    let spread = Averaging::of(bench).estimate(&ebsn, |m| {
        let most = m.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let least = m.iter().copied().fold(f64::INFINITY, f64::min);
        100.0 * (most / least - 1.0)
    });
    finding.below("the spread of EBSN's throughput across ticks in %", spread, 5.0);
    finding.note(format!(
        "on the local area, where round trips are shorter than the ticks, local recovery times out {} times a run at \
         100 ms and {} at 500 ms",
        short(local[0].0),
        short(local[last].0)
    ));
    Ok(())
}

/// Local recovery alone helps, and the source still times out.
pub(super) fn recovery(bench: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
    let averaging = Averaging::of(bench);
    for bad in BAD {
        let basic = wan(bench, Scheme::Basic, SIZE, bad, &[])?;
        let with = wan(bench, Scheme::Recovery, SIZE, bad, &[])?;
        let above = averaging.estimate(&[&with, &basic], |m| 100.0 * (m[0] / m[1] - 1.0));
        finding.measure(format!("local recovery, bad {bad} s"), averaging.rate(&with), "kb/s");
        finding.measure(format!("basic TCP, bad {bad} s"), averaging.rate(&basic), "kb/s");
        finding.above(format!("bad {bad} s: local recovery above basic TCP in %"), above, 0.0);
        finding.above(format!("bad {bad} s: its timeouts per run"), with.timeouts(), 0.0);
    }
    Ok(())
}
