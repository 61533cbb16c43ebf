//! The record of what is in flight: for each segment when it was last sent, whether it was sent more than once, and
//! what is known of its fate. Every sender that must know more than the edges keeps one of these: RACK, SMART, SCPS-TP
//! and Vegas.
//!
//! A record is a segment as it was sent. Each is reported, lost and waiting to be sent again, or in the network. There
//! are two ways to note what is sent. By [`Flight::sent`] records lie side by side and cover what has been sent and not
//! cumulatively acknowledged, and what is sent again is whole records. By [`Flight::put`] a segment is known by its
//! first position, under which an ACK names it; after [`Flight::clear`] the records begin anew, with what is sent then.

mod losses;

use std::collections::VecDeque;

use crate::units::Time;

use super::rate::Stamp;
use super::scoreboard::Scoreboard;
use super::{Chunk, Window};

/// A sender keeps no more records. At 1460 bytes that is 95 MB in flight.
const RECORDS_MAX: usize = 1 << 16;

/// Segments that are known by their first position: beyond these, what is sent is left to what needs no record.
const NAMED_MAX: usize = 1 << 14;

/// A segment that was sent.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// Its first position.
    pub from: u64,
    /// Its bytes. A record fills one line of the cache.
    len: u32,
    /// When it was last sent.
    pub at: Time,
    /// Which transmission of the connection that was, if they are counted.
    pub order: u64,
    /// Whether it was sent more than once.
    pub again: bool,
    /// Whether the receiver has reported it.
    pub sacked: bool,
    /// Whether it counts as lost and waits to be sent again.
    pub lost: bool,
    /// Why it was sent again, or counts as lost.
    mark: Mark,
    /// What had been delivered when it was last sent, if that is measured.
    pub stamp: Stamp,
}

const _: () = assert!(size_of::<Sent>() == 64);

/// What is known of the losses and retransmissions of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mark {
    /// Nothing.
    None,
    /// It was found to be lost because later segments have arrived.
    Judged,
    /// It was sent again to repair its loss.
    Repaired,
    /// A tail loss probe sent it again.
    Probed,
    /// Its loss proved to be none. It is not judged again until it is sent again.
    Forgiven,
}

impl Sent {
    /// Positions `from` to `to`, sent for the first time.
    fn new(at: Time, from: u64, to: u64, stamp: Stamp) -> Sent {
        let len = (to - from) as u32;
        let mark = Mark::None;
        Sent { from, len, at, order: 0, again: false, sacked: false, lost: false, mark, stamp }
    }
    /// One past its last position.
    pub fn to(&self) -> u64 {
        self.from + self.bytes()
    }
    /// Bytes of it.
    pub fn bytes(&self) -> u64 {
        self.len.into()
    }
    fn pending(&self) -> bool {
        !self.sacked && !self.lost
    }
    /// Whether a retransmission is under way that is no tail loss probe.
    fn is_repeated(&self) -> bool {
        self.again && self.pending() && !matches!(self.mark, Mark::Forgiven | Mark::Probed)
    }
}

/// What is in flight.
#[derive(Clone, Debug, Default)]
pub struct Flight {
    records: VecDeque<Sent>,
    board: Scoreboard,
    /// Bytes believed to be in the network.
    pipe: u64,
    /// Bytes lost and not sent again.
    lost: u64,
    /// Segments that the receiver has reported.
    sacked_segments: usize,
    /// No record below is lost.
    lost_from: u64,
    /// Records below are reported, lost, or were sent more than once.
    first_pending: u64,
    /// Retransmissions in the order in which they were sent: position and time. Those that mean nothing any more
    /// are dropped when they are met.
    repeated: VecDeque<(u64, Time)>,
    /// Transmissions that were counted.
    order: u64,
}

impl Flight {
    /// Bytes believed to be in the network: neither reported nor lost.
    pub fn pipe(&self) -> u64 {
        self.pipe
    }

    /// Bytes that are lost and wait to be sent again.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Segments that the receiver has reported and not yet acknowledged.
    pub fn sacked_segments(&self) -> usize {
        self.sacked_segments
    }

    /// Bytes that the receiver has reported and not yet acknowledged.
    pub fn reported(&self) -> u64 {
        self.board.bytes()
    }

    /// Whether nothing is outstanding.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Whether no further record may be kept.
    pub fn is_full(&self) -> bool {
        self.records.len() >= RECORDS_MAX
    }

    /// How many segments are outstanding.
    pub fn segments(&self) -> usize {
        self.records.len()
    }

    /// The segment with the lowest positions.
    pub fn first(&self) -> Option<&Sent> {
        self.records.front()
    }

    /// The segment with the highest positions.
    pub fn last(&self) -> Option<&Sent> {
        self.records.back()
    }

    /// The first record that ends above `position`.
    fn index(&self, position: u64) -> usize {
        // Nearly always the oldest one is asked for, or one that is not there yet.
        match (self.records.front(), self.records.back()) {
            (Some(first), _) if first.to() > position => 0,
            (_, Some(last)) if last.to() <= position => self.records.len(),
            _ => self.records.partition_point(|r| r.to() <= position),
        }
    }

    /// The segment that begins at `from`.
    pub fn find(&self, from: u64) -> Option<&Sent> {
        // Nearly always the first one.
        self.records.iter().find(|r| r.from == from)
    }

    fn position(&self, from: u64) -> Option<usize> {
        // Nearly always the oldest one.
        if self.records.front().is_some_and(|r| r.from == from) {
            return Some(0);
        }
        let i = self.records.partition_point(|r| r.from < from);
        self.records.get(i).is_some_and(|r| r.from == from).then_some(i)
    }

