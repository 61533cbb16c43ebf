//! A progress bar on stderr, if that is a terminal.

use std::io::IsTerminal as _;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::note;

/// Progress of a sweep; clones share the bar, also across threads.
#[derive(Clone, Debug)]
pub struct Progress(ProgressBar);

impl Progress {
    /// A bar for `total` runs. Hidden if stderr is no terminal, or the output is JSON.
    pub fn new(total: u64, json: bool) -> Progress {
        if json || note::is_quiet() || !std::io::stderr().is_terminal() {
            return Progress(ProgressBar::hidden());
        }
        let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr());
        let style = ProgressStyle::with_template("{bar:30} {pos}/{len}, {eta} left {msg}");
        Progress(match style {
            Ok(style) => bar.with_style(style),
            Err(_) => bar,
        })
    }

    /// A bar for work with parts of different cost; `total` is the total cost.
    pub fn of_work(total: u64, json: bool) -> Progress {
        let bar = Progress::new(total, json);
        if let Ok(style) = ProgressStyle::with_template("{bar:30} {percent} %, {eta} left, {msg}") {
            bar.0.set_style(style);
        }
        bar
    }

    /// A bar for runs of a sweep, with their rate per second.
    pub fn of_runs(total: u64, json: bool) -> Progress {
        let bar = Progress::new(total, json);
        let template = "{bar:30} {pos}/{len} runs, {per_sec}, {eta} left";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.0.set_style(style);
        }
        bar
    }

    /// Shows `done` of `of` finished.
    pub fn at(&self, done: u64, of: u64) {
        if self.0.length() != Some(of) {
            self.0.set_length(of);
        }
        self.0.set_position(done);
    }

    /// Counts more finished runs.
    pub fn advance(&self, count: u64) {
        self.0.inc(count);
    }

    /// Counts one finished run; `cell` is the present cell.
    pub fn step(&self, cell: &str) {
        self.0.set_message(cell.to_owned());
        self.0.inc(1);
    }

    /// Shows the present task, without a step.
    pub fn show(&self, task: String) {
        self.0.set_message(task);
    }

    /// Hides the bar while `print` writes to the terminal.
    pub fn suspend<T>(&self, print: impl FnOnce() -> T) -> T {
        self.0.suspend(print)
    }

    /// Sets the number of runs that earlier programs finished.
    pub fn begin_at(&self, done: u64) {
        self.0.set_position(done);
        self.0.reset_eta();
    }

    /// Restarts the bar with `total` steps of `unit`.
    pub fn restart(&self, total: u64, unit: &str) {
        self.0.set_length(total);
        self.0.set_position(0);
        self.0.reset_eta();
        self.0.set_message(unit.to_owned());
    }

    /// Removes the bar.
    pub fn finish(&self) {
        self.0.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_terminal_the_bar_is_silent() {
        let progress = Progress::new(2, true);
        progress.step("agent=snoop");
        assert_eq!(progress.0.position(), 1);
        assert!(progress.0.is_hidden());
        progress.finish();
    }
}
