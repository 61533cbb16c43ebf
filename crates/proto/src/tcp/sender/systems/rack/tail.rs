//! Timers of the tail: restart of the timer for the oldest segment, and the tail loss probe.

use crate::event::Cause;
use crate::tcp::rtt::TICK;
use crate::tcp::sender::recovery::tlp::TailProbe;
use crate::tcp::sender::{Chunk, Core, Purpose, Timers, Window};
use crate::units::Time;

use super::Rack;

impl Rack {
    /// Whether the last ACK reports a segment that was sent before the last transmission of the oldest one. The
    /// oldest may then still arrive, and its timer restarts (`tcp_clean_rtx_queue`).
    pub(super) fn answers_before_head(&self, now: Time) -> bool {
        let head = self.flight.first().map(|head| now.since(head.at));
        self.last.oldest.zip(head).is_some_and(|(oldest, head)| oldest > head)
    }

    /// Restarts the timeout. In Linux it counts from the last transmission of the oldest segment if the timer had another
    /// purpose (`tcp_rearm_rto`).
    pub(super) fn restart_timeout(&mut self, now: Time, timers: &mut Timers) {
        let other = self.kernel && !timers.is_for(Purpose::Timeout);
        timers.rearm(now);
        if let Some(head) = self.flight.first().filter(|_| other) {
            let at = timers.rtt.deadline(head.at, 1).max(now + TICK);
            timers.set(Purpose::Timeout, at);
        }
    }

    /// Sets the timer for a tail loss probe, if one is useful, and returns whether it is. The probe is no later than the
    /// timeout, which `restarts` now, or counts from the last transmission of the oldest segment (`tcp_rto_delta_us`).
    //= rfc8985#section-7.2: not during recovery, or while segments are reported
    pub(super) fn schedule_probe(
        &mut self,
        now: Time,
        w: &Window,
        timers: &mut Timers,
        restarts: bool,
    ) -> bool {
        let flight = &self.flight;
        let settled = match self.kernel {
            true => self.calm || self.slowing.is_some(),
            false => flight.lost() == 0 && flight.sacked_segments() == 0,
        };
        let calm = self.probes && !self.counts && !self.active && !self.after_timeout(w) && settled;
        //= rfc8985#section-7.2: no probe while the fate of another is unknown; Linux looks at this when the timer expires
        let may = self.kernel || !self.probe.is_unanswered();
        let Some(head) = flight.first().filter(|_| calm && may) else { return false };
        let timeout = timers.rtt.deadline(if restarts { now } else { head.at }, 1);
        let at = TailProbe::time(now, timers.rtt.srtt(), flight.segments(), self.kernel);
        timers.set(Purpose::Probe, if timeout > now { at.min(timeout) } else { at });
        true
    }

    /// Whether a due probe is not sent: the fate of the last one is unknown, or its segment, the last one in flight, is
    /// beyond the peer's window (`tcp_send_loss_probe`).
    pub(super) fn omits_probe(&self, w: &Window) -> bool {
        let limit = w.una + u64::from(w.peer);
        let beyond = self.flight.last().is_some_and(|last| last.from >= limit && last.from > w.una);
        self.kernel && (self.probe.is_unanswered() || beyond)
    }

    /// The next lost segment that the peer's window permits. In Linux the oldest segment probes a withdrawn window
    /// (`__tcp_retransmit_skb`).
    pub(super) fn next_lost(&mut self, core: &Core) -> Option<(u64, u64)> {
        let w = &core.window;
        let next = match w.peer {
            0 if self.kernel => {
                let next = self.flight.next_lost(w.una + u64::from(w.mss));
                next.filter(|(from, _)| *from == w.una)
            }
            0 => None,
            peer => self.flight.next_lost(w.una + u64::from(peer)),
        };
        // A buffer is sent whole.
        let ends = self.kernel && self.flight.seems_repaired();
        let begun = |from| core.bursts.as_ref().is_some_and(|bursts| bursts.repeats_up_to(from));
        next.filter(|(from, _)| !ends || begun(*from) && self.flight.continues(*from))
    }

    /// The due probe.
    //= rfc8985#section-7.3: new data if there is any, otherwise the last segment
    pub(super) fn tail_probe(&mut self, core: &mut Core) -> Option<Chunk> {
        if !core::mem::take(&mut self.probe.now) {
            return None;
        }
        let pipe = self.in_network(&core.window);
        let w = &mut core.window;
        let congestion = core::mem::replace(&mut w.cwnd, u32::MAX);
        // A probe does not wait for more data.
        let coalescing = core::mem::take(&mut w.coalescing);
        let new = if self.flight.is_full() { None } else { w.next_chunk() };
        (w.cwnd, w.coalescing) = (congestion, coalescing);
        if let Some(new) = new {
            // In Linux it is a whole buffer, which no rule delays (`tcp_write_xmit`).
            let (srtt, min_rtt) = (core.timers.rtt.srtt(), self.facts.min_rtt);
            let bursts = core.bursts.as_mut();
            let end = bursts.map_or(0, |bursts| bursts.force(w, pipe, srtt, min_rtt));
            self.probe.sent(end.max(new.end()), false);
            return Some(new);
        }
        let (mut from, mut to) = self.flight.last().map(|r| (r.from, r.to()))?;
        if self.kernel {
            from = self.flight.recut_last(w.payload())?;
            // The FIN has a position, and no data.
            let end = from + u64::from(w.payload());
            to = if to.min(w.end) > end { end } else { to };
            // The oldest segment probes a withdrawn window.
            let limit = w.una + u64::from(w.peer);
            to = if from < limit { to.min(limit) } else { to };
        }
        self.probe.sent(w.nxt, true);
        let chunk = w.chunk_at(from, Cause::TailLossProbe).cut(to);
        Some(w.with_room(chunk))
    }
}
