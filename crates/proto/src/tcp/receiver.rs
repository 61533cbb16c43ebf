//! The receiver of a connection: reassembly, delivery, and the timing of ACKs.

mod acks;
mod blocks;

use std::sync::Arc;

use crate::describe::{Kind, SIM, System};
use crate::units::{Due, Time};
use crate::wire::Body;

use super::Settings;
use super::acc::{AckControl, Report};
use super::config::{AccConfig, MaxSeg, TcpConfig};
use super::quick::QuickAcks;
use super::rope::Rope;

/// Description of the system, for lists.
pub const DELAYED_ACK: System = System::new(
    Kind::Receiver,
    "delayed-ack",
    "host: delayed-ack = { every = 2, timeout = \"200ms\" }",
    "acknowledge every segment, every other one with a timer, or by the timer alone",
    "RFC 1122 4.2.3.2, agarwal00 4.5",
)
.runs(SIM);

/// Effect of a segment on the receiver.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Taken {
    /// Bytes that were delivered in order.
    pub delivered: u32,
    /// Whether all data up to the peer's FIN was delivered.
    pub fin: bool,
    /// Whether a delivered byte differs from the sent one.
    pub corrupted: bool,
    /// Whether the segment filled a hole.
    pub filled: bool,
}

/// The receiver of a connection. Positions are stream offsets of the peer: 0 is its SYN.
#[derive(Clone, Debug)]
pub struct Receiver {
    /// Next expected position.
    pub nxt: u64,
    /// Size of the receive buffer in bytes, which bounds the window.
    pub buffer: u32,
    mss: u32,
    /// One past the last position that was ever advertised; never shrinks.
    edge: u64,
    /// Bytes that were delivered, and that the application has not read.
    unread: u64,
    /// Whether the application reads delivered data at once.
    pub reading: bool,
    /// Whether a proxy takes delivered data at once, and frees its space later.
    pub forwards: bool,
    /// Delivered data for the application, if it takes the bytes themselves.
    pub inbox: Option<Box<Rope>>,
    /// Data behind a hole, while there is any.
    out_of_order: Option<Box<OutOfOrder>>,
    /// Range of a duplicate segment that the next ACK reports (D-SACK).
    duplicate: Option<Box<(u64, u64)>>,
    fin_at: Option<u64>,
    /// The pattern of the first delivered byte, and the offset in it of the next byte.
    stream: Option<u32>,
    offset: u64,
    settings: Arc<Settings>,
    /// Whether data in order was dropped for lack of memory; the next ACK closes the window.
    starved: bool,
    ack_now: bool,
    ack_at: Due,
    unacked: u32,
    /// Unit in bytes in which 4.4BSD counts unacknowledged data; 0 counts segments.
    maxseg: u32,
    /// Congestion control of this end's ACKs, if both ends agreed on it.
    control: Option<Box<AckControl>>,
    /// The timing of ACKs in Linux.
    quick: Option<Box<QuickAcks>>,
}

/// Data that a receiver stores behind a hole.
#[derive(Clone, Debug)]
struct OutOfOrder {
    /// Sorted by position, disjoint.
    pieces: Vec<Piece>,
    /// A position in each of the most recently extended blocks, newest first: the order of SACK blocks.
    recent: [u64; 4],
    /// End position of the newest piece of the first of these blocks.
    grew_to: u64,
    /// The blocks of Linux, newest first: it forgets the oldest of five.
    four: Vec<(u64, u64)>,
}

impl Default for OutOfOrder {
    fn default() -> OutOfOrder {
        let (pieces, four) = (Vec::new(), Vec::new());
        OutOfOrder { pieces, recent: [u64::MAX; 4], grew_to: u64::MAX, four }
    }
}

#[derive(Clone, Debug)]
struct Piece {
    from: u64,
    to: u64,
    body: Body,
}

/// Maximum number of pieces: a hostile peer could send fragments of one byte without end.
const PIECES_MAX: usize = 1024;

impl Receiver {
    /// Reads words of its cache lines, as a prefetch. The result has no meaning.
    #[inline]
    pub fn touch(&self) -> u64 {
        self.nxt ^ self.ack_at.or_never().0 ^ u64::from(self.maxseg)
    }

