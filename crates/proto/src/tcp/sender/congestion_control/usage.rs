//! Congestion window validation for all senders: an unused window gives no information about the path and does not grow
//! (RFC 7661). [`IdleRestart`] is the rule for the window after idle time. With [`IdleRestart::Decay`] a window that was
//! not fully used for a retransmission timeout also decreases halfway to its use (`tcp_cwnd_application_limited`).

use crate::event::Cause;
use crate::tcp::config::{GrowthRule, IdleRestart, TcpConfig};
use crate::units::{Span, Time};

use crate::tcp::sender::Window;

/// Use of the congestion window.
#[derive(Clone, Debug)]
pub(in crate::tcp::sender) struct Usage {
    /// Whether an unused window does not grow.
    validates: bool,
    /// Whether Linux's rules apply.
    linux: bool,
    /// Rule for the window after idle time.
    restart: IdleRestart,
    /// The initial window in segments.
    first: u32,
    /// Whether the congestion window has stopped the last transmission.
    limited: bool,
    /// Maximum outstanding bytes in this round trip, and the position that ends the round trip.
    most: (u64, u64),
    /// Time of the last transmission.
    sent: Option<Time>,
    /// Whether data was sent since the last validation of the window, and since the last record of its use.
    fresh: bool,
    unnoted: bool,
    /// Time since which the window has not been the limit, and the maximum bytes in flight since then.
    since: (Time, u64),
}

impl Usage {
    pub(in crate::tcp::sender) fn new(config: &TcpConfig) -> Usage {
        // A control with a path model does not restart: its pacing bounds the burst after idle time.
        let restart = match config.congestion.has_a_model() {
            true => IdleRestart::Off,
            false => config.slow_start_after_idle,
        };
        Usage {
            validates: config.window_validation,
            linux: config.growth == GrowthRule::Linux,
            restart,
            first: config.initial_window,
            limited: false,
            most: (0, 0),
            sent: None,
            fresh: false,
            unnoted: false,
            since: (Time::ZERO, 0),
        }
    }

    /// Records a transmission with `cause`. In Linux a window probe does not count, and only new data shows the use of the
    /// window.
    pub(in crate::tcp::sender) fn sent(&mut self, now: Time, cause: Cause) {
        if self.linux && cause == Cause::WindowProbe {
            return;
        }
        self.sent = Some(now);
        if !self.linux || cause == Cause::Data {
            (self.fresh, self.unnoted) = (true, true);
        }
    }

    /// Whether data was sent since the last record of the window's use.
    pub(in crate::tcp::sender) fn is_unnoted(&self) -> bool {
        self.unnoted
    }

    /// Records whether the congestion window prevents further transmissions, for the growth of the window; `out` bytes
    /// are outstanding.
    pub(in crate::tcp::sender) fn note(&mut self, w: &Window, out: u64, by_window: bool) {
        self.unnoted = false;
        if w.una >= self.most.1 || by_window || (!self.limited && out > self.most.0) {
            self.limited = by_window;
            self.most = (out, w.nxt);
        }
    }

    /// Whether the window may grow.
    pub(in crate::tcp::sender) fn may_grow(&self, w: &Window) -> bool {
        !self.validates || self.is_used(w)
    }

    /// Whether the window was the limit. In slow start it also counts as used below twice the largest flight.
    //= rfc7661: an unused window gives no information about the path; the rule is Linux' tcp_is_cwnd_limited
    fn is_used(&self, w: &Window) -> bool {
        self.limited || (w.cwnd < w.ssthresh && u64::from(w.cwnd) < 2 * self.most.0)
    }

    /// Reduces the window after idle time. Called with data to send and none in flight; `rto` is the current timeout.
    //= rfc5681#section-4.1: no data sent for longer than the RTO: at most the restart window, min(IW, cwnd)
    pub(in crate::tcp::sender) fn restart(&mut self, now: Time, rto: Span, w: &mut Window) {
        let idle = self.sent.map_or(Span::ZERO, |sent| now.since(sent));
        // Linux checks this when data is written and when the window opens, not at a probe.
        if idle <= rto || self.restart == IdleRestart::Decay && w.peer == 0 {
            return;
        }
        self.sent = Some(now);
        let first = w.mss.saturating_mul(self.first).min(w.cwnd);
        match self.restart {
            IdleRestart::Off => {}
            IdleRestart::OneSegment => w.cwnd = w.cwnd.min(w.mss),
            IdleRestart::InitialWindow => w.cwnd = first,
            IdleRestart::Decay => {
                let halvings = (idle.0 / rto.0.max(1)).min(31);
                remember(w);
                w.cwnd = w.in_segments(w.cwnd >> halvings).max(first);
                self.since = (now, 0);
            }
        }
    }

    /// Records that a loss, or the end of its repair, has set the window: it counts as used (`snd_cwnd_stamp`).
    pub(in crate::tcp::sender) fn renew(&mut self, now: Time) {
        self.since.0 = now;
    }

