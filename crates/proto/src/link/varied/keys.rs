//! The keys by which a link varies.

use super::course::{Course, Level, Wrong};
use super::trace::Trace;
use super::{OutagePackets, Pace, VariedConfig};
use crate::describe::{Form, Keys, Need, Value};
use crate::link::LineConfig;
use crate::units::{Probability, Rate, Span};

/// What varies of a link.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Varying {
    right: Option<Pace>,
    left: Option<Pace>,
    delays: Option<Course<Span>>,
    losses: Option<Course<Probability>>,
    outages: Option<Course<bool>>,
    outage_packets: OutagePackets,
}

/// Keys of which a direction has one. Each wins over a constant `rate`, so that it can be set where there is one.
const PACES: [&str; 2] = ["rates", "trace"];

impl Varying {
    /// Goes over the keys.
    pub fn keys(k: &mut Keys<'_>) -> Varying {
        const RATES: &str = "\"0s 10mbit, 5s 2mbit, 8s to 6mbit, 10s again\"";
        const TRACE: &str = "\"lte.up\"";
        let rates = |k: &mut Keys<'_>, key, what| course(k, key, RATES, what).map(Pace::Rates);
        let what =
            "the rate over time instead of `rate`, or a CSV file; `to` is a ramp, `again` a period";
        let both = rates(k, "rates", what);
        let right = rates(k, "rates-right", "the same towards the right");
        let left = rates(k, "rates-left", "the same towards the left");
        let trace = |k: &mut Keys<'_>, key, what| trace(k, key, TRACE, what).map(Pace::Trace);
        let what = "a file of delivery opportunities as Mahimahi has it, instead of a rate";
        let both = both.or(trace(k, "trace", what));
        let right = right.or(trace(k, "trace-right", "the same towards the right"));
        let left = left.or(trace(k, "trace-left", "the same towards the left"));
        for side in ["right", "left"] {
            let keys = PACES.map(|key| [key.to_owned(), format!("{key}-{side}")]).concat();
            let given: Vec<&String> = keys.iter().filter(|key| k.has(key)).collect();
            if let [first, second, ..] = given[..] {
                let message = format!("`{}` is set beside `{first}`", k.path(second));
                let help = "a direction has one of `rates` and `trace`";
                k.refuse(second, message, "which of them?", help);
            }
        }
        let delays = course(
            k,
            "delays",
            "\"0s 20ms, 15s 35ms, 30s again\"",
            "the propagation delay over time instead of `delay`, or a CSV file",
        );
        let losses = course(
            k,
            "losses",
            "\"0s 0%, 14s to 5%, 15s again\"",
            "the probability over time that a packet is lost, or a CSV file",
        );
        let what = "when the line is out, in both directions";
        let outages = text(k, "outages", "\"4s-4.5s, 15s again\"", what, false)
            .and_then(|text| told(k, "outages", None, Course::parse_outages(&text.text)));
        let mut outage_packets = OutagePackets::Keep;
        let words = [("keep", OutagePackets::Keep), ("drop", OutagePackets::Drop)];
        let what = "whether packets wait for the end of an outage, or those on the line are lost";
        k.word("outage-packets", &mut outage_packets, &words, what);
        if k.has("outage-packets") && !k.has("outages") {
            let message = format!("`{}` without `outages`", k.path("outage-packets"));
            k.refuse(
                "outage-packets",
                message,
                "nothing uses it",
                "write `outages` beside it, or leave it out",
            );
        }
        Varying {
            right: right.or(both.clone()),
            left: left.or(both),
            delays,
            losses,
            outages,
            outage_packets,
        }
    }

    /// The line that varies so; nothing if nothing varies.
    pub fn of(self, line: &LineConfig) -> Option<VariedConfig> {
        (self != Varying::default()).then(|| VariedConfig {
            line: line.clone(),
            right: self.right,
            left: self.left,
            delays: self.delays,
            losses: self.losses,
            outages: self.outages,
            outage_packets: self.outage_packets,
        })
    }

    /// Rates towards the right and left that a discipline of queues may go by.
    pub fn mean_rates(&self) -> [Option<Rate>; 2] {
        [&self.right, &self.left].map(|pace| match pace {
            Some(Pace::Rates(rates)) => Rate::from_bps(rates.mean() as u64),
            Some(Pace::Trace(trace)) => trace.mean_rate(),
            None => None,
        })
    }
}

/// What stands at a key: a text, and the name of the file that it comes from.
struct Given {
    file: Option<String>,
    text: String,
}

/// Goes over a key with a text or a file.
fn text(
    k: &mut Keys<'_>,
    key: &'static str,
    example: &'static str,
    what: &'static str,
    is_file: bool,
) -> Option<Given> {
    let form = if is_file { Form::File(example) } else { Form::Text(example) };
    match k.value(key, form, Need::Else(""), Value::Absent, what) {
        Value::Text(text) => Some(Given { file: None, text }),
        Value::File { name, text } => Some(Given { file: Some(name), text }),
        _ => None,
    }
}

/// What was read, or what is wrong with it.
fn told<T>(k: &mut Keys<'_>, key: &str, file: Option<&str>, read: Result<T, Wrong>) -> Option<T> {
    read.map_err(|Wrong { line, message, help }| {
        let place = match (file, line) {
            (Some(file), Some(line)) => format!("{file}, line {line}: "),
            (Some(file), None) => format!("{file}: "),
            _ => format!("`{}`: ", k.path(key)),
        };
        k.refuse(key, format!("{place}{message}"), "cannot be read", help);
    })
    .ok()
}

/// A file that nobody has read.
fn unread(k: &mut Keys<'_>, key: &str, name: &str) {
    let message = format!("the file `{name}` at `{}` has not been read", k.path(key));
    let help = "`lasthop` reads it where the scenario is a file; elsewhere write its lines into a table at the end: \
                `[files]`, and there `\"NAME\" = '''...'''`";
    k.refuse(key, message, "a file", help);
}

/// Goes over a key with a course.
fn course<T: Level>(
    k: &mut Keys<'_>,
    key: &'static str,
    example: &'static str,
    what: &'static str,
) -> Option<Course<T>> {
    let given = text(k, key, example, what, true)?;
    if given.file.is_none() && given.text.trim().ends_with(".csv") {
        unread(k, key, &given.text);
        return None;
    }
    let read = match given.file {
        None => Course::parse(&given.text),
        Some(_) => Course::parse_csv(&given.text),
    };
    told(k, key, given.file.as_deref(), read)
}

/// Goes over a key with a trace.
fn trace(
    k: &mut Keys<'_>,
    key: &'static str,
    example: &'static str,
    what: &'static str,
) -> Option<Trace> {
    let given = text(k, key, example, what, true)?;
    let Some(name) = given.file else {
        unread(k, key, &given.text);
        return None;
    };
    let read = Trace::parse(&given.text).map_err(|error| {
        let help = "a trace is what Mahimahi's `mm-link` takes; `lasthop trace convert` makes one of other files";
        Wrong { line: None, message: error.to_string(), help: help.to_owned() }
    });
    told(k, key, Some(&name), read)
}
