//! Gaps of a direction: uncaptured bytes below captured ones.

use std::collections::BTreeMap;

use lasthop_proto::units::Time;

/// Maximum number of gaps stored for each direction; beyond it, the lowest gap counts as captured.
const GAPS: usize = 1024;

/// The packet after a gap: its time, and the numbers of its sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Behind {
    pub(super) at: Time,
    pub(super) ip_id: Option<u16>,
    pub(super) timestamp: Option<u32>,
    /// The larger payload of the packets before and behind the gap.
    pub(super) len: u32,
}

/// A gap that a packet has filled.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Filled {
    /// Number of bytes captured for the first time.
    pub(super) bytes: u64,
    /// The unacknowledged ones of these bytes.
    pub(super) open: u64,
    /// The packet behind the oldest of these gaps.
    pub(super) behind: Option<Behind>,
    /// The oldest of these gaps before it was filled: from its first offset to one past the last.
    pub(super) gap: Option<(i64, i64)>,
}

/// Gaps by their first offset; they do not overlap.
#[derive(Clone, Debug, Default)]
pub(super) struct Gaps(BTreeMap<i64, (i64, Behind)>);

impl Gaps {
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Bytes of gaps that begin at `first` or later, below `una`. A gap of one byte may be an accepted window probe.
    pub(super) fn acked(&self, first: i64, una: i64) -> u64 {
        let gaps = self.0.range(first..).map(|(from, (to, _))| (*to).min(una) - from);
        gaps.filter(|len| *len > 1).map(|len| len as u64).sum()
    }

    /// Bytes of gaps that no ACK up to `una` covers.
    pub(super) fn open(&self, una: i64) -> u64 {
        self.0.iter().map(|(from, (to, _))| (to - una.max(*from)).max(0) as u64).sum()
    }

    pub(super) fn add(&mut self, from: i64, to: i64, behind: Behind) {
        if self.0.len() >= GAPS {
            self.0.pop_first();
        }
        self.0.insert(from, (to, behind));
    }

    /// Removes `start..end` from the gaps; bytes below `una` have been acknowledged.
    pub(super) fn fill(&mut self, start: i64, end: i64, una: i64) -> Filled {
        let mut filled = Filled::default();
        // At most one gap begins before `start` and reaches into the range.
        let before = self.0.range(..start).next_back().map(|(&from, _)| from);
        let first = before.unwrap_or(start);
        while let Some((&from, &(to, behind))) =
            self.0.range(first..end).find(|(_, (to, _))| *to > start)
        {
            self.0.remove(&from);
            if from < start {
                self.0.insert(from, (start, behind));
            }
            if to > end {
                self.0.insert(end, (to, behind));
            }
            filled.add((from.max(start), to.min(end)), (from, to), una, behind);
        }
        filled
    }
}

impl Filled {
    /// The bytes `from..to` of `gap`, before the packet `behind`.
    pub(super) fn add(
        &mut self,
        (from, to): (i64, i64),
        gap: (i64, i64),
        una: i64,
        behind: Behind,
    ) {
        let open = (to - from.max(una)).max(0) as u64;
        self.bytes += (to - from) as u64;
        self.open += open;
        if open > 0 && self.behind.is_none_or(|older| behind.at < older.at) {
            (self.behind, self.gap) = (Some(behind), Some(gap));
        }
    }
}
