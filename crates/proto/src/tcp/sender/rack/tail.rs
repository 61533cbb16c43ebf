//! The timers of the tail: when the oldest segment is waited for anew, and the tail loss probe.

use crate::event::Cause;
use crate::tcp::sender::{Chunk, Timers, Window};
use crate::units::Time;

use super::Rack;

impl Rack {
    /// Whether the last ACK reports a segment that left before the oldest one left last: then the oldest may still arrive,
    /// and its timer starts again (`tcp_clean_rtx_queue`).
    pub(super) fn answers_before_head(&self, now: Time) -> bool {
        let head = self.flight.first().map(|head| now.since(head.at));
        self.last.oldest.zip(head).is_some_and(|(oldest, head)| oldest > head)
    }

    /// Sets the timer of the tail loss probe, where one is of use.
    //= rfc8985#section-7.2: not while a loss is being repaired or segments are reported
    pub(super) fn schedule_probe(&mut self, now: Time, w: &Window, timers: &Timers) {
        let Some(rto) = timers.rexmt.get() else { return };
        let flight = &self.flight;
        let calm = self.probes && !self.active && !self.after_timeout(w) && flight.lost() == 0;
        if calm && flight.sacked_segments() == 0 && !flight.is_empty() && timers.rtt.backoff() == 0
        {
            self.probe.schedule(now, timers.rtt.srtt(), flight.segments(), rto);
        } else {
            self.probe.cancel();
        }
    }

    /// The probe that is due.
    //= rfc8985#section-7.3: new data if there is some, else the last segment again
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
