//! H-TCP (Leith and Shorten, *H-TCP: TCP for high-speed and long-distance networks*, PFLDnet 2004): the more time has
//! passed since the last loss, the faster the window grows. A loss empties the queue and not more.
//!
//! In the first second after a loss it grows as Reno's, so it shares short paths with Reno. Later it grows by
//! `1 + 10 (t - 1) + (t - 1)^2 / 4` segments per round trip, `t` seconds after the loss. A loss reduces it to the ratio
//! of the shortest and the longest round trip, between 0.5 and 0.8. If the throughput has changed by more than a fifth
//! since the loss before, the ratio is 0.5. The growth is multiplied by `2 (1 - ratio)`, so that a flow with a high
//! ratio takes no more than others.
//!
//! Choices here, as in Linux: growth is proportional to the shortest round trip, with 100 ms as the reference and a
//! factor between 0.1 and 2. The longest round trip grows by at most 20 ms for each sample, and a loss moves it
//! towards the shortest by a twentieth of the difference. With round trips of up to 10 ms, and at the first loss after
//! a change of the throughput, the ratio is 0.5.

use crate::tcp::config::{Congestion, RtoRule, TcpConfig};
use crate::tcp::keyword::{Deployment, Keyword, Linux};
use crate::units::{Span, Time};

use super::rack;
use crate::tcp::sender::Window;
use crate::tcp::sender::congestion_control::any::AnyCongestionControl;
use crate::tcp::sender::congestion_control::{Acked, CongestionControl, Loss};

/// The keyword.
pub const WORD: Keyword = Keyword {
    key: "htcp",
    apply: |c| {
        rack::apply(c);
        c.congestion = Congestion::Htcp;
        c.rto_rule = RtoRule::Linux;
    },
    summary: "RACK with a window that grows faster with the time since the last loss; made for fast and long paths",
    source: "Leith and Shorten 2004",
    tier: 0,
    worlds: crate::describe::SIM,
    syntax: "host: tcp = \"*\"",
    deployment: Deployment::Current,
    linux: Some(Linux::control("htcp")),
};

/// Time after a loss in which the window grows as Reno's.
const LOW_SPEED: Span = Span::secs(1);
/// Unit of ratios and growth.
const UNIT: u64 = 128;
/// Bounds of the ratio: 0.5 and 0.8.
const RATIO: [u64; 2] = [64, 102];
/// The round trip at which growth is as published.
const REFERENCE: Span = Span::millis(100);
/// Longest round trip at which the ratio is always 0.5.
const SHORT: Span = Span::millis(10);
/// Most by which a round trip raises the longest one.
const RISE: Span = Span::millis(20);
/// Round trips after a loss whose throughput replaces the estimate.
const FRESH_ROUNDS: u64 = 3;

/// H-TCP's window growth.
#[derive(Clone, Debug)]
pub struct Htcp {
    /// Slow start.
    reno: AnyCongestionControl,
    /// Shortest and longest round trip.
    shortest: Option<Span>,
    longest: Span,
    /// Time of the last loss.
    loss: Option<Time>,
    /// The window after a loss as a share of the window before, in 1/[`UNIT`].
    ratio: u64,
    /// Whether the next loss may use the round trips.
    adaptive: bool,
    throughput: Throughput,
    /// Rest of the growth below one byte, times the window.
    rest: u128,
}

/// Throughput of round trips, bytes per second.
#[derive(Clone, Copy, Debug, Default)]
struct Throughput {
    /// Start of this sample, and left edge at that time.
    since: Option<(Time, u64)>,
    mean: u64,
    /// Largest mean since the last loss, and between the two before.
    largest: u64,
    before: u64,
}

impl Throughput {
    /// Adds the data up to the left edge `una`; a `fresh` estimate is the sample itself.
    fn measure(&mut self, now: Time, una: u64, shortest: Span, fresh: bool) {
        let (begin, from) = *self.since.get_or_insert((now, una));
        let time = now.since(begin);
        if time < shortest || time == Span::ZERO {
            return;
        }
        let sample = u128::from(una - from) * 1_000_000_000 / u128::from(time.0);
        let sample = sample.min(u128::from(u64::MAX / 8)) as u64;
        self.since = Some((now, una));
        if fresh {
            (self.mean, self.largest) = (sample, sample);
        } else {
            self.mean = (3 * self.mean + sample) / 4;
            self.largest = self.largest.max(self.mean);
        }
    }

