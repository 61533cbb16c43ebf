//! The comparison of two captures of one path, as text, plots and CSV.

use std::fmt::Write as _;

use lasthop_analyze::{Crossing, Matched};
use lasthop_proto::units::Time;
use lasthop_report::number::{plural, short};
use lasthop_report::plot::{Curve, Panel, Panels, Pen, Plot};
use serde::Serialize;

use super::{end, seconds};

/// Maximum number of crossings described individually.
const DESCRIBED: usize = 8;

/// Two captures of one path.
#[derive(Debug, Serialize)]
pub struct Pair {
    /// File names as given.
    pub files: [String; 2],
    #[serde(flatten)]
    pub matched: Matched,
}

impl Pair {
    pub fn title(&self) -> String {
        format!("{} and {}", self.files[0], self.files[1])
    }

    /// Offset of the clocks, and the assumptions behind it.
    pub fn heading(&self) -> Vec<String> {
        let Some(clocks) = &self.matched.clocks else {
            return vec![match self.matched.unmatched {
                0 => "no packet is in both captures: not the same path".to_owned(),
                n => format!(
                    "no packet is in both captures, and no equal payload, although {} between the same ends: different connections",
                    if n == 1 {
                        "one direction is".to_owned()
                    } else {
                        format!("{n} directions are")
                    }
                ),
            }];
        };
        let side = if clocks.ahead < 0.0 { "behind" } else { "ahead" };
        let assumed = if clocks.both_ways {
            "if the least delays of both directions are equal"
        } else {
            "if the least delay is zero: only one direction was captured twice"
        };
        let speed = match clocks.faster_ppm {
            Some(ppm) if ppm.abs() < 0.05 => "both run equally fast".to_owned(),
            Some(ppm) => format!(
                "it runs {} ppm {}, which is corrected",
                short((ppm.abs() * 10.0).round() / 10.0),
                if ppm < 0.0 { "slower" } else { "faster" }
            ),
            None => "its rate is unknown, and is not corrected".to_owned(),
        };
        vec![
            format!("the second clock is {:.6} s {side}, {assumed}", clocks.ahead.abs()),
            format!("{speed}; delays are above the least of each direction"),
        ]
    }

    /// The directions to describe, those with most packets first.
    pub fn crossings(&self) -> Vec<&Crossing> {
        let mut all: Vec<_> = self.matched.crossings.iter().collect();
        all.sort_by_key(|crossing| core::cmp::Reverse(crossing.packets));
        all.truncate(DESCRIBED);
        all
    }

    /// Delays over time, with losses at the bottom.
    pub fn plot(&self, crossing: &Crossing) -> Plot {
        let began = self.began();
        let delays: Vec<_> = crossing
            .delays
            .kept
            .iter()
            .map(|delay| (seconds(began, delay.at), delay.above * 1e3, 0.0))
            .collect();
        let lost = crossing.losses.iter().map(|lost| (seconds(began, lost.at), 0.0, 0.0));
        let mut curves = vec![Curve {
            name: "delay in between, above the least".to_owned(),
            pen: Pen::Dots,
            points: delays,
        }];
        if crossing.lost > 0 {
            let name = format!("lost in between ({})", crossing.lost);
            curves.push(Curve { name, pen: Pen::Points, points: lost.collect() });
        }
        let panel = Panel { y_label: "ms".to_owned(), curves };
        Panels { title: title(crossing), end_s: seconds(began, self.ended()), panels: vec![panel] }
            .plot()
    }

    fn times(&self) -> impl Iterator<Item = Time> {
        let crossings = self.matched.crossings.iter();
        crossings.flat_map(|crossing| {
            let delays = crossing.delays.kept.iter().map(|delay| delay.at);
            delays.chain(crossing.losses.iter().map(|lost| lost.at))
        })
    }

    fn began(&self) -> Time {
        self.times().min().unwrap_or_default()
    }

    fn ended(&self) -> Time {
        self.times().max().unwrap_or_default()
    }

    /// A crossing as CSV: seconds since the first packet in both captures, and its delay, or that it was lost.
    pub fn csv(&self, crossing: &Crossing) -> String {
        let began = self.began();
        let mut csv = "time_s,event,delay_above_least_s,seq,length\n".to_owned();
        let delays = crossing.delays.kept.iter();
        let delays = delays.map(|d| (d.at, format!("delay,{:.9},,", d.above)));
        let lost = crossing.losses.iter().map(|l| (l.at, format!("lost,,{},{}", l.seq, l.len)));
        let mut rows: Vec<_> = delays.chain(lost).collect();
        rows.sort_by_key(|(at, _)| *at);
        for (at, row) in rows {
            // Writing to a string cannot fail.
            let _ = writeln!(csv, "{:.9},{row}", seconds(began, at));
        }
        csv
    }
}

pub fn title(crossing: &Crossing) -> String {
    format!("{} > {}", end(&crossing.from), end(&crossing.to))
}

/// Name and value of each figure of a direction.
pub fn facts(crossing: &Crossing) -> Vec<(&'static str, String)> {
    let way = if crossing.backwards { "second capture first" } else { "first capture first" };
    let lost = match crossing.lost {
        0 => "nothing".to_owned(),
        n => format!(
            "{} of {} ({:.2} %), {} of them with data, or missed by the capture behind",
            n,
            plural(crossing.packets, "packet"),
            100.0 * n as f64 / crossing.packets as f64,
            crossing.lost_data
        ),
    };
    let mut facts = vec![("passes", way.to_owned())];
    if crossing.split {
        let split = "a PEP or proxy in between has connections and segments of its own: bytes are matched instead of packets";
        facts.push(("split", split.to_owned()));
    }
    if let Some([from, to]) = &crossing.translated {
        let ends = format!("{} > {} in the second capture", end(from), end(to));
        facts.push(("translated", ends));
    }
    facts.push(("lost", lost));
    if crossing.added > 0 {
        let added = plural(crossing.added, "packet");
        facts.push(("added", format!("{added} sent in between, or missed by the capture before")));
    }
    if let Some(delay) = &crossing.delay {
        let ms = |s: f64| short((s * 1e4).round() / 10.0);
        let (mean, max) = (ms(delay.mean), ms(delay.max));
        facts.push(("delay", format!("{mean} ms mean, {max} ms most, above the least")));
    }
    facts
}
