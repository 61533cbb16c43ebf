//! CUBIC as Linux computes it: in whole segments and ticks of 4 ms, with a Reno-friendly window in segments. Slow
//! start ends by the original HyStart (Ha and Rhee 2011), which evaluates trains of ACKs and delays.

use crate::units::{Span, Time};

use super::linux_reno::{Count, segments};
use super::{Acked, CongestionControl, Loss};
use crate::tcp::sender::Window;
use crate::tcp::sender::systems::cubic::cube_root;

/// One tick, the unit of time of the curve in Linux (CONFIG_HZ = 250).
const TICK: u64 = 4_000_000;
/// Factor of the window after a loss, in 1/1024.
const BETA: u64 = 717;
/// C, in 1/1024 of a segment per second cubed.
const SCALE: u64 = 41 * 10;
/// Fractional bits of C times the cube of a time on the curve: 10 of C, and 30 since times are in 1/1024 s.
const CUBE_BITS: u32 = 40;
/// Segments for one segment of growth of the Reno-friendly window, in eighths of the window.
const FRIENDLY: u64 = 8 * (1024 + BETA) / 3 / (1024 - BETA);

/// Ticks from the start of an epoch in which round trips are ignored: one second.
const AFTER_REPAIR: u64 = 1_000_000_000 / TICK;

/// Minimum window of HyStart in segments.
const LOW_WINDOW: u32 = 16;
/// Maximum distance of ACKs in a train.
const TRAIN_GAP: Span = Span::millis(2);
/// Number of round-trip samples of a round that HyStart uses.
const SAMPLES: u32 = 8;

/// CUBIC's window growth, as in Linux.
#[derive(Clone, Debug, Default)]
pub struct LinuxCubic {
    count: Count,
    /// The window before the last loss, in segments.
    last_max: u64,
    epoch: Option<Epoch>,
    /// Segments for one segment of growth, and the window and tick of this computation.
    every: u64,
    seen: (u64, u64),
    /// The shortest round trip.
    least: Option<Span>,
    hystart: HyStart,
    /// Whether HyStart has ended slow start. A timeout resets this.
    found: bool,
    /// Time of the last ACK.
    last: Time,
}

/// One epoch of congestion avoidance.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    /// Start in ticks.
    start: u64,
    /// Time from the start to the plateau, in 1/1024 s.
    k: u64,
    plateau: u64,
    /// Acknowledged segments that the Reno-friendly window has not counted, and that window.
    acked: u64,
    friendly: u64,
}

impl Epoch {
    /// The value of the curve at tick `now`, plus one round trip of `rtt`.
    fn target(&self, now: u64, rtt: Span) -> u64 {
        let t = ((now - self.start + rtt.0.div_ceil(TICK)) << 10) / (1_000_000_000 / TICK);
        let away = u128::from(t.abs_diff(self.k).min(1 << 28));
        let change = (u128::from(SCALE) * away * away * away) >> CUBE_BITS;
        let change = change.min(u128::from(u32::MAX)) as u64;
        if t < self.k { self.plateau.saturating_sub(change) } else { self.plateau + change }
    }
}

impl LinuxCubic {
    fn begin(&self, tick: u64, cwnd: u64, acked: u64) -> Epoch {
        let (k, plateau) = match self.last_max.checked_sub(cwnd) {
            Some(short) if short > 0 => {
                (cube_root((u128::from(short) << CUBE_BITS) / u128::from(SCALE)), self.last_max)
            }
            _ => (0, cwnd),
        };
        Epoch { start: tick, k, plateau, acked, friendly: cwnd }
    }

