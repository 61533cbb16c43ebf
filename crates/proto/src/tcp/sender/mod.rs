//! The sending half of a connection: what to send next, and what an ACK or a timer means.
//!
//! Positions are 64-bit stream offsets: 0 is the SYN, 1 the first byte, one past the last byte the FIN.

mod ack;
mod ack_info;
pub mod bbr;
pub mod common;
mod congestion;
pub mod control;
pub mod cubic;
pub mod detect;
pub mod eln;
mod family;
pub mod flight;
pub mod growth;
pub mod hystart;
pub mod integrated;
pub mod maxima;
mod nack;
mod named;
pub mod newreno;
pub mod notices;
mod output;
pub mod pacing;
pub mod prr;
pub mod rack;
pub mod rate;
pub mod recovery;
pub mod reno;
pub mod right_edge;
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

use super::config::{AckpReaction, ElnReaction, Halving, TcpConfig, TimerOrder, Variant};
use super::rtt::Beat;
pub use ack_info::AckInfo;
pub use common::{Core, Tally, Timers};
use control::AnyGrowth;
use detect::{Detect, Detector};
use growth::{Growth, Loss};
use pacing::Pacer;
use recovery::{Recovery, Step, Woken};
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

impl Chunk {
    /// One past its last position.
    pub fn end(&self) -> u64 {
        self.from + u64::from(self.len) + u64::from(self.fin)
    }

    /// The part of it below the position `to`.
    fn cut(mut self, to: u64) -> Chunk {
        self.len = self.len.min(to.saturating_sub(self.from) as u32);
        self.fin &= self.from + u64::from(self.len) < to;
        self
    }
}

/// What became of an ACK: the event to report, if any.
pub type Verdict = Option<TcpKind>;

/// The sending half of a connection.
#[derive(Clone, Debug)]
pub struct Sender {
    /// What the three seams work on together: windows, timers, counters.
    pub core: Core,
    detector: Detector,
    recovery: AnyRecovery,
    limited_transmit: bool,
    loss_window: u32,
    halve_at_each_timeout: bool,
    ackp: AckpReaction,
    ackp_karn: bool,
    ebsn: bool,
    quench: bool,
    fast_backoff: bool,
    stamps: bool,
    rtt_from_syn: bool,
    eln: ElnReaction,
    /// An echoed mark below this position belongs to a window that was reduced already.
    reduced_below: u64,
    /// The window was reduced, and the peer has not been told.
    reduced: bool,
    pacer: Option<Pacer>,
    /// When the pacer lets the next segment go, if one waits for that.
    pace_at: Option<Time>,
    /// The peer's window is to be probed now.
    probe_now: bool,
}

impl Sender {
    /// A sender before its handshake. `mss` is corrected by [`Sender::established`].
    pub fn new(config: &TcpConfig, slow: Beat) -> Sender {
        Sender {
            core: Core::new(config, slow),
            detector: Detector::new(config.variant, config),
            recovery: AnyRecovery::new(config.variant, config),
            limited_transmit: config.limited_transmit,
            loss_window: config.loss_window,
            halve_at_each_timeout: config.halving == Halving::Window,
            ackp: config.ackp,
            ackp_karn: config.ackp_karn,
            ebsn: config.ebsn,
            quench: config.quench,
            fast_backoff: config.fast_backoff,
            stamps: config.stamps,
            rtt_from_syn: config.rtt_from_syn,
            eln: config.eln_reaction,
            reduced_below: 0,
            reduced: false,
            pacer: Pacer::new(config),
            pace_at: None,
            probe_now: false,
        }
    }

    /// The SYN went out at `now` (again, if `again`).
    pub fn syn_sent(&mut self, now: Time, again: bool) {
        let (w, timers) = (&mut self.core.window, &mut self.core.timers);
        w.nxt = 1;
        w.max = 1;
        timers.timed = (self.rtt_from_syn && !again).then_some((1, now));
        timers.rearm(now);
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
        let core = &mut self.core;
        core.window.settle(config, mss, peer_window);
        if core.tally.retries > 0 {
            //= rfc5681#section-3.1: after a lost SYN or SYN-ACK the initial window is one segment
            core.window.cwnd = core.window.mss;
        }
        core.tally.retries = 0;
        if variant != config.variant {
            self.recovery = AnyRecovery::new(variant, config);
            self.detector = Detector::new(variant, config);
            if core.growth.steers() {
                // No rate is sampled without records of what is in flight.
                core.growth = AnyGrowth::Reno(SlowStartAvoidance::new(config));
            }
        }
        if let Some(part) = self.recovery.part() {
            part.join(&mut core.window);
        }
    }

    /// Our SYN was acknowledged at `now`.
    pub fn syn_acked(&mut self, now: Time) {
        let (w, timers) = (&mut self.core.window, &mut self.core.timers);
        if let Some((_, sent)) = timers.timed.take() {
            timers.rtt.sample(sent, now);
        }
        w.una = w.una.max(1);
        timers.rexmt = None;
    }

