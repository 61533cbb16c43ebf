//! The sender of a connection: selection of the next segment, and reactions to ACKs and timers.
//!
//! Positions are 64-bit stream offsets: 0 is the SYN, 1 the first byte, one past the last byte the FIN.
//!
//! - [`systems`] has a file for each sender of the registry.
//! - [`congestion_control`] has growth and reduction of the window, and [`recovery`] has loss detection with recovery,
//!   including parts that several senders share.
//! - The other modules are the same for all senders.

mod ack;
mod ack_info;
pub(in crate::tcp) mod buffers;
mod bursts;
pub mod common;
pub mod congestion_control;
mod ecn;
mod family;
pub mod limits;
mod moving;
pub mod notices;
mod output;
pub mod recovery;
pub(in crate::tcp) mod registry;
pub mod systems;
mod timeout;
pub mod window;

use std::sync::Arc;

use crate::event::{Cause, Tcb, TcpKind};
use crate::units::{Due, Rate, Span, Time};

use super::Settings;
use super::config::{AckpReaction, GrowthRule, TcpConfig, Variant};
pub use ack_info::AckInfo;
pub use common::{Core, Purpose, Tally, Timers};
use congestion_control::any::AnyCongestionControl;
use congestion_control::slow_start::SlowStartAvoidance;
use congestion_control::{CongestionControl, SampleUse};
use limits::LimitTimes;
use recovery::any::AnyRecovery;
use recovery::detect::{Detect, Detector};
pub use window::Window;

/// A segment of the stream that is sent now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Chunk {
    /// Position of its first byte.
    pub from: u64,
    /// Payload bytes; may be 0 when only the FIN is left.
    pub len: u32,
    /// Whether it carries the FIN.
    pub fin: bool,
    /// Reason for sending it.
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

/// The event to report for an ACK or a timer, if any.
pub type Verdict = Option<TcpKind>;

/// A sender with the static type of its recovery. The procedures for ACKs, timers and sending are compiled for each
/// recovery, so that a variant has no costs of the others.
pub(super) struct SenderWith<'a, R> {
    core: &'a mut Core,
    recovery: &'a mut R,
}

/// The sender of a connection.
#[derive(Clone, Debug)]
pub struct Sender {
    /// Shared state of loss detection, recovery and growth: windows, timers, counters.
    pub core: Core,
    recovery: AnyRecovery,
    ackp: AckpReaction,
    ackp_karn: bool,
    ebsn: bool,
    quench: bool,
    rtt_from_syn: bool,
}

impl Sender {
    /// Asserts the invariants of windows, timers, loss recovery and growth.
    pub fn check(&self) {
        self.core.check();
        self.recovery.check(&self.core.window);
        self.core.congestion_control.check(&self.core.window);
    }

    /// Reads words of the cache lines that each ACK needs, as a prefetch. The result has no meaning.
    #[inline]
    pub fn touch(&self) -> u64 {
        let core = &self.core;
        let words = core.timers.persist.or_never().0 ^ core.window.una ^ core.reduced_below;
        words ^ u64::from(core.window.cwnd ^ core.tally.dupacks) ^ u64::from(self.ebsn)
    }

    /// A sender before its handshake. [`Sender::established`] sets the segment size.
    pub fn new(config: &Arc<Settings>) -> Sender {
        Sender {
            core: Core::new(config),
            recovery: AnyRecovery::new(config.variant, config),
            ackp: config.ackp,
            ackp_karn: config.ackp_karn,
            ebsn: config.ebsn,
            quench: config.quench,
            rtt_from_syn: config.rtt_from_syn,
        }
    }

    /// Records that the SYN was sent at `now`; `again` is whether it was a retransmission.
    pub fn syn_sent(&mut self, now: Time, again: bool) {
        let (w, timers) = (&mut self.core.window, &mut self.core.timers);
        w.nxt = 1;
        w.max = 1;
        timers.timed = (self.rtt_from_syn && !again).then_some((1, now));
        timers.rearm(now);
    }

