//! The buffers of received data in Linux: their memory, and which of them are dropped if memory is short (`tcp_data_queue`,
//! `tcp_data_queue_ofo`, `tcp_ofo_queue`, `tcp_prune_queue`).

use super::{DESCRIPTOR, FRAGMENTS, Space, WHOLE, buffer_for};

/// Size of the pages in which a socket reserves memory.
const PAGE: u64 = 4096;
/// Largest payload of a buffer that holds several segments (`tcp_collapse`).
const COLLAPSED: u64 = PAGE - FRAGMENTS;
/// Limit of buffers behind holes, more than 6 MiB of the smallest. A hostile peer could send overlapping segments without end to a
/// connection that forwards its data, whose memory does not limit them; beyond it they are not recorded.
const AHEAD_MAX: usize = 8192;

/// A buffer with the positions `from` to `to`, a FIN included. Buffers behind a hole may overlap.
#[derive(Clone, Copy, Debug)]
pub(super) struct Buffer {
    from: u64,
    to: u64,
    /// Its memory, and the free bytes behind its payload.
    memory: u64,
    room: u64,
    /// Whether it has the peer's FIN.
    fin: bool,
}

impl Buffer {
    /// Whether a segment from position `from` with `len` bytes is copied into this buffer (`tcp_try_coalesce`).
    fn joins(&self, from: u64, len: u64) -> bool {
        self.to == from && len <= self.room
    }

    /// Adds the segment from the end of this buffer to `to`, with `len` bytes.
    fn join(&mut self, to: u64, len: u64, fin: bool) {
        (self.to, self.room, self.fin) = (to, self.room - len, fin);
    }
}

/// The range that a D-SACK block reports, with one more duplicate (`tcp_dsack_extend`).
fn extend(twice: &mut Option<(u64, u64)>, from: u64, to: u64) {
    match twice {
        None => *twice = Some((from, to)),
        Some(range) if from <= range.1 && range.0 <= to => {
            *range = (range.0.min(from), range.1.max(to));
        }
        Some(_) => {}
    }
}

fn sum(buffers: &[Buffer]) -> u64 {
    buffers.iter().map(|buffer| buffer.memory).sum()
}

impl Space {
    /// A buffer for a segment. A super-packet is stored in segments.
    fn fresh(&self, from: u64, to: u64, fin: bool) -> Buffer {
        let mss = (self.mss as u32).max(1);
        let last = ((to - from) as u32).saturating_sub(1);
        let (count, rest) = (last / mss, last % mss + 1);
        let memory = u64::from(count) * self.memory_of(mss) + self.memory_of(rest);
        let room = self.memory_of(rest) - DESCRIPTOR - FRAGMENTS - self.headers - u64::from(rest);
        Buffer { from, to, memory, room, fin }
    }

    /// Records that the next segment to store repeats `bytes` at its front.
    pub(in crate::tcp) fn repeats(&mut self, bytes: u32) {
        self.repeated = bytes;
    }

    /// Stores a delivered segment whose `len` new bytes end at position `to`, and that the application has not read.
    pub(in crate::tcp) fn store(&mut self, to: u64, len: u32) {
        let new = to - u64::from(len);
        let from = new - u64::from(core::mem::take(&mut self.repeated));
        if self.unread.is_empty() {
            self.copied = new;
        }
        self.append(self.fresh(from, to, false));
    }

    fn append(&mut self, next: Buffer) {
        let len = next.to - next.from;
        match self.unread.back_mut().filter(|last| last.joins(next.from, len)) {
            Some(last) => last.join(next.to, len, false),
            None => {
                self.memory += next.memory;
                self.unread.push_back(next);
            }
        }
    }

    /// Records that the application has read `bytes`.
    pub(in crate::tcp) fn read(&mut self, bytes: u64) {
        self.copied += bytes;
        while let Some(first) = self.unread.front().filter(|first| first.to <= self.copied) {
            self.memory -= first.memory;
            self.unread.pop_front();
        }
    }

