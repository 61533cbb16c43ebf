//! Reactions to messages of a base station. These are explicit bad state notification (bakshi96 4.2.3 and its
//! appendix), source quench (bakshi96 4.2.2), and partial acknowledgements (west97 3.4).

use crate::describe::{Kind, SIM, System};
use crate::event::{Cause, TcpKind};
use crate::tcp::config::AckpReaction;
use crate::units::Time;
use crate::wire::Notice;

use super::{Purpose, Sender, Verdict};

/// Description of the system, for lists.
pub const ACKP: System = System::new(
    Kind::Sender,
    "ackp-sender",
    "host: ackp = \"rearm\"",
    "a partial ACK from the base station restarts the retransmission timer and does nothing else",
    "west97 3.4",
)
.runs(SIM);

/// Description of the system, for lists.
pub const EBSN: System = System::new(
    Kind::Sender,
    "ebsn-sender",
    "host: ebsn = true",
    "a notification from the base station restarts the timer with the current timeout",
    "bakshi96 4.2.3",
);

impl Sender {
    /// Whether this sender reacts to a notice about the segment at `position`. The position is `None` if no position
    /// of this connection has the quoted number.
    ///
    /// # Errors
    /// The reason for which it ignores the notice.
    pub fn heeds(&self, notice: Notice, position: Option<u64>) -> Result<(), Cause> {
        let enabled = match notice {
            Notice::BadState => self.ebsn,
            Notice::SourceQuench => self.quench,
        };
        if !enabled {
            return Err(Cause::UnheededNotice);
        }
        //= rfc5927#section-4.1: the message must quote unacknowledged data
        let in_flight = self.core.window.una..self.core.window.max;
        match position {
            Some(position) if in_flight.contains(&position) => Ok(()),
            _ => Err(Cause::StaleNotice),
        }
    }

    /// Reacts to a notice that [`Sender::heeds`] accepts.
    pub fn on_notice(&mut self, now: Time, notice: Notice) -> Option<TcpKind> {
        match notice {
            Notice::BadState => self.on_bad_state(now),
            Notice::SourceQuench => Some(self.on_quench()),
        }
    }

    /// Restarts the timer with the current timeout, including its backoff. No other state changes. No timer runs
    /// while a closed window is probed.
    //= bakshi96#4.2.3: the previous timeout is cancelled and a new one put in place, identical to it
    fn on_bad_state(&mut self, now: Time) -> Option<TcpKind> {
        let timers = &mut self.core.timers;
        timers.runs().then(|| timers.rearm(now))?;
        Some(TcpKind::BadStateNotified)
    }

    /// Reduces the congestion window to one segment, from which it grows by slow start to the unchanged threshold:
    /// `tcp_quench` of 4.4BSD. RFC 1122 requires a reaction and suggests this one; RFC 6633 forbids any.
    //= rfc1122#section-4.2.3.9: source quench should trigger a slow start, as if a retransmission timeout had occurred
    fn on_quench(&mut self) -> TcpKind {
        self.core.window.cwnd = self.core.window.mss;
        TcpKind::Quenched
    }

    /// Handles a base station's report that it has received all data below `position`.
    //= west97#3.4: the retransmission timer is reset, nothing else is done
    pub fn on_partial_ack(&mut self, now: Time, position: u64) -> Verdict {
        let (timers, tally) = (&mut self.core.timers, &mut self.core.tally);
        let heeded = self.ackp != AckpReaction::Off && timers.runs();
        if !heeded || position <= self.core.window.una {
            return None;
        }
        let rtt = &timers.rtt;
        let at = match self.ackp {
            AckpReaction::Constant => rtt.constant_deadline(now),
            AckpReaction::Exponential => {
                let run = &mut tally.base_reports().ackp_run;
                *run = (*run + 1).min(6);
                let most = rtt.max().0 / rtt.rto().0.max(1);
                rtt.deadline(now, (1u64 << *run).min(most.max(1)))
            }
            AckpReaction::Rearm | AckpReaction::Off => rtt.deadline(now, 1),
        };
        timers.set(Purpose::Timeout, at);
        if self.ackp_karn && timers.timed.is_some_and(|(end, _)| end <= position) {
            timers.timed = None;
        }
        Some(TcpKind::PartialAck)
    }
}
