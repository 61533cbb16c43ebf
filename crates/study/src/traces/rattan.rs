//! Traces of Rattan, as defined by the crate `netem-trace`: models in JSON, or in TOML converted to JSON.
//!
//! Supported are `StaticBwConfig`, `TraceBwConfig` and `RepeatedBwPatternConfig`, and those of delays and losses with
//! corresponding names. Times and rates are strings (`"100ms"`, `"1Gbps 200Mbps"`) or the numbers of serde. Random
//! models and whole configurations of Rattan are not supported.

use std::fmt::Write as _;

use lasthop_proto::link::varied::{Course, Level, Trace};
use lasthop_proto::units::{Probability, Rate, Span};
use serde_json::Value;

use super::make::from_course;
use crate::Error;

/// Maximum number of steps of a trace.
const MOST: usize = 1_000_000;
const HELP: &str = "read are StaticBwConfig, TraceBwConfig and RepeatedBwPatternConfig, and Static...Config and \
                    Repeated...PatternConfig of Delay and Loss";

/// A trace of Rattan.
#[derive(Clone, PartialEq, Debug)]
pub enum Replay {
    /// A rate over time, and its duration.
    Rates(Course<Option<Rate>>, Span),
    /// A delay over time.
    Delays(Course<Span>),
    /// A loss probability over time.
    Losses(Course<Probability>),
}

impl Replay {
    /// Reads a trace; `None` if it is none of Rattan's.
    ///
    /// # Errors
    ///
    /// The fault.
    pub fn read(value: &Value) -> Result<Option<Replay>, Error> {
        let Some(model) = value.as_object() else { return Ok(None) };
        if model.contains_key("cells") {
            return Err(whole_configuration(value));
        }
        let Some(name) = model.keys().find(|key| key.ends_with("Config")) else { return Ok(None) };
        let replay = match name {
            name if name.contains("Bw") => {
                let steps = Steps::of(value, "Bw", &rate)?;
                let end = steps.end();
                Replay::Rates(steps.course()?, end)
            }
            name if name.contains("Delay") => {
                Replay::Delays(Steps::of(value, "Delay", &|m| span(m, "delay"))?.course()?)
            }
            name if name.contains("Loss") => {
                Replay::Losses(Steps::of(value, "Loss", &loss)?.course()?)
            }
            name => return Err(wrong(format!("`{name}` is not read"))),
        };
        Ok(Some(replay))
    }

    /// The trace of delivery opportunities, if it is one of rates; it lasts for `duration` if given.
    ///
    /// # Errors
    ///
    /// It is a trace of delays or losses, or too long.
    pub fn trace(&self, duration: Option<Span>) -> Result<Trace, Error> {
        let Replay::Rates(rates, end) = self else {
            return Err(Error::Input {
                message: "it has no rates, and a trace of mm-link has nothing else".to_owned(),
                help:
                    "`lasthop trace convert --to csv` makes a file for `delays` or `losses` of it"
                        .to_owned(),
            });
        };
        from_course(rates, duration.unwrap_or(*end))
    }

    /// A CSV file of a scenario, for `rates`, `delays` or `losses`.
    pub fn csv(&self) -> String {
        match self {
            Replay::Rates(rates, _) => {
                lines("rate (bit)", rates, |rate| rate.map_or(0, Rate::bps).to_string())
            }
            Replay::Delays(delays) => lines("delay (ns)", delays, |delay| delay.0.to_string()),
            Replay::Losses(losses) => lines("loss", losses, |loss| loss.get().to_string()),
        }
    }
}

fn lines<T: Level>(head: &str, course: &Course<T>, of: impl Fn(T) -> String) -> String {
    let seconds = |at: Span| at.as_secs_f64();
    let mut text = format!("time (s),{head}\n");
    for (at, value, _) in course.points() {
        let _ = writeln!(text, "{},{}", seconds(at), of(value));
    }
    if let Some(period) = course.period() {
        let _ = writeln!(text, "{},again", seconds(period));
    }
    text
}

fn wrong(message: impl Into<String>) -> Error {
    Error::Input { message: message.into(), help: HELP.to_owned() }
}

/// The error for a whole configuration with cells and links, with the trace files that it names.
fn whole_configuration(value: &Value) -> Error {
    let cells = value["cells"].as_object().into_iter().flatten();
    let traces: Vec<&str> = cells.filter_map(|(_, cell)| cell["trace"].as_str()).collect();
    let help = match traces[..] {
        [] => "a link of lasthop has `rate`, `delay` and `loss` for what its cells say".to_owned(),
        _ => format!("convert the traces that it names: {}", traces.join(", ")),
    };
    Error::Input { message: "it is a configuration of Rattan, not a trace".to_owned(), help }
}

/// Values with their durations.
struct Steps<T> {
    steps: Vec<(Span, T)>,
    repeats: bool,
}

impl<T: Level> Steps<T> {
    /// The steps of a model of `kind`; `read` parses a value.
    fn of(
        model: &Value,
        kind: &str,
        read: &dyn Fn(&Value) -> Result<T, Error>,
    ) -> Result<Steps<T>, Error> {
        let mut all = Steps { steps: Vec::new(), repeats: false };
        all.add(model, kind, read)?;
        Ok(all)
    }

