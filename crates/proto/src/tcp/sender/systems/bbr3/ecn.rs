//! Reactions to congestion marks. The draft requires a reaction, but does not define one (section 3.7). With accurate ECN,
//! the reaction is that of Google's Linux module (branch v3), which is DCTCP's. The short-term bound of the flight
//! decreases by a third of the smoothed share of marked bytes. More than half of a round marked counts as too many losses.
//! The module does this only for round trips below 5 ms on routes with early marks; here it is unconditional. An echo of
//! RFC 3168 has no number of marked bytes, and counts as a loss.

use crate::tcp::sender::Window;
use crate::tcp::sender::congestion_control::{Repair, Sample};
use crate::tcp::sender::systems::bbr::path::UNIT;

use super::{Bbr3, NONE, State};

/// Reciprocal of the gain of the smoothed share.
const GAIN: u64 = 16;
/// Divisor of the share for the reduction.
const FACTOR: u64 = 3;
/// Number of consecutive rounds with too many marks that ends startup.
const STARTUP_ROUNDS: u32 = 2;

/// Statistics of marks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Marks {
    /// Smoothed share of marked bytes, in 1/UNIT. It is initially 1, for an immediate reaction to a full queue.
    pub(super) alpha: u64,
    /// Delivered and marked bytes of this round.
    bytes: (u64, u64),
    /// Share of the last round, in 1/UNIT.
    share: u64,
    /// Number of consecutive rounds with too many marks.
    high: u32,
    /// Whether there were marks since the last adaptation of the short-term model, and in this cycle.
    pub(super) in_round: bool,
    pub(super) in_cycle: bool,
    /// Whether an echo has arrived, and whether the peer has ever counted marks.
    pub(super) echoed: bool,
    counted: bool,
}

impl Default for Marks {
    fn default() -> Marks {
        Marks {
            alpha: UNIT,
            bytes: (0, 0),
            share: 0,
            high: 0,
            in_round: false,
            in_cycle: false,
            echoed: false,
            counted: false,
        }
    }
}

impl Marks {
    /// Processes an ACK; `starts` is whether it starts a round. Returns whether the previous round was measured.
    fn update(&mut self, sample: &Sample, starts: bool) -> bool {
        let marked = u64::from(sample.ce_bytes);
        self.counted |= marked > 0;
        self.in_round |= marked > 0;
        self.in_cycle |= marked > 0;
        self.bytes = (self.bytes.0 + u64::from(sample.delivered), self.bytes.1 + marked);
        if !starts || self.bytes.0 == 0 {
            return false;
        }
        let (delivered, marked) = core::mem::take(&mut self.bytes);
        self.share = (marked * UNIT / delivered).min(UNIT);
        self.alpha = ((GAIN - 1) * self.alpha + self.share) / GAIN;
        self.high = if self.too_many() { self.high + 1 } else { 0 };
        true
    }

    /// Whether more than half of the last round was marked.
    pub(super) fn too_many(&self) -> bool {
        self.share > UNIT / 2
    }

    /// A bound after its reduction for marks.
    pub(super) fn cut(&self, bytes: u64) -> u64 {
        (u128::from(bytes) * u128::from(UNIT - self.alpha / FACTOR) / u128::from(UNIT)) as u64
    }
}

impl Bbr3 {
    /// Processes the marks that an ACK reports.
    //= draft-ietf-ccwg-bbr-06#section-3.7: marks must count as congestion
    pub(super) fn update_marks(&mut self, w: &Window, sample: &Sample) {
        let measured = self.marks.update(sample, self.rounds.starts);
        if core::mem::take(&mut self.marks.echoed) && !self.marks.counted {
            self.latest.lose(sample.total);
        }
        if !measured || !self.marks.too_many() {
            return;
        }
        if !self.full.reached && self.marks.high >= STARTUP_ROUNDS {
            self.end_startup(w);
        } else if self.probe.samples {
            let rate = sample.rate.filter(|rate| !self.is_app_limited(rate));
            self.went_too_high(w, sample.now, sample.total, rate.map(|rate| rate.in_flight));
        }
    }

