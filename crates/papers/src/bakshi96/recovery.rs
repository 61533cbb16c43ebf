//! Figures 8 and 9 (5.1): EBSN over the wide area, and retransmissions of the source.

use lasthop_proto::event::Cause;
use lasthop_report::model::Table;
use lasthop_report::plot::LineSeries;
use lasthop_trace::stats::Summary;

use super::size::{Sweep, bounds};
use super::{BAD, CLAIM, SIZES, Scheme, WAN, many, packet_size, published, rises, sent_again, wan};
use crate::measure::{dropped, kbps};
use crate::table::{row, table};
use crate::{Bench, Bound, Claim, Finding, Interrupted, Runs, short};

/// Alternative backoffs, to show the effect of the assumed one. A backoff whose first limit is its last does not grow.
pub(super) const BACKOFFS: [(&str, &[&str]); 6] = [
    ("0 to 100 ms", &["local-recovery.backoff=100ms", "local-recovery.backoff-max=100ms"]),
    ("0 to 400 ms", &["local-recovery.backoff=400ms", "local-recovery.backoff-max=400ms"]),
    ("50 doubling to 800 ms (assumed)", &[]),
    ("0 to 800 ms", &["local-recovery.backoff=800ms", "local-recovery.backoff-max=800ms"]),
    ("0 to 3.2 s", &["local-recovery.backoff=3200ms", "local-recovery.backoff-max=3200ms"]),
    ("50 doubling to 800 ms, never given up", NEVER_GIVEN_UP),
];
const NEVER_GIVEN_UP: &[&str] = &["local-recovery.max-retransmits=100000"];

/// Packets dropped by the link layer in a run, in the direction of the data.
pub(super) fn given_up(runs: &Runs) -> Summary {
    runs.summary(dropped(Cause::LinkGaveUp))
}

/// A row for each backoff: throughput, source timeouts, dropped packets.
pub(super) fn sensitivity(
    title: &str,
    unit: &str,
    scale: f64,
    mut run: impl FnMut(&[&str]) -> Result<Runs, Interrupted>,
) -> Result<Table, Interrupted> {
    let mut rows =
        table(title, &format!("<back-off | {unit} | source time-outs | packets given up"));
    for (name, changes) in BACKOFFS {
        let runs = run(changes)?;
        let throughput = runs.summary(|m| kbps(m) / scale);
        rows.rows.push(row(&[&name, &throughput, &runs.timeouts(), &given_up(&runs)]));
    }
    Ok(rows)
}

pub(super) const F8: Claim = Claim {
    id: "B-F8",
    place: "5.1, Figure 8",
    setup: "as B-F7 with local recovery and EBSN",
    published: "throughput rises with packet size; 9.0 kb/s at 1536 B and 4 s (bound 12.8*10/14 = 9.14); \
            twice basic TCP",
    cost: 54,
    run: Some(f8),
    ..CLAIM
};

/// Figure 8: with EBSN throughput rises with the packet size.
fn f8(bench: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
    let ebsn = Sweep::run(bench, Scheme::Ebsn, kbps)?;
    let recovery = Sweep::run(bench, Scheme::Recovery, kbps)?;
    let runs = many(bench, Scheme::Ebsn, 1536, 4, &[])?;
    let with = runs.summary(kbps);
    let without = many(bench, Scheme::Basic, 1536, 4, &[])?.summary(kbps);
    finding.compare("EBSN, 1536 B, bad 4 s", with, "kb/s", 9.0);
    finding.measure("local recovery", recovery.at(1536, 4), "kb/s");
    finding.compare("basic TCP", without, "kb/s", 4.5);
    for bad in BAD {
        let row = ebsn.by_size(bad);
        finding.require(
            rises(row),
            format!(
                "with bad periods of {bad} s throughput rises with the packet size, from {} to {} kb/s, and no step \
                 falls by more than its intervals",
                short(row[0].mean),
                short(row[row.len() - 1].mean)
            ),
        );
    }
    finding.near("EBSN's 1536 B at 4 s in kb/s", with.mean, 9.0, 0.15);
    finding.above("EBSN over basic TCP there", with.mean / without.mean, 1.7 - 1e-9);
    if !bench.is_shown() {
        return Ok(());
    }
    let mut without_errors = |scheme: Scheme| {
        let mut changes = packet_size(1536);
        changes.extend(scheme.changes().iter().chain(&["errors=none"]).map(|c| (*c).to_owned()));
        Ok(bench.runs(WAN, &changes)?.mean(kbps))
    };
    let (clean, plain) = (without_errors(Scheme::Ebsn)?, without_errors(Scheme::Basic)?);
    finding.note(format!(
        "without errors stop-and-wait carries {} kb/s and the plain link {}; the rest of what EBSN lacks is the {} \
         packets a run that are given up after 14 attempts, for which a window of two packets has no three duplicate \
         ACKs but {} time-outs; the table by back-off has a row where nothing is given up",
        short(clean),
        short(plain),
        short(given_up(&runs).mean),
        short(runs.timeouts().mean)
    ));
    let basic = short(without.mean);
    finding.note(format!("basic TCP does better than published here, {basic} kb/s instead of 4.5"));
    finding.tables.push(ebsn.table("Figure 8: throughput with EBSN in kb/s"));
    finding.tables.push(recovery.table("Local recovery without EBSN, in kb/s"));
    let title = "EBSN at 1536 B and 4 s by the back-off";
    let by_backoff =
        sensitivity(title, "kb/s", 1.0, |more| wan(bench, Scheme::Ebsn, 1536, 4, more))?;
    finding.tables.push(by_backoff);
    finding.figures.push(ebsn.chart(
        "Figure 8: EBSN, wide area",
        "throughput (kb/s)",
        &published(&[(4, 1536.0, 9.0)]),
        &format!("Bands are 95 % confidence intervals. {}", bounds()),
    ));
    finding.figures.push(recovery.chart(
        "Local recovery without EBSN, wide area",
        "throughput (kb/s)",
        &[],
        "For comparison; the paper has no such figure.",
    ));
    Ok(())
}

