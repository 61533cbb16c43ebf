//! Sets of byte positions as sorted disjoint ranges.

/// Half-open ranges, sorted, disjoint and not adjacent. A stream with few holes has few ranges, and an
/// extension of the last one is the common case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ranges {
    before: Vec<(u64, u64)>,
    /// The highest range; empty if there is none.
    last: (u64, u64),
}

impl Ranges {
    /// Number of ranges.
    pub fn count(&self) -> usize {
        self.before.len() + usize::from(self.last.0 < self.last.1)
    }

    /// The lowest range.
    pub fn first(&self) -> Option<(u64, u64)> {
        self.before.first().copied().or((self.last.0 < self.last.1).then_some(self.last))
    }

    /// Adds `start..end`. Returns whether any position was new.
    #[inline]
    pub fn insert(&mut self, start: u64, end: u64) -> bool {
        if start == self.last.1 && start < end && self.last.0 < start {
            self.last.1 = end;
            return true;
        }
        start < end && self.change(|all| Ranges::insert_anywhere(all, start, end))
    }

    /// Edits the list of all ranges.
    fn change<T>(&mut self, change: impl FnOnce(&mut Vec<(u64, u64)>) -> T) -> T {
        self.before.extend((self.last.0 < self.last.1).then_some(self.last));
        let answer = change(&mut self.before);
        self.last = self.before.pop().unwrap_or_default();
        answer
    }

    fn insert_anywhere(all: &mut Vec<(u64, u64)>, start: u64, end: u64) -> bool {
        let from = all.partition_point(|r| r.1 < start);
        let to = all.partition_point(|r| r.0 <= end);
        if from == to {
            all.insert(from, (start, end));
            return true;
        }
        let (first, last) = (all[from], all[to - 1]);
        if from + 1 == to && first.0 <= start && end <= first.1 {
            return false;
        }
        all[from] = (first.0.min(start), last.1.max(end));
        all.drain(from + 1..to);
        true
    }

    /// Removes `start..end`.
    pub fn remove(&mut self, start: u64, end: u64) {
        self.change(|all| {
            let from = all.partition_point(|r| r.1 <= start);
            let to = all.partition_point(|r| r.0 < end);
            if from >= to || start >= end {
                return;
            }
            let left = (all[from].0, start);
            let right = (end, all[to - 1].1);
            let keep = [left, right].into_iter().filter(|r| r.0 < r.1);
            all.splice(from..to, keep);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all(ranges: &Ranges) -> impl Iterator<Item = (u64, u64)> {
        ranges.before.iter().copied().chain((ranges.last.0 < ranges.last.1).then_some(ranges.last))
    }

    proptest! {
        /// Compared with a bitmap: the same members, the same results, and a canonical form.
        #[test]
        fn ranges_behave_as_a_set(ops in prop::collection::vec((any::<bool>(), 0u64..64, 0u64..12), 0..60)) {
            let mut ranges = Ranges::default();
            let mut bits = [false; 80];
            for (add, start, len) in ops {
                let span = start as usize..(start + len) as usize;
                if add {
                    let news = bits[span.clone()].iter().any(|b| !b);
                    prop_assert_eq!(ranges.insert(start, start + len), news);
                } else {
                    ranges.remove(start, start + len);
                }
                bits[span].fill(add);
                for (i, bit) in bits.iter().enumerate() {
                    let i = i as u64;
                    prop_assert_eq!(all(&ranges).any(|r| r.0 <= i && i < r.1), *bit);
                }
                let listed: Vec<_> = all(&ranges).collect();
                prop_assert!(listed.windows(2).all(|w| w[0].1 < w[1].0));
                prop_assert_eq!((ranges.count(), ranges.first()), (listed.len(), listed.first().copied()));
            }
        }
    }
}
