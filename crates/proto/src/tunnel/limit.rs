//! Rate limit with a mean interval and a burst (GCRA, the virtual scheduling of ITU-T I.371).

use crate::units::{Span, Time};

/// A limit and its current state.
#[derive(Clone, Copy, Debug)]
pub struct Limit {
    /// Mean interval between two events.
    every: Span,
    /// Maximum burst.
    burst: u64,
    /// When the next event would be due at the mean interval.
    due: Time,
}

impl Limit {
    /// Allows one event per `every`, and `burst` events in a row after a pause.
    pub const fn new(every: Span, burst: u64) -> Limit {
        Limit { every, burst, due: Time::ZERO }
    }

    /// Whether an event is allowed now; if so, it counts.
    pub fn take(&mut self, now: Time) -> bool {
        let due = self.due.max(now);
        let may = due.since(now).0 <= self.every.0.saturating_mul(self.burst - 1);
        if may {
            self.due = due + self.every;
        }
        may
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_and_then_the_pace() {
        let mut limit = Limit::new(Span::millis(100), 3);
        let mut took = |ms| (0..10).filter(|_| limit.take(Time::ZERO + Span::millis(ms))).count();
        assert_eq!(took(0), 3);
        assert_eq!(took(50), 0);
        assert_eq!(took(100), 1);
        assert_eq!(took(1000), 3);
    }
}
