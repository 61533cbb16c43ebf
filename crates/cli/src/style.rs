//! Colours for terminals, unless `NO_COLOR` is set.

use std::io::IsTerminal as _;
use std::sync::atomic::{AtomicU8, Ordering};

use lasthop_report::table::Look;
use lasthop_report::wrap::{columns, wrap};

/// When to use colours.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Color {
    /// On terminals, unless `NO_COLOR` is set
    #[default]
    Auto,
    /// In files and pipes too
    Always,
    /// Nowhere
    Never,
}

impl Color {
    /// The choice of this name.
    pub fn of(word: &str) -> Option<Color> {
        <Color as clap::ValueEnum>::from_str(word, false).ok()
    }
}

static CHOSEN: AtomicU8 = AtomicU8::new(Color::Auto as u8);

/// Sets when to use colours, for the rest of the program.
pub fn choose(color: Color) {
    CHOSEN.store(color as u8, Ordering::Relaxed);
}

fn is_colourful(is_terminal: bool) -> bool {
    let chosen = CHOSEN.load(Ordering::Relaxed);
    if chosen != Color::Auto as u8 {
        return chosen == Color::Always as u8;
    }
    is_terminal
        && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
        && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// Whether output to stderr may have colours.
pub fn stderr_is_colourful() -> bool {
    is_colourful(std::io::stderr().is_terminal())
}

/// Whether output to stdout may have colours.
pub fn stdout_is_colourful() -> bool {
    is_colourful(std::io::stdout().is_terminal())
}

/// Columns of the terminal on stderr. Files and pipes have a fixed width, so their content is the same for
/// all users.
pub fn stderr_width() -> usize {
    let terminal = console::Term::stderr();
    let columns = terminal.size_checked().map(|(_, columns)| usize::from(columns));
    columns.unwrap_or(100).clamp(40, 200)
}

/// Layout of tables on stdout.
pub fn look() -> Look {
    look_of(&console::Term::stdout())
}

/// Layout of tables on stderr.
pub fn stderr_look() -> Look {
    look_of(&console::Term::stderr())
}

/// Columns of a terminal that does not report its size, such as a serial console.
const USUAL_COLUMNS: u16 = 80;

fn look_of(terminal: &console::Term) -> Look {
    let columns = terminal.size_checked().map_or(USUAL_COLUMNS, |(_, columns)| columns);
    if terminal.is_term() { Look::Terminal(columns) } else { Look::Plain }
}

/// Columns of the terminal on stdout, at least 20 and at most `usual`; `usual` without a terminal.
pub fn room(usual: usize) -> usize {
    match look() {
        Look::Terminal(columns) => usual.min(usize::from(columns).max(20)),
        Look::Plain => usual,
    }
}

/// Text for stdout, wrapped at words to a terminal's width. Unchanged in pipes and files.
pub fn wrapped(text: &str) -> String {
    fitted(text, look())
}

/// A paragraph with lines of about 100 columns, refilled for a narrower terminal.
pub fn paragraph(text: &str) -> String {
    match look() {
        Look::Terminal(width) if text.lines().any(|line| columns(line) > width.into()) => {
            wrap(&text.replace('\n', " "), width.into())
        }
        _ => text.to_owned(),
    }
}

/// [`wrapped`] for stderr.
pub fn stderr_wrapped(text: &str) -> String {
    fitted(text, stderr_look())
}

fn fitted(text: &str, look: Look) -> String {
    match look {
        Look::Terminal(width) => wrap(text, width.into()),
        Look::Plain => text.to_owned(),
    }
}

/// Text with a colour code, if `colourful`.
pub fn painted(text: &str, code: &str, colourful: bool) -> String {
    if colourful { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
}

/// The word `error:` on stderr.
pub fn error(text: &str) -> String {
    painted(text, "1;31", stderr_is_colourful())
}

/// Bold on stderr.
pub fn bold(text: &str) -> String {
    painted(text, "1", stderr_is_colourful())
}

/// A heading on stdout.
pub fn heading(text: &str) -> String {
    painted(text, "1", stdout_is_colourful())
}

/// A side remark on stdout.
pub fn dim(text: &str) -> String {
    painted(text, "2", stdout_is_colourful())
}

/// Something good on stdout.
pub fn good(text: &str) -> String {
    painted(text, "32", stdout_is_colourful())
}

/// A warning on stdout.
pub fn bad(text: &str) -> String {
    painted(text, "33", stdout_is_colourful())
}
