//! RACK's answers to the sender: ACKs, timers, and the next segment to send.

use crate::event::{Cause, TcpKind};
use crate::units::{Due, Span, Time};

use crate::tcp::sender::congestion_control::{Acked, CongestionControl as _, Sample, SampleUse};
use crate::tcp::sender::recovery::detect::Detection;
use crate::tcp::sender::recovery::flight::{SentSegment, Way};
use crate::tcp::sender::recovery::prr::Prr;
use crate::tcp::sender::recovery::tlp::tick;
use crate::tcp::sender::recovery::{
    AckSummary, Choice, Outstanding, Progress, Recovery, Step, Woken,
};
use crate::tcp::sender::{AckInfo, Chunk, Core, Purpose, Window};

use super::arrivals::Last;
use super::growing::DUPTHRESH;
use super::reordering::LONGER;
use super::{RENEGED, Rack};

impl Recovery for Rack {
    fn check(&self, window: &Window) {
        self.flight.check();
        debug_assert!(self.recover <= window.end + 2, "recovery ends beyond the written data");
    }

    const DETECTION: Detection = Detection::ByTime;
    fn active(&self) -> bool {
        self.active
    }
    fn may_enter(&self, w: &Window) -> bool {
        !self.active && self.is_over(w.una)
    }
    fn enter(&mut self, w: &mut Window, _: u32) {
        self.active = true;
        self.recover = w.nxt;
        self.begin_undo(w.una);
        // In Linux the reduction is proportional to the window, not to the flight. One that a mark began continues.
        if self.slowing.take().is_none() {
            // One loss reduces the window once (`tcp_init_cwnd_reduction`).
            self.probe.reset();
            self.prr = match self.kernel {
                true => Prr::new(w.cwnd.into(), w.mss.into()),
                false => Prr::new(w.nxt - w.una, 1),
            };
        }
    }
    fn on_ack(&mut self, core: &mut Core, ack: &Acked) -> Progress {
        let w = &mut core.window;
        if !self.is_over(w.una) || self.reneged {
            return Progress::Partial { rearm: true };
        }
        self.active = false;
        self.reordering.recovered();
        // Losses since its start belong to another window, even if they were already retransmitted
        // (`tcp_time_to_recover`).
        self.leftovers = self.kernel && self.flight.has_losses();
        if !core.congestion_control.steers() {
            if !self.undo.is_done() {
                w.fall();
                core.usage.renew(ack.now);
            }
            // Another recovery may begin with this ACK. Reverting it must not revert this one.
            self.undo.remember(w.cwnd, w.ssthresh);
            self.last.ended = self.kernel;
        }
        Progress::Over
    }
    //= rfc8985#section-6.3: RACK_mark_losses_on_RTO
    fn on_timeout(&mut self, now: Time, core: &mut Core) -> Option<u64> {
        self.prepare_undo(core);
        let w = &core.window;
        let patience = self.facts.rtt + self.reordering_window(w, core.timers.rtt.srtt());
        // Many arrivals behind the oldest segment before a timeout show that reordering is overestimated (`tcp_enter_loss`).
        let usual = u64::from(DUPTHRESH);
        let calm = !self.active && self.is_over(w.una) && self.slowing.is_none();
        if calm && self.flight.sacked_segments() as u64 >= usual {
            self.facts.reordered_by = self.facts.reordered_by.min(usual);
        }
        let counts = self.counts;
        if counts {
            self.flight.forget_reports();
        }
        let (meter, losses) = (&mut self.meter, &mut self.losses);
        let late = |sent: &SentSegment| counts || sent.at + patience <= now;
        self.flight.expire(late, |sent| losses.note(meter, now, sent));
        if self.flight.sacked_segments() == 0 {
            self.facts.highest = core.window.una;
        }
        self.losses.report(core);
        // The ACK of a SYN leaves nothing to repair.
        (self.active, self.calm) = (false, core.window.una == 0);
        self.slowing = None;
        self.recover = core.window.nxt;
        self.probe.reset();
        (core.window.una > 0).then_some(self.in_network(&core.window))
    }
    /// As in Linux, the threshold is not lowered a second time during the repair of one window.
    fn unrepaired(&self, w: &Window) -> bool {
        w.una < self.recover
    }
    /// In Linux a loss, marks or a timeout lower the threshold once for each window. A timeout lowers it again if
    /// the left edge has moved since the last timeout (`tcp_enter_loss`).
    fn lowers_at_timeout(&mut self, core: &Core) -> Option<bool> {
        let w = &core.window;
        // Without SACK a recovery lasts until an ACK above its end. It has ended for a timeout (`tcp_enter_loss`).
        self.active &= w.una < self.recover;
        let again = self.after_timeout(w);
        let lowered = self.active || w.una < core.reduced_below && !again;
        let lowers = core.tally.retries == 0 && !lowered;
        if self.kernel && lowers && again {
            self.undo.remember(w.cwnd, w.ssthresh);
        }
        self.kernel.then_some(lowers)
    }
    fn sacked(&self, mss: u32) -> u64 {
        self.flight.sacked_segments() as u64 * u64::from(mss)
    }
    fn outstanding(&self, w: &Window) -> Outstanding {
        self.count(w)
    }
    fn split_flight(&mut self, _: Time, core: &mut Core) {
        self.split(&core.window);
    }
    fn opened(&mut self, rtt: Span) {
        // In Linux this round trip counts for the minimum (`tcp_update_rtt_min`).
        self.facts.min_rtt = self.kernel.then_some(rtt);
    }
    fn set_tail_probes(&mut self, on: bool) {
        self.probes = on;
    }
    fn without_reports(&mut self) {
        self.counts = self.kernel;
    }
    fn lose_early(&mut self, now: Time, core: &mut Core, to: u64) {
        self.lose_from_syn(now, &mut core.window, to);
    }
    fn has_work(&self) -> bool {
        self.active || self.flight.lost() > 0 || self.probe.now
    }
    fn stop(&mut self) {
        self.probe.reset();
    }
    fn supplied(&mut self, w: &Window) {
        self.note_app_limited(w);
    }
    fn on_wake(&mut self, now: Time, core: &mut Core) -> Option<Woken> {
        match core.timers.expired(now)? {
            Purpose::Timeout => return None,
            Purpose::Probe if self.omits_probe(&core.window) => {
                self.repairs = true;
                self.restart_timeout(now, &mut core.timers);
                return None;
            }
            Purpose::Probe => {
                self.probe.now = true;
                //= rfc8985#section-7.3: the retransmission timer restarts with the probe
                core.timers.rearm(now);
                return Some(Woken::Send(TcpKind::TailLossProbe));
            }
            Purpose::Reordering => self.restart_timeout(now, &mut core.timers),
        }
        self.remember_window(&core.window);
        self.last = Last { pipe: self.in_network(&core.window), ..Last::default() };
        (self.facts.advanced, self.calm) = (true, false);
        self.repairs = self.kernel;
        if self.kernel && !self.active && !core.congestion_control.steers() {
            // If the timer begins a recovery, one segment counts as delivered (`tcp_rack_reo_timeout`).
            self.last.delivered = core.window.mss.into();
        }
        Some(Woken::DetectLosses)
    }

