//! Loss detection: do these acknowledgements mean that something is lost?

use crate::tcp::config::{TcpConfig, Variant};

/// Decides whether the first unacknowledged segment is lost.
pub trait Detect {
    /// `dupacks` duplicate ACKs have come in a row; `sacked` bytes above the left edge have been
    /// selectively acknowledged.
    fn lost(&self, dupacks: u32, sacked: u64) -> bool;

    /// How many duplicate ACKs it takes.
    fn threshold(&self) -> u32;
}

/// Counts duplicate ACKs.
//= rfc5681#section-3.2: the third duplicate ACK
#[derive(Clone, Copy, Debug)]
pub struct DupAcks {
    threshold: u32,
}

impl Detect for DupAcks {
    fn lost(&self, dupacks: u32, _: u64) -> bool {
        dupacks >= self.threshold
    }
    fn threshold(&self) -> u32 {
        self.threshold
    }
}

/// Counts duplicate ACKs or the bytes that they report above the hole.
//= rfc6675#section-4: more than (DupThresh - 1) * SMSS bytes above it have been SACKed
#[derive(Clone, Copy, Debug)]
pub struct SackedBytes {
    threshold: u32,
    mss: u32,
}

impl Detect for SackedBytes {
    fn lost(&self, dupacks: u32, sacked: u64) -> bool {
        dupacks >= self.threshold
            || sacked > u64::from(self.threshold.saturating_sub(1)) * u64::from(self.mss)
    }
    fn threshold(&self) -> u32 {
        self.threshold
    }
}

/// The detector of a configured variant.
#[derive(Clone, Copy, Debug)]
pub enum Detector {
    /// For senders without selective acknowledgements.
    DupAcks(DupAcks),
    /// For the `sack` sender.
    SackedBytes(SackedBytes),
}

impl Detector {
    /// The detector of `variant` with the threshold of `config`.
    pub fn new(variant: Variant, config: &TcpConfig) -> Detector {
        let threshold = config.dupthresh.max(1);
        match variant {
            Variant::Sack => Detector::SackedBytes(SackedBytes { threshold, mss: config.mss }),
            // Where nothing is reordered, the first report above a hole shows it.
            Variant::Smart | Variant::Snack => Detector::DupAcks(DupAcks { threshold: 1 }),
            _ => Detector::DupAcks(DupAcks { threshold }),
        }
    }
}

impl Detect for Detector {
    fn lost(&self, dupacks: u32, sacked: u64) -> bool {
        match self {
            Detector::DupAcks(d) => d.lost(dupacks, sacked),
            Detector::SackedBytes(d) => d.lost(dupacks, sacked),
        }
    }
    fn threshold(&self) -> u32 {
        match self {
            Detector::DupAcks(d) => d.threshold(),
            Detector::SackedBytes(d) => d.threshold(),
        }
    }
}
