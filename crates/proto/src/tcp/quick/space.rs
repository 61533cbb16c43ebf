//! The receive window of Linux: how much of the buffer's memory becomes window, and when the window grows
//! (`tcp_select_initial_window`, `tcp_grow_window`, `tcp_rcvbuf_grow`, `__tcp_select_window`).

mod buffers;

use std::collections::VecDeque;

use crate::tcp::config::TcpConfig;
use buffers::Buffer;

/// Memory of a buffer of Linux' defaults, at first and at most (`tcp_rmem`).
const MEMORY: [u32; 2] = [131_072, 6 << 20];
/// Memory for the descriptor of a segment, and its smallest buffer (`SKB_SMALL_HEAD_CACHE_SIZE`). A larger buffer is a
/// power of two.
const DESCRIPTOR: u64 = 256;
const LEAST: u64 = 576;
/// Memory in the buffer of a segment for headroom and headers without options, and for the list of fragments.
const HEADROOM: u64 = 104;
const FRAGMENTS: u64 = 320;
/// Denominator of the share of the memory that becomes window.
const WHOLE: u64 = 256;
/// This share before the first segment: one half.
const HALF: u64 = WHOLE / 2;
/// Least upper bound of the window (half of `SOCK_MIN_RCVBUF`).
const CLAMP_LEAST: u64 = 1152;

/// Size of the buffer for `bytes` with the list of fragments.
fn buffer_for(bytes: u64) -> u64 {
    let size = bytes + FRAGMENTS;
    if size <= LEAST { LEAST } else { size.next_power_of_two() }
}

/// The receive buffer of a connection and its window, in bytes.
#[derive(Clone, Debug)]
pub(in crate::tcp) struct Space {
    /// Memory of the buffer at first and now, and its maximum.
    first: u64,
    buffer: u64,
    most: u64,
    /// Upper bound of the first window.
    widest: u64,
    /// Share of the memory that becomes window, in 256ths.
    share: u64,
    /// Upper bound of the window, and the window to offer.
    clamp: u64,
    offered: u64,
    /// The last advertised window.
    advertised: u64,
    /// Largest payload of a segment without options.
    mss: u64,
    /// Unit of the advertised window; 1 without window scaling.
    unit: u64,
    /// Memory for headroom and headers of a segment.
    headers: u64,
    /// Delivered data that the application has not read, and its memory.
    unread: VecDeque<Buffer>,
    memory: u64,
    /// Position up to which the application has read.
    copied: u64,
    /// Bytes at the front of the next segment that were delivered before; they occupy memory as well.
    repeated: u32,
    /// Data behind a hole by position, and its memory.
    ahead: Vec<Buffer>,
    held: u64,
    /// Whether Linux's header prediction is on (`pred_flags`).
    predicts: bool,
}

impl Space {
    /// The buffer of a connection before its handshake.
    pub(super) fn new(config: &TcpConfig) -> Space {
        let [first, most] = config.recv_memory.unwrap_or(MEMORY).map(u64::from);
        let clamp = first * HALF / WHOLE;
        Space {
            first,
            buffer: first,
            most: most.max(first),
            widest: config.recv_buffer.into(),
            share: HALF,
            clamp,
            offered: clamp,
            advertised: 0,
            mss: config.mss.into(),
            unit: 1,
            headers: HEADROOM,
            unread: VecDeque::new(),
            memory: 0,
            copied: 0,
            repeated: 0,
            ahead: Vec::new(),
            held: 0,
            predicts: true,
        }
    }

    /// The first window for segments of `mss` bytes: half of the memory in whole segments.
    pub(super) fn first_window(&self, mss: u32) -> u64 {
        let (space, mss) = (self.full().min(self.widest), u64::from(mss.max(1)));
        if space > mss { space / mss * mss } else { space }
    }

    /// Starts after the handshake with segments of `mss` bytes; the window is advertised in multiples of `unit`.
    pub(super) fn open(&mut self, mss: u32, unit: u64) {
        self.offered = self.first_window(mss);
        (self.advertised, self.unit) = (self.offered, unit.max(1));
        self.headers = HEADROOM + self.mss.saturating_sub(mss.into());
        let (clamp, whole, twice) = (self.clamp, self.full(), 2 * self.mss);
        // One segment is reserved.
        if clamp > twice && clamp + self.mss > whole {
            self.clamp = twice.max(whole.saturating_sub(self.mss));
        }
        self.offered = self.offered.min(self.clamp);
    }

    /// Fixes the memory of the buffer (`SO_RCVBUF`).
    pub(super) fn fix(&mut self, bytes: u64) {
        (self.buffer, self.most) = (bytes, bytes);
    }

    /// Window of the whole buffer.
    fn full(&self) -> u64 {
        self.buffer * self.share / WHOLE
    }

    /// Memory that a segment with `len` bytes of payload occupies: a buffer and its descriptor.
    fn memory_of(&self, len: u32) -> u64 {
        buffer_for(self.headers + u64::from(len)) + DESCRIPTOR
    }

