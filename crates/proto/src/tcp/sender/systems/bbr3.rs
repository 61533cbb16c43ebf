//! BBR, version 3 (draft-ietf-ccwg-bbr-06): the sender models the path by a rate and a round trip, as version 1 does, and
//! by the bytes in flight that the path supports. It probes rarely, and reduces the flight after losses of more than 2 %.
//!
//! Two models bound it. The long-term model has the maximum rate of two cycles and the maximum safe flight; probes change
//! it. The short-term model follows losses between two probes; the next probe resets it. Files: the cycle and the
//! long-term model (`cycle.rs`), losses and the short-term model (`bounds.rs`), the round trip (`min_rtt.rs`), congestion
//! marks (`ecn.rs`).
//!
//! Choices here: the time replaces the draft's random numbers (`bbr/path.rs`). There are no send quanta, but the window
//! has room for them. A sender that is idle in ProbeRTT leaves it at its next ACK. Not modelled: the filter for the ACK
//! of a tail loss probe, and protective load balancing, which only Google's Linux module has.

mod bounds;
mod cycle;
mod ecn;
mod min_rtt;

use crate::tcp::config::{Congestion, RtoRule, TcpConfig};
use crate::tcp::keyword::{Deployment, Keyword, Linux};
use crate::units::{Rate, Time};

use super::bbr::aggregation::{Aggregation, ROUNDS};
use super::bbr::path::{Pace, Rounds, UNIT, product};
use super::rack;
use crate::tcp::sender::Window;
use crate::tcp::sender::congestion_control::{
    Acked, CongestionControl, Loss, Lost, Repair, Sample, SampleUse,
};
use bounds::{Latest, Short, Undo};
use cycle::Probe;
use ecn::Marks;
use min_rtt::MinRtt;

/// The keyword.
pub const WORD: Keyword = Keyword {
    key: "bbr3",
    apply: |c| {
        rack::apply(c);
        c.congestion = Congestion::Bbr3;
        c.rto_rule = RtoRule::Linux;
        c.pacing = true;
        c.burst = 2;
    },
    summary: "BBR that probes rarely, and has less data in flight after a probe lost more than 2 %",
    source: "draft-ietf-ccwg-bbr-06 (version 3), with RFC 8985",
    tier: 0,
    worlds: crate::describe::SIM,
    syntax: "host: tcp = \"*\"",
    deployment: Deployment::Current,
    linux: Some(Linux::elsewhere("bbr3", "the BBR of Linux is version 1, `tcp = \"bbr\"`")),
};

/// 4 ln 2: doubles the rate in each round trip.
const STARTUP_GAIN: u64 = UNIT * 277 / 100 + 1;
const DRAIN_GAIN: u64 = UNIT / 2;
const DOWN_GAIN: u64 = UNIT * 90 / 100;
const UP_GAIN: u64 = UNIT * 5 / 4;
/// Window in products of rate and round trip; larger in a probe.
const WINDOW_GAIN: u64 = 2 * UNIT;
const UP_WINDOW_GAIN: u64 = UNIT * 9 / 4;
/// Maximum number of rounds in Drain.
const DRAIN_ROUNDS: u64 = 3;
/// Number of rounds without growth by a quarter that show a full path.
const FULL_ROUNDS: u32 = 3;
/// Minimum window in segments.
const LEAST: u64 = 4;
/// Maximum quantum in bytes.
const QUANTUM: u64 = 64 << 10;
/// No bound.
const NONE: u64 = u64::MAX;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// Until the delivery rate no longer grows, or losses are too high.
    Startup,
    /// Until the queue of startup is drained.
    Drain,
    /// Below the rate of the path, until there is headroom.
    Down,
    /// At the rate of the path.
    Cruise,
    /// At the rate of the path, without the short-term bounds.
    Refill,
    /// Above the rate of the path, to probe for bandwidth.
    Up,
    /// Half of the product in flight, to measure the round trip without a queue.
    ProbeRtt,
}

