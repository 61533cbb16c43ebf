//! Valid but hostile scenario files, generated from the descriptions of the keys, at their extremes.

use core::fmt::Write;
use std::sync::LazyLock;

use lasthop_proto::describe::{Form, Need, Value};
use lasthop_proto::link::Fate;
use lasthop_proto::rng::Stream;
use lasthop_proto::units::Rate;
use lasthop_proto::{agent, channel, link, mac, queue};
use lasthop_scenario::keys::{Listed, list, written};
use lasthop_scenario::{Code, PARTS, Part, Scenario, Source, keys_of_hosts, parse};

/// The traffic of a plain transfer.
const PLAIN: &str = "bytes = \"100KB\"";
/// Maximum number of lines removed from a text before the case is given up.
const MAX_REMOVED: usize = 200;

/// The keys of a host with the preset that cases have where they name none.
static HOST: LazyLock<Vec<Listed>> = LazyLock::new(keys_of_hosts);

/// The scenario file of a case, and its first cell; `None` if no valid one was found.
pub fn case(number: u64) -> Option<(String, Scenario)> {
    let mut draft = Draft::new(number);
    draft.scenario();
    draft.without_refused_lines()
}

fn part(name: &str) -> &'static Part {
    PARTS.iter().find(|known| known.name == name).expect("a part")
}

/// Lines of a file, and whether each may be removed.
struct Draft {
    dice: Stream,
    lines: Vec<(String, bool)>,
    /// Share of the optional keys that are present, in 1/256.
    share: u64,
    /// Maximum number of connections of one transfer. Each costs microseconds at the start, so only one case in sixteen
    /// has the full range.
    connections: u64,
}

impl Draft {
    fn new(number: u64) -> Draft {
        let mut dice = Stream::new(number, "hostile");
        let share = [4, 16, 48, 128][dice.below(4) as usize];
        let connections = if number.is_multiple_of(16) { u64::MAX } else { 1_000 };
        Draft { dice, lines: Vec::new(), share, connections }
    }

