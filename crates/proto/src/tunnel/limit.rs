//! How often something may happen: so often on average, and some times in a row (GCRA, the virtual scheduling of ITU-T
//! I.371).

use crate::units::{Span, Time};

/// A limit, and what has been used of it.
#[derive(Clone, Copy, Debug)]
pub struct Limit {
    /// The pause between two, on average.
    every: Span,
    /// How many may come in a row.
    burst: u64,
    /// When the next would be due at the average pace.
    due: Time,
}

impl Limit {
    /// Once `every`, and `burst` times in a row after a pause.
    pub const fn new(every: Span, burst: u64) -> Limit {
        Limit { every, burst, due: Time::ZERO }
    }

    /// Whether it may happen now; if so, it is taken to have happened.
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
