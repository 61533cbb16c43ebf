//! Window growth, or congestion control: how an ACK for new data opens the congestion window, and how far a loss
//! closes it.

use crate::units::{Rate, Span, Time};

use super::rate::RateSample;
use super::{Chunk, Window};

/// What an ACK that moved the left edge tells.
#[derive(Clone, Copy, Debug)]
pub struct Acked {
    /// When it came.
    pub now: Time,
    /// Bytes that it newly acknowledges.
    pub bytes: u32,
    /// The exact round trip of the segment that was being timed, if this ACK covers it and it was sent only once.
    pub rtt: Option<Span>,
}

/// What every ACK tells a congestion control that steers by samples, in recovery or not.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// When it came.
    pub now: Time,
    /// Bytes that it newly acknowledges, cumulatively or selectively.
    pub delivered: u32,
    /// Bytes that it shows to be lost.
    pub lost: u32,
    /// Bytes that arrived marked, as this ACK and those before it that gave no sample tell
    /// ([`AckInfo::ce_bytes`](super::AckInfo)).
    pub ce_bytes: u32,
    /// Bytes believed to be in the network, before this ACK and after it.
    pub pipe: (u64, u64),
    /// The round trip of the newest segment that it acknowledges and that was sent once.
    pub rtt: Option<Span>,
    /// The rate of delivery.
    pub rate: Option<RateSample>,
    /// Bytes delivered in the life of the connection.
    pub total: u64,
    /// Whether a loss is being repaired.
    pub repair: Repair,
    /// Whether a tail loss probe has repaired a loss that nothing else showed.
    pub repaired: bool,
}

/// A segment that was found to be lost.
#[derive(Clone, Copy, Debug)]
pub struct Lost {
    /// When it was found.
    pub now: Time,
    /// Its first position.
    pub from: u64,
    /// Its bytes.
    pub bytes: u64,
    /// Bytes in the network when it was sent, with it.
    pub in_flight: u64,
    /// Bytes found to be lost since it was sent, with it.
    pub lost: u64,
    /// Whether the application had too little to send then.
    pub app_limited: bool,
    /// Bytes delivered in the life of the connection.
    pub total: u64,
}

/// Whether a loss is being repaired.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Repair {
    /// None is.
    None,
    /// In fast recovery.
    Recovery,
    /// After a time-out.
    Timeout,
}

/// Why the window must shrink.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Loss {
    /// Acknowledgements showed a loss; recovery begins.
    Detected,
    /// The retransmission timer expired.
    Timeout,
}

/// Opens the congestion window outside of recovery, and says how far it closes.
pub trait Growth {
    /// The handshake took the round trip `rtt`, which ends at `now`.
    fn opened(&mut self, now: Time, rtt: Span) {
        let _ = (now, rtt);
    }

    /// The left edge has moved, outside of recovery.
    fn on_ack(&mut self, window: &mut Window, ack: &Acked);

    /// An ACK gave the round trip `rtt` of a segment that was sent once, whether the left edge has moved or not.
    fn on_round_trip(&mut self, now: Time, window: &mut Window, rtt: Span) {
        let _ = (now, window, rtt);
    }

    /// The slow-start threshold after a loss. The recovery takes the congestion window down to it in its own way.
    fn after_loss(&mut self, now: Time, window: &Window, loss: Loss) -> u32 {
        let _ = now;
        window.half(loss)
    }

    /// The last loss was none: the window goes back to `prior`, unless it has grown beyond that.
    fn undone(&mut self, window: &mut Window, prior: u32) {
        window.cwnd = window.cwnd.max(prior);
    }

    /// The slow-start threshold and window after a mark, at most once a window of data; nothing if the window stays. As
    /// after a loss, unless it goes by how many bytes are marked.
    //= rfc3168#section-6.1.2: the same as for a loss
    fn after_mark(&mut self, now: Time, window: &Window) -> Option<u32> {
        Some(self.after_loss(now, window, Loss::Detected))
    }

    /// Whether it answers to each mark by a little (RFC 9331 section 4.3), so that what it sends may say so: ECT(1),
    /// if the peer counts marks.
    fn scalable(&self) -> bool {
        false
    }

    /// Whether it sets the window by [`Growth::on_sample`]: then neither recovery nor `on_ack` touches it.
    fn steers(&self) -> bool {
        false
    }

    /// Whether it is told by [`Growth::on_sample`], before its window may grow.
    fn samples(&self) -> bool {
        self.steers()
    }

    /// Whether a sender without samples must replace it by Reno.
    fn requires_samples(&self) -> bool {
        self.samples()
    }

    /// An ACK has been taken in. Only senders that keep records of their segments call this.
    fn on_sample(&mut self, window: &mut Window, sample: &Sample) {
        let _ = (window, sample);
    }

    /// A segment was found to be lost; the sample of the ACK that showed it follows. Only those that steer are told.
    fn on_lost(&mut self, window: &Window, lost: &Lost) {
        let _ = (window, lost);
    }

    /// Something is sent after nothing was outstanding; `idle` if the application had nothing to send before.
    fn restart(&mut self, now: Time, idle: bool) {
        let _ = (now, idle);
    }

    /// A piece goes out.
    fn on_sent(&mut self, now: Time, window: &Window, chunk: &Chunk) {
        let _ = (now, window, chunk);
    }

    /// A duplicate ACK has come, outside of recovery: whether the left edge has been waiting for so long that it
    /// counts as lost whatever their number.
    fn overdue(&self, now: Time, window: &Window) -> bool {
        let _ = (now, window);
        false
    }

    /// The left edge has moved: whether a repair shortly before makes it likely that the new one is lost as well.
    fn after_repair(&mut self, now: Time, window: &Window) -> bool {
        let _ = (now, window);
        false
    }

    /// The rate at which segments may leave, for a congestion control that knows one; otherwise a paced sender
    /// spreads its window over a round trip.
    fn pacing(&self) -> Option<Rate> {
        None
    }
}