    /// Everything that was ever sent has been acknowledged, and there is nothing more to send.
    pub fn is_done(&self) -> bool {
        self.core.window.una >= self.core.window.last()
    }

    /// Nothing is in flight, and no window is probed: an ACK with nothing new leaves this sender as it is.
    pub fn is_idle(&self) -> bool {
        let (w, timers) = (&self.core.window, &self.core.timers);
        w.una == w.max && timers.persist.is_none() && timers.persist_backoff == 0
    }

    /// Whether segments are recorded one by one, so that each segment of the peer is looked at.
    pub fn keeps_records(&self) -> bool {
        !self.detector.counts()
    }

    /// When a timer of this sender expires next.
    pub fn next_wake(&self) -> Option<Time> {
        let timers = &self.core.timers;
        let own = [timers.rexmt, timers.persist, self.pace_at].into_iter().flatten().min();
        match self.recovery.next_wake() {
            None => own,
            Some(at) => Some(own.map_or(at, |own| own.min(at))),
        }
    }

    /// A timer may have expired. The caller sends afterwards, and gives up when the back-off is too high.
    pub fn on_wake(&mut self, now: Time) -> Verdict {
        self.recovery.called();
        // What waited for the pacer may have been acknowledged meanwhile: then nobody polls.
        self.pace_at = self.pace_at.filter(|at| *at > now);
        let timers = &mut self.core.timers;
        if timers.persist.is_some_and(|at| at <= now) {
            timers.persist = None;
            timers.persist_backoff = (timers.persist_backoff + 1).min(6);
            self.probe_now = true;
            return Some(TcpKind::WindowProbe);
        }
        match self.recovery.on_wake(now, &mut self.core) {
            Some(Woken::Acts(kind)) => return Some(kind),
            Some(Woken::Judges) => {
                let begins = self.react(&mut Step::new(now), false);
                return begins.then_some(TcpKind::FastRetransmit);
            }
            None => {}
        }
        if self.core.timers.rexmt.is_some_and(|at| at <= now) {
            if let Some(at) = self.recovery.postponed(now, &self.core.timers) {
                self.core.timers.rexmt = Some(at);
                return None;
            }
            self.on_timeout(now);
            return Some(TcpKind::Timeout);
        }
        None
    }

    fn on_timeout(&mut self, now: Time) {
        let core = &mut self.core;
        let w = &mut core.window;
        //= rfc5681#section-3.1: the threshold is held while the same segment times out again
        let first = core.timers.rtt.backoff() == 0 && w.una > 0 && !self.recovery.unrepaired(w);
        if first || self.halve_at_each_timeout {
            w.ssthresh = core.growth.after_loss(now, w, Loss::Timeout);
        }
        let late = core.timers.order == TimerOrder::First;
        if !late {
            core.timers.rtt.back_off();
        }
        core.timers.timed = None;
        core.tally.timed_out();
        let under_way = self.recovery.on_timeout(now, core);
        let w = &mut core.window;
        w.cwnd = w.mss * self.loss_window;
        w.end_extra();
        w.repair = None;
        match under_way {
            Some(bytes) => w.cwnd += bytes as u32,
            None => w.nxt = w.una,
        }
        w.again = Cause::TimeoutRetransmit;
        (self.reduced_below, self.reduced) = (w.max, true);
        core.timers.rearm(now);
        if late {
            core.timers.rtt.back_off();
        }
    }

    /// Time-outs since the peer last acknowledged something. A closed window is probed for ever, so probes do
    /// not count.
    //= rfc9293#section-3.8.3: the same segment, retransmitted so often
    //= rfc9293#section-3.8.6.1: a connection stays open as long as the peer answers probes
    pub fn retries(&self) -> u32 {
        self.core.tally.retries
    }

    /// Stops all timers.
    pub fn stop(&mut self) {
        self.pace_at = None;
        (self.core.timers.rexmt, self.core.timers.persist) = (None, None);
        self.recovery.stop();
    }

    /// A snapshot; `rcv_nxt` is the other half's.
    pub fn tcb(&self, rcv_nxt: u64) -> Tcb {
        let (w, rtt) = (&self.core.window, &self.core.timers.rtt);
        Tcb {
            snd_una: w.una,
            snd_nxt: w.nxt,
            snd_max: w.max,
            rcv_nxt,
            cwnd: w.cwnd,
            ssthresh: w.ssthresh,
            snd_wnd: w.peer,
            dupacks: self.core.tally.dupacks,
            srtt: rtt.srtt(),
            rttvar: rtt.rttvar(),
            rto: rtt.rto(),
            backoff: rtt.backoff(),
            in_recovery: self.recovery.active(),
        }
    }
}
