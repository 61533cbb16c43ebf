//! Reactions to losses: the short-term model, which follows the delivered data between two probes, and the reduction of
//! the long-term model after a probe with too many losses.

use crate::tcp::sender::Window;
use crate::tcp::sender::congestion_control::rate::RateSample;
use crate::tcp::sender::congestion_control::{Lost, Repair, Sample};
use crate::tcp::sender::systems::bbr::path::UNIT;
use crate::units::Time;

use super::{Bbr3, NONE, State};

/// Maximum losses in percent of the flight.
const LOSS_PERCENT: u64 = 2;
/// Number of lost ranges in a round that ends startup.
const STARTUP_RANGES: u32 = 6;

/// Seven tenths of a value.
//= draft-ietf-ccwg-bbr-06#section-2.8: BBR.Beta
pub(super) fn beta(value: u64) -> u64 {
    (u128::from(value) * 7 / 10) as u64
}

/// Whether the losses require a smaller flight.
//= draft-ietf-ccwg-bbr-06#section-5.5.10.2: IsInflightTooHigh
pub(super) fn too_much(lost: u64, in_flight: u64) -> bool {
    lost * 100 > in_flight * LOSS_PERCENT
}

/// Short-term bounds by losses since the last probe.
#[derive(Clone, Copy, Debug)]
pub(super) struct Short {
    /// Bits per second.
    pub(super) rate: u64,
    /// Bytes in flight.
    pub(super) flight: u64,
}

impl Default for Short {
    fn default() -> Short {
        Short { rate: NONE, flight: NONE }
    }
}

/// Deliveries and losses of the last round trip.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Latest {
    /// Maximum rate in bits per second.
    rate: u64,
    /// Maximum delivered bytes.
    flight: u64,
    /// Delivered bytes at the start of the round trip; a segment sent after it ends the round trip. A loss starts a round
    /// trip, so these differ from the other rounds.
    end: u64,
    /// Whether the last ACK has started a round trip.
    starts: bool,
    /// Whether there were losses in this round and in this cycle, the number of lost ranges, and the end of the last one.
    lost: bool,
    pub(super) lost_in_cycle: bool,
    ranges: u32,
    lost_to: u64,
}

impl Latest {
    /// Processes an ACK, before the values are used.
    pub(super) fn update(&mut self, sample: &Sample, rate: Option<(RateSample, u64)>) {
        self.starts = false;
        let Some((rate, bps)) = rate else { return };
        self.rate = self.rate.max(bps);
        self.flight = self.flight.max(rate.delivered);
        if rate.prior >= self.end {
            (self.end, self.starts) = (sample.total, true);
        }
    }

    /// Starts the next round trip after the values were used.
    pub(super) fn advance(&mut self, rate: Option<(RateSample, u64)>) {
        if let Some((rate, bps)) = rate.filter(|_| self.starts) {
            (self.rate, self.flight) = (bps, rate.delivered);
        }
    }

    /// Records a loss at `total` delivered bytes.
    pub(super) fn lose(&mut self, total: u64) {
        self.lost_in_cycle = true;
        if !self.lost {
            (self.lost, self.end) = (true, total);
        }
    }
}

/// State to restore after a spurious recovery.
#[derive(Clone, Copy, Debug)]
pub(super) struct Undo {
    /// State that was left because of losses.
    pub(super) state: Option<State>,
    pub(super) short: Short,
    pub(super) long: u64,
}

impl Default for Undo {
    fn default() -> Undo {
        Undo { state: None, short: Short::default(), long: NONE }
    }
}

impl Bbr3 {
    /// Resets the records of losses and marks, before a phase that uses them.
    pub(super) fn reset_signals(&mut self) {
        let Latest { end, lost_to, starts, .. } = self.latest;
        self.latest = Latest { end, lost_to, starts, ..Latest::default() };
        (self.marks.in_round, self.marks.in_cycle) = (false, false);
    }

