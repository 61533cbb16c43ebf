//! Round-trip time over the wireless link, measured by the agent, and the local timeout.

use super::config::SnoopConfig;
use super::timeout::Measured;
use crate::travel::travels;
use crate::units::{Span, Time};

/// The estimator of one flow. One packet per window is timed, from its arrival at the agent to the ACK that
/// covers it. So the base station's queue is part of the round trip.
//= parsa98#4: only one round-trip estimate is made per window
#[derive(Clone, Copy, Debug, Default)]
pub(in super::super) struct Rtt {
    /// Smoothed round trip and its variation.
    estimate: Option<(Span, Span)>,
    /// Before the first estimate: an upper bound on the round trip.
    bound: Option<Span>,
    timed: Option<Timed>,
}

travels!(Rtt { estimate, bound });

#[derive(Clone, Copy, Debug)]
struct Timed {
    /// Position past the timed packet.
    end: u64,
    /// Time of its arrival.
    at: Time,
    /// Whether there was a retransmission since.
    spoiled: bool,
}

impl Rtt {
    /// Discards the measurement, since another clock counts from here.
    pub(in super::super) fn moved(&mut self) {
        self.timed = None;
    }

    /// Records the first transmission of a packet that ends at position `end`.
    #[inline]
    pub(in super::super) fn sent(&mut self, end: u64, now: Time) {
        self.timed.get_or_insert(Timed { end, at: now, spoiled: false });
    }

    /// Records the departure of the packet that ends at position `end`; `again` for a retransmission.
    pub(in super::super) fn departs(&mut self, end: u64, again: bool, now: Time) {
        if let Some(timed) = self.timed.as_mut().filter(|timed| timed.end == end && !again) {
            timed.at = now;
        }
    }

    /// Records a retransmission. The ACK of the timed packet may now wait for the retransmission to fill an
    /// earlier hole, so it does not reflect the link.
    ///
    /// With the fault only a retransmission of the timed packet itself has this effect. Then the estimate
    /// includes the time to fill earlier holes, which grows with the number of holes in a window.
    //= parsa98#5.2: with many losses in a window the on-line code updated its estimate to a value during which
    //= parsa98#5.2: retransmissions occurred, and that grew very large
    pub(in super::super) fn retransmitted(&mut self, end: u64, rtt_fault: bool) {
        if let Some(timed) = self.timed.as_mut().filter(|timed| !rtt_fault || timed.end == end) {
            timed.spoiled = true;
        }
    }

    /// Handles an ACK of everything below `ack`. Returns the sample, if it covers the timed packet.
    #[inline]
    pub(in super::super) fn acked(&mut self, ack: u64, now: Time) -> Option<Span> {
        let timed = self.timed.filter(|timed| timed.end <= ack)?;
        self.timed = None;
        let rtt = now.since(timed.at);
        if timed.spoiled {
            // An upper bound of the round trip, which replaces the first timeout until there is an
            // estimate. If the first timeout is too short for the link, retransmissions spoil every
            // sample, and the timeout would remain in use.
            self.bound = Some(self.bound.map_or(rtt, |bound| bound.min(rtt)));
            return None;
        }
        // Gains of 1/8 and 1/4, as in the TCP of that time.
        self.estimate = Some(match self.estimate {
            None => (rtt, rtt / 2),
            Some((srtt, rttvar)) => {
                let off = Span(srtt.0.abs_diff(rtt.0));
                (Span(srtt.0 - srtt.0 / 8 + rtt.0 / 8), Span(rttvar.0 - rttvar.0 / 4 + off.0 / 4))
            }
        });
        Some(rtt)
    }

    /// Whether there is an estimate or a bound.
    pub(in super::super) fn is_measured(&self) -> bool {
        self.estimate.is_some() || self.bound.is_some()
    }

    /// The usual time until an answer; zero if unknown.
    pub(in super::super) fn usual(&self) -> Span {
        self.estimate.map(|(srtt, _)| srtt).or(self.bound).unwrap_or(Span::ZERO)
    }

    /// The local timeout, without backoff: losses of the wireless link are no congestion, and several
    /// attempts must fit into the sender's timeout.
    pub(in super::super) fn timeout(&self, config: &SnoopConfig) -> Span {
        let base = match self.estimate {
            None => self.bound.map_or(config.initial_timeout, |bound| bound * 2),
            Some((srtt, rttvar)) => {
                config.timeout.timeout(Measured { srtt, rttvar }, config.initial_timeout)
            }
        };
        base.max(config.min_timeout).max(Span(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_packet_at_a_time_is_timed() {
        let mut rtt = Rtt::default();
        rtt.sent(100, Time(0));
        rtt.sent(200, Time(5_000_000));
        assert_eq!(rtt.acked(50, Time(6_000_000)), None);
        assert_eq!(rtt.acked(200, Time(10_000_000)), Some(Span::millis(10)));
        assert_eq!(rtt.acked(300, Time(11_000_000)), None);
    }

    #[test]
    fn retransmissions_invalidate_the_sample_unless_rtt_fault() {
        for (end, fault, sample) in [
            (50, false, None),
            (50, true, Some(Span::millis(90))),
            (100, false, None),
            (100, true, None),
        ] {
            let mut rtt = Rtt::default();
            rtt.sent(100, Time(0));
            rtt.retransmitted(end, fault);
            assert_eq!(rtt.acked(100, Time(90_000_000)), sample, "{end} {fault}");
        }
    }

    #[test]
    fn the_clock_starts_when_the_packet_departs_for_the_first_time() {
        let mut rtt = Rtt::default();
        rtt.sent(100, Time(0));
        rtt.departs(100, false, Time(500_000_000));
        rtt.departs(200, false, Time(510_000_000));
        rtt.departs(100, true, Time(520_000_000));
        assert_eq!(rtt.acked(100, Time(530_000_000)), Some(Span::millis(30)));
    }

    #[test]
    fn a_spoiled_sample_raises_a_too_short_first_timeout() {
        let config = SnoopConfig::parsa98();
        let mut rtt = Rtt::default();
        rtt.sent(100, Time(0));
        rtt.retransmitted(100, false);
        assert_eq!(rtt.acked(100, Time(600_000_000)), None);
        assert_eq!(rtt.timeout(&config), Span::millis(1200));
        rtt.sent(200, Time(700_000_000));
        rtt.acked(200, Time(1_200_000_000));
        assert_eq!(rtt.timeout(&config), Span::secs(1), "an estimate takes over");
    }

    #[test]
    fn the_timeout_follows_its_rule_and_has_a_floor() {
        let parsa = SnoopConfig::parsa98();
        let mut rtt = Rtt::default();
        assert_eq!(rtt.timeout(&parsa), parsa.initial_timeout);
        rtt.sent(100, Time(0));
        rtt.acked(100, Time(30_000_000));
        assert_eq!(rtt.timeout(&parsa), Span::millis(60));
        let west = SnoopConfig { min_timeout: Span::millis(1), ..SnoopConfig::west97() };
        assert_eq!(rtt.timeout(&west), Span::millis(90));
        let slow = SnoopConfig { min_timeout: Span::secs(1), ..parsa };
        assert_eq!(rtt.timeout(&slow), Span::secs(1));
    }
}