    /// Records a loss. Returns whether the throughput has changed by at most a fifth since the loss before.
    fn is_steady(&mut self) -> bool {
        let before = core::mem::replace(&mut self.before, self.largest);
        (4 * before..=6 * before).contains(&(5 * self.largest))
    }
}

impl Htcp {
    /// State before the first ACK.
    pub fn new(config: &TcpConfig) -> Htcp {
        Htcp {
            reno: AnyCongestionControl::reno(config),
            shortest: None,
            longest: Span::ZERO,
            loss: None,
            ratio: RATIO[0],
            adaptive: false,
            throughput: Throughput::default(),
            rest: 0,
        }
    }

    /// Segments of growth for a window of acknowledged data, in 1/[`UNIT`].
    fn alpha(&self, now: Time) -> u64 {
        let since = self.loss.map_or(Span::ZERO, |loss| now.since(loss));
        let ms = Span(since.0.saturating_sub(LOW_SPEED.0)).0 / 1_000_000;
        //= leith04: 1 + 10 (t - 1) + ((t - 1) / 2)^2
        let ms = ms.min(1_000_000);
        let factor = UNIT + UNIT * (10 * ms + ms * ms / 4000) / 1000;
        let rtt = self.shortest.map_or(REFERENCE.0, |rtt| rtt.0);
        let rtt = rtt.clamp(REFERENCE.0 / 10, 2 * REFERENCE.0);
        // In the first second it is Reno's for every round trip.
        let factor = (factor * (rtt / 1000) / (REFERENCE.0 / 1000)).max(UNIT);
        //= leith04: 2 (1 - ratio), so that the mean window does not depend on the ratio
        (2 * factor * (UNIT - self.ratio) / UNIT).max(1)
    }
}

impl CongestionControl for Htcp {
    fn check(&self, window: &Window) {
        debug_assert!(
            self.shortest
                .is_none_or(|shortest| shortest <= self.longest || self.longest == Span::ZERO),
            "shortest round trip {:?} above the longest {}",
            self.shortest,
            self.longest
        );
        self.reno.check(window);
    }

    fn on_ack(&mut self, w: &mut Window, ack: &Acked) {
        if let Some(rtt) = ack.rtt {
            let shortest = self.shortest.map_or(rtt, |shortest| shortest.min(rtt));
            self.shortest = Some(shortest);
            self.longest = self.longest.max(shortest);
            if rtt > self.longest {
                self.longest = rtt.min(self.longest + RISE);
            }
        }
        if let Some(shortest) = self.shortest {
            let rounds =
                self.loss.map_or(u64::MAX, |loss| ack.now.since(loss).0 / shortest.0.max(1));
            self.throughput.measure(ack.now, w.una, shortest, rounds <= FRESH_ROUNDS);
        }
        if w.cwnd < w.ssthresh {
            self.reno.on_ack(w, ack);
            return;
        }
        // Without a loss the clock starts with the first congestion avoidance.
        self.loss.get_or_insert(ack.now);
        let whole = u128::from(w.cwnd.max(1)) * u128::from(UNIT);
        self.rest += u128::from(ack.bytes) * u128::from(w.mss) * u128::from(self.alpha(ack.now));
        w.open((self.rest / whole).min(u128::from(u32::MAX)) as u32);
        self.rest %= whole;
    }

