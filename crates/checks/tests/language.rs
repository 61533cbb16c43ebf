//! Comments, messages and documents use no more of the rejected constructions than `language.txt` allows for each file.

#[path = "../shared/language.rs"]
#[allow(dead_code, reason = "examples/word_rates.rs uses the rest")]
mod texts;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use self::texts::{CONSTRUCTIONS, Text};

/// `shrink` lowers allowances to the present counts, `accept` also raises them: for a merge of branches.
const VARIABLE: &str = "LASTHOP_WRITE_LANGUAGE";
const COMMAND: &str = "cargo test -p lasthop-checks --test all language::";
const HEAD: &str = "\
# Rejected constructions that each file may still have. Written by
# LASTHOP_WRITE_LANGUAGE=shrink cargo test -p lasthop-checks --test all language::
# (LASTHOP_WRITE_LANGUAGE=accept after a merge; the sum below must not grow otherwise).
";

type Counts = BTreeMap<String, usize>;

fn allowed_at() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("language.txt")
}

/// Reads lines of a count and a path; other lines are comments.
fn read(list: &str) -> Counts {
    let entry = |line: &str| {
        let (count, path) = line.trim_start().split_once(' ')?;
        Some((path.to_owned(), count.parse().ok()?))
    };
    list.lines().filter(|line| !line.starts_with('#')).filter_map(entry).collect()
}

fn write(counts: &Counts) -> String {
    let mut list = format!("{HEAD}# sum {}\n", counts.values().sum::<usize>());
    for (path, count) in counts {
        let _ = writeln!(list, "{count:4} {path}");
    }
    list
}

/// The rejected constructions of a text, with their lines.
fn rejected(text: &Text) -> Vec<String> {
    let hits = text.hits().into_iter();
    let hits = hits.map(|hit| (hit.line, &CONSTRUCTIONS[hit.construction]));
    hits.filter(|(_, construction)| construction.rejected)
        .map(|(line, c)| format!("{}:{line}: \"{}\": write {}", text.path, c.name, c.instead))
        .collect()
}

/// The entries of `found` that exceed `allowed`, and the names of files whose allowance is too large.
fn compare(allowed: &Counts, found: &Counts) -> (Vec<String>, Vec<String>) {
    let limit = |path: &str| allowed.get(path).copied().unwrap_or(0);
    let grown = found.iter().filter(|(path, count)| **count > limit(path));
    let slack = allowed.iter().filter(|(path, count)| found.get(*path).is_none_or(|n| n < *count));
    let names = |(path, _): (&String, &usize)| path.clone();
    (grown.map(names).collect(), slack.map(names).collect())
}

#[test]
fn rejected_constructions_become_fewer() {
    let mut texts = texts::comments();
    texts.extend(texts::messages());
    texts.extend(texts::others());
    texts.extend(texts::documents());
    // The list of constructions and its tests quote them.
    texts.retain(|text| !text.path.ends_with("language.rs"));
    let mut all: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for text in &texts {
        all.entry(text.path.as_str()).or_default().extend(rejected(text));
    }
    let found: Counts = all
        .iter()
        .filter(|(_, hits)| !hits.is_empty())
        .map(|(path, hits)| ((*path).to_owned(), hits.len()))
        .collect();
    let allowed = read(&fs::read_to_string(allowed_at()).unwrap_or_default());
    let (grown, slack) = compare(&allowed, &found);
    let mode = std::env::var(VARIABLE).unwrap_or_default();
    if mode == "accept" || (mode == "shrink" && grown.is_empty()) {
        fs::write(allowed_at(), write(&found)).expect("the list is written");
        return;
    }
    let mut message = String::new();
    for path in &grown {
        let limit = allowed.get(path).copied().unwrap_or(0);
        let hits = &all[path.as_str()];
        let _ = writeln!(message, "{path} has {}, allowed are {limit}:", hits.len());
        hits.iter().for_each(|hit| message += &format!("  {hit}\n"));
    }
    assert!(grown.is_empty(), "more constructions that are hard to read:\n{message}");
    assert!(
        slack.is_empty(),
        "the list allows more than these files have; run `{VARIABLE}=shrink {COMMAND}`: {slack:#?}"
    );
}

