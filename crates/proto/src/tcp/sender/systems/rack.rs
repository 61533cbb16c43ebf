//! RACK-TLP (RFC 8985): a segment is lost when another that was sent sufficiently later has arrived. It uses time
//! instead of a count of duplicate ACKs, so it detects lost retransmissions as well.
//!
//! Recovery sends by proportional rate reduction (RFC 6937); a probe detects losses at the tail. With the windows of
//! Linux, a spurious reaction is reverted; see `undo.rs`.

mod arrivals;
mod counting;
mod growing;
mod losses;
mod reordering;
mod tail;
mod undo;

use crate::event::{Cause, TcpKind};
use crate::tcp::config::{Clock, Congestion, GrowthRule, TcpConfig, Variant};
use crate::tcp::keyword::{Deployment, Keyword, Linux};
use crate::units::{Due, Rate, Span, Time};

use crate::tcp::sender::bursts::{self, BurstInput, new_data};
use crate::tcp::sender::congestion_control::rate::RateMeter;
use crate::tcp::sender::congestion_control::{Acked, CongestionControl, Sample, SampleUse};
use crate::tcp::sender::recovery::detect::Detection;
use crate::tcp::sender::recovery::flight::{Flight, Judgement, SentSegment, Way};
use crate::tcp::sender::recovery::prr::Prr;
use crate::tcp::sender::recovery::tlp::{TailProbe, tick};
use crate::tcp::sender::recovery::{
    AckSummary, Choice, Outstanding, Progress, Recovery, Step, Woken,
};
use crate::tcp::sender::{AckInfo, Chunk, Core, Window};
use arrivals::{Facts, Last};
use growing::DUPTHRESH;
use losses::Losses;
use reordering::{LONGER, Reordering};
use undo::Undo;

/// The keyword.
pub const WORD: Keyword = Keyword {
    key: "rack",
    apply,
    summary: "losses detected by time, tail loss probes, a window that shrinks in proportion to delivered data; Reno's growth",
    source: "RFC 8985, RFC 6937",
    tier: 0,
    worlds: crate::describe::SIM,
    syntax: "host: tcp = \"*\"",
    deployment: Deployment::Current,
    linux: Some(Linux::control("reno")),
};

/// RACK-TLP with Reno's window. It records each segment, so it sends new data after reports without limited transmit.
/// Modern networks need windows above 64 KiB.
pub(in crate::tcp::sender) fn apply(c: &mut TcpConfig) {
    c.variant = Variant::Rack;
    c.congestion = Congestion::Reno;
    c.sack = true;
    c.dsack = true;
    c.timestamps = true;
    c.window_scale = true;
    c.limited_transmit = false;
    c.window_validation = true;
}

/// Least time until the timeout that repairs discarded data.
const RENEGED: Span = Span::millis(10);

/// Loss detection by time, and recovery.
#[derive(Clone, Debug)]
pub struct Rack {
    /// Segments in flight.
    flight: Flight,
    /// Measures the delivery rate.
    meter: RateMeter,
    /// The tail loss probe, and whether it is in use.
    probe: TailProbe,
    probes: bool,
    /// Bounds transmissions in recovery.
    prr: Prr,
    /// When possibly reordered segments will count as lost.
    reorder_at: Option<Time>,
    /// Expiry of the last such timer, also if no segment waits for it any more. Linux has one timer for it, the probe
    /// and the timeout.
    reorder_until: Option<Time>,
    facts: Facts,
    losses: Losses,
    reordering: Reordering,
    last: Last,
    active: bool,
    /// Whether the rules of Linux apply.
    kernel: bool,
    /// Whether duplicate ACKs are counted, since the peer reports no segments.
    counts: bool,
    /// Whether the recovery that has just ended leaves losses that happened during it.
    leftovers: bool,
    /// One past the highest position sent when recovery began, or when the timer expired.
    recover: u64,
    /// State for reverting a spurious reaction to a loss.
    undo: Undo,
    /// Whether the left edge has stopped at data that the receiver had reported: it has discarded this data.
    reneged: bool,
    /// Highest position sent when an echoed mark began to reduce the window (`TCP_CA_CWR`).
    slowing: Option<u64>,
}

