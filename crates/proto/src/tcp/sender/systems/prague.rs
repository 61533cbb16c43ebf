//! Prague (draft-briscoe-iccrg-prague-congestion-control; De Schepper, Tilmans, Briscoe and Goel). The window decreases
//! by half of the share of marked bytes. So queues may mark often and remain short (L4S, RFC 9330).
//!
//! Alpha is a moving average of the marked share of each round trip, with a gain of 1/16 and the initial value 1. A
//! round trip with marks reduces the window by the share alpha / 2. Unmarked data grows it by a segment per round
//! trip. For a share p the equilibrium is a window of 2 / p segments. A loss halves the window.
//!
//! From 500 rounds after slow start on, round trips below 25 ms count as 25 ms. The average and the reduction then wait
//! for 25 ms, and growth is multiplied by (RTT / 25 ms)^2. So the rate equals that of a flow with 25 ms. Packets carry
//! ECT(1). The pacing rate is one window per round trip, or twice that below half of the threshold.
//!
//! It needs a peer with accurate ECN and SACK; otherwise it is Reno with RACK. Where the draft is open, it follows
//! Linux' `tcp_prague.c` (L4STeam). Not modelled: the detection of queues that mark as in RFC 3168, which the draft
//! requires and Linux disables. A loss in a window that was already reduced for marks halves the reduced window.

use crate::tcp::accurate::AccurateEcn;
use crate::tcp::config::{Congestion, RtoRule, TcpConfig};
use crate::tcp::keyword::{Deployment, Keyword, Linux};
use crate::units::{Rate, Span, Time};

use super::rack;
use crate::tcp::sender::congestion_control::{Acked, CongestionControl, Sample, SampleUse};
use crate::tcp::sender::{Chunk, Window};

/// The keyword.
pub const WORD: Keyword = Keyword {
    key: "prague",
    apply: |c| {
        rack::apply(c);
        c.congestion = Congestion::Prague;
        c.rto_rule = RtoRule::Linux;
        c.pacing = true;
        c.accurate_ecn = AccurateEcn::Ace;
    },
    summary: "RACK with a window that shrinks slightly at each mark (L4S); needs `accurate-ecn` at the peer",
    source: "draft-briscoe-iccrg-prague-congestion-control",
    tier: 0,
    worlds: crate::describe::SIM,
    syntax: "host: tcp = \"*\"",
    deployment: Deployment::Current,
    linux: Some(Linux::elsewhere("prague", "mainline Linux has no Prague")),
};

/// Minimum round trip for the calculations.
const TARGET: Span = Span::millis(25);
/// Number of rounds after slow start from which the minimum applies.
const TRANSITION: u32 = 500;
/// The share 1.
const WHOLE: u64 = 1 << 20;
/// Reciprocal of the gain of the average.
const GAIN: u64 = 16;
/// Bursts per second: a burst is the data of a quarter of a millisecond (`prague_burst_shift`).
const BURSTS: u64 = 1 << 12;

/// Prague's window growth.
#[derive(Clone, Debug)]
pub struct Prague {
    /// The average of the marked share times [`GAIN`], to avoid rounding errors.
    alpha: u64,
    /// Whether a mark has arrived; before that the average is constant.
    seen: bool,
    /// End position of this round, and the delivered and marked bytes in it.
    end: u64,
    delivered: u64,
    marked: u64,
    /// Time of the last update of the average.
    updated: Time,
    /// Time of the last reduction for marks.
    reduced: Option<Time>,
    /// Number of rounds since slow start.
    rounds: u32,
    srtt: Option<Span>,
    /// Marked bytes that the current ACK reports.
    ce_bytes: u32,
    /// Rest of the growth below one byte, times the window.
    rest: u64,
    pace: Option<Rate>,
}

impl Prague {
    /// State before the first ACK.
    pub fn new(_config: &TcpConfig) -> Prague {
        Prague {
            alpha: WHOLE * GAIN,
            seen: false,
            end: 0,
            delivered: 0,
            marked: 0,
            updated: Time::ZERO,
            reduced: None,
            rounds: 0,
            srtt: None,
            ce_bytes: 0,
            rest: 0,
            pace: None,
        }
    }

    /// The average share of marked bytes, in 1/2^20.
    pub fn alpha(&self) -> u64 {
        self.alpha / GAIN
    }

    /// Whether a round trip below the minimum counts as the minimum.
    fn is_independent(&self) -> bool {
        self.rounds >= TRANSITION
    }

    /// Whether the minimum time of a round has passed since `then`, if it applies.
    fn lasted(&self, now: Time, then: Time) -> bool {
        !self.is_independent() || now.since(then) >= TARGET
    }