    /// Stores a segment with `len` bytes behind a hole, at positions `from` to `to`, a `fin` included. The window may grow if
    /// the size of full segments is given. Returns whether it has grown, and the range that has arrived before.
    pub(in crate::tcp::quick) fn store_ahead(
        &mut self,
        (from, to): (u64, u64),
        len: u32,
        fin: bool,
        segment: Option<u32>,
    ) -> (bool, Option<(u64, u64)>) {
        self.predicts = false;
        let (bytes, mut twice) = (u64::from(len), None);
        let mut at = self.ahead.partition_point(|buffer| buffer.from <= from);
        let last = self.ahead.len().checked_sub(1);
        let joined = last.filter(|last| self.ahead[*last].joins(from, bytes));
        if let Some(i) = joined.or(at.checked_sub(1)) {
            let before = &mut self.ahead[i];
            if before.joins(from, bytes) {
                before.join(to, bytes, fin);
                // The buffer of a FIN alone no longer counts.
                let memory = if len == 0 { 0 } else { self.memory_of(len) };
                return (segment.is_some_and(|it| self.grow(len, memory, it, true)), None);
            }
            if to <= before.to {
                return (false, Some((from, to)));
            }
            if from < before.to {
                twice = Some((from, before.to));
                at -= usize::from(from == before.from);
            }
        }
        while let Some(next) = self.ahead.get(at).filter(|next| next.from < to).copied() {
            extend(&mut twice, next.from, to.min(next.to));
            if to < next.to {
                break;
            }
            self.held -= next.memory;
            self.ahead.remove(at);
        }
        let grown = segment.is_some_and(|it| self.grow(len, self.memory_of(len), it, true));
        if self.ahead.len() < AHEAD_MAX {
            let buffer = self.fresh(from, to, fin);
            self.held += buffer.memory;
            self.ahead.insert(at, buffer);
        }
        debug_assert!(
            self.held == sum(&self.ahead),
            "the memory behind holes is that of its buffers"
        );
        (grown, twice)
    }

    /// Delivers the buffers behind a hole that is filled up to position `next`, for an application that reads later or has
    /// already read. Returns the range that has arrived twice.
    pub(in crate::tcp) fn advance(&mut self, mut next: u64, reads: bool) -> Option<(u64, u64)> {
        let (high, mut twice, mut filled) = (next, None, next);
        let ready = self.ahead.iter().take_while(|buffer| {
            let ready = buffer.from <= filled;
            filled = filled.max(buffer.to);
            ready
        });
        let count = ready.count();
        for first in self.ahead.drain(..count).collect::<Vec<_>>() {
            self.held -= first.memory;
            if first.from < high {
                extend(&mut twice, first.from, high.min(first.to));
            }
            let data = Buffer { to: first.to - u64::from(first.fin), ..first };
            if first.to > next && !reads && data.from < data.to {
                self.append(data);
            }
            next = next.max(first.to);
        }
        twice
    }

    /// Drops all data behind a hole, since the peer's FIN is in order (`tcp_fin`).
    pub(in crate::tcp) fn discard_ahead(&mut self) {
        self.ahead.clear();
        self.held = 0;
    }

    /// Stores data of another base station, from position `from` to `to`.
    pub(in crate::tcp) fn resume_ahead(&mut self, from: u64, to: u64) {
        let buffer = self.fresh(from, to, false);
        self.held += buffer.memory;
        self.ahead.push(buffer);
    }

    /// Whether the buffer accepts another segment (`tcp_can_ingest`).
    pub(in crate::tcp::quick) fn admits(&self) -> bool {
        self.memory + self.held <= self.buffer
    }

    /// Whether Linux's header prediction accepts a segment of `len` bytes without a check of the memory: it needs only the rest
    /// of the last reserved page, if data to send occupies `sending` bytes (`tcp_rcv_established`).
    pub(in crate::tcp::quick) fn predicts(&self, len: u32, sending: u64) -> bool {
        let used = self.memory + self.held + sending;
        self.predicts && self.memory_of(len) <= used.next_multiple_of(PAGE) - used
    }

    /// Records that data in order was stored: header prediction begins again if it can (`tcp_fast_path_check`).
    pub(in crate::tcp) fn check_prediction(&mut self) {
        let room = self.memory + self.held < self.buffer;
        self.predicts |= room && self.ahead.is_empty() && self.advertised > 0;
    }

