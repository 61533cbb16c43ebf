//! Heat maps: a value for each pair of labels, as small multiples below and next to each other.

use super::Plot;
use super::canvas::{Anchor, Canvas, text_width};
use crate::model::{Column, Table};
use crate::number::short;

const MARGIN: f64 = 16.0;
const TOP: f64 = 84.0;
const GAP: f64 = 26.0;
/// Width of a figure that holds several maps.
const WIDTH: f64 = 1100.0;
/// Width of a tile, and its height.
const TILE: (f64, f64) = (46.0, 24.0);
/// Width of a tile without its number.
const NARROW: f64 = 22.0;
/// Number of columns up to which tiles have their number.
const NUMBERED: usize = 16;
/// Opacity of the lowest and of the highest value: text stays readable on both.
const OPACITY: (f64, f64) = (0.04, 0.55);
/// Ratio of the highest to the lowest value from which shades are logarithmic.
const LOGARITHMIC: f64 = 30.0;

/// A map of rows and columns.
#[derive(Clone, PartialEq, Debug)]
pub struct HeatMap {
    /// Labels of the axes that have one value in this map; empty if there are none.
    pub title: String,
    /// A row for each label of the vertical axis, with a value for each label of the horizontal axis.
    pub values: Vec<Vec<Option<f64>>>,
}

/// Maps with common axes and shades.
#[derive(Clone, PartialEq, Debug)]
pub struct HeatMaps {
    pub title: String,
    /// The quantity, with its unit.
    pub value_label: String,
    /// Name of the vertical axis, and its labels from top to bottom.
    pub rows: (String, Vec<String>),
    /// Name of the horizontal axis, and its labels from left to right.
    pub columns: (String, Vec<String>),
    pub maps: Vec<HeatMap>,
    /// Columns have names, not numbers: where ranges are wide, each has a scale of its own, from zero.
    pub named_columns: bool,
    /// Cells that the figure does not show, as a sentence.
    pub note: String,
}

/// A scale of shades.
struct Shades {
    low: f64,
    high: f64,
    log: bool,
}

impl Shades {
    fn of(values: impl Iterator<Item = f64> + Clone) -> Shades {
        let low = values.clone().fold(f64::INFINITY, f64::min);
        let high = values.fold(f64::NEG_INFINITY, f64::max);
        Shades { low, high, log: low > 0.0 && high / low > LOGARITHMIC }
    }

    fn opacity(&self, value: f64) -> f64 {
        let spread = |v: f64| if self.log { libm::log(v) } else { v };
        let (low, high) = (spread(self.low), spread(self.high));
        let share = if high > low { (spread(value) - low) / (high - low) } else { 0.0 };
        OPACITY.0 + share.clamp(0.0, 1.0) * (OPACITY.1 - OPACITY.0)
    }
}

/// Width and height of a map, and the space of its labels at the left and below.
struct Geometry {
    tile: (f64, f64),
    left: f64,
    below: f64,
    turned: bool,
}

impl HeatMaps {
    /// Values that are infinite or undefined have no tile.
    pub fn plot(&self) -> Plot {
        let widest = |labels: &[String]| labels.iter().map(|l| text_width(l)).fold(0.0, f64::max);
        let (rows, columns) = (&self.rows.1, &self.columns.1);
        let width = if columns.len() <= NUMBERED { TILE.0 } else { NARROW };
        let turned = widest(columns) > width - 4.0;
        let below = 34.0 + if turned { widest(columns) } else { 14.0 };
        let left = widest(rows).max(40.0) + 34.0;
        let geometry = Geometry { tile: (width, TILE.1), left, below, turned };
        let map_width = left + width * columns.len() as f64;
        let map_height = 20.0 + TILE.1 * rows.len() as f64 + below;
        let fitting = ((WIDTH - MARGIN + GAP) / (map_width + GAP)) as usize;
        let across = fitting.clamp(1, self.maps.len().max(1));
        let shades = self.shades();

        let mut canvas = Canvas::default();
        canvas.text("t", MARGIN, 24.0, Anchor::Start, &self.title);
        self.key(&mut canvas, &shades);
        canvas.text("l", MARGIN, 66.0, Anchor::Start, &self.note);
        for (i, map) in self.maps.iter().enumerate() {
            let x = MARGIN + (i % across) as f64 * (map_width + GAP);
            let y = TOP + (i / across) as f64 * (map_height + GAP);
            self.map(&mut canvas, map, (x, y), &geometry, &shades);
        }
        let lines = self.maps.len().div_ceil(across) as f64;
        let texts = [&self.title, &self.note].map(|text| text_width(text) * 1.2);
        let wide = MARGIN + across as f64 * (map_width + GAP);
        Plot::of_table(
            (
                texts.into_iter().fold(wide.max(440.0), f64::max) + MARGIN,
                TOP + lines * (map_height + GAP),
            ),
            &self.title,
            canvas,
            self.table(),
        )
    }

