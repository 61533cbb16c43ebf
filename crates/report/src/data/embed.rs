//! Format of the numbers in a page: a JSON object for each plot, with packed columns. `web/src/plots/unpack.ts` reads
//! it.

use lasthop_observe::sequence::{BadPeriod, CellStay, Lost, SendKind, SentPacket, Series, Window};
use lasthop_observe::stalls::Stall;
use serde::{Deserialize, Serialize};

use super::pack::{PackedColumns, pack, unpack};
use super::{Chart, Data};
use crate::model::Table;
use crate::plot::{Curve, Pen};

/// Limit of the numbers of all plots of a page together, in bytes of the page. Plots above their share thin out first
/// transmissions, ACKs and windows; losses and retransmissions stay complete.
pub const MOST_EMBEDDED: usize = 4 << 20;

/// Numbers in the format of pages and stored results.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "form", rename_all = "kebab-case")]
pub enum EmbeddedData {
    Sequence(Sequence),
    Chart(Panels),
    Table(Table),
}

/// The fields of [`EmbeddedData::Sequence`] besides its columns.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Sequence {
    title: String,
    flow: String,
    end: f64,
    /// Every `every`th first transmission, ACK and window is included.
    every: usize,
    cells: Vec<String>,
    #[serde(flatten)]
    packed: PackedColumns,
}

/// The fields of [`EmbeddedData::Chart`] besides its columns.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Panels {
    title: String,
    x: String,
    log: bool,
    end: Option<f64>,
    /// Every `every`th point is included.
    every: usize,
    panels: Vec<Panel>,
    #[serde(flatten)]
    packed: PackedColumns,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Panel {
    y: String,
    curves: Vec<(String, Pen)>,
}

impl EmbeddedData {
    /// `data`; of numerous kinds of marks only every `every`th one.
    pub(crate) fn new(data: &Data, every: usize) -> EmbeddedData {
        match data {
            Data::Sequence { title, series } => EmbeddedData::Sequence(Sequence {
                title: title.clone(),
                flow: series.flow.clone(),
                end: series.end_s,
                every,
                cells: series.cells.iter().map(|stay| stay.cell.clone()).collect(),
                packed: pack(&sequence(series, every)),
            }),
            Data::Chart { title, chart } => EmbeddedData::Chart(Panels {
                title: title.clone(),
                x: chart.x_label.clone(),
                log: chart.log_x,
                end: chart.end_s,
                every,
                panels: chart.panels.iter().map(panel).collect(),
                packed: pack(&points(chart, every)),
            }),
            Data::Table(table) => EmbeddedData::Table(table.clone()),
        }
    }

    /// The size of the columns in bytes of the page.
    pub(crate) fn size(&self) -> usize {
        match self {
            EmbeddedData::Sequence(Sequence { packed, .. })
            | EmbeddedData::Chart(Panels { packed, .. }) => packed.data.len(),
            EmbeddedData::Table(_) => 0,
        }
    }
}

fn panel((y, curves): &(String, Vec<Curve>)) -> Panel {
    let curves = curves.iter().map(|curve| (curve.name.clone(), curve.pen));
    Panel { y: y.clone(), curves: curves.collect() }
}

/// A column with one field of every item.
fn column<'a, T: 'a>(
    name: String,
    items: impl IntoIterator<Item = &'a T>,
    of: fn(&T) -> f64,
) -> (String, Vec<f64>) {
    (name, items.into_iter().map(of).collect())
}

fn sequence(series: &Series, every: usize) -> Vec<(String, Vec<f64>)> {
    let mut columns = Vec::new();
    for (name, kind) in SendKind::NAMED {
        let all: Vec<&SentPacket> = series.sent.iter().filter(|sent| sent.kind == kind).collect();
        let step = if kind == SendKind::First { every } else { 1 };
        let chosen: Vec<&SentPacket> = all.into_iter().step_by(step).collect();
        if chosen.is_empty() {
            continue;
        }
        let each = || chosen.iter().copied();
        columns.push(column(format!("{name}.t"), each(), |s| s.at_s));
        columns.push(column(format!("{name}.from"), each(), |s| s.start as f64));
        columns.push(column(format!("{name}.length"), each(), |s| (s.end - s.start) as f64));
    }
    let acked = || series.acked.iter().step_by(every);
    let windows = || series.windows.iter().step_by(every);
    columns.extend([
        column("ack.t".into(), acked(), |(at, _)| *at),
        column("ack.to".into(), acked(), |(_, to)| *to as f64),
        column("lost.t".into(), &series.lost, |l| l.at_s),
        column("lost.from".into(), &series.lost, |l| l.start as f64),
        column("lost.length".into(), &series.lost, |l| (l.end - l.start) as f64),
        column("expired.t".into(), &series.timeouts, |at| *at),
        column("windows.t".into(), windows(), |w| w.at_s),
        column("windows.cwnd".into(), windows(), |w| f64::from(w.cwnd)),
        column("windows.ssthresh".into(), windows(), |w| f64::from(w.ssthresh)),
        column("stall.from".into(), &series.stalls, |s| s.from_s),
        column("stall.to".into(), &series.stalls, |s| s.to_s),
        column("bad.from".into(), &series.bad, |b| b.from_s),
        column("bad.to".into(), &series.bad, |b| b.to_s),
        column("cell.from".into(), &series.cells, |c| c.from_s),
        column("cell.to".into(), &series.cells, |c| c.to_s),
    ]);
    columns
}

