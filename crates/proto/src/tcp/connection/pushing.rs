//! The PSH flag: on the segment with the last written byte. The TCP of Linux sets it on the last segment of a buffer that
//! leaves as one packet of several segments (`__tcp_transmit_skb`), and at the end of a buffer that ends a write without
//! `MSG_MORE` or half of the peer's largest window (`tcp_mark_push`, `forced_push`). Data that the timer of
//! window probes sends has it too (`tcp_write_wakeup`).
//!
//! **Not modelled:** a sender with pacing sends each segment apart.

use std::collections::VecDeque;

use crate::tcp::config::GrowthRule;
use crate::tcp::sender::{Chunk, Window};

use super::Connection;

/// Maximum number of stored ends of buffers; a further one replaces the newest.
const MARKS_MAX: usize = 256;

/// Unacknowledged ends of buffers with PSH, lowest first.
#[derive(Clone, Debug, Default)]
pub(super) struct Pushes {
    marks: VecDeque<u64>,
    /// The last such end of all.
    last: u64,
    /// Start of the last buffer, if none of it was sent.
    tail: u64,
}

impl Pushes {
    fn mark(&mut self, position: u64) {
        if self.marks.len() >= MARKS_MAX {
            self.marks.pop_back();
        }
        self.marks.push_back(position);
        self.last = position;
    }

    /// Free bytes of the last buffer if it is unsent, or the size of a new one. Called before [`Pushes::write`].
    pub(super) fn room(&mut self, w: &Window) -> u64 {
        let goal = w.buffer_goal();
        self.tail = self.tail.max(w.max.max(1));
        let extends = self.tail < w.end && w.end - self.tail < goal && !w.ends_record(w.end);
        if !extends {
            self.tail = w.end;
        }
        goal - (w.end - self.tail)
    }

    /// Records a write, or the part of one up to the end of a buffer, that ends at `end`; `more` is whether the
    /// application announces more (`tcp_sendmsg_locked`). Returns whether the buffer has PSH.
    pub(super) fn write(&mut self, w: &Window, end: u64, (first, more): (bool, bool)) -> bool {
        // A write extends an unsent buffer, and its end.
        if first && self.tail < w.end && self.marks.back() == Some(&w.end) {
            self.marks.pop_back();
        }
        let pushes = !more || end > self.last.max(1) + u64::from(w.peer_max / 2);
        if pushes {
            self.mark(end);
        }
        pushes
    }

    /// Whether all data before the last buffer was sent.
    pub(super) fn is_head(&self, w: &Window) -> bool {
        self.tail <= w.max.max(1)
    }

    /// Discards the ends up to the acknowledged position `una`.
    pub(super) fn release(&mut self, una: u64) {
        while self.marks.front().is_some_and(|position| *position <= una) {
            self.marks.pop_front();
        }
    }

    /// Whether a buffer with PSH ends after `from` and not after `to`.
    fn any(&self, from: u64, to: u64) -> bool {
        let i = self.marks.partition_point(|position| *position <= from);
        self.marks.get(i).is_some_and(|position| *position <= to)
    }
}

impl Connection {
    /// Whether `chunk` is sent with PSH. Without an application, Linux's rule depends on the last byte sent with PSH, so
    /// call this once for each segment.
    #[inline(always)]
    pub(super) fn pushes(&mut self, chunk: &Chunk) -> bool {
        let (w, to) = (&self.tx.core.window, chunk.from + u64::from(chunk.len));
        let last = chunk.len > 0 && to == w.end;
        match &self.outbox {
            _ if self.config.growth != GrowthRule::Linux || chunk.len == 0 => last,
            Some(outbox) => outbox.pushes.any(chunk.from, to),
            None => {
                let pushes = last || to > self.pushed + u64::from(w.peer_max / 2);
                if pushes {
                    self.pushed = self.pushed.max(to);
                }
                pushes
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::config::TcpConfig;

    #[test]
    fn ends_of_writes_are_bounded_and_the_newest_one_stays() {
        let mut pushes = Pushes::default();
        (1..1000).for_each(|n| pushes.mark(10 * n));
        assert_eq!(pushes.marks.len(), MARKS_MAX);
        assert!(pushes.any(9980, 9990) && pushes.any(9, 10));
        assert!(!pushes.any(10, 19) && !pushes.any(9990, 20_000));
        pushes.release(20);
        assert!(!pushes.any(0, 29) && pushes.any(0, 30));
    }

    /// Linux at the first write of 20,000 bytes with a window of 10,240: half of it makes buffers of five segments.
    #[test]
    fn every_half_window_has_push_at_the_end_of_a_buffer() {
        let mut w = Window::new(&TcpConfig { mss: 1000, ..TcpConfig::rfc() });
        (w.una, w.nxt, w.max, w.end, w.peer_max) = (1, 1, 1, 1, 10_240);
        let mut pushes = Pushes::default();
        let mut rooms = Vec::new();
        let mut write = |pushes: &mut Pushes, w: &mut Window, first, sent| {
            let room = pushes.room(w);
            rooms.push(room);
            let end = w.end + room;
            let push = pushes.write(w, end, (first, true));
            (w.end, w.max) = (end, w.max + sent);
            push
        };
        assert!(!write(&mut pushes, &mut w, true, 2000), "5001 of 5121");
        assert!(write(&mut pushes, &mut w, false, 5000), "7001 of 5121");
        assert!(!write(&mut pushes, &mut w, false, 2000), "12001 of 12121");
        assert_eq!(rooms, [5000, 2000, 5000], "a sent part makes room in its buffer");
        assert!(pushes.any(7000, 7001) && !pushes.any(1, 7000) && !pushes.any(7001, 20_000));
        // A write that is complete ends with PSH, until another one extends its unsent buffer.
        assert!(pushes.write(&w, 12_501, (false, false)));
        w.end = 12_501;
        assert!(pushes.any(12_500, 12_501));
        pushes.room(&w);
        assert!(!pushes.write(&w, 12_601, (true, true)));
        assert!(!pushes.any(12_500, 12_601));
    }
}