impl Rack {
    /// A recovery without segments in flight.
    pub fn new(config: &TcpConfig) -> Rack {
        Rack {
            flight: Flight::default(),
            meter: RateMeter::default(),
            probe: TailProbe::default(),
            probes: true,
            prr: Prr::new(0, 1),
            reorder_at: None,
            reorder_until: None,
            facts: Facts::new(match config.clock {
                Clock::Fine { granularity } => granularity.max(Span::millis(1)),
                Clock::Ticks { slow, .. } => slow,
            }),
            losses: Losses::default(),
            reordering: Reordering::new(),
            last: Last::default(),
            active: false,
            kernel: config.growth == GrowthRule::Linux,
            counts: false,
            leftovers: false,
            recover: 0,
            undo: Undo::new(config.initial_ssthresh),
            reneged: false,
            slowing: None,
        }
    }

    /// Bytes in the network. Linux counts segments, of any size, so a window permits as many small ones as full ones.
    #[inline]
    fn in_network(&self, w: &Window) -> u64 {
        if self.kernel { self.flight.pending() * u64::from(w.mss) } else { self.flight.pipe() }
    }

    /// Bytes that the window counts for a segment of `bytes`.
    #[inline]
    fn weight(&self, w: &Window, bytes: u64) -> u64 {
        if self.kernel { w.mss.into() } else { bytes }
    }

    /// Sent and unacknowledged bytes, as the window counts them.
    #[inline]
    fn sent(&self, w: &Window) -> u64 {
        if self.kernel { self.flight.segments() as u64 * u64::from(w.mss) } else { w.nxt - w.una }
    }

    /// Whether data that was outstanding at the last timeout is still unacknowledged.
    fn after_timeout(&self, w: &Window) -> bool {
        !self.active && !self.is_over(w.una)
    }

    /// The reordering window: a segment is lost if it was sent at least this long before one that has arrived.
    fn reordering_window(&self, w: &Window, srtt: Span) -> Span {
        //= rfc8985#section-6.2: no waiting before reordering is seen, once a loss is likely
        let likely = w.una < self.recover || self.flight.sacked_segments() >= 3;
        if !self.facts.reordered && likely {
            return Span::ZERO;
        }
        self.reordering.window(self.facts.min_rtt.unwrap_or_default()).min(srtt)
    }

    /// Marks lost segments, and sets the timer for possibly reordered ones. Returns the number of newly lost bytes.
    //= rfc8985#section-6.2: step 5: RACK_detect_loss
    fn detect(&mut self, now: Time, w: &Window, srtt: Span) -> u64 {
        self.reorder_at = None;
        if self.facts.newest.1 == 0 {
            return 0;
        }
        let patience = self.facts.rtt + self.reordering_window(w, srtt);
        let (newest, mut latest) = (self.facts.newest, None);
        let (meter, losses) = (&mut self.meter, &mut self.losses);
        let lost = self.flight.judge(|sent| {
            //= rfc8985#section-6.2: RACK_sent_after, by the order of transmission: segments may leave in one instant
            if (sent.order, sent.to()) >= newest {
                return Judgement::Later;
            }
            let due = sent.at + patience;
            if due <= now {
                losses.note(meter, now, sent);
                return Judgement::Lost;
            }
            latest = latest.max(Some(due));
            Judgement::Wait
        });
        let kernel = self.kernel;
        self.reorder_at =
            latest.map(|due| if kernel { tick(now, due.since(now) + LONGER) } else { due });
        self.reorder_until = self.reorder_at.or(self.reorder_until);
        lost
    }

    /// The next new segment, with the bytes in the network bounded by the congestion window. Otherwise records the
    /// reason that there is none.
    fn new_data(&mut self, now: Time, core: &mut Core) -> Option<Chunk> {
        let (w, rtt, usage) = (&mut core.window, &core.timers.rtt, &mut core.usage);
        let (pipe, sent) = (self.in_network(w), self.sent(w));
        let calm = !self.active && !self.after_timeout(w);
        if let Some(bursts) = core.bursts.as_mut().filter(|_| calm) {
            let oldest = self.flight.first().map(|sent| sent.at);
            let (srtt, min_rtt) = (rtt.srtt(), self.facts.min_rtt);
            if !bursts.allow(w, &BurstInput { now, pipe, srtt, min_rtt, oldest }) {
                usage.note(w, sent, true);
                usage.validate(now, rtt.rto(), w, pipe, true);
                return None;
            }
        }
        let chunk = if self.flight.is_full() { None } else { new_data(w, pipe) };
        let chunk = chunk.or_else(|| core.bursts.as_ref()?.remainder(w, pipe));
        if chunk.is_some() {
            return chunk;
        }
        // In Linux a full window counts as used, even without more data (`tcp_write_xmit`).
        let unsent = w.nxt < w.last() || self.kernel;
        let full = pipe + u64::from(w.mss) > u64::from(w.cwnd);
        usage.note(w, sent, unsent && full);
        if calm {
            usage.validate(now, rtt.rto(), w, pipe, unsent && full);
        }
        self.note_app_limited(w);
        None
    }

