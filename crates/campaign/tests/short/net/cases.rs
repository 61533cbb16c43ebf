//! Scenario files with one system, at its defaults and with its keys at other values.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use lasthop_proto::describe::{Form, Value};
use lasthop_proto::rng::Stream;
use lasthop_proto::tcp::words::TCPS;
use lasthop_proto::units::{Bytes, Rate, Span};
use lasthop_proto::{agent, channel, link, mac, queue};
use lasthop_scenario::keys::{Listed, list, written};
use lasthop_scenario::{Scenario, Source, parse};

use super::forms::position;
use super::run_figures::RunFigures;

/// A scenario file in parts; the keys of a system belong to one part.
#[derive(Clone, Default)]
pub struct Draft {
    /// Lines at the top.
    pub top: Vec<String>,
    /// Lines of the first transfer, from the fixed host to the mobile one.
    pub transfer: Vec<String>,
    /// Lines of the fixed host.
    pub fixed: Vec<String>,
    /// Lines of the mobile host.
    pub mobile: Vec<String>,
    /// Lines of the wired link.
    pub wire: Vec<String>,
    /// Lines of the stage between.
    pub between: Vec<String>,
    /// Lines of the radio hop.
    pub radio: Vec<String>,
    /// What follows the path.
    pub rest: Vec<String>,
}

/// The part of a [`Draft`] that holds the keys of a system.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum At {
    Top,
    Transfer,
    Fixed,
    Mobile,
    Wire,
    Between,
    Radio,
    Rest,
}

fn lines(text: &[&str]) -> Vec<String> {
    text.iter().map(|line| (*line).to_owned()).collect()
}

impl Draft {
    /// A last hop with losses and data both ways: long enough for recovery, and finite.
    pub fn lossy() -> Draft {
        Draft {
            top: lines(&["horizon = \"900s\""]),
            transfer: lines(&["bytes = 250000"]),
            wire: lines(&[
                "link.rate = \"2mbit\"",
                "link.delay = \"15ms\"",
                "link.queue = \"12p\"",
            ]),
            fixed: lines(&["preset = \"rfc\""]),
            mobile: lines(&["preset = \"rfc\""]),
            between: lines(&["agent = \"none\""]),
            radio: lines(&[
                "radio.rate = \"1mbit\"",
                "radio.delay = \"3ms\"",
                "radio.queue = \"15p\"",
                "errors = { model = \"exponential\", mean = \"24KiB\", on = [\"data\", \"ack\"] }",
            ]),
            ..Draft::default()
        }
    }

    /// A radio with outages of seconds: timeouts, probes, backoff.
    pub fn dead() -> Draft {
        let mut draft = Draft::lossy();
        draft.radio = lines(&[
            "radio.rate = \"1mbit\"",
            "radio.delay = \"40ms\"",
            "radio.queue = \"30p\"",
            "errors = { model = \"two-state\", good = \"1500ms\", bad = \"1200ms\", ber-bad = 0.01 }",
        ]);
        draft
    }

    /// A long path whose queue overflows, without channel errors.
    pub fn crowded() -> Draft {
        let mut draft = Draft::lossy();
        draft.transfer = lines(&["bytes = 1000000"]);
        draft.wire =
            lines(&["link.rate = \"10mbit\"", "link.delay = \"60ms\"", "link.queue = \"8p\""]);
        draft.radio =
            lines(&["radio.rate = \"3mbit\"", "radio.delay = \"5ms\"", "radio.queue = \"10p\""]);
        draft
    }

    /// A mobile host that moves between three cells.
    pub fn moving() -> Draft {
        let mut draft = Draft::lossy();
        draft.top = lines(&["horizon = \"20s\"", "visits = { every = \"2s\" }"]);
        draft.transfer = lines(&["bytes = 300000"]);
        draft
    }

