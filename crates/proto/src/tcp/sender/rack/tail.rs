//! Timers of the tail: restart of the timer for the oldest segment, and the tail loss probe.

use crate::event::Cause;
use crate::tcp::sender::{Chunk, Timers, Window};
use crate::units::Time;

use super::Rack;

impl Rack {
    /// Whether the last ACK reports a segment that was sent before the last transmission of the oldest one. The
    /// oldest may then still arrive, and its timer restarts (`tcp_clean_rtx_queue`).
    pub(super) fn answers_before_head(&self, now: Time) -> bool {
        let head = self.flight.first().map(|head| now.since(head.at));
        self.last.oldest.zip(head).is_some_and(|(oldest, head)| oldest > head)
    }

    /// Sets the timer of the tail loss probe, if a probe is useful.
    //= rfc8985#section-7.2: not during recovery, or while segments are reported
    pub(super) fn schedule_probe(&mut self, now: Time, w: &Window, timers: &Timers) {
        let Some(rto) = timers.rexmt.get() else { return };
        let flight = &self.flight;
        let calm = self.probes && !self.active && !self.after_timeout(w) && flight.lost() == 0;
        if calm && flight.sacked_segments() == 0 && !flight.is_empty() {
            self.probe.schedule(now, timers.rtt.srtt(), flight.segments(), rto);
        } else {
            self.probe.cancel();
        }
    }

    /// The due probe.
    //= rfc8985#section-7.3: new data if there is any, otherwise the last segment
    pub(super) fn tail_probe(&mut self, w: &mut Window) -> Option<Chunk> {
        if !core::mem::take(&mut self.probe.now) {
            return None;
        }
        let congestion = core::mem::replace(&mut w.cwnd, u32::MAX);
        // A probe does not wait for more data.
        let coalescing = core::mem::take(&mut w.coalescing);
        let new = if self.flight.is_full() { None } else { w.next_chunk() };
        (w.cwnd, w.coalescing) = (congestion, coalescing);
        if let Some(new) = new {
            self.probe.sent(new.end(), false);
            return Some(new);
        }
        let (from, to) = self.flight.last().map(|r| (r.from, r.to()))?;
        self.probe.sent(w.nxt, true);
        Some(w.chunk_at(from, Cause::TailLossProbe).cut(to))
    }
}
