//! Independent bit errors.

use crate::rng::Stream;
use crate::units::Probability;

/// The hazard of a bit error rate: the rate of the Poisson process that harms a bit with this probability.
/// 0 for a rate of 0, infinite for 1, and exact for rates far below the resolution of `1 - ber`.
pub(super) fn hazard(ber: Probability) -> f64 {
    -libm::log1p(-ber.get())
}

/// Finds the first bit error of one packet with a single draw, however its bits divide among error rates.
///
/// The first error falls where the hazard summed over the bits so far exceeds a standard exponential draw:
/// for `n` bits of one rate the chance of none is `exp(-n * hazard) = (1 - ber)^n`.
#[derive(Debug)]
pub(super) struct FirstError {
    /// Hazard left until the error.
    left: f64,
    /// Bits walked over so far.
    bits: f64,
}

impl FirstError {
    pub(super) fn draw(stream: &mut Stream) -> FirstError {
        FirstError { left: stream.exponential(1.0), bits: 0.0 }
    }

    /// Walks over `bits` bits of this hazard; the index of the first damaged bit.
    pub(super) fn walk(&mut self, bits: f64, hazard: f64) -> Option<f64> {
        // An infinite hazard over no bits would be NaN.
        if bits > 0.0 && self.left < bits * hazard {
            return Some(self.bits + self.left / hazard);
        }
        if bits > 0.0 {
            self.left -= bits * hazard;
        }
        self.bits += bits;
        None
    }
}

/// The byte that holds `bit` in a packet of `bytes` bytes; rounding never leads out of the packet.
pub(super) fn byte_of(bit: f64, bytes: u32) -> u32 {
    ((bit / 8.0) as u32).min(bytes.saturating_sub(1))
}

/// Independent bit errors at a fixed rate (parsa98 5.1, 5.2).
#[derive(Clone, Debug)]
pub struct BitErrors {
    stream: Stream,
    hazard: f64,
}

impl BitErrors {
    /// Errors at the bit error rate `ber`.
    pub fn new(ber: Probability, stream: Stream) -> BitErrors {
        BitErrors { stream, hazard: hazard(ber) }
    }

    /// The position of the first damaged byte in the next packet; there is one with 1 - (1 - ber)^(8 bytes).
    pub fn pass(&mut self, bytes: u32) -> Option<u32> {
        FirstError::draw(&mut self.stream)
            .walk(8.0 * f64::from(bytes), self.hazard)
            .map(|bit| byte_of(bit, bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hits(ber: f64, bytes: u32, packets: u32) -> Vec<u32> {
        let ber = Probability::new(ber).unwrap();
        let mut errors = BitErrors::new(ber, Stream::new(1, "radio"));
        (0..packets).filter_map(|_| errors.pass(bytes)).collect()
    }

    #[test]
    fn packets_are_lost_at_the_exact_rate() {
        // parsa98 Table 1: 1500-byte packets at 15.5e-6 are lost with 1 - (1 - 15.5e-6)^12000 = 0.1697.
        let hits = hits(15.5e-6, 1500, 200_000);
        // Deviation of the share: 0.00084; tolerance four deviations.
        assert!((hits.len() as f64 / 200_000.0 - 0.1697).abs() < 0.0034, "{}", hits.len());
    }

    #[test]
    fn the_first_error_is_geometric() {
        // At 1e-3 a bit, byte 0 is first with 1 - 0.999^8 = 0.00797; nearly every packet has an error.
        let hits = hits(1e-3, 1500, 200_000);
        let first = hits.iter().filter(|at| **at == 0).count() as f64 / 200_000.0;
        assert!((first - 0.00797).abs() < 0.0008, "{first}");
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