    /// Updates the average at the end of a round.
    fn round(&mut self, now: Time, w: &Window) {
        if self.seen {
            let share = (self.marked * WHOLE / self.delivered.max(1)).min(WHOLE);
            self.alpha = self.alpha - self.alpha / GAIN + share;
        }
        (self.end, self.delivered, self.marked, self.updated) = (w.nxt, 0, 0, now);
        if w.cwnd >= w.ssthresh {
            self.rounds = self.rounds.saturating_add(1);
        }
    }
}

impl CongestionControl for Prague {
    fn check(&self, window: &Window) {
        debug_assert!(self.marked <= self.delivered, "more marked bytes than delivered ones");
        debug_assert!(self.end <= window.max, "a round ends beyond the sent data");
    }

    fn on_ack(&mut self, w: &mut Window, ack: &Acked) {
        let bytes = u64::from(ack.bytes.saturating_sub(self.ce_bytes));
        if w.cwnd < w.ssthresh {
            return w.open(bytes as u32);
        }
        // Growth relative to that with the minimum round trip, in 1/2^16.
        let scale = match self.srtt {
            Some(srtt) if self.is_independent() && srtt < TARGET => {
                let ratio = (srtt.0 << 16) / TARGET.0;
                (ratio * ratio) >> 16
            }
            _ => 1 << 16,
        };
        let cwnd = u64::from(w.cwnd.max(1)) << 16;
        self.rest += bytes * u64::from(w.mss) * scale;
        w.open((self.rest / cwnd) as u32);
        self.rest %= cwnd;
    }

    fn sample_use(&self) -> SampleUse {
        SampleUse::Required
    }

    fn scalable(&self) -> bool {
        true
    }

    fn on_sample(&mut self, w: &mut Window, sample: &Sample) {
        if let Some(rtt) = sample.rtt {
            self.srtt = Some(self.srtt.map_or(rtt, |srtt| Span((7 * srtt.0 + rtt.0) / 8)));
        }
        self.ce_bytes = sample.ce_bytes;
        self.seen |= sample.ce_bytes > 0;
        self.delivered += u64::from(sample.delivered);
        self.marked += u64::from(sample.ce_bytes);
        if w.una >= self.end && self.lasted(sample.now, self.updated) {
            self.round(sample.now, w);
        }
    }

    fn ssthresh_after_mark(&mut self, now: Time, w: &Window) -> Option<u32> {
        if self.reduced.is_some_and(|then| !self.lasted(now, then)) {
            return None;
        }
        self.reduced = Some(now);
        self.rest = 0;
        let less = (u64::from(w.cwnd) * self.alpha() + WHOLE) / (2 * WHOLE);
        Some((w.cwnd - less as u32).max(2 * w.mss))
    }

    fn on_sent(&mut self, _: Time, w: &Window, _: &Chunk) {
        let Some(srtt) = self.srtt else { return };
        let factor = if w.cwnd < w.ssthresh / 2 { 2 } else { 1 };
        let bits = u128::from(w.cwnd.max(w.flight())) * 8 * factor * 1_000_000_000;
        let bps = (bits / u128::from(srtt.0.max(1))).min(u128::from(u64::MAX)) as u64;
        self.pace = Rate::from_bps(bps.max(1000));
    }

    fn pacing(&self) -> Option<Rate> {
        self.pace
    }

