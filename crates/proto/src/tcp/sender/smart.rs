//! SMART (Keshav and Morgan 1997; balakrishnan97 3.1.2 and 3.2): each ACK names the segment that caused it, and the
//! sender keeps a map of what has arrived.
//!
//! The path is taken to keep the order of packets: when a segment has arrived, all that was sent before it and has
//! not arrived is lost, without waiting for a third duplicate ACK. Where a path reorders, that costs needless
//! retransmissions, and so does the loss of an ACK that named a segment above a hole.
//!
//! - Each loss is repaired once. Whether a retransmission is lost as well shows when a segment that was sent after
//!   it arrives; [`TcpConfig::smart_repeat`] says whether that is acted upon. The subset that was measured in
//!   balakrishnan97 left it to the timer.
//! - The window is halved once for the losses of one window, and recovery keeps the clock by a pipe, as that of
//!   RFC 6675 does: what is known to have arrived or to be lost is not in the network.
//! - A time-out forgets the map.
//!
//! [`TcpConfig::smart_repeat`]: crate::tcp::TcpConfig::smart_repeat

use std::collections::VecDeque;

use crate::event::Cause;

use super::recovery::{Progress, Recovery};
use super::{Chunk, Window};

/// Segments in flight that are remembered. What is sent beyond is left to duplicate ACKs and the timer.
const SEGMENTS_MAX: usize = 1 << 14;

/// A segment in flight.
#[derive(Clone, Copy, Debug)]
struct Segment {
    from: u64,
    to: u64,
    /// Which transmission of this connection the latest one of it was.
    order: u64,
    arrived: bool,
    /// Sent again, or not to be sent again.
    resent: bool,
}

/// SMART's recovery.
#[derive(Clone, Debug, Default)]
pub struct Smart {
    /// What is in flight, by position.
    segments: VecDeque<Segment>,
    /// Transmissions so far.
    sent: u64,
    /// The latest transmission that is known to have arrived.
    latest: u64,
    active: bool,
    /// One past the highest position sent when the last loss was detected.
    recover: u64,
    repeat: bool,
}

impl Smart {
    /// A recovery that has seen nothing. `repeat` says whether lost retransmissions are repaired.
    pub fn new(repeat: bool) -> Smart {
        Smart { repeat, ..Smart::default() }
    }

    fn is_lost(&self, segment: &Segment) -> bool {
        !segment.arrived && segment.order < self.latest
    }

    /// What is lost and has not been sent again.
    fn hole(&self) -> Option<&Segment> {
        self.segments.iter().find(|segment| self.is_lost(segment) && !segment.resent)
    }

    /// Bytes believed to be in the network.
    fn pipe(&self) -> u64 {
        let inside = |s: &&Segment| !s.arrived && (s.order >= self.latest || s.resent);
        self.segments.iter().filter(inside).map(|s| s.to - s.from).sum()
    }

    fn find(&mut self, from: u64) -> Option<&mut Segment> {
        let at = self.segments.partition_point(|s| s.from < from);
        self.segments.get_mut(at).filter(|s| s.from == from)
    }

    fn acknowledge(&mut self, una: u64) {
        while self.segments.front().is_some_and(|s| s.to <= una) {
            self.segments.pop_front();
        }
        if let Some(first) = self.segments.front_mut() {
            first.from = first.from.max(una);
        }
    }
}

impl Recovery for Smart {
    fn active(&self) -> bool {
        self.active
    }

    fn may_enter(&self, w: &Window) -> bool {
        w.una >= self.recover
    }

    fn enter(&mut self, w: &mut Window, _: u32) {
        self.active = true;
        self.recover = w.max;
        w.cwnd = w.ssthresh;
        // The first one goes out whatever the pipe says, unless it is under way.
        w.repair = self.hole().map(|hole| (hole.from, Cause::FastRetransmit));
    }

    fn on_dup_ack(&mut self, _: &mut Window) {}

    fn on_ack(&mut self, w: &mut Window, _: u32) -> Progress {
        self.acknowledge(w.una);
        if w.una < self.recover {
            return Progress::Partial { rearm: true };
        }
        self.active = false;
        Progress::Over
    }

    fn on_timeout(&mut self, w: &mut Window) {
        self.active = false;
        self.recover = w.max;
        self.segments.clear();
    }

    fn on_sent(&mut self, w: &Window, chunk: &Chunk) {
        self.acknowledge(w.una);
        let to = chunk.from + u64::from(chunk.len) + u64::from(chunk.fin);
        self.sent += 1;
        let order = self.sent;
        if self.segments.back().is_none_or(|last| chunk.from >= last.to) {
            if self.segments.len() < SEGMENTS_MAX {
                let from = chunk.from;
                self.segments.push_back(Segment { from, to, order, arrived: false, resent: false });
            }
        } else if let Some(segment) = self.find(chunk.from) {
            // A segment that grew since, or that a probe cut, is known by what went out last.
            segment.to = segment.to.max(to);
            segment.order = order;
            segment.resent = true;
        }
    }

    /// Because the path keeps the order, a report about a segment that was sent twice is one of the second time: the
    /// first would have come before whatever showed its loss.
    fn on_cause(&mut self, w: &Window, from: u64) -> bool {
        self.acknowledge(w.una);
        let Some(segment) = self.find(from).filter(|segment| !segment.arrived) else {
            return false;
        };
        segment.arrived = true;
        let order = segment.order;
        self.latest = self.latest.max(order);
        if self.repeat {
            let latest = self.latest;
            let again = self.segments.iter_mut().filter(|s| s.resent && s.order < latest);
            again.for_each(|segment| segment.resent = false);
        }
        true
    }

    fn selective(&self) -> bool {
        true
    }

    /// What is lost or was sent again belongs to the window after the one that was repaired.
    fn unfinished(&self) -> bool {
        self.segments
            .iter()
            .any(|segment| self.is_lost(segment) || segment.resent && !segment.arrived)
    }

    /// Losses first, then new data, as far as the pipe has room.
    fn next_chunk(&mut self, w: &mut Window) -> Option<Option<Chunk>> {
        if !self.active {
            return None;
        }
        if self.pipe() + u64::from(w.mss) > u64::from(w.cwnd) {
            return Some(None);
        }
        let Some(hole) = self.hole() else { return Some(w.new_chunk()) };
        let mut chunk = w.chunk_at(hole.from, Cause::FastRetransmit);
        if u64::from(chunk.len) > hole.to - hole.from {
            chunk.len = (hole.to - hole.from) as u32;
            chunk.fin = false;
        }
        Some(Some(chunk))
    }
}
