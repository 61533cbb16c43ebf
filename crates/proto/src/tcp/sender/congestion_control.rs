//! Window growth, or congestion control: growth of the congestion window by ACKs of new data, and its reduction by
//! losses.

pub mod any;
pub mod custom;
pub mod hystart;
pub mod linux_cubic;
pub mod linux_reno;
pub mod maxima;
pub mod pacing;
pub mod rate;
pub mod slow_start;
pub(in crate::tcp::sender) mod usage;

use crate::units::{Rate, Span, Time};

use self::rate::RateSample;
use super::{Chunk, Window, bursts};

/// An ACK that moves the left edge.
#[derive(Clone, Copy, Debug)]
pub struct Acked {
    /// Time of arrival.
    pub now: Time,
    /// Newly acknowledged bytes.
    pub bytes: u32,
    /// Exact round trip of the timed segment, if this ACK covers it and it was sent only once.
    pub rtt: Option<Span>,
}

/// The sample that each ACK gives to a congestion control that requires samples, in recovery or not.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// Time of arrival.
    pub now: Time,
    /// Newly acknowledged bytes, cumulatively or selectively.
    pub delivered: u32,
    /// Newly lost bytes.
    pub lost: u32,
    /// Marked bytes that this ACK reports, and those before it without a sample
    /// ([`AckInfo::ce_bytes`](super::AckInfo)).
    pub ce_bytes: u32,
    /// Estimated bytes in the network, before this ACK and after it.
    pub pipe: (u64, u64),
    /// Round trip of the newest acknowledged segment that was sent once.
    pub rtt: Option<Span>,
    /// The delivery rate.
    pub rate: Option<RateSample>,
    /// Bytes delivered since the start of the connection.
    pub total: u64,
    /// State of loss recovery.
    pub repair: Repair,
    /// Whether a tail loss probe has repaired a loss without other evidence.
    pub repaired: bool,
}

/// A segment that was marked as lost.
#[derive(Clone, Copy, Debug)]
pub struct Lost {
    /// Time of detection.
    pub now: Time,
    /// First position.
    pub from: u64,
    /// Length in bytes.
    pub bytes: u64,
    /// Bytes in the network when it was sent, including it.
    pub in_flight: u64,
    /// Bytes lost since it was sent, including it.
    pub lost: u64,
    /// Whether the application had too little to send at that time.
    pub app_limited: bool,
    /// Bytes delivered since the start of the connection.
    pub total: u64,
}

/// State of loss recovery.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Repair {
    /// No recovery.
    None,
    /// Fast recovery.
    Recovery,
    /// Recovery after a timeout.
    Timeout,
}

/// Evidence of the loss for which the window must shrink.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Loss {
    /// ACKs have shown a loss, and recovery begins.
    Detected,
    /// The retransmission timer expired.
    Timeout,
}

/// Use of the samples of ACKs by a congestion control; each includes those before it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum SampleUse {
    /// None.
    Ignored,
    /// They inform it before the window may grow, if there are any.
    Optional,
    /// A sender without samples must use Reno instead.
    Required,
    /// They set the window: neither recovery nor [`CongestionControl::on_ack`] changes it.
    SetsWindow,
}

/// Grows the congestion window outside of recovery, and determines its reductions.
pub trait CongestionControl {
    /// Asserts the invariants of the growth.
    fn check(&self, window: &Window) {
        let _ = window;
    }

    /// Whether a model of the path, not losses, sets the window.
    fn has_model() -> bool
    where
        Self: Sized,
    {
        false
    }

    /// Records the round trip `rtt` of the handshake, which ends at `now`.
    fn opened(&mut self, now: Time, window: &Window, rtt: Span) {
        let _ = (now, window, rtt);
    }

    /// Grows the window at an ACK of new data outside of recovery.
    fn on_ack(&mut self, window: &mut Window, ack: &Acked);

    /// Records the round trip `rtt` of a segment that was sent once. Called whether the left edge has moved or not.
    fn on_round_trip(&mut self, now: Time, window: &mut Window, rtt: Span) {
        let _ = (now, window, rtt);
    }

    /// The slow-start threshold after a loss. The recovery reduces the congestion window to it.
    fn ssthresh_after_loss(&mut self, now: Time, window: &Window, loss: Loss) -> u32 {
        let _ = now;
        window.half(loss)
    }

    /// Records a timeout, whether it has lowered the threshold or not.
    fn timed_out(&mut self) {}

    /// Handles a spurious loss: restores the window to at least `prior`.
    fn undone(&mut self, window: &mut Window, prior: u32) {
        window.cwnd = window.cwnd.max(prior);
    }

    /// The slow-start threshold after a congestion mark, at most once for each window of data; `None` leaves the
    /// window. By default it is that after a loss. A control that depends on the number of marked bytes overrides
    /// this.
    //= rfc3168#section-6.1.2: the same as for a loss
    fn ssthresh_after_mark(&mut self, now: Time, window: &Window) -> Option<u32> {
        Some(self.ssthresh_after_loss(now, window, Loss::Detected))
    }

    /// Whether it reacts to each mark by a small reduction (RFC 9331 section 4.3). Its packets then carry ECT(1), if
    /// the peer counts marks.
    fn scalable(&self) -> bool {
        false
    }

    /// Its use of [`CongestionControl::on_sample`].
    fn sample_use(&self) -> SampleUse {
        SampleUse::Ignored
    }

    /// Processes the sample of an ACK. Only senders with records of their segments call this.
    fn on_sample(&mut self, window: &mut Window, sample: &Sample) {
        let _ = (window, sample);
    }

    /// Records a lost segment, before the sample of the ACK that has shown the loss. Called only if samples set the
    /// window.
    fn on_lost(&mut self, window: &Window, lost: &Lost) {
        let _ = (window, lost);
    }

    /// Records that a segment is sent while no other is outstanding. `idle` is whether the application had no data to
    /// send before.
    fn restart(&mut self, now: Time, idle: bool) {
        let _ = (now, idle);
    }

    /// Records a sent segment.
    fn on_sent(&mut self, now: Time, window: &Window, chunk: &Chunk) {
        let _ = (now, window, chunk);
    }

    /// Whether the segment at the left edge has waited so long that it counts as lost after any number of duplicate
    /// ACKs. Called at duplicate ACKs outside of recovery.
    fn overdue(&self, now: Time, window: &Window) -> bool {
        let _ = (now, window);
        false
    }

    /// Whether a recent repair makes it likely that the segment at the new left edge is lost as well.
    fn after_repair(&mut self, now: Time, window: &Window) -> bool {
        let _ = (now, window);
        false
    }

    /// The pacing rate, if the congestion control determines one. Otherwise a paced sender spreads its window over a
    /// round trip.
    fn pacing(&self) -> Option<Rate> {
        None
    }

    /// Bursts per second at this rate, with the rules of Linux.
    fn bursts_per_second(&self) -> u64 {
        bursts::BURST
    }
}