pub(super) const F9: Claim = Claim {
    id: "B-F9",
    place: "5.1, Figure 9",
    setup: "data retransmitted by the source in B-F7 and B-F8",
    published: "basic: grows with packet size and bad period; EBSN: none",
    run: Some(f9),
    ..CLAIM
};

/// Figure 9: retransmissions of the source.
fn f9(bench: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
    let basic = Sweep::run(bench, Scheme::Basic, sent_again)?;
    let ebsn = Sweep::run(bench, Scheme::Ebsn, sent_again)?;
    for (name, sweep, given) in [("basic TCP", &basic, None), ("EBSN", &ebsn, Some(0.0))] {
        for (size, bad) in [(128, 4), (1536, 1), (1536, 4)] {
            let label = format!("{name}, {size} B, bad {bad} s");
            finding.compare(label, sweep.at(size, bad), "KB", given);
        }
    }
    for bad in BAD {
        let row = basic.by_size(bad);
        let (first, last) = (short(row[0].mean), short(row[row.len() - 1].mean));
        let text = format!(
            "basic TCP sends more again with larger packets at {bad} s, from {first} to {last} KB"
        );
        finding.require(rises(row), text);
    }
    let not = SIZES.iter().filter(|size| !rises(&basic.by_bad(**size)));
    let (sizes, not) =
        (not.clone().count(), not.map(u32::to_string).collect::<Vec<_>>().join(", "));
    let longer = "more again with longer bad periods at";
    let text = match not.as_str() {
        "" => format!("basic TCP sends {longer} every size"),
        sizes => format!("basic TCP does not send {longer} {sizes} B"),
    };
    let what = "packet sizes at which longer bad periods do not cost more";
    finding.judge(what, sizes as f64, Bound::AtMost(0.0), text);
    let all = BAD.iter().flat_map(|bad| {
        ebsn.by_size(*bad).iter().zip(SIZES).map(move |(summary, size)| (summary.mean, size, *bad))
    });
    let (most, size, bad) = all.max_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or_default();
    let what = "the most that EBSN's source sends again, in % of the file";
    finding.below(format!("{what} ({size} B at {bad} s),"), most, 1.0);
    if !bench.is_shown() {
        return Ok(());
    }
    let runs = wan(bench, Scheme::Ebsn, size, bad, &[])?;
    let stubborn = wan(bench, Scheme::Ebsn, size, bad, NEVER_GIVEN_UP)?;
    finding.note(format!(
        "the link layer gives up {} packets a run there, and the source times out {} times: some of the \
         exponential bad periods outlast all attempts. Where nothing is ever given up the \
         source sends {} KB again",
        short(given_up(&runs).mean),
        short(runs.timeouts().mean),
        short(stubborn.mean(sent_again))
    ));
    finding.tables.push(basic.table("Figure 9: KB sent again by the source, basic TCP"));
    finding.tables.push(ebsn.table("Figure 9: KB sent again by the source, EBSN"));
    let longest = ebsn.lines().pop();
    let longest = longest.map(|line| LineSeries { name: format!("EBSN, {}", line.name), ..line });
    finding.figures.push(basic.chart(
        "Figure 9: sent again by the source, wide area",
        "sent again (KB)",
        longest.as_slice(),
        "100 KB file. Basic TCP for each bad period, and EBSN for the longest.",
    ));
    Ok(())
}
