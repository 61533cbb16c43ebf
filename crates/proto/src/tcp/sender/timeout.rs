//! Timers of a sender: timeouts, window probes, and the return to the left edge.

use crate::event::{Cause, TcpKind};
use crate::units::{Due, Time};

use super::congestion_control::{CongestionControl, Loss};
use super::recovery::{Recovery, Step, Woken};
use super::{SenderWith, Verdict};

impl<R: Recovery> SenderWith<'_, R> {
    /// Handles the timers that have expired at `now`. The caller sends afterwards, and aborts the connection after
    /// too many timeouts.
    pub(super) fn on_wake(&mut self, now: Time) -> Verdict {
        self.recovery.called();
        // Clear the pacer's timer here: if its segment was acknowledged meanwhile, the caller does not poll.
        if let Some(pacer) = self.core.pacer.as_mut().filter(|pacer| pacer.waits.is_past(now)) {
            pacer.waits = Due::NEVER;
        }
        let timers = &mut self.core.timers;
        if timers.persist.is_past(now) {
            timers.persist = Due::NEVER;
            if self.core.window.linux && timers.persist_backoff == 0 {
                // Linux counts timeouts and probes together, and applies this count to a timeout that it has doubled already.
                timers.persist_backoff = timers.rtt.backoff();
            }
            timers.persist_backoff = timers.persist_backoff.saturating_add(1);
            timers.unanswered = timers.unanswered.saturating_add(1);
            self.core.probe_now = true;
            return Some(TcpKind::WindowProbe);
        }
        match self.recovery.on_wake(now, self.core) {
            Some(Woken::Send(kind)) => return Some(kind),
            Some(Woken::DetectLosses) => {
                let begins = self.react(&mut Step::new(now), false);
                return begins.then_some(TcpKind::FastRetransmit);
            }
            None => {}
        }
        // The recovery may have set the timer again.
        self.core.timers.expired(now)?;
        self.on_timeout(now);
        Some(TcpKind::Timeout)
    }

    /// Retransmits from the left edge on, without a change of the windows: the outstanding data was lost while the
    /// peer was unreachable, not by congestion. The caller sends afterwards.
    pub(super) fn resend(&mut self, now: Time) {
        let core = &mut *self.core;
        let repairing = self.recovery.active();
        core.timers.timed = None;
        core.tally.start_over();
        core.tally.retries = 0;
        let in_flight = self.recovery.on_timeout(now, core);
        let w = &mut core.window;
        w.end_extra();
        w.repair = None;
        if repairing {
            // Remove the inflation by duplicate ACKs.
            w.cwnd = w.cwnd.min(w.floor());
        }
        if in_flight.is_none() {
            w.nxt = w.una;
        }
        w.again = Cause::TimeoutRetransmit;
        core.timers.rearm(now);
    }

    fn on_timeout(&mut self, now: Time) {
        let core = &mut *self.core;
        //= rfc5681#section-3.1: the threshold is held while the same segment times out again
        let first = self.recovery.lowers_at_timeout(core);
        let w = &mut core.window;
        let usual = core.timers.rtt.backoff() == 0 && !self.recovery.unrepaired(w);
        if w.una > 0 && first.unwrap_or(usual) || w.halves_at_each_timeout() {
            w.cwnd = self.recovery.uninflated_window(w).unwrap_or(w.cwnd);
            w.ssthresh = core.congestion_control.ssthresh_after_loss(now, w, Loss::Timeout);
        }
        core.congestion_control.timed_out();
        if core.tally.retries == 0 {
            core.tally.first_timeout = now;
        }
        core.tally.retries += 1;
        if core.window.peer == 0 {
            core.timers.unanswered = core.timers.unanswered.saturating_add(1);
        }
        // Only a SYN is sent at position 0.
        let linear = core.window.una == 0 && core.tally.retries <= core.syn_linear;
        self.start_over(now, Cause::TimeoutRetransmit);
        if !linear {
            self.core.timers.back_off(now);
        }
    }

    /// Treats all data in flight as lost: retransmits from the oldest segment on, with the cause `again`, and
    /// restarts with the loss window.
    pub(super) fn start_over(&mut self, now: Time, again: Cause) {
        let core = &mut *self.core;
        core.timers.timed = None;
        core.tally.start_over();
        let in_flight = self.recovery.on_timeout(now, core);
        let w = &mut core.window;
        w.cwnd = w.mss * core.loss_window;
        w.end_extra();
        w.repair = None;
        match in_flight {
            Some(bytes) => w.cwnd += bytes as u32,
            None => w.nxt = w.una,
        }
        w.again = again;
        (core.reduced_below, core.reduced) = (w.max, true);
        core.usage.renew(now);
        core.timers.rearm(now);
    }
}
