//! The sending half of a connection: what to send next, and what an ACK or a timer means.
//!
//! Positions are 64-bit stream offsets: 0 is the SYN, 1 the first byte, one past the last byte the FIN.

mod ack_info;
pub mod bbr;
mod congestion;
pub mod control;
pub mod cubic;
pub mod detect;
mod eln;
pub mod flight;
pub mod growth;
pub mod hystart;
pub mod in_flight;
mod integrated;
pub mod maxima;
mod nack;
pub mod newreno;
mod notices;
mod output;
pub mod pacing;
pub mod prr;
pub mod rack;
pub mod rate;
mod recorded;
pub mod recovery;
pub mod reno;
pub mod sack;
pub mod scoreboard;
pub mod slow_start;
pub mod smart;
pub mod snack;
pub mod tahoe;
pub mod tlp;
pub mod variant;
pub mod vegas;
pub mod window;

use crate::event::{Cause, Tcb, TcpKind};
use crate::units::Time;

use super::config::{AckpReaction, ElnReaction, Halving, TcpConfig, Variant};
use super::rtt::{Beat, RttEstimator};
pub use ack_info::AckInfo;
use control::AnyGrowth;
use detect::{Detect, Detector};
use growth::{Acked, Growth, Loss};
use integrated::Part;
use pacing::Pacer;
use recovery::{Progress, Recovery};
use slow_start::SlowStartAvoidance;
use variant::AnyRecovery;
pub use window::Window;

/// A piece of the stream to be sent now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Chunk {
    /// Position of its first byte.
    pub from: u64,
    /// Payload bytes; may be 0 when only the FIN is left.
    pub len: u32,
    /// Whether the FIN goes with it.
    pub fin: bool,
    /// Why it is sent.
    pub cause: Cause,
}

/// What became of an ACK: the event to report, if any.
pub type Verdict = Option<TcpKind>;

/// The sending half of a connection.
#[derive(Clone, Debug)]
pub struct Sender {
    /// Windows and edges.
    pub window: Window,
    rtt: RttEstimator,
    detector: Detector,
    growth: AnyGrowth,
    recovery: AnyRecovery,
    dupacks: u32,
    limited_transmit: bool,
    loss_window: u32,
    halve_at_each_timeout: bool,
    ackp: AckpReaction,
    ackp_karn: bool,
    ebsn: bool,
    quench: bool,
    rtt_from_syn: bool,
    /// Partial acknowledgements since the last complete one.
    ackp_run: u32,
    /// Loss notifications for the left edge since it last moved or the timer expired.
    notices: u32,
    /// Positions that were lost on the wireless link and have been sent again, oldest first.
    notified: Vec<u64>,
    /// Ranges that a base station misses, to be sent again.
    missing: Vec<(u64, u64)>,
    /// Negative acknowledgements since the left edge last moved or the timer expired.
    nacks: u32,
    eln: ElnReaction,
    /// A duplicate ACK has said that the left edge was lost on the wireless link.
    marked: bool,
    /// Time-outs since the left edge last moved.
    retries: u32,
    /// An echoed mark below this position belongs to a window that was reduced already.
    reduced_below: u64,
    /// The window was reduced, and the peer has not been told.
    reduced: bool,
    /// One segment is timed at a time: the position past its end, and when it was sent.
    timed: Option<(u64, Time)>,
    pacer: Option<Pacer>,
    /// When the pacer lets the next segment go, if one waits for that.
    pace_at: Option<Time>,
    rexmt_at: Option<Time>,
    persist_at: Option<Time>,
    persist_backoff: u32,
    probe_now: bool,
    /// Its part in a congestion control that connections share.
    integrated: Option<Box<Part>>,
}

impl Sender {
    /// A sender before its handshake. `mss` is corrected by [`Sender::established`].
    pub fn new(config: &TcpConfig, slow: Beat) -> Sender {
        Sender {
            window: Window::new(config),
            rtt: RttEstimator::new(config, slow),
            detector: Detector::new(config.variant, config),
            growth: AnyGrowth::new(config),
            recovery: AnyRecovery::new(config.variant, config),
            dupacks: 0,
            limited_transmit: config.limited_transmit,
            loss_window: config.loss_window,
            halve_at_each_timeout: config.halving == Halving::Window,
            ackp: config.ackp,
            ackp_karn: config.ackp_karn,
            ebsn: config.ebsn,
            quench: config.quench,
            rtt_from_syn: config.rtt_from_syn,
            ackp_run: 0,
            notices: 0,
            notified: Vec::new(),
            missing: Vec::new(),
            nacks: 0,
            eln: config.eln_reaction,
            marked: false,
            retries: 0,
            reduced_below: 0,
            reduced: false,
            timed: None,
            pacer: Pacer::new(config),
            pace_at: None,
            rexmt_at: None,
            persist_at: None,
            persist_backoff: 0,
            probe_now: false,
            integrated: Part::new(config),
        }
    }