    /// Asserts that data, window and buffer agree.
    pub fn check(&self) {
        debug_assert!(self.unread <= self.nxt, "unread data was received");
        debug_assert!(
            self.fin_at.is_none_or(|fin| self.nxt <= fin + 1),
            "data after the FIN: {} after {:?}",
            self.nxt,
            self.fin_at
        );
        debug_assert!(
            self.duplicate.as_ref().is_none_or(|range| range.0 < range.1),
            "an empty duplicate"
        );
        let Some(behind) = &self.out_of_order else { return };
        debug_assert!(
            behind.pieces.first().is_none_or(|piece| piece.from > self.nxt),
            "a piece in order was not delivered"
        );
        for piece in &behind.pieces {
            debug_assert!(piece.from < piece.to, "an empty piece");
            debug_assert_eq!(
                u64::from(piece.body.len()),
                piece.to - piece.from,
                "bytes of a piece"
            );
        }
        debug_assert!(
            behind.pieces.is_sorted_by(|a, b| a.to <= b.from),
            "pieces are sorted and disjoint"
        );
        let last = behind.pieces.last().filter(|_| self.quick.is_none());
        debug_assert!(
            self.fin_at.is_none_or(|fin| last.is_none_or(|last| last.to <= fin)),
            "a piece after the FIN"
        );
    }

    /// A receiver before the handshake.
    pub fn new(config: &Arc<Settings>) -> Receiver {
        Receiver {
            nxt: 0,
            buffer: config.recv_buffer,
            mss: config.mss,
            edge: 0,
            unread: 0,
            reading: true,
            forwards: false,
            inbox: None,
            out_of_order: None,
            duplicate: None,
            fin_at: None,
            stream: None,
            offset: 0,
            starved: false,
            ack_now: false,
            ack_at: Due::NEVER,
            unacked: 0,
            maxseg: 0,
            control: None,
            quick: config.quick_acks.then(|| Box::new(QuickAcks::new(config))),
            settings: config.clone(),
        }
    }

    /// The first window of Linux for segments of `mss` bytes; `None` for other hosts, whose first window is the buffer.
    pub(super) fn first_window(&self, mss: u32) -> Option<u64> {
        self.quick.as_ref().map(|quick| quick.first_window(mss))
    }

    /// Sets the receive buffer to `bytes`.
    pub(super) fn set_buffer(&mut self, bytes: u32) {
        self.buffer = bytes;
        self.quick.iter_mut().for_each(|quick| quick.fix_buffer(bytes));
    }

    /// Starts the window of Linux with this end's segments of `mss` bytes, in multiples of `unit`; `sack` is whether both
    /// ends agreed on it.
    pub(super) fn open_window(&mut self, mss: u32, unit: u64, sack: bool) {
        self.quick.iter_mut().for_each(|quick| quick.open(mss, unit, sack));
    }

    /// Starts after the peer's SYN: data begins at position 1, in segments of `mss` bytes. `whole` is their size
    /// without the reduction for options.
    pub fn synchronise(&mut self, config: &TcpConfig, mss: u32, whole: u32) {
        self.nxt = 1;
        self.mss = mss;
        self.maxseg = match config.maxseg {
            MaxSeg::None => 0,
            MaxSeg::Mss => whole,
            MaxSeg::Bytes(bytes) => bytes,
        };
        match self.quick.as_mut().filter(|_| !self.forwards) {
            Some(quick) => {
                quick.assume(mss);
                self.edge = self.nxt + quick.last_window();
            }
            None => {
                self.edge = 0;
                self.window();
            }
        }
    }

    /// Records the end of the handshake.
    pub fn established(&mut self, now: Time) {
        if let Some(quick) = &mut self.quick {
            quick.established(now, self.nxt);
        }
    }

    /// Whether the application has read all delivered data.
    pub(super) fn has_read(&self) -> bool {
        self.unread == 0
    }

    /// The part of the receiver that needs round-trip samples, if there is one.
    #[inline]
    pub(super) fn timed(&mut self) -> Option<&mut QuickAcks> {
        self.quick.as_deref_mut()
    }

    /// Enables congestion control of ACKs, on which both ends agreed.
    pub fn control_acks(&mut self, config: AccConfig) {
        self.control = Some(Box::new(AckControl::new(config)));
    }