#[test]
fn function_names_are_plain() {
    let mut found = Vec::new();
    for text in texts::functions() {
        found.extend(rejected(&text));
        for line in &text.lines {
            let word = line.text.split(' ').find(|word| texts::NAME_WORDS.contains(word));
            found.extend(
                word.map(|word| format!("{}:{}: \"{word}\" in a name", text.path, line.number)),
            );
        }
    }
    assert!(found.is_empty(), "functions whose names are hard to read:\n{}", found.join("\n"));
}

#[test]
fn a_new_construction_and_a_loose_allowance_are_both_noticed() {
    let counts = |list: &str| read(list);
    let allowed = counts("# sum 3\n   2 a.rs\n   1 b.rs\n");
    assert_eq!(compare(&allowed, &allowed), (vec![], vec![]));
    assert_eq!(read(&write(&allowed)), allowed);
    let (grown, slack) = compare(&allowed, &counts("   3 a.rs\n   1 c.rs\n"));
    assert_eq!((grown, slack), (vec!["a.rs".into(), "c.rs".into()], vec!["b.rs".into()]));
}

#[test]
fn messages_are_sentences_in_strings_outside_tests() {
    let source = "/// told\nconst KEY: &str = \"told\"; // told\n\
        #[expect(lint, reason = \"no one is told\")]\n\
        fn f() { print!(\"a {told} b\nis told `told`\"); }\n\
        #[cfg(test)]\nmod tests { const A: &str = \"it is told\"; }";
    let hits =
        rejected(&Text { path: "a.rs".into(), lines: texts::messages::literals(source), vague: 0 });
    assert_eq!(hits.len(), 2, "{hits:?}");
    assert!(hits[0].starts_with("a.rs:3: ") && hits[1].starts_with("a.rs:5: "), "{hits:?}");
}

#[test]
fn comments_of_other_languages_are_found() {
    let read = |content, marks| {
        let lines = texts::messages::comments(content, marks);
        lines.iter().map(|line| (line.number, line.text.trim().to_owned())).collect::<Vec<_>>()
    };
    let found = |all: &[(usize, &str)]| {
        all.iter().map(|(number, text)| (*number, (*text).to_owned())).collect::<Vec<_>>()
    };
    let toml = "# one\nkey = \"#two\" # three\n";
    assert_eq!(read(toml, texts::messages::HASH), found(&[(1, "one"), (2, "three")]));
    let python = "def f():\n    \"\"\"One.\n\n    Two.\n    \"\"\"\n    told = 1\n";
    let lines = found(&[(2, "One."), (3, ""), (4, "Two."), (5, "\"\"\"")]);
    assert_eq!(read(python, texts::messages::PYTHON), lines);
    let script = "/** One. */\nlet told; // two\n/* three\n * four */\nlet x = 'https://told';\n";
    let lines = found(&[(1, "* One. */"), (2, "two"), (3, "three"), (4, "* four */")]);
    assert_eq!(read(script, texts::messages::SLASHES), lines);
}

#[test]
fn code_is_no_prose_and_prose_is_found() {
    let line = |text: &str| texts::Line { number: 7, text: text.to_owned() };
    let text = |lines: &[&str]| Text {
        path: "page.md".into(),
        lines: lines.iter().map(|text| line(text)).collect(),
        vague: 0,
    };
    let hits = rejected(&text(&["Whoever asks is told.", "It retells nothing besides."]));
    assert_eq!(hits.len(), 2, "{hits:?}");
    assert!(hits[0].starts_with("page.md:7: ") && hits[0].contains("report"), "{hits:?}");
}
