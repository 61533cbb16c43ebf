//! Records of the segments in flight: time of the last transmission, number of transmissions, and fate. They are used
//! by all senders for which the edges are not sufficient: RACK, SMART, SCPS-TP and Vegas.
//!
//! A record is a segment as it was sent. It is reported by the receiver, or lost and waiting for its retransmission,
//! or in the network. There are two methods to record a transmission. With [`Flight::sent`] the records are
//! contiguous and cover all data that is not cumulatively acknowledged; whole records are retransmitted. With
//! [`Flight::put`] a record is identified by the first position of its segment, as in an ACK that names it. After
//! [`Flight::clear`] the records start with the next transmission.

mod counted;
mod losses;

use std::collections::VecDeque;

use crate::units::Time;

use super::scoreboard::Scoreboard;
use crate::tcp::sender::congestion_control::rate::Stamp;
use crate::tcp::sender::{Chunk, Window};

/// Maximum number of records: 95 MB in flight with segments of 1460 bytes.
const RECORDS_MAX: usize = 1 << 16;

/// Maximum number of records by [`Flight::put`]. Further segments have no record.
const NAMED_MAX: usize = 1 << 14;

/// A segment that was sent.
#[derive(Clone, Copy, Debug)]
pub struct SentSegment {
    /// First position.
    pub from: u64,
    /// Length in bytes, 32 bits: a record occupies exactly one cache line.
    len: u32,
    /// Time of the last transmission.
    pub at: Time,
    /// Number of that transmission in the connection. Segments of one buffer have the same one.
    pub order: u64,
    /// Whether it was sent more than once.
    pub again: bool,
    /// Whether the receiver has reported it.
    pub sacked: bool,
    /// Whether it counts as lost and waits for its retransmission.
    pub lost: bool,
    /// History of its losses and retransmissions.
    mark: Mark,
    /// State of delivery at the last transmission, if the delivery rate is measured.
    pub stamp: Stamp,
}

const _: () = assert!(size_of::<SentSegment>() == 64);

/// History of the losses and retransmissions of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mark {
    /// No loss and no retransmission.
    None,
    /// It was marked as lost because later segments have arrived.
    Detected,
    /// It was retransmitted to repair its loss.
    Repaired,
    /// It was sent again, but is not counted as a retransmission in flight: a tail loss probe has sent it, or the
    /// retransmission was lost by a timeout that was reverted.
    Uncounted,
    /// Its loss was spurious. Loss detection ignores it until its retransmission.
    Spurious,
}

impl SentSegment {
    /// Positions `from` to `to`, sent for the first time.
    fn new(at: Time, order: u64, (from, to): (u64, u64), stamp: Stamp) -> SentSegment {
        let (len, mark) = ((to - from) as u32, Mark::None);
        let (again, sacked, lost) = (false, false, false);
        SentSegment { from, len, at, order, again, sacked, lost, mark, stamp }
    }
    /// One past its last position.
    pub fn to(&self) -> u64 {
        self.from + self.bytes()
    }
    /// Length in bytes.
    pub fn bytes(&self) -> u64 {
        self.len.into()
    }
    fn pending(&self) -> bool {
        !self.sacked && !self.lost
    }
    fn is_reverted(&self) -> bool {
        self.again && !self.lost && self.mark == Mark::None
    }
    /// Whether a retransmission is in flight that counts.
    fn is_repeated(&self) -> bool {
        self.again && self.pending() && !matches!(self.mark, Mark::Spurious | Mark::Uncounted)
    }
}

/// The segments in flight.
#[derive(Clone, Debug, Default)]
pub struct Flight {
    records: VecDeque<SentSegment>,
    board: Scoreboard,
    /// Estimated bytes in the network.
    pipe: u64,
    /// Bytes that are lost and not retransmitted, and number of such segments.
    lost: u64,
    lost_segments: usize,
    /// Number of segments that the receiver has reported.
    sacked_segments: usize,
    /// No record below this position is lost.
    lost_from: u64,
    /// Records below this position are reported, lost, or were sent more than once.
    first_pending: u64,
    /// Retransmissions in the order of sending: position and number of the transmission. Obsolete entries are removed
    /// when they are visited.
    repeated: VecDeque<(u64, u64)>,
    /// Number of transmissions.
    order: u64,
    /// End of the last retransmission, and the number of its transmission before.
    last_repeat: (u64, u64),
    /// One past the last segment whose loss was reverted after its retransmission.
    reverted_to: u64,
    /// Bytes that ACKs have removed from the oldest segment since it was sent, if it is alone in its buffer.
    cut: u32,
}

