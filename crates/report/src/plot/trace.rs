//! Packet traces (bakshi96 3.4): a mark for each packet of the source, at its number modulo some number. A
//! retransmission is a mark at the same height as the original.

use lasthop_observe::sequence::{SendKind, Series};

use super::Plot;
use super::axis::{self, Axis, Spread};
use super::canvas::{self, Anchor, Canvas, Mark, n};
use crate::model::{Column, Table};

const WIDTH: f64 = 920.0;
const LEFT: f64 = 72.0;
const RIGHT: f64 = WIDTH - 18.0;
const TOP: f64 = 76.0;
const PANEL: f64 = 330.0;
const FOOT: f64 = 52.0;

#[derive(Clone, Copy, Debug)]
pub struct PacketTrace<'a> {
    pub title: &'a str,
    pub series: &'a Series,
    /// Payload of a packet in bytes.
    pub payload: u32,
    /// Packet numbers wrap at this number.
    pub modulo: u32,
}

/// The marks of the kinds of transmissions.
const KINDS: [(SendKind, Mark, &str, &str); 3] = [
    (SendKind::First, Mark::Dot, "blue", "first transmission"),
    (SendKind::Timeout, Mark::Diamond, "purple", "retransmission after timeout"),
    (SendKind::Fast, Mark::Triangle, "orange", "fast retransmission"),
];

impl PacketTrace<'_> {
    pub fn plot(&self) -> Plot {
        let series = self.series;
        let bottom = TOP + PANEL;
        let x = Axis::new(0.0, series.end_s.max(1e-6), LEFT, RIGHT, Spread::Linear);
        let y = Axis::new(0.0, f64::from(self.modulo), bottom, TOP, Spread::Linear);
        let mut canvas = Canvas::default();
        canvas.text("t", LEFT, 24.0, Anchor::Start, self.title);
        let bad: Vec<_> = series.bad.iter().filter(|b| b.from_s < series.end_s).collect();
        for period in &bad {
            let (from, to) = (x.at(period.from_s), x.at(period.to_s.min(series.end_s)));
            canvas.rect("b-red", (from, TOP), (to - from, PANEL), "");
        }
        axis::draw_y(&mut canvas, &y, LEFT, RIGHT, 6);
        canvas.vertical_text(
            "l",
            18.0,
            TOP + PANEL / 2.0,
            &format!("packet number mod {}", self.modulo),
        );
        let mut entries = Vec::new();
        for (kind, mark, colour, words) in KINDS {
            let sent: Vec<_> = series.sent.iter().filter(|s| s.kind == kind).collect();
            if !sent.is_empty() {
                entries.push((mark, colour, format!("{words} ({})", sent.len())));
                let places = sent.iter().map(|s| (x.at(s.at_s), y.at(self.number(s.start))));
                canvas.marks(mark, colour, places);
            }
        }
        let ticks: String = series
            .timeouts
            .iter()
            .map(|at| format!("M{} {}v-12", n(x.at(*at)), n(bottom)))
            .collect();
        if !series.timeouts.is_empty() {
            canvas.path("s-purple", &ticks, 2.4, "");
            let words = format!("timer expired ({})", series.timeouts.len());
            entries.push((Mark::Dash, "purple", words));
        }
        if !bad.is_empty() {
            entries.push((Mark::Band, "red", format!("channel bad ({})", bad.len())));
        }
        canvas::legend(&mut canvas, (LEFT, 46.0), RIGHT, &entries);
        axis::draw_x(&mut canvas, &x, bottom, 10, "time (s)");
        Plot::of_table((WIDTH, bottom + FOOT), self.title, canvas, self.table())
    }

    /// A row for each packet.
    fn table(&self) -> Table {
        let drawn = self.series.sent.iter().filter_map(|sent| {
            let (_, _, _, words) = KINDS.iter().find(|(kind, ..)| *kind == sent.kind)?;
            Some(vec![
                sent.at_s.to_string(),
                self.number(sent.start).to_string(),
                (*words).to_owned(),
            ])
        });
        let number = Column::number(format!("packet number mod {}", self.modulo));
        Table::new([Column::number("time_s"), number, Column::text("what")], drawn)
    }

    /// The position on the axis of the packet that begins at byte `start`; the first packet has number 0.
    fn number(&self, start: u64) -> f64 {
        (start / u64::from(self.payload.max(1)) % u64::from(self.modulo.max(1))) as f64
    }
}

#[cfg(test)]
mod tests {
    use lasthop_observe::sequence::{BadPeriod, SentPacket};

    use super::*;

    fn trace(series: &Series) -> PacketTrace<'_> {
        PacketTrace { title: "t", series, payload: 536, modulo: 90 }
    }

    #[test]
    fn packet_numbers_wrap_and_each_kind_has_a_legend() {
        let sent = |at_s, number: u64, kind| {
            let start = number * 536;
            SentPacket { at_s, start, end: start + 536, kind }
        };
        let series = Series {
            sent: vec![
                sent(1.0, 44, SendKind::First),
                sent(3.0, 44, SendKind::Timeout),
                sent(5.0, 134, SendKind::First),
            ],
            timeouts: vec![3.0],
            bad: vec![BadPeriod { from_s: 1.0, to_s: 2.0 }, BadPeriod { from_s: 30.0, to_s: 34.0 }],
            end_s: 6.0,
            ..Series::default()
        };
        let trace = trace(&series);
        assert_eq!(trace.number(44 * 536), 44.0);
        assert_eq!(trace.number(134 * 536), 44.0);
        let picture = trace.plot().inline();
        for words in ["first transmission (2)", "after timeout (1)", "expired (1)", "bad (1)"] {
            assert!(picture.contains(words), "{words}");
        }
    }

    #[test]
    fn an_empty_trace_draws_an_empty_plot() {
        let series = Series::default();
        assert!(trace(&series).plot().inline().contains("packet number mod 90"));
    }
}
