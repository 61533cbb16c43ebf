//! Counts hard-to-read words and constructions in comments, messages and documents.
//!
//! `examples/word_rates.rs` prints their rates; `tests/language.rs` rejects new ones of a short list.

#[path = "messages.rs"]
pub mod messages;

use std::fs;
use std::path::{Path, PathBuf};

/// A construction, found as one of several sequences of words.
pub struct Construction {
    pub name: &'static str,
    /// Lower-case words, one blank apart.
    pub forms: &'static [&'static str],
    /// Whether the test rejects it; the others have good uses and are only counted.
    pub rejected: bool,
    /// What to write instead.
    pub instead: &'static str,
}

const fn rejected(
    name: &'static str,
    forms: &'static [&'static str],
    instead: &'static str,
) -> Construction {
    Construction { name, forms, rejected: true, instead }
}

const fn counted(
    name: &'static str,
    forms: &'static [&'static str],
    instead: &'static str,
) -> Construction {
    Construction { name, forms, rejected: false, instead }
}

/// The list. The forms are those whose rates were measured in other projects, and clear archaisms.
pub const CONSTRUCTIONS: &[Construction] = &[
    rejected("told", &["told", "tell", "tells"], "report, notify, print, emit"),
    rejected("whoever", &["whoever"], "the noun: caller, user, sender"),
    rejected("nobody", &["nobody"], "the plain negative: no caller, no stage"),
    rejected("beside", &["beside"], "next to, compared with, in addition to"),
    rejected("goes on", &["go on", "goes on", "went on", "going on"], "continue, resume"),
    rejected("mended", &["mend", "mends", "mended"], "fix, repair"),
    rejected("of today", &["of today"], "modern, current"),
    rejected(
        "made anew",
        &["made anew", "writes anew", "reckon", "reckoned"],
        "regenerate, compute",
    ),
    rejected(
        "by turns",
        &["by turns", "in one sitting", "in a sitting"],
        "interleaved, in one run",
    ),
    rejected("that which", &["that which", "so many of"], "the noun; a count of"),
    counted("asked", &["asked", "asks"], "poll, query, request"),
    counted("kept", &["kept", "keeps"], "store, cache, retain, buffer"),
    counted("stands", &["stand", "stands"], "is defined, is listed, appears"),
    counted("of its own", &["of its own", "of their own"], "its own X, a separate X"),
    counted(
        "what is",
        &["what is", "what the", "what a", "what an", "what has", "what was"],
        "the field's noun",
    ),
];

/// Further words that make the name of a function a riddle. Prose has good uses of them.
pub const NAME_WORDS: [&str; 18] = [
    "anew", "asked", "asks", "hear", "heard", "hears", "kept", "keeps", "knows", "likeness",
    "said", "says", "stand", "stands", "wants", "what", "whatever", "whom",
];

/// Names of types that say nothing of what they hold.
const VAGUE: [&str; 10] =
    ["Told", "Said", "Kept", "Asked", "Shown", "Seen", "Sent", "Answer", "Place", "Counted"];

/// A text of the repository: the comments of a source file, or the prose of a page.
pub struct Text {
    /// From the root of the repository.
    pub path: String,
    pub lines: Vec<Line>,
    /// Definitions with a name of [`VAGUE`].
    pub vague: usize,
}

/// A line of prose.
pub struct Line {
    /// From 1.
    pub number: usize,
    pub text: String,
}

/// What one line has: construction by its index in [`CONSTRUCTIONS`], and the line's number.
pub struct Hit {
    pub construction: usize,
    pub line: usize,
}

pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).expect("the crate lies in crates/").to_owned()
}

impl Text {
    pub fn words(&self) -> usize {
        self.lines.iter().map(|line| words(&line.text).count()).sum()
    }

    /// All constructions of the text. A form must lie within one line.
    pub fn hits(&self) -> Vec<Hit> {
        let mut hits = Vec::new();
        for line in &self.lines {
            let mut joined = String::from(" ");
            for word in words(&line.text) {
                joined.push_str(&word);
                joined.push(' ');
            }
            for (construction, Construction { forms, .. }) in CONSTRUCTIONS.iter().enumerate() {
                for form in *forms {
                    let count = joined.match_indices(&format!(" {form} ")).count();
                    hits.extend((0..count).map(|_| Hit { construction, line: line.number }));
                }
            }
        }
        hits
    }
}

/// Lower-case words, without punctuation.
fn words(text: &str) -> impl Iterator<Item = String> {
    let separates = |c: char| !(c.is_alphanumeric() || matches!(c, '\'' | '-'));
    text.split(separates).filter(|word| !word.is_empty()).map(str::to_lowercase)
}

/// The comments of the crates' Rust files, sorted by path.
pub fn comments() -> Vec<Text> {
    let mut files = Vec::new();
    find(&root().join("crates"), |path| has_extension(path, "rs"), &mut files);
    files.into_iter().map(|path| text(&path, source)).collect()
}

/// The prose of the documents, sorted by path. Generated pages and blocks are left out.
pub fn documents() -> Vec<Text> {
    let mut files = vec![root().join("CONTRIBUTING.md"), root().join("README.md")];
    find(&root().join("docs"), |path| has_extension(path, "md"), &mut files);
    files.retain(|path| !path.ends_with("docs/reference/commands.md"));
    files.into_iter().map(|path| text(&path, document)).collect()
}

