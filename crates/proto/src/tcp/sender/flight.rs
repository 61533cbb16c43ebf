//! Records of what is in flight: for each segment when it was last sent, whether it was sent more than once, and
//! what the receiver has said about it. RACK decides from them what is lost, and rate samples come from them.
//!
//! A record is a segment as it was sent; records lie side by side and cover what has been sent and not cumulatively
//! acknowledged. Each is selectively acknowledged, lost and waiting to be sent again, or in the network.

use std::collections::VecDeque;

use crate::units::Time;

use super::rate::{RateMeter, Stamp};
use super::scoreboard::Scoreboard;

/// A sender keeps no more records; the window is bounded by them. At 1460 bytes that is 95 MB in flight.
const RECORDS_MAX: usize = 1 << 16;

/// A segment that was sent.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// Its first position.
    pub from: u64,
    /// One past its last position.
    pub to: u64,
    /// When it was last sent.
    pub at: Time,
    /// Whether it was sent more than once.
    pub again: bool,
    /// Whether the receiver has reported it.
    pub sacked: bool,
    /// Whether it counts as lost and waits to be sent again.
    pub lost: bool,
    /// What had been delivered when it was last sent.
    pub stamp: Stamp,
}

impl Sent {
    fn len(&self) -> u64 {
        self.to - self.from
    }
    fn pending(&self) -> bool {
        !self.sacked && !self.lost
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
    /// Measures the rate of delivery.
    pub meter: RateMeter,
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

    /// The segment with the highest positions.
    pub fn last(&self) -> Option<&Sent> {
        self.records.back()
    }

    /// The first record that ends above `position`.
    fn index(&self, position: u64) -> usize {
        self.records.partition_point(|r| r.to <= position)
    }

    /// Positions `from` to `to` leave at `now`, for the first time or again.
    pub fn sent(&mut self, now: Time, from: u64, to: u64) {
        if self.records.is_empty() {
            self.meter.start(now);
        }
        let end = self.records.back().map_or(from, |r| r.to);
        let stamp = self.meter.stamp();
        let mut i = self.index(from);
        while let Some(r) = self.records.get_mut(i).filter(|r| r.to <= to) {
            i += 1;
            if r.from < from || r.sacked {
                continue;
            }
            if r.lost {
                r.lost = false;
                self.lost -= r.len();
                self.pipe += r.len();
            }
            (r.at, r.again, r.stamp) = (now, true, stamp);
            self.repeated.push_back((r.from, now));
        }
        if to > end {
            let from = from.max(end);
            self.pipe += to - from;
            self.records.push_back(Sent {
                from,
                to,
                at: now,
                again: false,
                sacked: false,
                lost: false,
                stamp,
            });
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
        (r.from <= from && r.again && r.at == at && r.pending()).then_some(i)
    }

    /// Everything below `una` has arrived; `each` is called for what nobody knew of.
    pub fn acknowledge(&mut self, now: Time, una: u64, mut each: impl FnMut(&Sent)) {
        while let Some(r) = self.records.front_mut().filter(|r| r.from < una) {
            let gone = una.min(r.to) - r.from;
            if r.sacked {
                self.sacked_segments -= usize::from(r.to <= una);
            } else {
                if r.lost {
                    self.lost -= gone;
                } else {
                    self.pipe -= gone;
                }
                self.meter.delivered(now, gone, r);
                each(r);
            }
            if r.to > una {
                r.from = una;
                break;
            }
            self.records.pop_front();
        }
        self.board.acknowledge(una);
    }

    /// The receiver reports `from` to `to`; `each` is called for each segment of which that is news. Whether
    /// anything is.
    pub fn report(&mut self, now: Time, from: u64, to: u64, mut each: impl FnMut(&Sent)) -> bool {
        let gaps: Vec<(u64, u64)> = self.board.gaps(from, to).collect();
        if gaps.is_empty() || !self.board.add(from, to) {
            return false;
        }
        // A segment may have been reported in parts.
        let Some(whole) = self.board.range_at(from) else { return false };
        for (from, to) in gaps {
            let mut i = self.index(from);
            while let Some(r) = self.records.get_mut(i).filter(|r| r.from < to) {
                i += 1;
                if r.sacked || r.from < whole.0 || r.to > whole.1 {
                    continue;
                }
                r.sacked = true;
                self.sacked_segments += 1;
                if r.lost {
                    r.lost = false;
                    self.lost -= r.len();
                } else {
                    self.pipe -= r.len();
                }
                self.meter.delivered(now, r.len(), r);
                each(r);
            }
        }
        true
    }

    /// Marks what is lost among the segments for which `verdict` says so. It is asked about those in the network,
    /// in the order of their transmission, until it answers [`Judgement::Later`]. Returns how many bytes that are.
    pub fn judge(&mut self, mut verdict: impl FnMut(&Sent) -> Judgement) -> u64 {
        let before = self.lost;
        let mut i = self.index(self.first_pending);
        let mut decided = true;
        while let Some(r) = self.records.get_mut(i) {
            if r.pending() && !r.again {
                match verdict(r) {
                    Judgement::Lost => {
                        r.lost = true;
                        self.lost += r.len();
                        self.pipe -= r.len();
                        self.lost_from = self.lost_from.min(r.from);
                    }
                    Judgement::Wait => decided = false,
                    Judgement::Later => break,
                }
            }
            if decided {
                self.first_pending = r.to;
            }
            i += 1;
        }
        let mut i = 0;
        while let Some((from, at)) = self.repeated.get(i).copied() {
            let record = self.repeated_at(from, at);
            match record.map(|at| verdict(&self.records[at])) {
                Some(Judgement::Later) => break,
                Some(Judgement::Wait) => i += 1,
                None if i > 0 => i += 1,
                None => drop(self.repeated.pop_front()),
                Some(Judgement::Lost) => record.into_iter().for_each(|at| self.lose(at)),
            }
        }
        self.lost - before
    }

    /// The record at `index` counts as lost.
    fn lose(&mut self, index: usize) {
        if let Some(r) = self.records.get_mut(index).filter(|r| r.pending()) {
            r.lost = true;
            self.lost += r.len();
            self.pipe -= r.len();
            self.lost_from = self.lost_from.min(r.from);
        }
    }

    /// The timer expired: the first segment is lost, and so are those for which `verdict` says so. If the first
    /// one had been reported, the receiver has discarded what it reported, and all reports are forgotten.
    //= rfc2018#section-8: a time-out with the first segment reported shows that the receiver has reneged
    //= rfc8985#section-6.3: the first one, and what was sent longer ago than a round trip and the reordering window
    pub fn expire(&mut self, verdict: impl Fn(&Sent) -> bool) {
        if self.records.front().is_some_and(|r| r.sacked) {
            self.board.clear();
            self.sacked_segments = 0;
            for r in self.records.iter_mut().filter(|r| r.sacked) {
                r.sacked = false;
                self.pipe += r.len();
                if r.again {
                    self.repeated.push_back((r.from, r.at));
                }
            }
            self.first_pending = 0;
        }
        for i in 0..self.records.len() {
            if i == 0 || verdict(&self.records[i]) {
                self.lose(i);
            }
        }
    }

    /// The lowest segment that is lost and waits to be sent again: its first position and one past its last. If
    /// it reaches beyond `limit`, it is cut there, and what is left of it waits on.
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
        if r.to > limit && !self.is_full() {
            self.records[i].to = limit;
            self.records.insert(i + 1, Sent { from: limit, ..r });
            return Some((r.from, limit));
        }
        Some((r.from, r.to))
    }
}

/// What is thought of a segment in the network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Judgement {
    /// It is lost.
    Lost,
    /// It may be; that will be seen later.
    Wait,
    /// Nothing can be said yet, and neither about what was sent after it.
    Later,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn flight(segments: u64) -> Flight {
        let mut flight = Flight::default();
        for i in 0..segments {
            flight.sent(Time(i), 1 + i * 1000, 1 + (i + 1) * 1000);
        }
        flight
    }

