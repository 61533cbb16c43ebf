//! Failures of commands and their output.

use std::io;
use std::path::{Path, PathBuf};

use lasthop_scenario::files::located;
use lasthop_scenario::synonyms::meaning;
use lasthop_scenario::{Argument, Diagnostic};

use crate::snippet::{Severity, Snippet};
use crate::{format, output, style};

/// Failure of a command. The exit code is 2, except for a fault of lasthop itself ([`FAULT`]).
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// A scenario is wrong; printed with the line.
    #[error("{0}")]
    Scenario(Box<Located>),
    /// An argument is wrong.
    #[error("{message}")]
    Input {
        /// The problem.
        message: String,
        /// The remedy.
        help: String,
    },
    /// The command line is wrong.
    #[error("{message}")]
    Usage {
        /// The command, such as `lasthop trace show`.
        command: String,
        /// The option or word; empty if one is missing.
        argument: String,
        /// The problem.
        message: String,
        /// The remedy.
        help: String,
    },
    /// A file cannot be read or written.
    #[error("{}: {}", path.display(), file_error(error))]
    File {
        /// Which file.
        path: PathBuf,
        /// Error of the system.
        error: io::Error,
        /// The remedy.
        help: String,
    },
    /// The standard output is closed or full.
    #[error("cannot write to the standard output: {}", file_error(.0))]
    Output(io::Error),
    /// Simulated time stopped, which is always a fault of lasthop. One report line per run.
    #[error("simulated time stood still, a fault of lasthop; please report this:\n  {}", .0.join("\n  "))]
    Stuck(Vec<String>),
}

/// Remedy for a full or closed standard output.
const OUTPUT_REMEDY: &str =
    "is there room where it is redirected to, and does the reader still run?";

/// The exit code after a fault of lasthop (`EX_SOFTWARE` of sysexits.h).
pub const FAULT: u8 = 70;

impl Failure {
    /// The exit code.
    pub fn code(&self) -> u8 {
        if matches!(self, Failure::Stuck(_)) { FAULT } else { 2 }
    }

    /// Fails if simulated time stopped in any of these runs.
    pub fn if_stuck(runs: Vec<String>) -> Result<(), Failure> {
        if runs.is_empty() { Ok(()) } else { Err(Failure::Stuck(runs)) }
    }

    /// A wrong argument.
    pub fn input(message: impl Into<String>, help: impl Into<String>) -> Failure {
        Failure::Input { message: without_number(message.into()), help: help.into() }
    }

    /// A file that cannot be read or written.
    pub fn file(path: &Path, error: io::Error, help: impl Into<String>) -> Failure {
        let help = help.into();
        let help = match error.kind() {
            io::ErrorKind::NotFound => match instead_of(path) {
                Some(guess) if guess.ends_with('?') => format!("{guess} {help}"),
                Some(guess) => format!("{guess}; {help}"),
                None => help,
            },
            _ => help,
        };
        Failure::File { path: path.to_owned(), error, help }
    }

    /// Prints the failure on stderr.
    pub fn show(&self, json: bool) {
        if json {
            let line = format::ERROR.line(&serde_json::json!({ "error": self.json() }));
            eprint!("{}", output::for_here_in_json(&line));
            return;
        }
        let help = match self {
            Failure::Input { help, .. }
            | Failure::Usage { help, .. }
            | Failure::File { help, .. } => help,
            Failure::Output(_) => OUTPUT_REMEDY,
            Failure::Scenario(_) | Failure::Stuck(_) => "",
        };
        match self {
            Failure::Scenario(located) => eprint!("{}", located.rendered(Severity::Error)),
            _ if !help.is_empty() => {
                let text = format!(
                    "{} {self}\n  {} {help}\n",
                    style::error("error:"),
                    style::bold("help:")
                );
                eprint!("{}", style::stderr_wrapped(&output::for_here(&text)));
            }
            _ => {
                let text = format!("{} {self}\n", style::error("error:"));
                eprint!("{}", style::stderr_wrapped(&output::for_here(&text)));
            }
        }
    }

    fn json(&self) -> serde_json::Value {
        match self {
            Failure::Scenario(located) => located.json(),
            Failure::Input { message, help } => {
                serde_json::json!({ "code": "bad-input", "message": message, "help": help })
            }
            Failure::Usage { command, argument, message, help } => serde_json::json!({
                "code": "usage", "command": command, "argument": argument, "message": message, "help": help,
            }),
            Failure::File { path, help, .. } => serde_json::json!({
                "code": "file", "message": self.to_string(), "file": path.display().to_string(), "help": help,
            }),
            Failure::Output(_) => serde_json::json!({
                "code": "output", "message": self.to_string(), "help": OUTPUT_REMEDY,
            }),
            Failure::Stuck(runs) => {
                serde_json::json!({ "code": "stuck", "message": self.to_string(), "runs": runs })
            }
        }
    }
}

