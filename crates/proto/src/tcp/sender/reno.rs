//! Reno (west97 2.2.2, RFC 5681 section 3.2): fast recovery with window inflation, ended by the first ACK
//! for new data. Two losses in one window halve the window twice, or leave too few duplicate ACKs.

use crate::event::{Cause, TcpKind};
use crate::tcp::config::Variant;
use crate::tcp::word::Word;
use crate::units::Time;

use super::growth::Acked;
use super::recovery::{Progress, Recovery};
use super::{Core, Window};

/// The word.
pub const WORD: Word = Word {
    key: "reno",
    apply: |c| c.variant = Variant::Reno,
    what: "Tahoe with fast recovery: duplicate ACKs inflate the window instead of emptying the pipe",
    source: "west97 2.2.2; RFC 5681 section 3.2",
    tier: 1,
    worlds: crate::describe::BOTH,
    syntax: "host: tcp = \"*\"",
};

/// Reno's fast recovery.
#[derive(Clone, Debug, Default)]
pub struct Reno {
    active: bool,
}

/// What Reno and NewReno do alike when a loss is detected.
//= rfc5681#section-3.2: the segment is sent again, the window is ssthresh inflated by the duplicates
pub(super) fn inflate(w: &mut Window, dupacks: u32) {
    w.cwnd = w.ssthresh + w.mss.saturating_mul(dupacks);
    w.repair = Some((w.una, Cause::FastRetransmit));
}

impl Recovery for Reno {
    fn active(&self) -> bool {
        self.active
    }
    fn enter(&mut self, w: &mut Window, dupacks: u32) {
        self.active = true;
        inflate(w, dupacks);
    }
    fn on_dup_ack(&mut self, core: &mut Core, _: Time) -> TcpKind {
        core.window.open(core.window.mss);
        TcpKind::DupAck
    }
    fn on_ack(&mut self, core: &mut Core, _: &Acked) -> Progress {
        self.active = false;
        core.window.cwnd = core.window.ssthresh;
        Progress::Over
    }
    fn on_timeout(&mut self, _: Time, _: &mut Core) -> Option<u64> {
        self.active = false;
        None
    }
}
