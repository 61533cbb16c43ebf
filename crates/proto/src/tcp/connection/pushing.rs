//! The PSH flag: on the segment with the last written byte. The TCP of Linux also sets it on the last segment of each
//! write, once in each half of the peer's largest window, and on a part of a segment that fills a small window
//! (`tcp_mark_push`, `forced_push`, `tcp_write_wakeup`).
//!
//! **Not modelled:** Linux marks socket buffers of up to 64 KB, and sets PSH on the last segment of such a buffer. Here
//! the segment with the last byte has PSH.

use std::collections::VecDeque;

use crate::event::Cause;
use crate::tcp::config::GrowthRule;
use crate::tcp::sender::Chunk;

use super::Connection;

/// Maximum number of stored ends of writes; a further one replaces the newest.
const MARKS_MAX: usize = 256;

/// End positions of unacknowledged writes, lowest first.
#[derive(Clone, Debug, Default)]
pub(super) struct Pushes(VecDeque<u64>);

impl Pushes {
    /// Records that a write ends at `position`.
    pub(super) fn mark(&mut self, position: u64) {
        if self.0.len() >= MARKS_MAX {
            self.0.pop_back();
        }
        self.0.push_back(position);
    }

    /// Discards the ends up to the acknowledged position `una`.
    pub(super) fn release(&mut self, una: u64) {
        while self.0.front().is_some_and(|position| *position <= una) {
            self.0.pop_front();
        }
    }

    /// Whether a write ends after `from` and not after `to`.
    fn any(&self, from: u64, to: u64) -> bool {
        let i = self.0.partition_point(|position| *position <= from);
        self.0.get(i).is_some_and(|position| *position <= to)
    }
}

impl Connection {
    /// Whether `chunk` is sent with PSH. Linux's rule depends on the last byte sent with PSH, so call this once for
    /// each segment.
    #[inline(always)]
    pub(super) fn pushes(&mut self, chunk: &Chunk) -> bool {
        let last = chunk.len > 0 && chunk.from + u64::from(chunk.len) == self.tx.core.window.end;
        if self.config.growth == GrowthRule::Linux { self.pushes_as_linux(chunk) } else { last }
    }

    fn pushes_as_linux(&mut self, chunk: &Chunk) -> bool {
        let (from, to) = (chunk.from, chunk.from + u64::from(chunk.len));
        if chunk.len == 0 {
            return false;
        }
        let w = &self.tx.core.window;
        let far = to > self.pushed + u64::from(w.peer_max / 2);
        let written = self.outbox.as_ref().is_some_and(|outbox| outbox.pushes.any(from, to));
        // A part of a segment that probes a small window (`tcp_write_wakeup`).
        let part = chunk.cause == Cause::Data && chunk.len < w.mss;
        let fills = part && from == w.una && to == w.una + u64::from(w.peer);
        let pushes = to == w.end || far || written || fills;
        if pushes {
            self.pushed = self.pushed.max(to);
        }
        pushes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_of_writes_are_bounded_and_the_newest_one_stays() {
        let mut pushes = Pushes::default();
        (1..1000).for_each(|n| pushes.mark(10 * n));
        assert_eq!(pushes.0.len(), MARKS_MAX);
        assert!(pushes.any(9980, 9990) && pushes.any(9, 10));
        assert!(!pushes.any(10, 19) && !pushes.any(9990, 20_000));
        pushes.release(20);
        assert!(!pushes.any(0, 29) && pushes.any(0, 30));
    }
}