    /// Processes the sender's report about ACKs. Returns the delayed-ACK factor if the report has changed it.
    pub fn on_ack_report(&mut self, report: &Report) -> Option<u32> {
        let control = self.control.as_mut()?;
        control.learn(report).then(|| control.every())
    }

    /// Bytes delivered in order: all positions except SYN and FIN.
    pub fn delivered(&self) -> u64 {
        let fin = self.fin_at.is_some_and(|at| at < self.nxt);
        self.nxt.saturating_sub(1 + u64::from(fin))
    }

    /// One past the last acceptable position.
    pub fn edge(&self) -> u64 {
        self.edge
    }

    /// The window to advertise. It never shrinks below the advertised edge, and grows only in steps of a minimum size.
    //= rfc9293#section-3.8.6.2.2: by the smaller of half the buffer and one segment
    #[inline]
    pub fn window(&mut self) -> u64 {
        let moved = self.opens();
        let step = if self.quick.is_some() { 1 } else { self.step() };
        if moved >= step || self.edge < self.nxt {
            self.edge += moved;
        }
        let mut window = self.edge.saturating_sub(self.nxt);
        if let Some(quick) = self.quick.as_mut().filter(|_| !self.forwards) {
            window = quick.advertise(if self.starved { 0 } else { window });
            self.edge = self.nxt + window;
        }
        window
    }

    /// By how much an ACK could move the edge of the window.
    #[inline]
    fn opens(&self) -> u64 {
        // The buffer of a proxy grows by its own rule. Both rules together would block each other: a host's window
        // grows only if a round trip has more data, and only up to the buffer.
        let free = match self.quick.as_ref().filter(|_| !self.forwards) {
            Some(quick) => quick.offer(),
            None => u64::from(self.buffer).saturating_sub(self.unread),
        };
        (self.nxt + free).saturating_sub(self.edge)
    }

    /// Minimum step of the edge, in bytes.
    fn step(&self) -> u64 {
        u64::from(self.mss.min(self.buffer / 2).max(1))
    }

    /// Whether neither data nor a FIN waits behind a hole.
    pub fn has_no_gap(&self) -> bool {
        self.out_of_order.is_none() && self.fin_at.is_none()
    }

    /// Whether all data up to the peer's FIN was delivered.
    pub fn is_finished(&self) -> bool {
        self.fin_at.is_some_and(|at| at < self.nxt)
    }

    /// Out-of-order pieces.
    #[inline]
    fn pieces(&self) -> &[Piece] {
        self.out_of_order.as_ref().map_or(&[], |stored| &stored.pieces)
    }

    /// Number of bytes stored out of order.
    fn behind_hole(&self) -> u64 {
        self.pieces().iter().map(|p| p.to - p.from).sum()
    }

    /// Distance from the expected position to the end of the last out-of-order piece, in bytes.
    fn reach(&self) -> u64 {
        self.pieces().last().map_or(0, |last| last.to - self.nxt)
    }

    /// One past the last position that is stored out of order, with the FIN behind it.
    pub(super) fn stored_to(&self) -> Option<u64> {
        let last = self.pieces().last()?.to;
        Some(last + u64::from(self.fin_at == Some(last)))
    }

    /// Bytes stored out of order, and delivered bytes that the application has not taken.
    pub fn held(&self) -> u64 {
        self.behind_hole() + self.inbox.as_ref().map_or(0, |inbox| inbox.len())
    }

    /// Accepts the data `body` from position `from` on, already cut to the window.
    #[inline]
    pub fn take(&mut self, now: Time, from: u64, body: Body, fin: bool) -> Taken {
        let plain = from == self.nxt && !fin && self.has_no_gap() && self.quick.is_none();
        if !plain || body.is_empty() {
            return self.take_any(now, from, body, fin);
        }
        // The common case: the expected data, without a hole.
        let mut taken = Taken::default();
        self.deliver(&body, &mut taken);
        self.count_in_order(now, body.len());
        taken
    }

    /// Whether the buffer has memory for a segment with `len` bytes from position `from` on. Linux drops data behind later
    /// holes for it. Otherwise this segment is dropped, and one in order causes an ACK that closes the window
    /// (`tcp_data_queue`). If the segment is the expected one, `sending` is the memory of data to send.
    #[inline]
    pub fn admits(&mut self, from: u64, len: u32, sending: Option<u64>) -> bool {
        self.quick.is_none() || self.finds_memory(from, len, sending)
    }