    pub fn at(&mut self, at: At) -> &mut Vec<String> {
        match at {
            At::Top => &mut self.top,
            At::Transfer => &mut self.transfer,
            At::Fixed => &mut self.fixed,
            At::Mobile => &mut self.mobile,
            At::Wire => &mut self.wire,
            At::Between => &mut self.between,
            At::Radio => &mut self.radio,
            At::Rest => &mut self.rest,
        }
    }

    /// Adds a line; replaces the line of the same key.
    pub fn set(&mut self, at: At, line: &str) {
        let key = |line: &str| line.split(" =").next().unwrap_or_default().to_owned();
        let own = key(line);
        let lines = self.at(at);
        lines.retain(|old| key(old) != own);
        lines.push(line.to_owned());
    }

    pub fn with(mut self, at: At, line: &str) -> Draft {
        self.set(at, line);
        self
    }

    /// The text of the scenario file.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let mut part = |head: &str, lines: &[String]| {
            text.push_str(head);
            text.push('\n');
            for line in lines {
                text.push_str(line);
                text.push('\n');
            }
        };
        part("", &self.top);
        part("[[transfer]]\nfrom = \"fixed\"\nto = \"mobile\"", &self.transfer);
        part(
            "[[transfer]]\nfrom = \"mobile\"\nto = \"fixed\"\nstart = \"300ms\"\nbytes = 80000",
            &[],
        );
        part("[host.fixed]", &self.fixed);
        part("[host.mobile]", &self.mobile);
        part("[[path]]", &self.wire);
        if self.top.iter().any(|line| line.starts_with("visits")) {
            for name in ["west", "east", "north"] {
                part("[[cell]]", &[format!("name = \"{name}\"")]);
                part("[[cell.path]]", &self.between);
                part("[[cell.path]]", &self.radio);
            }
        } else {
            part("[[path]]", &self.between);
            part("[[path]]", &self.radio);
        }
        part("", &self.rest);
        text
    }

    /// The first cell of the plan, or the error with key and position.
    pub fn scenario(&self) -> Result<Scenario, String> {
        let text = self.text();
        match parse(&text, "net", &[]) {
            Ok((plan, warnings)) => {
                let cell = plan.cells.into_iter().next().ok_or("no cell")?;
                let _ = warnings;
                Ok(cell.scenario)
            }
            Err(error) => Err(position(&error, &text)),
        }
    }

    /// The scenario without those lines of `free` that the reader refuses; `None` if it refuses another line.
    fn without_refused_lines(mut self, free: &[(At, String)]) -> Option<Scenario> {
        for _ in 0..=free.len() {
            let text = self.text();
            let error = match parse(&text, "net", &[]) {
                Ok((plan, _)) => return Some(plan.cells.into_iter().next()?.scenario),
                Err(error) => error,
            };
            if error.at.source != Source::File {
                return None;
            }
            let (line, _) = error.at.line_column(&text);
            let wrong = text.lines().nth(line - 1).unwrap_or_default().to_owned();
            let (at, line) = free.iter().find(|(_, line)| *line == wrong).or_else(|| {
                // The error points at a combination: drop the last free line.
                free.iter().rev().find(|(at, line)| self.clone().at(*at).contains(line))
            })?;
            let line = line.clone();
            self.at(*at).retain(|old| *old != line);
        }
        None
    }
}

/// The names of each family of systems.
static FAMILIES: LazyLock<[BTreeSet<&'static str>; 6]> = LazyLock::new(|| {
    [
        TCPS.iter().map(|tcp| tcp.key).collect(),
        agent::words().map(|word| word.word).collect(),
        queue::words().map(|word| word.word).collect(),
        channel::words().map(|word| word.word).collect(),
        mac::all_words().map(|word| word.word).collect(),
        link::words().map(|word| word.word).collect(),
    ]
});

