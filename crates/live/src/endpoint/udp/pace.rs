//! Departures of datagrams at a constant rate.

use lasthop_proto::units::{Rate, Span, Time};

/// Most datagrams that are sent together after a late timer.
const BURST: u64 = 64;

/// Times of departure.
#[derive(Clone, Copy, Debug)]
pub(in crate::endpoint) struct Pace {
    gap: Span,
    due: Time,
    /// Number of datagrams that were due too late to be sent, because this machine was busy.
    pub(in crate::endpoint) skipped: u64,
}

impl Pace {
    /// Datagrams of `length` bytes at `rate`, from `now` on.
    pub(in crate::endpoint) fn new(rate: Rate, length: usize, now: Time) -> Pace {
        let gap = (length as u64).saturating_mul(8_000_000_000) / rate.bps().max(1);
        Pace { gap: Span(gap.max(1)), due: now, skipped: 0 }
    }

    /// Time of the next departure.
    pub(in crate::endpoint) fn due(&self) -> Time {
        self.due
    }

    /// Whether a datagram departs at `now`.
    pub(in crate::endpoint) fn departs(&mut self, now: Time) -> bool {
        if self.due > now {
            return false;
        }
        let late = now.since(self.due).0 / self.gap.0;
        if late > BURST {
            // A burst after a pause would measure the queue of this machine.
            self.skipped += late - BURST;
            self.due += Span(self.gap.0.saturating_mul(late - BURST));
        }
        self.due += self.gap;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_timer_sends_a_short_burst() {
        let rate = Rate::from_bps(8_000).unwrap();
        let mut pace = Pace::new(rate, 1, Time::ZERO);
        let mut departures = |ms| {
            let now = Time::ZERO + Span::millis(ms);
            std::iter::repeat_with(|| pace.departs(now)).take_while(|departs| *departs).count()
                as u64
        };
        assert_eq!([departures(0), departures(0), departures(3)], [1, 0, 3]);
        assert_eq!(departures(1003), BURST + 1);
        assert_eq!(pace.skipped, 1000 - BURST - 1);
    }
}