    fn finds_memory(&mut self, from: u64, len: u32, sending: Option<u64>) -> bool {
        let Some(quick) = self.quick.as_mut().filter(|_| !self.forwards) else { return true };
        let (found, dropped) = quick.finds_memory(from, sending.map(|sending| (len, sending)));
        let unread = quick.buffer().has_unread();
        if let Some((end, stored)) = dropped.zip(self.out_of_order.as_mut()) {
            stored.four.clear();
            self.fin_at.take_if(|fin| *fin >= end);
            while let Some(mut last) = stored.pieces.pop_if(|last| last.to > end) {
                if last.from < end {
                    last.body = last.body.slice(0, (end - last.from) as u32);
                    stored.pieces.push(Piece { to: end, ..last });
                }
            }
            self.free_out_of_order();
        }
        let next = from == self.nxt;
        self.starved |= !found && next;
        self.ack_now |= self.starved;
        found || next && (len == 0 || !unread)
    }

    fn take_any(&mut self, now: Time, from: u64, body: Body, fin: bool) -> Taken {
        let (mut to, mut body) = (from + u64::from(body.len()), body);
        // The first FIN determines the end of the stream, unless data behind it has already arrived. Linux discards that data
        // when the FIN is in order (`tcp_fin`).
        let linux = self.quick.is_some();
        let ends = fin && self.fin_at.is_none() && (linux || to >= self.nxt + self.reach());
        let again = fin && self.fin_at == Some(to);
        if ends {
            self.fin_at = Some(to);
            if linux && from == self.nxt {
                self.discard_behind_fin();
            }
        }
        //= rfc9293#section-3.10.7.4: text behind the FIN is ignored
        if let Some(end) = self.fin_at.filter(|end| to > *end) {
            body = body.slice(0, end.saturating_sub(from) as u32);
            to = from + u64::from(body.len());
        }
        let mut taken = Taken::default();
        if let Some(quick) = self.quick.as_mut().filter(|_| from == self.nxt && !body.is_empty()) {
            quick.arrived(now, body.len());
            quick.filled(now, to);
            if !self.reading {
                quick.buffer().store(to, body.len());
            }
        }
        if from == self.nxt && self.out_of_order.is_none() {
            self.deliver(&body, &mut taken);
            if !body.is_empty() {
                self.count_in_order(now, body.len());
            }
        } else {
            taken.filled = from == self.nxt;
            if taken.filled {
                // There is always room for the expected data.
                self.deliver(&body, &mut taken);
                if let Some(quick) = &mut self.quick {
                    let twice = quick.buffer().advance(self.nxt, self.reading);
                    self.report_twice(twice);
                }
            } else if let Some(quick) = &mut self.quick {
                let end = to + u64::from(ends || again);
                let twice = quick.arrived_ahead((from, end), body.len(), ends || again);
                self.report_twice(twice);
                self.store(from, to, body);
                self.out_of_order.get_or_insert_default().note_as_linux((from, end));
                let held = self.reach();
                self.quick.iter_mut().for_each(|quick| quick.spread(held));
            } else {
                self.store(from, to, body);
                if ends {
                    self.out_of_order.get_or_insert_default();
                    self.note_recent(to, to + 1);
                } else if again {
                    self.note_fin_again(from, to);
                }
            }
            while !(linux && self.fin_at == Some(self.nxt))
                && let Some(piece) = self.next_piece()
            {
                let skip = (self.nxt - piece.from).min(piece.to - piece.from) as u32;
                if !linux {
                    self.report_duplicate(piece.from, piece.from + u64::from(skip));
                }
                self.deliver(&piece.body.slice(skip, u32::MAX), &mut taken);
            }
            if self.fin_at == Some(self.nxt) {
                self.discard_behind_fin();
            }
            self.acknowledge_hole(now);
        }
        if self.fin_at == Some(self.nxt) {
            self.nxt += 1;
            taken.fin = true;
            self.ack_now = true;
        }
        if let Some(quick) = self.quick.as_mut().filter(|_| taken.delivered > 0) {
            quick.buffer().check_prediction();
        }
        let held = if self.quick.is_some() { self.reach() } else { 0 };
        let reads = taken.delivered > 0 && (self.reading || self.forwards);
        if let Some(quick) = self.quick.as_mut().filter(|_| reads) {
            quick.read((now, self.nxt), held);
        }
        taken
    }

