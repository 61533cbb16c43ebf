//! Replay protection by counters (the sliding window of RFC 4303 3.4.3, in the form of RFC 6479).

/// Words of the window.
const WORDS: usize = 32;

/// Maximum distance of a message behind the newest. One word is always being cleared, so it is excluded.
pub const REACH: u64 = (WORDS as u64 - 1) * 64;

/// The counters of one direction of a session.
#[derive(Clone, Debug)]
pub struct Replay {
    bits: [u64; WORDS],
    /// One more than the highest received counter.
    next: u64,
}

/// Why a counter is rejected.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refused {
    /// It has been received before.
    Twice,
    /// It is too far behind the newest to check.
    TooOld,
}

impl Default for Replay {
    fn default() -> Replay {
        Replay { bits: [0; WORDS], next: 0 }
    }
}

impl Replay {
    /// Checks whether a message with this counter is new.
    ///
    /// # Errors
    /// When it is a duplicate, or too old to check.
    pub fn check(&self, counter: u64) -> Result<(), Refused> {
        if counter >= self.next {
            return Ok(());
        }
        if self.next - counter > REACH {
            return Err(Refused::TooOld);
        }
        match self.bits[word(counter)] >> (counter % 64) & 1 {
            0 => Ok(()),
            _ => Err(Refused::Twice),
        }
    }

    /// Whether a message with this counter is newer than all received ones.
    pub fn is_newest(&self, counter: u64) -> bool {
        counter >= self.next
    }

    /// Records a verified message of the peer with this counter.
    pub fn note(&mut self, counter: u64) {
        if counter >= self.next {
            let first = match self.next {
                0 => 0,
                next => (next - 1) / 64 + 1,
            };
            let last = counter / 64;
            let clear = (last + 1).saturating_sub(first).min(WORDS as u64);
            for i in 0..clear {
                self.bits[((last - i) % WORDS as u64) as usize] = 0;
            }
            self.next = counter + 1;
        }
        self.bits[word(counter)] |= 1 << (counter % 64);
    }
}

fn word(counter: u64) -> usize {
    (counter / 64 % WORDS as u64) as usize
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    /// Consecutive counters, swapped in pairs: words of the window are left and entered at their boundaries,
    /// three times around.
    #[test]
    fn in_a_row_each_counter_is_new_once_in_every_word_of_the_window() {
        let mut window = Replay::default();
        for first in (0..3 * 64 * WORDS as u64).step_by(2) {
            for counter in [first + 1, first] {
                let seen = window.check(counter);
                assert_eq!(seen, Ok(()), "{counter} has not come, though a word was used before");
                window.note(counter);
                let again = window.check(counter);
                assert_eq!(again, Err(Refused::Twice), "{counter} has come, and was forgotten");
            }
            let oldest = (first + 2).saturating_sub(REACH);
            assert_eq!(window.check(oldest), Err(Refused::Twice), "{oldest} is within reach");
            if let Some(beyond) = oldest.checked_sub(1) {
                assert_eq!(window.check(beyond), Err(Refused::TooOld), "{beyond} is beyond it");
            }
        }
    }

    proptest! {
        /// Compares with a set of all received counters.
        #[test]
        fn each_counter_passes_once(
            steps in proptest::collection::vec((any::<bool>(), 0u64..5000), 1..300),
        ) {
            let mut window = Replay::default();
            let mut come = BTreeSet::new();
            for (ahead, by) in steps {
                let newest = come.last().copied().unwrap_or(0);
                let counter = if ahead { newest + by } else { newest.saturating_sub(by) };
                let expected = match counter {
                    c if c > newest || come.is_empty() => Ok(()),
                    c if newest + 1 - c > REACH => Err(Refused::TooOld),
                    c if come.contains(&c) => Err(Refused::Twice),
                    _ => Ok(()),
                };
                prop_assert_eq!(window.check(counter), expected);
                if expected.is_ok() {
                    window.note(counter);
                    come.insert(counter);
                }
            }
        }
    }
}
