//! The tail loss probe (RFC 8985 section 7): two round trips after the last ACK the sender sends one segment. The
//! answer to it shows a loss of the last segments, which is then repaired without a timeout.

use crate::tcp::rtt::TICK;
use crate::units::{Span, Time};

/// Time that a receiver may delay the ACK of a single segment.
//= rfc8985#section-7.2: TLP.max_ack_delay; RFC 5681 allows 500 ms, modern receivers wait at most 200 ms
const ACK_DELAY: Span = Span::millis(200);
/// Time that is added to the wait for more than one segment (`TCP_TIMEOUT_MIN_US`).
const LEAST: Span = Span::millis(2);

/// Expiration of a timer of Linux that is set at `now` for a time `wait` later. It does not expire in the tick in which
/// it was set. A wait of whole ticks takes another one, since real round trips exceed their nominal delay.
pub(in crate::tcp::sender) fn tick(now: Time, wait: Span) -> Time {
    let ticks = wait.0 / TICK.0 + 1;
    Time((now.0 / TICK.0 + ticks + 1).saturating_mul(TICK.0))
}

/// A probe.
#[derive(Clone, Copy, Debug, Default)]
pub struct TailProbe {
    /// Whether one is due now.
    pub now: bool,
    /// One past the highest position when the last probe was sent, until the fate of the probe is known.
    end: Option<u64>,
    /// Whether that probe was a retransmission.
    again: bool,
}

/// Result of an ACK for a probe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Probed {
    /// No result.
    Nothing,
    /// The probe has repaired a loss, so a reaction to congestion is due.
    //= rfc8985#section-7.4.2: without it the loss of the last segment would not be detected
    Repaired,
}

impl TailProbe {
    /// Time of a probe of `segments` segments in flight after a probe timeout from `now`; `kernel` is whether the timer
    /// has the ticks of Linux.
    //= rfc8985#section-7.2: two round trips; one segment alone also waits for a delayed ACK
    pub fn time(now: Time, srtt: Span, segments: usize, kernel: bool) -> Time {
        match (srtt, segments) {
            (Span::ZERO, _) => now + Span::secs(1),
            (_, 1) if kernel => tick(now, srtt * 2 + ACK_DELAY),
            (_, 1) => now + srtt * 2 + LEAST + ACK_DELAY,
            _ if kernel => tick(now, srtt * 2 + LEAST),
            _ => now + srtt * 2 + LEAST,
        }
    }

    /// Whether the fate of the last probe is unknown, and new data up to `end` is a part of it.
    pub fn covers(&self, end: u64) -> bool {
        self.end.is_some_and(|last| end <= last)
    }

    /// Whether the fate of the last probe is unknown.
    pub fn is_unanswered(&self) -> bool {
        self.end.is_some()
    }

    /// Discards the state of the last probe.
    pub fn reset(&mut self) {
        *self = TailProbe::default();
    }

    /// Records a sent probe. `again` is whether it is a retransmission, `end` one past the highest position.
    pub fn sent(&mut self, end: u64, again: bool) {
        (self.end, self.again) = (Some(end), again);
    }

    /// Whether the last probe was a retransmission with `end`, and its fate is unknown.
    pub fn repeated(&self, end: u64) -> bool {
        self.again && self.end == Some(end)
    }

    /// Processes an ACK of `ack`. `duplicate_reported` is whether it reports a duplicate segment (RFC 2883), `repeats`
    /// whether it is a duplicate ACK without other information.
    //= rfc8985#section-7.4.2: whether the original arrived as well
    pub fn on_ack(&mut self, ack: u64, duplicate_reported: bool, repeats: bool) -> Probed {
        let Some(end) = self.end.filter(|end| ack >= *end) else { return Probed::Nothing };
        if !self.again || duplicate_reported || (ack == end && repeats) {
            self.end = None;
        } else if ack > end {
            self.end = None;
            return Probed::Repaired;
        }
        Probed::Nothing
    }
}
