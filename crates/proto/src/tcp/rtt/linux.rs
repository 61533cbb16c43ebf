//! Variation of the round trips by the rules of Linux.

use crate::units::Span;

/// Tick of Linux' timers, at 250 Hz.
pub(in crate::tcp) const TICK: Span = Span::millis(4);

/// Smoothed deviation of the round trips in Linux (`tcp_rtt_estimator`), in nanoseconds and four times as large as in
/// RFC 6298.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Deviation {
    pub(super) current: u64,
    /// Maximum of this round trip, at least the minimum timeout.
    pub(super) most: u64,
    /// One past the highest position that was sent before this round trip.
    pub(super) round: u64,
}

impl Deviation {
    /// Starts with the first measured round trip `rtt`.
    pub(super) fn first(rtt: u64, min: Span, nxt: u64) -> Deviation {
        let current = 2 * rtt;
        Deviation { current, most: current.max(min.0), round: nxt }
    }

    /// Adds the round trip `rtt`, with the average `srtt` before it. A falling round trip raises the deviation by an
    /// eighth of the usual gain.
    pub(super) fn add(&mut self, srtt: u64, rtt: u64) {
        let error = srtt.abs_diff(rtt);
        let quarter = self.current / 4;
        if error < quarter {
            self.current -= quarter - error;
        } else {
            let more = error - quarter;
            self.current += if rtt < srtt { more / 8 } else { more };
        }
    }

    /// Adapts the variation `rttvar`: it rises at once, and falls once in a round trip by a quarter of its excess over
    /// the maximum of that round trip. `una` is the left edge, `nxt` the next position to send.
    pub(super) fn adapt(&mut self, rttvar: &mut u64, min: Span, (una, nxt): (u64, u64)) {
        self.most = self.most.max(self.current);
        *rttvar = self.most.max(*rttvar);
        if una > self.round {
            *rttvar -= (*rttvar - self.most) / 4;
            (self.round, self.most) = (nxt, min.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::tcp::config::{RtoRule, TcpConfig};
    use crate::tcp::rtt::{Beat, RttEstimator};
    use crate::tcp::settings::{Beats, Settings};
    use crate::units::{Span, Time};

    const MS: u64 = 1_000_000;

    fn estimator() -> RttEstimator {
        let slow = Beat::new(Span::millis(500), Span::ZERO);
        let rto_min = Span::millis(200);
        let config = TcpConfig { rto_rule: RtoRule::Linux, rto_min, ..TcpConfig::rfc() };
        RttEstimator::new(&Settings::new(config, Beats { slow, fast: slow }))
    }

    /// The timeout in milliseconds after each of the round trips `ms`, of one segment each.
    fn timeouts(ms: impl IntoIterator<Item = u64>) -> Vec<u64> {
        let mut rtt = estimator();
        let timeout = |(i, ms): (usize, u64)| {
            let position = i as u64 * 1000;
            rtt.sample(Time::ZERO, Time(ms * MS), (position + 1, position + 1));
            rtt.rto().0 / MS
        };
        ms.into_iter().enumerate().map(timeout).collect()
    }

    /// The figures of the kernel: `tcpi_rto` on paths with these round trips.
    #[test]
    fn the_variation_falls_by_a_quarter_of_its_excess_in_a_round_trip() {
        assert_eq!(timeouts([400; 7]), [1200, 1200, 1116, 1020, 928, 848, 788]);
        assert_eq!(timeouts([50; 3]), [252, 252, 252]);
    }

    /// A falling round trip moves the deviation by an eighth: the timeout falls with the average.
    #[test]
    fn a_falling_round_trip_hardly_raises_the_timeout() {
        let falls = timeouts([vec![250; 16], vec![50; 8]].concat());
        assert_eq!((falls[15], falls[23]), (456, 320));
        assert!(falls[15..].is_sorted_by(|a, b| a >= b), "{falls:?}");
    }

    /// Samples that do not move the left edge, as those of SACK blocks, may raise the variation, but do not lower it.
    #[test]
    fn samples_within_a_round_trip_do_not_lower_the_timeout() {
        let mut rtt = estimator();
        for _ in 0..20 {
            rtt.sample(Time::ZERO, Time(200 * MS), (1, 10_001));
            assert_eq!(rtt.rto(), Span::millis(600));
        }
        rtt.sample(Time::ZERO, Time(200 * MS), (10_001, 10_001));
        assert_eq!(rtt.rto(), Span::millis(600), "this ACK ends no round trip yet");
        rtt.sample(Time::ZERO, Time(200 * MS), (10_002, 20_001));
        assert_eq!(rtt.rto(), Span::millis(600), "the deviation of the first round trip counts");
        rtt.sample(Time::ZERO, Time(200 * MS), (20_002, 30_001));
        assert_eq!(rtt.rto(), Span::millis(552), "an ACK of a later flight ends a round trip");
    }
}
