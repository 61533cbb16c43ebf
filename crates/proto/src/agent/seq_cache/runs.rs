//! The bytes of a flow that have passed.

use crate::travel::Travels;

/// Limit of stored runs: one more than the number of simultaneous congestion holes. Beyond it the highest
/// bytes are not stored, and their loss is left to the sender.
const RUNS: usize = 4;

/// Passed bytes above the last ACK, as ordered runs.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Runs {
    runs: [(u64, u64); RUNS],
    count: usize,
}

impl Runs {
    /// The runs in order.
    pub(super) fn as_slice(&self) -> &[(u64, u64)] {
        &self.runs[..self.count]
    }

    /// Whether the byte at `position` has passed.
    pub(super) fn has(&self, position: u64) -> bool {
        self.as_slice().iter().any(|(start, end)| (*start..*end).contains(&position))
    }

    /// Adds the bytes from `start` to `end`. Returns false if they cannot be stored.
    pub(super) fn add(&mut self, start: u64, end: u64) -> bool {
        // The common case: the next bytes in sequence.
        if self.count > 0 && self.runs[self.count - 1].1 == start {
            self.runs[self.count - 1].1 = end;
            return true;
        }
        let below = self.as_slice().partition_point(|run| run.1 < start);
        let touched = self.as_slice()[below..].iter().take_while(|run| run.0 <= end).count();
        if touched == 0 {
            if self.count == RUNS {
                return false;
            }
            self.runs.copy_within(below..self.count, below + 1);
            self.runs[below] = (start, end);
            self.count += 1;
        } else {
            let last = below + touched - 1;
            self.runs[below] = (start.min(self.runs[below].0), end.max(self.runs[last].1));
            self.runs.copy_within(last + 1..self.count, below + 1);
            self.count -= touched - 1;
        }
        true
    }

    /// Removes bytes below `ack`.
    pub(super) fn release(&mut self, ack: u64) {
        let gone = self.as_slice().partition_point(|run| run.1 <= ack);
        self.runs.copy_within(gone..self.count, 0);
        self.count -= gone;
        if self.count > 0 {
            self.runs[0].0 = self.runs[0].0.max(ack);
        }
    }
}

impl Travels for Runs {
    fn size(&self) -> u64 {
        self.as_slice().size()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn runs_remember_bytes_as_a_set_would(
            steps in prop::collection::vec((0u64..60, 1u64..10, 0u64..4), 1..60),
        ) {
            let mut runs = Runs::default();
            let mut plain = [false; 80];
            let mut acked = 0;
            for (start, len, ack) in steps {
                acked += ack;
                runs.release(acked);
                plain[..acked as usize].fill(false);
                let (start, end) = (start.max(acked), (start + len).max(acked));
                if start < end && end < 80 && runs.add(start, end) {
                    plain[start as usize..end as usize].fill(true);
                }
                if acked >= 60 { break; }
                prop_assert!((0..80).all(|at| runs.has(at) == plain[at as usize]));
                prop_assert!(runs.as_slice().windows(2).all(|w| w[0].1 < w[1].0));
            }
        }
    }
}
