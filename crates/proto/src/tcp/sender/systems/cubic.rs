//! CUBIC (RFC 9438): after a loss the window returns to its previous value along a cubic function of time, remains there
//! for some time, and then grows increasingly fast.
//!
//! Modelled with fast convergence, the Reno-friendly region, and HyStart++ for the first slow start, in integer
//! arithmetic. As in Linux, and as RFC 9438 section 4.6 permits, a loss reduces the congestion window, not the flight.
//! The window grows only when it is used.

use crate::tcp::config::{Congestion, RtoRule, TcpConfig};
use crate::tcp::keyword::{Deployment, Keyword, Linux};
use crate::units::{Span, Time};

use super::rack;
use crate::tcp::sender::Window;
use crate::tcp::sender::congestion_control::hystart::HyStart;
use crate::tcp::sender::congestion_control::{Acked, CongestionControl, Loss};

/// The keyword.
pub const WORD: Keyword = Keyword {
    key: "cubic",
    apply: |c| {
        rack::apply(c);
        c.congestion = Congestion::Cubic;
        c.rto_rule = RtoRule::Linux;
    },
    summary: "RACK with a window that follows a cubic function of the time since the last loss; the default of Linux",
    source: "RFC 9438, with RFC 8985 and RFC 9406",
    tier: 0,
    worlds: crate::describe::SIM,
    syntax: "host: tcp = \"*\"",
    deployment: Deployment::Current,
    linux: Some(Linux::control("cubic")),
};

/// C, in tenths of a segment per second cubed.
//= rfc9438#section-5: C SHOULD be 0.4
const C_TENTHS: u128 = 4;
/// Microseconds in a second, cubed.
const CUBED: u128 = 1_000_000_000_000_000_000;
/// Maximum distance from the plateau in microseconds; a larger one counts as this one.
const FAR: u64 = 10_000_000_000;

/// CUBIC's window growth.
#[derive(Clone, Debug)]
pub struct Cubic {
    /// The window before the last loss, where the curve is flat, in bytes.
    w_max: u32,
    epoch: Option<Epoch>,
    /// Whether the last reduction was by a timeout.
    timed_out: bool,
    /// The shortest round trip.
    rtt: Span,
    /// Rest of the growth below one byte, times the window.
    rest: u64,
    /// Time of the last ACK.
    last: Time,
    /// HyStart++ until the first loss.
    hystart: Option<HyStart>,
    paced: bool,
}

/// One epoch of congestion avoidance.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    start: Time,
    /// Time from the start to the plateau, in microseconds.
    k: u64,
    /// The window at the plateau.
    plateau: u32,
    /// The window of Reno, in 1/1024 of a byte.
    reno: u64,
}

impl Cubic {
    /// State before the first loss.
    pub fn new(config: &TcpConfig) -> Cubic {
        Cubic {
            w_max: 0,
            epoch: None,
            timed_out: false,
            rtt: Span::ZERO,
            rest: 0,
            last: Time::ZERO,
            hystart: Some(HyStart::default()),
            paced: config.pacing,
        }
    }

    fn begin(&self, now: Time, w: &Window) -> Epoch {
        //= rfc9438#section-4.8: after a timeout K is 0 and the plateau is where congestion avoidance begins
        let climbs = self.w_max > w.cwnd && !self.timed_out;
        let (k, plateau) = if climbs {
            //= rfc9438#section-4.2: K = cubic_root((W_max - cwnd_epoch) / C)
            let short = u128::from(self.w_max - w.cwnd);
            (cube_root(short * 10 * CUBED / (C_TENTHS * u128::from(w.mss.max(1)))), self.w_max)
        } else {
            (0, w.cwnd)
        };
        Epoch { start: now, k, plateau, reno: u64::from(w.cwnd) << 10 }
    }
}

impl Epoch {
    /// The window after the time `t` in congestion avoidance.
    //= rfc9438#section-4.2: W_cubic(t) = C * (t - K)^3 + W_max
    fn window(&self, t: Span, mss: u32) -> u64 {
        let t = t.0 / 1000;
        let away = u128::from(t.abs_diff(self.k).min(FAR));
        let change = C_TENTHS * u128::from(mss) * away * away * away / (10 * CUBED);
        let change = change.min(u128::from(u32::MAX)) as u64;
        let plateau = u64::from(self.plateau);
        if t < self.k { plateau.saturating_sub(change) } else { plateau + change }
    }
}

