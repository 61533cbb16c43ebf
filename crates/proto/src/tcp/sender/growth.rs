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
    /// The left edge has moved, outside of recovery.
    fn on_ack(&mut self, window: &mut Window, ack: &Acked);

    /// The slow-start threshold after a loss. The recovery takes the congestion window down to it in its own way.
    fn after_loss(&mut self, now: Time, window: &Window, loss: Loss) -> u32 {
        let _ = now;
        window.half(loss)
    }

    /// The last loss was none: the window goes back to `prior`, unless it has grown beyond that.
    fn undone(&mut self, window: &mut Window, prior: u32) {
        window.cwnd = window.cwnd.max(prior);
    }

    /// Whether it sets the window by [`Growth::on_sample`]: then neither recovery nor `on_ack` touches it.
    fn steers(&self) -> bool {
        false
    }

    /// An ACK has been taken in. Only senders that keep records of their segments call this.
    fn on_sample(&mut self, window: &mut Window, sample: &Sample) {
        let _ = (window, sample);
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
