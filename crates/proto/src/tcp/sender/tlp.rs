//! The tail loss probe (RFC 8985 section 7): when ACKs stop coming, one segment is sent after two round trips, so
//! that the loss of the last segments is repaired without a time-out.

use crate::units::{Span, Time};

/// Time that a receiver may delay the ACK of a single segment.
//= rfc8985#section-7.2: TLP.max_ack_delay; RFC 5681 allows 500 ms, receivers of today wait 200 ms at most
const ACK_DELAY: Span = Span::millis(200);
/// The least time to wait: timers of Linux have a resolution of a millisecond and wait for two.
const LEAST: Span = Span::millis(2);

/// A probe and its timer.
#[derive(Clone, Copy, Debug, Default)]
pub struct TailProbe {
    /// When the next probe is due.
    pub due: Option<Time>,
    /// It is due now.
    pub now: bool,
    /// One past the highest position when the last probe was sent, until it is known what became of it.
    end: Option<u64>,
    /// Whether that probe was a retransmission.
    again: bool,
}

/// What an ACK says about a probe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Probed {
    /// Nothing.
    Nothing,
    /// The probe has repaired a loss: a reaction to congestion is due.
    //= rfc8985#section-7.4.2: the loss of the last segment would go unnoticed otherwise
    Repaired,
}

impl TailProbe {
    /// Waits for an ACK until a probe timeout from `now`, but no later than the retransmission timer.
    //= rfc8985#section-7.2: two round trips; one segment alone also waits for a delayed ACK
    pub fn schedule(&mut self, now: Time, srtt: Span, segments: usize, rto: Time) {
        self.due = None;
        if self.end.is_some() {
            return;
        }
        let wait = match srtt {
            Span::ZERO => Span::secs(1),
            _ if segments == 1 => srtt * 2 + LEAST + ACK_DELAY,
            _ => srtt * 2 + LEAST,
        };
        self.due = Some((now + wait).min(rto));
    }

    /// No probe is wanted.
    pub fn cancel(&mut self) {
        self.due = None;
        self.now = false;
    }

    /// Forgets everything.
    pub fn reset(&mut self) {
        *self = TailProbe::default();
    }

    /// Whether the timer expired.
    pub fn expired(&mut self, now: Time) -> bool {
        let expired = self.due.is_some_and(|due| due <= now);
        if expired {
            self.due = None;
            self.now = true;
        }
        expired
    }

    /// A probe is sent; `again` if it is a retransmission. `end` is one past the highest position.
    pub fn sent(&mut self, end: u64, again: bool) {
        (self.end, self.again) = (Some(end), again);
        self.cancel();
    }

    /// Whether the last probe sent again what ends at `end`, and it is not known yet what became of it.
    pub fn repeated(&self, end: u64) -> bool {
        self.again && self.end == Some(end)
    }

    /// An ACK of `ack`; `duplicate_told`: it reports a segment that came twice (RFC 2883); `repeats`: it says
    /// nothing but that a segment arrived that was expected no longer.
    //= rfc8985#section-7.4.2: how to tell whether the original arrived as well
    pub fn on_ack(&mut self, ack: u64, duplicate_told: bool, repeats: bool) -> Probed {
        let Some(end) = self.end.filter(|end| ack >= *end) else { return Probed::Nothing };
        if !self.again || duplicate_told || (ack == end && repeats) {
            self.end = None;
        } else if ack > end {
            self.end = None;
            return Probed::Repaired;
        }
        Probed::Nothing
    }
}