impl State {
    /// Whether it is one of the four states of the cycle.
    fn cycles(self) -> bool {
        matches!(self, State::Down | State::Cruise | State::Refill | State::Up)
    }

    /// Whether it probes for bandwidth.
    fn probes(self) -> bool {
        matches!(self, State::Startup | State::Refill | State::Up)
    }
}

/// Detection of a full path: the delivery rate no longer grows.
#[derive(Clone, Copy, Debug, Default)]
struct Full {
    /// The rate at its last growth by a quarter, and the number of rounds since.
    rate: u64,
    rounds: u32,
    /// Whether the path was found full since the last reset.
    now: bool,
    /// Whether the path was ever found full.
    reached: bool,
}

impl Full {
    /// Restarts the detection with `rate`.
    fn reset(&mut self, rate: u64) {
        (self.rate, self.rounds, self.now) = (rate, 0, false);
    }
}

/// BBR's model and state.
#[derive(Clone, Debug)]
pub struct Bbr3 {
    state: State,
    rounds: Rounds,
    /// Maximum rates in bits per second: of the previous cycle and of this one.
    rates: [u64; 2],
    /// Maximum safe flight in bytes (long-term).
    long: u64,
    short: Short,
    latest: Latest,
    marks: Marks,
    full: Full,
    probe: Probe,
    rtt: MinRtt,
    undo: Undo,
    lumps: Aggregation,
    pace: Pace,
    /// Round at the start of Drain.
    drain_round: u64,
    /// Last round in which the window was full.
    limited: Option<u64>,
    /// Window before losses or ProbeRTT.
    prior_cwnd: u32,
    repair: Repair,
    idle_restart: bool,
    initial_window: u32,
}

impl Bbr3 {
    /// A model without samples.
    pub fn new(config: &TcpConfig) -> Bbr3 {
        Bbr3 {
            state: State::Startup,
            rounds: Rounds::default(),
            rates: [0; 2],
            long: NONE,
            short: Short::default(),
            latest: Latest::default(),
            marks: Marks::default(),
            full: Full::default(),
            probe: Probe::default(),
            rtt: MinRtt::default(),
            undo: Undo::default(),
            lumps: Aggregation::default(),
            pace: Pace::default(),
            drain_round: 0,
            limited: None,
            prior_cwnd: 0,
            repair: Repair::None,
            idle_restart: false,
            initial_window: config.initial_window,
        }
    }

    /// Maximum rate of this cycle and the previous one, in bits per second.
    fn max_rate(&self) -> u64 {
        self.rates[0].max(self.rates[1])
    }

    /// The sending rate without gains.
    fn rate(&self) -> u64 {
        self.max_rate().min(self.short.rate)
    }

    fn least(w: &Window) -> u64 {
        LEAST * u64::from(w.mss)
    }

    /// Bytes in the path at the rate `bps`, times `gain`.
    fn product(&self, w: &Window, bps: u64, gain: u64) -> u64 {
        match self.rtt.min {
            None => u64::from(w.mss) * u64::from(self.initial_window),
            Some(rtt) => product(bps, rtt, gain),
        }
    }

    /// `bytes` plus room for the quanta of the end points.
    //= draft-ietf-ccwg-bbr-06#section-5.6.4.2: QuantizationBudget; three quanta of a millisecond each
    fn with_quanta(&self, w: &Window, bytes: u64) -> u64 {
        let mss = u64::from(w.mss);
        let quantum = (self.pace.0.unwrap_or(0) / 8000).min(QUANTUM).max(2 * mss);
        let bytes = bytes.max(3 * quantum).max(Self::least(w));
        bytes + if self.state == State::Up { 2 * mss } else { 0 }
    }

    /// Whether the window was the limit in this round trip or the last.
    fn is_limited(&self) -> bool {
        self.limited.is_some_and(|round| self.rounds.count <= round + 1)
    }

