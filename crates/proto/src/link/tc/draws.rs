//! Random decisions of netem, in the kernel's 32-bit arithmetic.
//!
//! A correlated number is `(1 - c)` of a new one and `c` of the last one, so it is no longer uniform: a loss
//! of 1% with a correlation of 25% is less than 1%. A deviation uses the remainder of such a number, which
//! removes the correlation, like the kernel.

use crate::channel::GilbertElliott;
use crate::link::varied::{Distribution, Loss};
use crate::rng::Stream;
use crate::units::{Probability, Span};

use super::netem::FourStates;

/// Units of a table per jitter.
const SCALE: i64 = 8192;

/// A probability in iproute2's encoding for the kernel.
fn scaled(p: Probability) -> u32 {
    libm::rint(p.get() * f64::from(u32::MAX)) as u32
}

fn draw(rng: &mut Stream) -> u32 {
    (rng.next_u64() >> 32) as u32
}

/// 32-bit numbers, each correlated with its predecessor.
#[derive(Clone, Debug)]
pub(super) struct Correlated {
    rho: u32,
    last: u32,
    rng: Stream,
}

impl Correlated {
    pub fn new(correlation: Probability, mut rng: Stream) -> Correlated {
        Correlated { rho: scaled(correlation), last: draw(&mut rng), rng }
    }

    pub fn next(&mut self) -> u32 {
        let new = draw(&mut self.rng);
        if self.rho == 0 {
            return new;
        }
        let rho = u64::from(self.rho) + 1;
        // The sum of both products is less than 2^64, since their weights add up to 2^32.
        let sum = u64::from(new) * ((1 << 32) - rho) + u64::from(self.last) * rho;
        self.last = (sum >> 32) as u32;
        self.last
    }

    pub fn happens(&mut self, p: u32) -> bool {
        p != 0 && p >= self.next()
    }
}

/// An event of constant probability.
#[derive(Clone, Debug)]
pub(super) struct Event {
    p: u32,
    draws: Correlated,
}

impl Event {
    pub fn new(p: Probability, correlation: Probability, rng: Stream) -> Event {
        Event { p: scaled(p), draws: Correlated::new(correlation, rng) }
    }

    /// Whether it is possible.
    pub fn is_possible(&self) -> bool {
        self.p != 0
    }

    /// Whether it happens now.
    pub fn happens(&mut self) -> bool {
        self.draws.happens(self.p)
    }
}

/// The loss model.
#[derive(Clone, Debug)]
pub(super) enum Losses {
    None,
    Random(Event),
    TwoStates { p: u32, r: u32, h: u32, lost_in_good: u32, good: bool, rng: Stream },
    FourStates { p13: u32, p31: u32, p32: u32, p23: u32, p14: u32, state: u8, rng: Stream },
}

impl Losses {
    pub fn new(
        loss: Option<&Loss>,
        states: Option<&FourStates>,
        correlation: Probability,
        rng: Stream,
    ) -> Losses {
        match (states, loss) {
            (Some(s), _) => {
                let [p13, p31, p32, p23, p14] = [s.p13, s.p31, s.p32, s.p23, s.p14].map(scaled);
                Losses::FourStates { p13, p31, p32, p23, p14, state: 1, rng }
            }
            (None, Some(Loss::Random(p))) => Losses::Random(Event::new(*p, correlation, rng)),
            (None, Some(Loss::Chain(GilbertElliott { p, r, h, k }))) => {
                let r = scaled(r.unwrap_or(p.opposite()));
                let (p, h, lost_in_good) = (scaled(*p), scaled(*h), scaled(k.opposite()));
                Losses::TwoStates { p, r, h, lost_in_good, good: true, rng }
            }
            (None, None) => Losses::None,
        }
    }

    /// Whether the next packet is lost.
    pub fn lose(&mut self) -> bool {
        match self {
            Losses::None => false,
            Losses::Random(event) => event.happens(),
            // The state before the step determines the loss, then the chain makes its step.
            Losses::TwoStates { p, r, h, lost_in_good, good, rng } => {
                let was_good = *good;
                let steps = draw(rng) < if was_good { *p } else { *r };
                *good = was_good != steps;
                let second = draw(rng);
                if was_good { second < *lost_in_good } else { second > *h }
            }
            Losses::FourStates { p13, p31, p32, p23, p14, state, rng } => {
                let number = u64::from(draw(rng));
                let below = |p: u32| number < u64::from(p);
                let below_both = |p: u32, q: u32| number < u64::from(p.wrapping_add(q));
                *state = match *state {
                    1 if below(*p14) => 4,
                    1 if below_both(*p13, *p14) => 3,
                    2 if below(*p23) => 3,
                    3 if below(*p32) => 2,
                    3 if below_both(*p31, *p32) => 1,
                    4 => 1,
                    same => same,
                };
                matches!(*state, 3 | 4)
            }
        }
    }
}

