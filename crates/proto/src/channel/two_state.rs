//! Channels that are good or bad in turn: by time (bakshi96 3.1) and by bit (parsa98 5.3.2).

use super::bit_errors::{FirstError, byte_of, hazard};
use crate::rng::Stream;
use crate::units::{Probability, Span, Time};

/// Above so many mean cycles, the states in between are averaged instead of walked through: it bounds the
/// work for a channel that changes every nanosecond, and after so many cycles no state remembers the first.
const MANY_CYCLES: u64 = 1024;

/// Hazards of a bit in the bad (index 0) and in the good state (index 1).
fn hazards(ber_good: Probability, ber_bad: Probability) -> [f64; 2] {
    [hazard(ber_bad), hazard(ber_good)]
}

/// A channel that stays good and bad for times of their own, whether or not anything is sent.
#[derive(Clone, Debug)]
pub struct TwoState {
    stream: Stream,
    /// Mean time in the bad (index 0) and in the good state (index 1).
    means: [Span; 2],
    hazards: [f64; 2],
    deterministic: bool,
    good: bool,
    /// The state lasts until then.
    until: Time,
}

impl TwoState {
    /// A channel that begins good at time zero. A state with a mean time of zero never occurs; if both have
    /// none the channel is always good.
    pub fn new(
        [good, bad]: [Span; 2],
        [ber_good, ber_bad]: [Probability; 2],
        deterministic: bool,
        stream: Stream,
    ) -> TwoState {
        let mut channel = TwoState {
            stream,
            means: [bad, good],
            hazards: hazards(ber_good, ber_bad),
            deterministic,
            good: good != Span::ZERO || bad == Span::ZERO,
            until: Time::NEVER,
        };
        if good != Span::ZERO && bad != Span::ZERO {
            channel.until = Time::ZERO + channel.sojourn();
        }
        channel
    }

    fn sojourn(&mut self) -> Span {
        let mean = self.means[usize::from(self.good)];
        let drawn = if self.deterministic {
            mean
        } else {
            Span(libm::round(self.stream.exponential(mean.0 as f64)) as u64)
        };
        // At least a nanosecond, so that time moves on.
        Span(drawn.0.max(1))
    }

    fn turn(&mut self) {
        self.good = !self.good;
        let sojourn = self.sojourn();
        self.until += sojourn;
    }

    fn cycle(&self) -> Span {
        self.means[0] + self.means[1]
    }

    /// Whether the channel is good as of the last call.
    pub fn is_good(&self) -> bool {
        self.good
    }

    /// When the state changes next.
    pub fn next_turn(&self) -> Option<Time> {
        (self.until != Time::NEVER).then_some(self.until)
    }

    /// Brings the state up to `now`.
    pub fn advance(&mut self, now: Time) {
        // `Time::NEVER` stands for no change at all and cannot be caught up with.
        let now = now.min(Time(Time::NEVER.0 - 1));
        if self.until > now {
            return;
        }
        let behind = now.since(self.until);
        if self.deterministic {
            // Whole cycles change nothing.
            self.until += self.cycle() * (behind.0 / self.cycle().0);
        } else if behind > self.cycle() * MANY_CYCLES {
            // The state is that of the long run, and what is left of it is exponential again.
            let good = self.means[1].0 as f64 / self.cycle().0 as f64;
            self.good = self.stream.chance(good);
            self.until = now + self.sojourn();
        }
        while self.until <= now {
            self.turn();
        }
    }

    /// The first damaged byte of a frame that is on the air from `start` for `duration`.
    pub fn pass(&mut self, start: Time, duration: Span, bytes: u32) -> Option<u32> {
        let bits = 8.0 * f64::from(bytes);
        let end = start + duration;
        let mut error = FirstError::draw(&mut self.stream);
        self.advance(start);
        if self.until >= end {
            let hit = error.walk(bits, self.hazards[usize::from(self.good)]);
            return hit.map(|bit| byte_of(bit, bytes));
        }
        // The states divide the frame; its bits are spread evenly over its time.
        let rate = bits / duration.0 as f64;
        let mut hit = None;
        let mut from = start;
        if duration > self.cycle() * MANY_CYCLES {
            let good = self.means[1].0 as f64 / self.cycle().0 as f64;
            let mean = self.hazards[1] * good + self.hazards[0] * (1.0 - good);
            hit = error.walk(bits, mean);
        } else {
            while self.until < end {
                let part = self.until.since(from).0 as f64 * rate;
                hit = hit.or_else(|| error.walk(part, self.hazards[usize::from(self.good)]));
                from = self.until;
                self.turn();
            }
            let rest = end.since(from).0 as f64 * rate;
            hit = hit.or_else(|| error.walk(rest, self.hazards[usize::from(self.good)]));
        }
        self.advance(end);
        hit.map(|bit| byte_of(bit, bytes))
    }
}

/// A Markov channel whose state may change after every bit sent, and only then (parsa98 5.3.2): first the
/// error probability of the state is applied to the bit, then the change of state is decided.
#[derive(Clone, Debug)]
pub struct TwoStateBits {
    stream: Stream,
    means: [u64; 2],
    hazards: [f64; 2],
    good: bool,
    /// Bits left in this state.
    left: u64,
}

