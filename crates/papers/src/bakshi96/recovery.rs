//! Figures 8 and 9 (5.1): EBSN over the wide area, and what the source sends again.

use lasthop_report::model::{Column, Measured, Table};
use lasthop_trace::stats::Summary;

use super::size::{Sweep, bounds};
use super::{BAD, SIZES, Scheme, kbps, published, rises, sent_again, wan};
use crate::bench::{Bench, Interrupted, Runs};
use crate::finding::{Finding, short};

/// Limits of the back-off beside the one assumed: what that choice decides. A back-off that begins there does not grow.
pub(super) const BACKOFFS: [(&str, &[&str]); 6] = [
    ("0 to 100 ms", &["local-recovery.backoff=100ms", "local-recovery.backoff-max=100ms"]),
    ("0 to 400 ms", &["local-recovery.backoff=400ms", "local-recovery.backoff-max=400ms"]),
    ("50 doubling to 800 ms (assumed)", &[]),
    ("0 to 800 ms", &["local-recovery.backoff=800ms", "local-recovery.backoff-max=800ms"]),
    ("0 to 3.2 s", &["local-recovery.backoff=3200ms", "local-recovery.backoff-max=3200ms"]),
    ("50 doubling to 800 ms, never given up", &["local-recovery.max-retransmits=100000"]),
];

/// Packets that the link layer gave up in a run, in the direction of the data.
pub(super) fn given_up(runs: &Runs) -> Summary {
    let gave = lasthop_proto::event::Cause::LinkGaveUp;
    runs.summary(|m| m.sum(|f| f.dropped.get(gave)) as f64)
}

/// A row for each back-off: throughput, source time-outs, packets given up.
pub(super) fn sensitivity(
    title: &str,
    unit: &str,
    scale: f64,
    mut run: impl FnMut(&[&str]) -> Result<Runs, Interrupted>,
) -> Result<Table, Interrupted> {
    let mut rows = Vec::new();
    for (name, changes) in BACKOFFS {
        let runs = run(changes)?;
        rows.push(vec![
            name.to_owned(),
            lasthop_report::number::summary(&runs.summary(|m| kbps(m) / scale)),
            lasthop_report::number::summary(&runs.timeouts()),
            lasthop_report::number::summary(&given_up(&runs)),
        ]);
    }
    Ok(Table {
        title: title.to_owned(),
        columns: vec![
            Column::text("back-off"),
            Column::number(unit),
            Column::number("source time-outs"),
            Column::number("packets given up"),
        ],
        rows,
    })
}

/// Figure 8: with EBSN throughput rises with the packet size.
pub fn f8(bench: &mut Bench<'_>) -> Result<Finding, Interrupted> {
    let mut finding = Finding::new(bench.seeds);
    let ebsn = Sweep::run(bench, Scheme::Ebsn, kbps)?;
    let recovery = Sweep::run(bench, Scheme::Recovery, kbps)?;
    let basic = Sweep::run(bench, Scheme::Basic, kbps)?;
    let at = |sweep: &Sweep| *sweep.at(1536, 4);
    finding.measured.push(Measured::new("EBSN, 1536 B, bad 4 s", &at(&ebsn), "kb/s", Some(9.0)));
    finding.measured.push(Measured::new("local recovery", &at(&recovery), "kb/s", None));
    finding.measured.push(Measured::new("basic TCP", &at(&basic), "kb/s", Some(4.5)));
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
    finding.within("EBSN's 1536 B at 4 s in kb/s", at(&ebsn).mean, 9.0 * 0.85, 9.0 * 1.15);
    finding.above("EBSN over basic TCP there", at(&ebsn).mean / at(&basic).mean, 1.7 - 1e-9);
    let runs = wan(bench, Scheme::Ebsn, 1536, 4, &[])?;
    let size = super::packet_size(1536);
    let size: Vec<&str> = size.iter().map(String::as_str).collect();
    let mut without_errors = |scheme: Scheme| {
        let changes = [&size, scheme.changes(), &["errors=none"]].concat();
        Ok(bench.runs(super::WAN, &changes)?.summary(kbps))
    };
    let (clean, plain) = (without_errors(Scheme::Ebsn)?, without_errors(Scheme::Basic)?);
    finding.note(format!(
        "without errors stop-and-wait carries {} kb/s and the plain link {}; the rest of what EBSN lacks is the {} \
         packets a run that are given up after 14 attempts, for which a window of two packets has no three duplicate \
         ACKs but {} time-outs; the table by back-off has a row where nothing is given up",
        short(clean.mean),
        short(plain.mean),
        short(given_up(&runs).mean),
        short(runs.timeouts().mean)
    ));
    finding.note(format!(
        "basic TCP does better than published here, {} kb/s instead of 4.5",
        short(at(&basic).mean)
    ));
    finding.tables.push(ebsn.table("Figure 8: throughput with EBSN in kb/s"));
    finding.tables.push(recovery.table("Local recovery without EBSN, in kb/s"));
    finding.tables.push(sensitivity(
        "EBSN at 1536 B and 4 s by the back-off",
        "kb/s",
        1.0,
        |more| wan(bench, Scheme::Ebsn, 1536, 4, more),
    )?);
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
    Ok(finding)
}

