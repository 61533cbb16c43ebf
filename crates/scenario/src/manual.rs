//! Tables of the manual, made of what the systems and the keys say of themselves.

use lasthop_proto::describe::{Descriptor, Form, Need, Value};
use lasthop_proto::queue::Limit;
use lasthop_proto::tcp::words::TCPS;
use lasthop_proto::units::{Bytes, Span};
use lasthop_proto::{agent, channel, link, mac, queue, systems};

use crate::build::errors::any_rate;
use crate::keys::{Listed, list};
use crate::schema::of;

/// A value as a file would have it; nothing where there is none.
pub fn written(value: &Value) -> Option<String> {
    Some(match value {
        Value::Absent => return None,
        Value::Flag(flag) => flag.to_string(),
        Value::Count(count) => count.to_string(),
        Value::Number(number) => number.to_string(),
        Value::Time(time) => format!("\"{time}\""),
        Value::Size(size) => format!("\"{size}\""),
        Value::Rate(rate) => format!("\"{rate}\""),
        Value::Probability(p) => p.get().to_string(),
        Value::Limit(Limit::Packets(packets)) => format!("\"{packets}p\""),
        Value::Limit(Limit::Bytes(bytes)) => format!("\"{bytes}\""),
        Value::Speed(speed) => format!("\"{speed}\""),
        Value::Frequency(frequency) => format!("\"{frequency}\""),
        Value::Decibels(ratio) => format!("\"{ratio}\""),
        Value::Power(power) => format!("\"{power}\""),
        Value::Energy(energy) => format!("\"{energy}\""),
        Value::Word(word) => format!("\"{word}\""),
        Value::Text(text) => format!("\"{text}\""),
        Value::Current(_)
        | Value::Charge(_)
        | Value::Voltage(_)
        | Value::Words(_)
        | Value::Texts(_)
        | Value::File { .. } => return None,
    })
}

/// What may stand at a key, in few words.
fn may_be(form: &Form) -> String {
    fn words(words: &[&str]) -> String {
        let quoted: Vec<String> = words.iter().map(|word| format!("`\"{word}\"`")).collect();
        quoted.join(", ")
    }
    match form {
        Form::Flag => "`true`, `false`".to_owned(),
        Form::Count(least, most) => format!("{least} to {most}"),
        Form::Number(least, most) => format!("{least} to {most}"),
        Form::Time(_, Span(u64::MAX)) => "a time".to_owned(),
        Form::Time(least, most) => format!("{least} to {most}"),
        Form::Size(_, Bytes(u64::MAX)) => "a size".to_owned(),
        Form::Size(least, most) => format!("{least} to {most}"),
        Form::Rate => "a rate".to_owned(),
        Form::Probability => "a probability".to_owned(),
        Form::Limit => "packets (`\"50p\"`) or a size".to_owned(),
        Form::Speed(..) => "a speed".to_owned(),
        Form::Frequency(..) => "a frequency".to_owned(),
        Form::Decibels(least, most) => format!("{least} to {most}"),
        Form::Power => "a power or a current".to_owned(),
        Form::Energy => "an energy or a charge".to_owned(),
        Form::Voltage => "a voltage".to_owned(),
        Form::Word(list) if list.len() > 8 => "a word, above".to_owned(),
        Form::Word(list) => words(list),
        Form::Words(list) => format!("{}, or a list of them", words(list)),
        Form::Text(example) | Form::File(example) => format!("a text such as `{example}`"),
        Form::Texts(example) => format!("a list such as `{example}`"),
        Form::Or(list, other) => format!("{}, or {}", words(list), may_be(other)),
        Form::Table => "a table".to_owned(),
        Form::TableOr(other) => format!("a table, or {}", may_be(other)),
        Form::Tables => "a list of tables".to_owned(),
    }
}

