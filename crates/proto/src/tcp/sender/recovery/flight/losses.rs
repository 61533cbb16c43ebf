//! Loss marks of the segments in flight.

use super::{Flight, Judgement, Mark, SentSegment};
use crate::tcp::sender::Window;

impl Flight {
    /// Number of segments that count as lost, including retransmitted ones, and number of retransmitted and unreported
    /// segments.
    pub fn lost_and_repeated(&self) -> (u32, u32) {
        self.records.iter().fold((0, 0), |(lost, again), sent| {
            let repeats = sent.is_repeated();
            let marked = sent.lost || repeats && sent.mark == Mark::Repaired;
            (lost + u32::from(marked), again + u32::from(repeats))
        })
    }

    /// Whether any segment is lost, or was retransmitted and not reported.
    pub fn is_unsettled(&self) -> bool {
        self.records.iter().any(|r| r.lost || r.again && !r.sacked)
    }

    /// Whether Linux sees something to repair: a lost segment, a retransmission in flight, or an oldest segment that was
    /// sent more than once (`tcp_try_keep_open`, `tcp_any_retrans_done`).
    pub fn is_disordered(&self) -> bool {
        let head = self.first().is_some_and(|r| r.again);
        head || self.records.iter().any(|r| r.lost || r.is_repeated())
    }

    /// Whether any segment counts as lost, including retransmitted and unreported ones.
    pub fn has_losses(&self) -> bool {
        self.records.iter().any(|r| r.lost || r.mark == Mark::Repaired && !r.sacked)
    }

    /// Marks the segments that `verdict` declares lost. It is called for those in the network, in the order of their
    /// transmission, until it returns [`Judgement::Later`]. Returns the number of newly lost bytes.
    pub fn judge(&mut self, mut verdict: impl FnMut(&SentSegment) -> Judgement) -> u64 {
        let (before, mut found) = (self.lost, 0);
        let mut i = self.index(self.first_pending);
        let mut decided = true;
        while let Some(r) = self.records.get(i) {
            let to = r.to();
            if r.pending() && !r.again && r.mark != Mark::Spurious {
                match verdict(r) {
                    Judgement::Lost => self.judge_lost(i),
                    Judgement::Wait | Judgement::Arrived => decided = false,
                    Judgement::Later => break,
                }
            }
            if decided {
                self.first_pending = to;
            }
            i += 1;
        }
        let mut i = 0;
        while let Some((from, order)) = self.repeated.get(i).copied() {
            let record = self.repeated_at(from, order);
            match record.map(|at| verdict(&self.records[at])) {
                Some(Judgement::Later) => break,
                Some(Judgement::Wait | Judgement::Arrived) => i += 1,
                None if i > 0 => i += 1,
                None => drop(self.repeated.pop_front()),
                Some(Judgement::Lost) => {
                    let Some(at) = record else { continue };
                    if from < self.reverted_to && self.records[at].is_reverted() {
                        // Linux takes the reverted retransmission for that of this loss (`tcp_mark_skb_lost`).
                        self.records[at].mark = Mark::Repaired;
                        found += self.records[at].bytes();
                        self.repeated.remove(i);
                    } else {
                        self.judge_lost(at);
                    }
                }
            }
        }
        self.lost - before + found
    }

    /// Marks the record at `index` as lost because later segments have arrived.
    pub(super) fn judge_lost(&mut self, index: usize) {
        self.lose(index);
        if self.records[index].mark != Mark::Spurious {
            self.records[index].mark = Mark::Detected;
        }
    }

    /// Marks the record at `index` as lost, if it is in the network.
    pub(super) fn lose(&mut self, index: usize) {
        if let Some(r) = self.records.get_mut(index).filter(|r| r.pending()) {
            r.lost = true;
            self.lost += r.bytes();
            self.lost_segments += 1;
            self.pipe -= r.bytes();
            self.lost_from = self.lost_from.min(r.from);
        }
    }

    /// Marks unreported segments of more than `most` bytes as lost. Returns whether there were any.
    pub fn lose_larger(&mut self, most: u32) -> bool {
        let larger = |r: &SentSegment| r.len > most && !r.sacked;
        for i in 0..self.records.len() {
            if larger(&self.records[i]) {
                self.lose(i);
            }
        }
        self.records.iter().any(larger)
    }