    fn add(
        &mut self,
        model: &Value,
        kind: &str,
        read: &dyn Fn(&Value) -> Result<T, Error>,
    ) -> Result<(), Error> {
        let mut models = model.as_object().into_iter().flatten();
        let (Some((name, inner)), None) = (models.next(), models.next()) else {
            return Err(wrong("a model is not a table with the name of its kind"));
        };
        if self.repeats {
            return Err(wrong("a pattern that repeats for ever has others behind it"));
        }
        if *name == format!("Static{kind}Config") {
            return self.push(span(inner, "duration")?, read(inner)?);
        }
        if *name == format!("Repeated{kind}PatternConfig") {
            let before = self.steps.len();
            list(&inner["pattern"])?.iter().try_for_each(|model| self.add(model, kind, read))?;
            let times = match inner.get("count").map(Value::as_u64) {
                None | Some(Some(0)) if before == 0 && !self.repeats => {
                    self.repeats = true;
                    1
                }
                Some(Some(times)) if times > 0 => times,
                _ => return Err(wrong("a pattern that repeats for ever follows others")),
            };
            let once = self.steps[before..].to_vec();
            for _ in 1..times {
                once.iter().try_for_each(|(long, value)| self.push(*long, *value))?;
            }
            return Ok(());
        }
        if kind == "Bw" && name == "TraceBwConfig" {
            for row in list(&inner["pattern"])? {
                let [long, values] = &list(row)?[..] else {
                    return Err(wrong("a row of `TraceBwConfig` is not a time and rates"));
                };
                let long = span_of(long)?;
                for value in list(values)? {
                    self.push(long, read(&serde_json::json!({ "bw": value }))?)?;
                }
            }
            return Ok(());
        }
        Err(wrong(format!("`{name}` is not read")))
    }

    fn push(&mut self, long: Span, value: T) -> Result<(), Error> {
        if long == Span::ZERO || self.steps.len() == MOST {
            let most = format!("more than {MOST} steps");
            return Err(wrong(if long == Span::ZERO {
                "a step of no length".to_owned()
            } else {
                most
            }));
        }
        self.steps.push((long, value));
        Ok(())
    }

    /// The total duration.
    fn end(&self) -> Span {
        self.steps.iter().fold(Span::ZERO, |end, (long, _)| end + *long)
    }

    fn course(self) -> Result<Course<T>, Error> {
        let period = self.repeats.then(|| self.end());
        let begins = self.steps.into_iter().scan(Span::ZERO, |at, (long, value)| {
            let begin = *at;
            *at = *at + long;
            Some((begin, value))
        });
        Course::steps(begins, period).map_err(|error| wrong(error.message))
    }
}

fn list(value: &Value) -> Result<&Vec<Value>, Error> {
    value.as_array().ok_or_else(|| wrong("a `pattern` is not a list"))
}

/// The rate of a model; `None` where no packet passes.
fn rate(model: &Value) -> Result<Option<Rate>, Error> {
    const UNITS: [(&str, f64); 5] =
        [("bps", 1.0), ("kbps", 1e3), ("mbps", 1e6), ("gbps", 1e9), ("tbps", 1e12)];
    let bps = match &model["bw"] {
        Value::String(words) => sum(words, &UNITS),
        Value::Object(parts) => {
            let part = |key| parts.get(key).map_or(Some(0.0), Value::as_f64);
            part("gbps").zip(part("bps")).map(|(gbps, bps)| gbps * 1e9 + bps)
        }
        _ => None,
    };
    let bps = bps.ok_or_else(|| wrong(format!("`{}` is no rate at `bw`", model["bw"])))?;
    Ok(Rate::from_bps(libm::round(bps) as u64))
}

/// The loss probability of a model. Rattan's is a list, indexed by the number of preceding losses.
fn loss(model: &Value) -> Result<Probability, Error> {
    let text = || format!("`{}` at `loss`", model["loss"]);
    match model["loss"].as_array().map(Vec::as_slice) {
        Some([]) => Ok(Probability::ZERO),
        Some([one]) => {
            let p = one.as_f64().and_then(Probability::new);
            p.ok_or_else(|| wrong(format!("{} is no probability", text())))
        }
        Some(_) => Err(wrong(format!("{} depends on losses before: only one is read", text()))),
        None => Err(wrong(format!("{} is no list", text()))),
    }
}

/// A time at `key` of a model.
fn span(model: &Value, key: &str) -> Result<Span, Error> {
    span_of(&model[key]).map_err(|_| wrong(format!("`{}` is no time at `{key}`", model[key])))
}

