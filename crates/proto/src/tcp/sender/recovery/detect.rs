//! Loss detection: decides from ACKs whether a segment is lost.

use crate::tcp::config::{TcpConfig, Variant};

use crate::tcp::sender::family::variants;

/// Evidence of a loss.
#[derive(Clone, Copy, Debug)]
pub struct Evidence {
    /// Consecutive duplicate ACKs.
    pub dupacks: u32,
    /// Selectively acknowledged bytes above the left edge.
    pub sacked: u64,
    /// Bytes that count as lost in the records of segments.
    pub lost: u64,
}

/// The loss detection of a recovery ([`Recovery::DETECTION`](super::Recovery::DETECTION)).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Detection {
    /// [`DupAcks`] with the configured threshold.
    DupAcks,
    /// [`SackedBytes`].
    SackedBytes,
    /// The first report above a hole, on paths without reordering.
    FirstReport,
    /// [`ByTime`].
    ByTime,
}

/// Decides whether a segment is lost.
pub trait Detect {
    /// Whether recovery is due.
    fn lost(&self, evidence: &Evidence) -> bool;

    /// Number of duplicate ACKs that show a loss; 0 if their number has no meaning.
    fn threshold(&self) -> u32;

    /// Whether it counts duplicate ACKs. Otherwise it uses records of all segments, which also determine round trips
    /// and retransmissions.
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

/// Counts duplicate ACKs, or the bytes that they report above the hole.
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

/// Uses the records of [`Rack`](crate::tcp::sender::systems::rack::Rack).
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

/// Number of duplicate ACKs that show a loss with `config`.
fn threshold(config: &TcpConfig) -> u32 {
    config.dupthresh.max(1)
}

variants! {
    /// The loss detection of a configured variant.
    #[derive(Clone, Copy, Debug)]
    Detector: Detect,
    /// The loss detection of `variant`, with the threshold of `config`.
    new(variant: Variant, config: &TcpConfig) by variant.detection();
    {
        DupAcks(DupAcks): Detection::DupAcks => DupAcks { threshold: threshold(config) },
        SackedBytes(SackedBytes): Detection::SackedBytes => {
            SackedBytes { threshold: threshold(config), mss: config.mss }
        },
        FirstReport(DupAcks): Detection::FirstReport => DupAcks { threshold: 1 },
        ByTime(ByTime): Detection::ByTime => ByTime,
    }
    by_ref {
        lost(evidence: &Evidence) -> bool;
        threshold() -> u32;
        counts() -> bool;
    }
    by_mut {}
}