    fn ssthresh_after_loss(&mut self, now: Time, w: &Window, loss: Loss) -> u32 {
        self.reno.ssthresh_after_loss(now, w, loss);
        let shortest = self.shortest.unwrap_or(Span::ZERO);
        let steady = self.throughput.is_steady();
        //= leith04: the shortest round trip by the longest one, between 0.5 and 0.8
        self.ratio = if steady && self.adaptive && shortest > SHORT {
            (shortest.0.saturating_mul(UNIT) / self.longest.0.max(1)).clamp(RATIO[0], RATIO[1])
        } else {
            RATIO[0]
        };
        self.adaptive = steady;
        if self.longest > shortest {
            self.longest = shortest + Span((self.longest.0 - shortest.0) / 20 * 19);
        }
        self.loss = Some(now);
        self.rest = 0;
        let reduced = u64::from(w.cwnd) * self.ratio / UNIT;
        w.in_segments(reduced as u32).max(2 * w.mss)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(segments: u32) -> Window {
        let mut w = Window::new(&TcpConfig { mss: 1000, ..TcpConfig::rfc() });
        (w.cwnd, w.ssthresh, w.largest) = (segments * 1000, segments * 1000, u32::MAX);
        w
    }

    fn at(ms: u64) -> Time {
        Time(ms * 1_000_000)
    }

    /// Acknowledges a window of data at `ms`.
    fn round(htcp: &mut Htcp, w: &mut Window, ms: u64, rtt: u64) {
        for _ in 0..w.cwnd / 1000 {
            w.una += 1000;
            htcp.on_ack(w, &Acked { now: at(ms), bytes: 1000, rtt: Some(Span::millis(rtt)) });
        }
    }

    /// The published law: one segment per round trip for a second, and 1 + 10 x 10 + 25 = 126 after eleven.
    #[test]
    fn the_window_grows_faster_the_longer_the_last_loss_is_ago() {
        let cases = [(0, 1.0), (1000, 1.0), (2000, 11.25), (3000, 22.0), (11_000, 126.0)];
        for (ms, expected) in cases {
            let mut htcp = Htcp::new(&TcpConfig::rfc());
            let mut w = window(1000);
            htcp.loss = Some(at(0));
            round(&mut htcp, &mut w, ms, 100);
            let grown = (w.cwnd - 1_000_000) as f64 / 1000.0;
            // The window grows between the ACKs, so the last ones count less.
            assert!(grown <= expected + 0.01 && grown > 0.93 * expected - 0.3, "{ms} ms: {grown}");
        }
    }

    /// Longer round trips grow as much in a second.
    #[test]
    fn growth_is_proportional_to_the_round_trip() {
        let mut htcp = Htcp::new(&TcpConfig::rfc());
        htcp.loss = Some(at(0));
        let mut alpha = |ms: u64| {
            htcp.shortest = Some(Span::millis(ms));
            htcp.alpha(at(6000))
        };
        let reference = alpha(100);
        assert_eq!(alpha(50), reference / 2);
        assert_eq!((alpha(200), alpha(1000)), (2 * reference, 2 * reference));
        assert_eq!(alpha(1), alpha(10));
    }

    /// A window on a path of 100 ms whose queue adds `queue` ms at the end of each period, and the ratio at each loss.
    fn ratios(queue: u64, rates: &[u64]) -> Vec<u64> {
        let mut htcp = Htcp::new(&TcpConfig::rfc());
        let mut w = window(100);
        let mut ms = 0;
        let period = |rate: &u64| {
            for round in 0..40 {
                for _ in 0..10 {
                    (w.una, w.max) = (w.una + rate * 10, w.una + 1_000_000);
                    let rtt = Span::millis(100 + queue * round / 39);
                    htcp.on_ack(&mut w, &Acked { now: at(ms), bytes: 1000, rtt: Some(rtt) });
                    ms += 10;
                }
            }
            (w.cwnd, w.ssthresh) = (200_000, 200_000);
            let after = htcp.ssthresh_after_loss(at(ms), &w, Loss::Detected);
            (w.cwnd, w.ssthresh) = (after, after);
            u64::from(after) / 2000
        };
        rates.iter().map(period).collect()
    }

    /// Window after each loss, in percent. The first two losses have no earlier throughput to compare with.
    #[test]
    fn a_loss_empties_the_queue_unless_the_throughput_has_changed() {
        assert_eq!(ratios(10, &[1000; 4])[2..], [79, 79], "a short queue");
        let long = ratios(60, &[1000; 4]);
        assert!((62..=66).contains(&long[3]), "{long:?}");
        assert_eq!(ratios(200, &[1000; 4])[3], 50, "not less than half");
        assert_eq!(
            ratios(10, &[1000, 1000, 1000, 500, 500])[3..],
            [50, 50],
            "other throughput, then one more loss"
        );
    }

    #[test]
    fn short_round_trips_and_timeouts_halve() {
        let mut htcp = Htcp::new(&TcpConfig::rfc());
        (htcp.shortest, htcp.longest, htcp.adaptive) =
            (Some(Span::millis(5)), Span::millis(5), true);
        let w = window(100);
        assert_eq!(htcp.ssthresh_after_loss(at(1), &w, Loss::Timeout), 50_000);
        assert_eq!(htcp.loss, Some(at(1)));
    }
}