    /// The scale of all values, or one for each column.
    fn shades(&self) -> Vec<Shades> {
        let rows = || self.maps.iter().flat_map(|map| &map.values);
        let finite = |value: &f64| value.is_finite();
        let all = Shades::of(rows().flatten().flatten().copied().filter(finite));
        if !(all.log && self.named_columns) {
            return vec![all];
        }
        let column = |j: usize| rows().filter_map(move |row| *row.get(j)?).filter(finite);
        (0..self.columns.1.len())
            .map(|j| Shades { low: 0.0, high: Shades::of(column(j)).high, log: false })
            .collect()
    }

    /// The shades from the lowest to the highest value.
    fn key(&self, canvas: &mut Canvas, shades: &[Shades]) {
        canvas.text("l", MARGIN, 46.0, Anchor::Start, &self.value_label);
        let (low, high) = match shades {
            [all] if all.low > all.high => return,
            [all] => {
                let scale = if all.log { ", logarithmic" } else { "" };
                (short(all.low), format!("{}{scale}", short(all.high)))
            }
            _ => ("0".to_owned(), "highest of the column".to_owned()),
        };
        let mut x = MARGIN + text_width(&self.value_label) + 16.0;
        canvas.text("k", x, 46.0, Anchor::Start, &low);
        x += text_width(&low) + 6.0;
        for step in 0..=8 {
            let share = f64::from(step) / 8.0;
            tile(canvas, (x, 35.0), (14.0, 14.0), OPACITY.0 + share * (OPACITY.1 - OPACITY.0));
            x += 14.0;
        }
        canvas.text("k", x + 6.0, 46.0, Anchor::Start, &high);
    }

    fn map(
        &self,
        canvas: &mut Canvas,
        map: &HeatMap,
        (x, y): (f64, f64),
        geometry: &Geometry,
        shades: &[Shades],
    ) {
        let Geometry { tile: (width, height), left, below, turned } = *geometry;
        let (start, top) = (x + left, y + 20.0);
        let bottom = top + height * self.rows.1.len() as f64;
        canvas.text("l", start, y + 12.0, Anchor::Start, &map.title);
        let middle = (top + bottom) / 2.0;
        canvas.vertical_text("l", x + 12.0, middle, &self.rows.0);
        for (i, (label, values)) in self.rows.1.iter().zip(&map.values).enumerate() {
            let above = top + height * i as f64;
            canvas.text("k", start - 6.0, above + height / 2.0 + 4.0, Anchor::End, label);
            for (j, value) in values.iter().enumerate() {
                let Some(value) = value.filter(|value| value.is_finite()) else { continue };
                let at = start + width * j as f64;
                let scale = &shades[j.min(shades.len() - 1)];
                tile(canvas, (at, above), (width - 1.0, height - 1.0), scale.opacity(value));
                let number = short(value);
                if text_width(&number) < width {
                    let baseline = above + height / 2.0 + 4.0;
                    canvas.text("v", at + width / 2.0, baseline, Anchor::Middle, &number);
                }
            }
        }
        for (j, label) in self.columns.1.iter().enumerate() {
            let centre = start + width * (j as f64 + 0.5);
            if turned {
                canvas.vertical_text(
                    "k",
                    centre + 4.0,
                    bottom + 8.0 + text_width(label) / 2.0,
                    label,
                );
            } else {
                canvas.text("k", centre, bottom + 16.0, Anchor::Middle, label);
            }
        }
        let centre = start + width * self.columns.1.len() as f64 / 2.0;
        canvas.text("l", centre, bottom + below - 6.0, Anchor::Middle, &self.columns.0);
    }

