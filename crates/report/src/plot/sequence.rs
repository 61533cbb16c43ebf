//! Time-sequence plots (west97 4.4): bytes over time. A straight line is an undisturbed transfer; a flat part is a
//! stall.

use lasthop_observe::sequence::{BadPeriod, CellStay, SendKind, Series};
use lasthop_observe::stalls::Stall;

use super::Plot;
use super::axis::{self, Axis, Spread};
use super::canvas::{self, Anchor, Canvas, Mark, n};
use crate::data::Data;

pub(super) const WIDTH: f64 = 920.0;
pub(super) const LEFT: f64 = 72.0;
pub(super) const RIGHT: f64 = WIDTH - 18.0;
const TOP: f64 = 76.0;
const MAIN: f64 = 330.0;
const GAP: f64 = 26.0;
const WINDOW: f64 = 96.0;
const FOOT: f64 = 52.0;
const KIB: f64 = 1024.0;

/// A plot of one flow, or of a part of its time.
#[derive(Clone, Copy, Debug)]
pub struct TimeSequence<'a> {
    pub title: &'a str,
    pub series: &'a Series,
    /// Start and end in seconds; `None` shows the whole series.
    pub part: Option<(f64, f64)>,
}

/// The marks of each kind of transmission; first transmissions are a line.
const KINDS: [(SendKind, Mark, &str, &str); 6] = [
    (SendKind::Fast, Mark::Triangle, "orange", "fast retransmission"),
    (SendKind::Timeout, Mark::Diamond, "purple", "retransmission after timeout"),
    (SendKind::Eln, Mark::Square, "sky", "retransmission after loss notice"),
    (SendKind::Probe, Mark::Square, "purple", "tail loss probe"),
    (SendKind::Local, Mark::Ring, "green", "local retransmission"),
    (SendKind::Again, Mark::Ring, "orange", "retransmission"),
];