    /// The number of segments for one segment of growth of the window `cwnd`, after `acked` more segments have arrived.
    fn update(&mut self, now: Time, cwnd: u64, acked: u64) {
        let tick = now.0 / TICK;
        self.epoch.iter_mut().for_each(|epoch| epoch.acked += acked);
        if self.seen.0 == cwnd && tick - self.seen.1 <= 1_000_000_000 / TICK / 32 {
            return;
        }
        let mut epoch = self.epoch.unwrap_or_else(|| self.begin(tick, cwnd, acked));
        if self.epoch.is_none() || tick != self.seen.1 {
            let target = epoch.target(tick, self.least.unwrap_or(Span::ZERO));
            self.every = match target.checked_sub(cwnd) {
                Some(rise) if rise > 0 => cwnd / rise,
                _ => 100 * cwnd,
            };
            if self.last_max == 0 {
                // Before the first loss the plateau is unknown.
                self.every = self.every.min(20);
            }
        }
        self.seen = (cwnd, tick);
        let each = (cwnd * FRIENDLY) >> 3;
        while epoch.acked > each {
            epoch.acked -= each;
            epoch.friendly += 1;
        }
        if epoch.friendly > cwnd {
            self.every = self.every.min(cwnd / (epoch.friendly - cwnd));
        }
        self.every = self.every.max(2);
        self.epoch = Some(epoch);
    }
}

impl CongestionControl for LinuxCubic {
    fn check(&self, _: &Window) {
        let Some(epoch) = &self.epoch else { return };
        debug_assert!(epoch.plateau > 0, "the plateau is a window");
        debug_assert!(epoch.start <= self.last.0 / TICK, "an epoch begins before its last ACK");
    }

    fn on_ack(&mut self, w: &mut Window, ack: &Acked) {
        self.last = ack.now;
        let mut left = segments(w, ack.bytes);
        if w.cwnd < w.ssthresh {
            left = Count::slow_start(w, left);
        }
        if left > 0 {
            self.update(ack.now, (w.cwnd / w.mss).into(), left.into());
            self.count.avoid(w, self.every.min(u32::MAX.into()) as u32, left);
        }
    }

    /// HyStart also uses the reports of SACK blocks (`cubictcp_acked`).
    fn on_round_trip(&mut self, now: Time, w: &mut Window, rtt: Span) {
        let recent = |epoch: Epoch| now.0 / TICK < epoch.start + AFTER_REPAIR;
        if self.epoch.is_some_and(recent) {
            return;
        }
        let least = self.least.map_or(rtt, |least| least.min(rtt));
        self.least = Some(least);
        if !self.found && w.cwnd < w.ssthresh && self.hystart.ends(w, now, rtt, least) {
            self.found = true;
            w.ssthresh = w.cwnd;
        }
    }

    fn ssthresh_after_loss(&mut self, _: Time, w: &Window, _: Loss) -> u32 {
        let cwnd = u64::from(w.cwnd / w.mss);
        let fast_convergence = cwnd < self.last_max;
        self.last_max = if fast_convergence { cwnd * (1024 + BETA) / 2048 } else { cwnd };
        self.epoch = None;
        self.count.clear();
        ((cwnd * BETA / 1024) as u32).max(2) * w.mss
    }

    /// Each timeout resets the curve and HyStart (`cubictcp_state`).
    fn timed_out(&mut self) {
        *self = LinuxCubic::default();
    }

    /// Idle time does not count on the curve.
    fn restart(&mut self, now: Time, _: bool) {
        if let Some(epoch) = &mut self.epoch {
            epoch.start = (epoch.start + now.since(self.last).0 / TICK).min(now.0 / TICK);
        }
        self.last = now;
    }
}

/// Trains of ACKs and round trips of a round in slow start.
#[derive(Clone, Debug, Default)]
struct HyStart {
    /// Acknowledged position that ends the round.
    round_end: u64,
    round_start: Time,
    /// Time of the last ACK of the train.
    train: Time,
    /// Shortest round trip of the round, and number of samples.
    round: Option<Span>,
    samples: u32,
    /// Smoothed round trip, for the pacing rate.
    srtt: Option<Span>,
}

