//! Lines with bands: a result along an axis of a sweep.

use std::fmt::Write;

use super::axis::{self, Axis, Spread};
use super::canvas::{self, Anchor, Canvas, Mark, n};
use super::curves::{Curve, Pen};
use super::{Plot, style};
use crate::data::{Chart, Data};

const WIDTH: f64 = 760.0;
const LEFT: f64 = 72.0;
const RIGHT: f64 = WIDTH - 20.0;
const PANEL: f64 = 310.0;

#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Point {
    /// Position on the axis of the sweep.
    pub x: f64,
    /// Mean.
    pub y: f64,
    /// Half the width of the 95 % confidence interval; zero draws no band.
    pub ci: f64,
}

#[derive(Clone, PartialEq, Debug)]
pub struct LineSeries {
    pub name: String,
    /// Published points are drawn as rings without a band, in the colour of the measured line of the same rank.
    pub published: bool,
    pub points: Vec<Point>,
}

/// A line chart; its vertical axis begins at zero unless values are negative.
#[derive(Clone, PartialEq, Debug)]
pub struct LineChart {
    pub title: String,
    /// Title of the horizontal axis, with the unit.
    pub x_label: String,
    /// Title of the vertical axis, with the unit.
    pub y_label: String,
    /// A logarithmic horizontal axis; zero has a position at the far left, and points below zero are left out.
    pub log_x: bool,
    /// The most important first.
    pub series: Vec<LineSeries>,
}

impl LineChart {
    pub fn plot(&self) -> Plot {
        let usable = |p: &&Point| {
            p.x.is_finite() && p.y.is_finite() && p.ci.is_finite() && (!self.log_x || p.x >= 0.0)
        };
        let lines: Vec<Vec<Point>> =
            self.series.iter().map(|s| s.points.iter().filter(usable).copied().collect()).collect();
        let all = || lines.iter().flatten();
        let spread = Spread::of(self.log_x, all().map(|p| p.x));
        let left = all().map(|p| p.x).fold(f64::INFINITY, f64::min);
        let right = all().map(|p| p.x).fold(f64::NEG_INFINITY, f64::max);
        let high = axis::round_end(all().map(|p| p.y + p.ci).fold(0.0, f64::max));
        let low =
            all().map(|p| p.y - p.ci).filter(|_| all().any(|p| p.y < 0.0)).fold(0.0, f64::min);

        let mut canvas = Canvas::default();
        canvas.text("t", LEFT, 24.0, Anchor::Start, &self.title);
        let entries = self.legend();
        // The legend takes as many lines as its names need.
        let top = 16.0 + canvas::legend(&mut canvas, (LEFT, 46.0), RIGHT, &entries);
        let bottom = top + PANEL;
        let x = Axis::new(left, right, LEFT + 12.0, RIGHT - 12.0, spread);
        let y = Axis::new(low, high, bottom, top, Spread::Linear);
        axis::draw_y(&mut canvas, &y, LEFT, RIGHT, 6);
        canvas.vertical_text("l", 18.0, (top + bottom) / 2.0, &self.y_label);
        // Bands first, so that no line is hidden behind one.
        for (i, points) in lines.iter().enumerate() {
            self.band(&mut canvas, i, points, &x, &y);
        }
        for (i, points) in lines.iter().enumerate() {
            self.line(&mut canvas, i, points, &x, &y);
        }
        canvas.line("s-axis", (LEFT, bottom), (RIGHT, bottom), 1.2);
        axis::draw_x(&mut canvas, &x, bottom, 8, &self.x_label);
        Plot {
            width: WIDTH,
            height: bottom + 52.0,
            title: self.title.clone(),
            body: canvas.body,
            data: Data::Chart { title: self.title.clone(), chart: self.chart() },
        }
    }

    /// The same as curves.
    fn chart(&self) -> Chart {
        let curve = |line: &LineSeries| Curve {
            name: line.name.clone(),
            pen: if line.published { Pen::Points } else { Pen::Band },
            points: line.points.iter().map(|p| (p.x, p.y, p.ci)).collect(),
        };
        Chart {
            x_label: self.x_label.clone(),
            log_x: self.log_x,
            end_s: None,
            panels: vec![(self.y_label.clone(), self.series.iter().map(curve).collect())],
        }
    }

    /// Rank among the published or among the measured lines; lines of equal rank have the same colour.
    fn rank(&self, series: usize) -> usize {
        let kind = self.series[series].published;
        self.series[..series].iter().filter(|s| s.published == kind).count()
    }

    fn look(&self, series: usize) -> (Mark, &'static str) {
        let rank = self.rank(series);
        let mark = if self.series[series].published { Mark::Ring } else { canvas::mark(rank) };
        (mark, style::series(rank))
    }

    fn legend(&self) -> Vec<(Mark, &'static str, String)> {
        let entry = |i: usize| {
            let (mark, colour) = self.look(i);
            let rank = self.rank(i);
            let mark = if self.series[i].published {
                mark
            } else {
                Mark::Line { dash: rank, mark: Some(rank) }
            };
            (mark, colour, self.series[i].name.clone())
        };
        // A series without points is not drawn, but occupies its rank.
        let drawn = |i: &usize| !self.series[*i].points.is_empty();
        (0..self.series.len()).filter(drawn).map(entry).collect()
    }

    fn band(&self, canvas: &mut Canvas, i: usize, points: &[Point], x: &Axis, y: &Axis) {
        if self.series[i].published || points.iter().all(|p| p.ci <= 0.0) {
            return;
        }
        let mut path = String::new();
        let upper = points.iter().map(|p| (p.x, p.y + p.ci));
        let lower = points.iter().rev().map(|p| (p.x, p.y - p.ci));
        for (k, (px, py)) in upper.chain(lower).enumerate() {
            let _ =
                write!(path, "{}{} {}", if k == 0 { 'M' } else { 'L' }, n(x.at(px)), n(y.at(py)));
        }
        canvas.fill(&format!("b-{}", self.look(i).1), &(path + "z"));
    }

    fn line(&self, canvas: &mut Canvas, i: usize, points: &[Point], x: &Axis, y: &Axis) {
        let (mark, colour) = self.look(i);
        let places: Vec<_> = points.iter().map(|p| (x.at(p.x), y.at(p.y))).collect();
        if !self.series[i].published {
            let mut path = String::new();
            for (k, (px, py)) in places.iter().enumerate() {
                let _ = write!(path, "{}{} {}", if k == 0 { 'M' } else { 'L' }, n(*px), n(*py));
            }
            let look = format!(" stroke-linejoin=\"round\"{}", canvas::dashes(self.rank(i)));
            canvas.path(&format!("s-{colour}"), &path, 2.0, &look);
        }
        canvas.marks(mark, colour, places);
    }
}