    /// Prepares the retransmission of the lost segment from `from` to `to`, and returns its end. As in Linux, a buffer is
    /// split anew if the segment size has changed (`tcp_fragment`). A partial segment gets the following ones that fit as a
    /// whole and are alone in their buffer (`tcp_retrans_try_collapse`).
    pub fn resegment(&mut self, (from, to): (u64, u64), w: &Window) -> u64 {
        let Some(mut index) = self.position(from) else { return to };
        let (mss, first) = (u64::from(w.payload()), self.records[index]);
        // A FIN has a position, and no data.
        let data = |from: u64, to: u64| to.min(w.end) - from.min(w.end);
        let (size, limit) = (data(from, to), w.una + u64::from(w.peer));
        let permitted = |r: &SentSegment| size > mss || r.to() <= limit;
        let rest = |r: &SentSegment| r.lost && r.order == first.order && permitted(r);
        if size != mss {
            while let Some(next) = self.records.get(index + 1).copied().filter(rest) {
                self.records.remove(index + 1);
                self.absorb(index, &next);
            }
        }
        // A buffer that is smaller than a segment takes others. A segment that was only counted is not known to have
        // arrived (`tcp_adjust_pcount`).
        let partial = data(from, self.records[index].to()) < mss && !self.continues(from);
        let counted = self.board.bytes() == 0;
        while partial
            && let Some(next) = self.records.get(index + 1).copied()
            && (counted || !next.sacked)
        {
            let after = self.records.get(index + 2).map(|after| after.order);
            let alone = next.order != first.order && after != Some(next.order);
            let fits = data(from, next.to()) <= mss && next.to() <= limit;
            if !alone || !fits || w.ends_record(next.from) {
                break;
            }
            self.records.remove(index + 1);
            self.absorb(index, &next);
        }
        while data(self.records[index].from, self.records[index].to()) > mss {
            let whole = self.records[index];
            if !self.divide(whole.from, w.payload()) {
                break;
            }
            index += 1;
        }
        self.position(from).map_or(to, |i| self.records[i].to())
    }

    /// Divides the buffer of the oldest segment anew, after an ACK of a part of this segment, which had `len` bytes. Returns
    /// whether there is one segment less (`tcp_tso_acked`).
    pub(super) fn trim_buffer(&mut self, len: u32) -> bool {
        let first = self.records[0];
        let rest = self.records.iter().skip(1).take_while(|r| self.is_one_buffer(&first, r));
        let (count, size) = rest.fold((0, len), |(n, size), r| (n + 1, size.max(r.len)));
        self.recut(0, count + 1, size);
        let emptied = self.records[count].len == 0;
        if emptied && let Some(last) = self.records.remove(count) {
            self.lost_segments -= usize::from(last.lost);
            self.sacked_segments -= usize::from(last.sacked);
        }
        emptied
    }

    /// Whether two segments are in one buffer: they were sent in one, and their fates do not differ. A segment that was only
    /// counted is not known to have arrived.
    pub(super) fn is_one_buffer(&self, one: &SentSegment, other: &SentSegment) -> bool {
        let counted = self.board.bytes() == 0;
        (one.order, one.lost, one.again) == (other.order, other.lost, other.again)
            && (counted || one.sacked == other.sacked)
    }

    /// Moves the limits of the `count` segments from `index` on, which are one buffer, so that all but the last one have
    /// `size` bytes.
    fn recut(&mut self, index: usize, count: usize, size: u32) {
        let (mut from, end) = (self.records[index].from, self.records[index + count - 1].to());
        for (i, r) in self.records.iter_mut().skip(index).take(count).enumerate() {
            let to = if i + 1 < count { end.min(from + u64::from(size)) } else { end };
            let in_network = |r: &SentSegment| if r.pending() { r.bytes() } else { 0 };
            let before = in_network(r);
            (r.from, r.len) = (from, (to - from) as u32);
            self.pipe = self.pipe + in_network(r) - before;
            from = to;
        }
    }

    /// Appends the removed record `next` to the lost one at `index`.
    fn absorb(&mut self, index: usize, next: &SentSegment) {
        if next.lost {
            self.lost_segments -= 1;
        } else {
            self.lost += next.bytes();
            self.sacked_segments -= usize::from(next.sacked);
            self.pipe -= if next.sacked { 0 } else { next.bytes() };
        }
        let r = &mut self.records[index];
        r.len += next.bytes() as u32;
        r.again |= next.again;
    }

    /// Splits the segment that begins at `from` after `len` bytes, so that a shorter one can be sent again. Returns
    /// false if there is no room for another record.
    pub fn divide(&mut self, from: u64, len: u32) -> bool {
        let Some(i) = self.position(from).filter(|_| !self.is_full()) else { return false };
        let whole = self.records[i];
        if whole.len > len {
            self.records[i].len = len;
            let (from, len) = (from + u64::from(len), whole.len - len);
            self.records.insert(i + 1, SentSegment { from, len, ..whole });
            self.lost_segments += usize::from(whole.lost);
            self.sacked_segments += usize::from(whole.sacked);
        }
        true
    }