    fn record_ack(&mut self, now: Time, w: &Window, info: &AckInfo<'_>) -> AckSummary {
        self.take_ack(now, w, info)
    }
    fn called(&mut self) {
        (self.undo.holds, self.repairs) = (false, false);
    }
    fn undo(&mut self, core: &mut Core, info: &AckInfo<'_>) -> bool {
        if self.reneged {
            // The next timeout repairs everything (`tcp_check_sack_reneging`).
            self.undo.holds = true;
            return false;
        }
        let w = &core.window;
        self.last.repeats = core.tally.plain && info.ack == w.una && w.max > w.una;
        self.last.reported |= self.counts && self.last.repeats;
        self.kernel && self.undo_reaction(core, info)
    }
    fn slows_down(&self) -> bool {
        self.kernel
    }
    fn slow_down(&mut self, w: &Window) -> bool {
        if self.kernel {
            self.slowing = Some(w.max);
            self.calm = false;
            self.probe.reset();
            self.prr = Prr::new(w.cwnd.into(), w.mss.into());
        }
        self.kernel
    }
    fn is_slowing(&self) -> bool {
        self.slowing.is_some()
    }
    fn reenters(&mut self) -> bool {
        core::mem::take(&mut self.leftovers)
    }
    #[inline]
    fn detect_losses(&mut self, now: Time, core: &mut Core) -> u64 {
        if self.counts {
            return self.detect_by_count(now, &core.window);
        }
        // In Linux an ACK marks losses only if it reports an arrival (`tcp_rack_mark_lost`), and without anything to repair
        // only if it is a duplicate or has a report (`tcp_ack_is_dubious`).
        if self.undo.holds
            || self.kernel && (self.is_plain() || !core::mem::take(&mut self.facts.advanced))
        {
            return 0;
        }
        let (lost, due) = self.detect(now, &core.window, core.timers.rtt.srtt());
        // In Linux the expired timer waits no longer (`tcp_rack_reo_timeout`).
        if let Some(due) = due.filter(|_| !self.repairs) {
            let at = if self.kernel { tick(now, due.since(now) + LONGER) } else { due };
            core.timers.set(Purpose::Reordering, at);
            self.last.waits = true;
        }
        lost
    }
    #[inline]
    fn grow(&mut self, core: &mut Core, step: &Step) {
        self.losses.report(core);
        let idle = core.window.una >= core.window.max && !step.moved;
        if self.kernel && !step.samples || idle {
            // Neither a timer nor an ACK below the left edge gives a sample (`tcp_rack_reo_timeout`, `tcp_ack`).
            self.meter.discard();
            if self.active && self.last.delivered > 0 {
                self.reduce(&mut core.window, step);
            }
            return;
        }
        let rate = self.meter.sample(self.facts.min_rtt.unwrap_or_default());
        let w = &mut core.window;
        if core.congestion_control.sample_use() > SampleUse::Ignored {
            let sample = Sample {
                now: step.ack.now,
                delivered: self.last.delivered as u32,
                lost: step.lost as u32,
                ce_bytes: core::mem::take(&mut core.ce_bytes),
                pipe: (self.last.pipe, self.in_network(w)),
                rtt: step.ack.rtt,
                rate,
                total: self.meter.total(),
                repair: self.repair(w),
                repaired: self.last.repaired,
            };
            core.congestion_control.on_sample(w, &sample);
            if core.congestion_control.steers() {
                return;
            }
        }
        // The reduction ends with the ACK of data that was sent after its start (`tcp_fastretrans_alert`).
        if self.slowing.take_if(|until| w.una > *until).is_some() {
            w.fall();
            core.usage.renew(step.ack.now);
        }
        if self.active || self.slowing.is_some() {
            // In Linux an ACK that reports no arrival does not change the window (`tcp_cwnd_reduction`).
            if self.last.delivered > 0 || step.fresh && !self.kernel {
                self.reduce(w, step);
            }
        } else if (step.grows || self.last.ended || self.grows_by_reports())
            && core.usage.may_grow(w)
        {
            self.open(core, &step.ack);
        }
    }
    #[inline]
    fn settle(&mut self, core: &mut Core, step: &Step) {
        let (w, timers, now) = (&core.window, &mut core.timers, step.ack.now);
        if w.una >= w.last() {
            timers.persist = Due::NEVER;
        }
        if self.kernel && !self.is_plain() {
            self.calm = self.is_calm(w);
        }
        let moved = step.moved && self.last.completes;
        if w.una >= w.max {
            timers.clear();
        } else if timers.persist.is_set() {
            // The peer's window is closed, so its probes replace the timer.
        } else if moved && self.reneged {
            let wait = Span(timers.rtt.srtt().0 / 2).max(RENEGED);
            timers.set(Purpose::Timeout, tick(now, wait));
        } else if !self.last.waits
            && (moved || self.kernel && self.answers_before_head(now))
            && !self.schedule_probe(now, w, timers, true)
        {
            self.restart_timeout(now, timers);
        }
        if !timers.runs() && !timers.persist.is_set() && w.una < w.nxt {
            timers.rearm(now);
        }
    }
    #[inline]
    fn on_sent(&mut self, now: Time, core: &mut Core, chunk: &Chunk) -> Option<bool> {
        if chunk.cause == Cause::WindowProbe || chunk.from == 0 {
            return None;
        }
        let (w, end) = (&core.window, chunk.end());
        let first = self.flight.is_empty().then(|| self.meter.is_app_limited());
        if first.is_some() {
            self.meter.start(now);
        }
        if self.active || self.slowing.is_some() {
            self.prr.sent(self.weight(w, end - chunk.from));
        }
        if matches!(chunk.cause, Cause::FastRetransmit | Cause::TimeoutRetransmit) {
            self.undo.repeats(now);
        }
        if chunk.cause != Cause::Data {
            self.reordering.repeats += 1;
        }
        let new = self.flight.last().is_none_or(|last| end > last.to());
        let flight = self.in_network(w) + self.weight(w, end - chunk.from);
        let joined = core.joins();
        let way = match joined {
            true => Way::Joined,
            false if chunk.cause == Cause::TailLossProbe => Way::Probe,
            false => Way::Alone,
        };
        let moment = core.bursts.as_mut().map_or(now, |bursts| bursts.moment(now));
        self.flight.sent_as(moment, (chunk.from, end), self.meter.stamp(flight), way);
        let timers = &mut core.timers;
        if new && !self.probe.covers(end) {
            if timers.is_for(Purpose::Probe) {
                self.restart_timeout(now, timers);
            }
            self.schedule_probe(now, w, timers, false);
        } else if chunk.from == w.una && !(self.kernel && timers.is_for(Purpose::Reordering)) {
            timers.rearm(now);
        }
        first
    }

