//! Timers of the tail: restart of the timer for the oldest segment, and the tail loss probe.

use crate::event::Cause;
use crate::tcp::sender::recovery::tlp::{TICK, TailProbe};
use crate::tcp::sender::{Chunk, Core, Timers, Window};
use crate::units::{Due, Time};

use super::Rack;

impl Rack {
    /// Whether the last ACK reports a segment that was sent before the last transmission of the oldest one. The
    /// oldest may then still arrive, and its timer restarts (`tcp_clean_rtx_queue`).
    pub(super) fn answers_before_head(&self, now: Time) -> bool {
        let head = self.flight.first().map(|head| now.since(head.at));
        self.last.oldest.zip(head).is_some_and(|(oldest, head)| oldest > head)
    }

    /// Counts the timeout from the last transmission of the oldest segment, as in Linux, if the timer of a probe or of
    /// reordered segments was pending; `probes` is whether a probe was (`tcp_rearm_rto`).
    pub(super) fn count_from_head(&mut self, now: Time, timers: &mut Timers, probes: bool) {
        let pending = self.reorder_until.take().is_some_and(|at| at > now) || probes;
        if let Some(head) = self.flight.first().filter(|_| self.kernel && pending) {
            timers.rexmt = Due::at(timers.rtt.deadline(head.at, 1).max(now + TICK));
        }
    }

    /// Sets the timer of the tail loss probe, if a probe is useful. `sends` is whether new data is sent; otherwise an
    /// ACK has restarted the retransmission timer.
    //= rfc8985#section-7.2: not during recovery, or while segments are reported
    pub(super) fn schedule_probe(
        &mut self,
        now: Time,
        w: &Window,
        timers: &mut Timers,
        sends: bool,
    ) {
        let Some(mut rto) = timers.rexmt.get() else { return };
        let flight = &self.flight;
        let calm = self.probes
            && !self.counts
            && !self.active
            && !self.after_timeout(w)
            && flight.lost() == 0;
        if !calm || flight.sacked_segments() > 0 || flight.is_empty() {
            return self.probe.cancel();
        }
        if self.kernel {
            // Linux has one timer for a probe and for reordered segments.
            (self.reorder_at, self.reorder_until) = (None, None);
        }
        let flight = &self.flight;
        let (srtt, segments) = (timers.rtt.srtt(), flight.segments());
        let at = TailProbe::time(now, srtt, segments, self.kernel);
        let Some(head) = flight.first().filter(|_| self.kernel) else {
            return self.probe.schedule(at.min(rto));
        };
        // Linux counts the timeout from the last transmission of the oldest segment (`tcp_rto_delta_us`), and has one timer
        // for it and the probe.
        let head = timers.rtt.deadline(head.at, 1);
        if sends {
            rto = if head > now { head } else { at };
        }
        let at = at.min(rto);
        timers.rexmt = Due::at(rto);
        match self.probe.is_unanswered() {
            // The timer of a second probe expires without one, and starts that of retransmissions.
            true => timers.rexmt = Due::at(at.max(head)),
            false => self.probe.schedule(at),
        }
    }

    /// Cancels a due probe if its segment, the last one in flight, is beyond the peer's window, as
    /// Linux does (`tcp_send_loss_probe`). Then the timeout of the oldest segment counts from its
    /// last transmission.
    pub(super) fn cancels_probe(&mut self, now: Time, core: &mut Core) -> bool {
        let w = &core.window;
        let limit = w.una + u64::from(w.peer);
        let (Some(first), Some(last)) = (self.flight.first(), self.flight.last()) else {
            return false;
        };
        if !self.kernel || last.from < limit || last.from == w.una {
            return false;
        }
        core.timers.rexmt = Due::at(core.timers.rtt.deadline(first.at, 1).max(now));
        self.probe.cancel();
        true
    }

    /// The next lost segment that the peer's window permits. In Linux the oldest segment probes a withdrawn window
    /// (`__tcp_retransmit_skb`).
    pub(super) fn next_lost(&mut self, w: &Window) -> Option<(u64, u64)> {
        match w.peer {
            _ if self.kernel && self.flight.seems_repaired() => None,
            0 if self.kernel => {
                let next = self.flight.next_lost(w.una + u64::from(w.mss));
                next.filter(|(from, _)| *from == w.una)
            }
            0 => None,
            peer => self.flight.next_lost(w.una + u64::from(peer)),
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
        let (mut from, mut to) = self.flight.last().map(|r| (r.from, r.to()))?;
        if self.kernel {
            from = self.flight.recut_last(w.payload())?;
            to = to.min(from + u64::from(w.payload()));
        }
        self.probe.sent(w.nxt, true);
        let chunk = w.chunk_at(from, Cause::TailLossProbe).cut(to);
        Some(w.with_room(chunk))
    }
}