/// The messages in the crates' Rust files outside tests, sorted by path.
pub fn messages() -> Vec<Text> {
    let mut files = Vec::new();
    find(&root().join("crates"), |path| has_extension(path, "rs"), &mut files);
    let tests = ["tests", "benches", "examples"];
    files.retain(|path| {
        !path.ends_with("tests.rs") && !path.iter().any(|part| tests.iter().any(|t| part == *t))
    });
    files.into_iter().map(|path| text(&path, |content| (messages::literals(content), 0))).collect()
}

/// The names of functions in the crates' Rust files, as words, sorted by path.
pub fn functions() -> Vec<Text> {
    let mut files = Vec::new();
    find(&root().join("crates"), |path| has_extension(path, "rs"), &mut files);
    files.into_iter().map(|path| text(&path, |content| (function_names(content), 0))).collect()
}

fn function_names(content: &str) -> Vec<Line> {
    let name = |line: &str| {
        let (before, rest) = line.trim_start().split_once("fn ")?;
        let is_definition =
            before.is_empty() || (before.ends_with(' ') && !before.starts_with("//"));
        let name = rest.split(|c: char| !(c.is_alphanumeric() || c == '_')).next()?;
        is_definition.then(|| name.replace('_', " "))
    };
    let lines = content.lines().enumerate();
    lines.filter_map(|(i, line)| Some(Line { number: i + 1, text: name(line)? })).collect()
}

/// Folders with other languages than Rust.
const OTHERS: [&str; 9] = [
    ".ci",
    "crates",
    "deploy",
    "docs",
    "python/lasthop",
    "python/tests",
    "scenarios",
    "web/src",
    "web/tests",
];

/// The comments of scripts, scenarios, the laboratory and the Python package, and the prose of lessons and changes.
pub fn others() -> Vec<Text> {
    let mut texts = vec![text(&root().join("Makefile"), |content| {
        (messages::comments(content, messages::HASH), 0)
    })];
    for folder in OTHERS {
        let mut files = Vec::new();
        find(&root().join(folder), |path| messages::marks(path).is_some(), &mut files);
        texts.extend(files.iter().filter_map(|path| {
            let marks = messages::marks(path)?;
            Some(text(path, |content| (messages::comments(content, marks), 0)))
        }));
    }
    let mut pages = vec![root().join("CHANGELOG.md")];
    find(&root().join("web/lessons"), |path| has_extension(path, "md"), &mut pages);
    texts.extend(pages.iter().map(|path| text(path, document)));
    texts
}

fn has_extension(path: &Path, wanted: &str) -> bool {
    path.extension().is_some_and(|extension| extension == wanted)
}

fn find(directory: &Path, is_wanted: impl Fn(&Path) -> bool + Copy, found: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(directory).expect("the repository can be read");
    let mut paths: Vec<PathBuf> =
        entries.map(|entry| entry.expect("the repository can be read").path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            if !path.ends_with("target") {
                find(&path, is_wanted, found);
            }
        } else if is_wanted(&path) {
            found.push(path);
        }
    }
}

fn text(path: &Path, read: impl Fn(&str) -> (Vec<Line>, usize)) -> Text {
    let content = fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let (lines, vague) = read(&content);
    let path = path.strip_prefix(root()).unwrap_or(path).display().to_string();
    Text { path, lines, vague }
}

/// Comments, and the number of vague names among the definitions.
fn source(content: &str) -> (Vec<Line>, usize) {
    let code = content.lines().map(str::trim_start).filter(|line| !line.starts_with("//"));
    (messages::comments(content, messages::RUST), code.filter(|line| is_vague(line)).count())
}

fn is_vague(line: &str) -> bool {
    let mut words = line.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let defined = words.any(|word| matches!(word, "struct" | "enum" | "type" | "trait"));
    defined && words.next().is_some_and(|name| VAGUE.contains(&name))
}

/// Prose: no properties at the top, no blocks of code, no code spans, no blocks that a command writes.
fn document(content: &str) -> (Vec<Line>, usize) {
    let properties = match content.strip_prefix("---\n").and_then(|rest| rest.split_once("\n---\n"))
    {
        Some((top, _)) => top.lines().count() + 2,
        None => 0,
    };
    let (mut fenced, mut generated) = (false, false);
    let mut lines = Vec::new();
    for (at, line) in content.lines().enumerate().skip(properties) {
        let start = line.trim_start();
        if start.starts_with("```") {
            fenced = !fenced;
        } else if start.starts_with("<!--") {
            generated = !start.starts_with("<!-- end");
        } else if !fenced && !generated && !line.starts_with("    ") {
            lines.push(Line { number: at + 1, text: outside_code(line) });
        }
    }
    (lines, 0)
}

fn outside_code(line: &str) -> String {
    line.split('`').step_by(2).collect::<Vec<_>>().join(" ")
}

/// Rates for each 10,000 words, a line for each construction.
pub fn rates(texts: &[Text]) -> String {
    let words = texts.iter().map(Text::words).sum::<usize>().max(1);
    let mut counts = [0_usize; CONSTRUCTIONS.len()];
    for hit in texts.iter().flat_map(Text::hits) {
        counts[hit.construction] += 1;
    }
    let mut table = String::new();
    for (Construction { name, .. }, count) in CONSTRUCTIONS.iter().zip(counts) {
        table += &format!("{name:12} {:7.1}\n", 1e4 * count as f64 / words as f64);
    }
    table + &format!("{words} words in {} files\n", texts.len())
}

/// Comments of at most two words, all lines of comments, and definitions with vague names.
pub fn short_comments(texts: &[Text]) -> [usize; 3] {
    let lines = || texts.iter().flat_map(|text| &text.lines);
    let short = lines().filter(|line| (1..=2).contains(&words(&line.text).count())).count();
    [short, lines().count(), texts.iter().map(|text| text.vague).sum()]
}