    fn bursts_per_second(&self) -> u64 {
        BURSTS
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::config::TcpConfig;
    use crate::tcp::sender::congestion_control::{Loss, Repair};

    /// A flow with evenly distributed ACKs in each round trip.
    struct Flow {
        prague: Prague,
        w: Window,
        now: Time,
        rtt: Span,
        /// One of `every` segments is marked; zero marks none.
        every: u64,
        sent: u64,
        reductions: Vec<Time>,
        reduced_below: u64,
    }

    impl Flow {
        fn new(rtt: u64, segments: u32, every: u64) -> Flow {
            let mut w = Window::new(&TcpConfig { mss: 1000, ..TcpConfig::rfc() });
            (w.cwnd, w.ssthresh, w.largest) = (segments * 1000, segments * 1000, u32::MAX);
            let (rtt, now) = (Span::millis(rtt), Time(1_000_000_000));
            let prague = Prague::new(&TcpConfig::rfc());
            Flow { prague, w, now, rtt, every, sent: 0, reductions: Vec::new(), reduced_below: 0 }
        }

        /// Runs one round trip. Returns the window at its end in segments.
        fn round(&mut self) -> f64 {
            let segments = u64::from(self.w.cwnd / 1000);
            for _ in 0..segments {
                self.sent += 1;
                self.now += Span(self.rtt.0 / segments);
                self.w.una += 1000;
                self.w.nxt = self.w.una + u64::from(self.w.cwnd);
                let marked = self.every > 0 && self.sent.is_multiple_of(self.every);
                let sample = Sample {
                    now: self.now,
                    delivered: 1000,
                    lost: 0,
                    ce_bytes: if marked { 1000 } else { 0 },
                    pipe: (0, 0),
                    rtt: Some(self.rtt),
                    rate: None,
                    total: self.w.una,
                    repair: Repair::None,
                    repaired: false,
                };
                self.prague.on_sample(&mut self.w, &sample);
                let ack = Acked { now: self.now, bytes: 1000, rtt: Some(self.rtt) };
                self.prague.on_ack(&mut self.w, &ack);
                if marked
                    && self.w.una >= self.reduced_below
                    && let Some(window) = self.prague.ssthresh_after_mark(self.now, &self.w)
                {
                    (self.w.cwnd, self.w.ssthresh) = (window, window);
                    self.reduced_below = self.w.nxt;
                    self.reductions.push(self.now);
                }
            }
            f64::from(self.w.cwnd) / 1000.0
        }
    }

    /// The average approaches the share of marks, by a sixteenth of the difference in each round.
    #[test]
    fn alpha_follows_the_marked_share() {
        let share = |flow: &Flow| flow.prague.alpha() as f64 / WHOLE as f64;
        let mut flow = Flow::new(50, 100, 20);
        // The window is held at 100 segments, so that each round has five marks.
        let mut seen = Vec::new();
        for _ in 0..200 {
            (flow.w.cwnd, flow.w.ssthresh) = (100_000, 100_000);
            flow.reduced_below = u64::MAX;
            flow.round();
            seen.push(share(&flow));
        }
        assert!((seen[199] - 0.05).abs() < 0.001, "{}", seen[199]);
        for pair in seen[10..40].windows(2) {
            let (before, after) = (pair[0] - 0.05, pair[1] - 0.05);
            assert!((after / before - 15.0 / 16.0).abs() < 0.01, "{pair:?}");
        }
        // Without further marks it approaches zero; before the first mark it is 1.
        flow.every = 0;
        (0..200).for_each(|_| _ = flow.round());
        assert!(share(&flow) < 0.001);
        let mut fresh = Flow::new(50, 10, 0);
        (0..50).for_each(|_| _ = fresh.round());
        assert_eq!(fresh.prague.alpha(), WHOLE);
    }

    /// The published law: with a share p of marks the window is 2 / p segments. The exact value is 2 (1 - p) / p, since
    /// marked segments do not open the window.
    #[test]
    fn the_window_is_two_over_the_share() {
        for every in [10u64, 20, 50, 100] {
            let mut flow = Flow::new(50, 30, every);
            (0..400).for_each(|_| _ = flow.round());
            let mean = (0..400).map(|_| flow.round()).sum::<f64>() / 400.0;
            let law = 2.0 * every as f64;
            assert!((mean / law - 1.0).abs() < 0.15, "1 in {every}: {mean}, law {law}");
        }
    }

    /// After 500 rounds a round trip of 10 ms counts as 25 ms: the window falls to 10 / 25 of its previous
    /// size, and reductions are at least 25 ms apart.
    #[test]
    fn short_round_trips_count_as_the_target() {
        let mut flow = Flow::new(10, 60, 20);
        (0..400).for_each(|_| _ = flow.round());
        let before = (0..90).map(|_| flow.round()).sum::<f64>() / 90.0;
        (0..1000).for_each(|_| _ = flow.round());
        let after = (0..1000).map(|_| flow.round()).sum::<f64>() / 1000.0;
        assert!((before / 40.0 - 1.0).abs() < 0.15, "{before}");
        assert!((after / 16.0 - 1.0).abs() < 0.2, "{after}");
        let late = &flow.reductions[flow.reductions.len() - 100..];
        assert!(late.windows(2).all(|two| two[1].since(two[0]) >= TARGET));
        // A longer one is left as it is.
        let mut long = Flow::new(50, 60, 20);
        (0..1500).for_each(|_| _ = long.round());
        let mean = (0..400).map(|_| long.round()).sum::<f64>() / 400.0;
        assert!((mean / 40.0 - 1.0).abs() < 0.15, "{mean}");
    }

    #[test]
    fn a_loss_halves_and_the_first_mark_ends_slow_start() {
        let mut flow = Flow::new(50, 100, 0);
        flow.w.max = 100_000;
        assert_eq!(flow.prague.ssthresh_after_loss(flow.now, &flow.w, Loss::Detected), 50_000);
        let mut fresh = Flow::new(50, 10, 0);
        fresh.w.ssthresh = u32::MAX;
        assert_eq!(fresh.round(), 20.0);
        assert_eq!(fresh.prague.ssthresh_after_mark(fresh.now, &fresh.w), Some(10_000));
    }
}
