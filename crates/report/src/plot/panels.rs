//! Panels below each other with a common time axis.

use super::axis::{self, Axis, Spread};
use super::canvas::{self, Anchor, Canvas};
use super::curves::{Curve, Pens};
use super::{Plot, sequence};
use crate::data::{Chart, Data};

const TITLE: f64 = 24.0;
const PANEL: f64 = 150.0;
const FOOT: f64 = 52.0;
const TIME: &str = "time (s)";

#[derive(Clone, PartialEq, Debug)]
pub struct Panel {
    /// Title of the vertical axis, with the unit. The axis begins at zero.
    pub y_label: String,
    pub curves: Vec<Curve>,
}

/// Panels with a common time axis, as wide as that of a [`super::TimeSequence`].
#[derive(Clone, PartialEq, Debug)]
pub struct Panels {
    pub title: String,
    /// End of the time axis in seconds; it begins at zero.
    pub end_s: f64,
    /// From top to bottom.
    pub panels: Vec<Panel>,
}

impl Panels {
    /// Points with infinite or undefined values are left out.
    pub fn plot(&self) -> Plot {
        let (left, right) = (sequence::LEFT, sequence::RIGHT);
        let x = Axis::new(0.0, self.end_s.max(1e-6), left, right, Spread::Linear);
        let mut canvas = Canvas::default();
        canvas.text("t", left, TITLE, Anchor::Start, &self.title);
        let mut bottom = TITLE;
        for panel in &self.panels {
            let pens = Pens(&panel.curves);
            let legend = (left, bottom + 24.0);
            let top = 12.0 + canvas::legend(&mut canvas, legend, right, &pens.entries());
            bottom = top + PANEL;
            let curves = panel.curves.iter().map(|curve| {
                let usable = curve.points.iter().filter(|p| p.0.is_finite() && p.1.is_finite());
                usable.copied().collect::<Vec<_>>()
            });
            let curves: Vec<_> = curves.collect();
            let high = curves.iter().flatten().map(|p| p.1).fold(0.0, f64::max);
            let y = Axis::new(0.0, axis::round_end(high), bottom, top, Spread::Linear);
            axis::draw_y(&mut canvas, &y, left, right, 4);
            canvas.vertical_text("l", 18.0, (top + bottom) / 2.0, &panel.y_label);
            canvas.line("s-axis", (left, bottom), (right, bottom), 1.2);
            for (i, points) in curves.iter().enumerate() {
                pens.band(&mut canvas, i, points, &x, &y);
                pens.draw(&mut canvas, i, points, &x, &y);
            }
        }
        axis::draw_x(&mut canvas, &x, bottom, 10, TIME);
        let panels = self.panels.iter().map(|panel| (panel.y_label.clone(), panel.curves.clone()));
        let chart = Chart {
            x_label: TIME.to_owned(),
            log_x: false,
            end_s: Some(self.end_s),
            panels: panels.collect(),
        };
        Plot {
            width: sequence::WIDTH,
            height: bottom + FOOT,
            title: self.title.clone(),
            body: canvas.body,
            data: Data::Chart { title: self.title.clone(), chart },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::Pen;

    #[test]
    fn panels_share_their_axis_and_many_dots_stay_light() {
        let dots = (0..200_000).map(|i| (f64::from(i) * 1e-4, f64::from(i % 7), 0.0)).collect();
        let curve = |name: &str, pen, points| Curve { name: name.to_owned(), pen, points };
        let panel = |y_label: &str, curves| Panel { y_label: y_label.to_owned(), curves };
        let none = curve("none", Pen::Steps, vec![(1.0, f64::NAN, 0.0)]);
        let plot = Panels {
            title: "t".to_owned(),
            end_s: 20.0,
            panels: vec![panel("a", vec![curve("dots", Pen::Dots, dots)]), panel("b", vec![none])],
        }
        .plot();
        let svg = plot.inline();
        assert!(svg.len() < 100_000 && !svg.contains("NaN"), "{}", svg.len());
        assert_eq!(svg.matches("time (s)").count(), 1);
        assert!(svg.contains(">a<") && svg.contains(">b<"));
    }
}
