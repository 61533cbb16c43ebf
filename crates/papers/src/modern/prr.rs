//! RFC 6937 3.1: how PRR and RFC 6675 answer each ACK of a recovery.

use std::fmt::Write as _;

use lasthop_report::plot::{Curve, Pen};

use crate::figure::{Axes, curves};
use crate::table::{row, table};
use crate::{Bench, Bound, Finding, Interrupted};

const LINK: &str = include_str!("prr.toml");

/// From one ACK to the next, in seconds.
const APART: f64 = 1040.0 * 8.0 / 8e6;
/// Segments of the flight.
const FLIGHT: usize = 20;

/// An example: algorithm, sender, packets that are lost, first ACK, and the ACK that each segment answers.
type Example = (&'static str, &'static str, &'static str, usize, &'static [usize]);

const EXAMPLES: [Example; 4] = [
    ("PRR, one loss", "rack", "1", 1, &[1, 2, 3, 5, 7, 9, 11, 13, 15, 18, 19]),
    ("RFC 6675, one loss", "sack", "1", 1, &[1, 2, 3, 12, 13, 14, 15, 16, 17, 18, 19]),
    ("PRR, 15 losses", "rack", "1-15", 15, &[15, 16, 17, 17, 18, 18, 19, 19]),
    ("RFC 6675, 15 losses", "sack", "1-15", 15, &[15, 16, 17, 17, 17, 17, 17, 17, 17, 18, 19]),
];

/// The number of segments sent on each ACK, from ACK 0 on.
fn answers(bench: &Bench<'_>, tcp: &str, lost: &str, first: usize) -> [u32; FLIGHT] {
    let changes = [format!("host.server.tcp={tcp}"), format!("losses.cross.drop-data={lost}")];
    let recording = bench.record(LINK, &changes, bench.first_seed);
    let sent = recording.series.first().map_or(&[][..], |series| &series.sent);
    // The flight leaves at once; everything later answers ACKs.
    let flight = sent.first().map_or(0.0, |sent| sent.at_s);
    let later: Vec<f64> =
        sent.iter().map(|sent| sent.at_s).filter(|at| *at > flight + 0.05).collect();
    let mut counts = [0; FLIGHT];
    for at in &later {
        let ack = first + ((at - later[0]) / APART).round() as usize;
        if let Some(count) = counts.get_mut(ack) {
            *count += 1;
        }
    }
    counts
}

/// ACKs with the segments sent on each: `17: 7` for seven segments.
fn list(counts: &[u32; FLIGHT]) -> String {
    let mut text = String::new();
    for (ack, count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
        let separator = if text.is_empty() { "" } else { ", " };
        let _ = match count {
            1 => write!(text, "{separator}{ack}"),
            count => write!(text, "{separator}{ack}: {count}"),
        };
    }
    text
}

/// Segments sent up to each ACK.
fn sums(counts: &[u32; FLIGHT]) -> Vec<(f64, f64, f64)> {
    let mut sum = 0;
    let point = |(ack, count): (usize, &u32)| {
        sum += count;
        (ack as f64, f64::from(sum), 0.0)
    };
    counts.iter().enumerate().map(point).collect()
}

pub(super) fn prr(bench: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
    finding.runs = 1;
    let mut rows = table(
        "ACKs on which segments are sent, one segment unless a number follows",
        "<example | <published | <measured",
    );
    let mut drawn = Vec::new();
    for (name, tcp, lost, first, published) in EXAMPLES {
        bench.check_interrupt()?;
        let mut expected = [0; FLIGHT];
        published.iter().for_each(|ack| expected[*ack] += 1);
        let measured = answers(bench, tcp, lost, first);
        let different = measured.iter().zip(&expected).filter(|(a, b)| a != b).count();
        rows.rows.push(row(&[&name, &list(&expected), &list(&measured)]));
        let total = |counts: &[u32; FLIGHT]| f64::from(counts.iter().sum::<u32>());
        finding.compare(
            format!("{name}: segments sent in the round trip"),
            total(&measured),
            "",
            total(&expected),
        );
        let text = format!("{name}: {different} ACKs have another answer, wanted none");
        finding.judge(
            format!("{name}: ACKs with another answer"),
            different as f64,
            Bound::AtMost(0.0),
            text,
        );
        if first == 1 {
            let curve = |name: String, pen, counts| Curve { name, pen, points: sums(counts) };
            drawn.push(curve(name.to_owned(), Pen::Steps, &measured));
            drawn.push(curve(format!("published: {name}"), Pen::Points, &expected));
        }
    }
    finding.tables.push(rows);
    finding.note(
        "The diagrams follow from the algorithms with a threshold of 11, half of the 22 segments in flight after limited \
         transmit. The text gives 10, half of 20, and RFC 5681 does not count limited transmit: ours is 10",
    );
    let axes = Axes { x: "returning ACK", y: "segments sent", log_x: false };
    let caption = "The first of 20 segments is lost. RFC 6675 is silent for half a window.";
    finding.figures.push(curves("RFC 6937, 3.1: a recovery", axes, drawn, caption));
    Ok(())
}