    /// A row for each tile.
    fn table(&self) -> Table {
        let mut rows = Vec::new();
        for map in &self.maps {
            for (row, values) in self.rows.1.iter().zip(&map.values) {
                for (column, value) in self.columns.1.iter().zip(values) {
                    if let Some(value) = value {
                        let names = [&map.title, row, column].into_iter().cloned();
                        rows.push(names.chain([value.to_string()]).collect());
                    }
                }
            }
        }
        let columns = [
            Column::text("map"),
            Column::text(&self.rows.0),
            Column::text(&self.columns.0),
            Column::number(&self.value_label),
        ];
        Table::new(columns, rows)
    }
}

fn tile(canvas: &mut Canvas, at: (f64, f64), size: (f64, f64), opacity: f64) {
    canvas.rect("f-blue", at, size, &format!(" fill-opacity=\"{opacity:.3}\""));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn maps(count: usize, columns: usize) -> HeatMaps {
        let labels = |n: usize| (0..n).map(|i| format!("l{i}")).collect::<Vec<_>>();
        let row = |i: usize| (0..columns).map(|j| Some(1.0 + (i * columns + j) as f64)).collect();
        let map = |i: usize| HeatMap { title: format!("m={i}"), values: (0..3).map(row).collect() };
        HeatMaps {
            title: "t".to_owned(),
            value_label: "throughput (Mbit/s)".to_owned(),
            rows: ("r".to_owned(), labels(3)),
            columns: ("c".to_owned(), labels(columns)),
            maps: (0..count).map(map).collect(),
            named_columns: false,
            note: String::new(),
        }
    }

    #[test]
    fn every_value_has_a_tile_and_the_figure_stays_within_a_page() {
        for (count, columns) in [(1, 4), (5, 13), (12, 40)] {
            let drawn = maps(count, columns);
            let plot = drawn.plot();
            let tiles = plot.body.matches("f-blue").count() - 9;
            assert_eq!(tiles, count * 3 * columns);
            assert!(plot.width < 1300.0 && plot.height < 2500.0, "{} {}", plot.width, plot.height);
        }
    }

    #[test]
    fn missing_and_undefined_values_have_no_tile() {
        let mut drawn = maps(1, 2);
        drawn.maps[0].values[0] = vec![None, Some(f64::NAN)];
        let svg = drawn.plot().body;
        assert_eq!(svg.matches("f-blue").count() - 9, 4);
        assert!(!svg.contains("NaN"), "{svg}");
        drawn.maps[0].values = vec![vec![None; 2]; 3];
        assert!(!drawn.plot().body.contains("inf"));
    }

    /// The best sender of each link is as dark as that of any other, although links differ by orders of magnitude.
    #[test]
    fn named_columns_of_wide_ranges_have_own_scales() {
        let mut drawn = maps(1, 2);
        drawn.maps[0].values =
            [[100.0, 0.02], [50.0, 0.01], [75.0, 0.015]].map(|row| row.map(Some).to_vec()).to_vec();
        assert!(drawn.shades().len() == 1 && drawn.plot().body.contains("logarithmic"));
        drawn.named_columns = true;
        let shades = drawn.shades();
        let middle = |j: usize, value| shades[j].opacity(value);
        assert_eq!((middle(0, 100.0), middle(1, 0.02)), (OPACITY.1, OPACITY.1));
        assert!((middle(0, 75.0) - middle(1, 0.015)).abs() < 1e-9);
        assert!(drawn.plot().body.contains("highest of the column"));
        // With similar values in all columns one scale compares them.
        drawn.maps[0].values[0] = vec![Some(3.0), Some(1.0)];
        drawn.maps[0].values.truncate(1);
        assert_eq!(drawn.shades().len(), 1);
    }

    #[test]
    fn higher_values_are_darker_and_wide_ranges_logarithmic() {
        let linear = Shades::of([0.0, 10.0].into_iter());
        assert!(!linear.log && linear.opacity(5.0) > linear.opacity(1.0));
        let log = Shades::of([0.1, 10.0].into_iter());
        assert!(log.log);
        let middle = (OPACITY.0 + OPACITY.1) / 2.0;
        assert!((log.opacity(1.0) - middle).abs() < 1e-9);
    }
}
