//! Reno (west97 2.2.2, RFC 5681 section 3.2): fast recovery with window inflation, ended by the first ACK
//! for new data. Two losses in one window halve the window twice, or leave too few duplicate ACKs.

use crate::event::Cause;

use super::Window;
use super::recovery::{Progress, Recovery};

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
    fn on_dup_ack(&mut self, w: &mut Window) {
        w.open(w.mss);
    }
    fn on_ack(&mut self, w: &mut Window, _: u32) -> Progress {
        self.active = false;
        w.cwnd = w.ssthresh;
        Progress::Over
    }
    fn on_timeout(&mut self, _: &mut Window) {
        self.active = false;
    }
}