/// The keys of systems that share a table with the keys of others.
static OPTIONS: LazyLock<BTreeSet<&'static str>> = LazyLock::new(|| {
    let queues = queue::words().flat_map(|word| list(|k| (word.read)(k, None)));
    let macs = mac::all_words().flat_map(|word| list(word.read));
    let layers = link::words().flat_map(|word| list(|k| (word.read)(k, None)));
    queues.chain(macs).chain(layers).map(|listed| listed.key.name).collect()
});

/// Whether a key selects a system of a family: it accepts all of its names, or all but one.
fn selects_a_system(form: &Form) -> bool {
    match form {
        Form::Keyword(words) => FAMILIES
            .iter()
            .any(|family| family.iter().filter(|name| !words.contains(name)).count() <= 1),
        Form::Or(_, form) | Form::TableOr(form) => selects_a_system(form),
        _ => false,
    }
}

/// Whether the blocks of systems cover this key of a scenario: each system has runs of its own.
pub fn belongs_to_a_system(listed: &Listed) -> bool {
    OPTIONS.contains(listed.key.name) || selects_a_system(&listed.key.form)
}

/// A number in the notation of TOML.
fn decimal(number: f64) -> String {
    written(&Value::Number(number)).expect("a number")
}

/// Valid values of a key other than its default, in TOML: two, or each of its names.
pub fn values(form: &Form, default: &Value) -> Vec<String> {
    let text = |value: Value| written(&value);
    let two = |a: String, b: String| vec![a, b];
    let strings = |of: &[&str]| of.iter().map(|word| format!("\"{word}\"")).collect();
    match (form, default) {
        (Form::Flag, _) => two("true".into(), "false".into()),
        (Form::Range(Value::Count(least), Value::Count(most)), Value::Count(count)) => two(
            count.saturating_mul(3).saturating_add(1).clamp(*least, *most).to_string(),
            (count / 2).clamp(*least, *most).to_string(),
        ),
        (Form::Range(Value::Count(least), Value::Count(most)), _) => {
            two((least + 2).min(*most).to_string(), (least + 9).min(*most).to_string())
        }
        (Form::Range(Value::Number(least), Value::Number(most)), Value::Number(number)) => two(
            decimal((number * 1.5).clamp(*least, *most)),
            decimal((number * 0.5).clamp(*least, *most)),
        ),
        (Form::Range(Value::Number(least), Value::Number(most)), _) => {
            two(decimal((least + 0.25).min(*most)), decimal((least + 1.5).min(*most)))
        }
        (Form::Range(Value::Time(least), Value::Time(most)), Value::Time(time)) if time.0 > 0 => {
            let of = |n: u64| text(Value::Time(Span(n.clamp(least.0, most.0))));
            [of(time.0 * 3), of(time.0 / 3)].into_iter().flatten().collect()
        }
        (Form::Range(Value::Time(least), Value::Time(most)), _) => {
            let of = |n: u64| text(Value::Time(Span(n.clamp(least.0, most.0))));
            [of(20_000_000), of(700_000_000)].into_iter().flatten().collect()
        }
        (Form::Range(Value::Size(least), Value::Size(most)), Value::Size(size)) => two(
            (size.0 * 2 + 1).clamp(least.0, most.0).to_string(),
            (size.0 / 3).clamp(least.0, most.0).to_string(),
        ),
        (Form::Range(Value::Size(least), Value::Size(most)), _) => two(
            Bytes(100_u64.clamp(least.0, most.0)).0.to_string(),
            Bytes(3_000_u64.clamp(least.0, most.0)).0.to_string(),
        ),
        (Form::Rate, _) => strings(&["300kbit", "5mbit"]),
        (Form::Probability, _) => two("0.04".into(), "0.3".into()),
        (Form::Limit, _) => strings(&["4p", "9000"]),
        (Form::Range(Value::Speed(_), _), _) => strings(&["5km/h", "60km/h"]),
        (Form::Range(Value::Frequency(_), _), _) => strings(&["900MHz", "2.4GHz"]),
        (Form::Range(Value::Decibels(_), _), _) => strings(&["15dB", "8dB"]),
        (Form::Range(..), _) => unreachable!("{form:?}"),
        (Form::Power, _) => strings(&["123mW", "2W"]),
        (Form::Energy, _) => strings(&["12345J", "3J"]),
        (Form::Voltage, _) => strings(&["5V", "3.3V"]),
        (Form::Keyword(words), _) => strings(words),
        (Form::Keywords(words), _) => {
            let mut all: Vec<String> = words.iter().map(|word| format!("[\"{word}\"]")).collect();
            if let [one, .., other] = words.as_slice() {
                all.push(format!("[\"{one}\", \"{other}\"]"));
            }
            all
        }
        (Form::Text(example) | Form::Texts(example), _) => vec![(*example).to_owned()],
        (Form::Or(words, form), default) => {
            let mut all: Vec<String> = strings(words);
            all.extend(values(form, default));
            all
        }
        (Form::TableOr(form), default) => values(form, default),
        (Form::File(_) | Form::Table | Form::Tables, _) => Vec::new(),
    }
}

