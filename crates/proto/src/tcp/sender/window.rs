//! Edges and windows of a sender, and the classic selection of the next segment.

use crate::event::Cause;
use crate::tcp::config::{GrowthRule, Halving, TcpConfig};

use super::Chunk;
use super::buffers::LARGEST;
use super::congestion_control::Loss;
use super::systems::ns::Packets;

/// Maximum number of stored record ends. Further records may share a segment with the next one.
const RECORDS_MAX: usize = 4096;

/// When a partial segment waits for more data.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Coalescing {
    /// Never: `TCP_NODELAY`, and every sender without a socket.
    #[default]
    Never,
    /// While another partial segment is unacknowledged.
    Nagle,
    /// Until the timer of window probes expires: `TCP_CORK`, `MSG_MORE`.
    Cork,
}

/// Edges, windows and thresholds of a sender, in bytes and stream positions.
#[derive(Clone, Debug)]
pub struct Window {
    /// Current segment size.
    pub mss: u32,
    /// Segment size that the path and the peer permit, in bytes. [`Window::mss`] may be smaller.
    path_mss: u32,
    /// Bytes of the SACK blocks in the next segments, which have that much less room for data.
    pub reports: u32,
    /// Congestion window.
    pub cwnd: u32,
    /// Temporary increase of the congestion window by duplicate ACKs outside of recovery (limited transmit).
    pub extra: u32,
    /// New bytes that were sent because of `extra`.
    pub limited: u32,
    /// Slow-start threshold.
    pub ssthresh: u32,
    /// The peer's advertised window.
    pub peer: u32,
    /// The largest window the peer ever advertised.
    pub peer_max: u32,
    /// Oldest unacknowledged position.
    pub una: u64,
    /// Next position to send.
    pub nxt: u64,
    /// Highest position sent plus one.
    pub max: u64,
    /// One past the last byte that the application has written.
    pub end: u64,
    /// Whether the application has closed: a FIN follows the last byte.
    pub fin: bool,
    /// Whether the FIN may be sent now. In Linux an application writes before it closes, so data that leaves at the write
    /// does not carry the FIN (`tcp_send_fin`).
    fin_due: bool,
    /// A segment to send next, independent of the window.
    pub repair: Option<(u64, Cause)>,
    /// Cause of retransmissions below `max`.
    pub again: Cause,
    /// The largest window that the peer can advertise, which bounds the congestion window.
    pub largest: u32,
    /// When a partial segment waits for more data.
    pub coalescing: Coalescing,
    /// End position of the last partial segment.
    pub small: u64,
    /// Positions at which segments must end (`MSG_EOR`), lowest first.
    records: Vec<u64>,
    /// Socket send buffer, which bounds the outstanding bytes.
    pub(in crate::tcp) send_buffer: u32,
    halving: Halving,
    packets: Packets,
    /// Whether Linux's rules apply: the probe of a closed window carries no data, and a retransmission only data that
    /// was sent before.
    pub(super) linux: bool,
}

/// Windows up to this size are filled by one segment (`TCP_MSS_DEFAULT` of Linux).
const TINY_WINDOW: u32 = 536;
/// Least segment size that follows from a small window.
const MSS_LEAST: u32 = 48;

impl Window {
    /// Asserts that the edges are in order and that the windows have a size.
    pub fn check(&self) {
        debug_assert!(self.una <= self.nxt, "unacknowledged {} after next {}", self.una, self.nxt);
        debug_assert!(self.nxt <= self.max, "next {} after the highest {}", self.nxt, self.max);
        debug_assert!(
            self.max <= self.end + u64::from(self.fin),
            "sent up to {}, written up to {}",
            self.max,
            self.end
        );
        debug_assert!(self.mss > 0, "segment size");
        debug_assert!(self.mss <= self.path_mss.max(self.mss), "segment size of the path");
        debug_assert!(self.cwnd > 0, "a window without a byte stops for ever");
        debug_assert!(self.peer <= self.peer_max, "largest window of the peer: {}", self.peer_max);
        debug_assert!(
            self.repair.is_none_or(|(from, _)| from < self.max),
            "a repair of unsent data: {:?}",
            self.repair
        );
        debug_assert!(self.records.len() <= RECORDS_MAX, "limit of record ends");
        debug_assert!(self.records.is_sorted(), "record ends ascend");
        debug_assert!(self.small <= self.end + 1, "end of the last partial segment");
        debug_assert!(self.reports <= 40, "SACK blocks exceed the TCP header: {}", self.reports);
    }

