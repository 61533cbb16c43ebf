//! Bar charts that compare published with measured figures.

use super::axis::{self, Axis, Spread};
use super::canvas::{Anchor, Canvas, n, text_width};
use super::{Plot, style};
use crate::model::{Column, Table};
use crate::number::short;

const LEFT: f64 = 72.0;
const TOP: f64 = 66.0;
const PANEL: f64 = 270.0;
const BAR: f64 = 46.0;
const BETWEEN: f64 = 30.0;

#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Bar {
    pub value: f64,
    /// Half the width of the 95 % confidence interval; zero draws no whisker.
    pub ci: f64,
}

/// The bars at the same position of every group.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BarSeries {
    pub name: String,
    /// Published figures are drawn in grey, as a background for the measured ones.
    pub published: bool,
}

#[derive(Clone, PartialEq, Debug)]
pub struct BarGroup {
    /// Name below the bars.
    pub label: String,
    /// A bar for each series, or `None`.
    pub bars: Vec<Option<Bar>>,
}

/// A bar chart; its vertical axis begins at zero.
#[derive(Clone, PartialEq, Debug)]
pub struct BarChart {
    pub title: String,
    /// Title of the vertical axis, with the unit.
    pub y_label: String,
    /// The series of each group, from left to right.
    pub series: Vec<BarSeries>,
    pub groups: Vec<BarGroup>,
}

impl BarChart {
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
        let mut drawn = Vec::new();
        for (i, group) in self.groups.iter().enumerate() {
            let middle = LEFT + share * (i as f64 + 0.5);
            let bars = || group.bars.iter().enumerate().filter_map(|(j, b)| Some((j, b.as_ref()?)));
            let left = middle - bar * bars().count() as f64 / 2.0;
            for (k, (j, value)) in bars().enumerate() {
                let x = left + bar * k as f64 + 3.0;
                draw_bar(&mut canvas, value, &self.colour(j), (x, bar - 6.0), &y);
                drawn.push(DrawnBar::new(value, (x, bar - 6.0), &y));
            }
            for (line, words) in two_lines(&group.label, share).iter().enumerate() {
                canvas.text("l", middle, bottom + 20.0 + 16.0 * line as f64, Anchor::Middle, words);
            }
        }
        for (one, _) in drawn.iter().zip(drawn_labels(&drawn)).filter(|(_, readable)| *readable) {
            canvas.text("v", one.middle, one.label_at, Anchor::Middle, &one.label);
        }
        canvas.line("s-axis", (LEFT, bottom), (right, bottom), 1.2);
        Plot::of_table((width, bottom + 52.0), &self.title, canvas, self.table())
    }

    /// A row for each bar.
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

    /// The series with at least one bar: the others have no column and no legend entry.
    fn used(&self) -> impl Iterator<Item = usize> {
        (0..self.series.len())
            .filter(|j| self.groups.iter().any(|g| matches!(g.bars.get(*j), Some(Some(_)))))
    }

    fn colour(&self, series: usize) -> String {
        // Series without bars use no colour.
        let before = self.used().take_while(|j| *j < series);
        let before = before.filter(|j| !self.series[*j].published).count();
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
    if bar.ci > 0.0 {
        let (high, low) = (y.at(bar.value + bar.ci), y.at((bar.value - bar.ci).max(0.0)));
        let (left, top, bottom) = (n(middle - 5.0), n(high), n(low));
        let path = format!("M{left} {top}h10m-5 0V{bottom}m-5 0h10");
        canvas.path("s-ink", &path, 1.4, "");
    }
}

/// A bar in the drawing, with its number.
struct DrawnBar {
    value: f64,
    left: f64,
    right: f64,
    top: f64,
    middle: f64,
    label: String,
    label_at: f64,
}

impl DrawnBar {
    fn new(bar: &Bar, (x, width): (f64, f64), y: &Axis) -> DrawnBar {
        let top = y.at(bar.value.max(0.0));
        let above = if bar.ci > 0.0 { y.at(bar.value + bar.ci) } else { top };
        DrawnBar {
            value: bar.value,
            left: x,
            right: x + width,
            top,
            middle: x + width / 2.0,
            label: short(bar.value),
            label_at: above - 6.0,
        }
    }

    /// Half the width of the label in pixels; digits are narrower than letters.
    fn half(&self) -> f64 {
        text_width(&self.label) * 0.44
    }
}

/// For each bar, whether its label can be drawn: it overlaps no other bar and no drawn label of a higher bar.
fn drawn_labels(drawn: &[DrawnBar]) -> Vec<bool> {
    const HEIGHT: f64 = 11.0;
    let mut order: Vec<usize> = (0..drawn.len()).collect();
    order.sort_by(|a, b| drawn[*b].value.total_cmp(&drawn[*a].value));
    let mut labelled = vec![false; drawn.len()];
    for i in order {
        let one = &drawn[i];
        let covered = drawn.iter().enumerate().any(|(j, other)| {
            let on_bar = one.middle + one.half() > other.left
                && one.middle - one.half() < other.right
                && one.label_at > other.top;
            let on_label = labelled[j]
                && (one.middle - other.middle).abs() < one.half() + other.half()
                && (one.label_at - other.label_at).abs() < HEIGHT;
            j != i && (on_bar || on_label)
        });
        labelled[i] = !covered;
    }
    labelled
}

/// `label` in one line, or in two if it is longer than `width`.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(values: &[&[Option<f64>]]) -> BarChart {
        let bar = |value: &Option<f64>| value.map(|value| Bar { value, ci: 0.0 });
        let group = |(i, values): (usize, &&[Option<f64>])| BarGroup {
            label: format!("g{i}"),
            bars: values.iter().map(bar).collect(),
        };
        let series =
            (0..values[0].len()).map(|i| BarSeries { name: format!("s{i}"), published: false });
        BarChart {
            title: "t".to_owned(),
            y_label: "y".to_owned(),
            series: series.collect(),
            groups: values.iter().enumerate().map(group).collect(),
        }
    }

    #[test]
    fn numbers_that_would_lie_on_others_are_left_out() {
        let few = chart(&[&[Some(10.25), Some(20.25)]]).plot().inline();
        assert_eq!(few.matches("class=\"v\"").count(), 2);
        let group: &[Option<f64>] =
            &[Some(30.25), Some(10.25), Some(10.75), Some(11.25), Some(0.125), Some(5.25)];
        let many = chart(&[group; 8]).plot().inline();
        let shown = many.matches("class=\"v\"").count();
        assert!((8..48).contains(&shown), "{shown}");
        assert_eq!(many.matches(">30.25<").count(), 8, "the highest of each group has a label");
    }

    #[test]
    fn series_without_a_bar_take_no_colour() {
        let values: &[Option<f64>] =
            &[Some(1.0), Some(1.0), None, Some(1.0), Some(1.0), Some(1.0), Some(1.0), Some(1.0)];
        let chart = chart(&[values]);
        let colours: std::collections::BTreeSet<_> =
            chart.used().map(|j| chart.colour(j)).collect();
        assert_eq!(colours.len(), 7);
    }
}
