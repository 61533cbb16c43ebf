//! Loss detection: do these acknowledgements mean that something is lost?

use crate::tcp::config::{TcpConfig, Variant};

use super::family::variants;

/// What there is to judge by.
#[derive(Clone, Copy, Debug)]
pub struct Evidence {
    /// Duplicate ACKs in a row.
    pub dupacks: u32,
    /// Bytes above the left edge that have been selectively acknowledged.
    pub sacked: u64,
    /// Bytes that records of what is in flight show to be lost.
    pub lost: u64,
}

/// Decides whether something is lost.
pub trait Detect {
    /// Whether recovery is due.
    fn lost(&self, evidence: &Evidence) -> bool;

    /// How many duplicate ACKs it takes; 0 if their number says nothing.
    fn threshold(&self) -> u32;

    /// Whether it counts ACKs. Otherwise it judges by a record of each segment; then round trips are taken from the
    /// records, and they alone say what is sent again.
    fn counts(&self) -> bool {
        true
    }
}

/// Counts duplicate ACKs.
//= rfc5681#section-3.2: the third duplicate ACK
#[derive(Clone, Copy, Debug)]
pub struct DupAcks {
    threshold: u32,
}

impl Detect for DupAcks {
    fn lost(&self, evidence: &Evidence) -> bool {
        evidence.dupacks >= self.threshold
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
    fn lost(&self, evidence: &Evidence) -> bool {
        evidence.dupacks >= self.threshold
            || evidence.sacked > u64::from(self.threshold.saturating_sub(1)) * u64::from(self.mss)
    }
    fn threshold(&self) -> u32 {
        self.threshold
    }
}

/// Whether segments are lost, by the records of [`Rack`](super::rack::Rack).
#[derive(Clone, Copy, Debug)]
pub struct ByTime;

impl Detect for ByTime {
    fn lost(&self, evidence: &Evidence) -> bool {
        evidence.lost > 0
    }
    fn threshold(&self) -> u32 {
        0
    }
    fn counts(&self) -> bool {
        false
    }
}

/// How many duplicate ACKs `config` asks for.
fn threshold(config: &TcpConfig) -> u32 {
    config.dupthresh.max(1)
}

variants! {
    /// The loss detection of a configured variant.
    #[derive(Clone, Copy, Debug)]
    Detector: Detect,
    /// The loss detection of `variant`, with the threshold of `config`.
    new(variant: Variant, config: &TcpConfig) by variant;
    {
        SackedBytes(SackedBytes): Variant::Sack => SackedBytes { threshold: threshold(config), mss: config.mss },
        // Where nothing is reordered, the first report above a hole shows it.
        FirstReport(DupAcks): Variant::Smart | Variant::Snack => DupAcks { threshold: 1 },
        ByTime(ByTime): Variant::Rack => ByTime,
        DupAcks(DupAcks): _ => DupAcks { threshold: threshold(config) },
    }
    asks {
        lost(evidence: &Evidence) -> bool;
        threshold() -> u32;
        counts() -> bool;
    }
    tells {}
}