    /// The SYN went out at `now` (again, if `again`).
    pub fn syn_sent(&mut self, now: Time, again: bool) {
        self.window.nxt = 1;
        self.window.max = 1;
        self.timed = (self.rtt_from_syn && !again).then_some((1, now));
        self.rexmt_at = Some(self.rtt.deadline(now, 1));
    }

    /// The handshake is complete: the segment size is settled, data may flow. `variant` is what the agreement with
    /// the peer has left of the configured one.
    pub fn established(
        &mut self,
        config: &TcpConfig,
        mss: u32,
        peer_window: u32,
        variant: Variant,
    ) {
        self.window.settle(config, mss, peer_window);
        if self.retries > 0 {
            //= rfc5681#section-3.1: after a lost SYN or SYN-ACK the initial window is one segment
            self.window.cwnd = self.window.mss;
        }
        self.retries = 0;
        if variant != config.variant {
            self.recovery = AnyRecovery::new(variant, config);
            self.detector = Detector::new(variant, config);
            if self.growth.steers() {
                // No rate is sampled without records of what is in flight.
                self.growth = AnyGrowth::Reno(SlowStartAvoidance::new(config));
            }
        }
        self.join();
    }

    /// Our SYN was acknowledged at `now`.
    pub fn syn_acked(&mut self, now: Time) {
        if let Some((_, sent)) = self.timed.take() {
            self.rtt.sample(sent, now);
        }
        self.window.una = self.window.una.max(1);
        self.rexmt_at = None;
    }

    /// Everything that was ever sent has been acknowledged, and there is nothing more to send.
    pub fn is_done(&self) -> bool {
        self.window.una >= self.window.last()
    }

    /// Nothing is in flight, and no window is probed: an ACK with nothing new leaves this sender as it is.
    pub fn is_idle(&self) -> bool {
        let w = &self.window;
        w.una == w.max && self.persist_at.is_none() && self.persist_backoff == 0
    }

    /// Whether segments are recorded one by one, so that each segment of the peer is looked at.
    pub fn keeps_records(&self) -> bool {
        matches!(self.recovery, AnyRecovery::Rack(_))
    }

    /// An acknowledgement that is not beyond what was sent. The caller sends afterwards.
    pub fn on_ack(&mut self, now: Time, info: &AckInfo<'_>) -> Verdict {
        let w = &mut self.window;
        let window_changed = info.window != w.peer;
        //= rfc9293#section-3.10.7.4: the window of an ACK older than the last one is out of date
        if info.ack >= w.una {
            w.set_peer(info.window);
        }
        if w.peer > 0 {
            self.persist_at = None;
            self.persist_backoff = 0;
        }
        if let AnyRecovery::Rack(_) = self.recovery {
            return self.on_recorded_ack(now, info);
        }
        let mut news = self.recovery.learn(w, info.sacked);
        if let Some(caused) = info.caused {
            news |= self.recovery.on_cause(w, caused);
        }
        if let Some(snack) = info.snack.filter(|_| info.ack >= w.una) {
            news |= self.recovery.on_snack(w, info.ack, snack);
        }
        if let Some(lost) = info.lost {
            if self.notify(now, lost) {
                // Duplicate ACKs that follow tell of the same loss and count towards nothing.
                self.advance(now, info);
                return Some(TcpKind::LossNotified);
            }
        }
        if info.ack > self.window.una {
            let verdict = self.advance(now, info);
            if info.snack.is_some() && self.recovery.unfinished() && !self.recovery.active() {
                let may = self.recovery.may_enter(&self.window);
                return if may { Some(self.enter_recovery(now)) } else { verdict };
            }
            return self.marked_edge(now, info, verdict);
        }
        let w = &mut self.window;
        // While a closed window is probed, the answers to the probes are no duplicates: no timer, no data sent.
        let outstanding = w.max > w.una && self.rexmt_at.is_some();
        let duplicate = info.ack == w.una
            && outstanding
            && if self.recovery.selective() {
                //= rfc6675#section-2: with SACK a duplicate ACK is one that reports something new
                news
            } else {
                //= rfc5681#section-2: no data, the same window
                !info.carries && !window_changed
            };
        if !duplicate {
            return None;
        }
        self.dupacks += 1;
        if self.is_integrated() {
            return self.on_integrated_dup_ack(now);
        }
        let w = &mut self.window;
        if self.recovery.active() {
            self.recovery.on_dup_ack(w);
            return Some(TcpKind::DupAck);
        }
        if self.notified.first() == Some(&w.una) {
            // The retransmission is under way; keep the ACK clock going, keep the window.
            w.extra = w.mss.saturating_mul(self.dupacks);
            return Some(TcpKind::DupAck);
        }
        if self.marked_duplicate(now, info) {
            return Some(TcpKind::LossNotified);
        }
        let w = &mut self.window;
        let lost = self.detector.lost(self.dupacks, self.recovery.sacked_above(w))
            || self.growth.overdue(now, w);
        if lost && self.recovery.may_enter(w) {
            return Some(self.enter_recovery(now));
        }
        if self.limited_transmit && self.dupacks < self.detector.threshold() {
            //= rfc3042#section-2: one new segment for each of the first two duplicate ACKs
            w.extra = w.mss.saturating_mul(self.dupacks);
        }
        Some(TcpKind::DupAck)
    }