    /// Windows before the handshake.
    pub fn new(config: &TcpConfig) -> Window {
        Window {
            mss: config.mss.max(1),
            path_mss: config.mss.max(1),
            reports: 0,
            cwnd: config.mss.saturating_mul(config.initial_window),
            extra: 0,
            limited: 0,
            ssthresh: config.initial_ssthresh,
            peer: 0,
            peer_max: 0,
            una: 0,
            nxt: 0,
            max: 0,
            end: 1,
            fin: false,
            fin_due: config.growth != GrowthRule::Linux,
            repair: None,
            again: Cause::TimeoutRetransmit,
            largest: 0xffff,
            coalescing: Coalescing::Never,
            small: 0,
            records: Vec::new(),
            send_buffer: config.send_buffer,
            halving: config.halving,
            packets: Packets::new(config),
            linux: config.growth == GrowthRule::Linux,
        }
    }

    /// Requires that a segment ends at `position`, the end of the written data.
    pub fn end_record(&mut self, position: u64) {
        self.records.retain(|end| *end > self.una);
        if position > self.nxt.max(self.max) && self.records.len() < RECORDS_MAX {
            self.records.push(position);
        }
    }

    /// Whether a segment must end at `position`.
    pub(in crate::tcp) fn ends_record(&self, position: u64) -> bool {
        self.records.binary_search(&position).is_ok()
    }

    /// Sets the segment size and the peer's first window after the handshake.
    pub fn settle(&mut self, config: &TcpConfig, mss: u32, peer: u32) {
        self.set_peer(peer);
        self.set_mss(mss);
        self.cwnd = self.mss.saturating_mul(config.initial_window);
    }

    /// Sets the segment size that the path and the peer permit, in bytes.
    pub fn set_mss(&mut self, bytes: u32) {
        self.path_mss = bytes.max(1);
        self.mss = self.bounded_mss();
    }

    /// The segment size that the path and the peer permit, in bytes.
    pub fn path_mss(&self) -> u32 {
        self.path_mss
    }

    /// The segment size. In Linux it is at most half of the peer's largest window (`tcp_bound_to_half_wnd`). So a
    /// receiver with a small buffer gets two segments, and does not delay its ACK.
    fn bounded_mss(&self) -> u32 {
        match self.linux {
            true => self.path_mss.min(self.half_peer().max(MSS_LEAST)),
            false => self.path_mss,
        }
    }

    /// Records the advertised window of the peer.
    pub fn set_peer(&mut self, bytes: u32) {
        self.peer = bytes;
        if bytes <= self.peer_max {
            return;
        }
        self.peer_max = bytes;
        let (before, mss) = (self.mss, self.bounded_mss());
        if self.linux && mss > before {
            // Linux counts cwnd and ssthresh in segments.
            let resized = |bytes: u32| {
                (u64::from(bytes) * u64::from(mss) / u64::from(before)).min(u32::MAX.into()) as u32
            };
            (self.cwnd, self.ssthresh) = (resized(self.cwnd), resized(self.ssthresh));
            self.mss = mss;
        }
    }

    /// Maximum payload of the next segment.
    pub fn payload(&self) -> u32 {
        self.mss.saturating_sub(self.reports).max(1)
    }

    /// One past the last position of the stream, FIN included.
    pub fn last(&self) -> u64 {
        self.end + u64::from(self.fin)
    }

    /// Records that the application closes after all its writes.
    pub fn close(&mut self) {
        (self.fin, self.fin_due) = (true, true);
    }

    /// Whether the FIN follows the last byte at once.
    pub fn is_closed(&self) -> bool {
        self.fin && self.fin_due
    }

    /// Permits the FIN once the send buffer holds all data. Returns whether it was not permitted before.
    pub fn close_written(&mut self) -> bool {
        let closes =
            self.fin && !self.fin_due && self.end <= self.una + u64::from(self.send_buffer);
        self.fin_due |= closes;
        closes
    }

    /// Number of sent and unacknowledged positions.
    pub fn flight(&self) -> u32 {
        (self.max - self.una) as u32
    }

    /// The slow-start threshold after a loss: half of the bytes that [`Halving`] selects, in whole segments. Fast
    /// recovery may use the exact half.
    //= rfc5681#section-3.1: at most max(FlightSize / 2, 2 * SMSS)
    pub fn half(&self, loss: Loss) -> u32 {
        let whole = match self.halving {
            Halving::Window => self.cwnd.min(self.peer),
            //= rfc5681#section-3.2: data sent by limited transmit is not counted
            Halving::Flight => self.flight().saturating_sub(self.limited),
        };
        self.packets.half(whole, self.mss, loss)
    }

