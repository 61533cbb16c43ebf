//! What losses say: the short-term model, which follows what is delivered between two probes, and how a probe that lost
//! too much lowers the long-term one.

use crate::tcp::sender::Window;
use crate::tcp::sender::bbr::path::UNIT;
use crate::tcp::sender::growth::{Lost, Repair, Sample};
use crate::tcp::sender::rate::RateSample;
use crate::units::Time;

use super::{Bbr3, NONE, State};

/// Losses beyond so many percent of what was in flight are too much.
const LOSS_PERCENT: u64 = 2;
/// Ranges of a round that must be lost before startup ends by losses.
const STARTUP_RANGES: u32 = 6;

/// Seven tenths, and no less than what was delivered.
//= draft-ietf-ccwg-bbr-06#section-2.8: BBR.Beta
pub(super) fn beta(value: u64) -> u64 {
    (u128::from(value) * 7 / 10) as u64
}

/// Whether so much is lost that less should be in flight.
//= draft-ietf-ccwg-bbr-06#section-5.5.10.2: IsInflightTooHigh
pub(super) fn too_much(lost: u64, in_flight: u64) -> bool {
    lost * 100 > in_flight * LOSS_PERCENT
}

/// Bounds by losses since the last probe.
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

/// What was delivered in the last round trip, and lost.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Latest {
    /// The largest rate, in bits per second.
    rate: u64,
    /// The most bytes.
    flight: u64,
    /// The round trip ends with a segment that was sent after so much had been delivered: its rounds are not those of the
    /// rest, since one begins with a loss.
    end: u64,
    /// Whether the last ACK began one.
    starts: bool,
    /// Whether anything was lost, in this round and in this cycle, in how many pieces, and where the last one ended.
    lost: bool,
    pub(super) lost_in_cycle: bool,
    ranges: u32,
    lost_to: u64,
}

impl Latest {
    /// An ACK has come, before it is used.
    pub(super) fn update(&mut self, sample: &Sample, rate: Option<(RateSample, u64)>) {
        self.starts = false;
        let Some((rate, bps)) = rate else { return };
        self.rate = self.rate.max(bps);
        self.flight = self.flight.max(rate.delivered);
        if rate.prior >= self.end {
            (self.end, self.starts) = (sample.total, true);
        }
    }

    /// The ACK has been used.
    pub(super) fn advance(&mut self, rate: Option<(RateSample, u64)>) {
        if let Some((rate, bps)) = rate.filter(|_| self.starts) {
            (self.rate, self.flight) = (bps, rate.delivered);
        }
    }

    /// Something was lost when `total` bytes had been delivered.
    pub(super) fn lose(&mut self, total: u64) {
        self.lost_in_cycle = true;
        if !self.lost {
            (self.lost, self.end) = (true, total);
        }
    }
}

/// What a recovery that proves spurious gives back.
#[derive(Clone, Copy, Debug)]
pub(super) struct Undo {
    /// The state that was left because of losses.
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
    /// What losses have said is forgotten, before a phase that listens to them.
    pub(super) fn reset_signals(&mut self) {
        let Latest { end, lost_to, starts, .. } = self.latest;
        self.latest = Latest { end, lost_to, starts, ..Latest::default() };
        (self.marks.in_round, self.marks.in_cycle) = (false, false);
    }

    /// At the end of a round trip with losses or marks, outside of probes: the model follows what was delivered.
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

    /// Startup ends where a whole round trip of a recovery has lost too much, in several places.
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

    /// Startup has put too much into the network.
    pub(super) fn end_startup(&mut self, w: &Window) {
        self.full.reached = true;
        self.long = self.product(w, self.max_rate(), UNIT).max(self.latest.flight);
    }

    /// A segment was lost.
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

    /// A tail loss probe has repaired the loss of one segment, as Google's Linux module counts it.
    pub(super) fn tail_was_lost(&mut self, w: &Window, sample: &Sample) {
        self.latest.lose(sample.total);
        let mss = u64::from(w.mss);
        let in_flight = self.latest.flight + mss;
        if self.probe.samples && too_much(mss, in_flight) {
            let limited = sample.rate.is_some_and(|rate| rate.app_limited);
            self.went_too_high(w, sample.now, sample.total, (!limited).then_some(in_flight));
        }
    }

    /// A probe has lost too much, with `in_flight` bytes in the network if that was not the application's choice: once for
    /// each probe.
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

    /// What is wanted in flight: the product, unless losses have cut the window.
    pub(super) fn target_inflight(&self, w: &Window) -> u64 {
        self.product(w, self.rate(), UNIT).min(w.cwnd.into())
    }

    /// Losses were none: the models are at least what they were, and a probe that they ended begins again.
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