/// Figure 9: what the source sends again.
pub fn f9(bench: &mut Bench<'_>) -> Result<Finding, Interrupted> {
    let mut finding = Finding::new(bench.seeds);
    let basic = Sweep::run(bench, Scheme::Basic, sent_again)?;
    let ebsn = Sweep::run(bench, Scheme::Ebsn, sent_again)?;
    for (sweep, scheme) in [(&basic, Scheme::Basic), (&ebsn, Scheme::Ebsn)] {
        for (size, bad) in [(128, 4), (1536, 1), (1536, 4)] {
            let given = (scheme == Scheme::Ebsn).then_some(0.0);
            let label = format!("{}, {size} B, bad {bad} s", scheme.name());
            finding.measured.push(Measured::new(label, sweep.at(size, bad), "KB", given));
        }
    }
    for bad in BAD {
        let row = basic.by_size(bad);
        finding.require(
            rises(row),
            format!(
                "basic TCP sends more again with larger packets at {bad} s, from {} to {} KB",
                short(row[0].mean),
                short(row[row.len() - 1].mean)
            ),
        );
    }
    let by_bad = SIZES.iter().filter(|size| !rises(&basic.by_bad(**size)));
    let not: Vec<String> = by_bad.map(u32::to_string).collect();
    finding.require(
        not.is_empty(),
        match not.is_empty() {
            true => "basic TCP sends more again with longer bad periods at every size".to_owned(),
            false => format!(
                "basic TCP does not send more again with longer bad periods at {} B",
                not.join(", ")
            ),
        },
    );
    let all = BAD.iter().flat_map(|bad| {
        ebsn.by_size(*bad).iter().zip(SIZES).map(move |(summary, size)| (summary.mean, size, *bad))
    });
    let worst = all.max_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or_default();
    finding.below(
        &format!(
            "the most that EBSN's source sends again, in % of the file ({} B at {} s),",
            worst.1, worst.2
        ),
        worst.0,
        1.0,
    );
    let runs = wan(bench, Scheme::Ebsn, worst.1, worst.2, &[])?;
    let stubborn = wan(bench, Scheme::Ebsn, worst.1, worst.2, BACKOFFS[5].1)?;
    finding.note(format!(
        "the link layer gives up {} packets a run there, and the source times out {} times: some of the \
         exponential bad periods outlast all attempts. Where nothing is ever given up the \
         source sends {} KB again",
        short(given_up(&runs).mean),
        short(runs.timeouts().mean),
        short(stubborn.summary(sent_again).mean)
    ));
    finding.tables.push(basic.table("Figure 9: KB sent again by the source, basic TCP"));
    finding.tables.push(ebsn.table("Figure 9: KB sent again by the source, EBSN"));
    let mut lines = ebsn.lines();
    for line in &mut lines {
        line.name = format!("EBSN, {}", line.name);
    }
    // The lines of EBSN carry their colours on: four for basic TCP, then these.
    let last = lines.pop().into_iter().collect::<Vec<_>>();
    finding.figures.push(basic.chart(
        "Figure 9: sent again by the source, wide area",
        "sent again (KB)",
        &last,
        "100 KB file. Basic TCP for each bad period, and EBSN for the longest.",
    ));
    Ok(finding)
}