impl TimeSequence<'_> {
    /// Packets on the same pixel are drawn once, so that long transfers need little space.
    pub fn plot(&self) -> Plot {
        let series = self.series;
        let part = self.part.unwrap_or((0.0, series.end_s.max(1e-6)));
        let inside = |at: f64| at >= part.0 && at <= part.1;
        let shown: Vec<_> = series.sent.iter().filter(|s| inside(s.at_s)).collect();
        let low = match self.part {
            Some(_) => shown.iter().map(|s| s.start as f64).fold(f64::INFINITY, f64::min) / KIB,
            None => 0.0,
        };
        let high = shown.iter().map(|s| s.end as f64).fold(0.0, f64::max) / KIB;
        let room = (high - low).abs() * 0.03;
        let x = Axis::new(part.0, part.1, LEFT, RIGHT, Spread::Linear);
        let low = if self.part.is_some() { low - room } else { low };
        let y = Axis::new(low, high + room, TOP + MAIN, TOP, Spread::Linear);
        let with_window = series.windows.iter().any(|w| w.cwnd > 0);
        let bottom = TOP + MAIN + if with_window { GAP + WINDOW } else { 0.0 };

        let mut canvas = Canvas::default();
        canvas.text("t", LEFT, 24.0, Anchor::Start, self.title);
        let gaps = gaps_between(&series.cells, part);
        draw_stalls(&mut canvas, &series.stalls, &gaps, &x, part, with_window);
        let bad = draw_bad(&mut canvas, &series.bad, &x, part, with_window);
        draw_cells(&mut canvas, &series.cells, &gaps, &x, part, with_window);
        axis::draw_y(&mut canvas, &y, LEFT, RIGHT, 6);
        canvas.vertical_text("l", 18.0, TOP + MAIN / 2.0, "sequence (KiB)");

        let mut entries = Vec::new();
        let acked = series.acked.iter().filter(|(at, _)| inside(*at));
        let steps: Vec<_> = acked.map(|(at, to)| (x.at(*at), y.at(*to as f64 / KIB))).collect();
        canvas.path("s-muted", &steps_path(&steps), 1.0, "");
        let first = shown.iter().filter(|s| s.kind == SendKind::First);
        let dashes =
            first.map(|s| (x.at(s.at_s), y.at(s.end as f64 / KIB), y.at(s.start as f64 / KIB)));
        canvas.path("s-blue", &dashes_path(dashes), 2.2, " stroke-linecap=\"round\"");
        entries.push((Mark::Dash, "blue", "data".to_owned()));
        if steps.len() > 1 {
            entries.push((Mark::Dash, "muted", "acknowledged".to_owned()));
        }
        let mid = |start: u64, end: u64| y.at((start + end) as f64 / 2.0 / KIB);
        for (kind, mark, colour, words) in KINDS {
            let places: Vec<_> = shown.iter().filter(|s| s.kind == kind).collect();
            if !places.is_empty() {
                entries.push((mark, colour, format!("{words} ({})", places.len())));
                let places = places.iter().map(|s| (x.at(s.at_s), mid(s.start, s.end)));
                canvas.marks(mark, colour, apart(places));
            }
        }
        let lost: Vec<_> = series.lost.iter().filter(|l| inside(l.at_s)).collect();
        if !lost.is_empty() {
            entries.push((Mark::Cross, "red", format!("lost ({})", lost.len())));
            let places = lost.iter().map(|l| (x.at(l.at_s), mid(l.start, l.end)));
            canvas.marks(Mark::Cross, "red", apart(places));
        }
        if bad > 0 {
            entries.push((Mark::Band, "red", format!("channel bad ({bad})")));
        }
        if !gaps.is_empty() {
            entries.push((Mark::Band, "sky", format!("in no cell ({})", gaps.len())));
        }
        canvas::legend(&mut canvas, (LEFT, 46.0), RIGHT, &entries);
        if with_window {
            self.draw_window(&mut canvas, &x, inside);
        }
        axis::draw_x(&mut canvas, &x, bottom, 10, "time (s)");
        Plot {
            width: WIDTH,
            height: bottom + FOOT,
            title: self.title.to_owned(),
            body: canvas.body,
            data: Data::Sequence { title: self.title.to_owned(), series: series.clone() },
        }
    }

    /// The panel of the congestion window, with the times of retransmission timeouts.
    fn draw_window(&self, canvas: &mut Canvas, x: &Axis, inside: impl Fn(f64) -> bool) {
        let series = self.series;
        let (top, bottom) = (TOP + MAIN + GAP, TOP + MAIN + GAP + WINDOW);
        let windows: Vec<_> = series.windows.iter().filter(|w| inside(w.at_s)).collect();
        let high = windows.iter().map(|w| f64::from(w.cwnd)).fold(0.0, f64::max) / KIB;
        let y = Axis::new(0.0, high * 1.12, bottom, top, Spread::Linear);
        axis::draw_y(canvas, &y, LEFT, RIGHT, 3);
        canvas.vertical_text("l", 18.0, (top + bottom) / 2.0, "window (KiB)");
        let threshold = windows.iter().map(|w| {
            // An unset ssthresh is far above the panel; it is drawn at the upper edge.
            (x.at(w.at_s), y.at(f64::from(w.ssthresh) / KIB).max(top))
        });
        let path = steps_path(&threshold.collect::<Vec<_>>());
        canvas.path("s-muted", &path, 1.0, " stroke-dasharray=\"4 3\"");
        let steps: Vec<_> =
            windows.iter().map(|w| (x.at(w.at_s), y.at(f64::from(w.cwnd) / KIB))).collect();
        canvas.path("s-green", &steps_path(&steps), 1.4, "");
        let timeouts: Vec<_> = series.timeouts.iter().filter(|at| inside(**at)).collect();
        let places = timeouts.iter().map(|at| (x.at(**at), bottom));
        let path: String = places.map(|(x, y)| format!("M{} {}v-12", n(x), n(y))).collect();
        canvas.path("s-purple", &path, 2.4, "");
        let mut entries = vec![
            (Mark::Dash, "green", "cwnd".to_owned()),
            (Mark::Dash, "muted", "ssthresh (dashed)".to_owned()),
        ];
        if !timeouts.is_empty() {
            entries.push((Mark::Dash, "purple", format!("timer expired ({})", timeouts.len())));
        }
        canvas::legend(canvas, (LEFT, top - 8.0), RIGHT, &entries);
    }
}

