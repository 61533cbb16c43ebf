//! Commands in the documentation: lines in code blocks of README.md and of the book that begin with
//! `lasthop`, optionally after a prompt or `sudo`.

use std::fs;
use std::path::{Path, PathBuf};

/// A command on a page.
#[derive(Debug)]
pub struct DocCommand {
    /// The page, from the root of the repository.
    pub page: String,
    /// Its line number, from 1.
    pub line: usize,
    /// The command without prompt and comment.
    pub command: String,
}

pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).expect("the crate lies in crates/").to_owned()
}

/// All commands, page by page.
pub fn commands() -> Vec<DocCommand> {
    let mut pages = vec!["README.md".to_owned(), "CONTRIBUTING.md".to_owned()];
    let mut folders = vec!["docs".to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(root().join(&folder)).expect("the documentation can be read") {
            let entry = entry.expect("it can be read");
            let Ok(name) = entry.file_name().into_string() else { continue };
            let path = format!("{folder}/{name}");
            if entry.path().is_dir() {
                folders.push(path);
            } else if name.ends_with(".md") {
                pages.push(path);
            }
        }
    }
    pages.sort();
    pages.iter().flat_map(|page| of_page(page)).collect()
}

fn of_page(page: &str) -> Vec<DocCommand> {
    of_text(page, &fs::read_to_string(root().join(page)).expect("a page can be read"))
}

/// The commands in the code blocks of a text; `page` is its name.
pub fn of_text(page: &str, text: &str) -> Vec<DocCommand> {
    let (mut fenced, mut indented, mut blank) = (false, false, true);
    let mut found: Vec<DocCommand> = Vec::new();
    let mut goes_on = false;
    for (number, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
            (indented, goes_on) = (false, false);
            continue;
        }
        indented = line.starts_with("    ") && (indented || blank);
        blank = line.trim().is_empty();
        let part = without_comment(line.trim());
        if !(fenced || indented) {
            goes_on = false;
        } else if goes_on {
            let last = &mut found.last_mut().expect("it continues").command;
            goes_on = part.ends_with('\\');
            *last += &format!(" {}", part.trim_end_matches('\\').trim());
        } else if let Some(command) = command(part) {
            goes_on = part.ends_with('\\');
            let command = command.trim_end_matches('\\').trim().to_owned();
            found.push(DocCommand { page: page.to_owned(), line: number + 1, command });
        }
    }
    found
}

/// The command of a line, if it is one of lasthop.
fn command(line: &str) -> Option<&str> {
    let line = line.strip_prefix("$ ").unwrap_or(line);
    let bare = line.strip_prefix("sudo ").unwrap_or(line);
    bare.starts_with("lasthop ").then_some(line)
}

/// Removes a comment: a `#` after a blank, or text after two blanks, outside of quotes.
fn without_comment(line: &str) -> &str {
    let (mut quote, mut last) = (None, '\0');
    for (at, c) in line.char_indices() {
        match quote {
            Some(mark) if c == mark => quote = None,
            None if matches!(c, '\'' | '"') => quote = Some(c),
            None if matches!(c, '#' | ' ') && last == ' ' => return line[..at].trim_end(),
            _ => {}
        }
        last = c;
    }
    line
}
