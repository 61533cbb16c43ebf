//! One measure against another: a mark for each item, with a confidence interval in both directions.

use super::axis::{self, Axis, Spread};
use super::canvas::{self, Anchor, Canvas, n};
use super::{Plot, style};
use crate::model::{Column, Table};

const WIDTH: f64 = 860.0;
const LEFT: f64 = 72.0;
const RIGHT: f64 = WIDTH - 20.0;
const PANEL: f64 = 380.0;

/// An item: two means with half the widths of their intervals.
#[derive(Clone, PartialEq, Debug)]
pub struct Cross {
    pub name: String,
    /// Mean and half the width of its interval on the horizontal axis.
    pub x: (f64, f64),
    /// The same on the vertical axis.
    pub y: (f64, f64),
}

/// A chart of crosses; both axes begin at zero. Shape and colour together distinguish 35 items.
#[derive(Clone, PartialEq, Debug)]
pub struct Crosses {
    pub title: String,
    /// Title of the horizontal axis, with the unit.
    pub x_label: String,
    /// Title of the vertical axis, with the unit.
    pub y_label: String,
    /// The most important first.
    pub crosses: Vec<Cross>,
}

impl Crosses {
    /// Items with infinite or undefined values are left out.
    pub fn plot(&self) -> Plot {
        let shown = || {
            self.crosses.iter().enumerate().filter(|(_, cross)| {
                [cross.x.0, cross.x.1, cross.y.0, cross.y.1].iter().all(|v| v.is_finite())
            })
        };
        let most = |of: fn(&Cross) -> (f64, f64)| {
            let ends = shown().map(|(_, cross)| of(cross).0 + of(cross).1);
            axis::round_end(ends.fold(0.0, f64::max))
        };
        let mut canvas = Canvas::default();
        canvas.text("t", LEFT, 24.0, Anchor::Start, &self.title);
        let entries: Vec<_> = shown()
            .map(|(i, cross)| {
                let (mark, colour) = (canvas::mark(i), style::series(i));
                (mark, colour, cross.name.clone())
            })
            .collect();
        let needed: f64 =
            entries.iter().map(|(_, _, words)| canvas::text_width(words) + 35.0).sum();
        let top = 62.0 + 17.0 * (needed / (RIGHT - LEFT)).floor();
        canvas::legend(&mut canvas, (LEFT, 46.0), RIGHT, &entries);
        let bottom = top + PANEL;
        let x = Axis::new(0.0, most(|cross| cross.x), LEFT, RIGHT, Spread::Linear);
        let y = Axis::new(0.0, most(|cross| cross.y), bottom, top, Spread::Linear);
        axis::draw_y(&mut canvas, &y, LEFT, RIGHT, 6);
        canvas.vertical_text("l", 18.0, (top + bottom) / 2.0, &self.y_label);
        axis::draw_x(&mut canvas, &x, bottom, 8, &self.x_label);
        for (i, cross) in shown() {
            let (mark, colour) = (canvas::mark(i), style::series(i));
            let ends = |(mean, half): (f64, f64)| ((mean - half).max(0.0), mean + half);
            let ((left, right), (low, high)) = (ends(cross.x), ends(cross.y));
            let (px, py) = (x.at(cross.x.0), y.at(cross.y.0));
            let path = format!(
                "M{} {}H{}M{} {}V{}",
                n(x.at(left)),
                n(py),
                n(x.at(right)),
                n(px),
                n(y.at(low)),
                n(y.at(high))
            );
            canvas.path(&format!("s-{colour}"), &path, 1.6, "");
            canvas.marks(mark, colour, [(px, py)]);
        }
        Plot::of_table((WIDTH, bottom + 52.0), &self.title, canvas, self.table())
    }

    /// A row for each cross.
    fn table(&self) -> Table {
        let row = |cross: &Cross| {
            let numbers = [cross.x.0, cross.x.1, cross.y.0, cross.y.1];
            std::iter::once(cross.name.clone()).chain(numbers.map(|n| n.to_string())).collect()
        };
        let columns = [
            Column::text("name"),
            Column::number(&self.x_label),
            Column::number("half_interval_95"),
            Column::number(&self.y_label),
            Column::number("half_interval_95"),
        ];
        Table::new(columns, self.crosses.iter().map(row))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(crosses: Vec<Cross>) -> String {
        let label = |text: &str| text.to_owned();
        Crosses { title: label("t"), x_label: label("x"), y_label: label("y"), crosses }
            .plot()
            .inline()
    }

    #[test]
    fn twelve_crosses_are_drawn_with_distinct_marks() {
        let cross = |i: usize| Cross {
            name: format!("n{i}"),
            x: (10.0 + i as f64, 1.0),
            y: (5.0, if i == 0 { 9.0 } else { 0.5 }),
        };
        let svg = drawn((0..12).map(cross).collect());
        assert!((0..12).all(|i| svg.contains(&format!(">n{i}<"))), "{svg}");
        assert!(!svg.contains("NaN") && !svg.contains("V-"), "{svg}");
        let looks: Vec<_> = (0..12).map(|i| (canvas::mark(i), style::series(i))).collect();
        assert!(looks.iter().enumerate().all(|(i, look)| !looks[..i].contains(look)));
    }

    #[test]
    fn empty_or_nan_crosses_draw_an_empty_chart() {
        let nowhere = Cross { name: "n".to_owned(), x: (f64::NAN, 0.0), y: (1.0, 0.0) };
        assert!(!drawn(vec![nowhere]).contains("NaN"));
        assert!(!drawn(Vec::new()).contains("NaN"));
    }
}