/// A delay with a deviation.
#[derive(Clone, Debug)]
pub(super) struct Deviating {
    mean: i64,
    jitter: i64,
    table: Option<&'static [i16]>,
    draws: Correlated,
}

impl Deviating {
    pub fn new(mean: Span, jitter: Span, by: Distribution, draws: Correlated) -> Deviating {
        // The kernel stores a jitter in 32 bits.
        let jitter = jitter.0.min(i32::MAX as u64) as i64;
        Deviating { mean: mean.0.min(i64::MAX as u64) as i64, jitter, table: by.table(), draws }
    }

    /// The next delay in nanoseconds, which may be negative.
    pub fn next(&mut self) -> i64 {
        if self.jitter == 0 {
            return self.mean;
        }
        let number = i64::from(self.draws.next());
        let Some(table) = self.table else {
            return number % (2 * self.jitter) + self.mean - self.jitter;
        };
        let entry = i64::from(table[number as usize % table.len()]);
        let rest = (self.jitter % SCALE) * entry;
        let half = if rest >= 0 { SCALE / 2 } else { -SCALE / 2 };
        (rest + half) / SCALE + (self.jitter / SCALE) * entry + self.mean
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn p(p: f64) -> Probability {
        Probability::new(p).unwrap()
    }

    #[test]
    fn a_probability_of_one_always_happens_and_none_never_does() {
        let mut always = Event::new(p(1.0), p(0.9), Stream::new(1, "a"));
        let mut never = Event::new(p(0.0), p(0.9), Stream::new(1, "b"));
        assert!((0..10_000).all(|_| always.happens() && !never.happens()));
    }

    /// The weights of both numbers add up to one, so the mean is unchanged and the variance decreases.
    #[test]
    fn correlated_numbers_keep_their_mean() {
        let c = 0.5_f64;
        let mut numbers = Correlated::new(p(c), Stream::new(3, "c"));
        let n = 200_000;
        let all: Vec<f64> =
            (0..n).map(|_| f64::from(numbers.next()) / f64::from(u32::MAX)).collect();
        let mean = all.iter().sum::<f64>() / f64::from(n);
        let variance = all.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / f64::from(n);
        assert!((mean - 0.5).abs() < 0.003, "{mean}");
        let expected = (1.0 - c) / (1.0 + c) / 12.0;
        assert!((variance / expected - 1.0).abs() < 0.02, "{variance} {expected}");
    }

    #[test]
    fn chains_lose_the_share_of_their_formula() {
        let chain = GilbertElliott { p: p(0.02), r: Some(p(0.25)), h: p(0.4), k: p(0.99) };
        let states =
            FourStates { p13: p(0.01), p31: p(0.2), p32: p(0.3), p23: p(0.4), p14: p(0.05) };
        let cases = [
            (
                Losses::new(Some(&Loss::Chain(chain.clone())), None, p(0.0), Stream::new(5, "x")),
                chain.share(),
            ),
            (Losses::new(None, Some(&states), p(0.0), Stream::new(6, "y")), states.share()),
        ];
        for (mut losses, share) in cases {
            let n = 1_000_000;
            let lost = (0..n).filter(|_| losses.lose()).count() as f64 / f64::from(n);
            assert!((lost - share).abs() < 0.002, "{lost} {share}");
        }
    }

    #[test]
    fn deviations_have_the_moments_of_their_tables() {
        for (by, mean, deviation) in [
            (Distribution::Uniform, 0.0, 0.577_35),
            (Distribution::Normal, -0.000_780, 1.000_053),
            (Distribution::Experimental, -0.010_652, 0.879_404),
        ] {
            let draws = Correlated::new(p(0.0), Stream::new(9, "d"));
            let jitter = Span(1_234_567);
            let mut delays = Deviating::new(Span::millis(10), jitter, by, draws);
            let n = 200_000;
            let all: Vec<f64> =
                (0..n).map(|_| (delays.next() as f64 - 1e7) / jitter.0 as f64).collect();
            let got = all.iter().sum::<f64>() / f64::from(n);
            let spread =
                (all.iter().map(|x| (x - got) * (x - got)).sum::<f64>() / f64::from(n)).sqrt();
            assert!(
                (got - mean).abs() < 0.01 && (spread - deviation).abs() < 0.01,
                "{by:?}: {got} {spread}"
            );
        }
    }
}
