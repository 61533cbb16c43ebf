//! Messages about invalid values of options.

use clap::error::{ContextKind, ContextValue};
use lasthop_scenario::spelling;
use lasthop_scenario::synonyms::meaning;

use super::words::VALUES;

/// An invalid value of an option.
pub(super) fn bad_value(
    error: &clap::Error,
    option: &str,
    value: &str,
    more: &str,
) -> (String, String) {
    use std::error::Error as _;
    let place = match option.starts_with('-') {
        true => format!("`{option} {value}`"),
        false => format!("`{value}`"),
    };
    if let Some(ContextValue::Strings(choices)) = error.get(ContextKind::ValidValue) {
        let known: Vec<&str> = choices.iter().map(String::as_str).collect();
        let near = meaning(value, VALUES, &known)
            .map_or(String::new(), |near| format!("did you mean `{near}`? "));
        return (
            format!("{place} is none of the choices"),
            format!("{near}one of {}", known.join(", ")),
        );
    }
    let Some(source) = error.source() else {
        return (format!("{place} is not understood"), more.to_owned());
    };
    if let Some(error) = source.downcast_ref::<std::num::ParseIntError>() {
        use std::num::IntErrorKind as Kind;
        let is_negative = value.strip_prefix('-').is_some_and(|rest| rest.parse::<u64>().is_ok());
        return match error.kind() {
            Kind::Zero => {
                (format!("{place} is out of range"), "a whole number from 1 on".to_owned())
            }
            _ if is_negative => {
                (format!("{place} is out of range"), format!("a whole number from 0 on; {more}"))
            }
            Kind::PosOverflow => {
                (format!("{place} is out of range"), format!("the number is too large; {more}"))
            }
            _ => (format!("{place} is not a whole number"), format!("write digits only; {more}")),
        };
    }
    if source.is::<std::net::AddrParseError>() {
        let help =
            format!("write one address such as 10.0.0.1 or fd00::1, without mask and name; {more}");
        return (format!("{place} is not an IP address"), help);
    }
    if source.is::<std::num::ParseFloatError>() {
        return (format!("{place} is not a number"), format!("for example 1.5; {more}"));
    }
    let message = source.to_string();
    // Clap's message for a range.
    if let Some((_, range)) = message.split_once(" is not in ") {
        let (least, most) = range.split_once("..").unwrap_or((range, ""));
        let most = most.trim_start_matches('=');
        let range = if most.is_empty() {
            format!("from {least} on")
        } else {
            format!("from {least} to {most}")
        };
        return (format!("{place} is out of range"), format!("a whole number {range}"));
    }
    bad_quantity(option, value, &message)
}

/// Message and remedy for a value of an option. `message` is a message of lasthop: the problem, and after a semicolon the
/// remedy.
pub fn bad_quantity(option: &str, value: &str, message: &str) -> (String, String) {
    let place = match option.starts_with('-') {
        true => format!("`{option} {value}`"),
        false => format!("`{value}`"),
    };
    let guess = spelled(message, value)
        .map_or(String::new(), |meant| format!("did you mean {}? ", choices(option, &meant)));
    let own = match spelling::kind(value) {
        Some(kind)
            if guess.is_empty() && UNKNOWN.iter().any(|problem| message.contains(problem)) =>
        {
            let is_own = message.contains(&format!("expected {kind}"));
            let problem = if is_own { "out of range" } else { kind };
            message.split_once("; ").map(|(_, help)| format!("`{value}` is {problem}; {help}"))
        }
        _ => None,
    };
    let message = own.as_deref().unwrap_or(message);
    match message.split_once("; ") {
        Some((problem, help)) if problem.contains('`') => (
            format!("`{option}`: {problem}"),
            format!("{guess}{}{help}", range(problem, help, value)),
        ),
        Some((problem, help)) => (format!("{place}: {problem}"), format!("{guess}{help}")),
        None => (format!("{place} is not understood"), format!("{guess}{message}")),
    }
}

/// Messages about a number with a unit of another quantity.
const UNKNOWN: [&str; 2] = ["has no known unit", "is not one number with a unit"];

fn choices(option: &str, meant: &[String]) -> String {
    meant.iter().map(|meant| format!("`{option} {meant}`")).collect::<Vec<_>>().join(" or ")
}

/// The right spellings of a quantity, of which `message` states the expected form. A comma may have two meanings.
fn spelled(message: &str, value: &str) -> Option<Vec<String>> {
    type Spelling = fn(&str) -> Option<String>;
    const FORMS: &[(&str, Spelling)] = &[
        ("a rate such as", spelling::rate),
        ("a time such as", spelling::time),
        ("a size such as", spelling::size),
        ("a probability", spelling::probability),
        ("a number of packets or bytes", spelling::queue),
    ];
    let (_, spell) = FORMS.iter().find(|(form, _)| message.contains(form))?;
    let all = match (spell(value), spelling::readings(value)) {
        (Some(meant), _) => vec![meant],
        (None, Some(both)) => both.iter().filter_map(|one| spell(one)).collect(),
        (None, None) => Vec::new(),
    };
    (!all.is_empty() && !message.contains("out of range")).then_some(all)
}

/// The range of a quantity that is out of range.
fn range(problem: &str, help: &str, value: &str) -> &'static str {
    let is_negative = value.trim_start().starts_with('-');
    match problem.ends_with("is out of range") {
        true if help.contains("a probability") => "a probability is from 0 to 1, or 0% to 100%; ",
        true if help.contains("a rate") => "a rate is at least `1bit`; ",
        true if is_negative => "it is at least 0; ",
        _ => "",
    }
}
