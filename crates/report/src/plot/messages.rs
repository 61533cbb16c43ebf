//! Sequence diagrams: messages between parties, in order of time from the top.

use super::Plot;
use super::canvas::{Anchor, Canvas, n};
use crate::data::Data;
use crate::model::{Column, Table};

const WIDTH: f64 = 760.0;
/// Room for the notes at both sides.
const SIDE: f64 = 170.0;
const TOP: f64 = 78.0;
const STEP: f64 = 28.0;

/// A message, or a note of a party that sends none.
#[derive(Clone, PartialEq, Debug)]
pub struct Message {
    /// Index of the sending party.
    pub from: usize,
    /// Index of the receiving party; the sender's for a note.
    pub to: usize,
    pub text: String,
    /// Whether it is lost before it reaches the receiving party.
    pub lost: bool,
}

/// A sequence diagram; time runs downwards, without a scale.
#[derive(Clone, PartialEq, Debug)]
pub struct Messages {
    pub title: String,
    /// From left to right.
    pub parties: Vec<String>,
    pub messages: Vec<Message>,
}

impl Messages {
    pub fn plot(&self) -> Plot {
        let mut canvas = Canvas::default();
        canvas.text("t", 20.0, 24.0, Anchor::Start, &self.title);
        let last = self.parties.len().saturating_sub(1).max(1) as f64;
        let x = |party: usize| SIDE + party as f64 * (WIDTH - 2.0 * SIDE) / last;
        let bottom = TOP + STEP * self.messages.len() as f64;
        for (i, name) in self.parties.iter().enumerate() {
            canvas.text("l", x(i), TOP - 26.0, Anchor::Middle, name);
            canvas.line("s-axis", (x(i), TOP - 16.0), (x(i), bottom), 1.2);
        }
        for (i, message) in self.messages.iter().enumerate() {
            let y = TOP + STEP * i as f64;
            if message.from == message.to {
                let left = message.from == 0;
                let (at, anchor) = match left {
                    true => (x(message.from) - 10.0, Anchor::End),
                    false => (x(message.from) + 10.0, Anchor::Start),
                };
                canvas.text("v", at, y + 8.0, anchor, &message.text);
                continue;
            }
            let (from, to) = (x(message.from), x(message.to));
            let way = if to > from { 1.0 } else { -1.0 };
            let colour = if message.lost { "red" } else { "blue" };
            let end = if message.lost { from + 0.6 * (to - from) } else { to - way * 2.0 };
            // A message takes time, so that it slopes downwards.
            let fall = if message.lost { 7.2 } else { 12.0 };
            canvas.line(&format!("s-{colour}"), (from, y), (end, y + fall), 1.8);
            let tip = (end, y + fall);
            if message.lost {
                let (left, top) = (n(tip.0 - 4.0), n(tip.1 - 4.0));
                canvas.path("s-red", &format!("M{left} {top}l8 8m-8 0l8 -8"), 2.0, "");
            } else {
                let (px, py) = (n(tip.0), n(tip.1));
                let back = n(-way * 9.0);
                canvas.fill(&format!("f-{colour}"), &format!("M{px} {py}l{back} -4.6v8.4z"));
            }
            canvas.text("v", f64::midpoint(from, to), y - 1.0, Anchor::Middle, &message.text);
        }
        Plot {
            width: WIDTH,
            height: bottom + 16.0,
            title: self.title.clone(),
            body: canvas.body,
            data: Data::Table(self.table()),
        }
    }

    fn table(&self) -> Table {
        let columns = ["from", "to", "message", "lost"].map(Column::text);
        let name = |i: usize| self.parties.get(i).cloned().unwrap_or_default();
        let row = |m: &Message| {
            let to = if m.from == m.to { String::new() } else { name(m.to) };
            vec![name(m.from), to, m.text.clone(), if m.lost { "lost" } else { "" }.to_owned()]
        };
        Table::new(columns, self.messages.iter().map(row)).titled(self.title.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_an_arrow_a_lost_one_ends_in_a_cross_and_a_note_has_none() {
        let message = |from, to, lost| Message { from, to, text: "9".into(), lost };
        let drawn = |messages: Vec<Message>| {
            let parties = vec!["base station".into(), "mobile".into()];
            Messages { title: "Figure 6".into(), parties, messages }.plot()
        };
        let arrow = drawn(vec![message(0, 1, false)]).svg();
        assert!(arrow.contains("s-blue") && arrow.contains("f-blue\" d"), "{arrow}");
        let lost = drawn(vec![message(1, 0, true)]);
        assert!(lost.svg().contains("class=\"s-red\"") && !lost.svg().contains("f-blue\" d"));
        assert!(!drawn(vec![message(0, 0, false)]).svg().contains("class=\"s-blue\""));
        let Data::Table(table) = lost.data() else { panic!("a table") };
        assert_eq!(table.rows, [["mobile", "base station", "9", "lost"]]);
    }
}
