//! Bars: what was published beside what was measured.

use super::axis::{self, Axis, Spread};
use super::canvas::{Anchor, Canvas, n, text_width};
use super::{Plot, style};
use crate::data::Data;
use crate::model::{Column, Table};
use crate::number::short;

const LEFT: f64 = 72.0;
const TOP: f64 = 66.0;
const PANEL: f64 = 270.0;
const BAR: f64 = 46.0;
const BETWEEN: f64 = 30.0;

/// One bar.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Bar {
    /// Its height.
    pub value: f64,
    /// Half the width of the 95 % confidence interval; zero draws no whisker.
    pub ci: f64,
}

/// What the bars at the same place of every group have in common.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BarSeries {
    /// Name, for the legend.
    pub name: String,
    /// Published figures are drawn in grey, to stand back behind what was measured.
    pub published: bool,
}

/// Bars that stand together.
#[derive(Clone, PartialEq, Debug)]
pub struct BarGroup {
    /// Name under the bars.
    pub label: String,
    /// A bar for each series, or none.
    pub bars: Vec<Option<Bar>>,
}

/// A bar chart; its vertical axis begins at zero.
#[derive(Clone, PartialEq, Debug)]
pub struct BarChart {
    /// Heading.
    pub title: String,
    /// Title of the vertical axis, with the unit.
    pub y_label: String,
    /// What the bars of a group stand for, left to right.
    pub series: Vec<BarSeries>,
    /// Groups from left to right.
    pub groups: Vec<BarGroup>,
}

impl BarChart {
    /// Draws it.
    pub fn plot(&self) -> Plot {
        let group = BAR * self.used().count() as f64;
        let needed = self.groups.len() as f64 * (group + BETWEEN) + BETWEEN;
        let width = (LEFT + needed + 18.0).clamp(460.0, 1400.0);
        let right = width - 18.0;
        // A group is centred in its share of the panel.
        let share = (right - LEFT) / self.groups.len().max(1) as f64;
        let bar = BAR.min(share * 0.86 / self.used().count().max(1) as f64);
        let all = || self.groups.iter().flat_map(|g| g.bars.iter().flatten());
        let high = axis::round_end(all().map(|b| b.value + b.ci).fold(0.0, f64::max));
        let bottom = TOP + PANEL;
        let y = Axis::new(0.0, high, bottom, TOP, Spread::Linear);

        let mut canvas = Canvas::default();
        canvas.text("t", LEFT, 24.0, Anchor::Start, &self.title);
        axis::draw_y(&mut canvas, &y, LEFT, right, 5);
        canvas.vertical_text("l", 18.0, TOP + PANEL / 2.0, &self.y_label);
        self.legend(&mut canvas);
        for (i, group) in self.groups.iter().enumerate() {
            let middle = LEFT + share * (i as f64 + 0.5);
            let bars = || group.bars.iter().enumerate().filter_map(|(j, b)| Some((j, b.as_ref()?)));
            let left = middle - bar * bars().count() as f64 / 2.0;
            for (k, (j, value)) in bars().enumerate() {
                let x = left + bar * k as f64 + 3.0;
                draw_bar(&mut canvas, value, &self.colour(j), (x, bar - 6.0), &y);
            }
            for (line, words) in two_lines(&group.label, share).iter().enumerate() {
                canvas.text("l", middle, bottom + 20.0 + 16.0 * line as f64, Anchor::Middle, words);
            }
        }
        canvas.line("s-axis", (LEFT, bottom), (right, bottom), 1.2);
        Plot {
            width,
            height: bottom + 52.0,
            title: self.title.clone(),
            body: canvas.body,
            data: Data::Table(self.table().titled(self.title.clone())),
        }
    }

    /// What is drawn, a row for each bar.
    fn table(&self) -> Table {
        let mut rows = Vec::new();
        for group in &self.groups {
            for (series, bar) in self.series.iter().zip(&group.bars) {
                if let Some(Bar { value, ci }) = bar {
                    let (group, series) = (group.label.clone(), series.name.clone());
                    rows.push(vec![group, series, value.to_string(), ci.to_string()]);
                }
            }
        }
        let columns = [
            Column::text("group"),
            Column::text("bar"),
            Column::number(&self.y_label),
            Column::number("half_interval_95"),
        ];
        Table::new(columns, rows)
    }

    /// The series that have a bar anywhere: the others take no room, and no place in the legend.
    fn used(&self) -> impl Iterator<Item = usize> {
        (0..self.series.len())
            .filter(|j| self.groups.iter().any(|g| matches!(g.bars.get(*j), Some(Some(_)))))
    }

    fn colour(&self, series: usize) -> String {
        let before = self.series.iter().take(series).filter(|s| !s.published).count();
        match self.series.get(series) {
            Some(s) if s.published => "published".to_owned(),
            _ => style::series(before).to_owned(),
        }
    }

    fn legend(&self, canvas: &mut Canvas) {
        let mut x = LEFT;
        for i in self.used() {
            let series = &self.series[i];
            let class = format!("f-{}", self.colour(i));
            canvas.rect(&class, (x, 38.0), (12.0, 12.0), " rx=\"2\"");
            canvas.text("l", x + 18.0, 48.5, Anchor::Start, &series.name);
            x += 40.0 + text_width(&series.name);
        }
    }
}

fn draw_bar(canvas: &mut Canvas, bar: &Bar, colour: &str, (x, width): (f64, f64), y: &Axis) {
    let (top, bottom) = (y.at(bar.value.max(0.0)), y.at(0.0));
    canvas.rect(&format!("f-{colour}"), (x, top), (width, bottom - top), " rx=\"2\"");
    let middle = x + width / 2.0;
    let mut label_at = top;
    if bar.ci > 0.0 {
        let (high, low) = (y.at(bar.value + bar.ci), y.at((bar.value - bar.ci).max(0.0)));
        let (left, top, bottom) = (n(middle - 5.0), n(high), n(low));
        let path = format!("M{left} {top}h10m-5 0V{bottom}m-5 0h10");
        canvas.path("s-ink", &path, 1.4, "");
        label_at = high;
    }
    canvas.text("v", middle, label_at - 6.0, Anchor::Middle, &short(bar.value));
}

/// `label` in one line, or in two where it is too long for `width`.
fn two_lines(label: &str, width: f64) -> Vec<String> {
    if text_width(label) <= width {
        return vec![label.to_owned()];
    }
    let nearest = |breaks: &[char]| {
        let middle = label.len() as i64 / 2;
        let places = label.char_indices().filter(|(_, c)| breaks.contains(c)).map(|(i, _)| i);
        places.min_by_key(|i| (*i as i64 - middle).abs())
    };
    match (nearest(&[' ']), nearest(&['-', '+'])) {
        (Some(at), _) => vec![label[..at].to_owned(), label[at + 1..].to_owned()],
        // A word is broken behind its hyphen.
        (None, Some(at)) => vec![label[..=at].to_owned(), label[at + 1..].to_owned()],
        (None, None) => vec![label.to_owned()],
    }
}