impl HyStart {
    /// Processes an ACK with the round trip `rtt`; `least` is the shortest one. Returns whether slow start ends.
    fn ends(&mut self, w: &Window, now: Time, rtt: Span, least: Span) -> bool {
        let srtt = self.srtt.map_or(rtt, |srtt| Span((7 * srtt.0 + rtt.0) / 8));
        self.srtt = Some(srtt);
        // The acknowledged position starts a round, even with a small window (since Linux 6.14).
        if w.una > self.round_end {
            (self.round_start, self.train, self.round_end) = (now, now, w.nxt);
            (self.round, self.samples) = (None, 0);
        }
        if w.cwnd / w.mss < LOW_WINDOW {
            return false;
        }
        let mut ends = false;
        if now.since(self.train) <= TRAIN_GAP {
            self.train = now;
            // A train longer than half the shortest round trip fills the path. The time for bursts is added.
            let slow = w.cwnd < w.ssthresh / 2;
            let rate =
                u64::from(w.cwnd) * if slow { 2_000 } else { 1_200 } / (srtt.0 / 1000).max(1);
            let burst = Span((4 * 65_536 * 1000 * 1000 / rate.max(1)).min(1_000_000));
            ends = now.since(self.round_start).0 > (least + burst).0 / 2;
        }
        let round = self.round.map_or(rtt, |round| round.min(rtt));
        self.round = Some(round);
        if self.samples < SAMPLES {
            self.samples += 1;
        } else {
            let more = Span((least.0 / 8).clamp(4_000_000, 16_000_000));
            ends |= round > least + more;
        }
        ends
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// C is 0.4 segments per second cubed: from 70 segments to a plateau of 100 it is the cube root of 75, 4.22 s.
    #[test]
    fn the_cubic_curve_reaches_and_leaves_its_plateau() {
        let cubic = LinuxCubic { last_max: 100, ..LinuxCubic::default() };
        let epoch = cubic.begin(0, 70, 0);
        let at = |seconds: f64| epoch.target((seconds * 250.0) as u64, Span::ZERO);
        for (seconds, segments) in [(0.0, 70), (2.0, 96), (4.2, 100), (6.4, 104), (9.2, 149)] {
            let target = at(seconds);
            assert!(
                target.abs_diff(segments) <= 1,
                "{target} segments after {seconds} s, not {segments}"
            );
        }
        // The curve is looked at a round trip ahead.
        assert_eq!(epoch.target(250, Span::secs(1)), at(2.0));
    }

    /// The same window looks at the curve again after a 32nd of a second, seven ticks of 4 ms; another one does at
    /// once.
    #[test]
    fn the_curve_is_recomputed_each_32nd_of_a_second() {
        let mut cubic = LinuxCubic { last_max: 10, ..LinuxCubic::default() };
        cubic.update(Time(400 * MS), 7, 1);
        for (ms, window, looked) in [(428, 7, 100), (432, 7, 108), (436, 8, 109)] {
            cubic.update(Time(ms * MS), window, 1);
            assert_eq!(cubic.seen, (window, looked), "at {ms} ms");
        }
        assert_eq!(cubic.epoch.map(|epoch| (epoch.start, epoch.acked)), Some((100, 4)));
    }

    /// On a short path Reno would be faster: half a segment a round trip, where the curve has hardly begun to rise.
    #[test]
    fn a_short_path_uses_the_reno_friendly_window() {
        let mut cubic = LinuxCubic { last_max: 10, ..LinuxCubic::default() };
        for round in 0..20 {
            cubic.update(Time(round * 40 * MS), 7, 7);
        }
        // 140 segments are 10 times 13, and ten segments more than the window.
        assert_eq!(cubic.epoch.map(|epoch| epoch.friendly), Some(7 + 140 / 13));
        assert_eq!(cubic.every, 2, "a segment for each two: the least there is");
        // Where few segments came, only the curve counts: it begins a segment above the window.
        let mut long = LinuxCubic { last_max: 10, ..LinuxCubic::default() };
        long.update(Time(0), 7, 7);
        long.update(Time(200 * MS), 7, 0);
        assert_eq!(long.every, 7, "one segment for the whole window");
    }

    fn window(cwnd: u32, ssthresh: u32) -> Window {
        let config =
            crate::tcp::config::TcpConfig { mss: 1000, ..crate::tcp::config::TcpConfig::rfc() };
        let mut w = Window::new(&config);
        (w.cwnd, w.ssthresh, w.largest) = (cwnd * 1000, ssthresh * 1000, u32::MAX);
        w
    }

    fn ack(cubic: &mut LinuxCubic, w: &mut Window) {
        cubic.on_ack(w, &Acked { now: Time(0), bytes: 1000, rtt: None });
    }

    /// At the threshold slow start is over; before any loss one segment is added for 20 at least.
    #[test]
    fn growth_slows_to_a_twentieth_at_ssthresh() {
        let (mut cubic, mut w) = (LinuxCubic::default(), window(9, 10));
        ack(&mut cubic, &mut w);
        assert_eq!(w.cwnd, 10_000);
        (0..19).for_each(|_| ack(&mut cubic, &mut w));
        assert_eq!(w.cwnd, 10_000);
        ack(&mut cubic, &mut w);
        assert_eq!(w.cwnd, 11_000);
    }

    //= rfc9438#section-4.7: fast convergence
    #[test]
    fn losses_cut_by_beta_and_fast_convergence_lowers_plateaus() {
        let mut cubic = LinuxCubic::default();
        for (cwnd, left, last_max) in
            [(100, 70, 100), (100, 70, 100), (99, 69, 84), (85, 59, 85), (2, 2, 1)]
        {
            cubic.update(Time(0), cwnd.into(), 1);
            let ssthresh = cubic.ssthresh_after_loss(Time(0), &window(cwnd, 10), Loss::Detected);
            assert_eq!(ssthresh, left * 1000, "{cwnd}");
            assert_eq!(cubic.last_max, last_max, "{cwnd}");
            assert!(cubic.epoch.is_none(), "the curve restarts");
        }
        cubic.timed_out();
        assert_eq!(cubic.last_max, 0, "each timeout forgets it");
    }

    #[test]
    fn idle_time_shifts_the_curve_at_most_to_now() {
        for (last, now, start) in [(400, 800, 150), (400, 403, 50), (400, 404, 51), (20, 240, 60)] {
            let mut cubic = LinuxCubic::default();
            cubic.update(Time(200 * MS), 10, 1);
            cubic.last = Time(last * MS);
            cubic.restart(Time(now * MS), true);
            assert_eq!(cubic.epoch.map(|epoch| epoch.start), Some(start), "{last} ms to {now} ms");
            assert_eq!(cubic.last, Time(now * MS));
        }
    }

    /// An eighth more than the shortest round trip, but 4 ms at least and 16 ms at most, by the ninth ACK of a round.
    #[test]
    fn hystart_ends_slow_start_at_an_eighth_more_delay() {
        for (least, cwnd, longest) in [
            (Span::millis(40), 16, Some(Span::millis(45))),
            (Span::millis(16), 16, Some(Span::millis(20))),
            (Span::millis(32), 16, Some(Span::millis(36))),
            (Span::millis(128), 16, Some(Span::millis(144))),
            (Span::millis(200), 16, Some(Span::millis(216))),
            (Span::millis(40), 15, None),
        ] {
            let ended = |rtt: Span| {
                let (mut hystart, mut w) = (HyStart::default(), window(cwnd, 4_000_000));
                (w.una, w.nxt) = (1, 16_000);
                // Too far from one another for a train.
                (0..20).find(|i| hystart.ends(&w, Time(1000 * MS + i * 10 * MS), rtt, least))
            };
            let long = longest.unwrap_or(Span::secs(1));
            assert_eq!(ended(long), None, "{least:?}");
            assert_eq!(ended(long + Span(1)), longest.map(|_| 8), "{least:?}");
        }
    }

    /// Round trips end slow start whether the window grows or not, once until a timeout, and not in the first second of an
    /// epoch.
    #[test]
    fn round_trips_of_any_ack_end_slow_start_once() {
        let mut w = window(20, 4_000_000);
        (w.una, w.nxt) = (1, 20_000);
        let mut ends = |cubic: &mut LinuxCubic, from: u64| {
            w.ssthresh = u32::MAX;
            for i in 0..20 {
                // A round of the shortest round trip, then one of longer ones.
                if i < 2 {
                    (w.una, w.nxt) = (w.nxt + 1, w.nxt + 20_000);
                }
                let rtt = if i == 0 { Span::millis(20) } else { Span::millis(40) };
                cubic.on_round_trip(Time((from + 10 * i) * MS), &mut w, rtt);
            }
            w.ssthresh == w.cwnd
        };
        let mut cubic = LinuxCubic::default();
        assert!(!ends(
            &mut LinuxCubic { epoch: Some(cubic.begin(250, 20, 0)), ..cubic.clone() },
            1000
        ));
        assert!(ends(&mut cubic, 1000));
        assert!(!ends(&mut cubic, 2000), "once");
        cubic.timed_out();
        assert!(ends(&mut cubic, 4000));
    }

    /// A later round is judged by its own round trips.
    #[test]
    fn hystart_rounds_end_once_their_first_flight_is_acked() {
        let (mut hystart, mut w) = (HyStart::default(), window(20, 4_000_000));
        let short = Span::millis(40);
        let mut now = Time(1000 * MS);
        let mut ends = |w: &Window, rtt| {
            now += Span::millis(10);
            hystart.ends(w, now, rtt, short)
        };
        (w.una, w.nxt) = (1, 20_000);
        assert!(!ends(&w, short));
        w.una = 20_000;
        // The first round trip of the round was short: the others do not matter.
        assert!((0..20).all(|_| !ends(&w, Span::millis(90))));
        (w.una, w.nxt) = (20_001, 40_000);
        assert!((0..8).all(|_| !ends(&w, Span::millis(90))));
        assert!(ends(&w, Span::millis(90)));
    }

    /// The longest ACK train has half of the shortest round trip, plus half of the time of a burst of 256 KiB at the
    /// pacing rate, at most a millisecond. The rate is twice the window per round trip, and 1.2 times from half of the
    /// threshold on.
    #[test]
    fn ack_trains_of_half_an_rtt_end_slow_start() {
        let rtt = Span::millis(40);
        for (cwnd, ssthresh, longest) in [
            (20, 4_000_000, 20_500_000),
            (20_000, 4_000_000, 20_000_000 + 262_144 / 2),
            (20_000, 40_002, 20_000_000 + 262_144 / 2),
            (20_000, 40_000, 20_000_000 + 436_906 / 2),
        ] {
            let ends = |gap: u64, last: u64| {
                let (mut hystart, mut w) = (HyStart::default(), window(cwnd, ssthresh));
                (w.una, w.nxt) = (1, 20_000);
                let begin = 1000 * MS;
                let train = (0..=18 * MS).step_by(gap as usize);
                assert!(train.into_iter().all(|at| !hystart.ends(&w, Time(begin + at), rtt, rtt)));
                let before = hystart.ends(&w, Time(begin + 20 * MS), rtt, rtt);
                before || hystart.ends(&w, Time(begin + last), rtt, rtt)
            };
            assert!(!ends(2 * MS, longest), "{cwnd} {ssthresh}");
            assert!(ends(2 * MS, longest + 1), "{cwnd} {ssthresh}");
            assert!(!ends(2 * MS + 1, longest + 1), "with gaps that long it is no train");
        }
    }
}
