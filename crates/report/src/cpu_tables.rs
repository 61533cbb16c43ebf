//! CPU time of real TCP stacks as tables and figures.

use lasthop_observe::cpu_time::{Case, Change, Ends, Measurement, Wire};
use lasthop_observe::stats::Middle;

use crate::model::{Column, Figure, Table};
use crate::number;
use crate::plot::{LineChart, LineSeries, Point};

/// The options compared with the defaults, in the order of tables and legends.
const CHANGES: [Change; 5] =
    [Change::NoTimestamps, Change::NoSack, Change::NoScaling, Change::QuickAcks, Change::Again];

/// The wires on which the CPU time of each end is measured separately.
const PER_END: [Wire; 2] = [Wire::Plain, Wire::Offloads];

fn cell(value: Option<Middle>) -> String {
    value.map_or("–".to_owned(), |value| number::middle(&value))
}

pub fn tables(measured: &Measurement) -> Vec<Table> {
    [by_size(measured), together(measured)]
        .into_iter()
        .chain(PER_END.map(|wire| options(measured, wire)))
        .filter(|table| !table.rows.is_empty())
        .collect()
}

/// CPU seconds per gigabyte, by segment size.
fn by_size(measured: &Measurement) -> Table {
    let mut rows = Vec::new();
    for wire in PER_END {
        for mss in measured.sizes() {
            let case = Case { mss, wire, change: Change::Base };
            let mut cells = vec![wire.name().to_owned(), mss.to_string()];
            cells.extend(Ends::ALL.map(|ends| cell(measured.seconds_per_gb(case, ends))));
            let per_ack = measured.middle(case, |s| s.segments as f64 / s.acks.max(1) as f64);
            cells.push(per_ack.map_or("–".to_owned(), |m| number::short(m.median)));
            rows.push(cells);
        }
    }
    Table {
        title: "CPU seconds for a gigabyte, the kernel's defaults: median (95 % interval)"
            .to_owned(),
        columns: vec![
            Column::text("cable"),
            Column::number("MSS, bytes"),
            Column::number("sender"),
            Column::number("receiver"),
            Column::number("both"),
            Column::number("segments for an ACK"),
        ],
        rows,
    }
}

/// Both ends together: the sending thread does the receiver's work as well.
fn together(measured: &Measurement) -> Table {
    let both = |mss, wire| {
        let case = Case { mss, wire, change: Change::Base };
        measured.seconds_per_gb(case, Ends::Both)
    };
    let wires = [Wire::PlainTogether, Wire::Plain, Wire::Whole, Wire::Offloads];
    let rows = measured.sizes().into_iter().map(|mss| {
        let cells = wires.iter().map(|wire| cell(both(mss, *wire)));
        std::iter::once(mss.to_string()).chain(cells).collect()
    });
    Table {
        title: "Both ends in CPU seconds for a gigabyte, compared with cables that wake no thread"
            .to_owned(),
        columns: vec![
            Column::number("MSS, bytes"),
            Column::number(Wire::PlainTogether.name()),
            Column::number(Wire::Plain.name()),
            Column::number(Wire::Whole.name()),
            Column::number(Wire::Offloads.name()),
        ],
        rows: rows.collect(),
    }
}

/// The ratio of each option's CPU time to that of the defaults.
fn options(measured: &Measurement, wire: Wire) -> Table {
    let mut rows = Vec::new();
    for change in CHANGES {
        for mss in measured.sizes() {
            let case = Case { mss, wire, change };
            let mut cells = vec![change.name().to_owned(), mss.to_string()];
            cells.extend(Ends::ALL.map(|ends| cell(measured.ratio_to_base(case, ends))));
            rows.push(cells);
        }
    }
    Table {
        title: format!(
            "CPU time over that of the defaults, {}: median of the rounds (95 % interval)",
            wire.name()
        ),
        columns: vec![
            Column::text("changed"),
            Column::number("MSS, bytes"),
            Column::number("sender"),
            Column::number("receiver"),
            Column::number("both"),
        ],
        rows,
    }
}

