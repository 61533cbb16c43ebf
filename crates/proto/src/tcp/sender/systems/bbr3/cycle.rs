//! The cycle of states that probe for bandwidth, and the long-term model, which probes change.

use crate::tcp::sender::Window;
use crate::tcp::sender::congestion_control::Sample;
use crate::tcp::sender::congestion_control::rate::RateSample;
use crate::tcp::sender::systems::bbr::path::{UNIT, scattered};
use crate::units::{Span, Time};

use super::bounds::{Short, too_much};
use super::{Bbr3, NONE, State};

/// Part of the safe flight that is left for other flows, in percent.
const HEADROOM_PERCENT: u64 = 15;
/// Maximum number of rounds between probes, in which Reno's flows can grow.
const MOST_ROUNDS: u64 = 63;
/// Minimum of the maximum time between probes; up to a second is added.
const WAIT: Span = Span::secs(2);

/// Relation of the arriving ACKs to a probe.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Acks {
    /// No probe.
    #[default]
    Init,
    /// A probe is about to start.
    Refilling,
    /// A probe has started; the ACKs are of segments from before.
    Starting,
    /// The ACKs are of segments of the probe.
    Feedback,
    /// The probe is over; the ACKs are of its last segments.
    Stopping,
}

/// State of probing for bandwidth.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Probe {
    pub(super) acks: Acks,
    /// Whether the arriving ACKs are of a probe without a result yet.
    pub(super) samples: bool,
    /// Whether the last probe had too many losses.
    pub(super) too_high: bool,
    /// Whether the last probe ended at the flight at which the previous one had too many losses.
    cautious: bool,
    /// Number of rounds since the last probe, plus a random bit.
    pub(super) rounds: u64,
    /// Start of this cycle, and maximum time to the next one.
    since: Time,
    wait: Span,
    /// Acknowledged bytes since the last increase of the long-term bound, bytes for an increase by a segment, and number of
    /// rounds with increases.
    up_acked: u64,
    up_each: u64,
    up_rounds: u32,
}

impl Bbr3 {
    /// Starts a cycle, below the rate of the path.
    //= draft-ietf-ccwg-bbr-06#section-5.3.3.9: StartProbeBW_DOWN, PickProbeWait
    pub(super) fn start_down(&mut self, now: Time, total: u64) {
        self.reset_signals();
        let drawn = scattered(now);
        let p = &mut self.probe;
        (p.rounds, p.wait) = (drawn & 1, WAIT + Span((1_000_000_000 * (drawn >> 1)) >> 31));
        (p.since, p.acks, p.up_each) = (now, Acks::Stopping, NONE);
        self.rounds.restart(total);
        self.state = State::Down;
    }

    /// Fills the path before a probe, which then starts with an increase of `1 << up` segments per round.
    pub(super) fn start_refill(&mut self, up: u32) {
        self.short = Short::default();
        let p = &mut self.probe;
        (p.up_rounds, p.up_acked, p.cautious, p.acks) = (up, 0, false, Acks::Refilling);
        self.state = State::Refill;
    }

    fn start_up(&mut self, w: &Window, bps: u64) {
        self.probe.acks = Acks::Starting;
        self.full.reset(bps);
        self.state = State::Up;
        self.raise_slope(w);
    }

    /// Doubles the increase of the bound for each round.
    fn raise_slope(&mut self, w: &Window) {
        let p = &mut self.probe;
        p.up_each = (u64::from(w.cwnd) >> p.up_rounds).max(w.mss.into());
        p.up_rounds = (p.up_rounds + 1).min(30);
    }

    /// Processes an ACK in the cycle.
    //= draft-ietf-ccwg-bbr-06#section-5.3.3.9: UpdateProbeBWCyclePhase
    pub(super) fn update_cycle(
        &mut self,
        w: &Window,
        sample: &Sample,
        rate: Option<(RateSample, u64)>,
    ) {
        let Some((rate, bps)) = rate.filter(|_| self.full.reached) else { return };
        if self.adapt_long(w, sample, &rate) {
            return;
        }
        if let Some(up) = self.marks_ceased(w) {
            self.rounds.restart(sample.total);
            return self.start_refill(up);
        }
        match self.state {
            State::Down | State::Cruise if self.is_time_to_probe(w, sample.now) => {
                self.rounds.restart(sample.total);
                self.start_refill(0);
            }
            State::Down if self.is_time_to_cruise(w, sample.pipe.1) => self.state = State::Cruise,
            State::Refill if self.rounds.starts => {
                self.probe.samples = true;
                self.rounds.restart(sample.total);
                self.start_up(w, bps);
            }
            State::Up => self.update_up(w, sample, bps),
            _ => {}
        }
    }