/// Times between two cells within `part`.
fn gaps_between(cells: &[CellStay], part: (f64, f64)) -> Vec<(f64, f64)> {
    let gaps = cells.windows(2).map(|pair| (pair[0].to_s, pair[1].from_s));
    gaps.filter(|(from, to)| to > from && *to > part.0 && *from < part.1).collect()
}

/// The parts of the time `from..to` outside `gaps`, which are in order of time.
fn outside((from, to): (f64, f64), gaps: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut pieces = Vec::new();
    let mut at = from;
    for gap in gaps.iter().filter(|gap| gap.1 > from && gap.0 < to) {
        pieces.push((at, gap.0));
        at = gap.1;
    }
    pieces.push((at, to));
    pieces.retain(|(from, to)| to > from);
    pieces
}

/// Shades stalls; gaps between cells within them have a separate colour.
fn draw_stalls(
    canvas: &mut Canvas,
    stalls: &[Stall],
    gaps: &[(f64, f64)],
    x: &Axis,
    part: (f64, f64),
    with_window: bool,
) {
    let mut free_from = f64::NEG_INFINITY;
    let mut stalls = stalls.iter().filter(|s| s.to_s > part.0 && s.from_s < part.1).peekable();
    while let Some(stall) = stalls.next() {
        let whole = (stall.from_s.max(part.0), stall.to_s.min(part.1));
        for (from, to) in outside(whole, gaps) {
            let (from, to) = (x.at(from), x.at(to));
            let width = (to - from).max(1.0);
            canvas.rect("f-stall", (from, TOP), (width, MAIN), "");
            if with_window {
                canvas.rect("f-stall", (from, TOP + MAIN + GAP), (width, WINDOW), "");
            }
        }
        let (from, to) = (x.at(whole.0), x.at(whole.1));
        let label = format!("{:.1} s", stall.length_s());
        let (middle, half) = ((from + to) / 2.0, 4.0 * label.len() as f64);
        // A label is omitted if it would touch its neighbour, the next band or the edge of the plot. The band remains.
        let end = stalls.peek().map_or(RIGHT + 14.0, |next| x.at(next.from_s).min(RIGHT + 14.0));
        if to - from > 10.0 && middle - half > free_from && middle + half <= end {
            canvas.text("v", middle, TOP + 13.0, Anchor::Middle, &label);
            free_from = middle + half;
        }
    }
}

/// Shades times of a bad channel and returns their number. Periods that touch on the screen are one area.
fn draw_bad(
    canvas: &mut Canvas,
    bad: &[BadPeriod],
    x: &Axis,
    part: (f64, f64),
    with_window: bool,
) -> usize {
    let shown: Vec<_> = bad.iter().filter(|b| b.to_s > part.0 && b.from_s < part.1).collect();
    let mut areas: Vec<(f64, f64)> = Vec::new();
    for period in &shown {
        let (from, to) = (x.at(period.from_s.max(part.0)), x.at(period.to_s.min(part.1)));
        let to = to.max(from + 0.5);
        match areas.last_mut() {
            Some(last) if from - last.1 < 0.5 => last.1 = last.1.max(to),
            _ => areas.push((from, to)),
        }
    }
    for (from, to) in areas {
        canvas.rect("b-red", (from, TOP), (to - from, MAIN), "");
        if with_window {
            canvas.rect("b-red", (from, TOP + MAIN + GAP), (to - from, WINDOW), "");
        }
    }
    shown.len()
}

