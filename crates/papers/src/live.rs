//! Measurements on the machine at hand. This crate has no testbed: the program passes one in.

use lasthop_observe::cpu_time::Measurement;

/// Segment sizes at which the kernel's TCP is measured: those of agarwal00, of Ethernet, and of frames of 9000 bytes.
pub const SIZES: [u16; 5] = [500, 1000, 1460, 2296, 8960];

/// Why there is no measurement.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NoMeasurement {
    /// The user requested a stop.
    Interrupted,
    /// A testbed is impossible here, with the reason.
    Impossible(String),
}

/// Measurements on this machine's kernel.
pub trait Live {
    /// CPU time of the kernel's TCP: `rounds` transfers of `bytes` bytes for each case of the segment sizes `sizes`.
    ///
    /// # Errors
    ///
    /// The measurement was stopped, or is impossible here.
    fn cpu(&self, sizes: &[u16], bytes: u64, rounds: u32) -> Result<Measurement, NoMeasurement>;
}
