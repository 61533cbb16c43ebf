//! States of a channel as a function of time alone.
//!
//! Transmissions do not influence the draws. So both directions of a radio can have the same fades, and an
//! observer can wait for a change that no frame has encountered yet. Draws restart in each epoch of a fixed
//! number of mean cycles, which bounds the work after a long silence. The state at the start of an epoch is
//! drawn from the stationary distribution; the remainder of an exponential time is exponential again.

use crate::rng::Stream;
use crate::units::{Span, Time};

/// Mean cycles per epoch.
const EPOCH: u64 = 1024;

/// Good and bad periods.
#[derive(Clone, Debug)]
pub(super) struct States {
    /// Mean time in the bad (index 0) and in the good state (index 1), both above zero.
    means: [Span; 2],
    deterministic: bool,
    /// Identifies the streams of the epochs.
    base: u64,
    stream: Stream,
    epoch: u64,
    /// End of the present draw; the next draw may have the same state, at the border of two epochs.
    drawn_to: Time,
    good: bool,
    /// End of the present state.
    until: Time,
}

impl States {
    /// Asserts that the present state ends after it began.
    pub fn check(&self) {
        debug_assert!(self.means.iter().all(|mean| *mean > Span::ZERO), "mean times of states");
        debug_assert!(
            self.deterministic || self.until <= self.epoch_end().max(self.drawn_to),
            "the state lasts beyond its epoch"
        );
    }

    /// States that begin good at time zero; `None` if a mean time is zero, so that the state never changes.
    pub(super) fn new(
        [good, bad]: [Span; 2],
        deterministic: bool,
        mut stream: Stream,
    ) -> Option<States> {
        if good == Span::ZERO || bad == Span::ZERO {
            return None;
        }
        let base = stream.next_u64();
        let mut states = States {
            means: [bad, good],
            deterministic,
            base,
            stream: epoch_stream(base, 0),
            epoch: 0,
            drawn_to: Time::ZERO,
            good: true,
            until: Time::ZERO,
        };
        states.drawn_to = Time::ZERO + states.sojourn(true);
        states.settle();
        Some(states)
    }

    fn cycle(&self) -> Span {
        self.means[0] + self.means[1]
    }

    fn epoch_len(&self) -> Span {
        self.cycle() * EPOCH
    }

    fn sojourn(&mut self, good: bool) -> Span {
        let mean = self.means[usize::from(good)];
        if self.deterministic {
            return mean;
        }
        Span((libm::round(self.stream.exponential(mean.0 as f64)) as u64).max(1))
    }

    /// End of the epoch; saturates at the end of time.
    fn epoch_end(&self) -> Time {
        Time::ZERO + self.epoch_len() * (self.epoch + 1)
    }

    /// Starts epoch `number`. Returns its initial state.
    fn enter(&mut self, number: u64) -> bool {
        self.epoch = number;
        self.stream = epoch_stream(self.base, number);
        let good = self.means[1].0 as f64 / self.cycle().0 as f64;
        let good = self.stream.chance(good);
        let start = Time::ZERO + self.epoch_len() * number;
        self.drawn_to = start + self.sojourn(good);
        good
    }

    /// Finds the end of the present state from the present draw; a draw ends with its epoch.
    fn settle(&mut self) {
        while !self.deterministic && self.drawn_to >= self.epoch_end() {
            let seam = self.epoch_end();
            if seam == Time::NEVER {
                self.until = Time::NEVER;
                return;
            }
            let was = (self.epoch, self.drawn_to, self.stream.clone());
            if self.enter(self.epoch + 1) != self.good {
                // The change is at the border of the epochs, and happens at its time.
                (self.epoch, self.drawn_to, self.stream) = was;
                self.until = seam;
                return;
            }
        }
        self.until = self.drawn_to;
    }

    /// The state as of the last call.
    pub(super) fn is_good(&self) -> bool {
        self.good
    }

    /// Time of the next change.
    pub(super) fn until(&self) -> Time {
        self.until
    }