/// Draws the cells of the host above the plot and shades the gaps between them. A cell's name is drawn where it fits.
fn draw_cells(
    canvas: &mut Canvas,
    cells: &[CellStay],
    gaps: &[(f64, f64)],
    x: &Axis,
    part: (f64, f64),
    with_window: bool,
) {
    /// Height of the row of cells, and its alternating colours.
    const ROW: f64 = 13.0;
    const COLOURS: [&str; 2] = ["b-blue", "b-green"];
    let mut names: Vec<&str> = Vec::new();
    for stay in cells {
        let number = names.iter().position(|name| *name == stay.cell).unwrap_or_else(|| {
            names.push(&stay.cell);
            names.len() - 1
        });
        let (from, to) = (stay.from_s.max(part.0), stay.to_s.min(part.1));
        if to <= from {
            continue;
        }
        let (from, to) = (x.at(from), x.at(to));
        canvas.rect(COLOURS[number % 2], (from, TOP - ROW), (to - from, ROW - 1.0), "");
        if canvas::text_width(&stay.cell) + 4.0 < to - from {
            canvas.text("v", (from + to) / 2.0, TOP - 3.0, Anchor::Middle, &stay.cell);
        }
    }
    for (from, to) in gaps {
        let (from, to) = (x.at(from.max(part.0)), x.at(to.min(part.1)));
        let width = (to - from).max(1.0);
        canvas.rect("b-sky", (from, TOP), (width, MAIN), "");
        if with_window {
            canvas.rect("b-sky", (from, TOP + MAIN + GAP), (width, WINDOW), "");
        }
    }
}

/// Points without those on the same pixel as their predecessor.
fn apart(points: impl IntoIterator<Item = (f64, f64)>) -> Vec<(f64, f64)> {
    let mut distinct: Vec<(f64, f64)> = Vec::new();
    for point in points {
        if distinct.last().is_none_or(|k| (k.0 - point.0).abs() + (k.1 - point.1).abs() >= 0.7) {
            distinct.push(point);
        }
    }
    distinct
}

/// Vertical strokes from `top` to `bottom` at `x`; touching neighbours in one pixel column are merged.
fn dashes_path(dashes: impl IntoIterator<Item = (f64, f64, f64)>) -> String {
    let mut path = String::new();
    let mut open: Option<(f64, f64, f64)> = None;
    let mut write = |(x, top, bottom): (f64, f64, f64)| {
        path += &format!("M{} {}V{}", n(x), n(bottom), n(top.min(bottom - 0.1)));
    };
    for (x, top, bottom) in dashes {
        match &mut open {
            Some(dash)
                if (x - dash.0).abs() < 0.5 && bottom <= dash.2 + 1.0 && top >= dash.1 - 1.0 =>
            {
                dash.1 = dash.1.min(top);
                dash.2 = dash.2.max(bottom);
            }
            // The next packet is directly above the last one, so both are one stroke.
            Some(dash) if (x - dash.0).abs() < 0.5 && (bottom - dash.1).abs() < 1.0 => dash.1 = top,
            _ => {
                if let Some(done) = open.replace((x, top, bottom)) {
                    write(done);
                }
            }
        }
    }
    open.into_iter().for_each(write);
    path
}

