//! Round-trip time over the wireless link, as the agent measures it, and the local time-out from it.

use super::super::{SnoopConfig, TimeoutRule};
use crate::units::{Span, Time};

/// The estimator of one flow. One packet per window is timed, from its arrival at the agent to the ACK that
/// covers it, so that the base station's own queue is part of the round trip.
//= parsa98#4: only one round-trip estimate is made per window
#[derive(Clone, Copy, Debug, Default)]
pub(in super::super) struct Rtt {
    estimate: Option<(Span, Span)>,
    /// Position past the timed packet, and when it came.
    timed: Option<(u64, Time)>,
}

impl Rtt {
    /// A packet that ends at position `end` passes for the first time.
    #[inline]
    pub(in super::super) fn sent(&mut self, end: u64, now: Time) {
        self.timed.get_or_insert((end, now));
    }

    /// Something was retransmitted. The ACK of the timed packet may now wait for the retransmission to fill a
    /// hole before it, so it says nothing about the link.
    pub(in super::super) fn retransmitted(&mut self, rtt_fault: bool) {
        //= parsa98#5.2.2: the on-line code kept the sample all the same, and its estimate grew out of all measure
        if !rtt_fault {
            self.timed = None;
        }
    }

    /// An ACK covers everything below `ack`; the sample, if it covers the timed packet.
    #[inline]
    pub(in super::super) fn acked(&mut self, ack: u64, now: Time) -> Option<Span> {
        let (end, at) = self.timed?;
        if ack < end {
            return None;
        }
        self.timed = None;
        let rtt = now.since(at);
        // Gains of 1/8 and 1/4, as in the TCP of the time.
        self.estimate = Some(match self.estimate {
            None => (rtt, rtt / 2),
            Some((srtt, rttvar)) => {
                let off = Span(srtt.0.abs_diff(rtt.0));
                (Span(srtt.0 - srtt.0 / 8 + rtt.0 / 8), Span(rttvar.0 - rttvar.0 / 4 + off.0 / 4))
            }
        });
        Some(rtt)
    }

    /// The local time-out after `backoff` doublings. The estimate itself is not bounded from above, only its
    /// backing off is.
    pub(in super::super) fn timeout(&self, config: &SnoopConfig, backoff: u32) -> Span {
        let base = match (self.estimate, config.timeout) {
            (None, _) => config.initial_timeout,
            (Some((srtt, _)), TimeoutRule::TwiceSrtt) => srtt * 2,
            (Some((srtt, rttvar)), TimeoutRule::SrttPlusVar) => srtt + rttvar * 4,
        };
        let base = base.max(config.min_timeout);
        (base * (1 << backoff.min(16))).min(config.max_timeout).max(base).max(Span(1))
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
    fn a_retransmission_spoils_the_sample_unless_the_fault_is_wanted() {
        for (fault, sample) in [(false, None), (true, Some(Span::millis(90)))] {
            let mut rtt = Rtt::default();
            rtt.sent(100, Time(0));
            rtt.retransmitted(fault);
            assert_eq!(rtt.acked(100, Time(90_000_000)), sample);
        }
    }

    #[test]
    fn the_timeout_follows_its_rule_and_backs_off_within_bounds() {
        let parsa = SnoopConfig::parsa98();
        let mut rtt = Rtt::default();
        assert_eq!(rtt.timeout(&parsa, 0), parsa.initial_timeout);
        rtt.sent(100, Time(0));
        rtt.acked(100, Time(30_000_000));
        assert_eq!(rtt.timeout(&parsa, 0), Span::millis(60));
        let west = SnoopConfig { min_timeout: Span::millis(1), ..SnoopConfig::west97() };
        assert_eq!(rtt.timeout(&west, 0), Span::millis(90));
        assert_eq!(rtt.timeout(&parsa, 1), Span::millis(120));
        assert_eq!(rtt.timeout(&parsa, u32::MAX), parsa.max_timeout);
        let tiny = SnoopConfig { max_timeout: Span::millis(1), ..parsa };
        assert_eq!(rtt.timeout(&tiny, 9), Span::millis(60), "backing off never shortens");
    }
}
