//! The keys of a link that varies.

use serde::Serialize;

use super::course::{Course, Level, Wrong};
use super::distribution::Distribution;
use super::impair::{Impairments, Loss, Order};
use super::light::Light;
use super::measured::{self, Hints, Measured, Role};
use super::trace::Trace;
use super::{OutagePackets, Pace, VariedConfig};
use crate::channel::GilbertElliott;
use crate::describe::{Form, Keys, Need, Value};
use crate::link::LineConfig;
use crate::machine::Side;
use crate::units::{Probability, Rate, Span};

/// The varying values of a link.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Varying {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) right: Option<Pace>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) left: Option<Pace>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) delays: Option<Course<Span>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) losses: Option<Course<Probability>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) outages: Option<Course<bool>>,
    pub(super) outage_packets: OutagePackets,
    /// Whether packets overtake others when the delay decreases, if it is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delays_order: Option<Order>,
    /// Further impairments; `None` if they have no effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub impairments: Option<Impairments>,
}

/// Keys of which a direction may have one. Each overrides a constant `rate`, so that it can be added to one.
const PACES: [&str; 3] = ["rates", "trace", "measured"];
/// Keys with light traces.
const LIGHTS: [&str; 3] = ["light", "light-right", "light-left"];

impl Varying {
    /// Reads the keys of a link.
    pub fn keys(k: &mut Keys<'_>) -> Varying {
        Varying::read(k, true)
    }

    /// Reads the keys of a radio, which has no traces: an opportunity is no frame.
    pub fn of_radio(k: &mut Keys<'_>) -> Option<Box<Varying>> {
        Some(Varying::read(k, false)).filter(|found| *found != Varying::default()).map(Box::new)
    }

    /// Rates of both directions over time, and nothing else.
    pub fn of_rates(rates: Course<Option<Rate>>) -> Varying {
        let pace = Some(Pace::Rates(rates));
        Varying { right: pace.clone(), left: pace, ..Varying::default() }
    }

    /// The mean over time of the loss probability.
    pub fn mean_loss(&self) -> f64 {
        self.losses.as_ref().map_or(0.0, Course::mean)
    }

