//! Data above the left edge that the receiver has reported by SACK blocks (RFC 6675 section 3).

/// Selectively acknowledged ranges: sorted, disjoint, not touching.
#[derive(Clone, Debug, Default)]
pub struct Scoreboard {
    ranges: Vec<(u64, u64)>,
}

/// Maximum number of ranges: a hostile peer could report fragments without end. No honest peer needs more.
const RANGES_MAX: usize = 1024;

impl Scoreboard {
    /// Asserts that the ranges are sorted and separate.
    pub fn check(&self) {
        debug_assert!(self.ranges.len() <= RANGES_MAX, "limit of ranges");
        debug_assert!(self.ranges.iter().take(16).all(|r| r.0 < r.1), "an empty range");
        debug_assert!(
            self.ranges.iter().take(16).is_sorted_by(|a, b| a.1 < b.0),
            "ranges that touch are merged"
        );
    }

    /// Adds a block. Returns whether it has news.
    pub fn add(&mut self, from: u64, to: u64) -> bool {
        if from >= to {
            return false;
        }
        // The first range that touches or follows the block, and the first beyond it.
        let first = self.ranges.partition_point(|r| r.1 < from);
        let beyond = self.ranges.partition_point(|r| r.0 <= to);
        if first == beyond {
            if self.ranges.len() >= RANGES_MAX {
                return false;
            }
            self.ranges.insert(first, (from, to));
            return true;
        }
        let merged = (self.ranges[first].0.min(from), self.ranges[beyond - 1].1.max(to));
        if beyond - first == 1 && merged == self.ranges[first] {
            return false;
        }
        self.ranges[first] = merged;
        self.ranges.drain(first + 1..beyond);
        true
    }

    /// Removes the data below the left edge.
    #[inline]
    pub fn acknowledge(&mut self, una: u64) {
        if self.ranges.is_empty() {
            return;
        }
        let gone = self.ranges.partition_point(|r| r.1 <= una);
        self.ranges.drain(..gone);
        if let Some(first) = self.ranges.first_mut() {
            first.0 = first.0.max(una);
        }
    }

    /// Removes all ranges.
    pub fn clear(&mut self) {
        self.ranges.clear();
    }

    /// The parts of `from` to `to` that no range covers, lowest first.
    pub fn gaps(&self, from: u64, to: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
        let first = self.ranges.partition_point(|r| r.1 <= from);
        let inside = self.ranges[first..].iter().copied().take_while(move |r| r.0 < to);
        let mut at = from;
        inside.chain([(to, to)]).filter_map(move |r| {
            let gap = (at, r.0.min(to));
            at = r.1.max(at);
            (gap.0 < gap.1).then_some(gap)
        })
    }

    /// The range that holds `position`.
    pub fn range_at(&self, position: u64) -> Option<(u64, u64)> {
        let i = self.ranges.partition_point(|r| r.1 <= position);
        self.ranges.get(i).copied().filter(|r| r.0 <= position)
    }

    /// All ranges.
    pub fn ranges(&self) -> &[(u64, u64)] {
        &self.ranges
    }

    /// Bytes in all ranges.
    pub fn bytes(&self) -> u64 {
        self.ranges.iter().map(|r| r.1 - r.0).sum()
    }

    /// One past the highest reported position.
    pub fn highest(&self) -> Option<u64> {
        self.ranges.last().map(|r| r.1)
    }

    /// The holes between `una` and the highest reported position, lowest first, each with the bytes and the
    /// number of ranges reported above it.
    pub fn holes(&self, una: u64) -> impl Iterator<Item = Hole> + '_ {
        let mut above = self.bytes();
        let mut from = una;
        self.ranges.iter().enumerate().filter_map(move |(i, r)| {
            let hole =
                Hole { from, to: r.0, sacked_above: above, ranges_above: self.ranges.len() - i };
            from = r.1;
            above -= r.1 - r.0;
            (hole.from < hole.to).then_some(hole)
        })
    }
}

/// A range that the receiver has not reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hole {
    /// Its first position.
    pub from: u64,
    /// One past its last position.
    pub to: u64,
    /// Bytes reported above it.
    pub sacked_above: u64,
    /// Disjoint ranges reported above it.
    pub ranges_above: usize,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn holes_report_the_sacked_bytes_above_them() {
        let mut board = Scoreboard::default();
        assert!(board.add(20, 30));
        assert!(board.add(40, 50));
        assert!(!board.add(22, 28));
        let holes: Vec<_> = board.holes(10).map(|h| (h.from, h.to, h.sacked_above)).collect();
        assert_eq!(holes, [(10, 20, 20), (30, 40, 10)]);
        assert!(board.add(30, 40));
        assert_eq!(board.ranges(), [(20, 50)]);
    }

    proptest! {
        #[test]
        fn the_scoreboard_equals_the_set_of_its_blocks(blocks in prop::collection::vec((0u64..60, 0u64..12), 0..40), una in 0u64..70) {
            let mut board = Scoreboard::default();
            let mut set = [false; 80];
            for (from, len) in blocks {
                let has_new = (from..from + len).any(|i| !set[i as usize]);
                let gaps: u64 = board.gaps(from, from + len).map(|(a, b)| b - a).sum();
                let missing = (from..from + len).filter(|i| !set[*i as usize]).count();
                prop_assert_eq!(gaps, missing as u64);
                set[from as usize..(from + len) as usize].fill(true);
                prop_assert_eq!(board.add(from, from + len), has_new);
                prop_assert!(len == 0 || board.range_at(from).is_some_and(|r| r.1 >= from + len));
            }
            board.acknowledge(una);
            set[..una as usize].fill(false);
            for i in 0..80u64 {
                let inside = board.ranges().iter().any(|r| r.0 <= i && i < r.1);
                prop_assert_eq!(inside, set[i as usize]);
            }
            prop_assert!(board.ranges().windows(2).all(|p| p[0].1 < p[1].0));
        }
    }
}
