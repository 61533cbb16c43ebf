//! Sentences in string literals of Rust code, and comments of the other languages.

use std::fs;
use std::iter::Peekable;
use std::path::Path;
use std::str::FromStr as _;

use proc_macro2::token_stream::IntoIter;
use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

use super::{Line, outside_code};

/// String literals with several words. Comments, modules of tests and doc comments are left out.
///
/// # Panics
///
/// If the text is no Rust.
pub fn literals(content: &str) -> Vec<Line> {
    let tokens = TokenStream::from_str(content).expect("the file compiles");
    let mut lines = Vec::new();
    walk(tokens, &mut lines);
    lines
}

fn walk(tokens: TokenStream, lines: &mut Vec<Line>) {
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Punct(mark) if mark.as_char() == '#' => {
                if let Some(attribute) = attribute(&mut tokens) {
                    if is_test(&attribute) {
                        skip_item(&mut tokens);
                    } else if !attribute.to_string().starts_with("[doc") {
                        walk(attribute.stream(), lines);
                    }
                }
            }
            TokenTree::Group(group) => walk(group.stream(), lines),
            TokenTree::Literal(literal) => {
                let text = literal.to_string();
                if text.contains(' ') && text.ends_with(['"', '#']) {
                    let first = literal.span().start().line;
                    lines.extend(text.lines().enumerate().map(|(i, line)| {
                        let text = outside_code(&without_arguments(line));
                        Line { number: first + i, text }
                    }));
                }
            }
            _ => {}
        }
    }
}

/// The brackets behind `#` or `#!`.
fn attribute(tokens: &mut Peekable<IntoIter>) -> Option<Group> {
    tokens.next_if(|next| matches!(next, TokenTree::Punct(mark) if mark.as_char() == '!'));
    let brackets = |next: &TokenTree| matches!(next, TokenTree::Group(group) if group.delimiter() == Delimiter::Bracket);
    match tokens.next_if(brackets)? {
        TokenTree::Group(group) => Some(group),
        _ => None,
    }
}

fn is_test(attribute: &Group) -> bool {
    let text: String = attribute.to_string().split_whitespace().collect();
    text == "[cfg(test)]"
}

/// Skips the rest of an item: up to its braces or a semicolon.
fn skip_item(tokens: &mut Peekable<IntoIter>) {
    for token in tokens {
        match token {
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => return,
            TokenTree::Punct(mark) if mark.as_char() == ';' => return,
            _ => {}
        }
    }
}

/// `{names}` of format strings are no words.
fn without_arguments(text: &str) -> String {
    let mut rest = text;
    let mut words = String::new();
    while let Some((before, after)) = rest.split_once('{') {
        words.push_str(before);
        match after.split_once('}') {
            Some((name, after)) if !name.contains(' ') => {
                words.push(' ');
                rest = after;
            }
            _ => rest = after,
        }
    }
    words + rest
}

/// How a language marks comments.
#[derive(Clone, Copy)]
pub struct Marks {
    /// Before a comment up to the end of the line.
    line: &'static str,
    /// Around longer texts; lines between them count as a whole.
    block: Option<(&'static str, &'static str)>,
}

pub const HASH: Marks = Marks { line: "#", block: None };
pub const PYTHON: Marks = Marks { line: "#", block: Some(("\"\"\"", "\"\"\"")) };
pub const SLASHES: Marks = Marks { line: "//", block: Some(("/*", "*/")) };
/// Blocks are not used, and strings contain `/*`.
pub const RUST: Marks = Marks { line: "//", block: None };

/// The comments of a file by its extension, or of a script without one; `None` for other languages.
pub fn marks(path: &Path) -> Option<Marks> {
    match path.extension().map(|extension| extension.to_str().unwrap_or_default()) {
        Some("sh" | "toml") => Some(HASH),
        Some("py" | "pyi") => Some(PYTHON),
        Some("c" | "css" | "h" | "pkt" | "ts") => Some(SLASHES),
        None if fs::read(path).is_ok_and(|content| content.starts_with(b"#!")) => Some(HASH),
        _ => None,
    }
}

/// Comments of a file: whole lines, after code, and blocks. A block that begins after code is a value.
pub fn comments(content: &str, marks: Marks) -> Vec<Line> {
    let behind = format!(" {} ", marks.line);
    let mut lines = Vec::new();
    // In a block; whether it is a comment.
    let mut block: Option<bool> = None;
    for (i, line) in content.lines().enumerate() {
        let start = line.trim_start();
        let comment = match (block, marks.block) {
            (Some(is_comment), Some((_, close))) => {
                if start.contains(close) {
                    block = None;
                }
                is_comment.then_some(start)
            }
            (None, Some((open, close))) if line.contains(open) => {
                let (before, rest) = line.split_once(open).unwrap_or(("", line));
                let is_comment = before.trim_matches([' ', 'r']).is_empty();
                if !rest.contains(close) {
                    block = Some(is_comment);
                }
                is_comment.then_some(rest)
            }
            _ if start.starts_with(marks.line) => Some(start.trim_start_matches(marks.line)),
            _ => line.split_once(&behind).map(|(_, comment)| comment),
        };
        lines.extend(comment.map(|text| Line { number: i + 1, text: outside_code(text) }));
    }
    lines
}
