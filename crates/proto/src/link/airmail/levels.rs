//! The code over the bytes of a frame, and its adaptive strength.
//!
//! The base station chooses the code for both directions with the least airtime per delivered byte: a
//! stronger code has more check bytes and loses fewer frames. It knows the losses of the present code.
//! Occasionally it tries a neighbouring strength for one round: a stronger one if frames are lost, else a
//! weaker one. After an unsuccessful trial it doubles the time to the next one. So bursts, which no code
//! corrects, cost hardly more than without a code, and scattered errors are corrected.

use serde::Serialize;

use crate::link::fec::Code;

/// Strength of the code over the bytes of a frame.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Strength {
    /// No code.
    #[default]
    None,
    /// 16 check bytes in a block of 255, which correct 8 wrong bytes.
    Light,
    /// 32 check bytes.
    Medium,
    /// 64 check bytes.
    Strong,
}

impl Strength {
    /// All strengths, weakest first.
    pub const ALL: [Strength; 4] =
        [Strength::None, Strength::Light, Strength::Medium, Strength::Strong];

    fn check_bytes(self) -> u8 {
        [0, 16, 32, 64][self as usize]
    }

    /// The code, interleaved over the frame.
    pub fn code(self) -> Option<Code> {
        let checks = self.check_bytes();
        let code = Code::reed_solomon(255, 255 - checks).ok().filter(|_| checks > 0);
        code.map(Code::interleaved)
    }

    /// Bytes on the air per byte of a long frame.
    fn expansion(self) -> f64 {
        255.0 / f64::from(255 - self.check_bytes())
    }
}

/// Frames per round.
const ROUND: u32 = 64;
/// Rounds until the first trial, and the limit of this number.
const PATIENCE: (u32, u32) = (2, 64);
/// Share of lost frames below which no stronger code is tried.
const FEW: f64 = 0.02;
/// Relative cost below which a tried code replaces the present one.
const BETTER: f64 = 0.95;

/// Chooses the code for one direction and one mobile host.
#[derive(Clone, Debug)]
pub struct Levels {
    fixed: Option<Strength>,
    /// Share of lost frames by strength, if it was used.
    losses: [Option<f64>; 4],
    /// Sent and lost frames of the present round.
    so_far: (u32, u32),
    current: Strength,
    /// Strength of the present trial.
    trial: Option<Strength>,
    patience: u32,
    /// Rounds since the last trial.
    rounds: u32,
}

impl Levels {
    /// Starts without a code, unless one is `fixed`.
    pub fn new(fixed: Option<Strength>) -> Levels {
        Levels {
            fixed,
            losses: [None; 4],
            so_far: (0, 0),
            current: Strength::None,
            trial: None,
            patience: PATIENCE.0,
            rounds: 0,
        }
    }

    /// The strength to use now.
    pub fn strength(&self) -> Strength {
        self.fixed.or(self.trial).unwrap_or(self.current)
    }

    fn cost(&self, strength: Strength) -> Option<f64> {
        let arrives = (1.0 - self.losses[strength as usize]?).max(1e-3);
        Some(strength.expansion() / arrives)
    }

    /// Records that `lost` of `sent` frames with the present code were lost.
    pub fn learn(&mut self, sent: u32, lost: u32) {
        self.so_far.0 += sent;
        self.so_far.1 += lost.min(sent);
        let (sent, lost) = self.so_far;
        if self.fixed.is_some() || sent < ROUND {
            return;
        }
        self.so_far = (0, 0);
        let share = f64::from(lost) / f64::from(sent);
        let estimate = &mut self.losses[self.strength() as usize];
        *estimate = Some(estimate.map_or(share, |old| (old + share) / 2.0));
        if self.trial.take().is_some() {
            self.decide();
        } else {
            self.consider();
        }
    }

    /// Ends a trial: uses its code if that is better.
    fn decide(&mut self) {
        let costs = Strength::ALL.iter().filter_map(|s| Some((*s, self.cost(*s)?)));
        let best = costs.reduce(|best, other| if other.1 < best.1 { other } else { best });
        let (Some((best, cost)), Some(now)) = (best, self.cost(self.current)) else { return };
        let best = if cost < now * BETTER { best } else { self.current };
        self.patience = match best == self.current {
            true => (self.patience * 2).min(PATIENCE.1),
            false => PATIENCE.0,
        };
        self.current = best;
    }

    /// Decides whether to start a trial.
    fn consider(&mut self) {
        self.rounds += 1;
        let i = self.current as usize;
        let many = self.losses[i].is_some_and(|loss| loss >= FEW);
        let neighbour = match many {
            true => Strength::ALL.get(i + 1),
            false => i.checked_sub(1).map(|i| &Strength::ALL[i]),
        };
        if self.rounds >= self.patience
            && let Some(strength) = neighbour
        {
            self.rounds = 0;
            self.trial = Some(*strength);
            // Its old measurement has little weight compared with the trial.
            self.losses[*strength as usize] = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The strength after each of `rounds` rounds of 32 frames with the share `loss` of lost frames, by
    /// strength.
    fn run(loss: [f64; 4], rounds: usize) -> Vec<Strength> {
        let mut levels = Levels::new(None);
        let used = (0..rounds).map(|_| {
            let used = levels.strength();
            levels.learn(32, (32.0 * loss[used as usize]) as u32);
            used
        });
        used.collect()
    }

    #[test]
    fn scattered_errors_get_the_weakest_sufficient_code() {
        let used = run([0.9, 0.5, 0.0, 0.0], 200);
        let late = &used[100..];
        assert!(late.iter().filter(|s| **s == Strength::Medium).count() > 90, "{late:?}");
    }

    #[test]
    fn where_no_code_helps_none_is_used() {
        let used = run([0.3; 4], 200);
        let plain = used.iter().filter(|s| **s == Strength::None).count();
        assert!(plain > 185, "{plain}");
    }

    #[test]
    fn a_clean_channel_uses_no_code() {
        assert_eq!(run([0.0; 4], 200), vec![Strength::None; 200]);
    }

    #[test]
    fn a_code_is_dropped_when_no_longer_needed() {
        let mut levels = Levels::new(None);
        for round in 0..400 {
            let bad = round < 200 && levels.strength() == Strength::None;
            levels.learn(32, if bad { 16 } else { 0 });
        }
        assert_eq!(levels.strength(), Strength::None);
    }

    #[test]
    fn a_fixed_code_strength_does_not_adapt() {
        let mut levels = Levels::new(Some(Strength::Strong));
        levels.learn(32, 0);
        assert_eq!(levels.strength(), Strength::Strong);
    }
}
