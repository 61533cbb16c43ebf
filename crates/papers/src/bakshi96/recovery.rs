//! Figures 8 and 9 (5.1): EBSN over the wide area, and retransmissions of the source.

use lasthop_observe::stats::Summary;
use lasthop_proto::event::Cause;
use lasthop_report::model::Table;
use lasthop_report::plot::Curve;

use super::averages::Averaging;
use super::setup::{BAD, RT_MAX, SIZES, Scheme, WAN, many, packet_size, sent_again, wan};
use super::size::{Metric, Sweep, bounds, with_bounds};
use crate::figure::published_line;
use crate::measure::{dropped, kbps};
use crate::table::{Cell, row, table};
use crate::{Bench, Estimate, Finding, Interrupted, Runs, short};

/// Alternative readings of the link layer, to show the effect of the assumed one. A backoff whose first limit is its
/// last does not grow.
pub(super) const ALTERNATIVES: [(&str, &[&str]); 6] = [
    ("fragments, nothing given up, backoff of 50 doubling to 800 ms (assumed)", &[]),
    ("the same with RT_max = 13", &[RT_MAX]),
    ("whole packets, nothing given up", &[WHOLE]),
    ("whole packets with RT_max = 13", &[WHOLE, RT_MAX]),
    (
        "backoff of 0 to 100 ms",
        &["local-recovery.backoff=100ms", "local-recovery.backoff-max=100ms"],
    ),
    ("acknowledgements of 8 bytes", &["local-recovery.ack=8B"]),
];
const WHOLE: &str = "local-recovery.unit=packet";

/// Packets dropped by the link layer in a run, in the direction of the data.
pub(super) fn given_up(runs: &Runs) -> Summary {
    runs.summary(dropped(Cause::LinkGaveUp))
}

/// A row for each reading of the link layer: throughput in kb/s, source timeouts, dropped packets.
pub(super) fn sensitivity(
    title: &str,
    averaging: Averaging,
    mut run: impl FnMut(&[&str]) -> Result<Runs, Interrupted>,
) -> Result<Table, Interrupted> {
    let mut rows = table(title, "<link layer | kb/s | source timeouts | packets given up");
    for (name, changes) in ALTERNATIVES {
        let runs = run(changes)?;
        let throughput = averaging.rate(&runs);
        rows.rows.push(row(&[&name, &throughput, &runs.timeouts(), &given_up(&runs)]));
    }
    Ok(rows)
}

/// Figure 8: with EBSN throughput rises with the packet size.
pub(super) fn f8(bench: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
    let averaging = Averaging::of(bench);
    let ebsn = Sweep::run(bench, Scheme::Ebsn, Metric::Rate(averaging))?;
    let basic = Sweep::run(bench, Scheme::Basic, Metric::Rate(averaging))?;
    let runs = ebsn.runs(1536, 4);
    let (with, without) = (ebsn.at(1536, 4), basic.at(1536, 4));
    finding.compare("EBSN, 1536 B, bad 4 s", with, "kb/s", 9.0);
    finding.compare("basic TCP", without, "kb/s", 4.5);
    for bad in BAD {
        let row = SIZES.map(|size| (size, bad)).to_vec();
        let quantity =
            format!("bad {bad} s: smallest step from one packet size to the next, kb/s,");
        finding.above(quantity, ebsn.weakest(&[row]), 0.0);
    }
    finding.near("EBSN's 1536 B at 4 s in kb/s", with, 9.0, 0.15);
    let times = averaging.estimate(&[runs, basic.runs(1536, 4)], |m| m[0] / m[1]);
    finding.compare("EBSN over basic TCP, 1536 B, bad 4 s", times, "", 2.0);
    finding.above("EBSN over basic TCP there", times, 1.7 - 1e-9);
    // "Significantly more improvement" for each bad period, at the largest packets.
    for bad in BAD {
        let cases = [ebsn.runs(1536, bad), basic.runs(1536, bad)];
        let above = averaging.estimate(&cases, |m| 100.0 * (m[0] / m[1] - 1.0));
        finding.above(format!("bad {bad} s: EBSN above basic TCP at 1536 B in %"), above, 0.0);
    }
    if !bench.is_shown() {
        return Ok(());
    }
    let recovery = Sweep::with_usual_seeds(bench, Scheme::Recovery, Metric::Rate(averaging))?;
    finding.measure("local recovery, 1536 B, bad 4 s", recovery.at(1536, 4), "kb/s");
    let mut without_errors = |scheme: Scheme| {
        let mut changes = packet_size(1536);
        changes.extend(scheme.changes().iter().chain(&["errors=none"]).map(|c| (*c).to_owned()));
        Ok(bench.runs(WAN, &changes)?.mean(kbps))
    };
    let (clean, plain) = (without_errors(Scheme::Ebsn)?, without_errors(Scheme::Basic)?);
    finding.note(format!(
        "without errors stop-and-wait carries {} kb/s and the plain link {}: each fragment waits for its \
         acknowledgement",
        short(clean),
        short(plain)
    ));
    let means = Averaging::Runs.estimate(&[runs, basic.runs(1536, 4)], |m| m[0] / m[1]);
    finding.note(format!(
        "throughput is all bytes over all time (1); by the mean of each run's throughput EBSN has {} times that of \
         basic TCP",
        means.cell()
    ));
    finding.tables.push(ebsn.table("Figure 8: throughput with EBSN in kb/s"));
    finding.tables.push(recovery.table("Local recovery without EBSN, in kb/s"));
    let title = "EBSN at 1536 B and 4 s by the link layer";
    let by_reading = sensitivity(title, averaging, |more| wan(bench, Scheme::Ebsn, 1536, 4, more))?;
    finding.tables.push(by_reading);
    finding.figures.push(ebsn.chart(
        "Figure 8: EBSN, wide area",
        "throughput (kb/s)",
        &with_bounds(&[(4, 1536.0, 9.0)]),
        &format!("Rings are published: 9.0 kb/s, and the bounds at 1536 B. {}", bounds()),
    ));
    finding.figures.push(recovery.chart(
        "Local recovery without EBSN, wide area",
        "throughput (kb/s)",
        &[],
        "For comparison; the paper has no such figure.",
    ));
    Ok(())
}

