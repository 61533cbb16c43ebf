//! The size of the project does not grow unnoticed: `size.toml` records lines of code of each crate, the number of crates and
//! commands, and the words of the documentation. A larger number needs a new record, with its reason.
//!
//! A line of code has a token: comments, blank lines, items under `#[cfg(test)]` and files named `tests.rs` do not count. A
//! word has a letter or a digit, so the bars of tables are none.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use serde::Deserialize;

/// `shrink` lowers the record to the present numbers. Any other text also raises it, and is the reason.
const VARIABLE: &str = "LASTHOP_WRITE_SIZE";
const COMMAND: &str = "cargo test -p lasthop-checks --test all size::";
const HEAD: &str = "\
# Sizes that the project may have, and the reason of the last increase of each. `LASTHOP_WRITE_SIZE=shrink cargo test -p
# lasthop-checks --test all size::` lowers them; another value than `shrink` raises them too, and becomes the reason.
";

/// Growth up to this share needs no new record, so that parallel changes do not conflict. A total over all crates is recorded too.
const SLACK: f64 = 0.01;

type Sizes = BTreeMap<String, Size>;

#[derive(Clone, PartialEq, Debug, Default, Deserialize)]
struct Size {
    size: usize,
    #[serde(default)]
    reason: String,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// All files below `dir` with this ending.
fn files(dir: &Path, ending: &str, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).into_iter().flatten() {
        let path = entry.expect("a directory can be read").path();
        if path.is_dir() {
            files(&path, ending, into);
        } else if path.extension().is_some_and(|extension| extension == ending) {
            into.push(path);
        }
    }
}

/// The numbers of the lines with code, as a set.
fn code_lines(text: &str) -> usize {
    let source: Vec<&str> = text.lines().collect();
    let tokens: TokenStream = text.parse().expect("sources are Rust");
    let mut has_code = vec![false; source.len() + 1];
    mark(tokens, &source, &mut has_code);
    has_code.into_iter().filter(|is_code| *is_code).count()
}

fn mark(tokens: TokenStream, source: &[&str], has_code: &mut [bool]) {
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        let start = token.span().start();
        if is_punct(&token, '#') {
            // A doc comment is a token too: `#[doc = "..."]`, at the place of the comment.
            let line = source.get(start.line - 1).copied().unwrap_or_default();
            let here: String = line.chars().skip(start.column).take(2).collect();
            if here.starts_with('/') {
                while tokens
                    .peek()
                    .is_some_and(|next| next.span().start() == start || is_punct(next, '!'))
                {
                    tokens.next();
                }
                continue;
            }
            if tokens.peek().is_some_and(is_cfg_test) {
                // The attribute, and its item: up to a semicolon, a comma, or a block.
                for skipped in tokens.by_ref() {
                    let is_block = matches!(&skipped, TokenTree::Group(g) if g.delimiter() == Delimiter::Brace);
                    if is_block || is_punct(&skipped, ';') || is_punct(&skipped, ',') {
                        break;
                    }
                }
                continue;
            }
        }
        match token {
            TokenTree::Group(group) => {
                let ends = [group.span_open().start().line, group.span_close().end().line];
                ends.into_iter().for_each(|line| has_code[line - 1] = true);
                mark(group.stream(), source, has_code);
            }
            token => {
                let span = token.span();
                (span.start().line..=span.end().line).for_each(|line| has_code[line - 1] = true);
            }
        }
    }
}

fn is_punct(token: &TokenTree, c: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == c)
}

/// Whether an attribute is `[cfg(test)]` or `[cfg(all(test, ...))]`.
fn is_cfg_test(token: &TokenTree) -> bool {
    let TokenTree::Group(group) = token else { return false };
    let text = group.stream().to_string().replace(' ', "");
    text.starts_with("cfg(test") || text.starts_with("cfg(all(test")
}

fn words(text: &str) -> usize {
    text.split_whitespace().filter(|word| word.chars().any(char::is_alphanumeric)).count()
}