/// How a segment is sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// As the first one of a buffer.
    Alone,
    /// In one buffer with the segment before it.
    Joined,
    /// As a tail loss probe.
    Probe,
}

impl Flight {
    /// Asserts that the sums agree with the records.
    pub fn check(&self) {
        self.board.check();
        debug_assert!(self.sacked_segments <= self.records.len(), "reported segments");
        if !cfg!(debug_assertions) || self.records.len() > 32 {
            return;
        }
        let mut end = None;
        let (mut sacked, mut lost) = (0, 0);
        for record in &self.records {
            debug_assert!(end.is_none_or(|end| end <= record.from), "records overlap");
            debug_assert!(!(record.sacked && record.lost), "a reported segment is not lost");
            debug_assert!(
                !record.lost || record.from >= self.lost_from,
                "a lost record below {}",
                self.lost_from
            );
            end = Some(record.from + u64::from(record.len));
            sacked += usize::from(record.sacked);
            lost += if record.lost { u64::from(record.len) } else { 0 };
        }
        debug_assert_eq!(sacked, self.sacked_segments, "reported segments");
        debug_assert_eq!(lost, self.lost, "lost bytes");
    }

    /// Estimated bytes in the network: neither reported nor lost.
    pub fn pipe(&self) -> u64 {
        self.pipe
    }

    /// Number of segments in the network as Linux counts them: neither reported nor lost. A retransmission whose loss was
    /// reverted counts apart from its original (`retrans_out`).
    pub fn pending(&self) -> u64 {
        (self.records.len() - self.sacked_segments - self.lost_segments + self.reverted()) as u64
    }

    /// Number of retransmissions whose loss was reverted, and not found again since.
    fn reverted(&self) -> usize {
        self.records
            .iter()
            .take_while(|r| r.from < self.reverted_to)
            .filter(|r| r.is_reverted())
            .count()
    }

    /// Whether Linux regards all losses as retransmitted (`tcp_xmit_retransmit_queue`).
    pub fn seems_repaired(&self) -> bool {
        self.reverted() >= self.lost_segments
    }

    /// Bytes that are lost and wait for their retransmission.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Number of segments that the receiver has reported and not cumulatively acknowledged.
    pub fn sacked_segments(&self) -> usize {
        self.sacked_segments
    }

    /// Bytes that the receiver has reported and not cumulatively acknowledged.
    pub fn reported(&self) -> u64 {
        self.board.bytes()
    }

    /// Whether no segment is outstanding.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Whether the maximum number of records is reached.
    pub fn is_full(&self) -> bool {
        self.records.len() >= RECORDS_MAX
    }

    /// Number of outstanding segments.
    pub fn segments(&self) -> usize {
        self.records.len()
    }

    /// The segment with the lowest positions.
    pub fn first(&self) -> Option<&SentSegment> {
        self.records.front()
    }

    /// The segment with the highest positions.
    pub fn last(&self) -> Option<&SentSegment> {
        self.records.back()
    }

    /// The first record that ends above `position`.
    fn index(&self, position: u64) -> usize {
        // The usual position is that of the oldest record, or one behind the last.
        match (self.records.front(), self.records.back()) {
            (Some(first), _) if first.to() > position => 0,
            (_, Some(last)) if last.to() <= position => self.records.len(),
            _ => self.records.partition_point(|r| r.to() <= position),
        }
    }

    /// The segment that begins at `from`.
    pub fn find(&self, from: u64) -> Option<&SentSegment> {
        // It is usually the first one, so a linear search is fast.
        self.records.iter().find(|r| r.from == from)
    }

    fn position(&self, from: u64) -> Option<usize> {
        // It is usually the oldest one.
        if self.records.front().is_some_and(|r| r.from == from) {
            return Some(0);
        }
        let i = self.records.partition_point(|r| r.from < from);
        self.records.get(i).is_some_and(|r| r.from == from).then_some(i)
    }

    /// Start and end position of the lowest lost segment.
    pub fn first_lost(&self) -> Option<(u64, u64)> {
        let lost = self.records.iter().filter(|_| self.lost > 0).find(|r| r.lost);
        lost.map(|r| (r.from, r.to()))
    }