    /// Processes the results of a probe. Returns whether they have started another phase.
    //= draft-ietf-ccwg-bbr-06#section-5.3.3.9: AdaptLongTermModel
    fn adapt_long(&mut self, w: &Window, sample: &Sample, rate: &RateSample) -> bool {
        let round = self.rounds.starts;
        if self.probe.acks == Acks::Starting && round {
            self.probe.acks = Acks::Feedback;
        }
        if self.probe.acks == Acks::Stopping && round {
            (self.probe.samples, self.probe.acks) = (false, Acks::Init);
            if self.state.cycles() && !self.is_app_limited(rate) && self.rates[1] > 0 {
                // Discard the rate of the previous cycle.
                self.rates = [self.rates[1], 0];
            }
            if self.state.cycles() && self.probe.cautious && !self.probe.too_high {
                self.rounds.restart(sample.total);
                self.start_refill(0);
                return true;
            }
        }
        let fine = !too_much(rate.lost, rate.in_flight) && !self.marks.too_many();
        if self.long != NONE && fine {
            self.long = self.long.max(rate.in_flight);
            if self.state == State::Up {
                self.raise_long(w, sample.delivered.into());
            }
        }
        false
    }

    //= draft-ietf-ccwg-bbr-06#section-5.3.3.9: ProbeInflightLongtermUpward
    fn raise_long(&mut self, w: &Window, acked: u64) {
        if !self.is_limited() || u64::from(w.cwnd) < self.long {
            return;
        }
        let p = &mut self.probe;
        p.up_acked += acked;
        let segments = p.up_acked / p.up_each;
        p.up_acked %= p.up_each;
        self.long += segments * u64::from(w.mss);
        if self.rounds.starts {
            self.raise_slope(w);
        }
    }

    //= draft-ietf-ccwg-bbr-06#section-5.3.3.8.2: as often as Reno would lose something, and at least each few seconds
    fn is_time_to_probe(&self, w: &Window, now: Time) -> bool {
        let reno = self.target_inflight(w) / u64::from(w.mss.max(1));
        now.since(self.probe.since) > self.probe.wait || self.probe.rounds >= reno.min(MOST_ROUNDS)
    }

    fn is_time_to_cruise(&self, w: &Window, pipe: u64) -> bool {
        let product = self.product(w, self.max_rate(), UNIT);
        pipe <= self.with_headroom(w) && pipe <= self.with_quanta(w, product)
    }

    /// Ends a probe at a plateau of the rate, or at the flight at which the last probe had too many losses.
    //= draft-ietf-ccwg-bbr-06#section-5.3.3.7
    fn update_up(&mut self, w: &Window, sample: &Sample, bps: u64) {
        let there = sample.pipe.0 + u64::from(w.mss) > self.long;
        let cautious = self.probe.too_high && there;
        self.probe.cautious |= cautious;
        if !cautious && self.is_limited() && u64::from(w.cwnd) >= self.long {
            // The bound limits the rate, not the path.
            self.full.reset(bps);
        }
        if cautious || self.full.now {
            self.probe.too_high = false;
            self.start_down(sample.now, sample.total);
        }
    }

    /// The safe flight less the headroom for other flows.
    pub(super) fn with_headroom(&self, w: &Window) -> u64 {
        if self.long == NONE {
            return NONE;
        }
        let headroom = (self.long * HEADROOM_PERCENT / 100).max(w.mss.into());
        self.long.saturating_sub(headroom).max(Self::least(w))
    }

