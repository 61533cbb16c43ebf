//! Veno (Fu and Liew, *TCP Veno: TCP Enhancement for Transmission Over Wireless Access Networks*, IEEE JSAC 21(2),
//! 2003): Reno with the backlog estimate of Vegas. A loss while few segments wait in queues counts as damage, and
//! reduces the window by a fifth instead of a half.
//!
//! The backlog is `cwnd * (RTT - BaseRTT) / RTT`. Below `beta`, three segments, a loss is random and the window grows as
//! Reno's does. From `beta` on a loss is congestion, and the window grows by a segment in every other round trip.
//!
//! Choices here: the round trip is smoothed with a gain of 1/8. A timeout resets the shortest one, since the path may
//! have changed. As in Linux, fewer than three round trips give no estimate.

use crate::tcp::config::{Congestion, RtoRule, TcpConfig};
use crate::tcp::keyword::{Deployment, Keyword, Linux};
use crate::units::{Span, Time};

use super::rack;
use crate::tcp::sender::Window;
use crate::tcp::sender::congestion_control::any::AnyCongestionControl;
use crate::tcp::sender::congestion_control::{Acked, CongestionControl, Loss};

/// The keyword.
pub const WORD: Keyword = Keyword {
    key: "veno",
    apply: |c| {
        rack::apply(c);
        c.congestion = Congestion::Veno;
        c.rto_rule = RtoRule::Linux;
    },
    summary: "RACK with Reno's window, which shrinks by only a fifth at a loss without a queue; made for wireless losses",
    source: "Fu and Liew 2003",
    tier: 0,
    worlds: crate::describe::SIM,
    syntax: "host: tcp = \"*\"",
    deployment: Deployment::Current,
    linux: Some(Linux::control("veno")),
};

/// Minimum backlog of a congested path, in segments.
const BETA: u64 = 3;
/// Minimum number of measured round trips.
const ENOUGH: u32 = 3;

/// Veno's window growth.
#[derive(Clone, Debug)]
pub struct Veno {
    /// Growth of the window.
    reno: AnyCongestionControl,
    base: Option<Span>,
    srtt: Span,
    /// Number of measured round trips.
    measured: u32,
    /// Acknowledged bytes since the last step, and whether the last step was taken.
    counted: u32,
    stepped: bool,
}

impl Veno {
    /// State before the first ACK.
    pub fn new(config: &TcpConfig) -> Veno {
        let reno = AnyCongestionControl::reno(config);
        Veno { reno, base: None, srtt: Span::ZERO, measured: 0, counted: 0, stepped: false }
    }

    fn sample(&mut self, rtt: Span) {
        self.base = Some(self.base.map_or(rtt, |base| base.min(rtt)));
        self.srtt = if self.measured == 0 { rtt } else { Span((7 * self.srtt.0 + rtt.0) / 8) };
        self.measured = self.measured.saturating_add(1);
    }

    /// Whether the backlog is so large that a loss means congestion; also true without an estimate.
    //= fu03: N = cwnd * (RTT - BaseRTT) / RTT, against beta
    fn is_congested(&self, w: &Window) -> bool {
        let Some(base) = self.base.filter(|_| self.measured >= ENOUGH) else { return true };
        let waited = u128::from(self.srtt.0.saturating_sub(base.0));
        let backlog = u128::from(w.cwnd) * waited / u128::from(self.srtt.0.max(1));
        backlog >= u128::from(BETA * u64::from(w.mss))
    }
}

impl CongestionControl for Veno {
    fn check(&self, window: &Window) {
        debug_assert!(
            self.base.is_none_or(|base| base <= self.srtt || self.measured == 0),
            "the round trip is shorter than the shortest"
        );
        self.reno.check(window);
    }

    fn on_ack(&mut self, w: &mut Window, ack: &Acked) {
        if let Some(rtt) = ack.rtt {
            self.sample(rtt);
        }
        if w.cwnd < w.ssthresh || self.measured < ENOUGH || !self.is_congested(w) {
            self.counted = 0;
            return self.reno.on_ack(w, ack);
        }
        //= fu03: with a backlog the window grows by a segment in every other round trip
        self.counted = self.counted.saturating_add(ack.bytes);
        if self.counted >= w.cwnd {
            self.counted = 0;
            self.stepped = !self.stepped;
            if self.stepped {
                w.open(w.mss);
            }
        }
    }

    //= fu03: a random loss leaves four fifths of the window
    fn ssthresh_after_loss(&mut self, now: Time, w: &Window, loss: Loss) -> u32 {
        let congested = self.is_congested(w);
        let half = self.reno.ssthresh_after_loss(now, w, loss);
        self.counted = 0;
        if loss == Loss::Timeout {
            (self.base, self.measured) = (None, 0);
        }
        if congested || loss == Loss::Timeout {
            return half;
        }
        w.in_segments((u64::from(w.cwnd) * 4 / 5) as u32).max(2 * w.mss)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(segments: u32) -> Window {
        let mut w = Window::new(&TcpConfig { mss: 1000, ..TcpConfig::rfc() });
        (w.cwnd, w.ssthresh, w.largest) = (segments * 1000, segments * 1000, u32::MAX);
        (w.una, w.nxt, w.max) = (1, w.cwnd as u64 + 1, w.cwnd as u64 + 1);
        w
    }

    fn measured(rtts: &[u64]) -> Veno {
        let mut veno = Veno::new(&TcpConfig::rfc());
        rtts.iter().for_each(|ms| veno.sample(Span::millis(*ms)));
        veno
    }

    #[test]
    fn a_loss_without_a_queue_costs_a_fifth_and_one_with_a_queue_half() {
        let w = window(50);
        let mut alone = measured(&[100, 101, 102, 102]);
        assert_eq!(alone.ssthresh_after_loss(Time(0), &w, Loss::Detected), 40_000);
        let mut queued = measured(&[&[100][..], &[150; 40]].concat());
        assert_eq!(queued.ssthresh_after_loss(Time(0), &w, Loss::Detected), 25_000);
        let mut unknown = measured(&[100]);
        assert_eq!(unknown.ssthresh_after_loss(Time(0), &w, Loss::Detected), 25_000);
        assert_eq!(alone.ssthresh_after_loss(Time(0), &w, Loss::Timeout), 25_000);
    }

    /// A backlog of 3 segments is congestion, one of fewer is not: 50 segments and 100 ms, 106.4 ms.
    #[test]
    fn beta_is_three_segments() {
        let w = window(50);
        assert!(!measured(&[&[100][..], &[106; 90]].concat()).is_congested(&w));
        assert!(measured(&[&[100][..], &[107; 90]].concat()).is_congested(&w));
    }

    #[test]
    fn with_a_backlog_the_window_grows_half_as_fast() {
        let grown = |veno: &mut Veno| {
            let mut w = window(20);
            for _ in 0..200 {
                veno.on_ack(&mut w, &Acked { now: Time(0), bytes: 1000, rtt: None });
            }
            w.cwnd - 20_000
        };
        let free = grown(&mut measured(&[100, 100, 100, 100]));
        let queued = grown(&mut measured(&[&[100][..], &[200; 40]].concat()));
        assert!((7_000..10_000).contains(&free), "{free}");
        assert!((4_000..=5_000).contains(&queued), "{queued}");
    }
}