fn points(chart: &Chart, every: usize) -> Vec<(String, Vec<f64>)> {
    let mut columns = Vec::new();
    for (i, (_, curves)) in chart.panels.iter().enumerate() {
        for (k, curve) in curves.iter().enumerate() {
            let each = || curve.points.iter().step_by(every);
            columns.push(column(format!("{i}.{k}.x"), each(), |p| p.0));
            columns.push(column(format!("{i}.{k}.y"), each(), |p| p.1));
            if curve.points.iter().any(|p| p.2 != 0.0) {
                columns.push(column(format!("{i}.{k}.spread"), each(), |p| p.2));
            }
        }
    }
    columns
}

impl From<Data> for EmbeddedData {
    fn from(data: Data) -> EmbeddedData {
        EmbeddedData::new(&data, 1)
    }
}

/// Columns by name.
struct Columns(Vec<(String, Vec<f64>)>);

impl Columns {
    fn of(&self, name: &str) -> &[f64] {
        self.0.iter().find(|(found, _)| found == name).map_or(&[], |(_, values)| values)
    }

    /// Rows of two columns.
    fn pairs<'a>(&'a self, one: &str, other: &str) -> impl Iterator<Item = (f64, f64)> + use<'a> {
        self.of(one).iter().copied().zip(self.of(other).iter().copied())
    }

    /// Rows of time, first and last byte.
    fn spans<'a>(&'a self, kind: &str) -> impl Iterator<Item = (f64, u64, u64)> + use<'a> {
        let [t, from, length] =
            ["t", "from", "length"].map(|field| self.of(&format!("{kind}.{field}")));
        t.iter().zip(from).zip(length).map(|((t, from), length)| {
            (*t, *from as u64, (*from as u64).saturating_add(*length as u64))
        })
    }
}

impl TryFrom<EmbeddedData> for Data {
    type Error = &'static str;

    fn try_from(embedded: EmbeddedData) -> Result<Data, &'static str> {
        let columns = |packed: &PackedColumns| {
            unpack(packed).map(Columns).ok_or("columns that cannot be unpacked")
        };
        Ok(match embedded {
            EmbeddedData::Table(table) => Data::Table(table),
            EmbeddedData::Sequence(embedded) => {
                let series = series(&columns(&embedded.packed)?, &embedded);
                Data::Sequence { title: embedded.title, series }
            }
            EmbeddedData::Chart(embedded) => {
                let columns = columns(&embedded.packed)?;
                let panels = embedded.panels.iter().enumerate().map(|(i, panel)| {
                    let curves = panel.curves.iter().enumerate();
                    let curves = curves.map(|(k, (name, pen))| {
                        let spread = columns.of(&format!("{i}.{k}.spread"));
                        let points = columns.pairs(&format!("{i}.{k}.x"), &format!("{i}.{k}.y"));
                        let points = points
                            .enumerate()
                            .map(|(at, (x, y))| (x, y, spread.get(at).copied().unwrap_or(0.0)));
                        Curve { name: name.clone(), pen: *pen, points: points.collect() }
                    });
                    (panel.y.clone(), curves.collect())
                });
                let chart = Chart {
                    x_label: embedded.x,
                    log_x: embedded.log,
                    end_s: embedded.end,
                    panels: panels.collect(),
                };
                Data::Chart { title: embedded.title, chart }
            }
        })
    }
}

fn series(columns: &Columns, embedded: &Sequence) -> Series {
    let mut sent: Vec<SentPacket> = Vec::new();
    for (name, kind) in SendKind::NAMED {
        let all = columns.spans(name);
        sent.extend(all.map(|(at_s, start, end)| SentPacket { at_s, start, end, kind }));
    }
    sent.sort_by(|a, b| a.at_s.total_cmp(&b.at_s));
    let windows = columns.pairs("windows.t", "windows.cwnd").zip(columns.of("windows.ssthresh"));
    let windows = windows.map(|((at_s, cwnd), ssthresh)| Window {
        at_s,
        cwnd: cwnd as u32,
        ssthresh: *ssthresh as u32,
    });
    let cells = columns.pairs("cell.from", "cell.to").zip(&embedded.cells);
    let lost = columns.spans("lost");
    Series {
        flow: embedded.flow.clone(),
        sent,
        acked: columns.pairs("ack.t", "ack.to").map(|(at, to)| (at, to as u64)).collect(),
        lost: lost.map(|(at_s, start, end)| Lost { at_s, start, end }).collect(),
        timeouts: columns.of("expired.t").to_vec(),
        windows: windows.collect(),
        stalls: columns
            .pairs("stall.from", "stall.to")
            .map(|(from_s, to_s)| Stall { from_s, to_s })
            .collect(),
        bad: columns
            .pairs("bad.from", "bad.to")
            .map(|(from_s, to_s)| BadPeriod { from_s, to_s })
            .collect(),
        cells: cells
            .map(|((from_s, to_s), cell)| CellStay { cell: cell.clone(), from_s, to_s })
            .collect(),
        end_s: embedded.end,
    }
}

