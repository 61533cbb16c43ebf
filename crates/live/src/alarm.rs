//! Sleep of an event loop until its next deadline, by a system timer that is set as rarely as
//! possible.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use lasthop_proto::units::{Span, Time};
use nix::sys::epoll::EpollTimeout;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};

use crate::clock::Clock;

/// Time before a deadline from which on the loop polls without sleep, since the system's timers are late by about this
/// time.
const SPIN: Span = Span::micros(60);

/// Longest sleep, ms, so that a stop flag is noticed.
const DOZE_MS: u16 = 50;

/// A timer for use in `epoll` together with other descriptors.
pub(crate) struct Alarm {
    timer: TimerFd,
    set_for: Option<Time>,
}

impl Alarm {
    /// A disarmed timer.
    pub fn new() -> io::Result<Alarm> {
        let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, flags)?;
        Ok(Alarm { timer, set_for: None })
    }

    /// Sets the timer for the deadline `next`. Returns the time limit for `epoll`.
    pub fn set(&mut self, clock: Clock, next: Option<Time>) -> io::Result<EpollTimeout> {
        if next.is_some_and(|at| at <= clock.now() + SPIN) {
            return Ok(EpollTimeout::ZERO);
        }
        if let Some(at) = next.filter(|_| next != self.set_for) {
            let at = Expiration::OneShot(clock.absolute(at));
            self.timer.set(at, TimerSetTimeFlags::TFD_TIMER_ABSTIME)?;
            self.set_for = next;
        }
        Ok(EpollTimeout::from(DOZE_MS))
    }

    /// Acknowledges an expiration. An unread timer would remain ready, and the loop would never sleep again.
    pub fn rang(&mut self) {
        self.set_for = None;
        let _ = self.timer.wait();
    }
}

impl AsFd for Alarm {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.timer.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

    use super::*;

    /// Whether the timer expires within `patience`.
    fn rings(alarm: &Alarm, patience: PollTimeout) -> bool {
        let mut fds = [PollFd::new(alarm.as_fd(), PollFlags::POLLIN)];
        poll(&mut fds, patience).unwrap() > 0
    }

    /// The timer expires at its deadline, not earlier, and not without one.
    #[test]
    fn it_rings_for_the_wake_that_it_was_set_for() {
        let clock = Clock::start();
        let mut alarm = Alarm::new().unwrap();
        let doze = EpollTimeout::from(DOZE_MS);
        assert_eq!(alarm.set(clock, None).unwrap(), doze);
        assert_eq!(alarm.set(clock, Some(Time::ZERO)).unwrap(), EpollTimeout::ZERO, "it is over");
        let hour = clock.now() + Span::secs(3600);
        assert_eq!(alarm.set(clock, Some(hour)).unwrap(), doze);
        assert_eq!(alarm.set_for, Some(hour));
        assert!(!rings(&alarm, PollTimeout::ZERO), "in an hour");
        let soon = clock.now() + Span::millis(20);
        assert_eq!(alarm.set(clock, Some(soon)).unwrap(), doze);
        assert!(rings(&alarm, PollTimeout::from(60_000_u16)), "it was set for 20 ms from now");
        assert!(clock.now() >= soon, "too early");
        alarm.rang();
        assert_eq!(alarm.set_for, None);
        assert!(!rings(&alarm, PollTimeout::ZERO), "it rings once");
    }
}
