//! Ctrl-C: the first one stops a long command after its present run, the second one ends the program
//! immediately.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::failure::Failure;

/// Exit code of an interrupted program, by the convention of shells.
pub const INTERRUPTED: u8 = 130;

/// A flag that is raised by Ctrl-C; clones share it.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Installs the handler; once per program.
    pub fn listen() -> Result<Stop, Failure> {
        let stop = Stop::default();
        let raised = stop.clone();
        ctrlc::set_handler(move || {
            if raised.0.swap(true, Ordering::Relaxed) {
                std::process::exit(INTERRUPTED.into());
            }
            eprintln!("stopping; finished work is kept (Ctrl-C again stops at once)");
        })
        .map_err(|error| Failure::input(format!("cannot listen for Ctrl-C: {error}"), ""))?;
        Ok(stop)
    }

    /// Whether to stop. Long loops check it between runs.
    pub fn requested(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clones_share_the_flag() {
        let stop = Stop::default();
        let clone = stop.clone();
        stop.0.store(true, Ordering::Relaxed);
        assert!(clone.requested());
    }
}