/// All of `data` in the format of a page, thinned just enough to fit into `most` bytes together.
pub(crate) fn fitted(data: &[&Data], most: usize) -> Vec<EmbeddedData> {
    let mut all: Vec<EmbeddedData> = data.iter().map(|data| EmbeddedData::new(data, 1)).collect();
    // Plots below their share leave their unused bytes to the others.
    let mut order: Vec<usize> = (0..all.len()).collect();
    order.sort_by_key(|i| all[*i].size());
    let mut left = most;
    for (done, i) in order.iter().enumerate() {
        let share = left / (order.len() - done);
        let mut every = 1;
        while all[*i].size() > share && every < 1 << 16 {
            every *= 2;
            all[*i] = EmbeddedData::new(data[*i], every);
        }
        left = left.saturating_sub(all[*i].size());
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A long transfer: pseudo-random gaps, one loss in a hundred, ACKs and windows.
    fn long(packets: u64) -> Series {
        let mut series = Series { flow: "a>b".to_owned(), end_s: 700.0, ..Series::default() };
        let mut at = 0u64;
        for i in 0..packets {
            at += 9_000_000 + (i * 2_654_435_761) % 1_000_000;
            let at_s = at as f64 / 1e9;
            let (start, end) = (i * 1460, (i + 1) * 1460);
            series.sent.push(SentPacket { at_s, start, end, kind: SendKind::First });
            if i % 100 == 0 {
                let kind = if i % 200 == 0 { SendKind::Fast } else { SendKind::Timeout };
                series.lost.push(Lost { at_s, start, end });
                series.sent.push(SentPacket { at_s: at_s + 1e-6, start, end, kind });
            }
            if i % 2 == 0 {
                series.acked.push((at_s, start));
                series.windows.push(Window { at_s, cwnd: (i % 65_000) as u32, ssthresh: 65_535 });
            }
        }
        series.stalls.push(Stall { from_s: 1.0, to_s: 2.5 });
        series.bad.push(BadPeriod { from_s: 1.1, to_s: 1.2 });
        series.cells.push(CellStay { cell: "west".to_owned(), from_s: 0.0, to_s: 9.0 });
        series.timeouts.push(1.5);
        series
    }

    #[test]
    fn embedded_data_is_read_back_unchanged() {
        let sequence = Data::Sequence { title: "t".to_owned(), series: long(5000) };
        let curve = |name: &str, pen, points| Curve { name: name.to_owned(), pen, points };
        let chart = Chart {
            x_label: "time (s)".to_owned(),
            log_x: false,
            end_s: Some(3.5),
            panels: vec![
                (
                    "KB".to_owned(),
                    vec![curve("a", Pen::Steps, vec![(0.1, 0.3, 0.0), (0.2, 7.0, 0.0)])],
                ),
                ("ms".to_owned(), vec![curve("b", Pen::Whiskers, vec![(1.0, 1.0 / 3.0, 0.25)])]),
            ],
        };
        let chart = Data::Chart { title: "c".to_owned(), chart };
        for data in [sequence, chart, Data::Table(Table::default())] {
            let json = serde_json::to_string(&data).unwrap();
            assert_eq!(serde_json::from_str::<Data>(&json).unwrap(), data);
        }
    }

    #[test]
    fn a_page_is_bounded_and_retains_every_loss() {
        let long = Data::Sequence { title: "long".to_owned(), series: long(60_000) };
        let small = Data::Sequence { title: "small".to_owned(), series: self::long(200) };
        let whole = EmbeddedData::new(&long, 1).size();
        let most = whole / 3;
        let fitted = fitted(&[&long, &small, &long], most);
        assert!(fitted.iter().map(EmbeddedData::size).sum::<usize>() <= most);
        let every = |embedded: &EmbeddedData| match embedded {
            EmbeddedData::Sequence(embedded) => embedded.every,
            _ => 0,
        };
        assert_eq!(every(&fitted[1]), 1, "small data stays whole");
        assert!(every(&fitted[0]) > 1 && every(&fitted[2]) > 1);
        let Ok(Data::Sequence { series, .. }) = Data::try_from(fitted[0].clone()) else { panic!() };
        assert_eq!(series.lost.len(), 600);
        assert_eq!(series.sent.iter().filter(|s| s.kind != SendKind::First).count(), 600);
    }
}
