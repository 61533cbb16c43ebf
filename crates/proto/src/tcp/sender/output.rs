//! Selection of the next segment, and the records of sent segments.

use crate::event::Cause;
use crate::units::Time;

use super::congestion_control::CongestionControl;
use super::limits::Limit;
use super::recovery::detect::Detect;
use super::recovery::{Choice, Recovery};
use super::{Chunk, SenderWith};

impl<R: Recovery> SenderWith<'_, R> {
    /// The next segment to send, if the windows allow one. Call repeatedly until it returns `None`.
    pub(super) fn poll(&mut self, now: Time) -> Option<Chunk> {
        self.core.fills_window = false;
        if self.core.pacer.as_mut().is_some_and(|pacer| pacer.holds_back(now)) {
            self.recovery.held_back(self.core, now);
            self.core.bursts.iter_mut().for_each(|bursts| bursts.end_call());
            let w = &self.core.window;
            let waits = w.nxt < w.last() || self.recovery.waits(w);
            self.core.limits.set(now, if waits { Limit::Pacing } else { Limit::Application });
            return None;
        }
        if let (Some(_), Some(bursts)) = (&self.core.pacer, &mut self.core.bursts) {
            let control = &self.core.congestion_control;
            bursts.set_pace(control.pacing(), control.bursts_per_second());
        }
        let Some(chunk) = self.choose(now) else {
            self.note_limit(now);
            self.core.bursts.iter_mut().for_each(|bursts| bursts.end_call());
            self.core.pacer.iter_mut().for_each(|pacer| pacer.end_burst());
            return None;
        };
        let core = &mut *self.core;
        if let Some(pacer) = &mut core.pacer {
            if let Some(bursts) =
                core.bursts.as_ref().filter(|_| core.congestion_control.pacing().is_some())
            {
                let (w, srtt) = (&core.window, core.timers.rtt.srtt());
                let most = bursts.most(w, srtt, self.recovery.min_rtt());
                let segments = if chunk.cause == Cause::Data { bursts.size(w, most) } else { 1 };
                pacer.begin_burst(now, segments as u32);
            }
            // Only the part of the window that the peer's window and the socket buffer permit is spread over a round
            // trip.
            let window = core.window.allowed().min(u32::MAX.into()) as u32;
            let windows = [window, core.window.ssthresh];
            pacer.sent(now, chunk.len, windows, core.congestion_control.pacing());
        }
        let (end, probe) = (chunk.end(), chunk.cause == Cause::WindowProbe);
        if !core.timers.runs() && !probe {
            core.timers.rearm(now);
        }
        core.usage.sent(now, chunk.cause);
        core.congestion_control.on_sent(now, &core.window, &chunk);
        if let Some(bursts) = &mut core.bursts {
            let pace = core.congestion_control.pacing();
            let (w, srtt) = (&core.window, core.timers.rtt.srtt());
            (bursts.joined, bursts.cut) = (false, false);
            bursts.buffers.fill(w);
            if !probe && chunk.from > 0 {
                let continues = chunk.cause == Cause::Data || self.recovery.continues(chunk.from);
                bursts.join(w, &chunk, continues, bursts.most(w, srtt, self.recovery.min_rtt()));
                bursts.sent(now, &chunk, pace);
            }
        }
        if let Some(idle) = self.recovery.on_sent(now, core, &chunk) {
            core.congestion_control.restart(now, idle);
        }
        if let Some(bursts) = &mut core.bursts
            && chunk.cause != Cause::Data
            && end < core.window.max
            && !core.detector.counts()
        {
            // The last segment of a divided buffer has its PSH (`tcp_fragment`).
            let continues = self.recovery.continues(end);
            bursts.cut |= continues;
            if continues && bursts.repeats_up_to(end) && self.recovery.repeats_next(end) {
                core.pacer.iter_mut().for_each(|pacer| pacer.extend_burst());
            }
        }
        let (w, timers) = (&mut core.window, &mut core.timers);
        w.note_sent(&chunk);
        if chunk.from == w.nxt && !probe {
            w.nxt = end;
        }
        if end > w.max {
            if w.extra > 0 {
                w.limited += (end - w.max) as u32;
            }
            w.max = end;
            //= rfc6298#section-3: only data sent for the first time is timed (Karn's rule)
            if timers.timed.is_none() && core.detector.counts() {
                timers.timed = Some((end, now));
            }
        } else if timers.timed.is_some_and(|(timed, _)| chunk.from < timed) {
            timers.timed = None;
        }
        Some(chunk)
    }

    /// Records the limit that stops the sender now.
    fn note_limit(&mut self, now: Time) {
        let w = &self.core.window;
        let limit = match w.peer > 0 && self.recovery.waits(w) {
            true => Limit::CongestionWindow,
            false => Limit::of(w, self.recovery.pipe(w)),
        };
        self.core.limits.set(now, limit);
    }

    fn choose(&mut self, now: Time) -> Option<Chunk> {
        let core = &mut *self.core;
        let w = &mut core.window;
        if w.una == w.max && w.nxt < w.last() && !self.recovery.shares_window() {
            core.usage.restart(now, core.timers.rtt.rto(), w);
        }
        if let Some((position, cause)) = w.repair.take() {
            if position >= w.una && position < w.max {
                return Some(w.chunk_at(position, cause));
            }
        }
        if core.tally.has_missing()
            && core.detector.counts()
            && let Some(chunk) = core.next_missing()
        {
            return Some(chunk);
        }
        if core::mem::take(&mut core.probe_now)
            && let Some(probe) = core.window.probe()
        {
            if probe.cause == Cause::WindowProbe {
                let factor = core.timers.rtt.backoff_factor(core.timers.persist_backoff);
                core.timers.probe_later(now, factor);
            } else if core.window.linux {
                // A part of a segment that fills a small window is no probe, and its wait does not grow
                // (`tcp_send_probe0`).
                (core.timers.persist_backoff, core.timers.unanswered) = (0, 0);
                core.fills_window = true;
            }
            return Some(probe);
        }
        let chunk = match self.recovery.next_chunk(core, now) {
            Choice::Send(chunk) => return Some(chunk),
            Choice::Wait => return None,
            Choice::Window => {
                let pipe = self.recovery.pipe(&core.window);
                let chunk = core.window.next_chunk();
                let chunk = chunk.or_else(|| core.bursts.as_ref()?.remainder(&core.window, pipe));
                if chunk.is_none() {
                    core.note_usage();
                }
                chunk
            }
            Choice::Idle => None,
        };
        if chunk.is_none() {
            self.start_window_probes(now);
        }
        chunk
    }

    /// Starts window probes if the peer's window is the only limit, and no ACK in flight could open it. A peer may
    /// also have withdrawn its window; the data in flight then counts as lost after a timeout.
    ///
    /// 4.4BSD probes a completely withdrawn window at once: the retransmission timer stops, and the data in flight is
    /// retransmitted when the window opens.
    //= rfc9293#section-3.8.6: a sender must be robust against a window that shrinks
    fn start_window_probes(&mut self, now: Time) {
        let withdrawn = self.core.window_withdrawn();
        let (w, timers) = (&mut self.core.window, &mut self.core.timers);
        if withdrawn && !timers.persist.is_set() {
            w.nxt = w.una;
        }
        let unsent = w.nxt == w.una && w.nxt < w.last() && (w.una == w.max || w.peer == 0);
        let blocked = unsent || w.peer == 0 && self.recovery.waits(w);
        if blocked && (!timers.runs() || w.peer == 0) && !timers.persist.is_set() {
            timers.clear();
            self.core.begin_probes(now);
        } else if w.una < w.nxt && !timers.runs() && !timers.persist.is_set() {
            // Outstanding data always has a timer.
            timers.rearm(now);
        }
    }
}