    /// Whether each timeout lowers the threshold, not only the first one for a segment.
    pub(super) fn halves_at_each_timeout(&self) -> bool {
        self.halving == Halving::Window
    }

    /// The threshold as a window of at least one segment. A smaller window would permit no segment, and no ACK could
    /// open it.
    pub fn floor(&self) -> u32 {
        self.ssthresh.max(self.mss)
    }

    /// Reduces the congestion window to the threshold.
    pub fn fall(&mut self) {
        self.cwnd = self.floor();
    }

    /// `bytes` rounded down to whole segments.
    pub fn in_segments(&self, bytes: u32) -> u32 {
        bytes / self.mss * self.mss
    }

    /// Resets the allowance of limited transmit.
    pub fn end_extra(&mut self) {
        (self.extra, self.limited) = (0, 0);
    }

    /// Opens the congestion window by `bytes`.
    pub fn open(&mut self, bytes: u32) {
        self.cwnd = self.cwnd.saturating_add(bytes).min(self.largest.max(self.cwnd));
    }

    /// The segment from position `from`, at most one segment size and not beyond the sent data.
    pub fn chunk_at(&self, from: u64, cause: Cause) -> Chunk {
        let most = (from + u64::from(self.mss)).min(self.end).min(self.max);
        let len = most.saturating_sub(from) as u32;
        let fin = self.fin && from + u64::from(len) == self.end && self.max > self.end;
        Chunk { from, len, fin, cause }
    }

    /// Records a sent segment.
    pub(in crate::tcp) fn note_sent(&mut self, chunk: &Chunk) {
        if chunk.len < self.payload() && chunk.len > 0 && chunk.from >= self.max {
            self.small = chunk.end();
        }
    }

    /// Size in bytes of a buffer with written data, in whole segments: at most half of the peer's largest window
    /// (`tcp_xmit_size_goal`).
    pub(in crate::tcp) fn buffer_goal(&self) -> u64 {
        let mss = u64::from(self.payload());
        (u64::from(self.half_peer()).min(LARGEST) / mss).max(1) * mss
    }

    /// Half of the peer's largest window, unless it is tiny.
    fn half_peer(&self) -> u32 {
        match self.peer_max {
            0 => u32::MAX,
            tiny if tiny <= TINY_WINDOW => tiny,
            window => window / 2,
        }
    }

    /// The segment from position `from`, ended at `to`.
    pub fn chunk_between(&self, from: u64, to: u64, cause: Cause) -> Chunk {
        self.chunk_at(from, cause).cut(to)
    }

    /// Shortens a retransmission that leaves no room for SACK blocks.
    pub fn with_room(&self, chunk: Chunk) -> Chunk {
        if chunk.len > self.payload() {
            chunk.cut(chunk.from + u64::from(self.payload()))
        } else {
            chunk
        }
    }

    /// Upper bound of the bytes that one call can send: each position in flight twice, as a repair and in order, and new
    /// data up to the peer's window.
    pub fn allowance(&self) -> u64 {
        let window = u64::from(self.peer.min(self.send_buffer));
        2 * window.max(self.max - self.una) + 4 * u64::from(self.mss)
    }

    /// A window probe: one byte beyond a closed window, or the content of a small window that has not grown for a
    /// long time.
    //= rfc9293#section-3.8.6.1: zero-window probing
    //= rfc9293#section-3.8.6.2.1: after the override timeout the window is used as it is
    pub fn probe(&self) -> Option<Chunk> {
        if self.linux && self.peer == 0 && (1..self.last()).contains(&self.una) {
            // Below the window, so that the peer answers without storing data (`tcp_xmit_probe_skb`).
            let cause = Cause::WindowProbe;
            return Some(Chunk { from: self.una - 1, len: 0, fin: false, cause });
        }
        let fin = self.una >= self.end && self.fin;
        (self.una < self.last()).then_some(Chunk {
            from: self.una,
            len: self.end.saturating_sub(self.una).min(self.allowed().clamp(1, self.mss.into()))
                as u32,
            fin,
            cause: if self.peer > 0 { Cause::Data } else { Cause::WindowProbe },
        })
    }