    /// A loss was detected.
    fn enter_recovery(&mut self, now: Time) -> TcpKind {
        let w = &mut self.window;
        self.timed = None;
        w.extra = 0;
        if !self.recovery.keeps_window() {
            w.ssthresh = self.growth.after_loss(now, w, Loss::Detected);
            (self.reduced_below, self.reduced) = (w.max, true);
        }
        self.recovery.enter(w, self.dupacks);
        w.limited = 0;
        self.rexmt_at = Some(self.rtt.deadline(now, 1));
        TcpKind::FastRetransmit
    }

    /// The left edge moves to `info.ack`.
    fn advance(&mut self, now: Time, info: &AckInfo<'_>) -> Verdict {
        let w = &mut self.window;
        if info.ack <= w.una {
            return None;
        }
        let acked = (info.ack - w.una) as u32;
        let timed = self.timed.take_if(|(end, _)| info.ack >= *end).map(|(_, sent)| sent);
        if let Some(sent) = info.echoed.or(timed) {
            self.rtt.sample(sent, now);
        }
        let rtt = timed.map(|sent| now.since(sent));
        if let (Some(pacer), Some(rtt)) = (&mut self.pacer, rtt) {
            pacer.sample(rtt);
        }
        w.una = info.ack;
        w.nxt = w.nxt.max(info.ack);
        w.extra = 0;
        self.dupacks = 0;
        self.ackp_run = 0;
        self.notices = 0;
        self.nacks = 0;
        self.marked = false;
        self.retries = 0;
        w.limited = 0;
        self.notified.retain(|position| *position >= info.ack);
        let integrated = self.is_integrated();
        let mut verdict = TcpKind::Acked;
        let (mut rearm, mut repairing) = (true, true);
        let w = &mut self.window;
        if integrated {
            verdict = self.on_integrated_ack(&Acked { now, bytes: acked, rtt });
        } else if self.recovery.active() {
            match self.recovery.on_ack(w, acked) {
                Progress::Over => verdict = TcpKind::RecoveryEnded,
                Progress::Partial { rearm: again } => rearm = again,
            }
        } else {
            repairing = false;
        }
        if !integrated && (!repairing || self.recovery.keeps_window()) {
            self.growth.on_ack(&mut self.window, &Acked { now, bytes: acked, rtt });
        }
        let w = &mut self.window;
        if w.una >= w.last() {
            self.persist_at = None;
        }
        if w.una >= w.max {
            self.rexmt_at = None;
        } else if rearm {
            self.rexmt_at = Some(self.rtt.deadline(now, 1));
        }
        if verdict == TcpKind::RecoveryEnded && self.recovery.unfinished() {
            verdict = self.enter_recovery(now);
        }
        let w = &mut self.window;
        if self.growth.after_repair(now, w) && !self.recovery.active() && w.una < w.max {
            w.repair = Some((w.una, Cause::FastRetransmit));
        }
        Some(verdict)
    }