    /// Removes all records.
    pub fn clear(&mut self) {
        *self = Flight { order: self.order, ..Flight::default() };
    }

    /// Records a segment that is sent at `now`, identified by its first position. `again` is whether it counts as a
    /// retransmission if there is no record of it. Removes the records below the left edge.
    pub fn put(&mut self, now: Time, w: &Window, chunk: &Chunk, again: bool) {
        self.acknowledge(w.una, |_, _, _| {});
        self.order += 1;
        let (from, to, order) = (chunk.from, chunk.end(), self.order);
        if self.records.back().is_none_or(|last| from >= last.to()) {
            if self.records.len() < NAMED_MAX {
                let sent = SentSegment::new(now, order, (from, to), Stamp::default());
                self.push(SentSegment { again, ..sent });
            }
        } else if let Some(i) = self.position(from) {
            let next = self.records.get(i + 1).map(|next| next.from);
            let r = &mut self.records[i];
            if core::mem::take(&mut r.lost) {
                self.lost -= r.bytes();
                self.lost_segments -= 1;
                self.pipe += r.bytes();
            }
            // The last transmission determines the length, which a probe may have cut before. Bytes of the next record
            // are counted there.
            let more = next.map_or(to, |next| to.min(next)).saturating_sub(r.to());
            r.len += more as u32;
            (r.at, r.order, r.again) = (now, order, true);
            if !r.sacked {
                self.pipe += more;
            }
        }
    }

    fn push(&mut self, new: SentSegment) {
        self.pipe += new.bytes();
        self.records.push_back(new);
    }

    /// Records that positions `from` to `to` are sent at `now`, for the first time or again; `stamp` is the state of
    /// delivery.
    pub fn sent(&mut self, now: Time, from: u64, to: u64, stamp: Stamp) {
        self.sent_as(now, (from, to), stamp, Way::Alone);
    }

    /// Like [`Flight::sent`], with the way of sending.
    ///
    /// A record that is only sent in part is divided. Without room for another record it counts as sent: otherwise the
    /// same part would be the next one to send, without end.
    pub fn sent_as(&mut self, now: Time, (from, to): (u64, u64), stamp: Stamp, way: Way) {
        let end = self.records.back().map_or(from, |r| r.to());
        self.order += u64::from(way != Way::Joined);
        let order = self.order;
        let mut i = self.index(from);
        if let Some(last) =
            self.records.get(self.index(to)).filter(|r| !r.sacked && (from..to).contains(&r.from))
        {
            self.divide(last.from, (to - last.from) as u32);
        }
        while let Some(r) = self.records.get_mut(i).filter(|r| r.from < to) {
            i += 1;
            if r.from < from || r.sacked {
                continue;
            }
            if core::mem::take(&mut r.lost) {
                self.lost -= r.bytes();
                self.lost_segments -= 1;
                self.pipe += r.bytes();
                r.mark = Mark::Repaired;
            } else if r.mark != Mark::Repaired {
                r.mark = if way == Way::Probe { Mark::Uncounted } else { Mark::None };
            }
            // A retransmission of the oldest segment begins at the left edge (`tcp_trim_head`).
            self.cut = if i == 1 { 0 } else { self.cut };
            self.last_repeat = (r.to(), r.order);
            (r.at, r.order, r.again, r.stamp) = (now, order, true, stamp);
            self.repeated.push_back((r.from, order));
        }
        if to > end {
            self.push(SentSegment::new(now, order, (from.max(end), to), stamp));
        }
        if self.repeated.len() > 2 * self.records.len() + 16 {
            self.forget_stale();
        }
    }

    /// Whether the segment from `from` on and the last retransmission, which ends there, were in one buffer.
    pub fn continues(&self, from: u64) -> bool {
        let next = self.position(from).map(|i| self.records[i].order);
        self.last_repeat.0 == from && next == Some(self.last_repeat.1)
    }

    /// Removes the entries of `repeated` for segments that were acknowledged, lost or retransmitted since.
    fn forget_stale(&mut self) {
        let mut remaining = core::mem::take(&mut self.repeated);
        remaining.retain(|(from, order)| self.repeated_at(*from, *order).is_some());
        self.repeated = remaining;
    }