    /// The socket's send buffer in bytes.
    pub fn buffer(&self) -> u32 {
        self.send_buffer
    }

    /// Outstanding bytes that the congestion window permits.
    pub fn congestion(&self) -> u32 {
        self.packets.usable(self.cwnd.saturating_add(self.extra), self.mss)
    }

    /// Outstanding bytes that all windows permit.
    pub fn allowed(&self) -> u64 {
        u64::from(self.congestion().min(self.peer).min(self.send_buffer))
    }

    /// The next new segment, independent of the congestion window, for a caller that compares it with the bytes in the
    /// network. The peer's window and the send buffer still apply.
    pub fn new_chunk(&mut self) -> Option<Chunk> {
        self.nxt = self.nxt.max(self.max);
        let congestion = core::mem::replace(&mut self.cwnd, u32::MAX);
        let new = self.next_chunk();
        self.cwnd = congestion;
        new
    }

    /// The next new segment, with a congestion window that permits `room` further bytes.
    pub fn chunk_within(&mut self, room: u64) -> Option<Chunk> {
        let room = self.packets.usable(room.min(u32::MAX.into()) as u32, self.mss);
        let window = (self.nxt - self.una + u64::from(room)).min(u32::MAX.into()) as u32;
        let congestion = core::mem::replace(&mut self.cwnd, window);
        let whole = core::mem::take(&mut self.packets.whole_segments);
        let chunk = self.next_chunk();
        (self.cwnd, self.packets.whole_segments) = (congestion, whole);
        chunk
    }

    /// Whether a partial segment waits for more data.
    //= rfc9293#section-3.7.4: Nagle, with Minshall's change: one small segment may be outstanding
    fn coalesces(&self) -> bool {
        match self.coalescing {
            Coalescing::Never => false,
            Coalescing::Nagle => self.small > self.una,
            Coalescing::Cork => true,
        }
    }

    /// The next segment from `nxt` on, if the windows allow one and it is large enough to avoid the silly window
    /// syndrome.
    #[inline]
    pub fn next_chunk(&self) -> Option<Chunk> {
        let len = self.payload();
        // The usual case is new data before the last segment: a full segment, or less than half a window of room.
        if self.nxt >= self.max && self.nxt + u64::from(len) < self.end && self.records.is_empty() {
            let room = (self.una + self.allowed()).saturating_sub(self.nxt);
            if room >= len.into() {
                return Some(Chunk { from: self.nxt, len, fin: false, cause: Cause::Data });
            }
            if room < u64::from(self.peer_max / 2) {
                return None;
            }
        }
        self.next_chunk_at_edge()
    }

    /// The next segment in all cases.
    #[inline(never)]
    fn next_chunk_at_edge(&self) -> Option<Chunk> {
        let resent = self.nxt < self.max;
        let limit = self.una
            + match resent && self.nxt == self.una && self.una > 0 && self.peer == 0 {
                // The oldest segment probes a withdrawn window (`__tcp_retransmit_skb`).
                true if self.linux => u64::from(self.mss.min(self.congestion())),
                _ => self.allowed(),
            };
        let most = if resent && self.linux { self.max } else { limit };
        let sendable = self.end.min(limit).min(most);
        let full = self.payload();
        let mut len = (sendable.saturating_sub(self.nxt)).min(full.into()) as u32;
        let mut ends = false;
        if !self.records.is_empty()
            && let Some(end) = self.records.get(self.records.partition_point(|e| *e <= self.nxt))
            && self.nxt + u64::from(len) >= *end
        {
            (len, ends) = ((end - self.nxt) as u32, *end < self.end);
        }
        let reaches_end = self.nxt + u64::from(len) == self.end;
        // The congestion window counts segments, so a FIN that leaves with data needs room in the peer's window only.
        let limit = if len > 0 && self.linux { self.una + u64::from(self.peer) } else { limit };
        let fin = self.is_closed() && reaches_end && self.nxt <= self.end && limit > self.end;
        if len == 0 && !fin {
            return None;
        }
        //= rfc9293#section-3.8.6.2.1: no silly windows: a full segment, the last one, or half a window
        let worthwhile = len == full || reaches_end || resent || ends || len >= self.peer_max / 2;
        if !worthwhile || len < full && !fin && !resent && !ends && self.coalesces() {
            return None;
        }
        let cause =
            if self.nxt + u64::from(len) <= self.max && resent { self.again } else { Cause::Data };
        Some(Chunk { from: self.nxt, len, fin, cause })
    }
}
