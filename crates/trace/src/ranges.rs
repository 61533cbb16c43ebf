//! Sets of byte positions, kept as sorted disjoint ranges.

/// Half-open ranges, sorted, disjoint and not touching. A stream with few holes has few ranges, and
/// growing the last one is the common case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ranges(Vec<(u64, u64)>);

impl Ranges {
    /// How many ranges there are.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The lowest range.
    pub fn first(&self) -> Option<(u64, u64)> {
        self.0.first().copied()
    }

    /// Adds `start..end`; returns whether any position was new.
    pub fn insert(&mut self, start: u64, end: u64) -> bool {
        if start >= end {
            return false;
        }
        match self.0.last_mut() {
            Some(last) if last.1 == start => {
                last.1 = end;
                return true;
            }
            Some(last) if last.1 > start => {}
            _ => {
                self.0.push((start, end));
                return true;
            }
        }
        let from = self.0.partition_point(|r| r.1 < start);
        let to = self.0.partition_point(|r| r.0 <= end);
        if from == to {
            self.0.insert(from, (start, end));
            return true;
        }
        let (first, last) = (self.0[from], self.0[to - 1]);
        if from + 1 == to && first.0 <= start && end <= first.1 {
            return false;
        }
        self.0[from] = (first.0.min(start), last.1.max(end));
        self.0.drain(from + 1..to);
        true
    }

    /// Takes `start..end` out.
    pub fn remove(&mut self, start: u64, end: u64) {
        let from = self.0.partition_point(|r| r.1 <= start);
        let to = self.0.partition_point(|r| r.0 < end);
        if from >= to || start >= end {
            return;
        }
        let left = (self.0[from].0, start);
        let right = (end, self.0[to - 1].1);
        let keep = [left, right].into_iter().filter(|r| r.0 < r.1);
        self.0.splice(from..to, keep);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against a plain bitmap: same members, same answers, and the form stays canonical.
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
                    prop_assert_eq!(ranges.0.iter().any(|r| r.0 <= i && i < r.1), *bit);
                }
                prop_assert!(ranges.0.windows(2).all(|w| w[0].1 < w[1].0));
            }
        }
    }
}
