//! Tahoe (west97 2.2.1): a detected loss sends the sender back to slow start from the lost segment.

use crate::event::Cause;
use crate::tcp::config::{TcpConfig, Variant};
use crate::tcp::keyword::{Deployment, Keyword};
use crate::units::Time;

use crate::tcp::sender::congestion_control::Acked;
use crate::tcp::sender::recovery::{Progress, Recovery};
use crate::tcp::sender::{Core, Window};

/// The keyword.
pub const WORD: Keyword = Keyword {
    key: "tahoe",
    apply: |c| c.variant = Variant::Tahoe,
    summary: "slow start and congestion avoidance; three duplicate ACKs retransmit at once, then slow start",
    source: "west97 2.2.1",
    tier: 1,
    worlds: crate::describe::BOTH,
    syntax: "host: tcp = \"*\"",
    deployment: Deployment::Superseded,
    linux: None,
};

/// Tahoe's repair: it has no recovery phase, but returns to slow start.
#[derive(Clone, Debug, Default)]
pub struct Tahoe {
    /// Only an ACK of at least this position may be followed by a new loss. Duplicate ACKs below it may come from
    /// retransmissions of already arrived segments.
    recover: u64,
}

impl Tahoe {
    /// The state before any loss.
    pub fn new(_config: &TcpConfig) -> Tahoe {
        Tahoe::default()
    }
}

impl Recovery for Tahoe {
    fn check(&self, window: &Window) {
        debug_assert!(self.recover <= window.end + 2, "recovery ends beyond the written data");
    }

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