    fn one_of<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.dice.below(from.len() as u64) as usize]
    }

    /// Adds a line that must stay.
    fn fixed(&mut self, line: impl Into<String>) {
        self.lines.push((line.into(), false));
    }

    fn scenario(&mut self) {
        self.keys("scenario", "");
        let right = 1 + self.dice.below(3);
        let left = 1 + self.dice.below(2);
        let hosts: Vec<(String, &str)> = (0..left)
            .map(|i| (format!("l{i}"), "left"))
            .chain((0..right).map(|i| (format!("r{i}"), "right")))
            .collect();
        let many = [1, 1, 2, 4][self.dice.below(4) as usize];
        for _ in 0..many {
            let from = (self.dice.below(left), left + self.dice.below(right));
            let (from, to) = if self.dice.below(2) == 0 { from } else { (from.1, from.0) };
            let [from, to] = [from, to].map(|i| hosts[i as usize].0.clone());
            self.fixed("[[transfer]]");
            self.fixed(format!("from = \"{from}\""));
            self.fixed(format!("to = \"{to}\""));
            let bytes = *self.one_of(&["1", "1KB", "100KB", "1MB", "1GB", "\"unlimited\""]);
            let bytes = if bytes.ends_with('B') { format!("\"{bytes}\"") } else { bytes.into() };
            self.lines.push((format!("bytes = {bytes}"), true));
            self.keys("transfer", "");
        }
        for (name, side) in &hosts {
            self.fixed(format!("[host.{name}]"));
            self.lines.push((format!("side = \"{side}\""), true));
            self.all(&HOST, "");
            // The number of a case identifies the same scenario, independent of the default host.
            if !self.since_table().any(|line| line.starts_with("preset =")) {
                self.fixed("preset = \"rfc\"");
            }
        }
        self.path("path");
        if self.dice.below(4) == 0 {
            for i in 0..=self.dice.below(3) {
                self.fixed("[[cell]]".to_owned());
                self.fixed(format!("name = \"cell{i}\""));
                self.keys("cell", "");
                self.path("cell.path");
            }
            self.fixed("[visits]");
            self.keys("visits", "");
            // No other line gives the position of the host over time.
            if !self.since_table().any(|line| {
                ["every =", "dwell =", "list =", "table ="].iter().any(|key| line.starts_with(key))
            }) {
                let key = *self.one_of(&["every", "dwell"]);
                let part = part("visits").keys.iter().find(|listed| listed.key.name == key);
                let part = part.expect("a key of visits");
                self.put(key, &part.key.form, &part.default);
            }
            self.fixed("[handoff]");
            self.keys("handoff", "");
        }
    }

    fn path(&mut self, table: &str) {
        for _ in 0..=self.dice.below(4) {
            self.fixed(format!("[[{table}]]"));
            match self.dice.below(10) {
                0..=2 => {
                    let at = self.lines.len();
                    self.rate("link");
                    self.keys("link", "link.");
                    self.agree("link.", at);
                }
                3..=5 => self.radio(),
                6 => {
                    let words: Vec<_> = agent::words().collect();
                    let agent = self.one_of(&words);
                    self.fixed(format!("agent = \"{}\"", agent.word));
                    self.all(&list(agent.read), "");
                }
                7 => {
                    let shaper = "tbf = { rate = \"5mbit\", burst = \"20kB\", latency = \"50ms\" }";
                    self.fixed(shaper);
                }
                8 => self.fixed("police = { rate = \"9mbit\", burst = \"50kB\" }"),
                _ => {
                    self.fixed("cross.loss = 0.01");
                    self.silence();
                    self.keys("cross", "cross.");
                }
            }
        }
    }

    /// A fault of an early packet, and a silence from a later one on, at every other router.
    fn silence(&mut self) {
        if self.dice.below(2) == 0 {
            let (fault, _) = *self.one_of(&Fate::FAULTS);
            let (silence, _) = *self.one_of(&Fate::SILENCES);
            let early = self.whole(1, 20);
            let late = early + self.whole(1, 1000);
            self.lines.push((format!("cross.fates = \"{early} {fault}, {late} {silence}\""), true));
        }
    }

    fn radio(&mut self) {
        let at = self.lines.len();
        self.rate("radio");
        self.keys("radio", "radio.");
        self.agree("radio.", at);
        if self.dice.below(3) == 0 {
            let words: Vec<_> = mac::all_words().collect();
            let mac = self.one_of(&words);
            self.lines.push((format!("mac = \"{}\"", mac.word), true));
            self.all(&list(mac.read), "");
        }
        if self.dice.below(3) == 0 {
            let words: Vec<_> = link::words().collect();
            let layer = self.one_of(&words);
            self.lines.push((format!("link-layer = \"{}\"", layer.word), true));
            self.all(&list(|k| (layer.read)(k, None)), "");
        }
        if self.dice.below(3) == 0 {
            let words: Vec<_> = channel::words().collect();
            let model = self.one_of(&words);
            let place = *self.one_of(&[
                "errors",
                "errors-right",
                "errors-left",
                "errors-data",
                "errors-ack",
            ]);
            let rate = Rate::from_bps(1_000_000).expect("a rate");
            self.lines.push((format!("{place}.model = \"{}\"", model.word), true));
            self.all(&list(|k| (model.read)(k, rate)), &format!("{place}."));
        }
        self.keys("hop", "");
    }

    fn rate(&mut self, of: &str) {
        let rates = ["1bit", "300bit", "9600bit", "1mbit", "11mbit", "1gbit", "400gbit"];
        let rate = *self.one_of(&rates);
        self.fixed(format!("{of}.rate = \"{rate}\""));
    }

    /// Makes the rates and disciplines of a line consistent. The line begins at line `at`, its keys with `before`.
    /// Either one rate serves both directions or each has its own; the discipline fits the options. Left to chance,
    /// nearly all of them would be removed.
    fn agree(&mut self, before: &str, at: usize) {
        for key in ["rate", "discipline"] {
            let sides = ["right", "left"].map(|side| format!("{before}{key}-{side} ="));
            let has =
                |side: &String| self.lines[at..].iter().any(|(line, _)| line.starts_with(side));
            let missing: Vec<String> = sides.iter().filter(|side| !has(side)).cloned().collect();
            if missing.len() < sides.len() {
                let both = format!("{before}{key} =");
                let own = self.lines[at..].iter().position(|(line, _)| line.starts_with(&both));
                let own = own.map(|i| self.lines.remove(at + i).0[both.len()..].to_owned());
                // A rate must be given for both directions.
                for side in missing.iter().filter(|_| key == "rate") {
                    let rate = own.as_deref().unwrap_or(" \"1mbit\"");
                    self.lines.insert(at, (format!("{side}{rate}"), true));
                }
            }
        }
        let words: Vec<(&str, Vec<Listed>)> =
            queue::words().map(|word| (word.word, list(|k| (word.read)(k, None)))).collect();
        let name =
            |line: &str| line.strip_prefix(before)?.split([' ', '.']).next().map(str::to_owned);
        let of = |line: &str, keys: &[Listed]| {
            name(line).is_some_and(|name| keys.iter().any(|listed| listed.key.name == name))
        };
        let disciplines: Vec<String> = self.lines[at..]
            .iter()
            .filter(|(line, _)| name(line).is_some_and(|name| name.starts_with("discipline")))
            .filter_map(|(line, _)| Some(line.split('"').nth(1)?.to_owned()))
            .collect();
        let mut used: Vec<&(&str, Vec<Listed>)> = words
            .iter()
            .filter(|(word, _)| disciplines.iter().any(|discipline| discipline == word))
            .collect();
        if disciplines.is_empty() {
            let may = |(_, keys): &&(&str, Vec<Listed>)| {
                self.lines[at..].iter().any(|(line, _)| of(line, keys))
            };
            let could: Vec<&(&str, Vec<Listed>)> = words.iter().filter(may).collect();
            if !could.is_empty() {
                let word = *self.one_of(&could);
                self.lines.insert(at, (format!("{before}discipline = \"{}\"", word.0), true));
                used.push(word);
            }
        }
        let rest = self.lines.split_off(at);
        let fits = |line: &str| {
            used.iter().any(|(_, keys)| of(line, keys))
                || !words.iter().any(|(_, keys)| of(line, keys))
        };
        self.lines.extend(rest.into_iter().filter(|(line, _)| fits(line)));
    }

    /// Adds some keys of a part.
    fn keys(&mut self, name: &str, before: &str) {
        self.all(&part(name).keys, before);
    }

    fn all(&mut self, keys: &[Listed], before: &str) {
        for Listed { key, default, inner } in keys {
            let required = matches!(key.need, Need::Required(_));
            if !required && self.dice.below(256) >= self.share {
                continue;
            }
            // Keys that are there already, and those that need other files.
            let name = format!("{before}{}", key.name);
            if matches!(name.as_str(), "from" | "to" | "side" | "name" | "model" | "file")
                || self.since_table().any(|line| line.starts_with(&format!("{name} =")))
            {
                continue;
            }
            if !inner.is_empty() && key.form != Form::Tables {
                let both = matches!(key.form, Form::TableOr(_));
                if !both || self.dice.below(2) == 0 {
                    self.all(inner, &format!("{name}."));
                    continue;
                }
            }
            if key.form == Form::Tables {
                continue;
            }
            match (name.as_str(), &key.form) {
                ("count", Form::Range(Value::Count(least), Value::Count(most))) => {
                    let most = self.connections.clamp(*least, *most);
                    self.put(&name, &Form::within(*least..=most), default);
                }
                _ => self.put(&name, &key.form, default),
            }
        }
    }

    fn put(&mut self, name: &str, form: &Form, default: &Value) {
        if let Some(value) = self.value(form, default) {
            self.lines.push((format!("{name} = {value}"), true));
        }
    }

    fn since_table(&self) -> impl Iterator<Item = &str> {
        let lines = self.lines.iter().rev().map(|(line, _)| line.as_str());
        lines.take_while(|line| !line.starts_with('['))
    }

    /// A whole number of a range: a bound, a neighbour of a bound, or any.
    fn whole(&mut self, least: u64, most: u64) -> u64 {
        let within = match self.dice.below(6) {
            0 => least,
            1 => most,
            2 => least.saturating_add(1),
            3 => most.saturating_sub(1),
            _ => {
                let bits = 64 - (most - least).leading_zeros();
                let size = self.dice.below(u64::from(bits) + 1);
                least.saturating_add(self.dice.next_u64() & ((1_u128 << size) - 1) as u64)
            }
        };
        within.clamp(least, most)
    }

    fn number(&mut self, least: f64, most: f64) -> f64 {
        match self.dice.below(4) {
            0 => least,
            1 => most.min(1e12),
            2 => least + (most.min(least + 1.0) - least) * self.dice.unit(),
            _ => least + (most.min(1e9) - least) * self.dice.unit(),
        }
    }

    /// A valid value of a key, in TOML.
    fn value(&mut self, form: &Form, default: &Value) -> Option<String> {
        if self.dice.below(8) == 0 {
            return written(default);
        }
        Some(match form {
            Form::Flag => (self.dice.below(2) == 0).to_string(),
            Form::Range(Value::Count(least), Value::Count(most)) => {
                self.whole(*least, *most).to_string()
            }
            Form::Range(Value::Number(least), Value::Number(most)) => {
                format!("{:?}", self.number(*least, *most))
            }
            Form::Range(Value::Time(least), Value::Time(most)) => {
                let time = self.whole(least.0, most.0.min(100_000_000_000_000));
                format!("\"{time}ns\"")
            }
            Form::Range(Value::Size(least), Value::Size(most)) => {
                self.whole(least.0, most.0.min(1 << 40)).to_string()
            }
            Form::Rate => {
                let rates = ["1bit", "75bit", "9600bit", "2mbit", "1gbit", "400gbit"];
                format!("\"{}\"", self.one_of(&rates))
            }
            Form::Probability => {
                let odds = ["0", "0.000001", "0.01", "0.3", "0.99", "\"100%\""];
                (*self.one_of(&odds)).to_owned()
            }
            Form::Limit => {
                let limits = ["1p", "2p", "50p", "1000000p", "1", "1500", "100MB"];
                format!("\"{}\"", self.one_of(&limits))
            }
            Form::Range(least, most) => {
                written(if self.dice.below(2) == 0 { least } else { most })?
            }
            Form::Power => {
                (*self.one_of(&["\"0W\"", "\"1uW\"", "\"1.5W\"", "\"1000W\""])).to_owned()
            }
            Form::Energy => (*self.one_of(&["\"1J\"", "\"12345J\"", "\"1mAh\""])).to_owned(),
            Form::Voltage => "\"3.7V\"".to_owned(),
            Form::Keyword(words) => format!("\"{}\"", self.one_of(words)),
            Form::Keywords(words) => {
                let (one, two) = (*self.one_of(words), *self.one_of(words));
                let mut list = format!("[\"{one}\"");
                if one != two && self.dice.below(2) == 0 {
                    let _ = write!(list, ", \"{two}\"");
                }
                list + "]"
            }
            Form::Text(example) | Form::Texts(example) => (*example).to_owned(),
            Form::File(_) => return None,
            Form::Or(words, form) => {
                if self.dice.below(3) == 0 {
                    format!("\"{}\"", self.one_of(words))
                } else {
                    return self.value(form, default);
                }
            }
            Form::TableOr(form) => return self.value(form, default),
            Form::Table | Form::Tables => return None,
        })
    }

    /// The lines of the table that contains a line, its heading included.
    fn table(&self, line: usize) -> core::ops::Range<usize> {
        let head = |(line, _): &(String, bool)| line.starts_with('[');
        let first = self.lines[..=line].iter().rposition(head).unwrap_or(line);
        let next = self.lines[line + 1..].iter().position(head);
        first..next.map_or(self.lines.len(), |next| line + 1 + next)
    }

    /// The transfer has no keys besides its traffic.
    fn is_plain(&self, line: usize) -> bool {
        let mut free = self.lines[self.table(line)].iter().filter(|(_, free)| *free);
        free.next().is_some_and(|(line, _)| line == PLAIN) && free.next().is_none()
    }

    /// Repairs a path whose stages do not fit; true if it changed something. It drops the stage of a surplus agent,
    /// turns an empty stage into a link, adds a link where no time passes, and removes conflicting keys of a radio.
    fn repair_path(&mut self, key: &str, wrong: usize) -> bool {
        if key == "path" || key == "cell" {
            self.fixed("[[path]]");
            self.rate("link");
            return true;
        }
        if wrong >= self.lines.len() {
            return false;
        }
        let table = self.table(wrong);
        let begins = |line: &str, keys: &[&str]| keys.iter().any(|key| line.starts_with(key));
        if key.ends_with(".agent") && begins(&self.lines[wrong].0, &["agent = "]) {
            self.lines.drain(table);
        } else if key.ends_with(".radio") {
            let layers: &[&str] = &["mac = ", "link-layer = "];
            let varying: &[&str] =
                &["radio.rates", "radio.delays = ", "radio.losses = ", "radio.outage"];
            let has = |keys| self.lines[table.clone()].iter().any(|(line, _)| begins(line, keys));
            if !(has(layers) && has(varying)) {
                return false;
            }
            let gone = *self.one_of(&[layers, varying]);
            let rest = self.lines.split_off(table.start);
            let inside = table.len();
            let stays =
                |(i, (line, _)): &(usize, (String, bool))| *i >= inside || !begins(line, gone);
            self.lines.extend(rest.into_iter().enumerate().filter(stays).map(|(_, line)| line));
        } else if table.len() == 1 && begins(&self.lines[wrong].0, &["[[path]]", "[[cell.path]]"]) {
            self.lines.insert(table.end, ("link.rate = \"1mbit\"".to_owned(), false));
        } else {
            return false;
        }
        true
    }

    /// Removes refused lines, one by one, until the file is accepted.
    fn without_refused_lines(mut self) -> Option<(String, Scenario)> {
        for _ in 0..MAX_REMOVED {
            let mut text = String::new();
            for (line, _) in &self.lines {
                text.push_str(line);
                text.push('\n');
            }
            let error = match parse(&text, "hostile", &[]) {
                Ok((plan, _)) => {
                    let cell = plan.cells.into_iter().next()?;
                    return Some((text, cell.scenario));
                }
                Err(error) => error,
            };
            if error.at.source != Source::File {
                return None;
            }
            let (line, _) = error.at.line_column(&text);
            let wrong = line - 1;
            if error.code == Code::BadPath && self.repair_path(&error.key, wrong) {
                continue;
            }
            match self.lines.get(wrong) {
                Some((_, true)) => {
                    self.lines.remove(wrong);
                }
                // Its own traffic was removed for other reasons: make it a plain transfer.
                Some((table, _)) if table == "[[transfer]]" && !self.is_plain(wrong) => {
                    let table = self.table(wrong);
                    let after = self.lines.split_off(table.end);
                    let own = self.lines.split_off(table.start);
                    self.lines.extend(own.into_iter().filter(|(_, free)| !free));
                    self.lines.push((PLAIN.to_owned(), true));
                    self.lines.extend(after);
                }
                // The position of the host was removed as well.
                Some((table, _)) if table == "[visits]" && self.table(wrong).len() == 1 => {
                    let way = *self.one_of(&["every = \"1s\"", "dwell = \"1s\"", "every = \"1h\""]);
                    self.lines.insert(wrong + 1, (way.to_owned(), true));
                }
                // The error concerns a whole table: remove one of its lines at random.
                _ => {
                    let rest = match self.lines.get(wrong) {
                        Some(_) => wrong + 1..self.table(wrong).end,
                        None => 0..0,
                    };
                    // A plain transfer is no cause.
                    let may = |i: &usize| self.lines[*i].1 && self.lines[*i].0 != PLAIN;
                    let inside: Vec<usize> = rest.filter(may).collect();
                    let all: Vec<usize> =
                        (0..self.lines.len()).filter(|i| self.lines[*i].1).collect();
                    let from = if inside.is_empty() { &all } else { &inside };
                    if from.is_empty() {
                        return None;
                    }
                    let gone = *self.one_of(from);
                    self.lines.remove(gone);
                }
            }
        }
        None
    }
}
