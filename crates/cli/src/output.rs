//! Writing results: whole or not at all.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

pub use lasthop_batch::files::AtomicFile;

use crate::failure::Failure;
use crate::{Outcome, style};

/// Prints words to stdout, wrapped where a terminal is narrower.
pub fn print(text: &str) -> Result<(), Failure> {
    exact(&style::wrapped(text))
}

/// Prints to stdout as it is: what programs read, files, and what is to be copied. A closed pipe is reported as such and ends
/// the program quietly.
pub fn exact(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(Failure::Output)
}

/// Says what became of the runs of a command that somebody interrupted; `dir` is where they are kept, if they are.
pub fn interrupted(dir: Option<&Path>) -> Outcome {
    match dir {
        Some(dir) => eprintln!(
            "interrupted; what is finished is kept in {}: the same command goes on from there",
            dir.display()
        ),
        None => eprintln!(
            "interrupted; with `-o DIR` it would be kept, and the same command would go on"
        ),
    }
    Outcome::Interrupted
}

/// A word as a shell takes it.
pub fn quoted(word: impl AsRef<std::ffi::OsStr>) -> String {
    let word = word.as_ref().to_string_lossy();
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=,+%:@".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.into_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// Prints a value as JSON.
pub fn print_json(value: &impl serde::Serialize) -> Result<(), Failure> {
    exact(&json(value)?)
}

/// Makes sure that a directory for results is there and can be written to.
pub fn prepare(dir: &Path) -> Result<(), Failure> {
    let help = "choose a directory that you may write to, with `-o DIR`";
    fs::create_dir_all(dir).map_err(|error| Failure::file(dir, error, help))?;
    // A file that is never committed leaves nothing behind.
    AtomicFile::create(&dir.join("probe"))
        .map(drop)
        .map_err(|error| Failure::file(dir, error, help))
}

/// Writes a whole file.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let written = lasthop_batch::files::whole(path, bytes);
    written.map_err(|error| Failure::file(path, error, "is there room, and may you write there?"))
}

/// A value as JSON for a file or for stdout.
pub fn json(value: &impl serde::Serialize) -> Result<String, Failure> {
    let mut text = serde_json::to_string_pretty(value)
        .map_err(|error| Failure::Output(io::Error::other(error)))?;
    text.push('\n');
    Ok(text)
}

/// Rows of a name and a line about it.
pub fn two_columns<'a>(rows: impl Iterator<Item = (&'a str, &'a str)> + Clone) -> String {
    let width = rows.clone().map(|(name, _)| name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for (name, what) in rows {
        // Padded before it is painted: colours have no width.
        let name = style::heading(&format!("{name:<width$}"));
        text += &format!("{name}  {what}\n");
    }
    text
}
