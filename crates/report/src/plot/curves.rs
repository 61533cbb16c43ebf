//! Curves over time or over an axis of a sweep: lines, scattered points, and points with the spread of the
//! measurements.

use std::fmt::Write;

use serde::{Deserialize, Serialize};

use super::axis::{self, Axis, Spread};
use super::canvas::{self, Anchor, Canvas, Mark, n};
use super::{Plot, style};
use crate::data::{Chart, Data};

const WIDTH: f64 = 860.0;
const LEFT: f64 = 72.0;
const RIGHT: f64 = WIDTH - 20.0;
const PANEL: f64 = 330.0;
/// Half the width of a whisker's ends.
const END: f64 = 4.0;
/// Offset between whiskers of different curves at the same x, in pixels.
const APART: f64 = 6.0;

/// How a curve is drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pen {
    /// A line through the points.
    Line,
    /// A dashed line through the points, for computed values.
    Dashes,
    /// A line that holds each value until the next one.
    Steps,
    /// A mark at each point.
    Points,
    /// A ring at each point, for published values: in the colour of the other curve of the same rank.
    Rings,
    /// A small dot at each point, for thousands of points.
    Dots,
    /// A line, a mark at each point, and a whisker from `y - spread` to `y + spread`.
    Whiskers,
    /// A line and a mark at each point, over a band from `y - spread` to `y + spread`.
    Band,
}

#[derive(Clone, PartialEq, Debug)]
pub struct Curve {
    pub name: String,
    pub pen: Pen,
    /// Points from left to right: x, y, and the spread of y (zero draws no whisker).
    pub points: Vec<(f64, f64, f64)>,
}

/// A chart of curves; its vertical axis begins at zero unless values are negative.
#[derive(Clone, PartialEq, Debug)]
pub struct Curves {
    pub title: String,
    /// Title of the horizontal axis, with the unit.
    pub x_label: String,
    /// Title of the vertical axis, with the unit.
    pub y_label: String,
    /// A logarithmic horizontal axis; zero has a position at the far left, and points below zero are left out.
    pub log_x: bool,
    /// The most important first.
    pub curves: Vec<Curve>,
}

/// Dash patterns of computed curves, which share one colour.
const COMPUTED: [&str; 3] = ["7 4", "2 3", "9 3 2 3"];

impl Curves {
    /// Points on the same pixel are drawn once.
    pub fn plot(&self) -> Plot {
        self.drawn(None)
    }

    /// The same with a vertical axis that ends at `high`, for shares.
    pub fn plot_up_to(&self, high: f64) -> Plot {
        self.drawn(Some(high))
    }

    fn drawn(&self, high: Option<f64>) -> Plot {
        let usable = |p: &&(f64, f64, f64)| {
            p.0.is_finite() && p.1.is_finite() && p.2.is_finite() && (!self.log_x || p.0 >= 0.0)
        };
        let curves: Vec<Vec<(f64, f64, f64)>> =
            self.curves.iter().map(|c| c.points.iter().filter(usable).copied().collect()).collect();
        let all = || curves.iter().flatten();
        let spread = Spread::of(self.log_x, all().map(|p| p.0));
        let left = all().map(|p| p.0).fold(f64::INFINITY, f64::min);
        let right = all().map(|p| p.0).fold(f64::NEG_INFINITY, f64::max);
        let highest = || axis::round_end(all().map(|p| p.1 + p.2).fold(0.0, f64::max));
        let high = high.unwrap_or_else(highest);
        let below = all().map(|p| p.1 - p.2).fold(0.0, f64::min);
        let low = if all().any(|p| p.1 < 0.0) { below } else { 0.0 };

        let mut canvas = Canvas::default();
        canvas.text("t", LEFT, 24.0, Anchor::Start, &self.title);
        let pens = Pens(&self.curves);
        let top = 16.0 + canvas::legend(&mut canvas, (LEFT, 46.0), RIGHT, &pens.entries());
        let bottom = top + PANEL;
        let x = Axis::new(left, right, LEFT + 16.0, RIGHT - 16.0, spread);
        let y = Axis::new(low, high, bottom, top, Spread::Linear);
        axis::draw_y(&mut canvas, &y, LEFT, RIGHT, 6);
        canvas.vertical_text("l", 18.0, (top + bottom) / 2.0, &self.y_label);
        for (i, points) in curves.iter().enumerate() {
            pens.band(&mut canvas, i, points, &x, &y);
        }
        for (i, points) in curves.iter().enumerate() {
            pens.draw(&mut canvas, i, points, &x, &y);
        }
        canvas.line("s-axis", (LEFT, bottom), (RIGHT, bottom), 1.2);
        axis::draw_x(&mut canvas, &x, bottom, 8, &self.x_label);
        let mut data = self.curves.clone();
        data.iter_mut().filter(|c| c.pen == Pen::Rings).for_each(|c| c.pen = Pen::Points);
        let chart = Chart {
            x_label: self.x_label.clone(),
            log_x: self.log_x,
            end_s: None,
            panels: vec![(self.y_label.clone(), data)],
        };
        Plot {
            width: WIDTH,
            height: bottom + 52.0,
            title: self.title.clone(),
            body: canvas.body,
            data: Data::Chart { title: self.title.clone(), chart },
        }
    }
}

