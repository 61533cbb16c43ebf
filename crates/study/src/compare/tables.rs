//! A comparison as tables.

use lasthop_observe::stats::Summary;
use lasthop_report::model::{Column, Table};
use lasthop_report::number::{MBIT, RATE_UNIT, in_mbit, short};

use super::{Counts, PointRanking, Row};
use crate::ranking::Judgement;
use crate::tables::Words;

/// The explanation of the ranking.
pub const NOTE: &str = "\
Means over runs ± 95 % confidence interval. `times`: throughput divided by the baseline's, in runs of
the same seed; the interval excludes 1 if they differ, over all comparisons (Holm, 5 %): better, worse. The runs do not
distinguish schemes of one rank from its first. delay: mean of data packets from end to end. wireless goodput: full packets
needed / data packets sent over the radio.";

/// The terms of the tables.
pub(super) const fn words() -> Words {
    Words {
        noun: "scheme",
        description: "what it does",
        unit: RATE_UNIT,
        size: MBIT,
        judgement: "against baseline",
        digits: 2,
    }
}

/// The schemes of one point, the best first.
pub fn ranking(place: &PointRanking) -> Table {
    let radio = place.schemes.iter().any(|row| row.measured.wireless_goodput.is_some());
    let delays = place.schemes.iter().any(|row| row.measured.delay.is_some());
    let mut columns = vec![Column::number("timeouts")];
    columns.extend(delays.then(|| Column::number("delay ms")));
    columns.extend(radio.then(|| Column::number("wireless goodput")));
    let exchanges = place.schemes.iter().any(|row| row.measured.exchange_time_p50.is_some());
    let titles = if exchanges { &["median s", "95 % s", "packets"][..] } else { &[] };
    columns.extend(titles.iter().map(|title| Column::number(*title)));
    let moves = place.schemes.iter().any(|row| row.measured.handoff_pause.is_some());
    columns.extend(moves.then(|| Column::number("hand-off pause s")));
    columns.push(Column::text("to be changed"));
    words().ranking(&place.schemes, columns, |row| {
        let mut cells = vec![short((row.measured.timeouts.mean * 100.0).round() / 100.0)];
        let share = |s: Summary| format!("{:.3}", s.mean);
        let delay = |s: Summary| format!("{:.0}", s.mean * 1000.0);
        cells.extend(delays.then(|| row.measured.delay.map_or("–".to_owned(), delay)));
        cells.extend(radio.then(|| row.measured.wireless_goodput.map_or("–".to_owned(), share)));
        let Counts { exchange_time_p50, exchange_time_p95, exchange_packets, .. } = row.measured;
        let numbers = [exchange_time_p50, exchange_time_p95, exchange_packets];
        cells.extend(
            numbers.into_iter().filter(|_| exchanges).map(|n| n.map_or("–".to_owned(), share)),
        );
        cells.extend(moves.then(|| row.measured.handoff_pause.map_or("–".to_owned(), share)));
        cells.push(row.alternative.deployed());
        cells
    })
}

/// A rate in Mbit/s without the unit, for bounds and means over many points.
fn mbit(value: Option<f64>) -> String {
    let rate = |bytes| in_mbit(bytes).trim_end_matches(" Mbit/s").to_owned();
    value.map_or("–".to_owned(), rate)
}

/// The bounds at a point in one line, for the sender there.
pub fn theory(place: &PointRanking) -> String {
    let b = &place.bounds;
    let rate = |value: Option<f64>| value.map_or("–".to_owned(), in_mbit);
    let mut text = format!(
        "theory at {} % of the data packets lost and a round trip of {} ms: the link less its losses {}",
        short((b.loss * 1e4).round() / 100.0),
        short((b.rtt_s * 1e4).round() / 10.0),
        rate(b.capacity),
    );
    if b.mathis.is_some() || b.pftk.is_some() {
        text += &format!(", TCP end to end {} (Mathis), {} (PFTK)", rate(b.mathis), rate(b.pftk));
    }
    if b.cubic.is_some() {
        text += &format!(", CUBIC end to end {} (RFC 9438)", rate(b.cubic));
    }
    text
}

/// The names of all schemes, ordered by their mean over all points.
pub(super) fn order(points: &[PointRanking]) -> Vec<String> {
    let mut names: Vec<(usize, f64, String)> = Vec::new();
    for row in points.iter().flat_map(|place| &place.schemes) {
        let (rank, mean) = (row.standing.rank, row.standing.value.mean);
        match names.iter_mut().find(|(_, _, name)| name == row.name()) {
            Some((ranks, sum, _)) => {
                *ranks += rank;
                *sum += mean;
            }
            None => names.push((rank, mean, row.name().to_owned())),
        }
    }
    names.sort_by(|a, b| a.0.cmp(&b.0).then(b.1.total_cmp(&a.1)));
    names.into_iter().map(|(_, _, name)| name).collect()
}

/// Schemes by points of the axis.
pub fn matrix(axis: &str, points: &[PointRanking]) -> Table {
    let mut columns = vec![Column::text(format!("scheme \\ {axis}"))];
    columns.extend(points.iter().map(|p| Column::number(p.label.clone().unwrap_or_default())));
    columns.push(Column::text("to be changed"));
    let cell = |row: &Row| {
        let best = if row.standing.rank == 1 { "*" } else { "" };
        let sign = match row.standing.judgement {
            Judgement::Better => "+",
            Judgement::Worse => "-",
            _ => "",
        };
        format!("{best}{sign} {}", mbit(Some(row.standing.value.mean))).trim_start().to_owned()
    };
    let mut rows: Vec<Vec<String>> = Vec::new();
    for name in order(points) {
        let at = || points.iter().map(|place| place.scheme(&name));
        let deployed = at().flatten().next().map_or(String::new(), |r| r.alternative.deployed());
        let mut cells = vec![name.clone()];
        cells.extend(at().map(|row| row.map_or("–".to_owned(), cell)));
        cells.push(deployed);
        rows.push(cells);
    }
    for (name, of) in BOUNDS {
        // Formulas that do not apply to any point are omitted.
        if points.iter().all(|place| of(place).is_none()) {
            continue;
        }
        let mut cells = vec![name.to_owned()];
        cells.extend(points.iter().map(|place| mbit(of(place))));
        cells.push(String::new());
        rows.push(cells);
    }
    Table::new(columns, rows)
}

/// A bound: its name and its accessor.
type Bound = (&'static str, fn(&PointRanking) -> Option<f64>);

/// The bounds, as rows of tables and curves of plots.
pub(super) const BOUNDS: [Bound; 4] = [
    ("link less losses", |place| place.bounds.capacity),
    ("Mathis", |place| place.bounds.mathis),
    ("PFTK", |place| place.bounds.pftk),
    ("RFC 9438", |place| place.bounds.cubic),
];
