//! BBR, version 1 (draft-cardwell-iccrg-bbr-congestion-control-00, and Linux' `tcp_bbr.c` where the two differ): the
//! sender models the path by the maximum delivery rate and the shortest round trip. It sends at this rate, with the
//! product of the two in flight. A loss is no sign of congestion.
//! If losses show a policer, it sends at the policer's rate, as Linux does.

use crate::tcp::config::{Congestion, RtoRule, TcpConfig};
use crate::tcp::keyword::{Deployment, Keyword, Linux};
use crate::units::{Rate, Span, Time};

use super::rack;
use crate::tcp::sender::Window;
use crate::tcp::sender::congestion_control::maxima::Maximum;
use crate::tcp::sender::congestion_control::{
    Acked, CongestionControl, Loss, Lost, Repair, Sample, SampleUse,
};

pub(in crate::tcp::sender) mod aggregation;
pub(in crate::tcp::sender) mod path;
mod policed;

use path::{Pace, Rounds, UNIT, product, scattered};
use policed::{Evidence, Policed};

/// The keyword.
pub const WORD: Keyword = Keyword {
    key: "bbr",
    apply: |c| {
        rack::apply(c);
        c.congestion = Congestion::Bbr;
        c.rto_rule = RtoRule::Linux;
        c.pacing = true;
        c.burst = 2;
    },
    summary: "RACK, paced at the path's measured rate; the window follows this rate and the round trip, not losses",
    source: "draft-cardwell-iccrg-bbr-congestion-control-00 (version 1), with RFC 8985",
    tier: 0,
    worlds: crate::describe::SIM,
    syntax: "host: tcp = \"*\"",
    deployment: Deployment::Current,
    linux: Some(Linux::control("bbr")),
};

/// 2/ln 2: the path fills as fast as in slow start.
const HIGH_GAIN: u64 = UNIT * 2885 / 1000 + 1;
const DRAIN_GAIN: u64 = UNIT * 1000 / 2885;
/// Pacing gains of a cycle: probe for bandwidth, drain the resulting queue, cruise.
const CYCLE: [u64; 8] = [UNIT * 5 / 4, UNIT * 3 / 4, UNIT, UNIT, UNIT, UNIT, UNIT, UNIT];
/// Number of round trips in the window of the maximum rate.
const RATE_ROUNDS: u64 = 10;
/// Lifetime of the shortest round trip.
const RTT_MEMORY: Span = Span::secs(10);
/// Time for which the path is drained to measure a new round trip.
const PROBE_RTT_TIME: Span = Span::millis(200);
/// Minimum window in segments.
const LEAST: u64 = 4;
/// Rate in bits per second below which segments are sent one by one.
const SLOW: u64 = 1_200_000;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mode {
    /// Until the delivery rate no longer grows.
    Startup,
    /// Until the queue of startup is drained.
    Drain,
    /// Alternates between faster, slower, and the rate of the path.
    ProbeBw,
    /// A minimum window, to measure the round trip without a queue.
    ProbeRtt,
}

/// BBR's model and state.
#[derive(Clone, Debug)]
pub struct Bbr {
    mode: Mode,
    /// Bits per second.
    rate: Maximum,
    rounds: Rounds,
    min_rtt: Option<Span>,
    min_rtt_at: Time,
    /// Maximum rate at its last growth by a quarter, and the number of rounds since.
    full: (u64, u32),
    filled: bool,
    phase: usize,
    phase_at: Time,
    probe_rtt_until: Option<Time>,
    probe_rtt_round: bool,
    /// Number of delivered bytes. Samples of segments sent before it are ignored, since the path was being drained.
    drained_until: u64,
    prior_cwnd: u32,
    repair: Repair,
    conserves: bool,
    idle_restart: bool,
    initial_window: u32,
    pace: Pace,
    lumps: aggregation::Aggregation,
    policed: Policed,
    /// Bytes lost since the start of the connection.
    lost: u64,
    /// Time of the last delivery, and total delivered bytes.
    delivered: (Time, u64),
}

