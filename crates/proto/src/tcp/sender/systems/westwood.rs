//! Westwood+ (Mascolo, Casetti, Gerla, Sanadidi and Wang, *TCP Westwood: Bandwidth Estimation for Enhanced Transport
//! over Wireless Links*, MobiCom 2001; Grieco and Mascolo, *Performance Evaluation and Comparison of Westwood+, New
//! Reno, and Vegas TCP Congestion Control*, ACM CCR 34(2), 2004). After a loss the window is the product of the
//! measured bandwidth and the shortest round trip, not half of the previous window.
//!
//! The acknowledged bytes of a round trip, at least 50 ms, are a sample of the bandwidth. Samples pass a low-pass
//! filter twice, as in Linux. So a random loss on a path with an empty queue does not reduce the window: the product
//! equals it. After a timeout slow start ends at the product.
//!
//! Choices here: a sample is the movement of the left edge, so that data of a recovery counts at its end. At a loss that
//! ACKs have shown, the product never increases the window.

use crate::tcp::config::{Congestion, RtoRule, TcpConfig};
use crate::tcp::keyword::{Deployment, Keyword, Linux};
use crate::units::{Span, Time};

use super::rack;
use crate::tcp::sender::Window;
use crate::tcp::sender::congestion_control::any::AnyCongestionControl;
use crate::tcp::sender::congestion_control::{Acked, CongestionControl, Loss};

/// The keyword.
pub const WORD: Keyword = Keyword {
    key: "westwood",
    apply: |c| {
        rack::apply(c);
        c.congestion = Congestion::Westwood;
        c.rto_rule = RtoRule::Linux;
    },
    summary: "RACK with Reno's window, which a loss reduces to the measured bandwidth times the shortest round trip",
    source: "Mascolo et al. 2001; Grieco and Mascolo 2004 (Westwood+)",
    tier: 0,
    worlds: crate::describe::SIM,
    syntax: "host: tcp = \"*\"",
    deployment: Deployment::Current,
    linux: Some(Linux::control("westwood")),
};

/// Minimum time of a sample.
const LEAST: Span = Span::millis(50);

/// Westwood+'s window growth.
#[derive(Clone, Debug)]
pub struct Westwood {
    /// Growth of the window.
    reno: AnyCongestionControl,
    /// Shortest round trip since the last timeout, and last round trip.
    shortest: Option<Span>,
    last: Span,
    /// Start of this sample, and left edge at that time.
    since: Option<(Time, u64)>,
    /// Bytes per second, filtered once and twice; 0 before the first sample.
    once: u64,
    twice: u64,
}

impl Westwood {
    /// State before the first ACK.
    pub fn new(config: &TcpConfig) -> Westwood {
        let reno = AnyCongestionControl::reno(config);
        Westwood { reno, shortest: None, last: Span::ZERO, since: None, once: 0, twice: 0 }
    }

    fn measure(&mut self, now: Time, una: u64) {
        let (begin, from) = *self.since.get_or_insert((now, una));
        let time = now.since(begin);
        //= grieco04: a sample for each round trip
        if time <= self.last.max(LEAST) {
            return;
        }
        let sample = u128::from(una - from) * 1_000_000_000 / u128::from(time.0);
        let sample = sample.min(u128::from(u64::MAX / 8)) as u64;
        let filter = |old: u64, new: u64| (7 * old + new) / 8;
        if (self.once, self.twice) == (0, 0) {
            (self.once, self.twice) = (sample, sample);
        } else {
            self.once = filter(self.once, sample);
            self.twice = filter(self.twice, self.once);
        }
        self.since = Some((now, una));
    }

    /// Product of the bandwidth and the shortest round trip, in bytes.
    fn product(&self) -> u32 {
        let rtt = self.shortest.unwrap_or(Span::ZERO);
        let bytes = u128::from(self.twice) * u128::from(rtt.0) / 1_000_000_000;
        bytes.min(u128::from(u32::MAX)) as u32
    }
}

impl CongestionControl for Westwood {
    fn check(&self, window: &Window) {
        debug_assert!(
            self.shortest.is_none_or(|shortest| shortest <= self.last || self.last == Span::ZERO),
            "the last round trip is shorter than the shortest"
        );
        self.reno.check(window);
    }