    fn read(k: &mut Keys<'_>, traces: bool) -> Varying {
        const RATES: &str = "\"0s 10mbit, 5s 2mbit, 8s to 6mbit, 10s again\"";
        const TRACE: &str = "\"lte.up\"";
        let rates = |k: &mut Keys<'_>, key, doc| {
            course(k, key, RATES, doc, Role::Rate, None).map(Pace::Rates)
        };
        let doc =
            "the rate over time instead of `rate`, or a CSV file; `to` is a ramp, `again` a period";
        let both = rates(k, "rates", doc);
        let right = rates(k, "rates-right", "the same towards the right");
        let left = rates(k, "rates-left", "the same towards the left");
        let trace = |k: &mut Keys<'_>, key, doc| {
            if traces { trace(k, key, TRACE, doc).map(Pace::Trace) } else { None }
        };
        let doc = "a file of delivery opportunities in Mahimahi's format, instead of a rate";
        let both = both.or(trace(k, "trace", doc));
        let right = right.or(trace(k, "trace-right", "the same towards the right"));
        let left = left.or(trace(k, "trace-left", "the same towards the left"));
        let [light, light_right, light_left] =
            LIGHTS.map(|key| if traces { light(k, key) } else { None });
        for side in ["right", "left"] {
            let keys = PACES.map(|key| [key.to_owned(), format!("{key}-{side}")]).concat();
            let given: Vec<&String> = keys.iter().filter(|key| k.has(key)).collect();
            if let [first, second, ..] = given[..] {
                let message = format!("`{}` and `{first}` exclude each other", k.path(second));
                let help = "a direction has one of `rates`, `trace` and the rate of `measured`";
                k.refuse(second, message, "which of them?", help);
            }
        }
        let mut step = None;
        let doc = "the time from one line to the next, in a file of `delays` without times";
        k.maybe("delays-step", &mut step, Span::micros(100)..=Span::secs(1000), doc);
        needs(k, "delays-step", &["delays"]);
        let delays = course(
            k,
            "delays",
            "\"0s 20ms, 15s 35ms, 30s again\"",
            "the propagation delay over time instead of `delay`, or a file, whose round-trip times count half",
            Role::Delay,
            step,
        );
        let losses = course(
            k,
            "losses",
            "\"0s 0%, 14s to 5%, 15s again\"",
            "the probability over time that a packet is lost, or a CSV file",
            Role::Loss,
            None,
        );
        let found = measurement(k);
        let rate = found.as_ref().and_then(|found| found.rate.clone());
        let back = found.as_ref().and_then(|found| found.back.clone()).or_else(|| rate.clone());
        let right = right.or(both.clone()).or(rate.map(Pace::Rates));
        let left = left.or(both).or(back.map(Pace::Rates));
        let right = right.map(|pace| pace.with_light(light_right.or_else(|| light.clone())));
        let left = left.map(|pace| pace.with_light(light_left.or(light)));
        let (measured_delays, measured_losses) =
            found.map_or((None, None), |found| (found.delays, found.losses));
        let mut delays_order = None;
        if traces {
            let orders = [("kept", Order::Kept), ("free", Order::Free)];
            let doc =
                "whether packets wait for those before them when the delay decreases, or overtake";
            delays_order = k.maybe_word("delays-order", &orders, doc);
            needs(k, "delays-order", &["delays", "measured"]);
        }
        let doc = "when the line is out, in both directions";
        let outages = text(k, "outages", "\"4s-4.5s, 15s again\"", doc, false)
            .and_then(|text| accept(k, "outages", None, Course::parse_outages(&text.text)));
        let mut outage_packets = OutagePackets::Keep;
        let words = [("keep", OutagePackets::Keep), ("drop", OutagePackets::Drop)];
        let doc = "whether packets wait for the end of an outage, or those on the line are lost";
        k.word("outage-packets", &mut outage_packets, &words, doc);
        needs(k, "outage-packets", &["outages"]);
        Varying {
            right,
            left,
            delays: delays.or(measured_delays),
            losses: losses.or(measured_losses),
            outages,
            outage_packets,
            delays_order,
            impairments: None,
        }
    }

    /// The varying line; `None` if nothing varies.
    pub fn of(self, line: &LineConfig) -> Option<VariedConfig> {
        (self != Varying::default()).then(|| VariedConfig {
            line: line.clone(),
            right: self.right,
            left: self.left,
            delays: self.delays,
            losses: self.losses,
            outages: self.outages,
            outage_packets: self.outage_packets,
            impairments: self.impairments,
        })
    }

    /// Mean rates towards the right and left, for queue disciplines.
    pub fn mean_rates(&self) -> [Option<Rate>; 2] {
        [&self.right, &self.left].map(|pace| match pace {
            Some(Pace::Rates(rates)) => Rate::from_bps(rates.mean() as u64),
            Some(Pace::Trace(trace)) => trace.mean_rate(),
            None => None,
        })
    }
}

impl Pace {
    /// The same with a light trace; rates have none.
    fn with_light(self, light: Option<Light>) -> Pace {
        match (self, light) {
            (Pace::Trace(trace), Some(light)) => Pace::Trace(trace.with_light(light)),
            (pace, _) => pace,
        }
    }
}

/// Reads a key with a light trace.
fn light(k: &mut Keys<'_>, key: &'static str) -> Option<Light> {
    let (doc, heavy): (_, &[&str]) = match key {
        "light-right" => ("the same towards the right", &["trace-right", "trace"]),
        "light-left" => ("the same towards the left", &["trace-left", "trace"]),
        _ => {
            let doc = "a file of CellReplay's packet trains, which a link follows after an idle time, before `trace`; \
                       it has the delay as well";
            (doc, &["trace", "trace-right", "trace-left"])
        }
    };
    let given = text(k, key, "\"light.down\"", doc, true);
    needs(k, key, heavy);
    if k.has(key) && k.has("delays") {
        let message = format!("`{}` and `delays` exclude each other", k.path(key));
        k.refuse(
            key,
            message,
            "which of them?",
            "leave out `delays`: a light trace has the delays",
        );
    }
    let given = given?;
    let Some(name) = given.file else {
        unread(k, key, &given.text);
        return None;
    };
    accept(k, key, Some(&name), Light::parse(&given.text))
}