impl CongestionControl for Cubic {
    fn check(&self, _: &Window) {
        let Some(epoch) = &self.epoch else { return };
        debug_assert!(epoch.start <= self.last, "an epoch begins before its last ACK");
        debug_assert!(epoch.plateau > 0, "the plateau is a window");
    }

    fn on_ack(&mut self, w: &mut Window, ack: &Acked) {
        self.last = ack.now;
        if let Some(rtt) = ack.rtt {
            self.rtt = if self.rtt == Span::ZERO { rtt } else { self.rtt.min(rtt) };
        }
        if w.cwnd < w.ssthresh {
            let opens = match &mut self.hystart {
                None => Some(ack.bytes),
                Some(hystart) => hystart.on_ack(w, ack.bytes, ack.rtt, self.paced),
            };
            match opens {
                Some(bytes) => return w.open(bytes),
                None => {
                    w.ssthresh = w.cwnd;
                    self.hystart = None;
                }
            }
        }
        let mut epoch = self.epoch.unwrap_or_else(|| self.begin(ack.now, w));
        let t = ack.now.since(epoch.start);
        let cwnd = u64::from(w.cwnd.max(1));
        //= rfc9438#section-4.3: alpha is 3 (1 - beta) / (1 + beta)
        // Above the window before the loss the RFC raises alpha to 1. Linux does not, and most hosts run Linux.
        epoch.reno += ((9 * u64::from(ack.bytes) * u64::from(w.mss)) << 10) / (17 * cwnd);
        self.epoch = Some(epoch);
        let friendly = epoch.reno >> 10;
        if epoch.window(t, w.mss) < friendly {
            w.open(friendly.saturating_sub(cwnd) as u32);
            return;
        }
        //= rfc9438#section-4.2: the target of the next round trip, no more than half a window away
        let target = epoch.window(t + self.rtt, w.mss).clamp(cwnd, cwnd + cwnd / 2);
        self.rest += (target - cwnd) * u64::from(ack.bytes);
        w.open((self.rest / cwnd) as u32);
        self.rest %= cwnd;
    }

    fn ssthresh_after_loss(&mut self, _: Time, w: &Window, loss: Loss) -> u32 {
        self.epoch = None;
        self.hystart = None;
        self.rest = 0;
        self.timed_out = loss == Loss::Timeout;
        //= rfc9438#section-4.7: fast convergence: a flow with a smaller window than before leaves room for others
        self.w_max = match w.cwnd < self.w_max {
            true => (u64::from(w.cwnd) * 17 / 20) as u32,
            false => w.cwnd,
        };
        //= rfc9438#section-4.6: beta is 0.7
        ((u64::from(w.cwnd) * 7 / 10) as u32).max(2 * w.mss)
    }

    //= rfc9438#section-5.8: time in which the application sends nothing is no part of the curve
    fn restart(&mut self, now: Time, _: bool) {
        if let Some(epoch) = &mut self.epoch {
            epoch.start = (epoch.start + now.since(self.last)).min(now);
        }
        self.last = now;
    }
}