impl Bbr {
    /// A model without samples.
    pub fn new(config: &TcpConfig) -> Bbr {
        Bbr {
            mode: Mode::Startup,
            rate: Maximum::new(RATE_ROUNDS),
            rounds: Rounds::default(),
            min_rtt: None,
            min_rtt_at: Time::ZERO,
            full: (0, 0),
            filled: false,
            phase: 0,
            phase_at: Time::ZERO,
            probe_rtt_until: None,
            probe_rtt_round: false,
            drained_until: 0,
            prior_cwnd: 0,
            repair: Repair::None,
            conserves: false,
            idle_restart: false,
            initial_window: config.initial_window,
            pace: Pace::default(),
            lumps: aggregation::Aggregation::default(),
            policed: Policed::default(),
            lost: 0,
            delivered: (Time::ZERO, 0),
        }
    }

    fn gains(&self) -> (u64, u64) {
        match self.mode {
            Mode::Startup => (HIGH_GAIN, HIGH_GAIN),
            Mode::Drain => (DRAIN_GAIN, HIGH_GAIN),
            Mode::ProbeBw if self.policed.rate().is_some() => (UNIT, 2 * UNIT),
            Mode::ProbeBw => (CYCLE[self.phase], 2 * UNIT),
            Mode::ProbeRtt => (UNIT, UNIT),
        }
    }

    /// The sending rate in bits per second: the maximum one, or a policer's.
    fn rate(&self) -> u64 {
        self.policed.rate().unwrap_or_else(|| self.rate.get())
    }

    /// The target for the bytes in flight: the product of the rate `bps`, the round trip and `gain`, plus `extra` bytes
    /// and an allowance for bursts and delayed ACKs.
    fn target(&self, w: &Window, bps: u64, gain: u64, extra: u64) -> u64 {
        let mss = u64::from(w.mss.max(1));
        let Some(min_rtt) = self.min_rtt else { return mss * u64::from(self.initial_window) };
        let bytes = product(bps, min_rtt, gain);
        // Three bursts of about a millisecond, rounded up to an even number for delayed ACKs.
        let pace = self.pace.0.unwrap_or(0);
        let burst = (pace / 8 / 1024 / mss).clamp(if pace < SLOW { 1 } else { 2 }, 127);
        let mut segments = ((bytes + extra).div_ceil(mss) + 3 * burst).next_multiple_of(2);
        if self.mode == Mode::ProbeBw && self.phase == 0 {
            segments += 2;
        }
        segments * mss
    }

    //= draft-cardwell-iccrg-bbr-congestion-control-00#section-4.1.1: BtlBw and the count of round trips
    fn update_rate(&mut self, sample: &Sample) {
        if self.rounds.update(sample) {
            self.conserves = false;
        }
        let Some(rate) = sample.rate else { return };
        self.watch_policer(sample.lost > 0, rate.app_limited, sample.now);
        let bps = rate.rate().map_or(0, Rate::bps);
        let limited = rate.app_limited || rate.prior < self.drained_until;
        if !limited || bps >= self.rate.get() {
            self.rate.add(self.rounds.count, bps);
        }
        if self.filled || !self.rounds.starts || limited {
            return;
        }
        //= draft-cardwell-iccrg-bbr-congestion-control-00#section-4.3.2.2: three rounds without a quarter more
        if self.rate.get() >= self.full.0 + self.full.0 / 4 && self.rate.get() > 0 {
            self.full = (self.rate.get(), 0);
        } else {
            self.full.1 += 1;
            self.filled = self.full.1 >= 3;
        }
    }

    fn watch_policer(&mut self, losses: bool, app_limited: bool, now: Time) {
        let (at, delivered) = self.delivered;
        let probes = self.mode == Mode::ProbeBw;
        let (lost, starts) = (self.lost, self.rounds.starts);
        let seen = Evidence { at, delivered, lost, losses, starts, app_limited, probes };
        if self.policed.update(&seen) {
            self.probe_bw(now);
        }
    }