fn span_of(value: &Value) -> Result<Span, Error> {
    const UNITS: [(&str, f64); 10] = [
        ("ns", 1.0),
        ("us", 1e3),
        ("µs", 1e3),
        ("ms", 1e6),
        ("s", 1e9),
        ("sec", 1e9),
        ("m", 60e9),
        ("min", 60e9),
        ("h", 3600e9),
        ("day", 86_400e9),
    ];
    let nanos = match value {
        Value::String(words) => sum(words, &UNITS),
        Value::Object(parts) => {
            let part = |key: &str| parts.get(key).map_or(Some(0.0), Value::as_f64);
            part("secs").zip(part("nanos")).map(|(secs, nanos)| secs * 1e9 + nanos)
        }
        _ => None,
    };
    let nanos = nanos.filter(|nanos| *nanos < 1e18);
    nanos.map(|n| Span(libm::round(n) as u64)).ok_or_else(|| wrong(format!("`{value}` is no time")))
}

/// The sum of numbers with units, such as `1s 500ms`; case is ignored.
fn sum(words: &str, units: &[(&str, f64)]) -> Option<f64> {
    let mut total = None;
    let mut rest = words.trim();
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, behind) = rest.split_at(digits);
        let behind = behind.trim_start();
        let end = behind.find(|c: char| c.is_ascii_digit() || c.is_whitespace());
        let (unit, behind) = behind.split_at(end.unwrap_or(behind.len()));
        let unit = unit.to_lowercase();
        let (_, scale) = units.iter().find(|(word, _)| *word == unit)?;
        total = Some(total.unwrap_or(0.0) + number.parse::<f64>().ok()? * scale);
        rest = behind.trim_start();
    }
    total
}

#[cfg(test)]
mod tests {
    use lasthop_proto::link::varied::measured::Role;

    use super::*;

    fn read(text: &str) -> Result<Option<Replay>, String> {
        let message = |error: Error| error.to_string();
        Replay::read(&serde_json::from_str(text).unwrap()).map_err(message)
    }

    #[test]
    fn rates_repeat_and_nest() {
        let text = r#"{"RepeatedBwPatternConfig": {"count": 0, "pattern": [
            {"StaticBwConfig": {"bw": "32Mbps", "duration": "1s"}},
            {"RepeatedBwPatternConfig": {"count": 2, "pattern": [
                {"TraceBwConfig": {"pattern": [["100ms", ["16Mbps", "0bps"]]]}}]}},
            {"StaticBwConfig": {"bw": {"gbps": 1, "bps": 200000000}, "duration": {"secs": 0, "nanos": 500000000}}}]}}"#;
        let replay = read(text).unwrap().unwrap();
        let csv = "time (s),rate (bit)\n0,32000000\n1,16000000\n1.1,0\n1.2,16000000\n1.3,0\n1.4,1200000000\n1.9,again\n";
        assert_eq!(replay.csv(), csv);
        let Replay::Rates(rates, end) = &replay else { panic!("{replay:?}") };
        assert_eq!(*end, Span::millis(1900));
        let read = lasthop_proto::link::varied::measured::course(csv, Role::Rate, None);
        assert_eq!(read.as_ref(), Ok(rates), "a written table can be read");
        // A second of 32 Mbit/s is 2659 opportunities of 1504 bytes.
        let times = replay.trace(None).unwrap();
        let first = times.times().filter(|ms| *ms <= 1000).count();
        assert!((2658..=2660).contains(&first), "{first}");
    }

    #[test]
    fn delays_and_losses_are_files_of_their_own() {
        let delays = r#"{"RepeatedDelayPatternConfig": {"pattern": [
            {"StaticDelayConfig": {"delay": "10ms", "duration": "1s 500ms"}},
            {"StaticDelayConfig": {"delay": "50ms", "duration": "1s"}}], "count": 0}}"#;
        let delays = read(delays).unwrap().unwrap();
        assert_eq!(delays.csv(), "time (s),delay (ns)\n0,10000000\n1.5,50000000\n2.5,again\n");
        assert!(delays.trace(None).is_err());
        let losses = r#"{"StaticLossConfig": {"loss": [0.25], "duration": "1s"}}"#;
        assert_eq!(read(losses).unwrap().unwrap().csv(), "time (s),loss\n0,0.25\n");
    }

    #[test]
    fn unsupported_configurations_are_named() {
        for (text, expected) in [
            (r#"{"NormalizedBwConfig": {"mean": "12Mbps"}}"#, "`NormalizedBwConfig` is not read"),
            (r#"{"StaticBwConfig": {"bw": "12 parsecs", "duration": "1s"}}"#, "is no rate at `bw`"),
            (r#"{"StaticBwConfig": {"bw": "12Mbps"}}"#, "is no time at `duration`"),
            (r#"{"StaticLossConfig": {"loss": [0.1, 0.2], "duration": "1s"}}"#, "only one is read"),
            (r#"{"cells": {"up": {"type": "BwReplay", "trace": "a.toml"}}}"#, "a configuration"),
            (
                r#"{"RepeatedBwPatternConfig": {"count": 2, "pattern": [
                    {"StaticBwConfig": {"bw": "1Mbps", "duration": "1s"}},
                    {"RepeatedBwPatternConfig": {"count": 0, "pattern": [
                        {"StaticBwConfig": {"bw": "1Mbps", "duration": "1s"}}]}}]}}"#,
                "follows others",
            ),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(expected), "`{expected}` is missing in: {error}");
        }
        assert_eq!(read(r#"{"intervals": []}"#), Ok(None));
    }
}
