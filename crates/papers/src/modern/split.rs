//! Yuan, Rossman and Winstein 2025, Figure 1: connection splitting with CUBIC and versions of BBR.

use lasthop_observe::metrics::RunMetrics;

use super::TOLERANCE;
use crate::figure::{bar, bars, published_bar};
use crate::table::{row, table};
use crate::{Bench, Bound, Estimate, Finding, Interrupted, Runs};

const PATH: &str = include_str!("split.toml");

const SENDERS: [(&str, &str); 3] = [("CUBIC", "cubic"), ("BBR 1", "bbr"), ("BBR 3", "bbr3")];

/// A network of the figure: name, rate in Mb/s, delays of both segments in ms, losses of both in percent, and the
/// published utilization for each sender, split and from end to end.
type Network = (&'static str, u32, [u32; 2], [u32; 2], [[f64; 2]; 3]);

const NETWORKS: [Network; 3] = [
    (
        "20 Mb/s, 1 ms 4 %, 100 ms 0 %",
        20,
        [1, 100],
        [4, 0],
        [[0.61, 0.02], [0.87, 0.80], [0.86, 0.20]],
    ),
    (
        "20 Mb/s, 1 ms 2 %, 100 ms 2 %",
        20,
        [1, 100],
        [2, 2],
        [[0.04, 0.02], [0.82, 0.79], [0.61, 0.15]],
    ),
    (
        "40 Mb/s, 40 ms 2 %, 40 ms 2 %",
        40,
        [40, 40],
        [2, 2],
        [[0.03, 0.01], [0.85, 0.79], [0.52, 0.05]],
    ),
];

/// Goodput in Mb/s.
fn goodput(m: &RunMetrics) -> f64 {
    m.aggregate_throughput * 8.0 / 1e6
}

fn changes(network: &Network, tcp: &str, agent: &str) -> Vec<String> {
    let (_, rate, [first, second], [lost, air], _) = network;
    let megabytes = rate * 20 / 8;
    // The product of rate and delay of the whole path.
    let queue = rate * 1000 * 2 * (first + second) / 12_000;
    vec![
        format!("host.server.tcp={tcp}"),
        format!("agent={agent}"),
        format!("proxy.split-tcp={tcp}"),
        format!("transfer.bytes={megabytes}MB"),
        format!("first.link.rate={rate}mbit"),
        format!("second.radio.rate={rate}mbit"),
        format!("first.link.delay={first}ms"),
        format!("second.radio.delay={second}ms"),
        format!("first.link.queue={queue}p"),
        format!("second.radio.queue={queue}p"),
        format!("first.link.loss={lost}%"),
        format!("second.errors.p={air}%"),
    ]
}

/// The factor of splitting.
fn factor(split: &Runs, direct: &Runs) -> Estimate {
    split.ratio(direct, goodput)
}

pub(super) fn split(bench: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
    let mut rows = table(
        "Goodput by rate",
        "<network | <sender | split | published | end to end | published | factor",
    );
    for network in &NETWORKS {
        let (name, rate, _, _, published) = network;
        let sets: Vec<Vec<String>> = SENDERS
            .iter()
            .flat_map(|(_, tcp)| ["split", "none"].map(|agent| changes(network, tcp, agent)))
            .collect();
        let all = bench.each(PATH, &sets, bench.seeds)?;
        let mut factors = Vec::new();
        let mut groups = Vec::new();
        for ((sender, _), (runs, figure)) in SENDERS.iter().zip(all.chunks(2).zip(published)) {
            let used =
                |runs: &Runs| Estimate::from(runs.summary(goodput)).scaled(1.0 / f64::from(*rate));
            let both = [used(&runs[0]), used(&runs[1])];
            for ((way, of), given) in ["split", "end to end"].iter().zip(both).zip(figure) {
                let case = format!("{name}, {sender}, {way}");
                finding.compare(&case, of, "of the rate", *given);
                // Bars of half of the link and more are legible to a few percent.
                if *given >= 0.5 {
                    finding.near(format!("{case}, of the rate,"), of, *given, TOLERANCE);
                }
            }
            let factor = factor(&runs[0], &runs[1]);
            rows.rows
                .push(row(&[name, sender, &both[0], &figure[0], &both[1], &figure[1], &factor]));
            factors.push(factor);
            groups.push((
                (*sender).to_owned(),
                vec![
                    bar(both[0]),
                    published_bar(figure[0]),
                    bar(both[1]),
                    published_bar(figure[1]),
                ],
            ));
        }
        let [cubic, first, third] = factors[..] else { continue };
        let quantity = |sender: &str| format!("{name}: factor of splitting with {sender}");
        finding.below(quantity("BBR 1"), first, 1.5);
        finding.require_bound(quantity("BBR 3"), third, Bound::AtLeast(3.0));
        match network.3 {
            [_, 0] => finding.require_bound(quantity("CUBIC"), cubic, Bound::AtLeast(3.0)),
            _ => finding.above(format!("{} above CUBIC's", quantity("BBR 3")), third, cubic.high()),
        }
        let series =
            [("split", false), ("published", true), ("end to end", false), ("published", true)];
        let title = format!("ATC 2025, Figure 1: {name}");
        finding.figures.push(bars(
            &title,
            "goodput by rate",
            series,
            groups,
            crate::figure::WHISKERS,
        ));
    }
    finding.tables.push(rows);
    Ok(())
}
