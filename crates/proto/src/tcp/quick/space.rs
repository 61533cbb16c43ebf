//! The receive window of Linux: how much of the buffer's memory becomes window, and when the window grows
//! (`tcp_select_initial_window`, `tcp_grow_window`, `tcp_rcvbuf_grow`, `__tcp_select_window`).

use std::collections::VecDeque;

use crate::tcp::config::TcpConfig;

/// Memory of a buffer of Linux' defaults, at first and at most (`tcp_rmem`).
const MEMORY: [u32; 2] = [131_072, 6 << 20];
/// Memory for the descriptor of a segment, and its smallest buffer (`SKB_SMALL_HEAD_CACHE_SIZE`). A larger buffer is a
/// power of two.
const DESCRIPTOR: u64 = 256;
const LEAST: u64 = 576;
/// Memory in the buffer of a segment for headroom and headers without options, and for the list of fragments.
const HEADROOM: u64 = 104;
const FRAGMENTS: u64 = 320;
/// Largest payload of a buffer that holds several segments (`tcp_collapse`).
const COLLAPSED: u64 = 4096 - FRAGMENTS;
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

/// The common buffers of `bytes`, each with its bytes.
fn common_buffers(bytes: u64) -> impl Iterator<Item = (u64, Stored)> {
    (0..bytes).step_by(COLLAPSED as usize).map(move |at| {
        let len = (bytes - at).min(COLLAPSED);
        let size = buffer_for(len);
        (len, Stored { memory: size + DESCRIPTOR, room: size - FRAGMENTS - len })
    })
}

