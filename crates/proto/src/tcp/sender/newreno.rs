//! NewReno (west97 2.3.1, RFC 6582): a partial ACK shows the next loss of the same window and keeps fast
//! recovery alive.

use crate::event::Cause;

use super::Window;
use super::recovery::{Progress, Recovery};
use super::reno::inflate;

/// NewReno's fast recovery.
#[derive(Clone, Debug, Default)]
pub struct NewReno {
    active: bool,
    /// One past the highest position sent when the last loss was detected.
    recover: u64,
    /// Whether a partial ACK has come in this recovery.
    partial_seen: bool,
}

impl Recovery for NewReno {
    fn active(&self) -> bool {
        self.active
    }
    //= rfc6582#section-3.2: no new recovery for losses of the window that a time-out or recovery covers
    fn may_enter(&self, w: &Window) -> bool {
        w.una >= self.recover
    }
    fn enter(&mut self, w: &mut Window, dupacks: u32) {
        self.active = true;
        self.partial_seen = false;
        self.recover = w.max;
        inflate(w, dupacks);
    }
    fn on_dup_ack(&mut self, w: &mut Window) {
        w.open(w.mss);
    }
    fn on_ack(&mut self, w: &mut Window, acked: u32) -> Progress {
        if w.una >= self.recover {
            self.active = false;
            //= rfc6582#section-3.2: full ACK: deflate, but without leaving room for a burst
            w.cwnd = w.ssthresh.min(w.flight().max(w.mss) + w.mss);
            return Progress::Over;
        }
        //= rfc6582#section-3.2: partial ACK: send the next hole, deflate by what was acknowledged, add one
        w.repair = Some((w.una, Cause::FastRetransmit));
        w.cwnd = w.cwnd.saturating_sub(acked);
        if acked >= w.mss {
            w.cwnd += w.mss;
        }
        w.cwnd = w.cwnd.max(w.mss);
        let first = !self.partial_seen;
        self.partial_seen = true;
        Progress::Partial { rearm: first }
    }
    fn on_timeout(&mut self, w: &mut Window) {
        self.active = false;
        // What is sent again although it had arrived brings duplicate ACKs of exactly `max`.
        //= rfc6582#section-4: they are told from a new loss by an ACK of more than that
        self.recover = w.max + 1;
    }
}