    /// Whether marks alone have limited the rate, and have ceased: a probe then starts at once. Returns the number of
    /// doublings from one segment to half of the safe flight.
    pub(super) fn marks_ceased(&self, w: &Window) -> Option<u32> {
        let calm = self.repair == Repair::None && self.marks.share == 0 && !self.marks.in_round;
        let between = matches!(self.state, State::Down | State::Cruise);
        if !(calm && between && self.marks.in_cycle && !self.latest.lost_in_cycle) {
            return None;
        }
        let half = if self.long == NONE { 0 } else { self.long / 2 / u64::from(w.mss.max(1)) };
        Some(half.max(1).ilog2().min(30))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::Path;
    use super::*;

    #[test]
    fn the_ce_share_is_computed_per_round_and_smoothed() {
        let mut marks = Marks::default();
        let sample = |delivered, ce_bytes| Sample {
            delivered,
            ce_bytes,
            ..Path::new().sample(0, Repair::None)
        };
        assert!(!marks.update(&sample(0, 0), true), "nothing was delivered");
        assert!(!marks.update(&sample(500, 0), false), "the round continues");
        assert!(!marks.in_round && !marks.in_cycle && !marks.counted);
        let mut alpha = UNIT;
        for (delivered, marked, share, high) in [
            (500, 500, UNIT / 2, 0),
            (256, 129, 129, 1),
            (256, 256, UNIT, 2),
            (100, 200, UNIT, 3),
            (256, 128, 128, 0),
            (256, 0, 0, 0),
        ] {
            assert!(marks.update(&sample(delivered, marked), true));
            alpha = (15 * alpha + share) / 16;
            assert_eq!((marks.share, marks.alpha, marks.high), (share, alpha, high), "{marked}");
            assert_eq!(marks.too_many(), high > 0);
        }
        assert!(marks.in_round && marks.in_cycle && marks.counted);
    }

    #[test]
    fn marks_cut_the_flight_by_a_third_of_alpha() {
        for (alpha, left) in
            [(0, 25_600), (2, 25_600), (3, 25_500), (UNIT / 2, 21_400), (UNIT, 17_100)]
        {
            assert_eq!(Marks { alpha, ..Marks::default() }.cut(25_600), left, "{alpha}");
        }
        assert_eq!(Marks { alpha: 0, ..Marks::default() }.cut(NONE), NONE);
    }

    #[test]
    fn marks_end_startup_after_two_rounds_and_a_probe_after_one() {
        let marked = |path: &mut Path, app_limited| {
            let mut sample = path.sample(0, Repair::None);
            (sample.delivered, sample.ce_bytes) = (1000, 600);
            let rate = sample.rate.as_mut().unwrap();
            (rate.app_limited, rate.in_flight) = (app_limited, 70_000);
            path.bbr.rounds.starts = true;
            path.bbr.update_marks(&path.w, &sample);
        };
        let mut path = Path::new();
        marked(&mut path, false);
        assert!(!path.bbr.full.reached);
        marked(&mut path, false);
        assert!(path.bbr.full.reached && !path.bbr.probe.too_high);
        for (samples, app_limited, too_high, long) in
            [(true, false, true, 70_000), (true, true, true, NONE), (false, false, false, NONE)]
        {
            let mut path = Path::new();
            (path.bbr.full.reached, path.bbr.probe.samples) = (true, samples);
            marked(&mut path, app_limited);
            assert_eq!((path.bbr.probe.too_high, path.bbr.long), (too_high, long));
        }
    }

    #[test]
    fn an_echo_is_a_loss_unless_marks_are_counted() {
        for (echoed, counted, lost) in
            [(true, false, true), (true, true, false), (false, false, false)]
        {
            let mut path = Path::new();
            (path.bbr.marks.echoed, path.bbr.marks.counted) = (echoed, counted);
            let sample = path.sample(0, Repair::None);
            path.bbr.update_marks(&path.w, &sample);
            assert_eq!(path.bbr.latest.lost_in_cycle, lost, "{echoed} {counted}");
            assert!(!path.bbr.marks.echoed, "once");
        }
    }

    /// Half of the safe flight, in doublings of a segment of 1000 bytes.
    #[test]
    fn ceased_marks_start_a_probe_from_half_the_bound() {
        let calm = |long| {
            let mut path = Path::new();
            (path.bbr.state, path.bbr.long, path.bbr.marks.in_cycle) = (State::Cruise, long, true);
            path
        };
        for (long, up) in
            [(NONE, 0), (1000, 0), (2000, 0), (7999, 1), (8000, 2), (100_000, 5), (NONE - 1, 30)]
        {
            let path = calm(long);
            assert_eq!(path.bbr.marks_ceased(&path.w), Some(up), "{long}");
        }
        type Change = (&'static str, fn(&mut Bbr3));
        let none: [Change; 7] = [
            ("a repair", |bbr| bbr.repair = Repair::Recovery),
            ("marks in the last round", |bbr| bbr.marks.share = 1),
            ("a mark just now", |bbr| bbr.marks.in_round = true),
            ("a probe", |bbr| bbr.state = State::Up),
            ("before a probe", |bbr| bbr.state = State::Refill),
            ("no marks at all", |bbr| bbr.marks.in_cycle = false),
            ("losses", |bbr| bbr.latest.lost_in_cycle = true),
        ];
        for (case, change) in none {
            let mut path = calm(8000);
            change(&mut path.bbr);
            assert_eq!(path.bbr.marks_ceased(&path.w), None, "{case}");
        }
        let mut path = calm(8000);
        path.bbr.state = State::Down;
        assert_eq!(path.bbr.marks_ceased(&path.w), Some(2));
    }
}