    /// Window of the free memory, with `own` bytes of memory of the segment that has just arrived.
    fn free(&self, own: u64) -> u64 {
        self.buffer.saturating_sub(self.memory + self.held.max(own)) * self.share / WHOLE
    }

    /// Records that full segments have `len` bytes: the share follows their memory.
    pub(super) fn measured(&mut self, len: u32) {
        let share = (u64::from(len) * WHOLE / self.memory_of(len)).max(1);
        if core::mem::replace(&mut self.share, share) == share {
            return;
        }
        let clamp = self.full().max(CLAMP_LEAST);
        let before = core::mem::replace(&mut self.clamp, clamp);
        self.offered = match clamp < before {
            true => self.offered.min(clamp),
            false => self.offered.max(self.advertised.min(clamp)),
        };
    }

    /// Lets the window grow by a segment of `len` bytes in order.
    pub(super) fn grow_in_order(&mut self, len: u32, segment: u32) -> bool {
        self.grow(len, self.memory_of(len), segment, false)
    }

    /// Lets the window grow by a segment of `len` bytes with this `memory`; `segment` is the size of full ones. `ahead` is
    /// whether it lies behind a hole, where it counts later. Returns whether the window has grown.
    fn grow(&mut self, len: u32, memory: u64, segment: u32, ahead: bool) -> bool {
        let own = if self.buffer == self.first && !ahead { memory } else { 0 };
        let room = self.clamp.min(self.free(own)).saturating_sub(self.offered);
        if room == 0 {
            return false;
        }
        let memory = memory * self.share / WHOLE;
        let fits = memory <= u64::from(len);
        let more = if fits { 2 * self.mss } else { self.small_segment(len, memory / 2, segment) };
        if more > 0 {
            self.offered += room.min(more.max(2 * u64::from(len)));
        }
        more > 0
    }

    /// Growth of the window by a segment whose memory exceeds its share (`__tcp_grow_window`).
    fn small_segment(&self, len: u32, mut memory: u64, segment: u32) -> u64 {
        let mut window = self.most * self.share / WHOLE / 2;
        while window > 0 && self.offered <= window {
            if memory <= u64::from(len) {
                return 2 * u64::from(segment);
            }
            (memory, window) = (memory / 2, window / 2);
        }
        0
    }

    /// Enlarges the buffer for a window of `target` bytes.
    pub(super) fn enlarge(&mut self, target: u64) {
        let buffer = (target * WHOLE / self.share.max(1)).min(self.most);
        if buffer > self.buffer {
            self.buffer = buffer;
            self.clamp = self.full();
        }
    }

    /// The window to advertise. `segment` is the size of full segments, `last` that of the one that has just arrived. It
    /// may be smaller than the present one, which then remains.
    pub(super) fn window(&self, segment: u32, last: u32) -> u64 {
        let arrived = self.select(segment, self.own(last));
        // Once the program has read this segment, another ACK announces a window of twice the size
        // (`__tcp_cleanup_rbuf`).
        let read = self.select(segment, 0);
        if read >= 2 * arrived { read } else { arrived }
    }

    /// The window with `own` bytes of memory of a segment that the program has not read yet.
    fn select(&self, segment: u32, own: u64) -> u64 {
        let (whole, full) = (self.full(), self.clamp.min(self.full()));
        let mss = u64::from(segment).min(full);
        let mut free = self.free(own);
        if free < full / 2 {
            free = free / self.unit * self.unit;
            if free < whole / 16 || free < mss {
                return 0;
            }
        }
        let free = free.min(self.offered);
        if self.unit > 1 {
            return free.next_multiple_of(self.unit);
        }
        let window = self.advertised;
        match mss {
            0 => 0,
            _ if window + mss <= free || window > free => free / mss * mss,
            _ if mss == full && free > window + full / 2 => free,
            _ => window,
        }
    }

    /// The last advertised window.
    pub(super) fn advertised(&self) -> u64 {
        self.advertised
    }

    /// Rounds the window to advertise up to its unit, and records it.
    pub(super) fn advertise(&mut self, window: u64) -> u64 {
        self.advertised = window.next_multiple_of(self.unit);
        self.predicts &= window > 0;
        self.advertised
    }

    /// Whether less than half of the window is free after a last segment of `last` bytes.
    pub(super) fn is_half_full(&self, last: u32) -> bool {
        self.free(self.own(last)) < self.clamp.min(self.full()) / 2
    }