    /// Completes the handshake with the negotiated segment size. `variant` is the best one that the negotiated options
    /// permit; `reports` is whether the peer reports segments (SACK).
    pub fn established(
        &mut self,
        config: &TcpConfig,
        mss: u32,
        peer_window: u32,
        variant: Variant,
        reports: bool,
    ) {
        let core = &mut self.core;
        core.window.settle(config, mss, peer_window);
        // Linux ignores one loss, since its first timeout is only 1 s (`tcp_init_transfer`).
        if core.tally.retries > u32::from(config.growth == GrowthRule::Linux) {
            //= rfc5681#section-3.1: after a lost SYN or SYN-ACK the initial window is one segment
            core.window.cwnd = core.window.mss;
        }
        if core.tally.retries > 0 {
            core.timers.rtt.handshake_timed_out();
        }
        core.tally.retries = 0;
        if variant != config.variant {
            self.recovery = AnyRecovery::new(variant, config);
            core.detector = Detector::new(variant, config);
            if variant != Variant::Rack
                && core.congestion_control.sample_use() >= SampleUse::Required
            {
                // Without records of the segments in flight there are no samples.
                core.congestion_control =
                    AnyCongestionControl::Reno(SlowStartAvoidance::new(config));
            }
        }
        if !reports {
            self.recovery.without_reports();
        }
        if let Some(part) = self.recovery.part() {
            part.join(&mut core.window);
        }
    }

    /// Replaces a growth that depends on the number of marks by Reno, since the peer does not count marks.
    pub fn without_counts(&mut self, config: &TcpConfig) {
        if self.core.congestion_control.scalable() {
            self.core.congestion_control = AnyCongestionControl::reno(config);
        }
    }

    /// Records that this end's SYN was acknowledged at `now`. `echoed` is when the segment was sent whose timestamp
    /// the ACK echoes.
    pub fn syn_acked(&mut self, now: Time, echoed: Option<Time>) {
        let (w, timers) = (&mut self.core.window, &mut self.core.timers);
        let echoed = echoed.filter(|_| self.rtt_from_syn);
        if let Some(sent) = timers.timed.take().map(|(_, sent)| sent).or(echoed) {
            timers.rtt.sample(sent, now, (1, w.nxt));
            self.recovery.opened(now.since(sent));
            self.core.congestion_control.opened(now, w, now.since(sent));
        }
        w.una = w.una.max(1);
        timers.clear();
    }

    /// Whether all data and the FIN are acknowledged, and there is no more to send.
    pub fn is_done(&self) -> bool {
        self.core.window.una >= self.core.window.last()
    }

    /// Whether no data is in flight and no closed window is probed. An ACK without news does not change such a sender.
    pub fn is_idle(&self) -> bool {
        let (w, timers) = (&self.core.window, &self.core.timers);
        w.una == w.max && !timers.persist.is_set() && timers.persist_backoff == 0
    }

    /// Whether this sender records each segment in flight, and therefore processes every segment of the peer.
    pub fn records_segments(&self) -> bool {
        !self.core.detector.counts()
    }

    /// Whether there may be something to send. It is always false at an end that only receives.
    #[inline]
    pub fn has_work(&self) -> bool {
        let w = &self.core.window;
        w.nxt < w.last()
            || self.core.window_withdrawn()
            || w.repair.is_some()
            || self.core.tally.has_missing()
            || self.core.probe_now
            || self.recovery.has_work()
    }

    /// Number of new segments that the congestion window permits in one packet of Linux.
    pub fn quota(&self) -> u64 {
        let core = &self.core;
        let outstanding = self.recovery.outstanding(&core.window);
        let gone = outstanding.sacked + outstanding.lost.saturating_sub(outstanding.retransmitted);
        let pipe = u64::from(outstanding.segments.saturating_sub(gone));
        core.bursts.as_ref().map_or(0, |bursts| {
            let most = bursts.most(&core.window, core.timers.rtt.srtt(), outstanding.min_rtt);
            bursts::quota(&core.window, pipe, most)
        })
    }

    /// Time of the next timer.
    #[inline]
    pub fn next_wake(&self) -> Option<Time> {
        let timers = &self.core.timers;
        let own = timers.expiry().or_never().min(timers.persist.or_never());
        own.min(self.core.paced().or_never()).or_none()
    }