    #[test]
    fn a_segment_is_reported_once_it_is_reported_whole() {
        let mut f = flight(3);
        let mut told = Vec::new();
        assert!(f.report(Time(9), 1001, 1500, |r| told.push(r.from)));
        assert!(told.is_empty());
        assert!(f.report(Time(9), 1500, 2001, |r| told.push(r.from)));
        assert!(!f.report(Time(9), 1001, 2001, |r| told.push(r.from)));
        assert_eq!((told, f.pipe(), f.sacked_segments()), (vec![1001], 2000, 1));
    }

    #[test]
    fn what_is_lost_waits_lowest_first_and_counts_again_once_it_is_sent() {
        let mut f = flight(4);
        let lost = f.judge(|r| if r.from < 2001 { Judgement::Lost } else { Judgement::Later });
        assert_eq!((lost, f.pipe(), f.next_lost(u64::MAX)), (2000, 2000, Some((1, 1001))));
        f.sent(Time(50), 1, 1001);
        assert_eq!((f.lost(), f.pipe(), f.next_lost(u64::MAX)), (1000, 3000, Some((1001, 2001))));
        // The retransmission is judged by its own time.
        let times = |f: &mut Flight| {
            let mut seen = Vec::new();
            f.judge(|r| {
                seen.push((r.from, r.at.0));
                Judgement::Wait
            });
            seen
        };
        assert_eq!(times(&mut f), [(2001, 2), (3001, 3), (1, 50)]);
    }

