//! What a sender does when a base station or the receiver tells it about a segment: explicit loss notification
//! (west97 2.3.3), partial acknowledgements (west97 3.4), explicit bad state notification (bakshi96 4.2.3 and its
//! appendix) and source quench (bakshi96 4.2.2).

use crate::event::{Cause, TcpKind};
use crate::units::Time;
use crate::wire::Notice;

use super::{AckpReaction, Sender, Verdict};

const NOTIFIED_MAX: usize = 64;
/// Loss notifications for one segment that are obeyed in a row.
const NOTICES_MAX: u32 = 12;

impl Sender {
    /// A wireless loss at `position`: queue it again without touching the window. False if it is not
    /// outstanding.
    //= west97#2.3.3: the sender retransmits at once and takes no congestion measures
    pub(super) fn notify(&mut self, now: Time, position: u64) -> bool {
        let w = &mut self.window;
        if position < w.una || position >= w.max || self.notified.len() >= NOTIFIED_MAX {
            return false;
        }
        if position == w.una {
            // A link that damages every packet must not be sent one for each notification, for ever: after so
            // many without progress the timer decides, and it backs off.
            if self.notices >= NOTICES_MAX {
                return false;
            }
            self.notices += 1;
        }
        if let Err(at) = self.notified.binary_search(&position) {
            self.notified.insert(at, position);
        }
        w.repair = Some((position, Cause::ElnRetransmit));
        self.timed = None;
        self.rexmt_at = Some(self.rtt.deadline(now, 1));
        true
    }

    /// A base station says that everything below `position` has reached it.
    //= west97#3.4: the retransmission timer is reset, nothing else is done
    pub fn on_partial_ack(&mut self, now: Time, position: u64) -> Verdict {
        if self.ackp == AckpReaction::Off || position <= self.window.una || self.rexmt_at.is_none()
        {
            return None;
        }
        self.rexmt_at = Some(match self.ackp {
            AckpReaction::Constant => self.rtt.constant_deadline(now),
            AckpReaction::Exponential => {
                self.ackp_run = (self.ackp_run + 1).min(6);
                let most = self.rtt.max().0 / self.rtt.rto().0.max(1);
                self.rtt.deadline(now, (1u64 << self.ackp_run).min(most.max(1)))
            }
            AckpReaction::Rearm | AckpReaction::Off => self.rtt.deadline(now, 1),
        });
        if self.ackp_karn && self.timed.is_some_and(|(end, _)| end <= position) {
            self.timed = None;
        }
        Some(TcpKind::PartialAck)
    }

    /// Whether a message about the segment at `position` is heeded; `None` if no position of this connection has its
    /// number.
    ///
    /// # Errors
    /// Why it is not.
    pub fn heeds(&self, notice: Notice, position: Option<u64>) -> Result<(), Cause> {
        let obeyed = match notice {
            Notice::BadState => self.ebsn,
            Notice::SourceQuench => self.quench,
        };
        if !obeyed {
            return Err(Cause::UnheededNotice);
        }
        //= rfc5927#section-4.1: only what quotes data sent and not yet acknowledged is believed
        let in_flight = self.window.una..self.window.max;
        match position {
            Some(position) if in_flight.contains(&position) => Ok(()),
            _ => Err(Cause::StaleNotice),
        }
    }

    /// A message that is heeded.
    pub fn on_notice(&mut self, now: Time, notice: Notice) -> Option<TcpKind> {
        match notice {
            Notice::BadState => self.on_bad_state(now),
            Notice::SourceQuench => Some(self.on_quench()),
        }
    }

    /// The timer starts again with the time-out in force, back-off included; nothing else changes. Where no timer
    /// runs there is none to start again: a closed window is being probed.
    //= bakshi96#4.2.3: the previous time-out is cancelled and a new one put in place, identical to it
    fn on_bad_state(&mut self, now: Time) -> Option<TcpKind> {
        self.rexmt_at?;
        self.rexmt_at = Some(self.rtt.deadline(now, 1));
        Some(TcpKind::BadStateNotified)
    }

    /// The congestion window closes to one segment and opens again by slow start, up to the threshold that it had:
    /// `tcp_quench` of 4.4BSD. RFC 1122 asks for a reaction and suggests this one; RFC 6633 forbids any.
    //= rfc1122#section-4.2.3.9: source quench should trigger a slow start, as if a retransmission time-out had occurred
    fn on_quench(&mut self) -> TcpKind {
        self.window.cwnd = self.window.mss;
        TcpKind::Quenched
    }
}