impl TwoStateBits {
    /// A channel that begins good. A state with a mean of zero bits never occurs; if both have none the
    /// channel is always good.
    pub fn new(
        [good_bits, bad_bits]: [u64; 2],
        [ber_good, ber_bad]: [Probability; 2],
        stream: Stream,
    ) -> TwoStateBits {
        let mut channel = TwoStateBits {
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

    /// Whether the channel is good as of the last bit sent.
    pub fn is_good(&self) -> bool {
        self.good
    }

    /// The first damaged byte of the next `bytes` bytes.
    pub fn pass(&mut self, bytes: u32) -> Option<u32> {
        let mut error = FirstError::draw(&mut self.stream);
        let mut hit = None;
        let mut bits = 8 * u64::from(bytes);
        loop {
            let part = bits.min(self.left);
            hit = hit.or_else(|| error.walk(part as f64, self.hazards[usize::from(self.good)]));
            bits -= part;
            if self.left != u64::MAX {
                self.left -= part;
            }
            if self.left > 0 {
                return hit.map(|bit| byte_of(bit, bytes));
            }
            self.good = !self.good;
            self.left = self.sojourn();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn p(x: f64) -> Probability {
        Probability::new(x).unwrap()
    }

    #[test]
    fn deterministic_states_take_turns() {
        let means = [Span::millis(10), Span::millis(4)];
        let mut channel = TwoState::new(means, [p(0.0), p(1.0)], true, Stream::new(1, "radio"));
        let mut pass = |ms: u64| channel.pass(Time(ms * 1_000_000), Span::millis(1), 100);
        assert_eq!(pass(0), None);
        assert_eq!(pass(10), Some(0));
        assert_eq!(pass(14), None);
        // 1,000,000 cycles of 14 ms later, nothing has drifted.
        assert_eq!(pass(14_000_000 + 13), Some(0));
    }

    #[test]
    fn a_frame_across_a_change_is_damaged_where_the_bad_state_begins() {
        let means = [Span::millis(10), Span::millis(4)];
        let mut channel = TwoState::new(means, [p(0.0), p(1.0)], true, Stream::new(1, "radio"));
        assert_eq!(channel.pass(Time(8_000_000), Span::millis(4), 1000), Some(500));
        assert!(!channel.is_good());
        assert_eq!(channel.next_turn(), Some(Time(14_000_000)));
    }

    #[test]
    fn the_share_of_bad_time_is_that_of_its_mean() {
        let means = [Span::millis(30), Span::millis(10)];
        let mut channel = TwoState::new(means, [p(0.0), p(1.0)], false, Stream::new(1, "radio"));
        let n = 400_000;
        let bad = (0..n)
            .filter(|i| channel.pass(Time(i * 1_000_000), Span::micros(1), 1).is_some())
            .count() as f64;
        // A quarter of the time. Neighbouring samples are alike: about 27,000 are independent, deviation 0.0027.
        assert!((bad / n as f64 - 0.25).abs() < 0.011, "{bad}");
    }

    #[test]
    fn a_long_silence_is_skipped_without_walking_it() {
        let mut channel =
            TwoState::new([Span(3), Span(1)], [p(0.0), p(1.0)], false, Stream::new(1, "radio"));
        let n = 20_000;
        let bad =
            (1..=n).filter(|i| channel.pass(Time(i << 40), Span(1), 1).is_some()).count() as f64;
        // A nanosecond frame meets the bad state at its start, or with some chance during it.
        assert!(bad / n as f64 > 0.22 && bad / (n as f64) < 0.60, "{bad}");
        assert!(channel.pass(Time(n << 41), Span::secs(3600), 1500).is_some());
    }

    #[test]
    fn bits_have_their_share_of_errors() {
        // parsa98 5.3.2: half of what is sent in the bad state is damaged.
        let bers = [p(0.0), p(0.5)];
        let mut channel = TwoStateBits::new([3000, 1000], bers, Stream::new(1, "radio"));
        let n = 400_000;
        let hit = (0..n).filter(|_| channel.pass(1).is_some()).count() as f64;
        // A byte is damaged with 1 - 2^-8 when bad; about 1,600 independent periods, deviation 0.011.
        assert!((hit / f64::from(n) - 0.25).abs() < 0.035, "{hit}");
    }

    #[test]
    fn a_state_that_lasts_no_time_never_occurs() {
        let bers = [p(0.0), p(1.0)];
        for (means, harm) in [([0, 0], false), ([0, 5], true), ([5, 0], false)] {
            let spans = means.map(Span);
            let mut by_time = TwoState::new(spans, bers, false, Stream::new(1, "radio"));
            let mut by_bit = TwoStateBits::new(means, bers, Stream::new(1, "radio"));
            for i in 0..100 {
                assert_eq!(by_time.pass(Time(i), Span(7), 10).is_some(), harm);
                assert_eq!(by_bit.pass(10).is_some(), harm);
            }
        }
    }
}