/// Rejects `key` without any of `others`.
fn needs(k: &mut Keys<'_>, key: &str, others: &[&str]) {
    if k.has(key) && !others.iter().any(|other| k.has(other)) {
        let message = format!("`{}` without `{}`", k.path(key), others.join("` or `"));
        let help = format!("add `{}`, or leave it out", others[0]);
        k.refuse(key, message, "nothing uses it", help);
    }
}

/// Reads a file of measured values with several columns.
fn measurement(k: &mut Keys<'_>) -> Option<Measured> {
    const EXAMPLE: &str = "\"drive.csv\"";
    let doc = "a file of rates, delays and losses over time with named columns: `time (s),rate (mbit),rate-back \
               (mbit),delay (ms),loss`";
    let given = text(k, "measured", EXAMPLE, doc, true)?;
    let Some(name) = given.file else {
        unread(k, "measured", &given.text);
        return None;
    };
    let hints = Hints { named: true, ..Hints::default() };
    accept(k, "measured", Some(&name), Measured::read(&given.text, &hints))
}

/// Keys that need another key.
const NEEDED: [(&str, &str); 8] = [
    ("jitter-correlation", "jitter"),
    ("jitter-distribution", "jitter"),
    ("jitter-order", "jitter"),
    ("loss-correlation", "loss"),
    ("duplicate-correlation", "duplicate"),
    ("corrupt-correlation", "corrupt"),
    ("reorder-correlation", "reorder"),
    ("reorder-gap", "reorder"),
];

impl Impairments {
    /// Reads the keys, with `self` as the defaults.
    #[must_use]
    pub fn keys(mut self, k: &mut Keys<'_>) -> Impairments {
        let most = Span::secs(1000);
        k.within("jitter", &mut self.jitter, Span::ZERO..=most, "the deviation of the delay");
        let doc = "the correlation of a deviation with that of the previous packet";
        k.probability("jitter-correlation", &mut self.jitter_correlation, doc);
        let doc = "how deviations are distributed, by the tables of netem";
        k.word("jitter-distribution", &mut self.jitter_distribution, &Distribution::WORDS, doc);
        let doc = "whether packets overtake those that take longer, or wait for them";
        let orders = [("free", Order::Free), ("kept", Order::Kept)];
        k.word("jitter-order", &mut self.jitter_order, &orders, doc);
        self.loss_keys(k);
        k.probability(
            "duplicate",
            &mut self.duplicate,
            "the probability that a packet is duplicated",
        );
        let doc = "the correlation of its draw with that of the previous packet";
        k.probability("duplicate-correlation", &mut self.duplicate_correlation, doc);
        let wrong = "the probability that one bit of a packet is wrong";
        k.probability("corrupt", &mut self.corrupt, wrong);
        k.probability("corrupt-correlation", &mut self.corrupt_correlation, doc);
        let at_once = "the probability that a packet skips the delay and overtakes others";
        k.probability("reorder", &mut self.reorder, at_once);
        k.probability("reorder-correlation", &mut self.reorder_correlation, doc);
        let gap = "at most one of this number of consecutive packets is reordered";
        k.count("reorder-gap", &mut self.reorder_gap, 0..=1_000_000, gap);
        let sides = [("right", Side::Right), ("left", Side::Left)];
        let doc = "the only direction with these impairments, `jitter` to `reorder`";
        self.impaired = k.maybe_word("impaired", &sides, doc).or(self.impaired);
        self.check(k);
        self
    }

    fn loss_keys(&mut self, k: &mut Keys<'_>) {
        let doc = "the probability that a packet is lost, or the chain of netem's `gemodel`";
        let mut chain = None;
        let value = k.table_or("loss", Form::Probability, doc, |k| {
            chain = Some(GilbertElliott::keys(k));
        });
        match (value, chain) {
            (Value::Probability(p), _) => {
                self.loss = Some(Loss::Random(p)).filter(|_| p != Probability::ZERO);
            }
            (_, Some(chain)) if k.has("loss") => self.loss = Some(Loss::Chain(chain)),
            _ => {}
        }
        let doc = "the correlation of the draw of a loss with that of the previous packet";
        k.probability("loss-correlation", &mut self.loss_correlation, doc);
        if k.has("loss-correlation") && matches!(self.loss, Some(Loss::Chain(_))) {
            let path = k.path("loss-correlation");
            let message = format!("`{path}` and the chain of `loss` exclude each other");
            let help =
                "leave it out, since the chain makes bursts; or write a probability as `loss`";
            k.refuse("loss-correlation", message, "not together", help);
        }
    }

