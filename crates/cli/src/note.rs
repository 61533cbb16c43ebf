//! Verbosity of stderr: `-q` and `-v`.

use std::fmt::Display;
use std::sync::atomic::{AtomicU8, Ordering};

use crate::style;

const QUIET: u8 = 1;
const USUAL: u8 = 0;
const VERBOSE: u8 = 2;

static LEVEL: AtomicU8 = AtomicU8::new(USUAL);

/// Sets the level for the rest of the program.
pub fn set(quiet: bool, verbose: bool) {
    let level = if quiet { QUIET } else { [USUAL, VERBOSE][usize::from(verbose)] };
    LEVEL.store(level, Ordering::Relaxed);
}

/// Whether progress, warnings and notes are suppressed.
pub fn is_quiet() -> bool {
    LEVEL.load(Ordering::Relaxed) == QUIET
}

/// Whether `-v` is set.
pub fn is_verbose() -> bool {
    LEVEL.load(Ordering::Relaxed) == VERBOSE
}

/// Prints a line about the program's actions, with `-v`.
pub fn detail(text: impl FnOnce() -> String) {
    if is_verbose() {
        line(&text());
    }
}

fn line(text: &dyn Display) {
    eprint!("{}", style::stderr_wrapped(&format!("{} {text}\n", style::bold("lasthop:"))));
}