    //= draft-cardwell-iccrg-bbr-congestion-control-00#section-4.3.4.3: when a phase of the cycle is over
    fn update_phase(&mut self, w: &Window, sample: &Sample) {
        if self.mode != Mode::ProbeBw {
            return;
        }
        let whole = sample.now.since(self.phase_at) > self.min_rtt.unwrap_or_default();
        let (gain, _) = self.gains();
        let over = if gain > UNIT {
            whole && (sample.lost > 0 || sample.pipe.0 >= self.target(w, self.rate.get(), gain, 0))
        } else {
            whole || (gain < UNIT && sample.pipe.0 <= self.target(w, self.rate.get(), UNIT, 0))
        };
        if over {
            self.next_phase(sample.now);
        }
    }

    fn next_phase(&mut self, now: Time) {
        self.phase = (self.phase + 1) % CYCLE.len();
        self.phase_at = now;
    }

    fn probe_bw(&mut self, now: Time) {
        self.mode = Mode::ProbeBw;
        // The draft selects the phase at random. It excludes the phase that drains a queue, since there is no queue.
        self.phase = CYCLE.len() - 1 - (scattered(now) % 7) as usize;
        self.next_phase(now);
    }

    fn reset_mode(&mut self, now: Time) {
        if self.filled {
            self.probe_bw(now);
        } else {
            self.mode = Mode::Startup;
        }
    }

    fn update_min_rtt(&mut self, w: &mut Window, sample: &Sample) {
        let now = sample.now;
        let expired = now.since(self.min_rtt_at) > RTT_MEMORY && self.min_rtt.is_some();
        if let Some(rtt) = sample.rtt
            && (expired || self.min_rtt.is_none_or(|min| rtt < min))
        {
            (self.min_rtt, self.min_rtt_at) = (Some(rtt), now);
        }
        if expired && !self.idle_restart && self.mode != Mode::ProbeRtt {
            self.mode = Mode::ProbeRtt;
            self.save_window(w);
            self.probe_rtt_until = None;
        }
        if self.mode == Mode::ProbeRtt {
            self.drained_until = sample.total + sample.pipe.1;
            match self.probe_rtt_until {
                None if sample.pipe.1 <= LEAST * u64::from(w.mss) => {
                    self.probe_rtt_until = Some(now + PROBE_RTT_TIME);
                    self.probe_rtt_round = false;
                    self.rounds.restart(sample.total);
                }
                None => {}
                Some(until) => {
                    self.probe_rtt_round |= self.rounds.starts;
                    if self.probe_rtt_round {
                        self.end_probe_rtt(now, w, until);
                    }
                }
            }
        }
        if sample.delivered > 0 {
            self.idle_restart = false;
        }
    }

    fn end_probe_rtt(&mut self, now: Time, w: &mut Window, until: Time) {
        if now > until {
            self.min_rtt_at = now;
            w.cwnd = w.cwnd.max(self.prior_cwnd);
            self.reset_mode(now);
        }
    }

    fn save_window(&mut self, w: &Window) {
        self.prior_cwnd = if self.repair == Repair::None && self.mode != Mode::ProbeRtt {
            w.cwnd
        } else {
            self.prior_cwnd.max(w.cwnd)
        };
    }

    //= draft-cardwell-iccrg-bbr-congestion-control-00#section-4.2.3.4: packet conservation for a round trip
    fn conserve(&mut self, w: &mut Window, sample: &Sample) -> bool {
        let acked = u64::from(sample.delivered);
        let mut cwnd = u64::from(w.cwnd);
        if sample.lost > 0 {
            cwnd = cwnd.saturating_sub(sample.lost.into()).max(w.mss.into());
        }
        let before = core::mem::replace(&mut self.repair, sample.repair);
        if sample.repair == Repair::Recovery && before != Repair::Recovery {
            self.conserves = true;
            self.rounds.restart(sample.total);
            cwnd = sample.pipe.1 + acked.max(w.mss.into());
        } else if before != Repair::None && sample.repair == Repair::None {
            cwnd = cwnd.max(self.prior_cwnd.into());
            self.conserves = false;
        }
        if self.conserves {
            cwnd = cwnd.max(sample.pipe.1 + acked);
        }
        w.cwnd = cwnd.min(u32::MAX.into()) as u32;
        self.conserves
    }

