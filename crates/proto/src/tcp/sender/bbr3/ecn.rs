//! Marks of congestion. The draft has no answer of its own to them (section 3.7), beyond that a sender must have one. Where
//! the peer counts marks (accurate ECN), this is that of Google's Linux module (branch v3), which is DCTCP's: the
//! short-term bound on what is in flight comes down by a third of the smoothed share of marked bytes, and more than
//! half of a round marked is as bad as too much loss. The module does so only where round trips are below 5 ms and the
//! route says that marks come early; here always. An echo of RFC 3168 does not say how much is marked, and counts as a loss.

use crate::tcp::sender::Window;
use crate::tcp::sender::bbr::path::UNIT;
use crate::tcp::sender::growth::{Repair, Sample};

use super::{Bbr3, NONE, State};

/// What a round adds to the smoothed share.
const GAIN: u64 = 16;
/// Of the share, what is taken off.
const FACTOR: u64 = 3;
/// Rounds in a row with too many marks that end startup.
const STARTUP_ROUNDS: u32 = 2;

/// What is known of marks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Marks {
    /// The smoothed share of marked bytes, in 1/UNIT. All of them at first, so that a full queue is answered at once.
    pub(super) alpha: u64,
    /// Bytes of this round: delivered, and marked.
    bytes: (u64, u64),
    /// The share of the last round, in 1/UNIT.
    share: u64,
    /// Rounds in a row with too many.
    high: u32,
    /// Whether there were any since the short-term model was last adapted, and in this cycle.
    pub(super) in_round: bool,
    pub(super) in_cycle: bool,
    /// An echo has come; the peer has counted marks before.
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
    /// An ACK has come; `starts` says whether a round begins with it. Whether the round before was measured.
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

    /// What is left of a bound.
    pub(super) fn cut(&self, bytes: u64) -> u64 {
        (u128::from(bytes) * u128::from(UNIT - self.alpha / FACTOR) / u128::from(UNIT)) as u64
    }
}

impl Bbr3 {
    /// Takes in what an ACK says of marks.
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

    /// Whether marks, and nothing worse, have kept the rate down, and have ceased: then more is looked for at once. In how
    /// many doublings of a segment that comes to half of what the path is known to bear.
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