/// The largest integer whose cube is not larger than `x`.
pub(in crate::tcp::sender) fn cube_root(x: u128) -> u64 {
    // Bit by bit: exact, and equal on all machines.
    let mut root = 0u128;
    for bit in (0..42).rev() {
        let next = root | (1 << bit);
        if next * next * next <= x {
            root = next;
        }
    }
    root as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_cube_root_is_exact(x in 0u128..1 << 120) {
            let root = u128::from(cube_root(x));
            prop_assert!(root * root * root <= x && (root + 1) * (root + 1) * (root + 1) > x);
        }
    }

    /// A window of `segments` of 1000 bytes in congestion avoidance.
    fn window(segments: u32) -> Window {
        let mut w = Window::new(&TcpConfig { mss: 1000, ..TcpConfig::rfc() });
        (w.cwnd, w.ssthresh, w.largest) = (segments * 1000, segments * 1000, u32::MAX);
        w
    }

    /// The windows in segments at the end of each second, when every window's ACKs come within a round trip.
    fn course(cubic: &mut Cubic, w: &mut Window, rtt: u64, seconds: u64) -> Vec<u32> {
        let mut seen = Vec::new();
        let mut now = 0;
        for second in 1..=seconds {
            while now < second * 1_000_000_000 {
                now += rtt * 1_000_000;
                for _ in 0..w.cwnd / 1000 {
                    let ack = Acked { now: Time(now), bytes: 1000, rtt: Some(Span::millis(rtt)) };
                    cubic.on_ack(w, &ack);
                }
            }
            seen.push(w.cwnd / 1000);
        }
        seen
    }

    /// K is the cube root of 300 / 0.4, 9.09 s; the curve is 1000 + 0.4 (t - K)^3 segments.
    #[test]
    fn the_window_follows_the_cubic_function() {
        let mut w = window(1000);
        let mut cubic = Cubic::new(&TcpConfig::rfc());
        w.ssthresh = cubic.ssthresh_after_loss(Time(0), &w, Loss::Detected);
        w.cwnd = w.ssthresh;
        assert_eq!(w.cwnd, 700_000);
        let seen = course(&mut cubic, &mut w, 100, 15);
        for (t, cwnd) in (1..).zip(&seen) {
            let away = f64::from(t) - 9.086;
            let curve = 1000.0 + 0.4 * away * away * away;
            assert!((f64::from(*cwnd) - curve).abs() < 12.0, "{t} s: {cwnd}, curve {curve:.0}");
        }
        // Steep, flat, steep.
        let step = |i: usize| seen[i] - seen[i - 1];
        assert!(step(1) > 10 * step(9) && step(14) > 10 * step(9), "{seen:?}");
    }

    /// Where the cubic function is slower than Reno, with short round trips, the window is Reno's: a loss leaves 7
    /// of 10 segments, and 9/17 of a segment come with each round trip.
    #[test]
    fn with_short_round_trips_it_is_no_slower_than_reno() {
        let mut w = window(10);
        let mut cubic = Cubic::new(&TcpConfig::rfc());
        w.ssthresh = cubic.ssthresh_after_loss(Time(0), &w, Loss::Detected);
        w.cwnd = w.ssthresh;
        let seen = course(&mut cubic, &mut w, 10, 1);
        // 100 round trips at 9/17 of a segment each, from 7 segments on.
        assert!((57..=61).contains(&seen[0]), "{seen:?}");
    }

    #[test]
    fn who_falls_short_of_the_last_plateau_leaves_room() {
        let mut cubic = Cubic::new(&TcpConfig::rfc());
        cubic.ssthresh_after_loss(Time(0), &window(100), Loss::Detected);
        assert_eq!(cubic.w_max, 100_000);
        cubic.ssthresh_after_loss(Time(0), &window(80), Loss::Detected);
        assert_eq!(cubic.w_max, 68_000);
        cubic.ssthresh_after_loss(Time(0), &window(90), Loss::Detected);
        assert_eq!(cubic.w_max, 90_000);
    }

    #[test]
    fn a_pause_is_no_part_of_the_curve() {
        let mut w = window(1000);
        let mut cubic = Cubic::new(&TcpConfig::rfc());
        w.ssthresh = cubic.ssthresh_after_loss(Time(0), &w, Loss::Detected);
        w.cwnd = w.ssthresh;
        course(&mut cubic, &mut w, 100, 5);
        let before = w.cwnd;
        let later = Time(1_000_000_000_000);
        cubic.restart(later, true);
        for _ in 0..10 {
            cubic.on_ack(&mut w, &Acked { now: later, bytes: 1000, rtt: None });
        }
        assert!(w.cwnd - before < 1000, "{before} {}", w.cwnd);
    }

    /// Round trips of 50 ms, from the third round on 60 ms: slow start becomes conservative and ends five rounds on.
    #[test]
    fn the_first_slow_start_ends_when_round_trips_grow() {
        let grown = |late: u64| {
            let mut w = window(10);
            (w.ssthresh, w.una, w.nxt) = (u32::MAX, 0, 10_000);
            let mut cubic = Cubic::new(&TcpConfig::rfc());
            let mut now = 0;
            for round in 0..10 {
                let rtt = Span::millis(if round < 3 { 50 } else { late });
                now += rtt.0;
                for _ in 0..w.cwnd / 1000 {
                    w.una += 1000;
                    let ack = Acked { now: Time(now), bytes: 1000, rtt: Some(rtt) };
                    cubic.on_ack(&mut w, &ack);
                    w.nxt = w.una + u64::from(w.cwnd);
                }
            }
            (w.cwnd / 1000, w.ssthresh)
        };
        let (free, threshold) = grown(50);
        assert!(free > 5000 && threshold == u32::MAX, "{free}");
        let (bound, threshold) = grown(60);
        assert!(5 * bound < free && threshold / 1000 <= bound, "{bound} {threshold}");
    }
}
