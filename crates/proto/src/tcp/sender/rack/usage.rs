//! Whether the congestion window is used: one that is not says nothing about the path and does not grow. With the windows
//! of Linux it also comes down: to the first one after a time-out's worth of silence (`tcp_cwnd_restart`), and halfway to
//! what was used when less has been in flight for so long (`tcp_cwnd_application_limited`).

use crate::tcp::config::{GrowthRule, TcpConfig};
use crate::tcp::sender::Window;
use crate::units::{Span, Time};

/// How the window is used.
#[derive(Clone, Debug)]
pub(super) struct Usage {
    /// Whether the last thing sent was stopped by the congestion window.
    limited: bool,
    /// The most that was outstanding in this round trip, and where the round trip ends.
    most: (u64, u64),
    /// What brings an unused window down.
    decay: Option<Decay>,
}

#[derive(Clone, Debug)]
struct Decay {
    /// The first window, in segments.
    first: u32,
    /// When something was last sent, and whether that was since the window was last looked at.
    sent: Option<Time>,
    fresh: bool,
    /// Since when the window has not been the limit, and the most that was in flight since.
    since: (Time, u64),
}

impl Usage {
    pub(super) fn new(config: &TcpConfig) -> Usage {
        let linux = config.growth == GrowthRule::Linux && !config.congestion.has_a_model();
        let first = config.initial_window;
        let decay = Decay { first, sent: None, fresh: false, since: (Time::ZERO, 0) };
        Usage { limited: false, most: (0, 0), decay: linux.then_some(decay) }
    }

    /// Something goes out.
    pub(super) fn sent(&mut self, now: Time) {
        if let Some(decay) = &mut self.decay {
            (decay.sent, decay.fresh) = (Some(now), true);
        }
    }

    /// Whether more would be sent if the congestion window allowed it; remembered for the growth of the window.
    pub(super) fn note(&mut self, w: &Window, by_window: bool) {
        let out = w.nxt - w.una;
        if w.una >= self.most.1 || by_window || (!self.limited && out > self.most.0) {
            self.limited = by_window;
            self.most = (out, w.nxt);
        }
    }

    /// Whether the window has been used, so that it may grow.
    //= rfc7661: a window that is not used says nothing about the path; the rule is Linux' tcp_is_cwnd_limited
    pub(super) fn may_grow(&self, w: &Window) -> bool {
        self.limited || (w.cwnd < w.ssthresh && u64::from(w.cwnd) < 2 * self.most.0)
    }

    /// Nothing is in flight, and there is something to send; `rto` is the time-out in force.
    pub(super) fn restart(&mut self, now: Time, rto: Span, w: &mut Window) {
        let Some(decay) = &mut self.decay else { return };
        let idle = decay.sent.map_or(Span::ZERO, |sent| now.since(sent));
        if idle <= rto {
            return;
        }
        decay.sent = Some(now);
        let least = w.mss.saturating_mul(decay.first).min(w.cwnd);
        let halvings = (idle.0 / rto.0.max(1)).min(31);
        remember(w);
        w.cwnd = w.in_segments(w.cwnd >> halvings).max(least);
    }

    /// No loss is being repaired, and for now nothing more is sent, with `out` bytes in flight; `limited` says whether
    /// the window forbids it.
    pub(super) fn validate(
        &mut self,
        now: Time,
        rto: Span,
        w: &mut Window,
        out: u64,
        limited: bool,
    ) {
        let Some(decay) = self.decay.as_mut().filter(|decay| limited || decay.fresh) else {
            return;
        };
        decay.fresh = false;
        if limited {
            decay.since = (now, 0);
            return;
        }
        decay.since.1 = decay.since.1.max(out);
        if now.since(decay.since.0) < rto {
            return;
        }
        let used = decay.since.1.max(w.mss.saturating_mul(decay.first).into());
        if used < w.cwnd.into() {
            remember(w);
            w.cwnd = w.in_segments(((u64::from(w.cwnd) + used) / 2) as u32);
        }
        decay.since = (now, 0);
    }
}

/// The threshold remembers what the path has borne.
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
        (w.cwnd, w.ssthresh) = (80_000, 20_000);
        (Usage::new(&config), w)
    }

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::millis(ms)
    }

    #[test]
    fn silence_halves_the_window_for_each_time_out_down_to_the_first_one() {
        let (mut usage, mut w) = linux();
        usage.sent(at(100));
        usage.restart(at(300), RTO, &mut w);
        assert_eq!(w.cwnd, 80_000, "no longer than a time-out");
        usage.restart(at(510), RTO, &mut w);
        assert_eq!(
            (w.cwnd, w.ssthresh),
            (20_000, 60_000),
            "two of them; three quarters are remembered"
        );
        usage.restart(at(520), RTO, &mut w);
        assert_eq!(w.cwnd, 20_000, "once");
        usage.restart(at(10_000), RTO, &mut w);
        assert_eq!(w.cwnd, 10_000);
    }

    #[test]
    fn a_window_that_is_not_used_comes_halfway_down() {
        let (mut usage, mut w) = linux();
        usage.sent(at(1000));
        usage.validate(at(1000), RTO, &mut w, 80_000, true);
        for ms in [1050, 1199] {
            usage.sent(at(ms));
            usage.validate(at(ms), RTO, &mut w, 40_000, false);
        }
        usage.validate(at(1300), RTO, &mut w, 0, false);
        assert_eq!(w.cwnd, 80_000, "nothing was sent");
        usage.sent(at(1300));
        usage.validate(at(1300), RTO, &mut w, 5000, false);
        assert_eq!((w.cwnd, w.ssthresh), (60_000, 60_000), "of the most in flight");
        usage.sent(at(1500));
        usage.validate(at(1500), RTO, &mut w, 5000, false);
        assert_eq!(w.cwnd, 35_000, "the first window counts as used");
    }
}