/// A staircase through `points`. Each column of pixels keeps only its first, lowest, highest and last point.
fn steps_path(points: &[(f64, f64)]) -> String {
    let mut corners: Vec<(f64, f64)> = Vec::new();
    for column in points.chunk_by(|a, b| (a.0 * 2.0).floor() == (b.0 * 2.0).floor()) {
        if column.len() <= 4 {
            corners.extend(column);
            continue;
        }
        let by_y = |a: &&(f64, f64), b: &&(f64, f64)| a.1.total_cmp(&b.1);
        corners.extend(column.first());
        let (highest, lowest) = (column.iter().min_by(by_y), column.iter().max_by(by_y));
        let climbs = column.first().map(|p| p.1) >= column.last().map(|p| p.1);
        corners.extend(if climbs { lowest } else { highest });
        corners.extend(if climbs { highest } else { lowest });
        corners.extend(column.last());
    }
    // On a rising line, the first point is the lowest and the last one the highest.
    corners.dedup();
    let mut path = String::new();
    for (i, (x, y)) in corners.iter().enumerate() {
        if i == 0 {
            path += &format!("M{} {}", n(*x), n(*y));
        } else {
            path += &format!("H{}V{}", n(*x), n(*y));
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_observe::sequence::{Lost, SentPacket};

    #[test]
    fn a_hundred_thousand_packets_stay_light() {
        let sent = (0..100_000u64).map(|i| SentPacket {
            at_s: i as f64 * 1e-3,
            start: i * 1460,
            end: (i + 1) * 1460,
            kind: SendKind::First,
        });
        let series = Series {
            sent: sent.collect(),
            acked: (0..100_000)
                .map(|i| (f64::from(i) * 1e-3, u64::from(i as u32) * 1460))
                .collect(),
            end_s: 100.0,
            ..Series::default()
        };
        let plot = TimeSequence { title: "long", series: &series, part: None }.plot();
        assert!(plot.inline().len() < 100_000, "{}", plot.inline().len());
    }

    #[test]
    fn bad_periods_are_shaded_where_they_are() {
        let series = Series {
            bad: vec![
                BadPeriod { from_s: 10.0, to_s: 14.0 },
                BadPeriod { from_s: 24.0, to_s: 28.0 },
                BadPeriod { from_s: 28.0001, to_s: 28.0002 },
            ],
            end_s: 40.0,
            ..Series::default()
        };
        let draw = |part| TimeSequence { title: "t", series: &series, part }.plot().inline();
        let whole = draw(None);
        assert!(whole.contains("channel bad (3)"), "{whole}");
        assert_eq!(whole.matches("<rect class=\"b-red\"").count(), 2, "neighbours are one area");
        assert!(!draw(Some((14.5, 20.0))).contains("bad"));
        assert!(draw(Some((12.0, 20.0))).contains("channel bad (1)"));
    }

    #[test]
    fn cells_are_named_and_the_time_between_them_is_shaded() {
        let stay = |cell: &str, from_s, to_s| CellStay { cell: cell.to_owned(), from_s, to_s };
        let series = Series {
            cells: vec![stay("west", 0.0, 8.0), stay("east", 8.5, 16.0), stay("west", 16.0, 20.0)],
            stalls: vec![Stall { from_s: 7.5, to_s: 9.0 }],
            end_s: 20.0,
            ..Series::default()
        };
        let draw = |part| TimeSequence { title: "t", series: &series, part }.plot().inline();
        let whole = draw(None);
        assert!(whole.contains("in no cell (1)"), "{whole}");
        // The stall is shown on both sides of the gap.
        assert_eq!(whole.matches("\"f-stall\"").count(), 2, "{whole}");
        assert_eq!((whole.matches(">west<").count(), whole.matches(">east<").count()), (2, 1));
        assert!(!draw(Some((9.0, 12.0))).contains("in no cell"));
        assert!(draw(Some((8.1, 12.0))).contains("in no cell (1)"));
    }

    #[test]
    fn an_empty_series_draws_an_empty_plot() {
        let series = Series::default();
        let plot = TimeSequence { title: "nothing <yet>", series: &series, part: None }.plot();
        assert!(plot.inline().contains("nothing &lt;yet&gt;"));
        assert!(!plot.inline().contains("NaN"));
    }

    #[test]
    fn losses_and_stalls_are_drawn_where_they_are() {
        let series = Series {
            sent: vec![SentPacket { at_s: 1.0, start: 0, end: 1024, kind: SendKind::Timeout }],
            lost: vec![Lost { at_s: 0.5, start: 0, end: 1024 }],
            stalls: vec![Stall { from_s: 0.5, to_s: 1.5 }],
            end_s: 2.0,
            ..Series::default()
        };
        let svg = TimeSequence { title: "t", series: &series, part: None }.plot().inline();
        assert!(svg.contains("lost (1)") && svg.contains("1.0 s"), "{svg}");
        let rest =
            TimeSequence { title: "t", series: &series, part: Some((1.6, 2.0)) }.plot().inline();
        assert!(!rest.contains("lost") && !rest.contains("1.0 s"));
    }

    #[test]
    fn a_label_does_not_reach_into_the_next_stall() {
        let stall = |from_s: f64| Stall { from_s, to_s: from_s + 1.5 };
        let labels = |second: f64| {
            let series = Series {
                stalls: vec![stall(1.0), stall(second)],
                end_s: 100.0,
                ..Series::default()
            };
            let svg = TimeSequence { title: "t", series: &series, part: None }.plot().inline();
            svg.matches("1.5 s").count()
        };
        assert_eq!(labels(40.0), 2);
        assert_eq!(labels(2.6), 1);
    }
}
