//! Results of commands, which determine the exit code.

/// Result of a successful command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// Success.
    Done,
    /// Success with a negative result: a claim does not hold, or a requirement is missing.
    No,
    /// Exit code of the started program, or of the failed start, by the convention of shells.
    #[cfg(live)]
    Exit(u8),
    /// Interrupted before the end; finished work is stored.
    Interrupted,
}