    /// Saves the window for restoring it.
    fn save_window(&mut self, w: &Window) {
        let keep_largest = self.repair != Repair::None || self.state == State::ProbeRtt;
        self.prior_cwnd = if keep_largest { self.prior_cwnd.max(w.cwnd) } else { w.cwnd };
    }

    fn restore_window(&self, w: &mut Window) {
        w.cwnd = w.cwnd.max(self.prior_cwnd);
    }

    //= draft-ietf-ccwg-bbr-06#section-5.5.5: samples that the application bounds count only where they are larger
    fn update_rate(&mut self, bps: u64, app_limited: bool) {
        if bps >= self.max_rate() || !app_limited {
            self.rates[1] = self.rates[1].max(bps);
        }
    }

    //= draft-ietf-ccwg-bbr-06#section-5.3.1.2: three rounds without a quarter more
    fn update_full(&mut self, bps: u64, app_limited: bool) {
        if self.full.now || !self.rounds.starts || app_limited {
            return;
        }
        if bps >= self.full.rate + self.full.rate / 4 {
            return self.full.reset(bps);
        }
        self.full.rounds += 1;
        self.full.now = self.full.rounds >= FULL_ROUNDS;
        self.full.reached |= self.full.now;
    }

    //= draft-ietf-ccwg-bbr-06#section-5.3.2: until what is in flight fits, or for three rounds
    fn update_drain(&mut self, w: &Window, sample: &Sample) {
        if self.state == State::Startup && self.full.reached {
            self.state = State::Drain;
            self.drain_round = self.rounds.count;
            self.reset_signals();
        }
        if self.state == State::Drain {
            let fits = self.with_quanta(w, self.product(w, self.max_rate(), UNIT));
            let late = self.rounds.count > self.drain_round + DRAIN_ROUNDS;
            if sample.pipe.1 <= fits || late {
                self.start_down(sample.now, sample.total);
            }
        }
    }

    /// Processes the state of loss recovery. Restores the window at the end of recovery.
    fn update_repair(&mut self, w: &mut Window, sample: &Sample) {
        let before = core::mem::replace(&mut self.repair, sample.repair);
        if sample.repair == Repair::Timeout && before != Repair::Timeout {
            self.timed_out(w);
        } else if sample.repair == Repair::None && before != Repair::None {
            self.restore_window(w);
        }
    }

    /// Handles a timeout.
    fn timed_out(&mut self, w: &Window) {
        self.full.reset(0);
        if !self.state.probes() && self.short.flight == NONE {
            self.short.flight = w.cwnd.max(self.prior_cwnd).into();
        }
    }

    /// Gains of pace and window.
    //= draft-ietf-ccwg-bbr-06#section-5.6.1: by state
    fn gains(&self) -> [u64; 2] {
        match self.state {
            State::Startup => [STARTUP_GAIN, WINDOW_GAIN],
            State::Drain => [DRAIN_GAIN, WINDOW_GAIN],
            State::Down => [DOWN_GAIN, WINDOW_GAIN],
            State::Cruise | State::Refill => [UNIT, WINDOW_GAIN],
            State::Up => [UP_GAIN, UP_WINDOW_GAIN],
            State::ProbeRtt => [UNIT, UNIT / 2],
        }
    }

    //= draft-ietf-ccwg-bbr-06#section-5.6.4.6: SetCwnd
    fn update_window(&mut self, w: &mut Window, sample: &Sample, gain: u64) {
        let (mut cwnd, acked) = (u64::from(w.cwnd), u64::from(sample.delivered));
        if acked > 0 {
            let product = self.product(w, self.rate(), gain);
            let target = self.with_quanta(w, product + self.lumps.extra(self.rate()));
            let first = u64::from(w.mss) * u64::from(self.initial_window);
            if self.full.reached {
                cwnd = (cwnd + acked).min(target);
            } else if cwnd < target || sample.total < first {
                cwnd += acked;
            }
            cwnd = cwnd.max(Self::least(w));
        }
        if self.state == State::ProbeRtt {
            cwnd = cwnd.min(self.probe_rtt_window(w));
        }
        cwnd = cwnd.min(self.bound(w)).min(w.largest.max(w.mss).into());
        w.cwnd = cwnd.min(u32::MAX.into()) as u32;
    }
}

