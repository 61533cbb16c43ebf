//! Hybla (Caini and Firrincieli, *TCP Hybla: a TCP enhancement for heterogeneous networks*, International Journal of
//! Satellite Communications and Networking 22(5), 2004). The rate grows as fast as the rate of a connection with a
//! short round trip.
//!
//! `rho` is the round trip divided by that of a reference connection (25 ms), at least 1. The ACK of a segment grows the
//! window by `2^rho - 1` segments in slow start, and by `rho^2 / cwnd` segments above. The window is then always `rho`
//! times that of the reference, and the rates are equal.
//!
//! The keyword includes the paper's pacing and Hoe's threshold. With this threshold the first slow start ends at the
//! product of the shortest round trip and the rate at which the first flight's ACKs arrive. Until this product is
//! known, the window grows as Reno's. This has no disadvantage, since most of the first flight is still unacknowledged.
//!
//! Choices here: the round trip is the shortest one, as in Linux, so that queues do not increase the growth. In slow
//! start `rho` is at most 16.

use crate::tcp::config::{Congestion, RtoRule, TcpConfig};
use crate::tcp::keyword::{Deployment, Keyword, Linux};
use crate::units::{Span, Time};

use super::rack;
use crate::tcp::sender::Window;
use crate::tcp::sender::congestion_control::{Acked, CongestionControl, Loss};

/// The keyword.
pub const WORD: Keyword = Keyword {
    key: "hybla",
    apply: |c| {
        rack::apply(c);
        c.congestion = Congestion::Hybla;
        c.rto_rule = RtoRule::Linux;
        c.pacing = true;
    },
    summary: "RACK with a window whose growth in bytes per second does not depend on the round trip; made for satellites",
    source: "Caini and Firrincieli 2004",
    tier: 0,
    worlds: crate::describe::SIM,
    syntax: "host: tcp = \"*\"",
    deployment: Deployment::Current,
    linux: Some(Linux::control("hybla")),
};

/// The round trip of the reference connection.
const REFERENCE: Span = Span::millis(25);
/// Unit of `rho`: 1/128.
const UNIT: u64 = 128;
/// The largest exponent in slow start.
const MOST: u64 = 16 * UNIT;
/// 2^(1/2), 2^(1/4) ... 2^(1/128), in 1/65536.
const ROOTS: [u64; 7] = [92_682, 77_936, 71_468, 68_438, 66_971, 66_250, 65_892];

/// Hybla's window growth.
#[derive(Clone, Debug, Default)]
pub struct Hybla {
    /// The shortest round trip.
    rtt: Option<Span>,
    /// Rest of the growth below one byte, times the window, in 1/UNIT^2.
    rest: u128,
    first: First,
}

/// State of the ACKs of the first flight.
#[derive(Clone, Copy, Debug, Default)]
enum First {
    /// No ACK has arrived.
    #[default]
    Waiting,
    /// The first ACK has arrived: its time, its position, and the end of the flight.
    Coming { at: Time, from: u64, to: u64 },
    /// The first flight is acknowledged.
    Over,
}

/// `2^(x / UNIT)` in 1/65536.
fn power(x: u64) -> u64 {
    let fraction = (0..7).filter(|i| x >> (6 - i) & 1 == 1);
    let root = fraction.fold(1 << 16, |product, i| (product * ROOTS[i]) >> 16);
    root << (x / UNIT)
}

impl Hybla {
    /// State before the first ACK.
    pub fn new(_config: &TcpConfig) -> Hybla {
        Hybla::default()
    }

    /// The round trip divided by that of the reference, in 1/UNIT.
    fn rho(&self) -> u64 {
        self.rtt.map_or(UNIT, |rtt| (rtt.0.saturating_mul(UNIT) / REFERENCE.0).max(UNIT))
    }

