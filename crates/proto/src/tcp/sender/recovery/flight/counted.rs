//! Arrivals that the receiver does not report. Without SACK a duplicate ACK shows that one segment has arrived, but not
//! which one. The lowest behind the oldest are taken, so that the next ACK of new data removes them (`sacked_out`).

use super::{Flight, Mark, SentSegment};

impl Flight {
    /// Counts one more arrived segment. Returns false if all but the oldest and the lost ones are counted.
    pub fn count_arrival(&mut self) -> bool {
        let is_free = |r: &SentSegment| r.pending() && r.mark != Mark::Repaired;
        // Each counted segment is behind the oldest one.
        let mut rest = (self.sacked_segments + 1)..self.records.len();
        let free = rest.find(|i| is_free(&self.records[*i]));
        free.into_iter().for_each(|i| self.arrive(i));
        free.is_some()
    }

    /// Counts another segment in place of the oldest, which has not arrived. Returns false if there is no other.
    pub fn miss_oldest(&mut self) -> bool {
        let Some(first) = self.records.front_mut().filter(|first| first.sacked) else {
            return true;
        };
        first.sacked = false;
        self.pipe += first.bytes();
        self.sacked_segments -= 1;
        self.count_arrival()
    }

    /// Keeps the lowest `most` of the counted segments only (`tcp_remove_reno_sacks`).
    pub fn keep_counted(&mut self, most: usize) {
        let mut excess = self.sacked_segments.saturating_sub(most);
        for r in self.records.iter_mut().rev().filter(|r| r.sacked) {
            if excess == 0 {
                return;
            }
            r.sacked = false;
            self.pipe += r.bytes();
            self.sacked_segments -= 1;
            excess -= 1;
        }
    }

    /// Marks the oldest segment as lost, unless it was marked before. Calls `each` for it, and returns its bytes.
    pub fn lose_oldest(&mut self, each: impl FnOnce(&SentSegment)) -> u64 {
        let first = self.records.front().filter(|r| r.pending() && r.mark != Mark::Repaired);
        let Some(first) = first.copied() else { return 0 };
        each(&first);
        self.judge_lost(0);
        first.bytes()
    }
}