    /// Records the use of the window as [`Usage::note`] does, with `out` bytes outstanding. With [`IdleRestart::Decay`] a
    /// window that was not used for a timeout falls, if nothing is to be repaired (`open`).
    pub(in crate::tcp::sender) fn validate(
        &mut self,
        (now, rto): (Time, Span),
        w: &mut Window,
        (out, limited): (u64, bool),
        open: bool,
    ) {
        self.note(w, out, limited);
        let fresh = core::mem::take(&mut self.fresh);
        if self.restart != IdleRestart::Decay || !(limited || fresh) {
            return;
        }
        let most = self.since.1.max(out);
        if self.is_used(w) {
            self.since = (now, 0);
        } else if now.since(self.since.0) < rto {
            self.since.1 = most;
        } else {
            let used = most.max(w.mss.saturating_mul(self.first).into());
            if open && used < w.cwnd.into() {
                remember(w);
                w.cwnd = w.in_segments(((u64::from(w.cwnd) + used) / 2) as u32);
            }
            self.since = (now, 0);
        }
    }
}

/// Raises the threshold to three quarters of the window, before the window is reduced.
fn remember(w: &mut Window) {
    w.ssthresh = w.ssthresh.max(w.cwnd / 2 + w.cwnd / 4);
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTO: Span = Span::millis(200);

    fn linux() -> (Usage, Window) {
        let config = TcpConfig { mss: 1000, ..TcpConfig::linux() };
        let mut w = Window::new(&config);
        (w.cwnd, w.ssthresh, w.peer) = (80_000, 20_000, 80_000);
        (Usage::new(&config), w)
    }

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::millis(ms)
    }

    #[test]
    fn silence_halves_the_window_for_each_time_out_down_to_the_first_one() {
        let (mut usage, mut w) = linux();
        usage.sent(at(100), Cause::Data);
        usage.restart(at(300), RTO, &mut w);
        assert_eq!(w.cwnd, 80_000, "no longer than a timeout");
        usage.restart(at(510), RTO, &mut w);
        assert_eq!(
            (w.cwnd, w.ssthresh),
            (20_000, 60_000),
            "two of them; three quarters are remembered"
        );
        usage.restart(at(520), RTO, &mut w);
        assert_eq!(w.cwnd, 20_000, "once");
        w.peer = 0;
        usage.restart(at(10_000), RTO, &mut w);
        assert_eq!(w.cwnd, 20_000, "not for a probe of a closed window");
        w.peer = 80_000;
        usage.restart(at(10_000), RTO, &mut w);
        assert_eq!(w.cwnd, 10_000);
    }

    /// The window and the threshold after an idle time of two timeouts, and after a shorter one.
    #[test]
    fn each_rule_restarts_from_its_own_window() {
        for (rule, cwnd, ssthresh) in [
            (IdleRestart::Off, 80_000, 20_000),
            (IdleRestart::OneSegment, 1_000, 20_000),
            (IdleRestart::InitialWindow, 10_000, 20_000),
            (IdleRestart::Decay, 20_000, 60_000),
        ] {
            let (_, mut w) = linux();
            let config = TcpConfig { slow_start_after_idle: rule, ..TcpConfig::linux() };
            let mut usage = Usage::new(&config);
            usage.restart(at(10_000), RTO, &mut w);
            assert_eq!(w.cwnd, 80_000, "{rule:?}: nothing was ever sent");
            usage.sent(at(100), Cause::Data);
            usage.restart(at(300), RTO, &mut w);
            assert_eq!(w.cwnd, 80_000, "{rule:?}: no longer than a timeout");
            usage.restart(at(510), RTO, &mut w);
            assert_eq!((w.cwnd, w.ssthresh), (cwnd, ssthresh), "{rule:?}");
            w.cwnd = 500;
            usage.restart(at(10_000), RTO, &mut w);
            assert_eq!(w.cwnd, 500, "{rule:?}: a smaller window stays");
        }
    }

    #[test]
    fn a_window_that_is_not_used_comes_halfway_down() {
        let (mut usage, mut w) = linux();
        usage.sent(at(1000), Cause::Data);
        usage.validate((at(1000), RTO), &mut w, (80_000, true), true);
        for ms in [1050, 1199] {
            usage.sent(at(ms), Cause::Data);
            usage.validate((at(ms), RTO), &mut w, (40_000, false), true);
        }
        usage.validate((at(1300), RTO), &mut w, (0, false), true);
        assert_eq!(w.cwnd, 80_000, "nothing was sent");
        usage.sent(at(1300), Cause::Data);
        usage.validate((at(1300), RTO), &mut w, (5000, false), true);
        assert_eq!((w.cwnd, w.ssthresh), (60_000, 60_000), "of the most in flight");
        usage.sent(at(1500), Cause::Data);
        usage.validate((at(1500), RTO), &mut w, (5000, false), true);
        assert_eq!(w.cwnd, 35_000, "the first window counts as used");
        usage.sent(at(1800), Cause::Data);
        usage.validate((at(1800), RTO), &mut w, (5000, false), false);
        assert_eq!(w.cwnd, 35_000, "not during a repair");
        (w.cwnd, w.ssthresh) = (19_000, 60_000);
        usage.sent(at(2100), Cause::Data);
        usage.validate((at(2100), RTO), &mut w, (10_000, false), true);
        assert_eq!(w.cwnd, 19_000, "slow start has not doubled the flight");
    }
}