    /// Divides the last buffer into as many segments as before, of `mss` bytes, and returns the start of the last one, or of
    /// the buffer if `mss` has grown so much that fewer hold it (`tcp_send_loss_probe`).
    pub fn recut_last(&mut self, mss: u32) -> Option<u64> {
        let last = *self.records.back()?;
        let records = self.records.iter().rev();
        let count = records.take_while(|r| self.is_one_buffer(&last, r)).count();
        let index = self.records.len() - count;
        let first = self.records[index].from;
        let from = first + (count as u64 - 1) * u64::from(mss);
        if from >= last.to() {
            return Some(first);
        }
        self.recut(index, count, mss);
        Some(from)
    }

    /// Number of segments from `from` to `to` that were retransmitted, and the first position of those that are reported. Linux
    /// searches for the segment at `from`, so it finds none if that one is acknowledged (`tcp_sacktag_bsearch`).
    pub fn repeated_within(&self, from: u64, to: u64) -> (u64, Option<u64>) {
        let within = |r: &&SentSegment| r.again && r.from >= from && r.to() <= to;
        if self.first().is_none_or(|first| first.from > from) {
            return (0, None);
        }
        let found = || self.records.iter().filter(within);
        (found().count() as u64, found().find(|r| r.sacked).map(|r| r.from))
    }

    /// Number of retransmissions in flight, without tail loss probes.
    pub fn repeated(&self) -> u64 {
        let records = self.repeated.iter();
        let records = records.filter_map(|(from, order)| self.repeated_at(*from, *order));
        records.filter(|i| self.records[*i].is_repeated()).count() as u64
    }

    /// Removes all loss marks. Loss detection ignores segments that waited for their retransmission until they are
    /// retransmitted: in Linux they are not in RACK's queue (`tcp_undo_cwnd_reduction`, `tcp_rack_detect_loss`).
    pub fn revert_losses(&mut self) {
        for r in &mut self.records {
            if core::mem::take(&mut r.lost) {
                self.pipe += r.bytes();
                if r.mark == Mark::Detected {
                    r.mark = Mark::Spurious;
                } else if r.again {
                    r.mark = Mark::Uncounted;
                    self.repeated.push_back((r.from, r.order));
                }
            }
            // A reported retransmission is not in flight any more.
            if r.mark == Mark::Repaired && !r.sacked {
                r.mark = Mark::None;
                self.reverted_to = r.to();
            }
        }
        (self.lost, self.lost_segments) = (0, 0);
        (self.lost_from, self.first_pending) = (u64::MAX, 0);
        self.sort_repeated();
    }

    /// Removes all reports, and the arrivals that were counted.
    pub fn forget_reports(&mut self) {
        if core::mem::take(&mut self.sacked_segments) == 0 {
            return;
        }
        self.board.clear();
        for r in self.records.iter_mut().filter(|r| r.sacked) {
            r.sacked = false;
            self.pipe += r.bytes();
            if r.again {
                self.repeated.push_back((r.from, r.order));
            }
        }
        self.first_pending = 0;
        self.sort_repeated();
    }

    /// Restores the order of transmission after records have returned.
    fn sort_repeated(&mut self) {
        self.repeated.make_contiguous().sort_unstable_by_key(|(from, order)| (*order, *from));
    }

    /// Marks segments as lost after a timeout: the first buffer, and others for which `verdict` is true. Calls `each`
    /// for marked segments that were in the network. If the first one was reported, the receiver has discarded the
    /// reported data, so all reports are removed, and all segments are lost.
    //= rfc2018#section-8: a timeout with the first segment reported shows that the receiver has reneged
    //= rfc8985#section-6.3: the first segment, and those sent more than a round trip and the reordering window ago
    pub fn expire(
        &mut self,
        verdict: impl Fn(&SentSegment) -> bool,
        mut each: impl FnMut(&SentSegment),
    ) {
        let reneged = self.records.front().is_some_and(|r| r.sacked);
        if reneged {
            self.forget_reports();
        }
        let oldest = self.records.front().map_or(0, |r| r.order);
        for i in 0..self.records.len() {
            let r = &self.records[i];
            if r.order == oldest || reneged || verdict(r) {
                if r.pending() {
                    each(r);
                }
                self.lose(i);
            }
        }
    }

    /// Start and end position of the lowest lost segment that waits for its retransmission. A segment beyond `limit` is
    /// split there, and its rest continues to wait.
    pub fn next_lost(&mut self, limit: u64) -> Option<(u64, u64)> {
        if self.lost == 0 {
            self.lost_from = u64::MAX;
            return None;
        }
        let mut i = self.index(self.lost_from);
        while self.records.get(i).is_some_and(|r| !r.lost) {
            i += 1;
        }
        let r = self.records.get(i).copied()?;
        self.lost_from = r.from;
        if r.from >= limit {
            return None;
        }
        let ends = r.to() > limit && self.divide(r.from, (limit - r.from) as u32);
        Some((r.from, if ends { limit } else { r.to() }))
    }
}
