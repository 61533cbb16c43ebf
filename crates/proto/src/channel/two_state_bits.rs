//! A channel that alternates between good and bad at bit boundaries (parsa98 5.3.2). It shares the name
//! `two-state` with the channel that changes with time.

use serde::Serialize;

use super::bit_errors::{EachError, FirstError, byte_of};
use super::two_state::hazards;
use super::{Descriptor, Errors, Model, Read};
use crate::rng::Stream;
use crate::units::{Probability, Span, Time};

/// A Markov channel that changes its state between bits (parsa98 5.3.2).
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct TwoStateBits {
    /// Mean length of a good period, bits.
    pub good_bits: u64,
    /// Mean length of a bad period, bits.
    pub bad_bits: u64,
    /// Bit error rate in the good state.
    pub ber_good: Probability,
    /// Bit error rate in the bad state.
    pub ber_bad: Probability,
}

impl Model for TwoStateBits {
    const WORDS: &'static [Descriptor<Read>] = &[];

    type Errors = TwoStateBitErrors;

    fn errors(&self, stream: Stream, _: Option<Stream>) -> TwoStateBitErrors {
        let bits = [self.good_bits, self.bad_bits];
        TwoStateBitErrors::new(bits, [self.ber_good, self.ber_bad], stream)
    }
}

/// A Markov channel whose state may change after every sent bit, and only then (parsa98 5.3.2). The error
/// probability of the state is applied to the bit before the change.
#[derive(Clone, Debug)]
pub struct TwoStateBitErrors {
    stream: Stream,
    means: [u64; 2],
    hazards: [f64; 2],
    good: bool,
    /// Remaining bits in this state.
    left: u64,
}

impl TwoStateBitErrors {
    /// A channel that begins good. A state with a mean of zero bits never occurs; if both are zero, the
    /// channel is always good.
    pub fn new(
        [good_bits, bad_bits]: [u64; 2],
        [ber_good, ber_bad]: [Probability; 2],
        stream: Stream,
    ) -> TwoStateBitErrors {
        let mut channel = TwoStateBitErrors {
            stream,
            means: [bad_bits, good_bits],
            hazards: hazards(ber_good, ber_bad),
            good: good_bits != 0 || bad_bits == 0,
            left: u64::MAX,
        };
        if good_bits != 0 && bad_bits != 0 {
            channel.left = channel.sojourn();
        }
        channel
    }

    /// A geometric number of bits, at least one.
    fn sojourn(&mut self) -> u64 {
        let mean = self.means[usize::from(self.good)] as f64;
        let leave = -libm::log1p(-1.0 / mean);
        ((self.stream.exponential(1.0) / leave) as u64).saturating_add(1)
    }

    /// Calls `part` with the bits of the next `bytes` bytes and their hazard, state by state.
    fn divide(&mut self, bytes: u32, mut part: impl FnMut(&mut Stream, f64, f64)) {
        let mut bits = 8 * u64::from(bytes);
        loop {
            let here = bits.min(self.left);
            part(&mut self.stream, here as f64, self.hazards[usize::from(self.good)]);
            bits -= here;
            if self.left != u64::MAX {
                self.left -= here;
            }
            if self.left > 0 {
                return;
            }
            self.good = !self.good;
            self.left = self.sojourn();
        }
    }
}

impl Errors for TwoStateBitErrors {
    fn pass(&mut self, _: Time, _: Span, bytes: u32) -> Option<u32> {
        let mut error = FirstError::draw(&mut self.stream);
        let mut hit = None;
        self.divide(bytes, |_, bits, hazard| {
            hit = hit.or_else(|| error.walk(bits, hazard));
        });
        hit.map(|bit| byte_of(bit, bytes))
    }

    fn pass_symbols(&mut self, _: Time, _: Span, bytes: u32, hit: &mut dyn FnMut(u32)) -> bool {
        let mut errors = EachError::draw(&mut self.stream, bytes);
        self.divide(bytes, |stream, bits, hazard| errors.walk(stream, bits, hazard, hit));
        false
    }

    /// The state after the last sent bit.
    fn is_good(&self) -> bool {
        self.good
    }
}