    /// Memory of the segment of `last` bytes that has just arrived, unless it counts as unread.
    fn own(&self, last: u32) -> u64 {
        if last > 0 && self.unread.is_empty() { self.memory_of(last) } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opened(memory: [u32; 2], widest: u32, mss: u32, unit: u64) -> Space {
        let config =
            TcpConfig { recv_memory: Some(memory), recv_buffer: widest, mss, ..TcpConfig::linux() };
        let mut space = Space::new(&config);
        space.open(mss, unit);
        space
    }

    /// The figures of Linux 6.18: the first window of the default buffer, of `SO_RCVBUF` of 20000, and of two hosts with
    /// little memory, whose windows are two segments.
    #[test]
    fn windows_are_whole_segments_of_the_share_of_the_memory() {
        assert_eq!(opened([131_072, 6 << 20], 6 << 20, 1448, 128).first_window(1448), 65_160);
        assert_eq!(opened([40_000; 2], 20_000, 1460, 1).first_window(1460), 18_980);
        for (buffer, mss, first, later) in [(4000, 1448, 2896, 2896), (2304, 536, 1608, 1072)] {
            let mut space = opened([buffer * 5 / 3; 2], buffer, mss, 1);
            assert_eq!(space.first_window(mss), first);
            space.measured(mss);
            assert!(!space.grow_in_order(mss, mss));
            assert_eq!(space.window(mss, 0), later, "{buffer}");
        }
    }

    /// A program that does not read: the window closes before the data fills the memory.
    #[test]
    fn unread_data_closes_the_window() {
        let mut space = opened([131_072, 6 << 20], 6 << 20, 1460, 128);
        let (mut nxt, mut edge) = (0u64, space.window(536, 0));
        while nxt + 1460 <= edge {
            nxt += 1460;
            space.store(nxt, 1460);
            space.measured(1460);
            space.grow_in_order(1460, 1460);
            edge = edge.max(nxt + space.window(1460, 1460));
        }
        assert!((60_000..=83_220).contains(&nxt), "{nxt}");
        assert_eq!(space.window(1460, 1460), 0);
        space.read(nxt);
        assert!(space.window(1460, 0) > 60_000);
    }

    /// Small segments occupy more memory than their bytes, so that fewer of them fit. Figures of Linux 6.18, without and
    /// with timestamps.
    #[test]
    fn memory_of_a_segment_is_a_buffer_and_its_descriptor() {
        let sizes = [1, 89, 204, 588, 600, 601, 1448];
        let memory =
            [[832, 832, 1280, 1280, 1280, 2304, 2304], [832, 832, 1280, 1280, 2304, 2304, 2304]];
        for (mss, memory) in [1460, 1448].into_iter().zip(memory) {
            let space = opened_with(mss);
            assert_eq!(sizes.map(|len| space.memory_of(len)), memory);
        }
    }

    fn opened_with(mss: u32) -> Space {
        let mut space = opened([131_072, 6 << 20], 6 << 20, 1460, 128);
        space.open(mss, 128);
        space
    }

    /// A small segment is copied behind the one before it. Figures of Linux 6.18 for segments of 100 bytes after one of 1000.
    #[test]
    fn a_small_segment_fills_the_buffer_of_the_one_before() {
        let (mut space, mut to) = (opened_with(1460), 0);
        let mut memory = |len: u32| {
            to += u64::from(len);
            space.store(to, len);
            space.memory
        };
        assert_eq!(memory(1000), 2304);
        let more: Vec<u64> = (0..8).map(|_| memory(100)).collect();
        assert_eq!(more, [2304, 2304, 2304, 2304, 2304, 2304, 3136, 3968]);
    }

    /// Without memory, small segments move into common buffers; those of 1000 bytes already fill theirs.
    #[test]
    fn unread_data_is_collapsed_before_data_is_dropped() {
        let mut space = opened_with(1460);
        space.fix(10_000);
        (1..14).for_each(|i| space.store(100 * i, 100));
        assert!(!space.admits());
        assert_eq!(space.find_memory(1300), (true, None));
        assert_eq!(space.memory, 2304);
        let mut space = opened_with(1460);
        space.measured(1000);
        space.fix(10_000);
        (1..6).for_each(|i| space.store(1000 * i, 1000));
        assert_eq!(space.find_memory(5000), (false, None));
    }

    /// Behind a hole, a segment fills the buffer before it, replaces those that it contains, and may overlap others.
    #[test]
    fn segments_behind_a_hole_join_replace_and_overlap() {
        let mut space = opened_with(1460);
        let mut store = |from: u64, len: u32| {
            let twice = space.store_ahead((from, from + u64::from(len)), len, false, None).1;
            (twice, space.held / 2304, space.ahead.len())
        };
        assert_eq!(store(1000, 1000), (None, 1, 1));
        assert_eq!(store(2000, 500), (None, 1, 1), "joins");
        assert_eq!(store(1100, 900), (Some((1100, 2000)), 1, 1), "contained");
        assert_eq!(store(2200, 900), (Some((2200, 2500)), 2, 2), "overlaps");
        assert_eq!(store(4000, 1000), (None, 3, 3));
        assert_eq!(store(3600, 1400), (Some((4000, 5000)), 3, 3), "replaces");
        assert_eq!(space.advance(1200, false), Some((1000, 1200)));
        assert_eq!((space.unread.len(), space.ahead.len()), (2, 1));
    }
}
