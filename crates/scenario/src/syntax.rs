//! Remedies for frequent faults of TOML's syntax, and for files in another language.

use core::ops::Range;

/// The language of a text that is not TOML, as a fault.
pub(crate) fn other_language(text: &str) -> Option<&'static str> {
    let begin = text.trim_start_matches('\u{feff}').trim_start();
    if begin.starts_with('{') || begin.starts_with("[{") {
        Some("it begins as JSON")
    } else if begin.starts_with("<!") || begin.starts_with("<?") || begin.starts_with("<html") {
        Some("it begins as a web page or XML")
    } else if begin.starts_with("---\n") {
        Some("it begins as YAML")
    } else {
        None
    }
}

/// The remedy of a frequent fault in the syntax that causes the parser's message at `span`; `None` for other messages.
pub(crate) fn remedy(text: &str, span: Range<usize>, message: &str) -> Option<String> {
    if text.contains('\r') && !text.contains('\n') {
        return Some(
            "its lines end in carriage returns alone: convert them, `tr '\\r' '\\n'`".to_owned(),
        );
    }
    if let Some(language) = other_language(text) {
        let remedy = match language {
            "it begins as a web page or XML" => {
                "download the file itself, not the page that shows it"
            }
            _ => "write it in TOML",
        };
        return Some(remedy.to_owned());
    }
    let before = text.get(..span.start)?;
    let line = text[before.rfind('\n').map_or(0, |at| at + 1)..].lines().next()?;
    if message.contains("duplicate key") {
        return Some(duplicate(text, line));
    }
    let word = text.get(span).unwrap_or_default();
    let word = word.split(['#', ',', '}', ']', '\n']).next().unwrap_or_default().trim();
    of_characters(line)
        .or_else(|| of_comment(line))
        .or_else(|| of_value(line, word, message))
        .or_else(|| of_brackets(line, message))
}

/// A list of tables that is continued as a table is the most frequent duplicate.
fn duplicate(text: &str, line: &str) -> String {
    let heading = line.trim().trim_matches(['[', ']']);
    let is_list = line.trim_start().starts_with('[') && text.contains(&format!("[[{heading}]]"));
    match is_list && !line.trim_start().starts_with("[[") {
        true => format!("write each `{heading}` in double brackets: `[[{heading}]]`"),
        false => "leave out one of the two, or join them".to_owned(),
    }
}

fn of_characters(line: &str) -> Option<String> {
    let is_hidden = |c: &char| {
        matches!(c, '\u{a0}' | '\u{200b}'..='\u{200f}' | '\u{202f}' | '\u{2009}' | '\u{feff}')
            || (c.is_control() && *c != '\t')
    };
    if line.contains(['\u{201c}', '\u{201d}', '\u{201e}', '\u{2018}', '\u{2019}']) {
        Some("write straight quotes: `\"`".to_owned())
    } else if let Some(hidden) = line.chars().find(is_hidden) {
        Some(format!("remove the invisible character U+{:04X} from this line", hidden as u32))
    } else if line.matches('"').count() % 2 == 1 {
        Some("a double quote is missing in this line".to_owned())
    } else {
        None
    }
}

fn of_comment(line: &str) -> Option<String> {
    let start = line.trim_start();
    let is_comment = ["//", "--", "/*", ";", "%"].iter().any(|mark| start.starts_with(mark));
    (is_comment || line.contains(" //")).then(|| "a comment begins with `#`".to_owned())
}

