//! ACK processing for all variants: record the reports of the ACK, detect losses, call recovery and window growth, and
//! set the timers.

use crate::event::{Cause, TcpKind};
use crate::units::{Span, Time};

use super::congestion_control::{Acked, CongestionControl, Loss};
use super::recovery::detect::{Detect, Evidence};
use super::recovery::{AckSummary, Progress, Recovery, Step};
use super::{AckInfo, SenderWith, Verdict};

impl<R: Recovery> SenderWith<'_, R> {
    /// Processes an ACK that does not exceed the sent data. The caller sends afterwards.
    pub(super) fn on_ack(&mut self, now: Time, info: &AckInfo<'_>) -> Verdict {
        let (w, timers) = (&mut self.core.window, &mut self.core.timers);
        let una = w.una;
        timers.unanswered = 0;
        if info.ack >= una || !info.sacked.is_empty() {
            self.core.bursts.iter_mut().for_each(|bursts| bursts.end(w.nxt));
        }
        self.core.ce_bytes = self.core.ce_bytes.saturating_add(info.ce_bytes);
        //= rfc5681#section-2: a duplicate ACK has no data and the same window
        let plain = !info.carries && info.window.is_none();
        self.core.tally.plain = plain;
        let w = &mut self.core.window;
        if let Some(window) = info.window {
            w.set_peer(window);
        }
        if w.peer > 0 {
            self.core.end_probes();
        }
        let news = self.recovery.record_ack(now, &self.core.window, info);
        // A late ACK without a report has no effect.
        let stale = info.ack < una && news.reported.is_none();
        let undone = !stale && self.recovery.undo(self.core, info);
        if undone {
            self.core.usage.renew(now);
        }
        let notified = info.lost.is_some_and(|lost| self.notify(now, lost));
        // The duplicate ACKs that follow report the same loss, and are not counted.
        let handled = (notified && self.core.detector.counts()).then_some(TcpKind::LossNotified);
        if info.ack > una {
            let verdict = self.advance(now, info, &news, notified);
            let verdict = if undone { TcpKind::Undone } else { verdict };
            return handled.or_else(|| self.after_advance(now, info, verdict));
        }
        let late = info.ack < una && news.reported != Some(true) && !undone;
        if late || handled.is_some() {
            return handled;
        }
        let verdict = self.stay(now, info, &news, plain, notified);
        if undone { Some(TcpKind::Undone) } else { verdict }
    }

    /// Moves the left edge to `info.ack`.
    #[inline]
    fn advance(
        &mut self,
        now: Time,
        info: &AckInfo<'_>,
        news: &AckSummary,
        notified: bool,
    ) -> TcpKind {
        let core = &mut *self.core;
        let timed = core.timers.timed.take_if(|(end, _)| info.ack >= *end).map(|(_, sent)| sent);
        let rtt = news.rtt.or(timed.map(|sent| now.since(sent)));
        let bytes = (info.ack - core.window.una) as u32;
        let early = core.timers.early_expiry(now, core.window.nxt > info.ack);
        let edges = (info.ack, core.window.nxt);
        // Only the ACK of data that was sent once ends the backoff.
        if timed.is_some() || !core.timers.estimate_stamped(info.echoed, now, edges) {
            let echoed = info.echoed.filter(|_| !news.part);
            let sent = sent_before(now, news).or(echoed).or(timed);
            self.measure(now, info.ack, sent, rtt);
        }
        let core = &mut self.core;
        core.window.una = info.ack;
        core.bursts.iter_mut().for_each(|bursts| bursts.buffers.release(info.ack));
        core.window.nxt = core.window.nxt.max(info.ack);
        core.window.end_extra();
        core.tally.edge_moved(info.ack);
        let mut verdict = if notified { TcpKind::LossNotified } else { TcpKind::Acked };
        let mut step = Step::new(now);
        step.ack = Acked { now, bytes, rtt };
        let core = &mut self.core;
        if let Some(rtt) = rtt {
            core.congestion_control.on_round_trip(now, &mut core.window, rtt);
        }
        (step.moved, step.rearm, step.samples) = (true, true, true);
        if self.recovery.engaged() {
            step.fresh = false;
            match self.recovery.on_ack(core, &step.ack) {
                Progress::Over => verdict = TcpKind::RecoveryEnded,
                Progress::Partial { rearm } => step.rearm = rearm,
                Progress::Lost => verdict = TcpKind::FastRetransmit,
            }
            step.grows = self.recovery.preserves_window();
        } else {
            step.grows = true;
        }
        if self.react(&mut step, news.repaired) {
            verdict = TcpKind::FastRetransmit;
        }
        self.recovery.settle(self.core, &step);
        if self.core.window.una >= self.core.window.last() && self.core.window.fin {
            self.core.limits.end(now);
        }
        self.core.timers.set_early(early);
        if verdict == TcpKind::RecoveryEnded && self.recovery.unfinished() {
            verdict = self.enter_recovery(now);
        }
        let w = &mut self.core.window;
        if self.core.congestion_control.after_repair(now, w)
            && !self.recovery.active()
            && w.una < w.max
        {
            w.repair = Some((w.una, Cause::FastRetransmit));
        }
        verdict
    }

    /// Checks for a loss at the new left edge, after an ACK without a loss notification.
    fn after_advance(&mut self, now: Time, info: &AckInfo<'_>, verdict: TcpKind) -> Verdict {
        if info.snack.is_some() && self.recovery.unfinished() && !self.recovery.active() {
            let may = self.recovery.may_enter(&self.core.window);
            return Some(if may { self.enter_recovery(now) } else { verdict });
        }
        let marked = info.marked && self.marked_edge(now, info);
        Some(if marked { TcpKind::LossNotified } else { verdict })
    }

    /// Processes an ACK that does not move the left edge.
    fn stay(
        &mut self,
        now: Time,
        info: &AckInfo<'_>,
        news: &AckSummary,
        plain: bool,
        notified: bool,
    ) -> Verdict {
        let (w, counts) = (&self.core.window, self.core.detector.counts());
        // Answers to probes of a closed window are no duplicate ACKs: no timer runs, and no data is sent.
        let outstanding = w.max > w.una && (self.core.timers.runs() || !counts);
        //= rfc6675#section-2: with SACK a duplicate ACK is one that reports something new
        let duplicate = outstanding && news.reported.unwrap_or(plain);
        if counts && !duplicate {
            return None;
        }
        self.measure(now, info.ack, sent_before(now, news), news.rtt);
        if let Some(rtt) = news.rtt {
            self.core.congestion_control.on_round_trip(now, &mut self.core.window, rtt);
        }
        let mut verdict = notified.then_some(TcpKind::LossNotified);
        if duplicate {
            self.core.tally.dupacks += 1;
            if counts && let Some(kind) = self.under_repair(now, info) {
                return Some(kind);
            }
            verdict = verdict.or(Some(TcpKind::DupAck));
        }
        let mut step = Step::new(now);
        step.ack.rtt = news.rtt;
        let w = &self.core.window;
        step.fresh = !self.recovery.active();
        // Without data in flight an ACK gives no sample (`tcp_ack`, `no_queue`).
        step.samples = info.ack >= w.una && w.max > w.una;
        if self.react(&mut step, news.repaired) {
            verdict = Some(TcpKind::FastRetransmit);
        } else if self.core.limited_transmit
            && self.core.tally.dupacks < self.core.detector.threshold()
        {
            //= rfc3042#section-2: one new segment for each of the first two duplicate ACKs
            self.core.window.extra = self.core.window.mss.saturating_mul(self.core.tally.dupacks);
        }
        self.recovery.settle(self.core, &step);
        verdict
    }

    /// Handles a duplicate ACK during recovery, or for a loss of the wireless link. `None` for any other duplicate ACK.
    fn under_repair(&mut self, now: Time, info: &AckInfo<'_>) -> Option<TcpKind> {
        if self.recovery.engaged() {
            return Some(self.recovery.on_dup_ack(self.core, now));
        }
        let (w, tally) = (&mut self.core.window, &self.core.tally);
        if tally.was_notified(w.una) {
            // The retransmission is in flight: preserve the ACK clock and the window.
            w.extra = w.mss.saturating_mul(tally.dupacks);
            return Some(TcpKind::DupAck);
        }
        self.marked_duplicate(now, info).then_some(TcpKind::LossNotified)
    }

    /// Detects losses and grows the window. `repaired` is whether a probe has repaired a loss without other evidence.
    /// Returns whether a recovery begins.
    #[inline]
    pub(super) fn react(&mut self, step: &mut Step, repaired: bool) -> bool {
        let now = step.ack.now;
        if repaired && !self.recovery.active() {
            let (w, growth) = (&mut self.core.window, &mut self.core.congestion_control);
            w.limited = self.recovery.limited(w);
            w.ssthresh = growth.ssthresh_after_loss(now, w, Loss::Detected);
            if !growth.steers() {
                w.fall();
                self.core.usage.renew(now);
            }
            self.core.reduced = true;
            // In Linux the window grows from the threshold at once (`tcp_process_tlp_ack`).
            step.grows &= self.recovery.slows_down();
        }
        step.lost = self.recovery.detect_losses(now, self.core);
        let seen = step.lost > 0 || self.core.tally.dupacks > 0;
        let begins = self.recovery.reenters() || seen && self.detects(now, step.lost);
        if begins {
            self.enter_recovery(now);
            step.grows = false;
        }
        self.recovery.grow(self.core, step);
        begins
    }

    /// Whether a loss is detected for which a recovery may begin; `lost` bytes are marked as lost.
    fn detects(&mut self, now: Time, lost: u64) -> bool {
        let (w, dupacks) = (&self.core.window, self.core.tally.dupacks);
        let evidence = Evidence { dupacks, sacked: self.recovery.sacked_above(), lost };
        (self.core.detector.lost(&evidence) || self.core.congestion_control.overdue(now, w))
            && self.recovery.may_enter(w)
    }

    /// Begins recovery after a detected loss.
    pub(super) fn enter_recovery(&mut self, now: Time) -> TcpKind {
        let core = &mut *self.core;
        core.timers.timed = None;
        if !self.recovery.preserves_window() && !self.recovery.is_slowing() {
            core.window.limited = self.recovery.limited(&core.window);
            core.window.ssthresh =
                core.congestion_control.ssthresh_after_loss(now, &core.window, Loss::Detected);
            //= rfc3168#section-6.1.2: CWR after a reduction for any reason
            (core.reduced_below, core.reduced) = (core.window.max, true);
        }
        core.window.end_extra();
        self.recovery.enter(&mut core.window, core.tally.dupacks);
        core.timers.fast_retransmitted(now, core.detector.counts());
        TcpKind::FastRetransmit
    }

    /// Adds the round-trip samples of an ACK of `ack`: `sent` is when the acknowledged segment was sent, for the
    /// timeout; `rtt` is the exact round trip, for the pacer.
    fn measure(&mut self, now: Time, ack: u64, sent: Option<Time>, rtt: Option<Span>) {
        if let Some(sent) = sent {
            let edges = (ack, self.core.window.nxt);
            self.core.timers.rtt.sample(sent, now, edges);
        }
        if let (Some(pacer), Some(rtt)) = (&mut self.core.pacer, rtt) {
            pacer.sample(rtt);
        }
    }
}

/// When the oldest of the newly reported segments was sent.
fn sent_before(now: Time, news: &AckSummary) -> Option<Time> {
    news.oldest.map(|rtt| Time(now.0.saturating_sub(rtt.0)))
}