    /// Makes the next change.
    pub(super) fn turn(&mut self) {
        if self.until == Time::NEVER {
            return;
        }
        self.good = !self.good;
        if !self.deterministic && self.until == self.epoch_end() {
            let next = self.epoch + 1;
            self.enter(next);
        } else {
            let from = self.until;
            self.drawn_to = from + self.sojourn(self.good);
        }
        self.settle();
    }

    /// Updates the state to `now`.
    pub(super) fn advance(&mut self, now: Time) {
        // `Time::NEVER` cannot be reached.
        let now = now.min(Time(Time::NEVER.0 - 1));
        if self.until > now {
            return;
        }
        if self.deterministic {
            // Whole cycles change nothing.
            let cycle = self.cycle();
            self.until += cycle * (now.since(self.until).0 / cycle.0);
            self.drawn_to = self.until;
        } else {
            let number = now.0 / self.epoch_len().0.max(1);
            if number > self.epoch {
                self.good = self.enter(number);
                self.settle();
            }
        }
        while self.until <= now {
            self.turn();
        }
        debug_assert!(self.until > now, "the present state is over");
        self.check();
    }

    /// Stationary share of the good state.
    pub(super) fn share_good(&self) -> f64 {
        self.means[1].0 as f64 / self.cycle().0 as f64
    }

    /// Whether `duration` is so long that states are averaged over it instead of iterated.
    pub(super) fn is_long(&self, duration: Span) -> bool {
        duration > self.epoch_len()
    }
}

fn epoch_stream(base: u64, epoch: u64) -> Stream {
    Stream::new(base ^ epoch.wrapping_mul(0x9e37_79b9_7f4a_7c15), "states")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn states(good: u64, bad: u64, deterministic: bool, seed: u64) -> States {
        let means = [Span(good), Span(bad)];
        States::new(means, deterministic, Stream::new(seed, "radio.states")).unwrap()
    }

    proptest! {
        /// The purpose: rare queries see the same states as an observer of every change.
        #[test]
        fn states_depend_on_the_time_alone(
            good in 100u64..5000,
            bad in 100u64..5000,
            deterministic in any::<bool>(),
            seed in any::<u64>(),
            steps in prop::collection::vec(prop_oneof![0u64..20_000, 0u64..600_000], 1..20),
        ) {
            let mut lazy = states(good, bad, deterministic, seed);
            let mut eager = lazy.clone();
            let mut now = Time::ZERO;
            for step in steps {
                now += Span(step);
                lazy.advance(now);
                while eager.until() <= now {
                    eager.turn();
                }
                prop_assert_eq!(lazy.is_good(), eager.is_good());
                prop_assert_eq!(lazy.until(), eager.until());
                prop_assert!(lazy.until() > now);
            }
        }
    }

    #[test]
    fn periods_have_their_means() {
        let mut states = states(10_000, 4_000, false, 3);
        let (mut sums, mut last) = ([0u64; 2], Time::ZERO);
        let turns = 400_000;
        for _ in 0..turns {
            sums[usize::from(states.is_good())] += states.until().since(last).0;
            last = states.until();
            states.turn();
        }
        // Exponential times: the standard error of a mean over 200,000 is 0.22 %. One border per 1024 cycles
        // adds 0.04 %.
        let mean = |i: usize| sums[i] as f64 / f64::from(turns / 2);
        assert!((mean(1) / 10_000.0 - 1.0).abs() < 0.01, "{}", mean(1));
        assert!((mean(0) / 4_000.0 - 1.0).abs() < 0.01, "{}", mean(0));
    }

    #[test]
    fn the_end_of_time_is_reached_without_walking() {
        for deterministic in [false, true] {
            let mut states = states(3, 1, deterministic, 1);
            states.advance(Time::NEVER);
            assert!(states.until() >= Time(Time::NEVER.0 - 1));
        }
        let mut slow = states(u64::MAX / 2, u64::MAX / 2, false, 1);
        slow.advance(Time::NEVER);
        slow.turn();
    }
}
