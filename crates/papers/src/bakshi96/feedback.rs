//! Source quench instead of EBSN (4.2.2), and what the clock of the source matters (4.2.1, 6).

use lasthop_report::model::{Column, Measured, Table};
use lasthop_report::number;

use super::{BAD, Scheme, kbps, wan};
use crate::bench::{Bench, Interrupted};
use crate::finding::{Finding, short};

/// The packet size of the example (4.2.1).
const SIZE: u32 = 576;

/// Source quench does not help.
pub fn quench(bench: &mut Bench<'_>) -> Result<Finding, Interrupted> {
    let mut finding = Finding::new(bench.seeds);
    let mut rows = Vec::new();
    for bad in BAD {
        let mut cells = vec![format!("{bad} s")];
        let mut of = Vec::new();
        for scheme in [Scheme::Recovery, Scheme::Quench, Scheme::Ebsn] {
            let runs = wan(bench, scheme, SIZE, bad, &[])?;
            let (throughput, timeouts) = (runs.summary(kbps), runs.timeouts());
            cells.push(number::summary(&throughput));
            cells.push(number::summary(&timeouts));
            if bad == BAD[BAD.len() - 1] {
                let label = |what| format!("{}, {what}, bad {bad} s", scheme.name());
                finding.measured.push(Measured::new(
                    label("throughput"),
                    &throughput,
                    "kb/s",
                    None,
                ));
                finding.measured.push(Measured::new(
                    label("time-outs"),
                    &timeouts,
                    "per run",
                    None,
                ));
            }
            of.push((throughput.mean, timeouts.mean));
        }
        finding.below(
            &format!("throughput with source quench over that without, bad {bad} s,"),
            of[1].0 / of[0].0,
            1.1 + 1e-9,
        );
        finding.above(&format!("its time-outs per run, bad {bad} s,"), of[1].1, 0.0);
        rows.push(cells);
    }
    let titles = ["local recovery", "source quench", "EBSN"];
    let mut columns = vec![Column::text("bad period")];
    for title in titles {
        columns.push(Column::number(format!("{title}, kb/s")));
        columns.push(Column::number("time-outs"));
    }
    let title = format!("Packets of {SIZE} bytes");
    finding.tables.push(Table { title, columns, rows });
    Ok(finding)
}

/// Clocks of the source in ms.
const TICKS: [u32; 3] = [100, 300, 500];

/// Fine clocks hurt local recovery alone.
pub fn tick(bench: &mut Bench<'_>) -> Result<Finding, Interrupted> {
    let mut finding = Finding::new(bench.seeds);
    let bad = BAD[BAD.len() - 1];
    let mut timeouts = Vec::new();
    let mut throughput = Vec::new();
    for network in ["wide area", "local area"] {
        let mut rows = Vec::new();
        for tick in TICKS {
            let clock = format!("host.fixed.granularity={tick}ms");
            // The smallest time-out is two ticks.
            let least = format!("host.fixed.rto-min={}ms", 2 * tick);
            let mut cells = vec![format!("{tick} ms")];
            for scheme in [Scheme::Recovery, Scheme::Ebsn] {
                let more = [clock.as_str(), least.as_str()];
                let runs = match network {
                    "wide area" => wan(bench, scheme, SIZE, bad, &more)?,
                    _ => super::lan::runs(bench, scheme, 1600, &more)?,
                };
                let (rate, expired) = (runs.summary(kbps), runs.timeouts());
                cells.push(number::summary(&rate));
                cells.push(number::summary(&expired));
                let label = |what| format!("{}, {} with {tick} ms, {what}", network, scheme.name());
                finding.measured.push(Measured::new(label("time-outs"), &expired, "per run", None));
                finding.measured.push(Measured::new(label("throughput"), &rate, "kb/s", None));
                match scheme {
                    Scheme::Recovery => timeouts.push(expired),
                    _ => throughput.push(rate.mean),
                }
            }
            rows.push(cells);
        }
        finding.tables.push(Table {
            title: match network {
                "wide area" => {
                    format!("Wide area, packets of {SIZE} bytes, bad periods of {bad} s")
                }
                _ => "Local area, bad periods of 1.6 s".to_owned(),
            },
            columns: vec![
                Column::text("clock"),
                Column::number("local recovery, kb/s"),
                Column::number("time-outs"),
                Column::number("EBSN, kb/s"),
                Column::number("time-outs"),
            ],
            rows,
        });
    }
    // The claim is made of the wide area (4.2.1); the local area follows it in the tables.
    let (local, wide) = (timeouts.split_off(TICKS.len()), timeouts);
    throughput.truncate(TICKS.len());
    let (fine, coarse) = (wide[0].mean, wide[TICKS.len() - 1].mean);
    finding.require(
        fine > coarse,
        format!("local recovery times out {} times a run at 100 ms and {} at 500 ms, wanted more at 100 ms", short(fine), short(coarse)),
    );
    let most = throughput.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let least = throughput.iter().copied().fold(f64::INFINITY, f64::min);
    finding.below(
        "the spread of EBSN's throughput across ticks in %",
        100.0 * (most / least - 1.0),
        5.0,
    );
    finding.note(format!(
        "on the wide area the time-out is srtt + 4 rttvar of round trips of seconds: whether they are rounded to 0.1 or \
         to 0.5 s changes nothing that can be measured. On the local area, where round trips are shorter than the \
         ticks, local recovery times out {} times a run at 100 ms and {} at 500 ms",
        short(local[0].mean),
        short(local[TICKS.len() - 1].mean)
    ));
    Ok(finding)
}