    #[test]
    fn what_does_not_fit_the_window_is_cut() {
        let mut f = flight(2);
        f.expire(|_| true);
        assert_eq!(f.next_lost(301), Some((1, 301)));
        f.sent(Time(9), 1, 301);
        assert_eq!((f.next_lost(301), f.lost(), f.pipe()), (None, 1700, 300));
        assert_eq!(f.next_lost(5000), Some((301, 1001)));
    }

    #[test]
    fn a_receiver_that_discarded_what_it_reported_is_noticed_at_the_time_out() {
        let mut f = flight(3);
        f.report(Time(9), 1001, 3001, |_| {});
        f.acknowledge(Time(10), 1001, |_| {});
        assert_eq!((f.pipe(), f.sacked_segments()), (0, 2));
        f.expire(|_| false);
        assert_eq!((f.pipe(), f.sacked_segments(), f.lost()), (1000, 0, 1000));
    }

    proptest! {
        /// Every byte outstanding is in exactly one of three states, and the counters say how many are in each.
        #[test]
        fn counters_are_what_the_records_say(steps in prop::collection::vec((0u8..6, 0u64..40, 1u64..9), 1..80)) {
            let mut f = Flight::default();
            let (mut una, mut nxt, mut now) = (1u64, 1u64, 0);
            for (what, at, len) in steps {
                now += 1;
                let from = una + at.min(nxt - una);
                match what {
                    0 | 1 => {
                        f.sent(Time(now), nxt, nxt + len);
                        nxt += len;
                    }
                    2 => { f.report(Time(now), from, (from + len).min(nxt).max(from), |_| {}); }
                    3 => {
                        una = una.max(from);
                        f.acknowledge(Time(now), una, |_| {});
                    }
                    4 => { f.judge(|r| if r.at.0 + at < now { Judgement::Lost } else { Judgement::Later }); }
                    _ if at % 3 == 0 => f.expire(|r| r.from % 2 == 0),
                    _ => while let Some((from, to)) = f.next_lost(una + 30) {
                        f.sent(Time(now), from, to);
                    }
                }
                let sum = |which: &dyn Fn(&Sent) -> bool| -> u64 {
                    f.records.iter().filter(|r| which(r)).map(|r| r.to - r.from).sum()
                };
                prop_assert_eq!(sum(&|_| true), nxt - una);
                prop_assert_eq!(sum(&|r| r.lost), f.lost());
                prop_assert_eq!(sum(&|r| !r.lost && !r.sacked), f.pipe());
                prop_assert!(f.records.iter().all(|r| !(r.lost && r.sacked)));
                prop_assert_eq!(f.records.iter().filter(|r| r.sacked).count(), f.sacked_segments());
                let side_by_side = f.records.iter().zip(f.records.iter().skip(1)).all(|(a, b)| a.to == b.from);
                prop_assert!(side_by_side);
            }
        }
    }
}