    /// Computes the end of slow start from the ACKs of the first flight.
    fn first_flight(&mut self, w: &mut Window, now: Time) {
        match self.first {
            First::Waiting => self.first = First::Coming { at: now, from: w.una, to: w.max },
            First::Coming { at, from, to } if w.una >= to || w.cwnd >= w.ssthresh => {
                self.first = First::Over;
                let (bytes, time) = (w.una - from, now.since(at).0);
                // Fewer than three segments give no estimate.
                if bytes >= 3 * u64::from(w.mss) && time > 0 {
                    let rtt = u128::from(self.rtt.map_or(0, |rtt| rtt.0));
                    let product = u128::from(bytes) * rtt / u128::from(time);
                    let product = product.min(u128::from(u32::MAX)) as u32;
                    w.ssthresh = w.ssthresh.min(w.in_segments(product).max(2 * w.mss));
                }
            }
            First::Coming { .. } | First::Over => {}
        }
    }
}

impl CongestionControl for Hybla {
    fn check(&self, w: &Window) {
        if let First::Coming { from, to, .. } = self.first {
            debug_assert!(from <= to, "the first flight ends at {to}, before its start {from}");
            debug_assert!(to <= w.max, "the first flight ends beyond the sent data");
        }
    }

    fn on_ack(&mut self, w: &mut Window, ack: &Acked) {
        if let Some(rtt) = ack.rtt {
            self.rtt = Some(self.rtt.map_or(rtt, |shortest| shortest.min(rtt)));
        }
        self.first_flight(w, ack.now);
        let rho = self.rho();
        if w.cwnd < w.ssthresh {
            //= caini04: 2^rho - 1 segments for each one that has arrived
            let gain = match self.first {
                First::Over => power(rho.min(MOST)) - (1 << 16),
                First::Waiting | First::Coming { .. } => 1 << 16,
            };
            let bytes = (u64::from(ack.bytes) * gain) >> 16;
            // At most to the threshold, since one ACK may permit thousands of segments.
            let room = (w.ssthresh - w.cwnd).max(w.mss);
            w.open(bytes.min(room.into()) as u32);
            return;
        }
        //= caini04: rho^2 / cwnd segments for each one that has arrived
        let cwnd = u128::from(w.cwnd.max(1)) * u128::from(UNIT * UNIT);
        self.rest += u128::from(ack.bytes) * u128::from(w.mss) * u128::from(rho * rho);
        w.open((self.rest / cwnd).min(u128::from(u32::MAX)) as u32);
        self.rest %= cwnd;
    }

