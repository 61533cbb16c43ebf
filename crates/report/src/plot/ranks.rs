//! Ranks: a row for each name, with estimates and their intervals from left to right.

use super::axis::{self, Axis, Spread};
use super::canvas::{Anchor, Canvas, Mark, legend, text_width};
use super::{Plot, style};
use crate::model::{Column, Table};

const TOP: f64 = 66.0;
const ROW: f64 = 30.0;
const PANEL: f64 = 430.0;
const RIGHT: f64 = 24.0;
/// The marks of the estimates of a row, in order.
const MARKS: [Mark; 4] = [Mark::Dot, Mark::Ring, Mark::Square, Mark::Diamond];

/// An estimate with its 95 % interval.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RankValue {
    pub value: f64,
    /// Low and high bound.
    pub interval: (f64, f64),
}

/// A chart of rows below each other; its horizontal axis begins at zero.
#[derive(Clone, PartialEq, Debug)]
pub struct Ranks {
    pub title: String,
    /// Title of the horizontal axis, with the unit.
    pub x_label: String,
    /// Names of the estimates of a row, in order.
    pub series: Vec<String>,
    /// From top to bottom: a name, and an estimate for each of `series`.
    pub rows: Vec<(String, Vec<RankValue>)>,
}

impl Ranks {
    pub fn plot(&self) -> Plot {
        let widest = self.rows.iter().map(|(name, _)| text_width(name)).fold(60.0, f64::max);
        let (left, right) = (widest + 28.0, widest + 28.0 + PANEL);
        let bottom = TOP + ROW * self.rows.len() as f64;
        let ends = self.rows.iter().flat_map(|(_, all)| all.iter().map(|e| e.interval.1));
        let high = axis::round_end(ends.fold(0.0, f64::max));
        let x = Axis::new(0.0, high, left, right, Spread::Linear);

        let mut canvas = Canvas::default();
        canvas.text("t", 16.0, 24.0, Anchor::Start, &self.title);
        let colour = |j: usize| style::series(j);
        let mark = |j: usize| MARKS[j % MARKS.len()];
        let named = self.series.iter().enumerate();
        let entries: Vec<_> = named.map(|(j, name)| (mark(j), colour(j), name.clone())).collect();
        legend(&mut canvas, (16.0, 48.0), right, &entries);
        for (value, _) in x.ticks(5) {
            canvas.line("s-grid", (x.at(value), TOP), (x.at(value), bottom), 1.0);
        }
        axis::draw_x(&mut canvas, &x, bottom, 5, &self.x_label);
        for (i, (name, estimates)) in self.rows.iter().enumerate() {
            let middle = TOP + ROW * (i as f64 + 0.5);
            canvas.text("l", left - 12.0, middle + 4.0, Anchor::End, name);
            let step = 11.0;
            let first = middle - step * (estimates.len() as f64 - 1.0) / 2.0;
            for (j, estimate) in estimates.iter().enumerate() {
                let y = first + step * j as f64;
                let (low, high) = estimate.interval;
                let stroke = format!("s-{}", colour(j));
                canvas.line(&stroke, (x.at(low.max(0.0)), y), (x.at(high), y), 1.6);
                canvas.marks(mark(j), colour(j), [(x.at(estimate.value), y)]);
            }
        }
        Plot::of_table((right + RIGHT, bottom + 56.0), &self.title, canvas, self.table())
    }

    /// A row for each estimate.
    fn table(&self) -> Table {
        let mut rows = Vec::new();
        for (name, estimates) in &self.rows {
            for (series, RankValue { value, interval: (low, high) }) in
                self.series.iter().zip(estimates)
            {
                let numbers = [value, low, high].map(f64::to_string);
                rows.push([name, series].into_iter().cloned().chain(numbers).collect());
            }
        }
        let columns = [
            Column::text("name"),
            Column::text("estimate"),
            Column::number(&self.x_label),
            Column::number("from"),
            Column::number("to"),
        ];
        Table::new(columns, rows)
    }
}
