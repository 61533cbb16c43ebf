//! The numbers of a plot as CSV (RFC 4180).

use std::fmt::Write;

use lasthop_observe::sequence::Series;

use super::{Chart, Data};
use crate::model::Table;

impl Data {
    /// A header line, then a row for each mark or point.
    pub fn csv(&self) -> String {
        match self {
            Data::Sequence { series, .. } => sequence(series),
            Data::Chart { chart, .. } => curves(chart),
            Data::Table(table) => words(table),
        }
    }
}

fn sequence(series: &Series) -> String {
    let mut rows: Vec<(f64, &str, u64, u64)> = Vec::new();
    rows.extend(series.sent.iter().map(|s| (s.at_s, s.kind.name(), s.start, s.end)));
    rows.extend(series.lost.iter().map(|l| (l.at_s, "lost", l.start, l.end)));
    let mut acked = 0;
    for (at, to) in &series.acked {
        rows.push((*at, "ack", acked, *to));
        acked = *to;
    }
    rows.extend(series.timeouts.iter().map(|at| (*at, "expired", 0, 0)));
    for window in &series.windows {
        rows.push((window.at_s, "cwnd", 0, u64::from(window.cwnd)));
        rows.push((window.at_s, "ssthresh", 0, u64::from(window.ssthresh)));
    }
    rows.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut text = "time_s,what,from_byte,to_byte\n".to_owned();
    for (at, kind, from, to) in rows {
        let _ = writeln!(text, "{at},{kind},{from},{to}");
    }
    text
}

fn curves(chart: &Chart) -> String {
    let mut text = format!("curve,{},value,half_interval_95,unit\n", cell(&chart.x_label));
    for (unit, curves) in &chart.panels {
        for curve in curves {
            for (x, y, spread) in &curve.points {
                let _ = writeln!(text, "{},{x},{y},{spread},{}", cell(&curve.name), cell(unit));
            }
        }
    }
    text
}

fn words(table: &Table) -> String {
    let line = |cells: &mut dyn Iterator<Item = &String>| {
        cells.map(|text| cell(text)).collect::<Vec<_>>().join(",") + "\n"
    };
    let mut text = line(&mut table.columns.iter().map(|column| &column.title));
    for row in &table.rows {
        text += &line(&mut row.iter());
    }
    text
}

/// A cell, quoted where RFC 4180 requires it.
fn cell(text: &str) -> String {
    if text.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Column;

    #[test]
    fn words_that_would_break_a_row_are_quoted() {
        let columns = [Column::text("what, \"how\""), Column::number("n")];
        let table = Table::new(columns, [vec!["two\nlines".to_owned(), "1".to_owned()]]);
        assert_eq!(words(&table), "\"what, \"\"how\"\"\",n\n\"two\nlines\",1\n");
    }
}