/// A line `key = value` for each value of each key, those of nested tables included.
pub fn settings(keys: &[Listed], before: &str, into: &mut Vec<Vec<String>>) {
    for Listed { key, default, inner } in keys {
        let name = format!("{before}{}", key.name);
        if matches!(name.as_str(), "name" | "from" | "to" | "side" | "runs" | "seed") {
            continue;
        }
        if selects_a_system(&key.form) {
            continue;
        }
        if !inner.is_empty() && key.form != Form::Tables {
            settings(inner, &format!("{name}."), into);
        }
        let all = values(&key.form, default);
        if !all.is_empty() {
            into.push(all.into_iter().map(|value| format!("{name} = {value}")).collect());
        }
    }
}

/// How many events a run has.
#[derive(Clone, Copy)]
pub struct Size {
    /// With one key changed.
    pub single: u64,
    /// With several keys changed at random.
    pub drawn: u64,
    /// Number of scenarios with several keys changed.
    pub draws: u64,
}

/// Runs `draft` as it is, with each key of `keys` at each of its values, and with some of them at once.
pub fn vary(
    figures: &mut RunFigures,
    draft: &Draft,
    keys: &[Listed],
    before: &str,
    at: At,
    size: Size,
) {
    let mut all = Vec::new();
    settings(keys, before, &mut all);
    // The seed belongs to the line, not to its number.
    let take = |figures: &mut RunFigures, draft: &Draft, line: &str, most| {
        let seed = Stream::new(0, line).below(1 << 16);
        match draft.scenario() {
            Ok(scenario) => figures.run(&scenario, seed, most),
            Err(why) => figures.refuse(&why),
        }
    };
    // A system may refuse an environment, as blocks in turn refuse several stations.
    if let Err(why) = draft.scenario() {
        figures.refuse(&why);
        return;
    }
    take(figures, draft, "", size.drawn);
    for lines in all.iter().filter(|_| size.single > 0) {
        for line in lines {
            take(figures, &draft.clone().with(at, line), line, size.single);
        }
    }
    for number in 0..if all.is_empty() { 0 } else { size.draws } {
        let mut drawn = draft.clone();
        let mut free = Vec::new();
        for lines in &all {
            let key = lines[0].split(" =").next().unwrap_or_default();
            let mut dice = Stream::new(number, key);
            if dice.below(4) == 0 {
                let line = &lines[dice.below(lines.len() as u64) as usize];
                drawn.set(at, line);
                free.push((at, line.clone()));
            }
        }
        if let Some(scenario) = drawn.without_refused_lines(&free) {
            figures.run(&scenario, number, size.drawn);
        }
    }
}

/// A rate for systems that need one to list their keys.
pub fn any_rate() -> Rate {
    Rate::from_bps(1_000_000).expect("a rate")
}
