//! Tahoe (west97 2.2.1): a detected loss sends the sender back to slow start from the lost segment.

use crate::event::Cause;
use crate::tcp::config::Variant;
use crate::tcp::word::Word;
use crate::units::Time;

use super::growth::Acked;
use super::recovery::{Progress, Recovery};
use super::{Core, Window};

/// The word.
pub const WORD: Word = Word {
    key: "tahoe",
    apply: |c| c.variant = Variant::Tahoe,
    what: "slow start and congestion avoidance; three duplicate ACKs retransmit at once, then slow start",
    source: "west97 2.2.1",
    tier: 1,
    worlds: crate::describe::BOTH,
    syntax: "host: tcp = \"*\"",
};

/// Tahoe's repair: never "in recovery", it starts over.
#[derive(Clone, Debug, Default)]
pub struct Tahoe {
    /// An ACK of this or more is for data first sent after the last loss. Segments that are sent again although they
    /// had arrived bring duplicate ACKs, which must not count as a new loss.
    recover: u64,
}

impl Recovery for Tahoe {
    fn active(&self) -> bool {
        false
    }
    fn may_enter(&self, w: &Window) -> bool {
        w.una >= self.recover
    }
    fn enter(&mut self, w: &mut Window, _: u32) {
        self.recover = w.max + 1;
        w.ssthresh = w.in_segments(w.ssthresh);
        w.cwnd = w.mss;
        w.nxt = w.una;
        w.again = Cause::FastRetransmit;
    }
    fn on_ack(&mut self, _: &mut Core, _: &Acked) -> Progress {
        Progress::Over
    }
    fn on_timeout(&mut self, _: Time, core: &mut Core) -> Option<u64> {
        self.recover = core.window.max + 1;
        None
    }
}