    /// Timeouts since the peer last acknowledged new data. Probes of a closed window do not count, since they never
    /// end.
    //= rfc9293#section-3.8.3: the number of retransmissions of the same segment
    //= rfc9293#section-3.8.6.1: a connection stays open as long as the peer answers probes
    pub fn retries(&self) -> u32 {
        self.core.tally.retries
    }

    /// Time since the first of these timeouts.
    pub fn silence(&self, now: Time) -> Span {
        now.since(self.core.tally.first_timeout)
    }

    /// Window probes since the last ACK of the peer, with retransmissions into a withdrawn window.
    pub fn unanswered_probes(&self) -> u32 {
        self.core.timers.unanswered
    }

    /// Makes data up to the position `end` available. As in Linux (`tcp_sendmsg`), a write after all earlier data was
    /// sent shows that the application limits the rate, if the window has room.
    pub fn supply(&mut self, end: u64) {
        self.recovery.supplied(&self.core.window);
        self.core.window.end = end;
        self.core.bursts.iter_mut().for_each(|bursts| bursts.buffers.cut(end));
    }

    /// Stops all timers.
    pub fn stop(&mut self) {
        self.core.pacer.iter_mut().for_each(|pacer| pacer.waits = Due::NEVER);
        self.core.timers.clear();
        self.core.timers.persist = Due::NEVER;
        self.recovery.stop();
    }

    /// How long each limit was in force until `now`, from the first data on.
    pub fn limits(&self, now: Time) -> LimitTimes {
        self.core.limits.until(now)
    }

    /// Enables or disables tail loss probes.
    pub fn set_tail_probes(&mut self, on: bool) {
        self.recovery.set_tail_probes(on);
    }

    /// Marks the unacknowledged data of this end's SYN, up to the position `to`, as sent and lost. Senders without
    /// records of segments ignore this.
    pub fn lose_early(&mut self, now: Time, to: u64) {
        self.recovery.lose_early(now, &mut self.core, to);
    }

    /// Handles a smaller segment size: splits larger segments in flight, marks them as lost and retransmits them.
    /// Senders without records of segments retransmit everything.
    pub fn split_flight(&mut self, now: Time) {
        self.recovery.split_flight(now, &mut self.core);
    }

    /// Counts of the segments in flight.
    pub fn outstanding(&self) -> recovery::Outstanding {
        self.recovery.outstanding(&self.core.window)
    }

    /// Replaces the growth of the congestion window, and the pacer, by those of `config`.
    pub fn replace_growth(&mut self, now: Time, config: &TcpConfig) {
        self.core.congestion_control = AnyCongestionControl::new(config);
        if let Some(rtt) = self.recovery.outstanding(&self.core.window).min_rtt {
            self.core.congestion_control.opened(now, &self.core.window, rtt);
        }
        self.core.pacer = congestion_control::pacing::Pacer::new(config).map(Box::new);
    }

    /// Bounds the sending rate by `most` (`SO_MAX_PACING_RATE`).
    pub fn limit_pacing(&mut self, config: &TcpConfig, most: Rate) {
        match &mut self.core.pacer {
            Some(pacer) => pacer.limit(most),
            none => {
                let w = &self.core.window;
                let sent = w.max.saturating_sub(1).div_ceil(w.mss.max(1).into());
                *none =
                    congestion_control::pacing::Pacer::limited(config, most, sent).map(Box::new);
            }
        }
    }

    /// A snapshot of the control block. `rcv_nxt` is the receiver's next expected position.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The FIN has the last position of a chunk.
    #[test]
    fn a_chunk_is_cut_at_a_position() {
        for (fin, to, len, ends) in [
            (true, 112, 10, true),
            (true, 111, 10, true),
            (true, 110, 10, false),
            (true, 109, 9, false),
            (true, 100, 0, false),
            (true, 99, 0, false),
            (false, 111, 10, false),
            (false, 105, 5, false),
        ] {
            let chunk = Chunk { from: 100, len: 10, fin, cause: Cause::Data };
            let cut = chunk.cut(to);
            assert_eq!((cut.from, cut.len, cut.fin), (100, len, ends), "{fin} to {to}");
            assert!(cut.len == 0 || cut.end() <= to, "{cut:?} lies above {to}");
        }
    }
}