    fn ssthresh_after_loss(&mut self, _: Time, w: &Window, loss: Loss) -> u32 {
        self.first = First::Over;
        self.rest = 0;
        w.half(loss)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::config::TcpConfig;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the reference for the integer arithmetic")]
    fn powers_of_two_are_exact_to_a_thousandth() {
        for x in 0..=MOST {
            let exact = (x as f64 / UNIT as f64).exp2() * 65_536.0;
            assert!((power(x) as f64 / exact - 1.0).abs() < 1e-3, "{x}: {}", power(x));
        }
    }

    /// Windows over round trips, in bytes per second, for two seconds: each window's ACKs come together.
    fn rates(rtt: u64) -> Vec<u64> {
        let mut w = Window::new(&TcpConfig { mss: 1000, ..TcpConfig::rfc() });
        let rho = rtt / 25;
        // The reference's window is 20 segments.
        (w.cwnd, w.ssthresh, w.largest) = (20_000 * rho as u32, 20_000 * rho as u32, u32::MAX);
        let mut hybla = Hybla { rtt: Some(Span::millis(rtt)), first: First::Over, rest: 0 };
        (1..=2000 / rtt)
            .map(|round| {
                let now = Time(round * rtt * 1_000_000);
                for _ in 0..w.cwnd / 1000 {
                    let ack = Acked { now, bytes: 1000, rtt: Some(Span::millis(rtt)) };
                    hybla.on_ack(&mut w, &ack);
                }
                // Bytes per second at this moment.
                u64::from(w.cwnd) * 1000 / rtt
            })
            .collect()
    }

    /// The paper's equation: the rate in segments per second is (t / RTT0 + gamma) / RTT0 for every round trip. In
    /// steps as long as a round trip of 500 ms it is somewhat less, since the window grows between the ACKs.
    #[test]
    fn the_rate_does_not_depend_on_the_round_trip() {
        let reference = rates(25);
        for rtt in [50u64, 100, 200, 500] {
            let long = rates(rtt);
            for (i, rate) in long.iter().enumerate() {
                let other = reference[(i + 1) * (rtt as usize / 25) - 1];
                let ratio = *rate as f64 / other as f64;
                assert!((0.8..1.01).contains(&ratio), "{rtt} ms, round {i}: {rate} {other}");
            }
        }
        // From 20 segments on, 80 round trips of 25 ms bring 80 more: five times the rate, within the same tolerance.
        assert!((4_000_000 * 95 / 100..=4_000_000).contains(&reference[79]), "{}", reference[79]);
    }

    /// Slow start too: the window doubles `rho` times in a round trip.
    #[test]
    fn slow_start_doubles_the_window_rho_times_per_rtt() {
        let mut w = Window::new(&TcpConfig { mss: 1000, ..TcpConfig::rfc() });
        (w.cwnd, w.ssthresh, w.largest) = (4000, u32::MAX, u32::MAX);
        let mut hybla = Hybla { rtt: Some(Span::millis(100)), first: First::Over, rest: 0 };
        for _ in 0..4 {
            let ack = Acked { now: Time(1), bytes: 1000, rtt: Some(Span::millis(100)) };
            hybla.on_ack(&mut w, &ack);
        }
        // rho is 4: each segment brings 15 more.
        assert_eq!(w.cwnd, 64_000);
    }

    #[test]
    fn the_first_flight_sets_the_slow_start_threshold() {
        let mut w = Window::new(&TcpConfig { mss: 1000, ..TcpConfig::rfc() });
        (w.cwnd, w.ssthresh, w.largest) = (10_000, u32::MAX, u32::MAX);
        (w.una, w.nxt, w.max) = (1, 10_001, 10_001);
        let mut hybla = Hybla::default();
        // Ten segments, 2 ms apart: 4 Mb/s. 600 ms of that are 300 segments.
        for i in 0..10 {
            w.una += 1000;
            w.max = 10_001 + 2000 * i;
            let now = Time((600 + 2 * i) * 1_000_000);
            hybla.on_ack(&mut w, &Acked { now, bytes: 1000, rtt: Some(Span::millis(600)) });
            assert!(w.cwnd <= 20_000 || i == 9, "{i}: {}", w.cwnd);
        }
        assert_eq!(w.ssthresh, 300_000);
    }

    /// A loss ends the first flight, also if a part of it is unacknowledged: slow start opens by `2^rho - 1` from then
    /// on.
    #[test]
    fn a_loss_halves_and_ends_the_first_flight() {
        let mut w = Window::new(&TcpConfig { mss: 1000, ..TcpConfig::rfc() });
        (w.cwnd, w.ssthresh, w.largest) = (20_000, u32::MAX, u32::MAX);
        (w.una, w.nxt, w.max) = (1, 16_001, 16_001);
        let mut hybla = Hybla { rtt: Some(Span::millis(100)), first: First::Waiting, rest: 7 };
        assert_eq!(hybla.ssthresh_after_loss(Time(1), &w, Loss::Timeout), 8_000);
        (w.cwnd, w.ssthresh) = (1_000, 100_000);
        hybla.on_ack(&mut w, &Acked { now: Time(2), bytes: 1000, rtt: None });
        assert_eq!(w.cwnd, 16_000, "rho is 4: a segment brings 15 more");
        assert_eq!(hybla.rest, 0);
    }

    #[test]
    fn a_short_round_trip_gives_the_growth_of_reno() {
        let mut w = Window::new(&TcpConfig { mss: 1000, ..TcpConfig::rfc() });
        (w.cwnd, w.ssthresh, w.largest) = (10_000, 10_000, u32::MAX);
        let mut hybla = Hybla { first: First::Over, ..Hybla::default() };
        for _ in 0..10 {
            let ack = Acked { now: Time(1), bytes: 1000, rtt: Some(Span::millis(5)) };
            hybla.on_ack(&mut w, &ack);
        }
        assert!((10_900..=11_000).contains(&w.cwnd), "{}", w.cwnd);
    }
}
