//! How a loop sleeps until the next wake: a timer of the system, set as rarely as can be.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use lasthop_proto::units::{Span, Time};
use nix::sys::epoll::EpollTimeout;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};

use crate::clock::Clock;

/// A wake that is nearer than this is waited for without sleeping: the system's timers are later than that.
const SPIN: Span = Span::micros(60);

/// The longest sleep, so that whoever asked to stop is heard.
const DOZE_MS: u16 = 50;

/// A timer that a loop waits for beside other things.
pub(crate) struct Alarm {
    timer: TimerFd,
    set_for: Option<Time>,
}

impl Alarm {
    /// One that is not set.
    pub fn new() -> io::Result<Alarm> {
        let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, flags)?;
        Ok(Alarm { timer, set_for: None })
    }

    /// Sets it for the `next` wake; how long to wait at most.
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

    /// It rang. What is not read stays ready, and nobody would ever sleep again.
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

    /// Whether it rings within the time.
    fn rings(alarm: &Alarm, patience: PollTimeout) -> bool {
        let mut fds = [PollFd::new(alarm.as_fd(), PollFlags::POLLIN)];
        poll(&mut fds, patience).unwrap() > 0
    }

    /// It rings for the wake that it was set for, not before it and not when it was set for none.
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