    /// Delays the ACK of the peer's FIN, as Linux does until the application closes (`tcp_fin`). It reports no duplicates.
    pub(super) fn await_close(&mut self, now: Time) {
        let Some(quick) = &mut self.quick else { return };
        self.duplicate = None;
        if quick.delays_fin(self.nxt) {
            let delay = quick.delay(self.settings.delayed_ack.timeout);
            self.ack_now = self.delay_ack(now, delay);
        }
    }

    /// Discards data behind the FIN, which is in order.
    fn discard_behind_fin(&mut self) {
        self.out_of_order = None;
        self.quick.iter_mut().for_each(|quick| quick.buffer().discard_ahead());
    }

    /// Removes the first stored piece if no data is missing before it.
    fn next_piece(&mut self) -> Option<Piece> {
        let nxt = self.nxt;
        let stored = self.out_of_order.as_mut()?;
        if stored.pieces.first().is_none_or(|p| p.from > nxt) {
            return None;
        }
        let piece = stored.pieces.remove(0);
        self.free_out_of_order();
        Some(piece)
    }

    /// Frees the reassembly state once neither data nor a FIN waits behind a hole.
    fn free_out_of_order(&mut self) {
        let waits = self.fin_at.is_some_and(|at| at >= self.nxt);
        self.out_of_order.take_if(|stored| stored.pieces.is_empty() && !waits);
    }

    /// Requires an immediate ACK for data behind or in a hole. Linux may combine several ACKs while a hole is left.
    //= rfc5681#section-4.2: immediate ACK for out-of-order data and for data that fills a gap
    pub(super) fn acknowledge_hole(&mut self, now: Time) {
        let quick = self.quick.as_mut().filter(|_| self.out_of_order.is_some());
        match quick.and_then(|quick| quick.behind_hole(now, self.nxt)) {
            Some(at) => self.ack_at = Due::at(self.ack_at.or_never().min(at)),
            None => self.ack_now = true,
        }
    }

    #[inline]
    fn deliver(&mut self, body: &Body, taken: &mut Taken) {
        let len = body.len();
        if len == 0 {
            return;
        }
        if let Body::Pattern { stream, offset, .. } = body {
            let expected = *self.stream.get_or_insert(*stream);
            taken.corrupted |= expected != *stream || self.offset != *offset;
            self.offset = offset + u64::from(len);
        }
        if let Some(inbox) = &mut self.inbox {
            inbox.push(body.clone());
        }
        self.nxt += u64::from(len);
        if !self.reading {
            self.unread += u64::from(len);
        }
        taken.delivered += len;
    }

    /// Stores out-of-order data from position `from` to `to`.
    fn store(&mut self, from: u64, to: u64, body: Body) {
        let mut from = from.max(self.nxt);
        let start = to - u64::from(body.len());
        let mut at = self.pieces().partition_point(|p| p.to <= from);
        // Fill only the gaps between the stored pieces: bytes are never replaced.
        while from < to && self.pieces().len() < PIECES_MAX {
            let (next_from, next_to) =
                self.pieces().get(at).map_or((u64::MAX, u64::MAX), |p| (p.from, p.to));
            if next_from <= from {
                let end = to.min(next_to);
                if self.quick.is_none() {
                    self.report_duplicate(from, end);
                    //= rfc2883#section-4: the block that contains the duplicate follows it
                    self.note_recent(from, end);
                }
                from = from.max(next_to);
                at += 1;
                continue;
            }
            let end = to.min(next_from);
            let part = body.slice((from - start) as u32, (end - from) as u32);
            let pieces = &mut self.out_of_order.get_or_insert_default().pieces;
            let before = at.checked_sub(1).map(|i| &mut pieces[i]).filter(|p| p.to == from);
            match before.and_then(|p| p.body.joined(&part).map(|b| (p, b))) {
                Some((piece, whole)) => (piece.to, piece.body) = (end, whole),
                None => {
                    pieces.insert(at, Piece { from, to: end, body: part.compact() });
                    at += 1;
                }
            }
            self.note_recent(from, end);
            from = end;
        }
    }
}

mod moving;
pub use moving::Inbound;

#[cfg(test)]
mod tests;