/// `word` is the refused value, `line` its line.
fn of_value(line: &str, word: &str, message: &str) -> Option<String> {
    let value = line.split_once('=').map(|(_, value)| value.trim());
    let bare = word.trim_end_matches(';').trim();
    let rest = || value.and_then(|value| value.split([' ', ',', '}', ']', '#', ';']).next());
    let shown = if bare.is_empty() { rest().unwrap_or_default() } else { bare };
    let is_value =
        ["must be quoted", "boolean", "float", "number"].iter().any(|m| message.contains(m));
    match shown.to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" if is_value => Some("write `true`, in small letters".to_owned()),
        "false" | "no" | "off" if is_value => Some("write `false`, in small letters".to_owned()),
        "null" | "nil" => Some("leave the key out: it has its default then".to_owned()),
        "none" => Some("write `\"none\"`, or leave the key out for its default".to_owned()),
        _ if value.is_some_and(str::is_empty) => Some("write a value after `=`".to_owned()),
        _ if word.ends_with(';') => Some("leave out the semicolon".to_owned()),
        _ if message.contains("leading zero") => Some("leave out the leading zero".to_owned()),
        _ if message.contains("must be quoted") && !shown.is_empty() && !shown.contains('"') => {
            Some(format!("write `\"{shown}\"`"))
        }
        _ if line.contains(':') && !line.contains('=') => {
            Some("write `=` in place of `:`".to_owned())
        }
        _ => None,
    }
}

fn of_brackets(line: &str, message: &str) -> Option<String> {
    let name = line.trim().trim_matches(['[', ']']);
    if message.contains("unclosed table") && name.contains(' ') {
        Some(format!(
            "write `[{}]`, with a dot",
            name.split_whitespace().collect::<Vec<_>>().join(".")
        ))
    } else if message.contains("unclosed table") {
        Some(format!("close the heading: `[{name}]`"))
    } else if message.contains("unclosed inline table") {
        Some("a closing brace `}` is missing".to_owned())
    } else if message.contains("unclosed array") {
        Some("a closing bracket `]` is missing".to_owned())
    } else if message.contains("invalid unquoted key") {
        Some("a key consists of the letters a to z, digits, `-` and `_`".to_owned())
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use crate::document::parse;

    #[test]
    fn frequent_faults_of_syntax_have_their_own_remedies() {
        for (text, expected) in [
            ("name = \"x\nruns = 3\n", "a double quote is missing"),
            ("link = { delay = \"10ms }\n", "a double quote is missing"),
            ("delay = 10ms\n", "write `\"10ms\"`"),
            ("delay = \u{201c}10ms\u{201d}\n", "straight quotes"),
            ("runs = 1 // one\n", "a comment begins with `#`"),
            ("// one\nruns = 1\n", "a comment begins with `#`"),
            ("runs: 1\n", "write `=`"),
            ("runs = 1;\n", "leave out the semicolon"),
            ("runs = 01\n", "leave out the leading zero"),
            ("runs =\n", "write a value"),
            ("runs\u{a0}= 1\n", "invisible character U+00A0"),
            ("sack = True\n", "write `true`"),
            ("sack = yes\n", "write `true`"),
            ("sack = off\n", "write `false`"),
            ("x = { sack = No }\n", "write `false`"),
            ("sack = null\n", "leave the key out"),
            ("agent = none\n", "write `\"none\"`"),
            ("[host.a\n", "close the heading: `[host.a]`"),
            ("[host a]\n", "write `[host.a]`"),
            ("link = { delay = \"10ms\"\n", "brace `}` is missing"),
            ("r\u{fc}ns = 1\n", "letters a to z"),
            ("runs = 1\nruns = 2\n", "leave out one of the two"),
            ("[host.a]\n[host.a]\n", "leave out one of the two"),
            ("[[path]]\n[path]\n", "`[[path]]`"),
            ("runs = 1\rseed = 2\r", "`tr '\\r' '\\n'`"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.help.contains(expected), "{text}: {}: {}", error.message, error.help);
            assert!(error.help.contains("a scenario is written in TOML"), "{text}");
        }
    }

    #[test]
    fn files_in_other_languages_are_recognised() {
        for (text, expected) in [
            ("{\"runs\": 1}\n", "JSON"),
            ("<!DOCTYPE html>\n<p>x</p>\n", "web page"),
            ("---\nruns: 1\n", "YAML"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.message.contains(expected), "{text}: {}", error.message);
        }
    }
}
