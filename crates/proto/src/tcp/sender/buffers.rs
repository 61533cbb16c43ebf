//! The buffers in which Linux stores written data until it is sent (`sk_buff`). A burst is one buffer or the first part of
//! one, and PSH belongs to a buffer: to one that ends a write without `MSG_MORE` or half of the peer's largest window
//! (`tcp_mark_push`, `forced_push`).
//!
//! **Not modelled:** a sender with pacing sends each segment apart.

use std::collections::VecDeque;

use super::Window;

/// Maximum number of stored ends of buffers with PSH; a further one replaces the newest.
const MARKS_MAX: usize = 256;
/// Memory of a buffer without data, in bytes (`tcp_stream_alloc_skb`).
const EMPTY: u64 = 832;
/// Maximum size of a buffer in bytes (`sk_gso_max_size`).
pub(super) const LARGEST: u64 = 65_215;

/// The unsent buffers, and the ends of those with PSH.
#[derive(Clone, Debug)]
pub(in crate::tcp) struct Buffers {
    /// One past the last written byte.
    written: u64,
    /// Ends of the buffers with unsent data, lowest first.
    ends: VecDeque<u64>,
    /// Unacknowledged ends of buffers with PSH, lowest first.
    marks: VecDeque<u64>,
    /// The last end that a write gave PSH (`pushed_seq`).
    pushed: u64,
}

/// The part of a write that a buffer has taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::tcp) struct Appended {
    /// Bytes.
    pub(in crate::tcp) len: u64,
    /// Whether the buffer has PSH.
    pub(in crate::tcp) pushes: bool,
    /// Whether no other data waits before it.
    pub(in crate::tcp) first: bool,
}

/// The buffer that is sent next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Head {
    /// Unsent bytes.
    pub(super) len: u64,
    /// Whether it is the last one, which further writes may extend.
    pub(super) last: bool,
}

impl Default for Buffers {
    fn default() -> Buffers {
        Buffers { written: 1, ends: VecDeque::new(), marks: VecDeque::new(), pushed: 1 }
    }
}

impl Buffers {
    /// Appends a part of a write of `rest` bytes to the last buffer, or to a new one if that was sent or is full
    /// (`tcp_sendmsg_locked`). `begins` is whether the write begins with it, and `more` whether the application announces
    /// more data.
    pub(in crate::tcp) fn append(
        &mut self,
        w: &Window,
        rest: u64,
        (begins, more): (bool, bool),
    ) -> Appended {
        self.forget_sent(w);
        let start = match self.ends.len() {
            0 | 1 => w.max.max(1),
            n => self.ends[n - 2],
        };
        let (goal, held) = (w.buffer_goal(), self.written.saturating_sub(start));
        let extends = !self.ends.is_empty() && held < goal && !w.ends_record(self.written);
        if extends {
            self.ends.pop_back();
        }
        // A write takes PSH from the buffer that it extends.
        if begins && extends && self.marks.back() == Some(&self.written) {
            self.marks.pop_back();
        }
        let len = rest.min(if extends { goal - held } else { goal });
        self.written += len;
        self.ends.push_back(self.written);
        let more = more || len < rest;
        let pushes = !more || self.written > self.pushed + u64::from(w.peer_max / 2);
        if pushes {
            self.mark(self.written);
            self.pushed = self.written;
        }
        Appended { len, pushes, first: self.ends.len() == 1 }
    }

    /// Writes data of a sender without an application, so that at least two of the largest buffers are unsent.
    pub(super) fn fill(&mut self, w: &Window) {
        self.written = self.written.max(w.max.min(w.end));
        while self.written < w.end && self.written < w.max + 2 * LARGEST {
            self.append(w, w.end - self.written, (false, false));
        }
    }

    /// Discards the written data from `end` on.
    pub(super) fn cut(&mut self, end: u64) {
        if end < self.written {
            self.written = end;
            self.ends.retain(|it| *it < end);
            self.marks.retain(|it| *it < end);
            self.ends.push_back(end);
        }
    }

    /// The next buffer. One with less than `most` bytes takes data from those behind it (`tcp_grow_skb`).
    pub(super) fn head(&mut self, w: &Window, most: u64) -> Head {
        self.forget_sent(w);
        let from = w.nxt.max(1);
        while let Some(end) = self.ends.front().copied().filter(|end| end - from < most)
            && let Some(next) = self.ends.get(1).copied()
            && !w.ends_record(end)
        {
            let to = next.min(from + most);
            self.ends[0] = to;
            if to == next {
                self.ends.remove(1);
            }
            // The flag belongs to the buffer, so it moves to the new end.
            if let Ok(i) = self.marks.binary_search(&end) {
                self.marks.remove(i);
                self.mark(to);
            }
        }
        let end = self.ends.front().map_or(w.end.max(from), |end| *end);
        Head { len: end - from, last: self.ends.len() <= 1 }
    }

    /// Whether more is written than may be sent now.
    pub(super) fn is_ahead(&self, w: &Window) -> bool {
        w.end < self.written
    }