    /// When a timer of this sender expires next.
    pub fn next_wake(&self) -> Option<Time> {
        let own = [self.rexmt_at, self.persist_at, self.pace_at].into_iter().flatten().min();
        match self.recovery.next_wake() {
            None => own,
            Some(at) => Some(own.map_or(at, |own| own.min(at))),
        }
    }

    /// A timer may have expired. The caller sends afterwards, and gives up when the back-off is too high.
    pub fn on_wake(&mut self, now: Time) -> Verdict {
        self.note_wake();
        // What waited for the pacer may have been acknowledged meanwhile: then nobody polls.
        self.pace_at = self.pace_at.filter(|at| *at > now);
        if self.persist_at.is_some_and(|at| at <= now) {
            self.persist_at = None;
            self.persist_backoff = (self.persist_backoff + 1).min(6);
            self.probe_now = true;
            return Some(TcpKind::WindowProbe);
        }
        if self.tell_loss(now) {
            return Some(TcpKind::FastRetransmit);
        }
        if let AnyRecovery::Rack(_) = self.recovery
            && let Some(verdict) = self.on_recorded_wake(now)
        {
            return verdict;
        }
        if self.rexmt_at.is_some_and(|at| at <= now) {
            if let Some(at) = self.postponed(now) {
                self.rexmt_at = Some(at);
                return None;
            }
            self.on_timeout(now);
            return Some(TcpKind::Timeout);
        }
        None
    }

    fn on_timeout(&mut self, now: Time) {
        let w = &mut self.window;
        let cwnd = w.cwnd;
        //= rfc5681#section-3.1: the threshold is held while the same segment times out again
        // Linux does not lower it a second time for a window whose losses are being repaired either.
        let repairing = matches!(&self.recovery, AnyRecovery::Rack(rack) if !rack.over(w));
        let first = self.rtt.backoff() == 0 && w.una > 0 && !repairing;
        if first || self.halve_at_each_timeout {
            w.ssthresh = self.growth.after_loss(now, w, Loss::Timeout);
        }
        w.limited = 0;
        self.retries += 1;
        self.rtt.back_off();
        self.timed = None;
        self.dupacks = 0;
        self.notified.clear();
        self.notices = 0;
        self.missing.clear();
        self.nacks = 0;
        self.marked = false;
        self.recovery.expired(now, w, self.rtt.srtt());
        w.cwnd = w.mss * self.loss_window;
        w.extra = 0;
        w.repair = None;
        match &self.recovery {
            // What may still be under way counts on top, and records say what to send again.
            AnyRecovery::Rack(rack) if w.una > 0 => w.cwnd += rack.flight.pipe() as u32,
            _ => w.nxt = w.una,
        }
        w.again = Cause::TimeoutRetransmit;
        (self.reduced_below, self.reduced) = (w.max, true);
        self.rexmt_at = Some(self.rtt.deadline(now, 1));
        self.on_integrated_timeout(now, cwnd);
    }

    /// Time-outs since the peer last acknowledged something. A closed window is probed for ever, so probes do
    /// not count.
    //= rfc9293#section-3.8.3: the same segment, retransmitted so often
    //= rfc9293#section-3.8.6.1: a connection stays open as long as the peer answers probes
    pub fn retries(&self) -> u32 {
        self.retries
    }

    /// Stops all timers.
    pub fn stop(&mut self) {
        self.pace_at = None;
        self.rexmt_at = None;
        self.persist_at = None;
        self.recovery.stop();
    }

    /// A snapshot; `rcv_nxt` is the other half's.
    pub fn tcb(&self, rcv_nxt: u64) -> Tcb {
        let w = &self.window;
        Tcb {
            snd_una: w.una,
            snd_nxt: w.nxt,
            snd_max: w.max,
            rcv_nxt,
            cwnd: w.cwnd,
            ssthresh: w.ssthresh,
            snd_wnd: w.peer,
            dupacks: self.dupacks,
            srtt: self.rtt.srtt(),
            rttvar: self.rtt.rttvar(),
            rto: self.rtt.rto(),
            backoff: self.rtt.backoff(),
            in_recovery: self.recovery.active(),
        }
    }
}
