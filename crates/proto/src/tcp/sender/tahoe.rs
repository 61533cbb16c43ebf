//! Tahoe (west97 2.2.1): a detected loss sends the sender back to slow start from the lost segment.

use crate::event::Cause;

use super::Window;
use super::recovery::{Progress, Recovery};

/// Tahoe's repair: never "in recovery", it starts over.
#[derive(Clone, Debug, Default)]
pub struct Tahoe {
    /// An ACK of this or more is for data first sent after the last loss. Segments that are sent again although they had
    /// arrived bring duplicate ACKs, which must not count as a new loss.
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
        w.cwnd = w.mss;
        w.nxt = w.una;
        w.again = Cause::FastRetransmit;
    }
    fn on_dup_ack(&mut self, _: &mut Window) {}
    fn on_ack(&mut self, _: &mut Window, _: u32) -> Progress {
        Progress::Over
    }
    fn on_timeout(&mut self, w: &mut Window) {
        self.recover = w.max + 1;
    }
}
