//! Relative links name existing files and headings, every implemented system has a page, and every page is in
//! the book, in the folder of its kind, and begins with its readers and its question.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use lasthop_papers::systems::{Status, systems};

fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).expect("the crate lies in crates/").to_owned()
}

/// The Markdown files of the root and of `docs/`.
fn documents() -> Vec<PathBuf> {
    let mut open = vec![root().join("docs")];
    let mut found: Vec<PathBuf> = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "RELEASING.md"]
        .iter()
        .map(|name| root().join(name))
        .collect();
    while let Some(directory) = open.pop() {
        let entries = fs::read_dir(&directory).expect("docs/ can be read");
        for path in entries.map(|entry| entry.expect("docs/ can be read").path()) {
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// A document without code blocks and code spans.
fn prose(text: &str) -> String {
    let mut fenced = false;
    let mut prose = String::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if !fenced {
            let outside = line.split('`').step_by(2);
            prose.extend(outside);
            prose.push('\n');
        }
    }
    prose
}

/// Targets of inline links and pictures.
fn links(text: &str) -> Vec<String> {
    prose(text)
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split_once(')'))
        .map(|(target, _)| target.split_whitespace().next().unwrap_or_default().to_owned())
        .collect()
}

/// The anchors of a document's headings, as GitHub makes them.
fn anchors(text: &str) -> Vec<String> {
    let headings = text.lines().filter(|line| line.starts_with('#'));
    let anchor = |heading: &str| {
        let title = heading.trim_start_matches('#').trim().to_lowercase();
        let characters =
            title.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        characters.map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    headings.map(anchor).collect()
}

#[test]
fn every_relative_link_has_an_existing_target() {
    let mut broken = Vec::new();
    for document in documents() {
        let text = fs::read_to_string(&document).unwrap_or_else(|e| panic!("{document:?}: {e}"));
        for link in links(&text) {
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            let (file, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let target = match file {
                "" => document.clone(),
                file => document.parent().expect("a file lies in a directory").join(file),
            };
            let found = match (target.exists(), anchor) {
                (exists, "") => exists,
                (false, _) => false,
                (true, anchor) => {
                    let text = fs::read_to_string(&target).unwrap_or_default();
                    anchors(&text).iter().any(|known| known == anchor)
                }
            };
            if !found {
                broken.push(format!("{}: {link}", document.display()));
            }
        }
    }
    assert!(broken.is_empty(), "links that lead nowhere: {broken:#?}");
}

#[test]
fn every_system_that_runs_has_its_page() {
    let pages = root().join("docs/reference/systems");
    let index = fs::read_to_string(pages.join("README.md")).expect("there is an index");
    let papers = systems().into_iter().filter(|system| system.tier > 0);
    for system in papers.filter(|system| system.status != Status::Planned) {
        let name = format!("{}.md", system.key);
        assert!(pages.join(&name).exists(), "`{}` has no page {name}", system.key);
        assert!(
            index.contains(&format!("({name})")),
            "docs/reference/systems/README.md omits {name}"
        );
    }
}

/// Whether a page begins with a title and one sentence of the form "For READERS: QUESTION".
fn names_readers_first(text: &str) -> bool {
    let mut paragraphs = text.split("\n\n");
    let title = paragraphs.next().unwrap_or_default();
    let sentence = paragraphs.next().unwrap_or_default().replace('\n', " ");
    title.starts_with("# ") && sentence.starts_with("For ") && sentence.contains(": ")
}

#[test]
fn every_page_has_a_kind_and_names_its_readers_first() {
    let docs = root().join("docs");
    let kinds = ["tutorial", "how-to", "reference", "explanation", "decisions"];
    let mut wrong = Vec::new();
    for page in documents().iter().filter(|page| page.starts_with(&docs)) {
        let path = page.strip_prefix(&docs).expect("it is in docs/");
        if ["README.md", "SUMMARY.md"].iter().any(|index| path == Path::new(index)) {
            continue;
        }
        let folder = path.components().next().map(|folder| folder.as_os_str());
        match kinds.iter().find(|kind| folder == Some(OsStr::new(kind))) {
            None => wrong.push(format!("{}: its folder is of no kind", path.display())),
            // Decision records begin with their context.
            Some(&"decisions") => {}
            Some(_) => {
                let text = fs::read_to_string(page).unwrap_or_else(|e| panic!("{page:?}: {e}"));
                if !names_readers_first(&text) {
                    wrong.push(format!("{}: begin with \"For READERS: QUESTION\"", path.display()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_page_without_readers_is_noticed() {
    assert!(names_readers_first("# Queues\n\nFor users of queues: what\nfits.\n\nText."));
    assert!(!names_readers_first("# Queues\n\nA queue stores packets.\n\nFor users: all.\n"));
    assert!(!names_readers_first("For users: what fits.\n\n# Queues\n"));
}

/// `make book` omits pages that `docs/SUMMARY.md` does not list.
#[test]
fn every_page_is_listed_in_the_book_once() {
    let summary = root().join("docs/SUMMARY.md");
    let text = fs::read_to_string(&summary).expect("there is a summary");
    let mut chapters = links(&text);
    chapters.retain(|target| !target.is_empty());
    let mut named: Vec<PathBuf> = chapters
        .iter()
        .map(|target| root().join("docs").join(target).canonicalize().expect("it exists"))
        .collect();
    named.sort();
    let mut pages: Vec<PathBuf> = documents()
        .iter()
        .filter(|page| **page != summary)
        .map(|page| page.canonicalize().expect("it exists"))
        .collect();
    pages.sort();
    let missing: Vec<_> = pages.iter().filter(|page| !named.contains(page)).collect();
    assert!(missing.is_empty(), "docs/SUMMARY.md leaves out {missing:#?}");
    assert_eq!(named, pages, "docs/SUMMARY.md names a page twice");
}
