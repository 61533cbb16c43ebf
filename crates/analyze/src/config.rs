//! Configuration of an analysis.

/// Limits of the memory of an analysis, and the verification of packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// Maximum number of connections; packets of later ones are counted in [`crate::Analysis::ignored_packets`].
    pub connections: usize,
    /// Maximum number of plot points for each direction.
    pub points: usize,
    /// Maximum number of losses, and of stalls, for each direction.
    pub losses: usize,
    /// Maximum number of plot points, samples, losses and stalls of all connections. Beyond it the longest lists are
    /// shortened, and [`Config::points`] and [`Config::losses`] are reduced for the rest of the capture.
    pub listed: usize,
    /// Whether packets with wrong checksums are ignored, as by a receiver. Off by default: in a capture at a sender
    /// with checksum offload all checksums are wrong.
    pub verify: bool,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            connections: 65_536,
            points: 100_000,
            losses: 10_000,
            listed: 4 << 20,
            verify: false,
        }
    }
}