    /// Whether delivered data waits for the application.
    pub(in crate::tcp) fn has_unread(&self) -> bool {
        !self.unread.is_empty()
    }

    /// Whether there is memory for a segment from position `from` on. A buffer whose size is not fixed grows for it, otherwise
    /// the window shrinks (`tcp_clamp_window`). Then data moves into common buffers, and at last the data behind the
    /// segment is dropped: the second result is the end of the remaining data behind holes, if some was dropped.
    pub(in crate::tcp::quick) fn find_memory(&mut self, from: u64) -> (bool, Option<u64>) {
        self.buffer = self.buffer.max((self.memory + self.held).min(self.most));
        if self.admits() {
            return (true, None);
        }
        self.offered = self.offered.min(self.clamp.min(2 * self.mss));
        self.collapse_ahead();
        let mut unread = core::mem::take(&mut self.unread).into();
        self.collapse(&mut unread, self.copied);
        (self.memory, self.unread) = (sum(&unread), unread.into());
        let (mut freed, mut dropped) = (0, false);
        while !self.admits() || freed > 0 {
            let Some(last) = self.ahead.pop_if(|last| last.from >= from) else { break };
            dropped = true;
            self.held -= last.memory;
            freed += last.memory;
            // It drops an eighth of the buffer at a time (`tcp_prune_ofo_queue`).
            freed = if freed >= self.buffer / 8 { 0 } else { freed };
        }
        self.predicts &= self.admits();
        let end = || self.ahead.iter().map(|buffer| buffer.to).max().unwrap_or(0);
        (self.admits(), dropped.then(end))
    }

    /// Moves the data of each range behind a hole into common buffers (`tcp_collapse_ofo_queue`). Small single buffers are
    /// left; if they exceed an eighth of the memory, so are the ranges behind them.
    fn collapse_ahead(&mut self) {
        let (mut rest, mut tiny) = (core::mem::take(&mut self.ahead), 0);
        while let Some(first) = rest.first().copied().filter(|_| tiny <= self.buffer / 8) {
            let mut end = first.to;
            let apart = rest.iter().position(|next| {
                let apart = next.from > end;
                end = if apart { end } else { end.max(next.to) };
                apart
            });
            let mut range: Vec<Buffer> = rest.drain(..apart.unwrap_or(rest.len())).collect();
            if range.len() > 1 || end - first.from >= COLLAPSED {
                self.collapse(&mut range, first.from);
            } else {
                tiny += first.memory;
            }
            self.ahead.append(&mut range);
        }
        self.ahead.append(&mut rest);
        self.held = sum(&self.ahead);
    }

    /// Moves data from position `start` on into common buffers, from the first buffer on for which this saves memory, or
    /// which overlaps the next one. A buffer with a FIN is left (`tcp_collapse`).
    fn collapse(&self, buffers: &mut Vec<Buffer>, mut start: u64) {
        let mut at = 0;
        while let Some(buffer) = buffers.get(at) {
            let loose =
                buffer.memory * self.share / WHOLE > buffer.to - buffer.from || buffer.from < start;
            let overlaps = buffers.get(at + 1).is_some_and(|next| next.from != buffer.to);
            if buffer.to <= start {
                buffers.remove(at);
            } else if loose && !buffer.fin || overlaps {
                break;
            } else {
                (start, at) = (buffer.to, at + 1);
            }
        }
        let end = buffers.iter().map(|buffer| buffer.to).max().unwrap_or(0);
        let until = buffers.iter().position(|buffer| buffer.fin).unwrap_or(buffers.len());
        if at >= until {
            return;
        }
        let to = buffers[at..until].iter().map(|buffer| buffer.to).max().unwrap_or(start);
        let common = (start..to).step_by(COLLAPSED as usize).map(|from| {
            let size = buffer_for((end - from).min(COLLAPSED));
            let to = to.min(from + COLLAPSED);
            let room = size - FRAGMENTS - (to - from);
            Buffer { from, to, memory: size + DESCRIPTOR, room, fin: false }
        });
        buffers.splice(at..until, common.collect::<Vec<_>>());
    }
}
