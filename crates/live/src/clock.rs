//! The clock of the live worlds: the machine's monotonic clock, relative to a start.

use lasthop_proto::units::Time;
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_gettime};

/// A monotonic clock that is zero at its start.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// The system's monotonic time at the start, nanoseconds.
    origin: u64,
}

fn monotonic() -> u64 {
    // Fails only for unknown clocks, and every Linux has this one.
    nanoseconds(clock_gettime(ClockId::CLOCK_MONOTONIC).unwrap_or(TimeSpec::new(0, 0)))
}

/// Converts a time of the system to nanoseconds.
pub(crate) fn nanoseconds(shown: TimeSpec) -> u64 {
    shown.tv_sec() as u64 * 1_000_000_000 + shown.tv_nsec() as u64
}

impl Clock {
    /// Starts a clock at zero.
    pub fn start() -> Clock {
        Clock { origin: monotonic() }
    }

    /// Time since the start.
    pub fn now(self) -> Time {
        Time(monotonic().saturating_sub(self.origin))
    }

    /// Converts the system's monotonic time, nanoseconds; zero for times before the start.
    pub fn from_monotonic(self, nanoseconds: u64) -> Time {
        Time(nanoseconds.saturating_sub(self.origin))
    }

    /// Converts `at` to the system's monotonic time, nanoseconds.
    pub fn monotonic(self, at: Time) -> u64 {
        self.origin.saturating_add(at.0)
    }

    /// Converts `at` to the system's monotonic time, for timers.
    pub fn absolute(self, at: Time) -> TimeSpec {
        let nanoseconds = self.monotonic(at);
        // Zero would disarm a timer, but the origin is never zero.
        TimeSpec::new((nanoseconds / 1_000_000_000) as i64, (nanoseconds % 1_000_000_000) as i64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn monotonic_time_converts_back_and_forth() {
        let clock = Clock::start();
        let at = Time(5_000_000_123);
        assert_eq!(nanoseconds(TimeSpec::new(3, 4)), 3_000_000_004);
        assert_eq!(clock.from_monotonic(nanoseconds(clock.absolute(at))), at);
        assert_eq!(clock.from_monotonic(0), Time::ZERO);
    }

    #[test]
    fn copies_of_a_clock_share_one_time_base() {
        let clock = Clock::start();
        let copy = clock;
        let first = clock.now();
        let second = copy.now();
        assert!(first <= second && second <= clock.now());
    }
}