/// The system's message about a file, without its number.
pub fn file_error(error: &io::Error) -> String {
    use io::ErrorKind as Kind;
    match error.kind() {
        // Errors of this program have no kind with more detail.
        _ if error.get_ref().is_some() => error.to_string(),
        Kind::NotFound => "there is no such file".to_owned(),
        Kind::PermissionDenied => "permission denied".to_owned(),
        Kind::IsADirectory => "this is a directory".to_owned(),
        Kind::NotADirectory => "a part of the path is not a directory".to_owned(),
        Kind::AlreadyExists => "it is there already".to_owned(),
        Kind::StorageFull => "the disk is full".to_owned(),
        Kind::ReadOnlyFilesystem => "the file system is read-only".to_owned(),
        Kind::ConnectionRefused => "nothing listens there".to_owned(),
        Kind::InvalidData => "it is not text in UTF-8".to_owned(),
        _ => without_number(error.to_string()),
    }
}

/// A message without the numbers of the system's errors.
fn without_number(message: String) -> String {
    let mut parts = message.split(" (os error ");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + part.split_once(')').map_or(part, |(_, rest)| rest))
}

/// A suggestion in place of a file that does not exist: how to get an address of the web, or a similar name in the
/// same directory.
pub fn instead_of(path: &Path) -> Option<String> {
    const MOST: usize = 1000;
    if path.exists() {
        return None;
    }
    let word = path.to_string_lossy();
    if word.starts_with("http://") || word.starts_with("https://") {
        return Some(format!("download it first, `curl -LO {word}`"));
    }
    let wanted = path.file_name()?.to_string_lossy().trim().to_lowercase();
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let entries = std::fs::read_dir(parent.unwrap_or(Path::new("."))).ok()?;
    let names = entries.take(MOST).filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let names: Vec<String> = names.collect();
    let lower: Vec<String> = names.iter().map(|name| name.to_lowercase()).collect();
    let candidates: Vec<&str> = lower.iter().map(String::as_str).collect();
    // Whole stems: `out` is not `cut`.
    let near = meaning(&wanted, &[], &candidates).filter(|_| wanted.len() > 4)?;
    let name = &names[lower.iter().position(|name| name == near)?];
    let near = parent.map_or(PathBuf::from(name), |parent| parent.join(name));
    Some(format!("did you mean `{}`?", near.display()))
}

impl From<lasthop_study::Error> for Failure {
    fn from(error: lasthop_study::Error) -> Failure {
        match error {
            lasthop_study::Error::Input { message, help } => Failure::input(message, help),
            lasthop_study::Error::Scenario { origin, text, arguments, error } => {
                Failure::Scenario(Box::new(Located::new(*error.0, &origin, &text, &arguments)))
            }
        }
    }
}

impl From<lasthop_batch::Error> for Failure {
    fn from(error: lasthop_batch::Error) -> Failure {
        match error {
            lasthop_batch::Error::Study(error) => error.into(),
            lasthop_batch::Error::Scenario(error) => {
                Failure::input(error.message.clone(), error.help.clone())
            }
            lasthop_batch::Error::Input { message, help } => Failure::input(message, help),
            lasthop_batch::Error::File { path, error, help } => Failure::File { path, error, help },
        }
    }
}

#[cfg(live)]
impl From<lasthop_live::testbed::Error> for Failure {
    fn from(error: lasthop_live::testbed::Error) -> Failure {
        Failure::input(error.message, error.help)
    }
}

/// A diagnostic with the text that it refers to.
#[derive(Debug)]
pub struct Located {
    diagnostic: Diagnostic,
    /// File name, or the option for an argument.
    name: String,
    text: String,
}

impl Located {
    /// Finds the text that a diagnostic refers to: the file, a file that it references, or an argument.
    pub fn new(diagnostic: Diagnostic, file: &str, text: &str, arguments: &[Argument]) -> Located {
        let (name, text) = located(&diagnostic.at, file, text, arguments);
        Located { diagnostic, name, text }
    }

    /// The diagnostic with a snippet of the text, for a person.
    pub fn rendered(&self, severity: Severity) -> String {
        let Diagnostic { message, at, label, help, .. } = &self.diagnostic;
        let snippet = Snippet {
            severity,
            message,
            name: &self.name,
            text: &self.text,
            position: at.line_column(&self.text),
            span: self.span(),
            label,
            help,
        };
        snippet.drawn(style::stderr_width(), style::stderr_is_colourful())
    }

    /// The diagnostic for a program.
    pub fn json(&self) -> serde_json::Value {
        let Diagnostic { code, message, key, at, label, help } = &self.diagnostic;
        let (line, column) = at.line_column(&self.text);
        serde_json::json!({
            "code": code.to_string(), "message": message, "key": key, "file": self.name,
            "line": line, "column": column, "span": [at.span.start, at.span.end],
            "label": label, "help": help,
        })
    }

    /// The span, limited to its first line (a table's span is the whole table) and to the text.
    fn span(&self) -> (usize, usize) {
        let span = &self.diagnostic.at.span;
        let start = span.start.min(self.text.len());
        let end = span.end.clamp(start, self.text.len());
        let first_line = self.text.as_bytes()[start..end].iter().position(|byte| *byte == b'\n');
        (start, first_line.unwrap_or(end - start))
    }
}

impl std::fmt::Display for Located {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.diagnostic.message)
    }
}