    /// Adapts the short-term model to the delivered data, at the end of a round trip with losses or marks outside of probes.
    //= draft-ietf-ccwg-bbr-06#section-5.5.10.3: AdaptLowerBoundsFromCongestion
    pub(super) fn adapt_short(&mut self, w: &Window) {
        if !self.latest.starts {
            return;
        }
        let lost = core::mem::take(&mut self.latest.lost);
        let marked = core::mem::take(&mut self.marks.in_round);
        if !(lost || marked) || self.state.probes() {
            return;
        }
        let Short { rate, flight } = self.short;
        let flight = if flight == NONE { w.cwnd.into() } else { flight };
        let left = if marked { self.marks.cut(flight) } else { NONE };
        self.short.flight = flight.min(left);
        if lost {
            let rate = if rate == NONE { self.max_rate() } else { rate };
            let rate = self.latest.rate.max(beta(rate)).max(1);
            self.short = Short { rate, flight: self.latest.flight.max(beta(flight)).min(left) };
        }
    }

    /// Ends startup after a full round trip of recovery with too many losses in several ranges.
    //= draft-ietf-ccwg-bbr-06#section-5.3.1.3: CheckStartupHighLoss
    pub(super) fn check_startup(&mut self, w: &Window, rate: &RateSample) {
        if !self.latest.starts {
            return;
        }
        let ranges = core::mem::take(&mut self.latest.ranges);
        let lost = ranges >= STARTUP_RANGES && too_much(rate.lost, rate.in_flight);
        if !self.full.reached && self.repair == Repair::Recovery && lost {
            self.undo.state = Some(State::Startup);
            self.end_startup(w);
        }
    }

    /// Ends startup, and sets the long-term bound.
    pub(super) fn end_startup(&mut self, w: &Window) {
        self.full.reached = true;
        self.long = self.product(w, self.max_rate(), UNIT).max(self.latest.flight);
    }

    /// Processes the loss of a segment.
    //= draft-ietf-ccwg-bbr-06#section-5.5.10.2: HandleLostPacket, InflightAtLoss
    pub(super) fn lost_one(&mut self, w: &Window, lost: &Lost) {
        self.latest.lose(lost.total);
        if lost.from != self.latest.lost_to {
            self.latest.ranges += 1;
        }
        self.latest.lost_to = lost.from + lost.bytes;
        if self.probe.samples && too_much(lost.lost, lost.in_flight) {
            let before = lost.in_flight.saturating_sub(lost.bytes);
            let budget = before * LOSS_PERCENT / 100;
            let prefix = budget.saturating_sub(lost.lost.saturating_sub(lost.bytes));
            let at = before + prefix * 100 / (100 - LOSS_PERCENT);
            self.went_too_high(w, lost.now, lost.total, (!lost.app_limited).then_some(at));
        }
    }

    /// Processes the repair of a segment by a tail loss probe, as Google's Linux module counts it.
    pub(super) fn tail_was_lost(&mut self, w: &Window, sample: &Sample) {
        self.latest.lose(sample.total);
        let mss = u64::from(w.mss);
        let in_flight = self.latest.flight + mss;
        if self.probe.samples && too_much(mss, in_flight) {
            let limited = sample.rate.is_some_and(|rate| rate.app_limited);
            self.went_too_high(w, sample.now, sample.total, (!limited).then_some(in_flight));
        }
    }

    /// Ends a probe with too many losses, once for each probe. `in_flight` is the number of bytes in the network, unless the
    /// application limited it.
    //= draft-ietf-ccwg-bbr-06#section-5.5.10.2: HandleInflightTooHigh
    pub(super) fn went_too_high(
        &mut self,
        w: &Window,
        now: Time,
        total: u64,
        in_flight: Option<u64>,
    ) {
        self.probe.too_high = true;
        self.probe.samples = false;
        if let Some(bytes) = in_flight {
            self.long = bytes.max(beta(self.target_inflight(w)));
        }
        if self.state == State::Up {
            self.undo.state = Some(State::Up);
            self.start_down(now, total);
        }
    }

    /// Target flight: the product, unless losses have reduced the window.
    pub(super) fn target_inflight(&self, w: &Window) -> u64 {
        self.product(w, self.rate(), UNIT).min(w.cwnd.into())
    }

