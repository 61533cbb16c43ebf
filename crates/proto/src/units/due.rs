//! Expiry of a timer.

use super::Time;

/// Expiry of a timer, or [`Due::NEVER`]: an `Option<Time>` of one word, since every connection has several.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Due(Time);

impl Due {
    /// The timer does not run.
    pub const NEVER: Due = Due(Time::NEVER);

    /// A timer that expires at `at`.
    #[inline]
    pub fn at(at: Time) -> Due {
        Due(at)
    }

    /// Expiry time, if the timer runs.
    #[inline]
    pub fn get(self) -> Option<Time> {
        self.0.or_none()
    }

    /// Expiry time, or [`Time::NEVER`] if the timer does not run.
    #[inline]
    pub fn or_never(self) -> Time {
        self.0
    }

    /// Whether the timer runs.
    #[inline]
    pub fn is_set(self) -> bool {
        self.0 != Time::NEVER
    }

    /// Whether it has expired by `now`.
    #[inline]
    pub fn is_past(self, now: Time) -> bool {
        self.is_set() && self.0 <= now
    }
}

impl Default for Due {
    fn default() -> Due {
        Due::NEVER
    }
}

impl From<Option<Time>> for Due {
    fn from(at: Option<Time>) -> Due {
        Due(at.unwrap_or(Time::NEVER))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deadlines_expire_at_their_time_and_unset_ones_never() {
        assert!(!Due::NEVER.is_set() && !Due::NEVER.is_past(Time::NEVER));
        assert_eq!((Due::NEVER.get(), Due::from(None)), (None, Due::NEVER));
        let due = Due::at(Time(5));
        assert_eq!((due.get(), Due::from(Some(Time(5)))), (Some(Time(5)), due));
        assert_eq!([4, 5, 6].map(|now| due.is_past(Time(now))), [false, true, true]);
    }
}