fn line(name: String, sizes: &[u16], of: impl Fn(u16) -> Option<Middle>) -> LineSeries {
    let point = |mss: &u16| {
        let middle = of(*mss)?;
        Some(Point { x: f64::from(*mss), y: middle.median, ci: middle.half() })
    };
    LineSeries { name, published: false, points: sizes.iter().filter_map(point).collect() }
}

pub fn figures(measured: &Measurement) -> Vec<Figure> {
    let sizes = measured.sizes();
    let mut series = Vec::new();
    for wire in PER_END {
        for ends in [Ends::Sender, Ends::Receiver] {
            let name = format!("{}, {}", ends.name(), wire.name());
            series.push(line(name, &sizes, |mss| {
                measured.seconds_per_gb(Case { mss, wire, change: Change::Base }, ends)
            }));
        }
    }
    let mut figures = vec![figure(
        LineChart {
            title: "CPU time of Linux for a gigabyte".to_owned(),
            x_label: "MSS in bytes (logarithmic)".to_owned(),
            y_label: "CPU seconds for 10^9 bytes".to_owned(),
            log_x: true,
            series,
        },
        "Medians; bands cover the 95 % intervals. CPU time is energy only as far as the processor's power is.",
    )];
    for wire in PER_END {
        let series = CHANGES.map(|change| {
            line(change.name().to_owned(), &sizes, |mss| {
                measured.ratio_to_base(Case { mss, wire, change }, Ends::Both)
            })
        });
        figures.push(figure(
            LineChart {
                title: format!("Each option compared with the defaults, {}", wire.name()),
                x_label: "MSS in bytes (logarithmic)".to_owned(),
                y_label: "CPU time of both ends, defaults = 1".to_owned(),
                log_x: true,
                series: series.into(),
            },
            "Below 1 it saves. \"The same again\" shows what chance does.",
        ));
    }
    figures
}

fn figure(chart: LineChart, caption: &str) -> Figure {
    Figure::new(&chart.plot(), chart.title, caption)
}

#[cfg(test)]
mod tests {
    use lasthop_observe::cpu_time::{ENOUGH, Sample, Spent, cases};

    use super::*;

    fn measured() -> Measurement {
        let cases = cases(&[500, 1460]);
        let mut samples = Vec::new();
        for round in 0..ENOUGH {
            for (i, case) in cases.iter().enumerate() {
                let dear = if case.change == Change::QuickAcks { 2 } else { 1 };
                let ns = dear * 1_000_000 / u64::from(case.mss);
                samples.push(Sample {
                    case: i,
                    round,
                    bytes: 1000,
                    sender: Spent { caller_ns: ns, kernel_ns: ns },
                    receiver: Spent { caller_ns: 4 * ns, kernel_ns: 0 },
                    wall_ns: ns,
                    busy_ns: ns,
                    softirqs: 0,
                    payload: 488,
                    segments: 6,
                    acks: 3,
                    retransmitted: 0,
                    window: 65_535,
                });
            }
        }
        Measurement { cases, samples, bytes: 1000, ..Measurement::default() }
    }

    #[test]
    fn every_case_with_separate_ends_has_a_row() {
        let measured = measured();
        let tables = tables(&measured);
        assert_eq!(tables.iter().map(|t| t.rows.len()).collect::<Vec<_>>(), [4, 2, 10, 10]);
        assert_eq!(
            tables[0].rows[0],
            ["offloads off", "500", "4 (4 to 4)", "8 (8 to 8)", "12 (12 to 12)", "2"]
        );
        let quick = tables[2].rows.iter().find(|row| row[0] == "quick ACKs").unwrap();
        assert_eq!(quick[1..], ["500", "2 (2 to 2)", "2 (2 to 2)", "2 (2 to 2)"]);
        assert_eq!(figures(&measured).len(), 3);
        assert!(figures(&measured)[1].svg.contains("quick ACKs"));
    }

    #[test]
    fn missing_measurements_are_shown_as_a_dash() {
        let mut measured = measured();
        measured.samples.clear();
        assert!(
            tables(&measured).iter().flat_map(|t| &t.rows).all(|row| row.last().unwrap() == "–")
        );
        assert_eq!(tables(&Measurement::default()), []);
    }
}
