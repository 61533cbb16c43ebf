//! Random numbers: every draw comes from a stream named by the run's seed and the drawing component.
//!
//! Adding a component thus changes no other component's draws. Generator and logarithm are portable: the same
//! seed gives the same draws on every machine, in WebAssembly too.

use rand_core::{RngCore, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// A named stream of random draws.
#[derive(Clone, Debug)]
pub struct Stream(Pcg64Mcg);

impl Stream {
    /// The stream of `component` in the run with `seed`.
    pub fn new(seed: u64, component: &str) -> Stream {
        // FNV-1a over the name, then a splitmix finaliser in which every seed bit reaches every state bit.
        let name = component.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |h, b| {
            (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3)
        });
        let low = mix(seed ^ name.rotate_left(32));
        let high = mix(low ^ name);
        let state = u128::from(high) << 64 | u128::from(low);
        Stream(Pcg64Mcg::from_seed(state.to_le_bytes()))
    }

    /// A uniform draw from 0..=u64::MAX.
    pub fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A uniform draw from [0, 1) with 53 random bits.
    pub fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// A uniform draw from 0..n; 0 when `n` is 0.
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.0.next_u64()) * u128::from(n)) >> 64) as u64
    }

    /// Whether an event of probability `p` happens.
    pub fn chance(&mut self, p: f64) -> bool {
        self.unit() < p
    }

    /// An exponential draw with the given mean.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        // 1 - unit() lies in (0, 1], so the logarithm is finite.
        -mean * libm::log(1.0 - self.unit())
    }
}

fn mix(mut z: u64) -> u64 {
    z = z.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_differ_by_seed_and_by_name() {
        let first = |seed, name| Stream::new(seed, name).next_u64();
        assert_eq!(first(1, "radio"), first(1, "radio"));
        assert_ne!(first(1, "radio"), first(2, "radio"));
        assert_ne!(first(1, "radio"), first(1, "radio/ack"));
    }

    #[test]
    fn the_draws_are_pinned() {
        // Determinism is guaranteed across versions: a change here changes every published figure.
        let mut stream = Stream::new(1, "radio");
        let draws: Vec<u64> = (0..3).map(|_| stream.next_u64()).collect();
        assert_eq!(draws, PINNED);
    }
    const PINNED: [u64; 3] =
        [13_548_615_438_410_911_509, 15_640_323_465_318_182_183, 2_468_360_006_346_855_275];

    #[test]
    fn the_exponential_has_its_mean_and_tail() {
        let mut stream = Stream::new(7, "gaps");
        let n = 200_000;
        let draws: Vec<f64> = (0..n).map(|_| stream.exponential(65_536.0)).collect();
        let mean = draws.iter().sum::<f64>() / f64::from(n);
        assert!((mean / 65_536.0 - 1.0).abs() < 0.01, "{mean}");
        let beyond = draws.iter().filter(|d| **d > 2.0 * 65_536.0).count() as f64 / f64::from(n);
        assert!((beyond - 0.1353).abs() < 0.005, "{beyond}");
    }
}
