//! The testbed of sections 2 and 3, and how its protocols are put side by side.

use lasthop_report::model::{Column, Figure, Measured, Table};
use lasthop_report::number::summary as shown;
use lasthop_report::plot::{Bar, BarChart, BarGroup, BarSeries};
use lasthop_trace::metrics::RunMetrics;
use lasthop_trace::stats::Summary;

use crate::bench::{Bench, Interrupted, Runs};
use crate::finding::Finding;

/// Fixed host, Ethernet, base station, WaveLAN, mobile host.
pub(super) const LAN: &str = include_str!("lan.toml");
/// The same with 16 hops of Internet in front.
pub(super) const WAN: &str = include_str!("wan.toml");

/// One error per 64 KB on average, in both directions (3.1).
pub(super) const ERRORS: &str =
    r#"errors={ model = "exponential", mean = "64KiB", on = ["data", "ack"] }"#;

/// Throughput in Mb/s.
pub(super) fn mbps(m: &RunMetrics) -> f64 {
    m.aggregate_throughput * 8.0 / 1e6
}

/// Goodput on the wireless hop in percent.
pub(super) fn wireless(m: &RunMetrics) -> f64 {
    100.0 * m.wireless_goodput().unwrap_or(f64::NAN)
}

/// Goodput on the wired path in percent.
pub(super) fn wired(m: &RunMetrics) -> f64 {
    100.0 * m.wired_goodput().unwrap_or(f64::NAN)
}

/// A protocol of the comparison.
pub(super) struct Protocol {
    /// Its name in the paper.
    pub name: &'static str,
    /// What makes it up, beside the testbed.
    pub changes: &'static [&'static str],
    /// Published throughput in Mb/s, where the text names it.
    pub published: Option<f64>,
}

/// Its runs.
pub(super) struct Row {
    pub name: String,
    pub runs: Runs,
    pub published: Option<f64>,
}

impl Row {
    /// Mean throughput in Mb/s.
    pub fn mbps(&self) -> f64 {
        self.runs.summary(mbps).mean
    }

    /// Mean wireless goodput in percent.
    pub fn wireless(&self) -> f64 {
        self.runs.summary(wireless).mean
    }
}

/// Runs the protocols on `testbed` with `more` set.
pub(super) fn rows(
    bench: &mut Bench<'_>,
    testbed: &str,
    more: &[&str],
    protocols: &[Protocol],
) -> Result<Vec<Row>, Interrupted> {
    protocols
        .iter()
        .map(|p| {
            let changes = [more, p.changes].concat();
            let runs = bench.runs(testbed, &changes)?;
            Ok(Row { name: p.name.to_owned(), runs, published: p.published })
        })
        .collect()
}

/// The row of this name.
///
/// # Panics
///
/// If there is none: names are those of the experiment's own table.
pub(super) fn row<'r>(rows: &'r [Row], name: &str) -> &'r Row {
    match rows.iter().find(|row| row.name == name) {
        Some(row) => row,
        None => unreachable!("no row {name}"),
    }
}

/// How far `a` is above `b` in percent.
pub(super) fn above(a: &Row, b: &Row) -> f64 {
    100.0 * (a.mbps() / b.mbps() - 1.0)
}

/// Figures, a table and bars for the rows.
pub(super) fn show(finding: &mut Finding, title: &str, rows: &[Row]) {
    let mut table = Table {
        title: format!("{title} (published in brackets)"),
        columns: vec![
            Column::text(""),
            Column::number("Mb/s"),
            Column::number("wired goodput %"),
            Column::number("wireless goodput %"),
            Column::number("timer expirations"),
            Column::number("fast retransmissions"),
            Column::number("completed"),
        ],
        rows: Vec::new(),
    };
    for row in rows {
        let throughput = row.runs.summary(mbps);
        let label = format!("{}, {}", title, row.name);
        finding.measured.push(Measured::new(label, &throughput, "Mb/s", row.published));
        let published = row.published.map_or(String::new(), |p| format!(" ({p})"));
        table.rows.push(vec![
            row.name.clone(),
            format!("{}{published}", shown(&throughput)),
            shown(&row.runs.summary(wired)),
            shown(&row.runs.summary(wireless)),
            shown(&row.runs.timeouts()),
            shown(&row.runs.summary(|m| m.sum(|f| f.fast_retransmits) as f64)),
            format!("{} of {}", row.runs.complete(), row.runs.all().len()),
        ]);
    }
    finding.tables.push(table);
    finding.figures.push(bars(
        &format!("{title}: throughput"),
        "throughput, Mb/s",
        rows,
        &[("published", true), ("measured", false)],
        |row| {
            let published = row.published.map(|value| Bar { value, ci: 0.0 });
            vec![published, Some(bar(&row.runs.summary(mbps)))]
        },
    ));
    finding.figures.push(bars(
        &format!("{title}: goodput"),
        "goodput, %",
        rows,
        &[("wired", false), ("wireless", false)],
        |row| vec![Some(bar(&row.runs.summary(wired))), Some(bar(&row.runs.summary(wireless)))],
    ));
}

