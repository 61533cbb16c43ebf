//! Tables of numbers whose cells are shaded by their share of the largest number in their row.

use super::Plot;
use super::canvas::{Anchor, Canvas, text_width};
use crate::data::Data;
use crate::model::{Column, Table};
use crate::number::short;

const TOP: f64 = 66.0;
const ROW: f64 = 24.0;
const CELL: f64 = 86.0;
/// Opacity of the largest number in a row.
const FULL: f64 = 0.55;

/// A table with a row per group.
#[derive(Clone, PartialEq, Debug)]
pub struct Grid {
    pub title: String,
    /// The meaning of the numbers, with the unit.
    pub quantity: String,
    pub columns: Vec<String>,
    /// Label and numbers of each row.
    pub rows: Vec<(String, Vec<Option<f64>>)>,
}

impl Grid {
    pub fn plot(&self) -> Plot {
        let widest = self.rows.iter().map(|(label, _)| text_width(label)).fold(60.0, f64::max);
        let left = widest + 24.0;
        let cell = self.columns.iter().map(|name| text_width(name) + 16.0).fold(CELL, f64::max);
        let width = left + cell * self.columns.len() as f64 + 18.0;
        let mut canvas = Canvas::default();
        canvas.text("t", 12.0, 24.0, Anchor::Start, &self.title);
        let middle = |i: usize| left + cell * (i as f64 + 0.5);
        for (i, name) in self.columns.iter().enumerate() {
            canvas.text("l", middle(i), TOP - 10.0, Anchor::Middle, name);
        }
        let mut y = TOP;
        for (label, values) in &self.rows {
            canvas.text("l", left - 10.0, y + 16.0, Anchor::End, label);
            let most = values.iter().flatten().copied().fold(0.0, f64::max);
            for (i, value) in values.iter().enumerate() {
                let Some(value) = value else { continue };
                let share = if most > 0.0 { (value / most).clamp(0.0, 1.0) } else { 0.0 };
                let opacity = format!(" rx=\"2\" fill-opacity=\"{:.2}\"", FULL * share);
                let corner = (left + cell * i as f64 + 1.0, y + 1.0);
                canvas.rect("f-blue", corner, (cell - 2.0, ROW - 2.0), &opacity);
                canvas.text("v", middle(i), y + 16.0, Anchor::Middle, &short(*value));
            }
            y += ROW;
        }
        Plot {
            width: width.max(text_width(&self.title) * 1.2 + 24.0),
            height: y + 14.0,
            title: self.title.clone(),
            body: canvas.body,
            data: Data::Table(self.table().titled(self.title.clone())),
        }
    }

    /// A row for each number.
    fn table(&self) -> Table {
        let rows = self.rows.iter().flat_map(|(label, values)| {
            let named = self.columns.iter().zip(values);
            let known = named.filter_map(|(name, value)| Some((name, (*value)?)));
            known.map(|(name, value)| vec![label.clone(), name.clone(), value.to_string()])
        });
        let columns = [Column::text("row"), Column::text("column"), Column::number(&self.quantity)];
        Table::new(columns, rows.collect::<Vec<_>>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_shaded_by_their_share_of_the_row() {
        let grid = Grid {
            title: "t".to_owned(),
            quantity: "Mbit/s".to_owned(),
            columns: vec!["a".to_owned(), "b".to_owned()],
            rows: vec![
                ("one".to_owned(), vec![Some(10.0), Some(5.0)]),
                ("two".to_owned(), vec![None, Some(0.0)]),
            ],
        };
        let drawn = grid.plot().inline();
        let shades: Vec<&str> = drawn
            .split("fill-opacity=\"")
            .skip(1)
            .map(|rest| rest.split('"').next().unwrap())
            .collect();
        assert_eq!(shades, ["0.55", "0.28", "0.00"], "{drawn}");
        assert_eq!(grid.plot().data().csv().lines().count(), 4);
    }
}