    fn update_window(&mut self, w: &mut Window, sample: &Sample, gain: u64) {
        let mss = u64::from(w.mss);
        // Losses that a timer detects do not change the window before the next ACK, as in Linux (`bbr_set_cwnd`).
        if sample.delivered > 0 && !self.conserve(w, sample) {
            let extra = if self.filled { self.lumps.extra(self.rate()) } else { 0 };
            let target = self.target(w, self.rate(), gain, extra);
            let cwnd = u64::from(w.cwnd);
            let acked = u64::from(sample.delivered);
            let cwnd = if self.filled {
                (cwnd + acked).min(target)
            } else if cwnd < target || sample.total < mss * u64::from(self.initial_window) {
                cwnd + acked
            } else {
                cwnd
            };
            w.cwnd = cwnd.max(LEAST * mss).min(u32::MAX.into()) as u32;
        }
        if self.mode == Mode::ProbeRtt {
            w.cwnd = u64::from(w.cwnd).min(LEAST * mss) as u32;
        }
        w.cwnd = w.cwnd.min(w.largest.max(w.mss));
    }
}

impl CongestionControl for Bbr {
    fn check(&self, _: &Window) {
        debug_assert!(self.phase < CYCLE.len(), "phase of the cycle: {}", self.phase);
        debug_assert!(self.initial_window > 0, "initial window");
        debug_assert!(self.full.1 <= 3 || self.filled, "rounds without growth: {}", self.full.1);
    }

    fn has_model() -> bool {
        true
    }

    /// The handshake gives the first round trip, without a queue of this flow (Linux, `bbr_init`).
    fn opened(&mut self, now: Time, w: &Window, rtt: Span) {
        (self.min_rtt, self.min_rtt_at) = (Some(rtt), now);
        self.pace.begin(w, rtt, HIGH_GAIN);
    }

    fn on_ack(&mut self, _: &mut Window, _: &Acked) {}

    fn sample_use(&self) -> SampleUse {
        SampleUse::SetsWindow
    }

    fn on_sample(&mut self, w: &mut Window, sample: &Sample) {
        if sample.delivered > 0 {
            self.delivered = (sample.now, sample.total);
        }
        self.update_rate(sample);
        let limits = (w.cwnd.into(), w.mss.into());
        let window = self.rounds.starts.then_some(aggregation::ROUNDS);
        self.lumps.update(sample, window, self.rate(), limits);
        self.update_phase(w, sample);
        if self.mode == Mode::Startup && self.filled {
            self.mode = Mode::Drain;
        }
        if self.mode == Mode::Drain && sample.pipe.1 <= self.target(w, self.rate.get(), UNIT, 0) {
            self.probe_bw(sample.now);
        }
        self.update_min_rtt(w, sample);
        let (pacing_gain, window_gain) = self.gains();
        let gains = [pacing_gain, HIGH_GAIN];
        self.pace.update(w, sample, self.rate(), gains, self.filled);
        self.update_window(w, sample, window_gain);
    }

    fn on_lost(&mut self, _: &Window, lost: &Lost) {
        self.lost += lost.bytes;
    }

    /// Does not change the threshold, and saves the window for restoring it.
    fn ssthresh_after_loss(&mut self, now: Time, w: &Window, loss: Loss) -> u32 {
        self.save_window(w);
        if loss == Loss::Timeout {
            self.repair = Repair::Timeout;
            self.full = (0, 0);
            self.conserves = false;
            // A timeout counts as the end of a round trip (`bbr_set_state`).
            self.rounds.starts = true;
            self.watch_policer(true, false, now);
        }
        w.ssthresh
    }

    /// The next sample restores the window. The check for a full path restarts.
    fn undone(&mut self, _: &mut Window, _: u32) {
        self.full = (0, 0);
        self.policed.reset();
    }

    fn restart(&mut self, now: Time, idle: bool) {
        if idle && self.min_rtt.is_some() {
            self.idle_restart = true;
            self.lumps.restart(now);
            if self.mode == Mode::ProbeBw {
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