/// 5.1: does EBSN gain more when bad periods are longer?
pub(super) fn longer(bench: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
    const PERIODS: [u32; 4] = [4, 6, 8, 16];
    let averaging = Averaging::of(bench);
    let mut rows = table(
        "Longer bad periods, packets of 1536 B",
        "bad period, s | basic TCP, kb/s | EBSN, kb/s | EBSN over basic TCP | packets given up",
    );
    let mut all = Vec::new();
    for bad in PERIODS {
        let basic = many(bench, Scheme::Basic, 1536, bad, &[])?;
        let ebsn = many(bench, Scheme::Ebsn, 1536, bad, &[])?;
        let times = averaging.estimate(&[&ebsn, &basic], |m| m[0] / m[1]);
        finding.measure(format!("EBSN over basic TCP, bad {bad} s"), times, "");
        let rates = [&basic, &ebsn].map(|runs| averaging.rate(runs));
        rows.rows.push(row(&[&bad, &rates[0], &rates[1], &times, &given_up(&ebsn)]));
        all.push([ebsn, basic]);
    }
    finding.tables.push(rows);
    for (longer, bad) in all[1..].iter().zip(&PERIODS[1..]) {
        let cases = [&longer[0], &longer[1], &all[0][0], &all[0][1]];
        let more = averaging.estimate(&cases, |m| m[0] / m[1] - m[2] / m[3]);
        finding.above(
            format!("EBSN over basic TCP with bad {bad} s, less that with 4 s,"),
            more,
            0.0,
        );
    }
    Ok(())
}

/// Figure 9: retransmissions of the source.
pub(super) fn f9(bench: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
    let basic = Sweep::run(bench, Scheme::Basic, Metric::SentAgain)?;
    let ebsn = Sweep::run(bench, Scheme::Ebsn, Metric::SentAgain)?;
    for (name, sweep, given) in [("basic TCP", &basic, None), ("EBSN", &ebsn, Some(0.0))] {
        for (size, bad) in [(128, 4), (1536, 1), (1536, 4)] {
            let label = format!("{name}, {size} B, bad {bad} s");
            finding.compare(label, sweep.at(size, bad), "KB", given);
        }
    }
    for bad in BAD {
        let row = SIZES.map(|size| (size, bad)).to_vec();
        let quantity =
            format!("bad {bad} s: more KB retransmitted, smallest step from one size to the next,");
        finding.above(quantity, basic.weakest(&[row]), 0.0);
    }
    let longer = |size: u32| BAD.map(|bad| (size, bad)).to_vec();
    let quantity = "more KB retransmitted with bad periods that are a second longer, the least over all sizes,";
    finding.above(quantity, basic.weakest(&SIZES.map(longer)), 0.0);
    let all = BAD.iter().flat_map(|bad| SIZES.map(|size| (ebsn.at(size, *bad), size, *bad)));
    let none = (Estimate::from(f64::NAN), SIZES[0], BAD[0]);
    let (most, size, bad) = all.max_by(|a, b| a.0.value.total_cmp(&b.0.value)).unwrap_or(none);
    // The file has 100 KB, so KB are percent of it.
    let quantity = "the most that EBSN's source retransmits, in % of the file";
    finding.below(format!("{quantity} ({size} B at {bad} s),"), most, 1.0);
    if !bench.is_shown() {
        return Ok(());
    }
    let runs = wan(bench, Scheme::Ebsn, size, bad, &[RT_MAX])?;
    finding.note(format!(
        "with RT_max = 13 the link layer gives up {} packets a run there, the source times out {} times and sends {} \
         KB again: some of the exponential bad periods outlast all attempts",
        short(given_up(&runs).mean),
        short(runs.timeouts().mean),
        short(runs.mean(sent_again))
    ));
    finding.tables.push(basic.table("Figure 9: KB retransmitted by the source, basic TCP"));
    finding.tables.push(ebsn.table("Figure 9: KB retransmitted by the source, EBSN"));
    let longest = ebsn.lines().pop();
    let longest = longest.map(|line| Curve { name: format!("EBSN, {}", line.name), ..line });
    let none = SIZES.map(|size| (f64::from(size), 0.0));
    let none = published_line("published: none with EBSN".to_owned(), none);
    finding.figures.push(basic.chart(
        "Figure 9: retransmitted by the source, wide area",
        "retransmitted (KB)",
        &longest.into_iter().chain([none]).collect::<Vec<_>>(),
        "100 KB file. Basic TCP for each bad period, and EBSN for the longest.",
    ));
    Ok(())
}