/// Curves that share a panel.
pub(super) struct Pens<'a>(pub(super) &'a [Curve]);

impl Pens<'_> {
    /// Legend entries of all curves.
    pub(super) fn entries(&self) -> Vec<(Mark, &'static str, String)> {
        let entry = |(i, curve): (usize, &Curve)| {
            let (mark, colour) = self.look(i);
            let dash = self.dash(i);
            let mark = match curve.pen {
                Pen::Line | Pen::Steps => Mark::Line { dash, mark: None },
                Pen::Whiskers | Pen::Band => Mark::Line { dash, mark: Some(i) },
                _ => mark,
            };
            (mark, colour, curve.name.clone())
        };
        // A curve without points is not drawn, but takes its colour.
        let drawn = self.0.iter().enumerate().filter(|(_, curve)| !curve.points.is_empty());
        drawn.map(entry).collect()
    }

    fn look(&self, i: usize) -> (Mark, &'static str) {
        match self.0[i].pen {
            Pen::Dashes => (Mark::Broken(self.before(i, Pen::Dashes) % COMPUTED.len()), "muted"),
            Pen::Dots => (Mark::Dot, style::series(i)),
            Pen::Rings => (Mark::Ring, style::series(self.before(i, Pen::Rings))),
            _ => (canvas::mark(i), style::series(i)),
        }
    }

    /// The dash pattern that distinguishes a line from its neighbours.
    fn dash(&self, i: usize) -> usize {
        match self.0[i].pen {
            Pen::Line | Pen::Steps | Pen::Whiskers | Pen::Band => i,
            _ => 0,
        }
    }

    /// The number of curves with `pen` before the curve at `i`.
    fn before(&self, i: usize, pen: Pen) -> usize {
        self.0[..i].iter().filter(|curve| curve.pen == pen).count()
    }

    /// Draws the band of the curve at `i`, if it has one. All bands come before the curves, so that none hides a line.
    pub(super) fn band(
        &self,
        canvas: &mut Canvas,
        i: usize,
        points: &[(f64, f64, f64)],
        x: &Axis,
        y: &Axis,
    ) {
        if self.0[i].pen != Pen::Band {
            return;
        }
        let upper = points.iter().map(|p| (p.0, p.1 + p.2));
        let lower = points.iter().rev().map(|p| (p.0, p.1 - p.2));
        let mut path = String::new();
        for (k, (px, py)) in upper.chain(lower).enumerate() {
            let to = if k == 0 { 'M' } else { 'L' };
            let _ = write!(path, "{to}{} {}", n(x.at(px)), n(y.at(py.max(y.low()))));
        }
        canvas.fill(&format!("b-{}", self.look(i).1), &path);
    }

    /// Draws the curve at `i`, whose drawable points are `points`.
    pub(super) fn draw(
        &self,
        canvas: &mut Canvas,
        i: usize,
        points: &[(f64, f64, f64)],
        x: &Axis,
        y: &Axis,
    ) {
        let (mark, colour) = self.look(i);
        let pen = self.0[i].pen;
        let aside = self.aside(i, points, x);
        let mut places: Vec<(f64, f64)> = Vec::new();
        for p in points {
            let place = (x.at(p.0) + aside, y.at(p.1));
            let near = |last: &(f64, f64)| {
                (last.0 - place.0).abs() < 0.5 && (last.1 - place.1).abs() < 0.5
            };
            if !places.last().is_some_and(near) {
                places.push(place);
            }
        }
        let stroke = format!("s-{colour}");
        if pen == Pen::Whiskers {
            let mut path = String::new();
            for p in points.iter().filter(|p| p.2 > 0.0) {
                let px = x.at(p.0) + aside;
                let (upper, lower) = (y.at(p.1 + p.2), y.at((p.1 - p.2).max(0.0)));
                for (from, to) in [
                    ((px, lower), (px, upper)),
                    ((px - END, upper), (px + END, upper)),
                    ((px - END, lower), (px + END, lower)),
                ] {
                    let _ = write!(path, "M{} {}L{} {}", n(from.0), n(from.1), n(to.0), n(to.1));
                }
            }
            canvas.path(&stroke, &path, 1.2, "");
        }
        if pen == Pen::Dots {
            canvas.dots(colour, &places);
        } else if !matches!(pen, Pen::Points | Pen::Rings) {
            let mut path = String::new();
            for (k, (px, py)) in places.iter().enumerate() {
                let _ = match (k, pen) {
                    (0, _) => write!(path, "M{} {}", n(*px), n(*py)),
                    (_, Pen::Steps) => write!(path, "H{}V{}", n(*px), n(*py)),
                    _ => write!(path, "L{} {}", n(*px), n(*py)),
                };
            }
            let dashes = match mark {
                Mark::Broken(i) => format!(" stroke-dasharray=\"{}\"", COMPUTED[i]),
                _ => canvas::dashes(self.dash(i)),
            };
            canvas.path(&stroke, &path, 1.6, &format!(" stroke-linejoin=\"round\"{dashes}"));
        }
        if matches!(pen, Pen::Points | Pen::Rings | Pen::Whiskers | Pen::Band) {
            canvas.marks(mark, colour, places);
        }
    }

    /// Horizontal offset of the curve at `i` in pixels, so that whiskers of several curves at one x do not overlap. No
    /// point is moved off the axis.
    fn aside(&self, i: usize, points: &[(f64, f64, f64)], x: &Axis) -> f64 {
        if self.0[i].pen != Pen::Whiskers {
            return 0.0;
        }
        let all = self.before(self.0.len(), Pen::Whiskers) as f64;
        let crowded = points.iter().any(|p| p.0 == x.low()) && x.low() == 0.0;
        let first = if crowded { 0.0 } else { -(all - 1.0) / 2.0 };
        APART * (self.before(i, Pen::Whiskers) as f64 + first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(pen: Pen, points: Vec<(f64, f64, f64)>) -> String {
        let curve = Curve { name: "one".to_owned(), pen, points };
        let curves = vec![curve];
        Curves {
            title: "t".to_owned(),
            x_label: "x".to_owned(),
            y_label: "y".to_owned(),
            log_x: false,
            curves,
        }
        .plot()
        .inline()
    }

    #[test]
    fn a_whisker_spans_twice_the_spread_and_does_not_leave_the_panel() {
        let with = chart(Pen::Whiskers, vec![(1.0, 2.0, 1.0), (2.0, 1.0, 5.0)]);
        let without = chart(Pen::Whiskers, vec![(1.0, 2.0, 0.0), (2.0, 1.0, 0.0)]);
        assert!(with.len() > without.len() + 100);
        assert!(!with.contains("NaN"));
    }

    #[test]
    fn steps_hold_each_value() {
        let svg = chart(Pen::Steps, vec![(0.0, 1.0, 0.0), (10.0, 2.0, 0.0)]);
        assert!(svg.contains('H') && svg.contains('V'), "{svg}");
    }

    #[test]
    fn many_points_on_few_pixels_stay_light() {
        let points = (0..200_000).map(|i| (f64::from(i) * 1e-3, f64::from(i), 0.0)).collect();
        assert!(chart(Pen::Line, points).len() < 60_000);
    }

    #[test]
    fn nothing_draws_an_empty_chart() {
        assert!(!chart(Pen::Points, Vec::new()).contains("NaN"));
    }
}