    /// Records that the application has no more data: the delivery rate then does not show the capacity of the path.
    fn note_app_limited(&mut self, w: &Window) {
        let pipe = self.in_network(w);
        let full = pipe + u64::from(w.mss) > u64::from(w.cwnd);
        if w.nxt >= w.last() && !full && self.flight.lost() == 0 {
            self.meter.app_limited(pipe);
        }
    }
}

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
        self.undo.begin(w.una, self.flight.repeated());
        // In Linux the reduction is proportional to the window, not to the flight. One that a mark began continues.
        if self.slowing.take().is_none() {
            self.prr = match self.kernel {
                true => Prr::new(w.cwnd.into(), w.mss.into()),
                false => Prr::new(w.nxt - w.una, 1),
            };
        }
        self.probe.cancel();
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
            }
            // Another recovery may begin with this ACK. Reverting it must not revert this one.
            self.undo.remember(w.cwnd, w.ssthresh);
            if self.kernel && core.usage.may_grow(w) {
                self.open(core, ack);
            }
        }
        Progress::Over
    }
    //= rfc8985#section-6.3: RACK_mark_losses_on_RTO
    fn on_timeout(&mut self, now: Time, core: &mut Core) -> Option<u64> {
        self.prepare_undo(core);
        let w = &core.window;
        let patience = self.facts.rtt + self.reordering_window(w, core.timers.rtt.srtt());
        let counts = self.counts;
        if counts {
            // Many duplicate ACKs before a timeout show that reordering is overestimated (`tcp_enter_loss`).
            let usual = u64::from(DUPTHRESH);
            let calm = !self.active && self.is_over(w.una);
            if calm && self.flight.sacked_segments() as u64 >= usual {
                self.facts.reordered_by = self.facts.reordered_by.min(usual);
            }
            self.flight.forget_reports();
        }
        let (meter, losses) = (&mut self.meter, &mut self.losses);
        let late = |sent: &SentSegment| counts || sent.at + patience <= now;
        self.flight.expire(late, |sent| losses.note(meter, now, sent));
        self.losses.report(core);
        self.active = false;
        self.slowing = None;
        self.recover = core.window.nxt;
        self.stop();
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
    fn next_wake(&self) -> Option<Time> {
        [self.reorder_at, self.probe.due].into_iter().flatten().min()
    }
    fn stop(&mut self) {
        self.probe.reset();
        (self.reorder_at, self.reorder_until) = (None, None);
    }
    fn supplied(&mut self, w: &Window) {
        self.note_app_limited(w);
    }
    fn on_wake(&mut self, now: Time, core: &mut Core) -> Option<Woken> {
        if self.probe.expired(now) {
            if self.cancels_probe(now, core) {
                return None;
            }
            //= rfc8985#section-7.3: the retransmission timer restarts with the probe
            core.timers.rearm(now);
            return Some(Woken::Send(TcpKind::TailLossProbe));
        }
        self.reorder_at.filter(|at| *at <= now)?;
        self.count_from_head(now, &mut core.timers, true);
        self.last = Last { pipe: self.in_network(&core.window), ..Last::default() };
        self.facts.advanced = true;
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
        self.undo.holds = false;
    }
    fn undo(&mut self, core: &mut Core, info: &AckInfo<'_>) -> bool {
        if self.reneged {
            // The next timeout repairs everything (`tcp_check_sack_reneging`).
            self.undo.holds = true;
            return false;
        }
        let w = &core.window;
        self.last.reported |= self.counts && core.tally.plain && info.ack == w.una && w.max > w.una;
        self.kernel && self.undo_reaction(core, info)
    }
    fn slows_down(&self) -> bool {
        self.kernel
    }
    fn slow_down(&mut self, w: &Window) -> bool {
        if self.kernel {
            self.slowing = Some(w.max);
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
    fn detect_losses(&mut self, now: Time, core: &Core) -> u64 {
        if self.counts {
            return self.detect_by_count(now, &core.window);
        }
        // In Linux an ACK marks losses only if it reports an arrival (`tcp_rack_mark_lost`).
        if self.undo.holds || self.kernel && !core::mem::take(&mut self.facts.advanced) {
            return 0;
        }
        self.detect(now, &core.window, core.timers.rtt.srtt())
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
        }
        if self.active || self.slowing.is_some() {
            // In Linux an ACK that reports no arrival does not change the window (`tcp_cwnd_reduction`).
            if self.last.delivered > 0 || step.fresh && !self.kernel {
                self.reduce(w, step);
            }
        } else if (step.grows || self.grows_by_reports()) && core.usage.may_grow(w) {
            self.open(core, &step.ack);
        }
    }
    #[inline]
    fn settle(&mut self, core: &mut Core, step: &Step) {
        let (w, timers, now) = (&core.window, &mut core.timers, step.ack.now);
        if w.una >= w.last() {
            timers.persist = Due::NEVER;
        }
        if w.una >= w.max {
            timers.rexmt = Due::NEVER;
            self.probe.cancel();
        } else if step.moved && !timers.persist.is_set() {
            let probes = self.probe.due.is_some();
            timers.rearm(now);
            self.schedule_probe(now, w, timers, false);
            if self.reneged {
                let wait = Span(timers.rtt.srtt().0 / 2).max(RENEGED);
                timers.rexmt = Due::at(tick(now, wait));
            } else if self.probe.due.is_none() {
                self.count_from_head(now, timers, probes);
            }
        } else if self.last.reported {
            // A probe is needed only without reports.
            let probes = self.probe.due.is_some();
            self.probe.cancel();
            if self.kernel && !timers.persist.is_set() && self.answers_before_head(now) {
                timers.rearm(now);
                self.count_from_head(now, timers, probes);
            }
        }
        if !timers.rexmt.is_set() && !timers.persist.is_set() && w.una < w.nxt {
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
        let joined = core.bursts.is_some_and(|bursts| bursts.joined);
        let way = match joined {
            true => Way::Joined,
            false if chunk.cause == Cause::TailLossProbe => Way::Probe,
            false => Way::Alone,
        };
        self.flight.sent_as(now, (chunk.from, end), self.meter.stamp(flight), way);
        if new && !self.probe.ends_at(end) {
            self.schedule_probe(now, w, &mut core.timers, true);
        } else if chunk.from == w.una {
            core.timers.rearm(now);
        }
        first
    }

    /// A due probe first, then lost segments, then new data.
    #[inline]
    fn next_chunk(&mut self, core: &mut Core, now: Time) -> Choice {
        if let Some(probe) = self.tail_probe(&mut core.window) {
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
            && let Some((from, to)) = self.next_lost(&core.window)
        {
            let (w, usage) = (&core.window, &mut core.usage);
            let (pipe, sent) = (self.in_network(w), self.sent(w));
            if pipe > 0 && pipe + self.weight(w, to - from) > u64::from(w.cwnd) {
                // In Linux retransmissions do not count as use of the window (`tcp_xmit_retransmit_queue`).
                usage.note(w, sent, !self.kernel || w.nxt < w.last());
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
        self.new_data(now, core).map_or(Choice::Idle, Choice::Send)
    }
    fn held_back(&mut self, core: &mut Core, now: Time) {
        self.note_app_limited(&core.window);
        let calm = !self.active && !self.after_timeout(&core.window);
        let (pipe, sent) = (self.in_network(&core.window), self.sent(&core.window));
        let (w, usage) = (&mut core.window, &mut core.usage);
        let full = w.nxt < w.last() && pipe + u64::from(w.mss) > u64::from(w.cwnd);
        if usage.is_unnoted() {
            usage.note(w, sent, full);
            if calm {
                usage.validate(now, core.timers.rtt.rto(), w, pipe, full);
            }
        }
    }
    fn continues(&self, from: u64) -> bool {
        self.flight.continues(from)
    }
    fn min_rtt(&self) -> Option<Span> {
        self.facts.min_rtt
    }
    fn near_burst(&self, rate: Rate, w: &Window) -> u32 {
        let min_rtt = self.facts.min_rtt;
        if !self.kernel || !bursts::is_near(min_rtt, w.mss) {
            return 0;
        }
        let most = bursts::burst(rate.bps() / 8, min_rtt, w.mss).min(u32::MAX.into()) as u32;
        // At most half of the window (`tcp_cwnd_test`).
        most.min(w.cwnd / 2 / w.mss.max(1)).max(1)
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
    fn on_blocked(&mut self) {
        self.probe.cancel();
    }
}