    /// Discards the ends of sent buffers.
    fn forget_sent(&mut self, w: &Window) {
        while self.ends.front().is_some_and(|end| *end <= w.max.max(w.nxt)) {
            self.ends.pop_front();
        }
    }

    fn mark(&mut self, position: u64) {
        let i = self.marks.partition_point(|it| *it < position);
        if self.marks.get(i) == Some(&position) {
            return;
        }
        if self.marks.len() >= MARKS_MAX {
            self.marks.pop_back();
        }
        self.marks.insert(i.min(self.marks.len()), position);
    }

    /// Discards the ends with PSH up to the acknowledged position `una`.
    #[inline]
    pub(super) fn release(&mut self, una: u64) {
        while self.marks.front().is_some_and(|position| *position <= una) {
            self.marks.pop_front();
        }
    }

    /// Memory of the data from position `una` on. Buffers without PSH do not count, only their data.
    pub(in crate::tcp) fn memory(&self, una: u64) -> u64 {
        self.written.saturating_sub(una) + EMPTY * self.marks.len() as u64
    }

    /// Whether a buffer with PSH ends after `from` and not after `to`.
    pub(in crate::tcp) fn push_within(&self, from: u64, to: u64) -> bool {
        let i = self.marks.partition_point(|position| *position <= from);
        self.marks.get(i).is_some_and(|position| *position <= to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::config::TcpConfig;

    fn window() -> Window {
        let mut w = Window::new(&TcpConfig { mss: 1000, ..TcpConfig::rfc() });
        (w.una, w.nxt, w.max, w.end, w.peer_max) = (1, 1, 1, 1, 10_240);
        w
    }

    #[test]
    fn ends_with_push_are_bounded_and_the_newest_one_stays() {
        let mut buffers = Buffers::default();
        (1..1000).for_each(|n| buffers.mark(10 * n));
        assert_eq!(buffers.marks.len(), MARKS_MAX);
        assert!(buffers.push_within(9980, 9990) && buffers.push_within(9, 10));
        assert!(!buffers.push_within(10, 19) && !buffers.push_within(9990, 20_000));
        buffers.release(20);
        assert!(!buffers.push_within(0, 29) && buffers.push_within(0, 30));
    }

    /// Linux at the first write of 20,000 bytes with a window of 10,240: half of it makes buffers of five segments.
    #[test]
    fn every_half_window_has_push_at_the_end_of_a_buffer() {
        let (mut w, mut buffers) = (window(), Buffers::default());
        let mut write = |w: &mut Window, begins, sent| {
            let part = buffers.append(w, 20_000, (begins, true));
            w.end += part.len;
            (w.max, w.nxt) = (w.max + sent, w.nxt + sent);
            part
        };
        let part = |len, pushes, first| Appended { len, pushes, first };
        assert_eq!(write(&mut w, true, 2000), part(5000, false, true), "5001 of 5121");
        // A sent part makes room in its buffer.
        assert_eq!(write(&mut w, false, 5000), part(2000, true, true), "7001 of 5121");
        assert_eq!(write(&mut w, false, 2000), part(5000, false, true), "12001 of 12121");
        assert!(buffers.push_within(7000, 7001));
        assert!(!buffers.push_within(1, 7000) && !buffers.push_within(7001, 20_000));
        // A write that is complete ends with PSH, until another one extends its unsent buffer.
        assert!(buffers.append(&w, 500, (true, false)).pushes);
        assert!(buffers.push_within(12_500, 12_501));
        assert!(!buffers.append(&w, 100, (true, true)).pushes);
        assert!(!buffers.push_within(12_500, 12_601));
    }

    /// The rest of a buffer of five segments takes a segment from the next one, and its PSH with it.
    #[test]
    fn a_buffer_takes_data_from_the_next_one() {
        let (mut w, mut buffers) = (window(), Buffers::default());
        buffers.append(&w, 5000, (true, false));
        buffers.append(&w, 3000, (true, false));
        (w.end, w.max, w.nxt) = (8001, 3001, 3001);
        assert_eq!(buffers.head(&w, 2000), Head { len: 2000, last: false });
        assert_eq!(buffers.head(&w, 3000), Head { len: 3000, last: false });
        assert!(buffers.push_within(6000, 6001) && !buffers.push_within(1, 6000));
        assert_eq!(buffers.head(&w, 9000), Head { len: 5000, last: true });
        assert!(buffers.push_within(8000, 8001) && !buffers.push_within(1, 8000));
    }

    #[test]
    fn a_sender_without_an_application_has_two_buffers_ahead() {
        let (mut w, mut buffers) = (window(), Buffers::default());
        w.end = 1 << 30;
        buffers.fill(&w);
        assert_eq!(buffers.head(&w, 1000), Head { len: 5000, last: false });
        assert!(buffers.written > 2 * LARGEST && buffers.written < 3 * LARGEST);
        buffers.cut(3001);
        assert_eq!(buffers.head(&w, 1000), Head { len: 3000, last: true });
    }
}
