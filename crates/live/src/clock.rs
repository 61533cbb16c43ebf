//! The one clock of the live worlds.
//!
//! Machines are handed the time; this is where a live world gets it from.

use std::time::Instant;

use lasthop_proto::units::{Span, Time};

/// A monotonic clock that counts from its start. Copies tell the same time, in all threads.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: Instant,
}

impl Clock {
    /// A clock that begins at [`Time::ZERO`] now.
    #[expect(clippy::disallowed_methods, reason = "the live worlds run by the clock; this is it")]
    pub fn start() -> Clock {
        Clock { start: Instant::now() }
    }

    /// The time since the start. It never goes backwards, and ends after 584 years.
    #[expect(clippy::disallowed_methods, reason = "the live worlds run by the clock; this is it")]
    pub fn now(self) -> Time {
        let nanos = self.start.elapsed().as_nanos();
        Time::ZERO + Span(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_tell_the_same_time() {
        let clock = Clock::start();
        let copy = clock;
        let first = clock.now();
        let second = copy.now();
        assert!(first <= second && second <= clock.now());
    }
}
