//! Comments that cite a specification or a paper name a section that exists. `sources.toml` lists them.

use std::fs;
use std::path::{Path, PathBuf};

use toml::Table;

/// Directory of the code.
fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn sources() -> Table {
    include_str!("../sources.toml").parse().expect("sources.toml is TOML")
}

/// The Rust files in a directory and below it.
fn rust_files(directory: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    for path in entries.map(|entry| entry.expect("the code can be read").path()) {
        if path.is_dir() {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// Every citation in `src` and `tests` of the crates: the text after `//=`, and its location.
fn citations() -> Vec<(String, String)> {
    let mut files = Vec::new();
    for entry in fs::read_dir(crates()).expect("the crates can be read") {
        let member = entry.expect("the crates can be read").path();
        rust_files(&member.join("src"), &mut files);
        rust_files(&member.join("tests"), &mut files);
    }
    let mut found = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).unwrap_or_else(|e| panic!("{file:?}: {e}"));
        for (at, line) in text.lines().enumerate() {
            if let Some(rest) = line.trim_start().strip_prefix("//=") {
                found.push((rest.to_owned(), format!("{}:{}", file.display(), at + 1)));
            }
        }
    }
    found
}

/// The key of the source that `rest`, the text after `//=`, cites; or the fault.
fn check<'a>(rest: &'a str, sources: &Table) -> Result<&'a str, String> {
    let cited = rest.strip_prefix(' ').ok_or("a space follows `//=`")?;
    let cited = match cited.split_once(": ") {
        Some((_, demand)) if demand.trim() != demand || demand.is_empty() => {
            return Err("one space precedes the requirement, none follows it".to_owned());
        }
        Some((cited, _)) => cited,
        None => cited,
    };
    let (key, anchor) = cited.split_once('#').map_or((cited, None), |(key, a)| (key, Some(a)));
    let source = sources.get(key).ok_or_else(|| format!("sources.toml has no `{key}`"))?;
    let sections = source.get("sections").and_then(|sections| sections.as_table());
    let numbered = key.starts_with("rfc") || key.starts_with("draft-");
    let section = match anchor {
        Some(anchor) if numbered => Some(anchor.strip_prefix("section-").ok_or("`#section-N`")?),
        anchor => anchor,
    };
    match (sections, section) {
        (None, None) => Ok(key),
        (Some(_), None) => Err(format!("which section of {key}?")),
        (_, Some(section)) => match sections.and_then(|sections| sections.get(section)) {
            Some(_) => Ok(key),
            None => Err(format!("sources.toml has no section {section} of {key}")),
        },
    }
}

#[test]
fn every_citation_names_a_section_that_exists() {
    let (sources, citations) = (sources(), citations());
    let wrong: Vec<String> = citations
        .iter()
        .filter_map(|(rest, at)| check(rest, &sources).err().map(|why| format!("{at}: {why}")))
        .collect();
    assert!(wrong.is_empty(), "citations that lead nowhere: {wrong:#?}");
    for key in sources.keys() {
        let cited = citations.iter().any(|(rest, _)| check(rest, &sources) == Ok(key));
        assert!(cited, "nothing cites `{key}`");
    }
}

#[test]
fn every_source_has_a_title_and_a_publication() {
    for (key, source) in sources() {
        assert!(source.get("title").is_some(), "{key} has no title");
        let place = source.get("published").is_some() || key.starts_with("rfc");
        assert!(place, "{key} does not say where it is published");
    }
}

#[test]
fn only_valid_citations_are_accepted() {
    let sources = sources();
    for good in [" rfc768", " rfc6298#section-2.3", " west97#3.3: once a round trip"] {
        assert!(check(good, &sources).is_ok(), "{good}");
    }
    for bad in [
        "rfc768",
        " rfc768#section-1",
        " rfc6298",
        " rfc6298#2.3",
        " rfc6298#section-2.9",
        " rfc6298#section-5.2 and 5.3",
        " west97#section-3.3",
        " west97#3.3:",
        " west97#3.3:  two spaces",
        " nobody99#1: a source that is not listed",
    ] {
        assert!(check(bad, &sources).is_err(), "{bad}");
    }
}