    /// The lowest segment that is lost: its first position and one past its last.
    pub fn first_lost(&self) -> Option<(u64, u64)> {
        let lost = self.records.iter().filter(|_| self.lost > 0).find(|r| r.lost);
        lost.map(|r| (r.from, r.to()))
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        *self = Flight { order: self.order, ..Flight::default() };
    }

    /// A segment leaves at `now` and is known by where it begins; `again` says whether it counts as sent before, if
    /// no record tells. What is below the left edge is forgotten.
    pub fn put(&mut self, now: Time, w: &Window, chunk: &Chunk, again: bool) {
        self.acknowledge(w.una, |_, _| {});
        self.order += 1;
        let (from, to, order) = (chunk.from, chunk.end(), self.order);
        if self.records.back().is_none_or(|last| from >= last.to()) {
            if self.records.len() < NAMED_MAX {
                self.push(Sent { order, again, ..Sent::new(now, from, to, Stamp::default()) });
            }
        } else if let Some(i) = self.position(from) {
            let r = &mut self.records[i];
            if core::mem::take(&mut r.lost) {
                self.lost -= r.bytes();
                self.pipe += r.bytes();
            }
            // One that grew since, or that a probe had cut, is known by what went out last.
            let more = to.saturating_sub(r.to());
            r.len += more as u32;
            (r.at, r.order, r.again) = (now, order, true);
            if !r.sacked {
                self.pipe += more;
            }
        }
    }

    fn push(&mut self, new: Sent) {
        self.pipe += new.bytes();
        self.records.push_back(new);
    }

    /// Positions `from` to `to` leave at `now`, for the first time or again; `stamp` is what had been delivered.
    pub fn sent(&mut self, now: Time, from: u64, to: u64, stamp: Stamp) {
        self.sent_as(now, (from, to), stamp, false);
    }

    /// The same; `probe` says that it is a tail loss probe.
    pub fn sent_as(&mut self, now: Time, (from, to): (u64, u64), stamp: Stamp, probe: bool) {
        let end = self.records.back().map_or(from, |r| r.to());
        let mut i = self.index(from);
        while let Some(r) = self.records.get_mut(i).filter(|r| r.to() <= to) {
            i += 1;
            if r.from < from || r.sacked {
                continue;
            }
            if core::mem::take(&mut r.lost) {
                self.lost -= r.bytes();
                self.pipe += r.bytes();
                r.mark = Mark::Repaired;
            } else if r.mark != Mark::Repaired {
                r.mark = if probe { Mark::Probed } else { Mark::None };
            }
            (r.at, r.again, r.stamp) = (now, true, stamp);
            self.repeated.push_back((r.from, now));
        }
        if to > end {
            self.push(Sent::new(now, from.max(end), to, stamp));
        }
        if self.repeated.len() > 2 * self.records.len() + 16 {
            self.forget_stale();
        }
    }

    /// Drops what `repeated` holds about segments that were acknowledged, lost or sent again since.
    fn forget_stale(&mut self) {
        let mut kept = core::mem::take(&mut self.repeated);
        kept.retain(|(from, at)| self.repeated_at(*from, *at).is_some());
        self.repeated = kept;
    }

    /// The record of the retransmission of `from` at `at`, if that is its last one and it is in the network.
    fn repeated_at(&self, from: u64, at: Time) -> Option<usize> {
        let i = self.index(from);
        let r = self.records.get(i)?;
        (r.from <= from && r.again && r.at == at && r.pending() && r.mark != Mark::Forgiven)
            .then_some(i)
    }

    /// Everything below `una` has arrived; `each` is called for each segment that this concerns, with how many of its
    /// bytes.
    #[inline]
    pub fn acknowledge(&mut self, una: u64, mut each: impl FnMut(&Sent, u64)) {
        while let Some(r) = self.records.front_mut().filter(|r| r.from < una) {
            let gone = una.min(r.to()) - r.from;
            if r.sacked {
                self.sacked_segments -= usize::from(r.to() <= una);
            } else if r.lost {
                self.lost -= gone;
            } else {
                self.pipe -= gone;
            }
            each(r, gone);
            if r.to() > una {
                r.from = una;
                r.len -= gone as u32;
                break;
            }
            self.records.pop_front();
        }
        self.board.acknowledge(una);
    }

    /// The receiver reports `from` to `to`; `each` is called for each segment of which that is news. Whether
    /// anything is.
    pub fn report(&mut self, from: u64, to: u64, mut each: impl FnMut(&Sent)) -> bool {
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

    /// The receiver has the segment that begins at `from`: which transmission of it that was, if that is news.
    pub fn arrived(&mut self, from: u64) -> Option<u64> {
        let i = self.position(from).filter(|i| !self.records[*i].sacked)?;
        self.arrive(i);
        Some(self.records[i].order)
    }

    /// The record at `index` is reported.
    fn arrive(&mut self, index: usize) {
        let r = &mut self.records[index];
        r.sacked = true;
        self.sacked_segments += 1;
        if core::mem::take(&mut r.lost) {
            self.lost -= r.bytes();
        } else {
            self.pipe -= r.bytes();
        }
    }

    /// Looks at what has not been reported, lowest first, until `verdict` answers [`Judgement::Later`]. Whether it
    /// found anything lost or reported.
    pub fn review(&mut self, mut verdict: impl FnMut(&Sent) -> Judgement) -> bool {
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

/// What is thought of a segment in the network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Judgement {
    /// It is lost.
    Lost,
    /// It may be; that will be seen later.
    Wait,
    /// It has arrived.
    Arrived,
    /// Nothing can be said yet, and neither about what was sent after it.
    Later,
}

#[cfg(test)]
mod tests;
