//! The interactive mode of Linux (`pingpong`): an end that has replied soon after the peer's data delays its
//! ACKs, since the next reply will carry them. The module also has the length of the delay (`ato`).

use crate::units::{Span, Time};

/// Minimum delay of an ACK (`TCP_DELACK_MIN`, `TCP_ATO_MIN`).
const LEAST: Span = Span::millis(40);
/// Maximum delay where replies are expected (`TCP_DELACK_MAX`).
const MOST: Span = Span::millis(200);

/// Whether replies are expected, and the delay of ACKs.
#[derive(Clone, Debug, Default)]
pub(super) struct Interactive {
    /// Whether the last data of this end was a reply.
    replies: bool,
    /// The delay; `None` before the first data of the peer.
    delay: Option<Span>,
    /// Time of the last data of the peer.
    received: Time,
    /// The smoothed round-trip time and the retransmission timeout of this end.
    path: (Span, Span),
}

impl Interactive {
    /// Whether ACKs wait for a reply.
    pub(super) fn waits(&self) -> bool {
        self.replies
    }

    /// Records the smoothed round-trip time and the timeout of this end.
    pub(super) fn measured(&mut self, srtt: Span, rto: Span) {
        self.path = (srtt, rto);
    }

    /// The smoothed round-trip time of this end, if it is known.
    pub(super) fn srtt(&self) -> Option<Span> {
        Some(self.path.0).filter(|srtt| *srtt > Span::ZERO)
    }

    /// Records data of the peer in order, and returns whether the peer may be in slow start: this is the first data, or
    /// the gap before it was long.
    pub(super) fn arrived(&mut self, now: Time) -> bool {
        let gap = now.since(self.received);
        self.received = now;
        let (_, rto) = self.path;
        let Some(delay) = self.delay else {
            self.delay = Some(LEAST);
            return true;
        };
        if gap <= LEAST / 2 {
            self.delay = Some(delay / 2 + LEAST / 2);
        } else if gap < delay {
            self.delay = Some((delay / 2 + gap).min(rto));
        } else {
            return rto > Span::ZERO && gap > rto;
        }
        false
    }

    /// Records that this end sends data: a reply, if data of the peer arrived within the delay.
    pub(super) fn sent(&mut self, now: Time) {
        self.replies |= self.delay.is_some_and(|delay| now.since(self.received) < delay);
    }

    /// Expects a reply to the peer's FIN. Returns whether its ACK has a delay: not before the first data of the peer.
    pub(super) fn expects_reply(&mut self) -> bool {
        self.replies = true;
        self.delay.is_some()
    }

    /// Records the start of the connection.
    pub(super) fn begin(&mut self, now: Time) {
        self.received = now;
    }

    /// Sets the delay to its minimum after the last immediate ACK (`tcp_dec_quickack_mode`).
    pub(super) fn deflate(&mut self) {
        self.delay = Some(LEAST);
    }

    /// Ends the wait for replies, because the peer waits for ACKs.
    pub(super) fn ends(&mut self) {
        self.replies = false;
        self.deflate();
    }

    /// Records that the timer expired before a reply carried the ACK.
    pub(super) fn missed(&mut self) {
        if self.replies {
            return self.ends();
        }
        let (_, rto) = self.path;
        self.delay = self.delay.map(|delay| (delay * 2).min(rto.max(LEAST)));
    }

    /// Delay of the next ACK beyond the minimum.
    pub(super) fn longer(&self) -> Span {
        let (srtt, _) = self.path;
        let most = if srtt == Span::ZERO { MOST } else { srtt.clamp(LEAST, MOST) };
        Span(self.delay.map_or(0, |delay| delay.min(most).0.saturating_sub(LEAST.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::millis(ms)
    }

    #[test]
    fn a_reply_within_the_delay_begins_the_mode_and_a_missed_one_ends_it() {
        let mut mode = Interactive::default();
        mode.sent(at(1));
        assert!(!mode.waits(), "nothing has come yet");
        mode.arrived(at(100));
        mode.sent(at(140));
        assert!(!mode.waits(), "40 ms later is too late");
        mode.arrived(at(200));
        mode.sent(at(239));
        assert!(mode.waits());
        mode.missed();
        assert!(!mode.waits());
    }

    #[test]
    fn the_delay_follows_the_gaps_and_doubles_when_no_reply_comes() {
        let mut mode = Interactive::default();
        mode.measured(Span::millis(90), Span::millis(300));
        mode.arrived(at(0));
        assert_eq!(mode.longer(), Span::ZERO);
        mode.arrived(at(30));
        assert_eq!(mode.longer(), Span::millis(10), "half of 40 ms and the gap of 30 ms");
        mode.arrived(at(35));
        assert_eq!(mode.longer(), Span::millis(5), "half of 50 ms and 20 ms");
        mode.missed();
        assert_eq!(mode.longer(), Span::millis(50));
        mode.missed();
        assert_eq!(mode.longer(), Span::millis(50), "no longer than a round trip");
        assert!(!mode.arrived(at(330)) && mode.arrived(at(700)), "a gap longer than the timeout");
        mode.ends();
        assert_eq!(mode.longer(), Span::ZERO);
    }
}