/// Memory of data in the buffer, and free bytes behind the payload of its last segment.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::tcp) struct Stored {
    pub memory: u64,
    pub room: u64,
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
    /// Segments of delivered data that the application has not read, each with its bytes, and their memory.
    unread: VecDeque<(u64, Stored)>,
    memory: u64,
    /// Bytes at the front of the next segment that were delivered before; they occupy memory as well.
    repeated: u32,
    /// Memory of data behind a hole.
    held: u64,
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
            repeated: 0,
            held: 0,
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

    /// Memory of `len` bytes that follow data with `room`. A segment that fits there is copied (`tcp_try_coalesce`).
    fn follow(&self, len: u32, room: u64) -> Stored {
        if u64::from(len) <= room {
            return Stored { memory: 0, room: room - u64::from(len) };
        }
        // A super-packet is stored in segments.
        let mss = (self.mss as u32).max(1);
        let (count, rest) = (len.saturating_sub(1) / mss, len.saturating_sub(1) % mss + 1);
        let memory = u64::from(count) * self.memory_of(mss) + self.memory_of(rest);
        let room = self.memory_of(rest) - DESCRIPTOR - FRAGMENTS - self.headers - u64::from(rest);
        Stored { memory, room }
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

    /// Lets the window grow by a segment of `len` bytes; `segment` is the size of full ones. `ahead` is whether it lies
    /// behind a hole, where it counts later. Returns whether the window has grown.
    pub(super) fn grow(&mut self, len: u32, segment: u32, ahead: bool) -> bool {
        let own = if self.buffer == self.first && !ahead { self.memory_of(len) } else { 0 };
        let room = self.clamp.min(self.free(own)).saturating_sub(self.offered);
        if room == 0 {
            return false;
        }
        let fits = self.memory_of(len) * self.share / WHOLE <= u64::from(len);
        let more = if fits { 2 * self.mss } else { self.small_segment(len, segment) };
        if more > 0 {
            self.offered += room.min(more.max(2 * u64::from(len)));
        }
        more > 0
    }

    /// Growth of the window by a segment whose memory exceeds its share (`__tcp_grow_window`).
    fn small_segment(&self, len: u32, segment: u32) -> u64 {
        let mut memory = self.memory_of(len) * self.share / WHOLE / 2;
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

    /// Records a delivered segment of `len` bytes that the application has not read. Behind a hole it was `stored`.
    pub(in crate::tcp) fn store(&mut self, len: u32, stored: Option<Stored>) {
        let repeated = core::mem::take(&mut self.repeated);
        let last = self.unread.back().filter(|_| repeated == 0);
        let room = last.map_or(0, |(_, last)| last.room);
        let stored = match stored {
            Some(stored) if u64::from(len) > room => stored,
            _ => self.follow(len + repeated, room),
        };
        self.memory += stored.memory;
        match self.unread.back_mut().filter(|_| stored.memory == 0) {
            Some((bytes, last)) => (*bytes, last.room) = (*bytes + u64::from(len), stored.room),
            None => self.unread.push_back((len.into(), stored)),
        }
    }

    /// Records that the next segment to store repeats `bytes` at its front.
    pub(in crate::tcp) fn repeats(&mut self, bytes: u32) {
        self.repeated = bytes;
    }

    /// Records a segment of `len` bytes behind a hole. It follows data with `room`.
    pub(in crate::tcp) fn hold(&mut self, len: u32, room: u64) -> Stored {
        let stored = self.follow(len, room);
        self.held += stored.memory;
        stored
    }

    /// Records that data behind a hole was delivered or dropped, with this `memory`.
    pub(in crate::tcp) fn release(&mut self, memory: u64) {
        self.held = self.held.saturating_sub(memory);
    }

    /// Whether the buffer accepts another segment (`tcp_can_ingest`).
    pub(in crate::tcp) fn admits(&self) -> bool {
        self.memory + self.held <= self.buffer
    }

    /// Whether delivered data waits for the application.
    pub(in crate::tcp) fn has_unread(&self) -> bool {
        !self.unread.is_empty()
    }

    /// The buffer has no memory: it grows if its size is not fixed, otherwise the window shrinks (`tcp_clamp_window`). Returns
    /// an eighth of the buffer, the least memory of data that is then dropped.
    pub(super) fn clamp(&mut self) -> u64 {
        self.buffer = self.buffer.max((self.memory + self.held).min(self.most));
        if !self.admits() {
            self.offered = self.offered.min(self.clamp.min(2 * self.mss));
        }
        self.buffer / 8
    }

    /// Moves unread data into common buffers, from the first segment on for which this saves memory (`tcp_collapse`).
    pub(in crate::tcp) fn collapse_unread(&mut self) {
        let loose =
            self.unread.iter().position(|(bytes, stored)| self.is_loose(*bytes, stored.memory));
        let rest = self.unread.split_off(loose.unwrap_or(self.unread.len()));
        self.unread.extend(common_buffers(rest.iter().map(|(bytes, _)| bytes).sum()));
        self.memory = self.unread.iter().map(|(_, stored)| stored.memory).sum();
    }

    /// Whether `bytes` occupy so much `memory` that a common buffer needs less.
    fn is_loose(&self, bytes: u64, memory: u64) -> bool {
        memory * self.share / WHOLE > bytes
    }

    /// Moves the data of a range behind a hole into common buffers, from the first segment on for which this saves memory
    /// (`tcp_collapse_ofo_queue`). The range has pieces of these lengths and memory.
    pub(in crate::tcp) fn collapse(&mut self, range: &mut [(u64, &mut Stored)]) {
        let loose = range.iter().position(|(bytes, stored)| self.is_loose(*bytes, stored.memory));
        let Some(from) = loose.filter(|_| range.len() > 1) else { return };
        let (mut bytes, mut memory) = (0, 0);
        for (len, stored) in &mut range[from..] {
            bytes += *len;
            memory += core::mem::take(*stored).memory;
        }
        let (mut collapsed, mut room) = (0, 0);
        common_buffers(bytes)
            .for_each(|(_, it)| (collapsed, room) = (collapsed + it.memory, it.room));
        range[from].1.memory = collapsed;
        if let Some((_, last)) = range.last_mut() {
            last.room = room;
        }
        self.held = self.held.saturating_sub(memory) + collapsed;
    }

    /// Records that the application has read `bytes`.
    pub(in crate::tcp) fn read(&mut self, mut bytes: u64) {
        while let Some((first, _)) = self.unread.front_mut() {
            if bytes < *first {
                *first -= bytes;
                return;
            }
            bytes -= *first;
            self.memory -= self.unread.pop_front().map_or(0, |(_, stored)| stored.memory);
        }
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
            assert!(!space.grow(mss, mss, false));
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
            space.store(1460, None);
            space.measured(1460);
            space.grow(1460, 1460, false);
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
        let mut space = opened_with(1460);
        let mut memory = |len| {
            space.store(len, None);
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
        (0..13).for_each(|_| space.store(100, None));
        assert!(!space.admits());
        assert_eq!(space.clamp(), 1250);
        space.collapse_unread();
        assert_eq!((space.memory, space.admits()), (2304, true));
        let mut space = opened_with(1460);
        space.measured(1000);
        space.fix(10_000);
        (0..5).for_each(|_| space.store(1000, None));
        space.collapse_unread();
        assert!(!space.admits());
    }
}