    /// Maximum flight by the models.
    //= draft-ietf-ccwg-bbr-06#section-5.6.4.7: BoundCwndForModel
    pub(super) fn bound(&self, w: &Window) -> u64 {
        let long = match self.state {
            State::Down | State::Refill | State::Up => self.long,
            State::Cruise | State::ProbeRtt => self.with_headroom(w),
            State::Startup | State::Drain => NONE,
        };
        long.min(self.short.flight).max(Self::least(w))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::Path;
    use super::*;
    use crate::tcp::sender::congestion_control::Repair;

    /// The long-term bound rises only while the window reaches it, by a segment for each `up_each` arriving bytes.
    #[test]
    fn the_bound_rises_only_while_it_limits_the_window() {
        for (cwnd, long) in [(49_999, 50_000), (50_000, 51_000), (60_000, 51_000)] {
            let mut path = Path::new();
            (path.bbr.long, path.w.cwnd, path.bbr.limited) =
                (50_000, cwnd, Some(path.bbr.rounds.count));
            (path.bbr.probe.up_each, path.bbr.probe.up_acked) = (4000, 3000);
            path.bbr.raise_long(&path.w, 1000);
            assert_eq!(path.bbr.long, long, "{cwnd}");
            path.bbr.limited = None;
            path.bbr.raise_long(&path.w, 9000);
            assert_eq!(path.bbr.long, long, "the window was not used");
        }
    }

    //= draft-ietf-ccwg-bbr-06#section-5.3.3.9: RaiseInflightLongtermSlope
    #[test]
    fn the_bound_slope_doubles_each_round_to_a_limit() {
        for (before, each, after) in [
            (0, 64_000, 1),
            (3, 8000, 4),
            (6, 1000, 7),
            (7, 1000, 8),
            (29, 1000, 30),
            (30, 1000, 30),
        ] {
            let mut path = Path::new();
            (path.w.cwnd, path.bbr.probe.up_rounds) = (64_000, before);
            path.bbr.raise_slope(&path.w);
            assert_eq!((path.bbr.probe.up_each, path.bbr.probe.up_rounds), (each, after));
        }
    }

    /// 15 percent, but at least one segment, of a quantity of at least four segments.
    #[test]
    fn headroom_is_left_to_other_flows_outside_of_probes() {
        for (long, left) in
            [(NONE, NONE), (100_000, 85_000), (7000, 5950), (6000, 5000), (4000, 4000)]
        {
            let mut path = Path::new();
            path.bbr.long = long;
            assert_eq!(path.bbr.with_headroom(&path.w), left, "{long}");
        }
        for (state, bound) in [
            (State::Startup, NONE),
            (State::Drain, NONE),
            (State::Down, 100_000),
            (State::Refill, 100_000),
            (State::Up, 100_000),
            (State::Cruise, 85_000),
            (State::ProbeRtt, 85_000),
        ] {
            let mut path = Path::new();
            (path.bbr.long, path.bbr.state) = (100_000, state);
            assert_eq!(path.bbr.bound(&path.w), bound, "{state:?}");
            for (flight, bound) in [(50_000, 50_000), (4000, 4000), (3999, 4000)] {
                path.bbr.short.flight = flight;
                assert_eq!(path.bbr.bound(&path.w), bound, "{state:?}");
            }
        }
    }

    /// After two or three seconds, or as many rounds as there are segments in the path, 63 at most.
    #[test]
    fn probes_are_due_after_a_wait_or_enough_rounds() {
        let begin = Time(1_000_000_000);
        for (rate, rounds) in [(10_000_000, 50), (12_600_000, 63), (12_800_000, 63)] {
            for (span, past, probe) in [
                (Span::secs(2), 0, false),
                (Span::secs(2) + Span(1), 0, true),
                (Span::ZERO, rounds - 1, false),
                (Span::ZERO, rounds, true),
            ] {
                let mut path = Path::new();
                path.w.cwnd = 1_000_000;
                (path.bbr.rates, path.bbr.rtt.min) = ([rate, 0], Some(Span::millis(40)));
                (path.bbr.probe.since, path.bbr.probe.wait) = (begin, WAIT);
                path.bbr.probe.rounds = past;
                let is = path.bbr.is_time_to_probe(&path.w, begin + span);
                assert_eq!(is, probe, "{rate} {span:?} {past}");
            }
        }
    }

    #[test]
    fn probe_waits_are_random_between_two_and_three_seconds() {
        let (mut waits, mut rounds) = (Vec::new(), [0, 0]);
        for now in (0..200).map(|i| Time(i * 1_000_003)) {
            let mut path = Path::new();
            path.bbr.start_down(now, 5000);
            let p = &path.bbr.probe;
            rounds[p.rounds as usize] += 1;
            waits.push(p.wait);
            assert_eq!((p.since, p.acks, p.up_each), (now, Acks::Stopping, NONE));
            assert_eq!(path.bbr.state, State::Down);
        }
        assert!(waits.iter().all(|wait| (Span::secs(2)..Span::secs(3)).contains(wait)));
        let half = Span::millis(2500);
        let long = waits.iter().filter(|wait| **wait > half).count();
        assert!((60..140).contains(&long) && rounds.iter().all(|n| *n > 60), "{long} {rounds:?}");
    }

    #[test]
    fn cruise_begins_once_flight_fits_bdp_and_headroom() {
        for (long, pipe, cruise) in [
            (NONE, 10_000, true),
            (NONE, 10_001, false),
            (10_000, 8500, true),
            (10_000, 8501, false),
        ] {
            // Before a round trip is known the product is the initial window.
            let mut path = Path::new();
            path.bbr.long = long;
            assert_eq!(path.bbr.is_time_to_cruise(&path.w, pipe), cruise, "{long} {pipe}");
        }
    }

    /// Where the last probe lost too much, the next one ends before it is there.
    #[test]
    fn probes_end_at_a_plateau_or_below_lossy_flight() {
        for (too_high, plateau, pipe, down, cautious) in [
            (true, false, 49_000, false, false),
            (true, false, 49_001, true, true),
            (false, false, 60_000, false, false),
            (false, true, 10_000, true, false),
            (true, true, 10_000, true, false),
        ] {
            let mut path = Path::new();
            let mut sample = path.sample(0, Repair::None);
            sample.pipe.0 = pipe;
            (path.bbr.state, path.bbr.long) = (State::Up, 50_000);
            (path.bbr.probe.too_high, path.bbr.full.now) = (too_high, plateau);
            path.bbr.update_up(&path.w, &sample, 1);
            assert_eq!(path.bbr.state == State::Down, down, "{too_high} {pipe}");
            assert_eq!(path.bbr.probe.too_high, too_high && !down);
            assert_eq!(path.bbr.probe.cautious, cautious);
        }
    }

    //= draft-ietf-ccwg-bbr-06#section-5.3.3.9: AdaptLongTermModel
    #[test]
    fn probe_feedback_advances_the_model_at_round_starts() {
        for (acks, round, after) in [
            (Acks::Starting, true, Acks::Feedback),
            (Acks::Starting, false, Acks::Starting),
            (Acks::Refilling, true, Acks::Refilling),
            (Acks::Feedback, true, Acks::Feedback),
            (Acks::Stopping, false, Acks::Stopping),
            (Acks::Stopping, true, Acks::Init),
        ] {
            for (state, app_limited, newer, rates) in [
                (State::Down, false, 7, [7, 0]),
                (State::Down, true, 7, [9, 7]),
                (State::Down, false, 0, [9, 0]),
                (State::Startup, false, 7, [9, 7]),
            ] {
                let mut path = Path::new();
                let sample = path.sample(0, Repair::None);
                let rate = RateSample { app_limited, ..sample.rate.unwrap() };
                (path.bbr.state, path.bbr.rates) = (state, [9, newer]);
                (path.bbr.probe.acks, path.bbr.rounds.starts) = (acks, round);
                path.bbr.probe.samples = true;
                assert!(!path.bbr.adapt_long(&path.w, &sample, &rate));
                let stopped = after == Acks::Init;
                assert_eq!(path.bbr.probe.acks, after, "{acks:?} {round}");
                assert_eq!(path.bbr.probe.samples, !stopped);
                assert_eq!(path.bbr.rates, if stopped { rates } else { [9, newer] }, "{state:?}");
            }
        }
    }

    #[test]
    fn a_cautious_probe_without_loss_is_repeated_at_once() {
        for (state, cautious, too_high, again) in [
            (State::Down, true, false, true),
            (State::Down, true, true, false),
            (State::Down, false, false, false),
            (State::Startup, true, false, false),
        ] {
            let mut path = Path::new();
            let sample = path.sample(0, Repair::None);
            path.bbr.state = state;
            (path.bbr.probe.acks, path.bbr.rounds.starts) = (Acks::Stopping, true);
            (path.bbr.probe.cautious, path.bbr.probe.too_high) = (cautious, too_high);
            assert_eq!(path.bbr.adapt_long(&path.w, &sample, &sample.rate.unwrap()), again);
            assert_eq!(path.bbr.state, if again { State::Refill } else { state });
        }
    }

    #[test]
    fn the_long_bound_rises_to_a_low_loss_flight() {
        for (long, in_flight, lost, after) in [
            (50_000, 60_000, 1200, 60_000),
            (50_000, 60_000, 1201, 50_000),
            (50_000, 40_000, 0, 50_000),
            (NONE, 60_000, 0, NONE),
        ] {
            let mut path = Path::new();
            let sample = path.sample(0, Repair::None);
            let rate = RateSample { in_flight, lost, ..sample.rate.unwrap() };
            path.bbr.long = long;
            path.bbr.adapt_long(&path.w, &sample, &rate);
            assert_eq!(path.bbr.long, after, "{in_flight} {lost}");
        }
    }
}