fn bar(summary: &Summary) -> Bar {
    Bar { value: summary.mean, ci: summary.ci95 }
}

fn bars(
    title: &str,
    y_label: &str,
    rows: &[Row],
    series: &[(&str, bool)],
    of: impl Fn(&Row) -> Vec<Option<Bar>>,
) -> Figure {
    let series = series
        .iter()
        .map(|(name, published)| BarSeries { name: (*name).to_owned(), published: *published });
    let chart = BarChart {
        title: title.to_owned(),
        y_label: y_label.to_owned(),
        series: series.collect(),
        groups: rows
            .iter()
            .map(|row| BarGroup { label: row.name.clone(), bars: of(row) })
            .collect(),
    };
    Figure {
        svg: chart.plot().inline(),
        title: title.to_owned(),
        caption: "Whiskers are 95 % confidence intervals.".to_owned(),
    }
}

/// What the paper leaves open about the testbed, the same for all of its experiments.
pub(super) const ASSUMPTIONS: &[(&str, &str)] = &[
    (
        "Hosts and base station run the TCP of the preset `freebsd-2.1`, with segments of 1400 bytes and socket buffers of \
         65,535 bytes where the paper names no other size; the window opens by a segment a window.",
        "3.1: all machines ran BSD/OS 2.0, which descends from 4.4BSD as FreeBSD 2.1 does, so that one preset stands for \
         the BSD of both testbeds. Whether BSD/OS still added 4.4BSD's eighth of a segment for each ACK is not known: \
         `--set host.fixed.growth=bsd` shows the difference, which is a seventh of Reno's throughput on the LAN and a \
         third over the WAN. Without window scaling 65,535 bytes can be advertised.",
    ),
    (
        "Each radio frame takes 1.08 ms beside its bits; the two stations take turns; 50 packets fit each queue.",
        "The one fitted constant: with it the error-free transfer reaches the published 1.5 Mb/s (2.2). 50 packets was \
         BSD's interface queue.",
    ),
    (
        "A transfer has 8,388,608 bytes, in section 2.2 as well, in segments of 1400 bytes; KB means 1024 bytes.",
        "3.1: 8 MByte and 1400 bytes. One error per 65,536 bytes is the caption of Figures 2 to 4.",
    ),
    (
        "Errors are exponential in the bytes sent, and damage the TCP checksum, so that IP carries a damaged packet to \
         the receiver. In section 3 they meet both directions, in section 2.2 only packets to the mobile host.",
        "3.1: the receiving entity changes the TCP checksum, in both directions. 2.2: the base station changed it before \
         forwarding the packet over the wireless link.",
    ),
    (
        "\"Every other packet\" means that each packet to the mobile host is lost with probability 1/2.",
        "Losing exactly every second one would lose every retransmission or none, by parity.",
    ),
    (
        "The 16 Internet hops are a link of 59 ms each way that carries 1.389 Mb/s and loses nothing: a round trip of \
         135 ms and at most 1.35 Mb/s of data, 23 KB in flight.",
        "The paper gives neither; its footnote says that there was hardly congestion. The two figures are those that we \
         know of the comparison that section 3 sums up (its reference 4), and were not checked against it.",
    ),
    (
        "LL is the snoop agent with duplicate ACKs let through, and LL-SACK the selective one: the link layer takes TCP's \
         acknowledgements for its own and retransmits on the first duplicate ACK or when its timer expires. The link \
         layers `ll` and `ll-sack` with acknowledgements of their own are shown beside them.",
        "Decided before any figure was seen: the comparison that section 3 sums up says that its LL used TCP's \
         acknowledgements, was the snoop agent without suppression, and kept its timers at 200 ms at least; 3.1.1 says \
         that what distinguishes LL-TCP-AWARE is that duplicate ACKs do not reach the sender.",
    ),
    (
        "The base station's timers are twice the smoothed local round trip, at least 200 ms, and local retransmissions go \
         before the packets in the queue. Both hold for all four agents.",
        "200 ms is known of the comparison; the rest is the description of snoop that section 2 sums up (its reference \
         6), which this paper does not repeat. Without priority (`--set path.base.priority=false`) LL-TCP-AWARE loses \
         4 % on the LAN to retransmissions that wait behind a full queue.",
    ),
    (
        "Selective acknowledgements are those of RFC 2018. The Reno sender offers them, so that the mobile host sends \
         them, and ignores them.",
        "The paper's were a part of SMART's. A base station learns the same from both over a link that keeps the order.",
    ),
    (
        "The mobile host obeys negative acknowledgements by sending the named ranges again at once, with its window as it \
         is; the base station names a hole when the first packet behind it has come.",
        "2.1 and west97 2.6 only say that there are negative acknowledgements for transfers from the mobile host.",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::scenario;

    /// What a user runs by name is the testbed that the claims are judged on.
    #[test]
    fn the_built_in_scenarios_are_this_testbed() {
        for (name, text) in [("daedalus-lan", LAN), ("daedalus-wan", WAN)] {
            let example = lasthop_scenario::example(name).unwrap();
            let built_in = scenario(example.text, &["agent=none"]);
            let ours = scenario(text, &[ERRORS, "host.fixed.sack=true", "host.mobile.sack=true"]);
            assert_eq!(built_in.path, ours.path, "{name}");
            assert_eq!(built_in.transfers, ours.transfers, "{name}");
            for (theirs, ours) in built_in.hosts.iter().zip(&ours.hosts) {
                assert_eq!(theirs.tcp, ours.tcp, "{name}");
            }
        }
    }

    /// The one constant that was fitted, and what the Internet of the WAN was chosen to give.
    #[test]
    fn the_error_free_transfer_reaches_what_was_published() {
        let mut bench = Bench::new(2, &());
        let mut ideal = |text| bench.runs(text, &[]).unwrap().summary(mbps).mean;
        let (lan, wan) = (ideal(LAN), ideal(WAN));
        assert!((1.48..1.52).contains(&lan), "{lan}");
        assert!((1.30..1.38).contains(&wan), "{wan}");
    }

    /// Each agent changes what it claims to change.
    #[test]
    fn without_the_mechanism_there_is_no_effect() {
        let mut bench = Bench::new(3, &());
        let sack = ["host.fixed.sack=true", "host.mobile.sack=true"];
        let mut at = |what: &[&str]| {
            let changes = [&[ERRORS][..], &sack, what].concat();
            let runs = bench.runs(LAN, &changes).unwrap();
            (
                runs.summary(mbps).mean,
                runs.summary(|m| m.sum(|f| f.dupacks) as f64).mean,
                runs.summary(|m| m.sum(|f| f.loss_notifications) as f64).mean,
            )
        };
        let hidden = at(&["agent=snoop"]);
        let passed = at(&["agent=snoop", "path.base.dup-acks=pass"]);
        assert!(passed.1 > 10.0 * (hidden.1 + 1.0) && passed.0 < hidden.0, "{hidden:?} {passed:?}");
        let from_mobile = r#"transfer={ from = "mobile", to = "fixed", bytes = 8388608 }"#;
        let nack = "host.mobile.nack=true";
        let told = at(&[from_mobile, nack, "agent=snoop-nack"]);
        let untold = at(&[from_mobile, nack, "agent=snoop"]);
        assert!(told.2 > 50.0 && untold.2 == 0.0, "{told:?} {untold:?}");
        assert!(told.0 > 1.3 * untold.0, "{told:?} {untold:?}");
    }
}