    /// Index of the record for the retransmission of `from` with the number `order`, if it is the last one and in the
    /// network.
    fn repeated_at(&self, from: u64, order: u64) -> Option<usize> {
        let i = self.index(from);
        let r = self.records.get(i)?;
        // The oldest one may have lost its first part by an ACK.
        let same = r.order == order && (r.from <= from || i == 0);
        (same && r.again && r.pending() && r.mark != Mark::Spurious).then_some(i)
    }

    /// Removes the data below `una`. Calls `each` for each affected segment as it was sent, with the number of its removed
    /// bytes and of removed segments: a part of the last one may complete a segment of its buffer.
    #[inline]
    pub fn acknowledge(&mut self, una: u64, mut each: impl FnMut(&SentSegment, u64, usize)) {
        let mut before = None;
        while let Some(r) = self.records.front_mut().filter(|r| r.from < una) {
            let gone = una.min(r.to()) - r.from;
            if r.sacked {
                self.sacked_segments -= usize::from(r.to() <= una);
            } else if r.lost {
                self.lost -= gone;
                self.lost_segments -= usize::from(r.to() <= una);
            } else {
                self.pipe -= gone;
            }
            if r.to() > una {
                let whole = *r;
                r.from = una;
                r.len -= gone as u32;
                let mut others = self.records.get(1).into_iter().chain(&before);
                let alone = !others.any(|r| self.is_one_buffer(&whole, r));
                self.cut = if alone { self.cut + gone as u32 } else { 0 };
                let completed = self.trim_buffer(whole.len);
                each(&whole, gone, usize::from(completed));
                break;
            }
            let cut = core::mem::take(&mut self.cut);
            let sent = SentSegment { from: r.from - u64::from(cut), len: r.len + cut, ..*r };
            each(&sent, gone, 1);
            before = self.records.pop_front();
        }
        self.board.acknowledge(una);
    }

    /// Records a report of the receiver for `from` to `to`. Calls `each` for each newly reported segment. Returns
    /// whether the report has news.
    pub fn report(&mut self, from: u64, to: u64, mut each: impl FnMut(&SentSegment)) -> bool {
        let gaps: Vec<(u64, u64)> = self.board.gaps(from, to).collect();
        if gaps.is_empty() || !self.board.add(from, to) {
            return false;
        }
        // A segment may have been reported in parts.
        let Some(whole) = self.board.range_at(from) else { return false };
        for (from, to) in gaps {
            let mut i = self.index(from);
            while let Some(r) = self.records.get(i).filter(|r| r.from < to) {
                if !r.sacked && r.from >= whole.0 && r.to() <= whole.1 {
                    self.arrive(i);
                    each(&self.records[i]);
                }
                i += 1;
            }
        }
        true
    }

    /// Records the arrival of the segment from `from` on. Returns the number of its last transmission, if the arrival
    /// is news.
    pub fn arrived(&mut self, from: u64) -> Option<u64> {
        let i = self.position(from).filter(|i| !self.records[*i].sacked)?;
        self.arrive(i);
        Some(self.records[i].order)
    }

    /// Marks the record at `index` as reported.
    fn arrive(&mut self, index: usize) {
        let r = &mut self.records[index];
        r.sacked = true;
        self.sacked_segments += 1;
        if core::mem::take(&mut r.lost) {
            self.lost -= r.bytes();
            self.lost_segments -= 1;
        } else {
            self.pipe -= r.bytes();
        }
    }

    /// Calls `verdict` for the unreported segments, lowest first, until it returns [`Judgement::Later`]. Returns
    /// whether any segment was newly marked as lost or reported.
    pub fn review(&mut self, mut verdict: impl FnMut(&SentSegment) -> Judgement) -> bool {
        let mut news = false;
        for i in 0..self.records.len() {
            let r = &self.records[i];
            if r.sacked {
                continue;
            }
            match verdict(r) {
                Judgement::Lost => {
                    news |= r.pending();
                    self.lose(i);
                }
                Judgement::Arrived => {
                    news = true;
                    self.arrive(i);
                }
                Judgement::Wait => {}
                Judgement::Later => break,
            }
        }
        news
    }
}

/// Result of loss detection for a segment in the network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Judgement {
    /// It is lost.
    Lost,
    /// It may be lost; a later call decides.
    Wait,
    /// It has arrived.
    Arrived,
    /// There is no result yet for this segment and all later ones.
    Later,
}

#[cfg(test)]
mod tests;
