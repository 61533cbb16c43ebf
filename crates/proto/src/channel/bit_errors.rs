//! Independent bit errors.

use serde::Serialize;

use super::{Descriptor, ErrorModel, Errors, Model, Read};
use crate::describe::{Kind, System};
use crate::rng::Stream;
use crate::units::{Probability, Span, Time};

/// Independent bit errors (parsa98 5.1, 5.2).
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct BitErrors {
    /// Bit error rate.
    pub ber: Probability,
}

impl Model for BitErrors {
    const WORDS: &'static [Descriptor<Read>] = &[Descriptor {
        word: "bit-errors",
        system: System::new(
            Kind::Channel,
            "bit-errors",
            "path: errors = { model = \"bit-errors\", ber = 1e-6 }",
            "independent bit errors at a given rate",
            "parsa98 5.1",
        ),
        read: |k, _| {
            let ber = k.needed_probability("ber", "1e-6", "the probability that a bit is damaged");
            ErrorModel::BitErrors(BitErrors { ber }).into()
        },
    }];

    type Errors = IndependentErrors;

    fn errors(&self, stream: Stream, _: Option<Stream>) -> IndependentErrors {
        IndependentErrors::new(self.ber, stream)
    }
}

/// The hazard of a bit error rate: the rate of the Poisson process that damages a bit with this probability.
/// 0 for a rate of 0, infinite for 1, and exact for rates far below the resolution of `1 - ber`.
pub(super) fn hazard(ber: Probability) -> f64 {
    -libm::log1p(-ber.get())
}

/// Finds the first bit error of one packet with a single draw, even if its bits have different error rates.
///
/// The first error is at the bit where the sum of hazards exceeds a standard exponential draw. For `n` bits
/// of one rate the probability of no error is `exp(-n * hazard) = (1 - ber)^n`.
///
/// That draw is `-ln(1 - u)`, which exceeds `u`, so most frames need no logarithm.
#[derive(Clone, Debug)]
pub(super) struct FirstError {
    /// The uniform draw.
    unit: f64,
    /// Remaining hazard until the error, once computed.
    left: Option<f64>,
    /// Hazard of the bits before.
    spared: f64,
    /// Number of bits before.
    bits: f64,
}

/// Above any rounding error.
const SURELY: f64 = 1.0 + 1e-9;

impl FirstError {
    pub(super) fn draw(stream: &mut Stream) -> FirstError {
        FirstError { unit: stream.unit(), left: None, spared: 0.0, bits: 0.0 }
    }

    /// Passes `bits` bits of this hazard. Returns the index of the first damaged bit.
    pub(super) fn walk(&mut self, bits: f64, hazard: f64) -> Option<f64> {
        // Infinite hazard times zero bits would be NaN.
        let ahead = if bits > 0.0 { bits * hazard } else { 0.0 };
        let first = self.left.is_none() && self.spared == 0.0;
        if first && self.unit > ahead * SURELY {
            self.spared = ahead;
        } else {
            let left = self.left.unwrap_or_else(|| -libm::log(1.0 - self.unit) - self.spared);
            if bits > 0.0 && left < ahead {
                return Some(self.bits + left / hazard);
            }
            self.left = Some(left - ahead);
        }
        self.bits += bits;
        None
    }
}

/// Finds every damaged byte of one packet; the first is the one that [`FirstError`] would find.
///
/// Further errors in a damaged byte have no effect, so the next draw begins behind it.
#[derive(Clone, Debug)]
pub(super) struct EachError {
    bytes: u32,
    /// Remaining hazard until the next error.
    left: f64,
    /// Number of bits before.
    bits: f64,
    /// Bits before this one are skipped.
    from: f64,
}

impl EachError {
    pub(super) fn draw(stream: &mut Stream, bytes: u32) -> EachError {
        EachError { bytes, left: stream.exponential(1.0), bits: 0.0, from: 0.0 }
    }

    /// Passes `bits` bits of this hazard, and calls `hit` with each damaged byte, in order.
    pub(super) fn walk(
        &mut self,
        stream: &mut Stream,
        bits: f64,
        hazard: f64,
        hit: &mut dyn FnMut(u32),
    ) {
        let end = self.bits + bits;
        let mut at = self.bits.max(self.from);
        // The parts of a frame sum to its bits only up to rounding.
        let last = end.min(8.0 * f64::from(self.bytes));
        while at < last {
            let ahead = (last - at) * hazard;
            if self.left >= ahead {
                self.left -= ahead;
                break;
            }
            let byte = byte_of(at + self.left / hazard, self.bytes);
            hit(byte);
            self.from = 8.0 * (f64::from(byte) + 1.0);
            self.left = stream.exponential(1.0);
            at = self.from;
        }
        self.bits = end;
    }
}

