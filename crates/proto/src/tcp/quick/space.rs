//! The receive window of Linux: how much of the buffer's memory becomes window, and when the window grows
//! (`tcp_select_initial_window`, `tcp_grow_window`, `tcp_rcvbuf_grow`, `__tcp_select_window`).

use crate::tcp::config::TcpConfig;

/// Memory of a buffer of Linux' defaults, at first and at most (`tcp_rmem`).
const MEMORY: [u32; 2] = [131_072, 6 << 20];
/// Memory for the descriptor of a segment, and least memory for its bytes and headers.
const DESCRIPTOR: u64 = 256;
const LEAST: u64 = 512;
/// Memory for headers, headroom and the list of fragments of a segment.
const HEADERS: u64 = 436;
/// Denominator of the share of the memory that becomes window.
const WHOLE: u64 = 256;
/// This share before the first segment: one half.
const HALF: u64 = WHOLE / 2;
/// Least upper bound of the window (half of `SOCK_MIN_RCVBUF`).
const CLAMP_LEAST: u64 = 1152;

/// Memory in bytes that a segment with `len` bytes of payload occupies: a buffer of a power of two, and the descriptor.
pub(in crate::tcp) fn memory(len: u32) -> u64 {
    (u64::from(len) + HEADERS).next_power_of_two().max(LEAST) + DESCRIPTOR
}

/// The receive buffer of a connection and its window, in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Space {
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
    /// Memory of delivered data that the application has not read.
    unread: u64,
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
            unread: 0,
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

    /// Window of the free memory, with `held` bytes of data behind a hole and `own` bytes of memory of the segment that
    /// has just arrived.
    fn free(&self, held: u64, own: u64) -> u64 {
        let held = held * WHOLE / self.share.max(1);
        self.buffer.saturating_sub(self.unread + held.max(own)) * self.share / WHOLE
    }

    /// Records that full segments have `len` bytes: the share follows their memory.
    pub(super) fn measured(&mut self, len: u32) {
        let share = (u64::from(len) * WHOLE / memory(len)).max(1);
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

    /// Lets the window grow by a segment of `len` bytes; `segment` is the size of full ones. `held` bytes wait behind a
    /// hole, and `ahead` is whether this segment joins them, which counts later. Returns whether it has grown.
    pub(super) fn grow(&mut self, len: u32, segment: u32, held: u64, ahead: bool) -> bool {
        let own = if self.buffer == self.first && !ahead { memory(len) } else { 0 };
        let room = self.clamp.min(self.free(held, own)).saturating_sub(self.offered);
        if room == 0 {
            return false;
        }
        let fits = memory(len) * self.share / WHOLE <= u64::from(len);
        let more = if fits { 2 * self.mss } else { self.small_segment(len, segment) };
        if more > 0 {
            self.offered += room.min(more.max(2 * u64::from(len)));
        }
        more > 0
    }

    /// Growth of the window by a segment whose memory exceeds its share (`__tcp_grow_window`).
    fn small_segment(&self, len: u32, segment: u32) -> u64 {
        let mut memory = memory(len) * self.share / WHOLE / 2;
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

    /// The window to advertise. `held` bytes wait behind a hole; `segment` is the size of full segments, `last` that of
    /// the one that has just arrived. It may be smaller than the present one, which then remains.
    pub(super) fn window(&self, held: u64, segment: u32, last: u32) -> u64 {
        let arrived = self.select(held, segment, self.own(last));
        // Once the program has read this segment, another ACK announces a window of twice the size
        // (`__tcp_cleanup_rbuf`).
        let read = self.select(held, segment, 0);
        if read >= 2 * arrived { read } else { arrived }
    }

    /// The window with `own` bytes of memory of a segment that the program has not read yet.
    fn select(&self, held: u64, segment: u32, own: u64) -> u64 {
        let (whole, full) = (self.full(), self.clamp.min(self.full()));
        let mss = u64::from(segment).min(full);
        let mut free = self.free(held, own);
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

    /// Whether less than half of the window is free, with `held` bytes behind a hole and a last segment of `last` bytes.
    pub(super) fn is_half_full(&self, held: u64, last: u32) -> bool {
        self.free(held, self.own(last)) < self.clamp.min(self.full()) / 2
    }

    /// Memory of the segment of `last` bytes that has just arrived, unless it counts as unread.
    fn own(&self, last: u32) -> u64 {
        if last > 0 && self.unread == 0 { memory(last) } else { 0 }
    }

    /// Records a delivered segment of `len` bytes that the application has not read.
    pub(super) fn store(&mut self, len: u32) {
        self.unread += memory(len);
    }

    /// Records that the application has read `bytes` of `unread` ones.
    pub(super) fn read(&mut self, bytes: u64, unread: u64) {
        let share = u128::from(self.unread) * u128::from(bytes) / u128::from(unread.max(1));
        self.unread = self.unread.saturating_sub(share as u64);
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
            assert!(!space.grow(mss, mss, 0, false));
            assert_eq!(space.window(0, mss, 0), later, "{buffer}");
        }
    }

    /// A program that does not read: the window closes before the data fills the memory.
    #[test]
    fn unread_data_closes_the_window() {
        let mut space = opened([131_072, 6 << 20], 6 << 20, 1460, 128);
        let (mut nxt, mut edge) = (0u64, space.window(0, 536, 0));
        while nxt + 1460 <= edge {
            nxt += 1460;
            space.store(1460);
            space.measured(1460);
            space.grow(1460, 1460, 0, false);
            edge = edge.max(nxt + space.window(0, 1460, 1460));
        }
        assert!((60_000..=83_220).contains(&nxt), "{nxt}");
        assert_eq!(space.window(0, 1460, 1460), 0);
        space.read(nxt, nxt);
        assert!(space.window(0, 1460, 0) > 60_000);
    }

    /// Small segments occupy more memory than their bytes, so that fewer of them fit.
    #[test]
    fn memory_of_a_segment_is_a_power_of_two_and_its_descriptor() {
        assert_eq!(
            [1, 76, 77, 536, 588, 589, 1448, 1460].map(memory),
            [768, 768, 1280, 1280, 1280, 2304, 2304, 2304]
        );
    }
}