/// The present sizes.
fn sizes() -> BTreeMap<String, usize> {
    let mut found = BTreeMap::new();
    let crates = fs::read_dir(root().join("crates")).expect("there are crates");
    let dirs = crates.map(|entry| entry.expect("crates/ can be read").path());
    let (mut total, mut count) = (0, 0);
    for dir in dirs.filter(|dir| dir.join("Cargo.toml").is_file()) {
        let mut all = Vec::new();
        files(&dir.join("src"), "rs", &mut all);
        let own = all.iter().filter(|file| !file.ends_with("tests.rs"));
        let lines =
            own.map(|file| code_lines(&fs::read_to_string(file).expect("it can be read"))).sum();
        let name = dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
        found.insert(format!("lines of {name}"), lines);
        (total, count) = (total + lines, count + 1);
    }
    found.insert("lines of all crates".to_owned(), total);
    found.insert("crates".to_owned(), count);
    let mut pages = Vec::new();
    files(&root().join("docs"), "md", &mut pages);
    let text = |page: &PathBuf| fs::read_to_string(page).expect("it can be read");
    found.insert("words of docs".to_owned(), pages.iter().map(|page| words(&text(page))).sum());
    let commands = text(&root().join("docs/reference/commands.md"));
    let is_command = |line: &&str| {
        let name = line.strip_prefix("| `lasthop ").and_then(|rest| rest.split('`').next());
        name.is_some_and(|name| !name.contains(' '))
    };
    found.insert("commands".to_owned(), commands.lines().filter(is_command).count());
    found
}

fn record_at() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("size.toml")
}

/// The most that a recorded size allows. Crates and commands have no slack.
fn limit(name: &str, recorded: usize) -> usize {
    match name.starts_with("lines") || name.starts_with("words") {
        true => recorded + (recorded as f64 * SLACK) as usize,
        false => recorded,
    }
}

/// The names of `found` that exceed the record.
fn grown(record: &Sizes, found: &BTreeMap<String, usize>) -> Vec<String> {
    let most = |name: &String| record.get(name).map_or(0, |size| limit(name, size.size));
    let names = found.iter().filter(|(name, size)| **size > most(name));
    names.map(|(name, _)| name.clone()).collect()
}

fn written(record: &Sizes, found: &BTreeMap<String, usize>, mode: &str) -> String {
    let mut text = HEAD.to_owned();
    for (name, size) in found {
        let before = record.get(name).cloned().unwrap_or_default();
        let (size, reason) = match *size <= before.size {
            true => (*size, before.reason),
            false if mode == "shrink" => (before.size, before.reason),
            false => (*size, mode.to_owned()),
        };
        let _ = write!(text, "\n[\"{name}\"]\nsize = {size}\n");
        if !reason.is_empty() {
            let _ = writeln!(text, "reason = {reason:?}");
        }
    }
    text
}

#[test]
fn the_project_does_not_grow_unnoticed() {
    let found = sizes();
    let text = fs::read_to_string(record_at()).unwrap_or_default();
    let record: Sizes = toml::from_str(&text).expect("size.toml is a record");
    let mode = std::env::var(VARIABLE).unwrap_or_default();
    if !mode.is_empty() {
        fs::write(record_at(), written(&record, &found, &mode)).expect("the record is written");
        return;
    }
    let grown = grown(&record, &found);
    let shown: Vec<String> = grown
        .iter()
        .map(|name| {
            format!("{name}: {}, recorded {}", found[name], record.get(name).map_or(0, |s| s.size))
        })
        .collect();
    assert!(
        grown.is_empty(),
        "larger than recorded: make it smaller, or run `{VARIABLE}='the reason' {COMMAND}`:\n{}",
        shown.join("\n")
    );
}

#[test]
fn lines_without_code_do_not_count() {
    let text = "//! Page.\n\n/// A comment.\n/* more */\nfn a() {\n    // why\n    let s = \"one\ntwo\";\n}\n\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\n#[cfg(test)]\nmod c;\nstruct D;\n";
    assert_eq!(code_lines(text), 5);
    assert_eq!(code_lines("#[derive(Debug)]\nstruct E {\n    /// F.\n    f: u8,\n}\n"), 4);
    assert_eq!(words("| a | 2 % | – |"), 2);
}

#[test]
fn growth_beyond_the_slack_needs_a_reason() {
    let record: Sizes =
        toml::from_str("[\"lines of a\"]\nsize = 1000\n[crates]\nsize = 3\n").unwrap();
    let found = |lines, crates| {
        BTreeMap::from([("lines of a".to_owned(), lines), ("crates".to_owned(), crates)])
    };
    assert!(grown(&record, &found(1010, 3)).is_empty());
    assert_eq!(grown(&record, &found(1011, 4)), ["crates", "lines of a"]);
    let kept: Sizes = toml::from_str(&written(&record, &found(1011, 2), "shrink")).unwrap();
    assert_eq!((kept["lines of a"].size, kept["crates"].size), (1000, 2));
    let raised: Sizes = toml::from_str(&written(&record, &found(1011, 2), "a new sender")).unwrap();
    assert_eq!((raised["lines of a"].size, &*raised["lines of a"].reason), (1011, "a new sender"));
    assert_eq!(raised["crates"].reason, "");
}