    /// A due probe first, then lost segments, then new data.
    #[inline]
    fn next_chunk(&mut self, core: &mut Core, now: Time) -> Choice {
        if let Some(probe) = self.tail_probe(core) {
            return Choice::Send(probe);
        }
        if core::mem::take(&mut self.undo.tests)
            && let Some(choice) = self.send_test_data(now, core)
        {
            return choice;
        }
        if self.undo.holds {
            return self.new_data(now, core).map_or(Choice::Wait, Choice::Send);
        }
        // Lost segments are retransmitted as far as the peer's window permits: it may have been withdrawn.
        if self.flight.lost() > 0
            && let Some((from, to)) = self.next_lost(core)
        {
            let (w, usage) = (&core.window, &mut core.usage);
            let (pipe, sent) = (self.in_network(w), self.sent(w));
            if pipe > 0 && pipe + self.weight(w, to - from) > u64::from(w.cwnd) {
                // In Linux retransmissions do not count as use of the window (`tcp_xmit_retransmit_queue`).
                if !self.kernel || w.nxt < w.last() {
                    usage.note(w, sent, true);
                }
                return Choice::Wait;
            }
            let to = match self.kernel {
                true => self.flight.resegment((from, to), w),
                false => to,
            };
            let cause = match self.after_timeout(w) {
                true => Cause::TimeoutRetransmit,
                false => Cause::FastRetransmit,
            };
            let chunk = w.chunk_at(from, cause).cut(to);
            return Choice::Send(w.with_room(chunk));
        }
        if core::mem::take(&mut self.repairs) {
            return Choice::Wait;
        }
        self.new_data(now, core).map_or(Choice::Idle, Choice::Send)
    }
    fn held_back(&mut self, core: &mut Core, now: Time) {
        self.note_app_limited(&core.window);
        let w = &core.window;
        let full = w.nxt < w.last() && self.in_network(w) + u64::from(w.mss) > u64::from(w.cwnd);
        if core.usage.is_unnoted() {
            self.note_use(now, core, full);
        }
    }
    fn continues(&self, from: u64) -> bool {
        self.flight.continues(from)
    }
    fn repeats_next(&self, from: u64) -> bool {
        self.flight.first_lost().is_some_and(|(next, _)| next == from)
    }
    fn min_rtt(&self) -> Option<Span> {
        self.facts.min_rtt
    }
    fn pipe(&self, w: &Window) -> u64 {
        self.in_network(w)
    }
    fn reported_above(&self) -> u64 {
        self.flight.reported()
    }
    fn waits(&self, w: &Window) -> bool {
        self.flight.lost() > 0 && (w.peer > 0 || !self.kernel)
    }
}