    fn check(&self, k: &mut Keys<'_>) {
        let on = |key| match key {
            "jitter" => self.jitter > Span::ZERO,
            "loss" => self.loss.is_some(),
            "duplicate" => self.duplicate != Probability::ZERO,
            "corrupt" => self.corrupt != Probability::ZERO,
            _ => self.reorder != Probability::ZERO,
        };
        for (key, needs) in NEEDED {
            if k.has(key) && !k.has(needs) && !on(needs) {
                let message = format!("`{}` without `{needs}`", k.path(key));
                k.refuse(
                    key,
                    message,
                    "nothing uses it",
                    format!("add `{needs}`, or leave it out"),
                );
            }
        }
    }
}

/// The value of a key: a text, and the name of its file.
struct Given {
    file: Option<String>,
    text: String,
}

/// Reads a key with a text or a file.
fn text(
    k: &mut Keys<'_>,
    key: &'static str,
    example: &'static str,
    doc: &'static str,
    is_file: bool,
) -> Option<Given> {
    let form = if is_file { Form::File(example) } else { Form::Text(example) };
    match k.value(key, form, Need::Else(""), Value::Absent, doc) {
        Value::Text(text) => Some(Given { file: None, text }),
        Value::File { name, text } => Some(Given { file: Some(name), text }),
        _ => None,
    }
}

/// Returns the parsed value, or reports the error.
fn accept<T>(k: &mut Keys<'_>, key: &str, file: Option<&str>, read: Result<T, Wrong>) -> Option<T> {
    read.map_err(|Wrong { line, message, help }| {
        let source = match (file, line) {
            (Some(file), Some(line)) => format!("{file}, line {line}: "),
            (Some(file), None) => format!("{file}: "),
            _ => format!("`{}`: ", k.path(key)),
        };
        let message = format!("{source}{message}");
        match line.filter(|_| file.is_some()) {
            Some(line) => k.refuse_line(key, line, message, "cannot be read", help),
            None => k.refuse(key, message, "cannot be read", help),
        }
    })
    .ok()
}

/// Reports a file that was not read.
fn unread(k: &mut Keys<'_>, key: &str, name: &str) {
    let message = format!("the file `{name}` at `{}` has not been read", k.path(key));
    let help = "`lasthop` reads it where the scenario is a file; elsewhere write its lines into a table at the end: \
                `[files]`, and there `\"NAME\" = '''...'''`";
    k.refuse(key, message, "a file", help);
}

/// Whether the value of a key is the name of a file: it has no blanks and ends in an extension, or in `.csv`.
pub fn names_file(word: &str) -> bool {
    let word = word.trim();
    let extension = word.rsplit_once('.').map_or("", |(_, extension)| extension);
    let begins = extension.starts_with(|c: char| c.is_ascii_alphabetic());
    word.ends_with(".csv") || begins && !word.contains([' ', '\t', '\n', ','])
}

/// Reads a key with a course.
fn course<T: Level>(
    k: &mut Keys<'_>,
    key: &'static str,
    example: &'static str,
    doc: &'static str,
    role: Role,
    step: Option<Span>,
) -> Option<Course<T>> {
    let given = text(k, key, example, doc, true)?;
    if given.file.is_none() && names_file(&given.text) {
        unread(k, key, &given.text);
        return None;
    }
    let read = match given.file {
        None => Course::parse(&given.text),
        Some(_) => measured::course(&given.text, role, step),
    };
    accept(k, key, given.file.as_deref(), read)
}

/// Reads a key with a trace.
fn trace(
    k: &mut Keys<'_>,
    key: &'static str,
    example: &'static str,
    doc: &'static str,
) -> Option<Trace> {
    let given = text(k, key, example, doc, true)?;
    let Some(name) = given.file else {
        unread(k, key, &given.text);
        return None;
    };
    let error = match Trace::parse(&given.text) {
        Ok(trace) => return Some(trace),
        Err(error) => error,
    };
    let message = format!("{name}: {error}");
    let help = "a trace has the format of Mahimahi's `mm-link`; `lasthop trace convert` converts other files";
    match error.line() {
        Some(line) => k.refuse_line(key, line, message, "cannot be read", help),
        None => k.refuse(key, message, "cannot be read", help),
    }
    None
}
