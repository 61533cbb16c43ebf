//! The rate of a policer, as Linux estimates it (`tcp_bbr.c`, `bbr_lt_bw_sampling`). A policer without tokens drops all
//! packets above its rate. It is detected by two successive intervals that each end with a loss, lose a fifth or more,
//! and deliver at nearly the same rate. BBR then sends at that rate, without probing, for 48 round trips.

use crate::units::Time;

/// Minimum interval in round trips. An interval of more than four times this length is discarded.
const ROUNDS: u32 = 4;
const MOST_ROUNDS: u32 = 4 * ROUNDS;
/// Bytes lost, in 1/256 of those delivered.
const LOSS: u64 = 50;
/// Maximum difference of equal rates: an eighth of the first, or `NEAR` bits per second.
const ALIKE: u64 = 8;
const NEAR: u64 = 4000;
/// Number of round trips for which the estimate is used.
const USED_ROUNDS: u32 = 48;

/// Contribution of an ACK or a timeout.
#[derive(Clone, Copy, Debug)]
pub(super) struct Evidence {
    /// Time of the last delivery.
    pub(super) at: Time,
    /// Bytes delivered and bytes lost since the start of the connection.
    pub(super) delivered: u64,
    pub(super) lost: u64,
    /// Whether it shows losses.
    pub(super) losses: bool,
    /// Whether a round trip begins.
    pub(super) starts: bool,
    /// Whether the application had too little to send.
    pub(super) app_limited: bool,
    /// Whether BBR is in ProbeBW.
    pub(super) probes: bool,
}

/// Start of an interval.
#[derive(Clone, Copy, Debug, Default)]
struct Start {
    millis: u64,
    delivered: u64,
    lost: u64,
}

/// The estimate.
#[derive(Clone, Debug, Default)]
pub(super) struct Policed {
    /// Bits per second of the last interval; 0 before the first.
    bps: u64,
    used: bool,
    sampling: bool,
    start: Start,
    rounds: u32,
}

impl Policed {
    /// The policer's rate in bits per second, which replaces the maximum rate.
    pub(super) fn rate(&self) -> Option<u64> {
        self.used.then_some(self.bps)
    }

    /// Discards the estimate.
    pub(super) fn reset(&mut self) {
        *self = Policed::default();
    }

    fn begin(&mut self, seen: &Evidence) {
        let millis = seen.at.0 / 1_000_000;
        self.start = Start { millis, delivered: seen.delivered, lost: seen.lost };
        self.rounds = 0;
    }

    /// Processes the evidence. Returns whether the use of the estimate ends, so that probing restarts.
    pub(super) fn update(&mut self, seen: &Evidence) -> bool {
        if self.used {
            self.rounds += u32::from(seen.probes && seen.starts);
            let over = self.rounds >= USED_ROUNDS;
            if over {
                self.reset();
            }
            return over;
        }
        // The first loss shows that there are no tokens left.
        if !self.sampling {
            if !seen.losses {
                return false;
            }
            self.begin(seen);
            self.sampling = true;
        }
        if seen.app_limited {
            self.reset();
            return false;
        }
        self.rounds += u32::from(seen.starts);
        if self.rounds > MOST_ROUNDS {
            self.reset();
        } else if self.rounds >= ROUNDS && seen.losses {
            self.end(seen);
        }
        false
    }

    /// Ends the interval at a loss, if it is valid.
    fn end(&mut self, seen: &Evidence) {
        let delivered = seen.delivered - self.start.delivered;
        let lost = seen.lost - self.start.lost;
        let millis = seen.at.0 / 1_000_000 - self.start.millis;
        if delivered == 0 || lost * 256 < LOSS * delivered || millis == 0 {
            return;
        }
        let bps = (u128::from(delivered) * 8000 / u128::from(millis)).min(u64::MAX.into()) as u64;
        let apart = bps.abs_diff(self.bps);
        if self.bps > 0 && (apart <= self.bps / ALIKE || apart <= NEAR) {
            self.bps = self.bps.midpoint(bps);
            (self.used, self.rounds) = (true, 0);
        } else {
            self.bps = bps;
            self.begin(seen);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Round trips of 20 ms that deliver `bytes` each and lose `lost`.
    fn rounds(policed: &mut Policed, seen: &mut Evidence, count: u32, bytes: u64, lost: u64) {
        for _ in 0..count {
            seen.at.0 += 20_000_000;
            seen.delivered += bytes;
            seen.lost += lost;
            seen.losses = lost > 0;
            policed.update(seen);
        }
    }

    fn nothing() -> Evidence {
        Evidence {
            at: Time::ZERO,
            delivered: 0,
            lost: 0,
            losses: false,
            starts: true,
            app_limited: false,
            probes: true,
        }
    }

    #[test]
    fn two_alike_intervals_with_a_fifth_lost_are_used_for_48_rounds() {
        let (mut policed, mut seen) = (Policed::default(), nothing());
        rounds(&mut policed, &mut seen, 4, 25_000, 5000);
        assert_eq!(policed.rate(), None, "one interval");
        rounds(&mut policed, &mut seen, 4, 25_000, 5000);
        assert_eq!(policed.rate(), Some(10_000_000));
        rounds(&mut policed, &mut seen, 47, 25_000, 0);
        assert!(policed.rate().is_some());
        seen.probes = false;
        assert!(!policed.update(&seen), "only round trips of ProbeBW count");
        seen.probes = true;
        assert!(policed.update(&seen));
        assert_eq!(policed.rate(), None);
    }

    #[test]
    fn rates_apart_few_losses_long_intervals_and_pauses_show_no_policer() {
        for (first, second, lost, limited) in [
            (25_000, 32_000, 10_000, false),
            (25_000, 25_000, 4000, false),
            (25_000, 25_000, 10_000, true),
        ] {
            let (mut policed, mut seen) = (Policed::default(), nothing());
            seen.app_limited = limited;
            rounds(&mut policed, &mut seen, 4, first, lost);
            rounds(&mut policed, &mut seen, 4, second, lost);
            assert_eq!(policed.rate(), None, "{first} {second} {lost} {limited}");
        }
        let (mut policed, mut seen) = (Policed::default(), nothing());
        rounds(&mut policed, &mut seen, 1, 25_000, 10_000);
        rounds(&mut policed, &mut seen, 17, 25_000, 0);
        assert!(!policed.sampling);
    }
}
