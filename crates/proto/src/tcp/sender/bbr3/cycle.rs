//! The cycle of the states that look for bandwidth, and the long-term model that a probe moves.

use crate::tcp::sender::Window;
use crate::tcp::sender::bbr::path::{UNIT, scattered};
use crate::tcp::sender::growth::Sample;
use crate::tcp::sender::rate::RateSample;
use crate::units::{Span, Time};

use super::bounds::{Short, too_much};
use super::{Bbr3, NONE, State};

/// Of what the path bears, so much is left to others.
const HEADROOM_PERCENT: u64 = 15;
/// Rounds after which more is looked for, so that Reno's flows have as long to grow where they need no more.
const MOST_ROUNDS: u64 = 63;
/// The same in time: this, and up to a second more.
const WAIT: Span = Span::secs(2);

/// What the ACKs that come say about a probe.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Acks {
    /// Nothing.
    #[default]
    Init,
    /// It is about to begin.
    Refilling,
    /// It has begun; they are of segments from before.
    Starting,
    /// What came of it.
    Feedback,
    /// It is over; what came of its end.
    Stopping,
}

/// Looking for bandwidth.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Probe {
    pub(super) acks: Acks,
    /// Whether what comes was sent by a probe that has not been answered yet.
    pub(super) samples: bool,
    /// Whether the last one lost too much.
    pub(super) too_high: bool,
    /// Whether the last one ended where the one before had lost too much.
    cautious: bool,
    /// Rounds since the last one, and a little more.
    pub(super) rounds: u64,
    /// When this cycle began, and after how long the next one does at the latest.
    since: Time,
    wait: Span,
    /// Bytes acknowledged since the long-term bound was raised, how many raise it by a segment, and in how many rounds.
    up_acked: u64,
    up_each: u64,
    up_rounds: u32,
}

impl Bbr3 {
    /// Begins a cycle: slower than the path.
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

    /// The path is filled before more is looked for, which then begins with `1 << up` segments a round.
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

    /// The bound is raised twice as fast each round.
    fn raise_slope(&mut self, w: &Window) {
        let p = &mut self.probe;
        p.up_each = (u64::from(w.cwnd) >> p.up_rounds).max(w.mss.into());
        p.up_rounds = (p.up_rounds + 1).min(30);
    }

    /// An ACK in the cycle.
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

    /// Takes in what a probe has shown. Whether that has begun another phase.
    //= draft-ietf-ccwg-bbr-06#section-5.3.3.9: AdaptLongTermModel
    fn adapt_long(&mut self, w: &Window, sample: &Sample, rate: &RateSample) -> bool {
        let round = self.rounds.starts;
        if self.probe.acks == Acks::Starting && round {
            self.probe.acks = Acks::Feedback;
        }
        if self.probe.acks == Acks::Stopping && round {
            (self.probe.samples, self.probe.acks) = (false, Acks::Init);
            if self.state.cycles() && !self.is_app_limited(rate) && self.rates[1] > 0 {
                // This is the best time to forget the cycle before.
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

    /// A probe ends by a plateau, or where the last one was found to be too high.
    //= draft-ietf-ccwg-bbr-06#section-5.3.3.7
    fn update_up(&mut self, w: &Window, sample: &Sample, bps: u64) {
        let there = sample.pipe.0 + u64::from(w.mss) > self.long;
        let cautious = self.probe.too_high && there;
        self.probe.cautious |= cautious;
        if !cautious && self.is_limited() && u64::from(w.cwnd) >= self.long {
            // The bound keeps the rate down, not the path.
            self.full.reset(bps);
        }
        if cautious || self.full.now {
            self.probe.too_high = false;
            self.start_down(sample.now, sample.total);
        }
    }

    /// What the path bears, less what is left to others.
    pub(super) fn with_headroom(&self, w: &Window) -> u64 {
        if self.long == NONE {
            return NONE;
        }
        let headroom = (self.long * HEADROOM_PERCENT / 100).max(w.mss.into());
        self.long.saturating_sub(headroom).max(Self::least(w))
    }

    /// The most that the models allow in flight.
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

    /// What the path bears rises only while the window reaches it: by a segment for so many that arrive.
    #[test]
    fn the_bound_rises_only_while_it_holds_the_window_back() {
        for (cwnd, long) in [(49_999, 50_000), (50_000, 51_000), (60_000, 51_000)] {
            let mut path = Path::new();
            (path.bbr.long, path.w.cwnd, path.bbr.limited) =
                (50_000, cwnd, Some(path.bbr.rounds.count));
            (path.bbr.probe.up_each, path.bbr.probe.up_acked) = (4000, 3000);
            path.bbr.raise_long(&path.w, 1000);
            assert_eq!(path.bbr.long, long, "{cwnd}");
            path.bbr.limited = None;
            path.bbr.raise_long(&path.w, 9000);
            assert_eq!(path.bbr.long, long, "nobody used the window");
        }
    }
}