    /// Reverts spurious losses: restores the models to at least the previous values, and restarts a probe that they ended.
    pub(super) fn take_back(&mut self) {
        self.latest.lost = false;
        self.full.reset(0);
        let Undo { state, short, long } = core::mem::take(&mut self.undo);
        self.short.rate = self.short.rate.max(short.rate);
        self.short.flight = self.short.flight.max(short.flight);
        self.long = self.long.max(long);
        let elsewhere = self.state != State::ProbeRtt;
        match state {
            Some(State::Startup) if self.state != State::Startup => {
                self.full.reached = false;
                if elsewhere {
                    self.state = State::Startup;
                }
            }
            Some(State::Up) if self.state != State::Up && elsewhere => self.start_refill(0),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::Path;
    use super::*;
    use crate::tcp::sender::congestion_control::Repair;

    /// A probe whose losses count.
    fn probing() -> Path {
        let mut path = Path::new();
        path.bbr.probe.samples = true;
        path
    }

    #[test]
    fn loss_threshold_is_two_percent_and_beta_seven_tenths() {
        for (lost, in_flight, much) in [(0, 0, false), (1, 50, false), (2, 99, true), (1, 49, true)]
        {
            assert_eq!(too_much(lost, in_flight), much, "{lost} of {in_flight}");
        }
        assert_eq!([0, 9, 10, 1000].map(beta), [0, 6, 7, 700]);
        assert_eq!(beta(NONE), (u128::from(NONE) * 7 / 10) as u64);
    }

    /// One segment of 1000 bytes is two percent of 50,000.
    #[test]
    fn a_tail_loss_share_includes_delivered_and_lost_data() {
        for (flight, samples, app_limited, too_high, long) in [
            (49_000, true, false, false, NONE),
            (48_999, true, false, true, 49_999),
            (48_999, true, true, true, NONE),
            (48_999, false, false, false, NONE),
        ] {
            let mut path = probing();
            let mut sample = path.sample(0, Repair::None);
            sample.rate.as_mut().unwrap().app_limited = app_limited;
            (path.bbr.latest.flight, path.bbr.probe.samples) = (flight, samples);
            path.bbr.tail_was_lost(&path.w, &sample);
            assert_eq!((path.bbr.probe.too_high, path.bbr.long), (too_high, long), "{flight}");
            assert_eq!(path.bbr.probe.samples, samples && !too_high, "once for each probe");
            assert!(path.bbr.latest.lost && path.bbr.latest.lost_in_cycle);
        }
    }

    fn lost(from: u64, bytes: u64, lost: u64) -> Lost {
        let (now, total) = (Time(0), 7000);
        Lost { now, from, bytes, in_flight: 100_000, lost, app_limited: false, total }
    }

    /// The flight at which, within this segment, the loss rate exceeded two percent.
    //= draft-ietf-ccwg-bbr-06#section-5.5.10.2: lost_prefix = (BBR.LossThresh * inflight_prev - lost_prev) / (1 - LossThresh)
    #[test]
    fn excessive_loss_is_located_where_it_passes_two_percent() {
        for (bytes, all, long) in [
            (1000, 2000, NONE),
            (1000, 2001, 99_000 + (1980 - 1001) * 100 / 98),
            (1000, 2979, 99_000 + 100 / 98),
            (1000, 5000, 99_000),
            (500, 2400, 99_500 + (1990 - 1900) * 100 / 98),
        ] {
            let mut path = probing();
            path.bbr.lost_one(&path.w, &lost(0, bytes, all));
            assert_eq!((path.bbr.long, path.bbr.probe.too_high), (long, long != NONE), "{all}");
        }
        // An application-limited sample, or one outside of a probe, does not change the long-term bound.
        let mut path = probing();
        path.bbr.lost_one(&path.w, &Lost { app_limited: true, ..lost(0, 1000, 5000) });
        assert_eq!((path.bbr.long, path.bbr.probe.too_high), (NONE, true));
        path.bbr.probe.too_high = false;
        path.bbr.lost_one(&path.w, &lost(0, 1000, 5000));
        assert_eq!((path.bbr.long, path.bbr.probe.too_high), (NONE, false));
    }

    #[test]
    fn adjacent_losses_are_one_range() {
        let mut path = Path::new();
        for (from, ranges) in [(5000, 1), (6000, 1), (7000, 1), (9000, 2), (10_000, 2), (9000, 3)] {
            path.bbr.lost_one(&path.w, &lost(from, 1000, 1000));
            assert_eq!(path.bbr.latest.ranges, ranges, "{from}");
        }
    }

    fn sample(prior: u64, delivered: u64, total: u64) -> (Sample, RateSample) {
        let mut sample = Path::new().sample(0, Repair::None);
        let rate = RateSample { prior, delivered, ..sample.rate.unwrap() };
        (sample.rate, sample.total) = (Some(rate), total);
        (sample, rate)
    }

    /// The maximum of a round trip, which restarts with segments sent after its start.
    #[test]
    fn the_largest_rate_and_delivery_per_round_are_stored() {
        let mut latest = Latest { end: 5000, ..Latest::default() };
        for (prior, bps, delivered, expected, starts, end) in [
            (4000, 10, 300, (10, 300), false, 5000),
            (4999, 9, 301, (10, 301), false, 5000),
            (5000, 8, 100, (8, 100), true, 9000),
            (8999, 7, 101, (8, 101), false, 9000),
        ] {
            let (sample, rate) = sample(prior, delivered, 9000);
            latest.update(&sample, Some((rate, bps)));
            assert_eq!((latest.starts, latest.end), (starts, end), "{prior}");
            latest.advance(Some((rate, bps)));
            assert_eq!((latest.rate, latest.flight), expected, "{prior}");
        }
        latest.starts = true;
        let (sample, _) = sample(9000, 1, 9500);
        latest.update(&sample, None);
        assert!(!latest.starts, "without a rate no round begins");
    }

    #[test]
    fn loss_signals_start_a_round_and_are_reset() {
        let mut path = Path::new();
        path.bbr.latest.lose(7000);
        path.bbr.latest.lose(8000);
        assert_eq!((path.bbr.latest.end, path.bbr.latest.lost), (7000, true));
        (path.bbr.latest.starts, path.bbr.latest.lost_to) = (true, 6000);
        (path.bbr.latest.rate, path.bbr.latest.flight) = (5, 6);
        (path.bbr.marks.in_round, path.bbr.marks.in_cycle) = (true, true);
        path.bbr.reset_signals();
        let latest = &path.bbr.latest;
        assert_eq!((latest.end, latest.starts, latest.lost_to), (7000, true, 6000));
        assert_eq!((latest.rate, latest.flight, latest.lost), (0, 0, false));
        assert!(!latest.lost_in_cycle && !path.bbr.marks.in_round && !path.bbr.marks.in_cycle);
    }

    /// Seven tenths of the previous value, and at least the delivered data.
    #[test]
    fn lossy_rounds_cut_the_model_toward_delivered_data() {
        for (state, starts, lost, short, latest, after) in [
            (State::Cruise, true, true, (NONE, NONE), (0, 0), (1, 7_000)),
            (State::Cruise, true, true, (1000, 20_000), (701, 14_001), (701, 14_001)),
            (State::Cruise, true, true, (1000, 20_000), (699, 13_999), (700, 14_000)),
            (State::Cruise, true, false, (1000, 20_000), (1, 1), (1000, 20_000)),
            (State::Cruise, false, true, (1000, 20_000), (1, 1), (1000, 20_000)),
            (State::Up, true, true, (1000, 20_000), (1, 1), (1000, 20_000)),
        ] {
            let mut path = Path::new();
            path.bbr.state = state;
            path.w.cwnd = 10_000;
            (path.bbr.short.rate, path.bbr.short.flight) = short;
            (path.bbr.latest.rate, path.bbr.latest.flight) = latest;
            (path.bbr.latest.starts, path.bbr.latest.lost) = (starts, lost);
            path.bbr.adapt_short(&path.w);
            assert_eq!((path.bbr.short.rate, path.bbr.short.flight), after, "{state:?} {latest:?}");
            assert_eq!(path.bbr.latest.lost, lost && !starts, "reported once");
        }
    }
}
