//! Bytes that SACK blocks of the peer report beyond its cumulative ACK: they have arrived.

use std::collections::BTreeMap;

/// Maximum number of stored ranges for each direction; the lowest is removed first.
const RANGES: usize = 1024;

/// Disjoint ranges by their first offset.
#[derive(Clone, Debug, Default)]
pub(super) struct Sacked(BTreeMap<i64, i64>);

impl Sacked {
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// The peer acknowledges all bytes before `ack`.
    pub(super) fn acked(&mut self, ack: i64) {
        while self.0.first_key_value().is_some_and(|(_, end)| *end <= ack) {
            self.0.pop_first();
        }
    }

    /// The peer has received `left..right`.
    pub(super) fn insert(&mut self, mut left: i64, mut right: i64) {
        while let Some((&start, &end)) = self.0.range(..=right).next_back()
            && end >= left
        {
            if start <= left && right <= end {
                return;
            }
            self.0.remove(&start);
            (left, right) = (left.min(start), right.max(end));
        }
        if self.0.len() >= RANGES {
            self.0.pop_first();
        }
        self.0.insert(left, right);
    }

    /// Whether the peer has received all of `start..end`.
    pub(super) fn covers(&self, start: i64, end: i64) -> bool {
        self.0.range(..=start).next_back().is_some_and(|(_, right)| *right >= end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn ranges_are_a_set(blocks in prop::collection::vec((0i64..60, 1i64..10), 0..30), ack in 0i64..70) {
            let mut sacked = Sacked::default();
            let mut bits = [false; 80];
            for (left, len) in blocks {
                sacked.insert(left, left + len);
                bits[left as usize..(left + len) as usize].fill(true);
            }
            sacked.acked(ack);
            for start in ack.min(79)..79 {
                for end in start + 1..80 {
                    let all = bits[start as usize..end as usize].iter().all(|bit| *bit);
                    prop_assert_eq!(sacked.covers(start, end), all);
                }
            }
        }
    }
}