impl CongestionControl for Bbr3 {
    fn check(&self, _: &Window) {
        debug_assert!(self.initial_window > 0, "initial window");
        debug_assert!(self.full.rounds <= 3, "rounds without growth: {}", self.full.rounds);
        debug_assert!(!self.full.now || self.full.rounds > 0 || self.full.reached, "a full pipe");
    }

    fn has_model() -> bool {
        true
    }

    fn on_ack(&mut self, _: &mut Window, _: &Acked) {}

    fn sample_use(&self) -> SampleUse {
        SampleUse::SetsWindow
    }

    //= draft-ietf-ccwg-bbr-06#section-5.2.3: the steps of an ACK
    fn on_sample(&mut self, w: &mut Window, sample: &Sample) {
        if sample.pipe.0 + u64::from(w.mss) > u64::from(w.cwnd) {
            self.limited = Some(self.rounds.count);
        }
        if sample.repaired {
            self.tail_was_lost(w, sample);
        }
        self.update_repair(w, sample);
        if self.rounds.update(sample) {
            self.probe.rounds += 1;
        }
        let rate = sample.rate.map(|rate| (rate, rate.rate().map_or(0, Rate::bps)));
        let limited = rate.is_some_and(|(rate, _)| self.is_app_limited(&rate));
        self.latest.update(sample, rate);
        self.update_marks(w, sample);
        if let Some((_, bps)) = rate {
            self.update_rate(bps, limited);
            self.adapt_short(w);
        }
        let window = if self.full.reached { ROUNDS } else { 1 };
        let starts = self.rounds.starts.then_some(window);
        self.lumps.update(sample, starts, self.rate(), (w.cwnd.into(), w.mss.into()));
        if let Some((rate, bps)) = rate {
            self.update_full(bps, limited);
            self.check_startup(w, &rate);
        }
        self.update_drain(w, sample);
        self.update_cycle(w, sample, rate);
        self.update_min_rtt(w, sample);
        let [pacing, window] = self.gains();
        let gains = [pacing, STARTUP_GAIN];
        self.pace.update(w, sample, self.rate(), gains, self.full.reached);
        self.update_window(w, sample, window);
        self.latest.advance(rate);
    }

    fn on_lost(&mut self, w: &Window, lost: &Lost) {
        self.lost_one(w, lost);
    }

    /// Does not change the threshold, and saves the state for restoring it.
    fn ssthresh_after_loss(&mut self, _: Time, w: &Window, loss: Loss) -> u32 {
        self.save_window(w);
        self.undo = Undo { state: None, short: self.short, long: self.long };
        if loss == Loss::Timeout && self.repair != Repair::Timeout {
            self.repair = Repair::Timeout;
            self.timed_out(w);
        }
        w.ssthresh
    }

    /// Does not change the window. The next sample has the number of marked bytes, or counts the echo as a loss.
    fn ssthresh_after_mark(&mut self, _: Time, _: &Window) -> Option<u32> {
        self.marks.echoed = true;
        None
    }

    //= draft-ietf-ccwg-bbr-06#section-5.5.11.2: HandleSpuriousLossDetection
    fn undone(&mut self, w: &mut Window, _: u32) {
        self.restore_window(w);
        self.take_back();
    }

    fn restart(&mut self, now: Time, idle: bool) {
        if idle && self.rtt.min.is_some() {
            self.idle_restart = true;
            self.lumps.restart(now);
            if self.state.cycles() {
                self.pace.cruise(self.rate());
            }
        }
    }

    fn pacing(&self) -> Option<Rate> {
        self.pace.rate()
    }
}

#[cfg(test)]
mod tests;
