//! The bounds of an analysis.

/// What an analysis may keep, and whom it believes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// Most connections; packets of later ones are counted in [`crate::Analysis::ignored_packets`].
    pub connections: usize,
    /// Most plot points for each direction.
    pub points: usize,
    /// Most losses, and most stalls, for each direction.
    pub losses: usize,
    /// Most plot points, samples, losses and stalls of all connections together. Beyond, the longest lists are shortened,
    /// and [`Config::points`] and [`Config::losses`] are lowered for what follows.
    pub listed: usize,
    /// Whether packets with wrong checksums are left out, as a receiver would. Off by default: a capture at a sender
    /// that leaves checksums to its hardware holds none that is right.
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