    fn on_ack(&mut self, w: &mut Window, ack: &Acked) {
        if let Some(rtt) = ack.rtt {
            self.last = rtt;
            self.shortest = Some(self.shortest.map_or(rtt, |shortest| shortest.min(rtt)));
        }
        self.measure(ack.now, w.una);
        self.reno.on_ack(w, ack);
    }

    //= mascolo01: the threshold is the bandwidth times the shortest round trip
    fn ssthresh_after_loss(&mut self, now: Time, w: &Window, loss: Loss) -> u32 {
        self.measure(now, w.una);
        self.reno.ssthresh_after_loss(now, w, loss);
        let product = w.in_segments(self.product());
        match loss {
            Loss::Detected => product.min(w.cwnd).max(2 * w.mss),
            Loss::Timeout => {
                // The path may have changed.
                self.shortest = None;
                product.max(2 * w.mss)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use core::ops::Range;

    use super::*;

    fn window(segments: u32) -> Window {
        let mut w = Window::new(&TcpConfig { mss: 1000, ..TcpConfig::rfc() });
        (w.cwnd, w.ssthresh, w.largest) = (segments * 1000, segments * 1000, u32::MAX);
        w
    }

    /// A path of `rate` bytes a millisecond with round trips of `rtt` ms, between these milliseconds.
    fn carry(westwood: &mut Westwood, w: &mut Window, rate: u64, rtt: u64, when: Range<u64>) {
        for ms in when {
            (w.una, w.max) = (w.una + rate, w.una + 100_000);
            let now = Time(ms * 1_000_000);
            let rtt = Some(Span::millis(rtt));
            westwood.on_ack(w, &Acked { now, bytes: rate as u32, rtt });
        }
    }

    /// With 1000 bytes per millisecond and 100 ms the path carries 100 segments without a queue. A random loss does not
    /// reduce a window of that size. Half of a window of 180 segments is less than the path carries.
    #[test]
    fn a_random_loss_leaves_the_window_that_the_path_carries() {
        let mut westwood = Westwood::new(&TcpConfig::rfc());
        let mut w = window(100);
        carry(&mut westwood, &mut w, 1000, 100, 0..5000);
        w.cwnd = 100_000;
        let later = Time(5_000_000_000);
        let after = westwood.clone().ssthresh_after_loss(later, &w, Loss::Detected);
        assert!((95_000..=100_000).contains(&after), "{after}");
        w.cwnd = 180_000;
        let after = westwood.clone().ssthresh_after_loss(later, &w, Loss::Detected);
        assert!((95_000..=105_000).contains(&after), "{after}");
        // It never increases the window. After a timeout slow start may reach the product.
        w.cwnd = 40_000;
        assert_eq!(westwood.clone().ssthresh_after_loss(later, &w, Loss::Detected), 40_000);
        let after = westwood.ssthresh_after_loss(later, &w, Loss::Timeout);
        assert!((95_000..=105_000).contains(&after), "{after}");
    }

    /// The queue of a full path is in the last round trip and not in the shortest one.
    #[test]
    fn a_full_queue_is_emptied() {
        let mut westwood = Westwood::new(&TcpConfig::rfc());
        let mut w = window(100);
        carry(&mut westwood, &mut w, 1000, 100, 0..1000);
        carry(&mut westwood, &mut w, 1000, 200, 1000..5000);
        w.cwnd = 200_000;
        let after = westwood.ssthresh_after_loss(Time(5_000_000_000), &w, Loss::Detected);
        assert!((90_000..=110_000).contains(&after), "{after}");
    }

    #[test]
    fn the_estimate_follows_the_path() {
        let mut westwood = Westwood::new(&TcpConfig::rfc());
        let mut w = window(100);
        carry(&mut westwood, &mut w, 1000, 100, 0..3000);
        let fast = westwood.twice;
        carry(&mut westwood, &mut w, 250, 100, 3000..9000);
        assert!(westwood.twice < fast / 3, "{fast} {}", westwood.twice);
    }
}