/// The rows of keys, those of inner tables below their own, except tables that are listed `elsewhere`.
fn rows(keys: &[Listed], above: &str, elsewhere: &[&str], text: &mut String) {
    for Listed { key, default, inner } in keys {
        let name = match above {
            "" => format!("`{}`", key.name),
            above => format!("`{}` in `{above}`", key.name),
        };
        let default = match key.need {
            Need::Default => written(default).map(|word| format!(" (`{word}`)")),
            Need::Required(_) => Some(" (required)".to_owned()),
            Need::Else("") => None,
            Need::Else(what) => Some(format!(" ({what})")),
        };
        let (what, values) = (key.what, may_be(&key.form));
        text.push_str(&format!("| {name} | {what} | {values}{} |\n", default.unwrap_or_default()));
        // `models` lists tables of errors.
        if !key.name.starts_with("errors") && !elsewhere.contains(&key.name) {
            rows(inner, key.name, elsewhere, text);
        }
    }
}

/// A table of the manual as Markdown, made anew; nothing where there is none of this name.
///
/// `keys NAME` are the keys of a part of a file (see [`crate::PARTS`]), `keys errors` those of channel models one after
/// the other; `words NAME` the words of a family; `systems` all systems with their pages.
pub fn generated(name: &str) -> Option<String> {
    Some(match name.split_once(' ') {
        Some(("keys", "errors")) => models(),
        Some(("keys", part)) => {
            let mut text = "| key | what | values (default) |\n|---|---|---|\n".to_owned();
            rows(&of(part).keys, "", &elsewhere(part), &mut text);
            text
        }
        Some(("words", "tcp")) => words(TCPS.iter().map(|word| (word.key, word.what, word.source))),
        Some(("words", "agent")) => words(agent::words().map(told)),
        Some(("words", "discipline")) => words(queue::words().map(told)),
        Some(("words", "model")) => words(channel::words().map(told)),
        Some(("words", "mac")) => words(mac::all_words().map(told)),
        Some(("words", "link-layer")) => words(link::layer::words().map(told)),
        None if name == "systems" => pages(),
        _ => return None,
    })
}

/// Tables of a part that another part lists: the queues of a radio are those of a link.
fn elsewhere(part: &str) -> Vec<&'static str> {
    let tables = |keys: &'static [Listed]| {
        keys.iter().filter(|listed| !listed.inner.is_empty()).map(|listed| listed.key.name)
    };
    match part {
        "radio" => tables(&of("link").keys).collect(),
        _ => Vec::new(),
    }
}

fn told<R>(system: &Descriptor<R>) -> (&'static str, &'static str, &'static str) {
    (system.word, system.system.what, system.system.source)
}

fn words<'w>(rows: impl Iterator<Item = (&'w str, &'w str, &'w str)>) -> String {
    let mut text = "| word | what | after |\n|---|---|---|\n".to_owned();
    for (word, what, source) in rows {
        text.push_str(&format!("| `{word}` | {what} | {source} |\n"));
    }
    text
}

/// The keys of each channel model, beside those that every model has.
fn models() -> String {
    let mut text = "| `model` | key | what | values (default) |\n|---|---|---|---|\n".to_owned();
    for model in channel::words() {
        let mut own = String::new();
        rows(&list(|k| (model.read)(k, any_rate())), "", &[], &mut own);
        for row in own.lines() {
            text.push_str(&format!("| `{}` {row}\n", model.word));
        }
    }
    text
}

/// The systems of each kind, with their pages.
fn pages() -> String {
    let mut text = "| where | systems |\n|---|---|\n".to_owned();
    let all: Vec<_> = systems::systems().into_iter().filter(|system| system.tier > 0).collect();
    for kind in all.chunk_by(|a, b| a.kind == b.kind) {
        let pages = kind.iter().map(|system| format!("[{0}]({0}.md)", system.key));
        let kind = format!("{:?}", kind[0].kind).to_lowercase();
        text.push_str(&format!("| {kind} | {} |\n", pages.collect::<Vec<_>>().join(", ")));
    }
    text
}
