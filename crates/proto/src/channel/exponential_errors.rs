//! Errors at exponential distances in bytes: the Poisson model of the Berkeley testbed.

use core::ops::RangeInclusive;

use serde::Serialize;

use super::{Descriptor, ErrorModel, Errors, Model, Read};
use crate::describe::{Kind, System};
use crate::rng::Stream;
use crate::units::{Bytes, Span, Time};

/// Allowed mean distances in a scenario.
pub(super) const DISTANCES: RangeInclusive<Bytes> = Bytes(1)..=Bytes(1 << 50);

/// Errors at exponential distances in bytes; each damages the packet that contains it (west97 4.3).
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Exponential {
    /// Mean distance between errors.
    pub mean: Bytes,
}

impl Model for Exponential {
    const WORDS: &'static [Descriptor<Read>] = &[Descriptor {
        word: "exponential",
        system: System::new(
            Kind::Channel,
            "exponential-errors",
            "path: errors = { model = \"exponential\", mean = \"64KiB\" }",
            "single byte errors at exponential distances; where they fall decides which checksum they break",
            "west97 4.3",
        ),
        read: |k, _| {
            let doc = "the mean distance from one byte error to the next";
            let mean = k.needed("mean", (Bytes(65_536), "\"64KiB\""), DISTANCES, doc);
            ErrorModel::Exponential(Exponential { mean }).into()
        },
    }];

    type Errors = ExponentialErrors;

    fn errors(&self, stream: Stream, _: Option<Stream>) -> ExponentialErrors {
        ExponentialErrors::new(self.mean, stream)
    }
}

/// Distances in bytes between successive events, over all packets of one direction.
///
/// A distance is a real number, so events form a Poisson process over the byte stream, and a byte may contain
/// several.
#[derive(Clone, Debug)]
pub(super) struct Gaps {
    stream: Stream,
    mean: f64,
    uniform: bool,
    /// Bytes from the start of the next packet to the next event.
    next: f64,
}

impl Gaps {
    /// Gaps with this mean: exponential, or constant if `uniform`.
    pub(super) fn new(mean: Bytes, uniform: bool, stream: Stream) -> Gaps {
        let mut gaps = Gaps { stream, mean: mean.0 as f64, uniform, next: 0.0 };
        gaps.next = gaps.draw();
        gaps
    }

    fn draw(&mut self) -> f64 {
        if self.uniform { self.mean } else { self.stream.exponential(self.mean) }
    }

    /// Passes a packet of `bytes` bytes. Returns the position of the first event in it.
    #[inline]
    pub(super) fn pass(&mut self, bytes: u32) -> Option<u32> {
        self.each(bytes, |_| {})
    }

    /// Like `pass`, and calls `hit` with the position of each event, in order; several may be in one byte.
    #[inline]
    fn each(&mut self, bytes: u32, mut hit: impl FnMut(u32)) -> Option<u32> {
        let len = f64::from(bytes);
        if self.next >= len {
            self.next -= len;
            return None;
        }
        let first = self.next as u32;
        if self.mean < 1.0 {
            // With a mean of zero every byte has an event, and drawing gaps would never end.
            (0..bytes).for_each(hit);
            return Some(first);
        }
        //= west97#4.3: the next gap counts from the spot of this error, so a packet may hold several
        while self.next < len {
            hit(self.next as u32);
            self.next += self.draw();
        }
        self.next -= len;
        Some(first)
    }

    /// The stream for other draws of this model.
    pub(super) fn stream(&mut self) -> &mut Stream {
        &mut self.stream
    }
}

/// Errors at exponential distances; each damages the packet that contains it (west97 4.3).
#[derive(Clone, Debug)]
pub struct ExponentialErrors(Gaps);

impl ExponentialErrors {
    /// Errors at a mean distance of `mean` bytes; with 0 every packet is damaged.
    pub fn new(mean: Bytes, stream: Stream) -> ExponentialErrors {
        ExponentialErrors(Gaps::new(mean, false, stream))
    }
}

impl Errors for ExponentialErrors {
    #[inline]
    fn pass(&mut self, _: Time, _: Span, bytes: u32) -> Option<u32> {
        self.0.pass(bytes)
    }

    fn pass_symbols(&mut self, _: Time, _: Span, bytes: u32, hit: &mut dyn FnMut(u32)) -> bool {
        let mut last = None;
        self.0.each(bytes, |byte| {
            if last.replace(byte) != Some(byte) {
                hit(byte);
            }
        });
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_have_the_mean_distance_and_uniform_positions() {
        let mut errors = ExponentialErrors::new(Bytes(65_536), Stream::new(1, "radio"));
        let packets = 400_000;
        let hits: Vec<u32> =
            (0..packets).filter_map(|_| errors.pass(Time::ZERO, Span::ZERO, 1500)).collect();
        // Expected: 400,000 * (1 - exp(-1500 / 65536)) = 9,052 with deviation 94; tolerance four deviations.
        assert!((hits.len() as f64 - 9_052.0).abs() < 380.0, "{}", hits.len());
        let mean = hits.iter().map(|p| f64::from(*p)).sum::<f64>() / hits.len() as f64;
        // Uniform over 1500 bytes up to 0.6 %: mean 748, standard error 4.6.
        assert!((mean - 748.0).abs() < 20.0, "{mean}");
    }

    #[test]
    fn all_errors_are_reported_with_the_same_random_draws() {
        let mut first = ExponentialErrors::new(Bytes(100), Stream::new(1, "radio"));
        let mut each = first.clone();
        let mut total = 0;
        for _ in 0..2000 {
            let mut found = Vec::new();
            each.pass_symbols(Time::ZERO, Span::ZERO, 1500, &mut |byte| found.push(byte));
            assert_eq!(found.first().copied(), first.pass(Time::ZERO, Span::ZERO, 1500));
            assert!(found.windows(2).all(|w| w[0] < w[1]));
            total += found.len();
        }
        // 3,000,000 bytes, each damaged with 1 - exp(-1 / 100): 29,850 with deviation 172.
        assert!((total as f64 - 29_850.0).abs() < 700.0, "{total}");
    }

    #[test]
    fn several_errors_in_a_packet_damage_it_once() {
        let mut errors = ExponentialErrors::new(Bytes(1), Stream::new(1, "radio"));
        assert!((0..1000).all(|_| errors.pass(Time::ZERO, Span::ZERO, 1500).is_some()));
    }

    #[test]
    fn the_draws_are_pinned() {
        let mut errors = ExponentialErrors::new(Bytes(4096), Stream::new(1, "radio"));
        let hits: Vec<(usize, u32)> = (0..20)
            .filter_map(|i| errors.pass(Time::ZERO, Span::ZERO, 1500).map(|at| (i, at)))
            .collect();
        assert_eq!(hits, PINNED);
    }
    const PINNED: [(usize, u32); 9] = [
        (3, 931),
        (8, 1144),
        (9, 232),
        (11, 1128),
        (12, 315),
        (15, 1342),
        (16, 33),
        (17, 912),
        (18, 231),
    ];
}