/// The byte that contains `bit` in a packet of `bytes` bytes; rounding never exceeds the packet.
pub(super) fn byte_of(bit: f64, bytes: u32) -> u32 {
    ((bit / 8.0) as u32).min(bytes.saturating_sub(1))
}

/// Independent bit errors at a fixed rate (parsa98 5.1, 5.2).
#[derive(Clone, Debug)]
pub struct IndependentErrors {
    stream: Stream,
    hazard: f64,
}

impl IndependentErrors {
    /// Errors at the bit error rate `ber`.
    pub fn new(ber: Probability, stream: Stream) -> IndependentErrors {
        IndependentErrors { stream, hazard: hazard(ber) }
    }
}

impl Errors for IndependentErrors {
    /// The probability of a damaged byte is 1 - (1 - ber)^(8 bytes).
    fn pass(&mut self, _: Time, _: Span, bytes: u32) -> Option<u32> {
        FirstError::draw(&mut self.stream)
            .walk(8.0 * f64::from(bytes), self.hazard)
            .map(|bit| byte_of(bit, bytes))
    }

    fn pass_symbols(&mut self, _: Time, _: Span, bytes: u32, hit: &mut dyn FnMut(u32)) -> bool {
        let mut errors = EachError::draw(&mut self.stream, bytes);
        errors.walk(&mut self.stream, 8.0 * f64::from(bytes), self.hazard, hit);
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hits(ber: f64, bytes: u32, packets: u32) -> Vec<u32> {
        let ber = Probability::new(ber).unwrap();
        let mut errors = IndependentErrors::new(ber, Stream::new(1, "radio"));
        (0..packets).filter_map(|_| errors.pass(Time::ZERO, Span::ZERO, bytes)).collect()
    }

    #[test]
    fn packets_are_lost_at_the_exact_rate() {
        // parsa98 Table 1: 1500-byte packets at 15.5e-6 are lost with 1 - (1 - 15.5e-6)^12000 = 0.1697.
        let hits = hits(15.5e-6, 1500, 200_000);
        // Standard deviation of the share: 0.00084; tolerance four deviations.
        assert!((hits.len() as f64 / 200_000.0 - 0.1697).abs() < 0.0034, "{}", hits.len());
    }

    #[test]
    fn the_first_error_is_geometric() {
        // At 1e-3 per bit, byte 0 is first with 1 - 0.999^8 = 0.00797; nearly every packet has an error.
        let hits = hits(1e-3, 1500, 200_000);
        let first = hits.iter().filter(|at| **at == 0).count() as f64 / 200_000.0;
        assert!((first - 0.00797).abs() < 0.0008, "{first}");
    }

    #[test]
    fn every_damaged_byte_is_found_once_and_at_its_rate() {
        for (ber, packets) in [(1e-5, 20_000), (1e-3, 500), (0.1, 50), (0.5, 50)] {
            let p = Probability::new(ber).unwrap();
            let mut errors = IndependentErrors::new(p, Stream::new(1, "radio"));
            let mut total = 0_u32;
            for _ in 0..packets {
                let first = errors.clone().pass(Time::ZERO, Span::ZERO, 1500);
                let mut found = Vec::new();
                errors.pass_symbols(Time::ZERO, Span::ZERO, 1500, &mut |byte| found.push(byte));
                assert_eq!(found.first().copied(), first);
                assert!(found.windows(2).all(|w| w[0] < w[1]) && found.iter().all(|b| *b < 1500));
                total += found.len() as u32;
            }
            let n = 1500.0 * f64::from(packets);
            let share = 1.0 - libm::pow(1.0 - ber, 8.0);
            let deviation = (n * share * (1.0 - share)).sqrt();
            assert!((f64::from(total) - n * share).abs() < 4.0 * deviation, "{ber}: {total}");
        }
        let mut all =
            IndependentErrors::new(Probability::new(1.0).unwrap(), Stream::new(1, "radio"));
        let mut count = 0;
        all.pass_symbols(Time::ZERO, Span::ZERO, 1500, &mut |_| count += 1);
        assert_eq!(count, 1500);
    }

    #[test]
    fn the_ends_of_the_scale() {
        assert!(hits(0.0, 1500, 1000).is_empty());
        assert_eq!(hits(1.0, 1500, 1000), vec![0; 1000]);
        assert!(hits(1.0, 0, 10).is_empty());
        // 1 - 1e-18 rounds to one, yet the hazard is exact.
        assert_eq!(hazard(Probability::new(1e-18).unwrap()), 1e-18);
    }
}
