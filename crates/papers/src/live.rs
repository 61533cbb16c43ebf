//! What experiments ask of the machine that they run on. This crate knows nothing of testbeds: the program hands one
//! in.

use lasthop_trace::cpu_time::Measurement;

/// Segment sizes at which the kernel's TCP is measured: those of agarwal00, of Ethernet, and of frames of 9000 bytes.
pub const SIZES: [u16; 5] = [500, 1000, 1460, 2296, 8960];

/// Why there is no measurement.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Unmeasured {
    /// Somebody asked to stop.
    Interrupted,
    /// This machine or its user cannot have a testbed; the words say what forbids it.
    Impossible(String),
}

/// What measures on this machine's own kernel.
pub trait Live {
    /// CPU time of the kernel's TCP: `rounds` transfers of `bytes` bytes for each case of the segment sizes `sizes`.
    ///
    /// # Errors
    ///
    /// When it was stopped, or cannot be measured here.
    fn cpu(&self, sizes: &[u16], bytes: u64, rounds: u32) -> Result<Measurement, Unmeasured>;
}
