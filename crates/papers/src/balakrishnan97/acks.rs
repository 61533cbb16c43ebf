//! Sections 4.3 and 4.4.1: ACK congestion control and ACK filtering over four return channels, and traffic both ways.

use lasthop_proto::event::Cause;
use lasthop_report::model::{Column, Measured, Table};
use lasthop_report::plot::{Bar, BarChart, BarGroup, BarSeries, Curve, Curves, Pen};
use lasthop_trace::metrics::RunMetrics;
use lasthop_trace::stats::Summary;

use super::simulations::{figure_5, mbps};
use crate::bakshi96::figure;
use crate::bench::{Bench, Interrupted, Runs};
use crate::finding::{Finding, short};
use crate::west97::Experiment;

/// The experiment for the claim `id`.
pub fn experiment(id: &str) -> Option<Experiment> {
    Some(match id {
        "D-T1" => table_1,
        "D-2WAY" => both_ways,
        _ => return None,
    })
}

/// What is done about ACKs: a name, and what is set for it.
type Scheme = (&'static str, &'static [&'static str]);

/// Both ends take part in ACK congestion control.
const SERVER_ACC: &str = "host.server.acc=true";
const HOME_ACC: &str = "host.home.acc=true";
/// The sender's part in the face of sparse ACKs.
const ADAPTED: &str = "host.server.sender-adaptation=true";
/// The router of the return channel detects congestion early.
const RED: &str =
    r#"path.return.link.red={ min = 4, max = 7, max-p = 1.0, weight = 0.25, typical = "40B" }"#;

/// The columns of Table 1.
const SCHEMES: [Scheme; 3] = [
    ("Reno", &[]),
    ("ACC", &[ADAPTED, SERVER_ACC, HOME_ACC, "path.return.link.discipline-left=red", RED]),
    ("AF", &[ADAPTED, "path.return.link.discipline-left=ack-filter"]),
];

/// The rows of Table 1: a return channel, what is set for it, and what was published in Mb/s.
#[expect(clippy::approx_constant, reason = "6.28 Mb/s was published")]
const CHANNELS: [(&str, &[&str], [f64; 3]); 4] = [
    ("9.6 kb/s", &["path.return.link.rate-left=9.6kbit"], [1.78, 3.64, 6.28]),
    (
        "9.6 kb/s C",
        &["path.return.link.rate-left=9.6kbit", "path.return.link.header-compression=vj"],
        [6.67, 7.69, 7.93],
    ),
    ("28.8 kb/s", &["path.return.link.rate-left=28.8kbit"], [4.35, 7.58, 9.49]),
    (
        "28.8 kb/s C",
        &["path.return.link.rate-left=28.8kbit", "path.return.link.header-compression=vj"],
        [9.78, 9.77, 9.88],
    ),
];

/// Mb/s of whole packets: the paper's 9.88 of 10 Mb/s leave no room for headers of 40 in 1000 bytes.
fn packets_mbps(m: &RunMetrics) -> f64 {
    mbps(m) * 1000.0 / 960.0
}

fn cell(
    bench: &mut Bench<'_>,
    channel: usize,
    scheme: Scheme,
    more: &[&str],
) -> Result<Runs, Interrupted> {
    bench.runs(&figure_5(), &[CHANNELS[channel].1, scheme.1, more].concat())
}

/// Segments that an ACK which reached the sender acknowledged, on average.
fn per_ack(m: &RunMetrics) -> f64 {
    let acks: u64 = m
        .stages
        .iter()
        .filter(|s| s.name == "return")
        .map(|s| s.packets - s.data_packets)
        .sum::<u64>();
    // The stage counts both directions; forward there are only data and the handshake.
    m.sum(|f| f.delivered) as f64 / 960.0 / acks.max(1) as f64
}

/// ACKs that found the queue of the return channel full.
fn lost_acks(m: &RunMetrics) -> f64 {
    m.sum(|f| f.dropped_acks.get(Cause::QueueFull)) as f64
}

/// 4.3, Table 1.
fn table_1(bench: &mut Bench<'_>) -> Result<Finding, Interrupted> {
    let mut finding = Finding::new(bench.seeds);
    let mut groups = Vec::new();
    let mut rows = Vec::new();
    let mut causes = Vec::new();
    for (i, (channel, _, published)) in CHANNELS.iter().enumerate() {
        let mut means = Vec::new();
        let mut row = vec![(*channel).to_owned()];
        let mut bars = Vec::new();
        for (scheme, published) in SCHEMES.into_iter().zip(published) {
            let runs = cell(bench, i, scheme, &[])?;
            let measured = runs.summary(packets_mbps);
            let label = format!("{channel}, {}", scheme.0);
            finding.measured.push(Measured::new(
                label.clone(),
                &measured,
                "Mb/s",
                Some(*published),
            ));
            finding.within(
                &format!("{label} in Mb/s"),
                measured.mean,
                0.8 * published,
                1.2 * published,
            );
            means.push(measured.mean);
            row.extend([lasthop_report::number::summary(&measured), format!("{published:.2}")]);
            bars.push(Some(Bar { value: measured.mean, ci: half_width(&measured) }));
            bars.push(Some(Bar { value: *published, ci: 0.0 }));
            causes.push(vec![
                label,
                short(runs.summary(per_ack).mean),
                short(runs.summary(lost_acks).mean),
                short(runs.summary(|m| m.sum(|f| f.marked_acks) as f64).mean),
                short(runs.summary(|m| m.sum(|f| f.dropped.get(Cause::QueueFull)) as f64).mean),
                short(runs.summary(|m| m.sum(|f| f.timeouts) as f64).mean),
                short(1000.0 * runs.summary(|m| m.flows[0].srtt.mean_s).mean),
            ]);
        }
        let pairs = [(2, 1), (1, 0)];
        for (better, worse) in pairs {
            finding.require(
                means[better] >= 0.99 * means[worse],
                format!(
                    "{channel}: {} has {} Mb/s and {} has {}, wanted in this order",
                    SCHEMES[better].0,
                    short(means[better]),
                    SCHEMES[worse].0,
                    short(means[worse]),
                ),
            );
        }
        rows.push(row);
        groups.push(BarGroup { label: (*channel).to_owned(), bars });
    }
    let title = "Table 1: throughput by return channel";
    let mut columns = vec![Column::text("return channel")];
    for (name, _) in SCHEMES {
        columns.push(Column::number(format!("{name}, Mb/s")));
        columns.push(Column::number("published"));
    }
    finding.tables.push(Table { title: title.to_owned(), columns, rows });
    finding.tables.push(Table {
        title: "What became of the ACKs and of the data".to_owned(),
        columns: vec![
            Column::text("case"),
            Column::number("packets per ACK"),
            Column::number("ACKs dropped"),
            Column::number("ACKs marked"),
            Column::number("data dropped"),
            Column::number("time-outs"),
            Column::number("mean srtt, ms"),
        ],
        rows: causes,
    });
    let series = SCHEMES.iter().flat_map(|(name, _)| {
        let series = |name: String, published| BarSeries { name, published };
        [series((*name).to_owned(), false), series(format!("{name}, published"), true)]
    });
    let chart = BarChart {
        title: title.to_owned(),
        y_label: "throughput (Mb/s)".to_owned(),
        series: series.collect(),
        groups,
    };
    finding.figures.push(figure(&chart.plot(), title, "Published values stand behind in grey."));
    progress(bench, &mut finding, 0)?;
    Ok(finding)
}

fn half_width(summary: &Summary) -> f64 {
    summary.high() - summary.mean
}

/// The first seconds of the three transfers over a channel.
fn progress(bench: &Bench<'_>, finding: &mut Finding, channel: usize) -> Result<(), Interrupted> {
    let mut curves = Vec::new();
    for scheme in SCHEMES {
        if bench.stopped() {
            return Err(Interrupted);
        }
        let changes = [CHANNELS[channel].1, scheme.1, &["horizon=10s"]].concat();
        let recording = bench.record(&figure_5(), &changes, 1);
        let acked = recording.series.first().map(|s| s.acked.clone()).unwrap_or_default();
        curves.push(Curve {
            name: scheme.0.to_owned(),
            pen: Pen::Line,
            points: acked.iter().map(|(at, to)| (*at, *to as f64 / 960.0, 0.0)).collect(),
        });
    }
    let title = format!("The first ten seconds with a return channel of {}", CHANNELS[channel].0);
    let plot = Curves {
        title: title.clone(),
        x_label: "time (s)".to_owned(),
        y_label: "packets acknowledged".to_owned(),
        log_x: false,
        curves,
    };
    finding.figures.push(figure(&plot.plot(), &title, "Seed 1. Each step is an ACK."));
    Ok(())
}

/// The way back carries a transfer as well.
const BOTH: &str = r#"transfer=[{ from = "server", to = "home", bytes = "unlimited" }, { from = "home", to = "server", bytes = "unlimited", start = "5s" }]"#;

/// What 4.4.1 compares, and its parts.
const TWO_WAY: [Scheme; 4] = [
    ("FIFO", &[]),
    ("acks-first", &[ADAPTED, "path.return.link.discipline-left=acks-first"]),
    ("ACC", &[ADAPTED, SERVER_ACC, HOME_ACC, "path.return.link.discipline-left=red", RED]),
    (
        "acks-first with ACC",
        &[ADAPTED, SERVER_ACC, HOME_ACC, "path.return.link.discipline-left=red+acks-first", RED],
    ),
];

/// Throughput of flow `i` in kb/s of payload, from its start to the end.
fn kbps(m: &RunMetrics, i: usize) -> f64 {
    m.flows.get(i).map_or(f64::NAN, |f| f.delivered as f64 * 8.0 / 1000.0 / m.end_s)
}

/// 4.4.1: two-way traffic.
fn both_ways(bench: &mut Bench<'_>) -> Result<Finding, Interrupted> {
    let mut finding = Finding::new(bench.seeds);
    let mut rows = Vec::new();
    let mut means = Vec::new();
    for scheme in TWO_WAY {
        let runs = bench.runs(&figure_5(), &[scheme.1, &[BOTH]].concat())?;
        let (there, back) = (runs.summary(|m| kbps(m, 0)), runs.summary(|m| kbps(m, 1)));
        for (direction, measured) in [("forward", &there), ("reverse", &back)] {
            let label = format!("{}, {direction}", scheme.0);
            finding.measured.push(Measured::new(label, measured, "kb/s", None));
        }
        let cell = lasthop_report::number::summary;
        rows.push(vec![
            scheme.0.to_owned(),
            cell(&there),
            cell(&back),
            short(runs.summary(|m| m.flows[0].dropped_acks.get(Cause::QueueFull) as f64).mean),
            short(runs.summary(|m| m.flows[0].marked_acks as f64).mean),
            short(runs.summary(|m| m.flows[0].timeouts as f64).mean),
        ]);
        means.push((there.mean, back.mean));
    }
    let (fifo, both) = (means[0], means[3]);
    finding.require(
        both.0 >= 2.0 * fifo.0,
        format!("forward over FIFO's is {}, wanted at least 2", short(both.0 / fifo.0)),
    );
    finding.require(
        both.1 >= 0.6 * fifo.1,
        format!("reverse over FIFO's is {}, wanted at least 0.6", short(both.1 / fifo.1)),
    );
    finding.tables.push(Table {
        title: "Transfers both ways, 28.8 kb/s on the way back".to_owned(),
        columns: vec![
            Column::text("return router"),
            Column::number("forward, kb/s"),
            Column::number("reverse, kb/s"),
            Column::number("ACKs dropped"),
            Column::number("ACKs marked"),
            Column::number("forward time-outs"),
        ],
        rows,
    });
    Ok(finding)
}

/// What the paper leaves open.
pub(super) const ASSUMED: &[(&str, &str)] = &[
    (
        "Server, two routers, client: 10 Mb/s everywhere but on the way back between the routers, 1 ms on the outer lines, \
         5 ms forward and 50 ms back between the routers.",
        "Figure 5 is not in the text. This is the topology of the scripts that the authors published with their simulator \
         (ns, tcl/ex/asym). A line here has one delay for both directions; what counts for TCP is the sum.",
    ),
    (
        "Buffers of 10 packets are those of the routers. The hosts' own interfaces hold a whole window.",
        "4.3 says \"the buffer size at each router\".",
    ),
    (
        "Throughput of Table 1 counts packets of 1000 bytes.",
        "9.88 of 10 Mb/s cannot be payload beside headers of 40 bytes; packets of the simulator had no headers of their own.",
    ),
    (
        "The router marks from 4 packets on and all from 7 on, with a weight of 0.25 and a probability that rises to 1 in \
         between. Idle time counts in ACKs of 40 bytes.",
        "4.2.1 names RED without numbers. 0.4 and 0.7 of the buffer, 0.25 and 1 are those of the published script that has \
         this topology and buffer.",
    ),
    (
        "There are no timestamps: the receiver tells round trips by the left edge that the option with the sender's window \
         carries.",
        "4.2.1 takes timestamps, but 12 bytes of them contradict the ACKs of 40 and 6 bytes of 4.3, and RFC 1144 does not \
         compress them. The option's 12 bytes go with the data.",
    ),
    (
        "C is RFC 1144 as it is: ACKs mostly take 6 bytes, and a mark sends the whole header of that ACK and of the next.",
        "4.3 sets the size to 6 bytes. RFC 1144 knows nothing of marks.",
    ),
    (
        "Sender adaptation: the window opens by bytes acknowledged; three segments leave at once, more at the rate of a \
         window in a round trip.",
        "4.3 names the techniques. Three is the burst of the published scripts.",
    ),
    (
        "In 4.4.1 the way back has 28.8 kb/s without compression, the reverse transfer starts after 5 s, and both run to 50 s.",
        "The rate is the default of the published script, which starts the reverse transfer between 5 and 10 s.",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::scenario;

    #[test]
    fn every_case_is_a_scenario() {
        for scheme in SCHEMES {
            for (_, channel, _) in CHANNELS {
                let scenario = scenario(&figure_5(), &[channel, scheme.1].concat());
                assert_eq!(scenario.path.len(), 4);
            }
        }
        for scheme in TWO_WAY {
            assert_eq!(scenario(&figure_5(), &[scheme.1, &[BOTH]].concat()).transfers.len(), 2);
        }
    }

    /// Each mechanism against its absence, same scenario and seeds.
    #[test]
    fn what_is_swapped_for_its_absence_changes_what_it_claims_to_change() {
        let mut bench = Bench::new(2, &());
        let mut cell = |scheme: Scheme, more: &[&str]| cell(&mut bench, 0, scheme, more).unwrap();
        let marks = |m: &RunMetrics| m.sum(|f| f.marked_acks) as f64;
        let acc = cell(SCHEMES[1], &[]);
        assert!(acc.summary(marks).mean > 0.0);
        assert!(acc.summary(per_ack).mean > 5.0, "{}", acc.summary(per_ack).mean);
        // Without marks the receiver has no reason to hold ACKs back, and they are dropped.
        let dropped = |runs: &Runs| runs.summary(lost_acks).mean;
        let unmarked = cell(("plain queue", &[ADAPTED, SERVER_ACC, HOME_ACC]), &[]);
        assert_eq!(unmarked.summary(marks).mean, 0.0);
        assert!(dropped(&unmarked) > 10.0 * dropped(&acc), "{}", dropped(&unmarked));
        // Without the receiver's part the marks are in vain: they are not even possible.
        let deaf = cell(SCHEMES[1], &["host.home.acc=false"]);
        assert_eq!(deaf.summary(marks).mean, 0.0);
        // With sparse ACKs a sender that is not adapted opens its window slowly: that shows in the first seconds. Its
        // bursts do no harm here, since its own line is no faster than the next.
        let window = |runs: &Runs| runs.summary(packets_mbps).mean;
        let filtered = cell(SCHEMES[2], &["horizon=5s"]);
        let bursty = cell(SCHEMES[2], &["horizon=5s", "host.server.sender-adaptation=false"]);
        assert!(window(&filtered) > 1.2 * window(&bursty), "{}", window(&bursty));
    }
}
