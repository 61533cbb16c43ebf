//! The packets of one flow that have passed the base station and are not acknowledged yet.

use std::collections::VecDeque;

use crate::agent::Kept;
use crate::travel::FAR;
use crate::travel::{Reader, Travels, Writer, can_travel, travels};
use crate::wire::{FlowKey, Packet};

/// A cached packet. Positions are 64-bit stream offsets, so that nothing here wraps.
#[derive(Clone, Debug)]
pub(in super::super) struct Entry {
    /// Position of its first byte.
    pub(in super::super) start: u64,
    /// Position past its last byte; a FIN counts one.
    pub(in super::super) end: u64,
    /// The copy.
    pub(super) packet: Packet,
    /// Which of the flow's transmissions over the wireless link was its last, counted from 1.
    pub(in super::super) sent_as: u64,
    /// Local retransmissions since the sender last sent it.
    pub(in super::super) attempts: u32,
    /// Whether the sender's last transmission was a retransmission: it expects duplicate ACKs to reach it.
    pub(in super::super) by_sender: bool,
    /// Whether the receiver has reported it as received, behind a hole.
    pub(in super::super) reported: bool,
}

travels!(Entry { start, end, packet, sent_as, attempts, by_sender, reported });

/// A super-packet is no more packets than this.
const PIECES: u32 = 1024;

impl Entry {
    /// What is told of it.
    pub(super) fn kept(&self) -> Option<Kept> {
        let (flow, segment) = (self.packet.flow()?, self.packet.segment()?);
        let attempts = self.attempts;
        Some(Kept { flow, seq: segment.seq, len: self.packet.body.len(), attempts })
    }

    /// Whether it is a packet of `flow` that holds what it says, and not from the end of the number space.
    fn is_sound(&self, flow: FlowKey) -> bool {
        let len = self.packet.segment().map(|segment| segment.seq_len(self.packet.body.len()));
        self.packet.flow() == Some(flow)
            && self.end < FAR
            && self.start < self.end
            && len.map(u64::from) == Some(self.end - self.start)
            && self.packet.pieces() <= PIECES
            && self.attempts < u32::MAX / 2
    }
}

/// Cached packets in the order of their positions. None contains another, so ends are in order as well.
#[derive(Clone, Debug, Default)]
pub(super) struct Cache {
    entries: VecDeque<Entry>,
    bytes: u64,
    /// Whether there may be super-packets.
    supers: bool,
}

impl Cache {
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Whether there may be super-packets.
    #[inline]
    pub(super) fn has_supers(&self) -> bool {
        self.supers
    }

    /// Headers and payload of all cached packets.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn front(&self) -> Option<&Entry> {
        self.entries.front()
    }

    pub(super) fn get_mut(&mut self, i: usize) -> Option<&mut Entry> {
        self.entries.get_mut(i)
    }

    /// The entries in order.
    pub(super) fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter()
    }

    /// The same, to be changed.
    pub(super) fn entries_mut(&mut self) -> impl Iterator<Item = &mut Entry> {
        self.entries.iter_mut()
    }

    /// The number of the first entry that is so.
    pub(super) fn position(&self, is: impl FnMut(&Entry) -> bool) -> Option<usize> {
        self.entries.iter().position(is)
    }

    /// Local retransmissions of the packet that ends at `end`; zero if it is not here.
    pub(super) fn attempts(&self, end: u64) -> u32 {
        let at = self.entries.partition_point(|e| e.end < end);
        self.entries.get(at).filter(|e| e.end == end).map_or(0, |e| e.attempts)
    }

    /// The entry that holds all bytes from `start` to `end`.
    pub(super) fn holding(&mut self, start: u64, end: u64) -> Option<&mut Entry> {
        let after = self.entries.partition_point(|e| e.start <= start);
        let entry = self.entries.get_mut(after.checked_sub(1)?)?;
        (end <= entry.end).then_some(entry)
    }

    /// Replaces the packet of the entry that holds all its bytes, with the same bytes in other headers.
    /// Returns false if the range is not cached as one packet; a smaller piece leaves the larger one in place.
    pub(super) fn refresh(&mut self, start: u64, end: u64, packet: &Packet) -> bool {
        let Some(entry) = self.holding(start, end) else { return false };
        if (entry.start, entry.end) == (start, end) {
            let old = u64::from(entry.packet.wire_len());
            entry.packet.clone_from(packet);
            self.bytes = self.bytes - old + u64::from(packet.wire_len());
        }
        true
    }

    /// Adds an entry that no other one holds, and drops those that it holds (the sender may cut its bytes into
    /// other packets when it retransmits).
    pub(super) fn insert(&mut self, entry: Entry) {
        self.supers |= entry.packet.piece != 0;
        self.bytes += u64::from(entry.packet.wire_len());
        if self.entries.back().is_none_or(|last| last.start < entry.start) {
            self.entries.push_back(entry);
            return;
        }
        let at = self.entries.partition_point(|e| e.start < entry.start);
        while let Some(held) = self.entries.get(at).filter(|e| e.end <= entry.end) {
            self.bytes -= u64::from(held.packet.wire_len());
            self.entries.remove(at);
        }
        self.entries.insert(at, entry);
    }

    /// Drops everything below `ack`; the last transmission that this ACK gives news of. For a packet that was
    /// retransmitted that is its retransmission only if `hole` says that the first transmission was lost.
    pub(super) fn release(&mut self, ack: u64, hole: bool) -> Option<u64> {
        let mut latest = None;
        while let Some(entry) = self.entries.front().filter(|e| e.end <= ack) {
            self.bytes -= u64::from(entry.packet.wire_len());
            if hole || entry.attempts == 0 {
                latest = latest.max(Some(entry.sent_as));
            }
            self.entries.pop_front();
        }
        latest
    }

    /// Puts the packets of super-packet `i` in its place, without those below `acked`. How many entries are there now
    /// in place of the one.
    pub(super) fn cut(&mut self, i: usize, acked: u64) -> usize {
        let Some(whole) = self.entries.get(i).filter(|e| e.packet.pieces() > 1) else { return 1 };
        let whole = whole.clone();
        let count = u64::from(whole.packet.pieces());
        let size = u64::from(whole.packet.piece);
        let pieces = (0..count).zip(whole.packet.cut()).map(|(n, packet)| {
            let start = whole.start + n * size;
            let end = if n + 1 == count { whole.end } else { start + size };
            // A retransmission of the whole is counted once.
            let sent_as = (whole.sent_as + 1 + n).saturating_sub(count);
            Entry { start, end, packet, sent_as, ..whole.clone() }
        });
        let pieces: Vec<Entry> = pieces.filter(|piece| piece.end > acked).collect();
        self.bytes -= u64::from(whole.packet.wire_len());
        self.bytes += pieces.iter().map(|e| u64::from(e.packet.wire_len())).sum::<u64>();
        let there = pieces.len();
        let behind = self.entries.split_off(i);
        self.entries.extend(pieces);
        self.entries.extend(behind.into_iter().skip(1));
        there
    }

    /// Cuts the super-packet that holds more than the bytes from `start` to `end`.
    pub(super) fn cut_holding(&mut self, start: u64, end: u64, acked: u64) {
        let after = self.entries.partition_point(|e| e.start <= start);
        if let Some(i) = after.checked_sub(1)
            && self.entries[i].end >= end
            && (self.entries[i].start, self.entries[i].end) != (start, end)
        {
            self.cut(i, acked);
        }
    }

    /// Drops the packets whose bytes the data plane had before `place`; how many bytes those were.
    pub(super) fn forget_held(&mut self, place: u64) -> u64 {
        let before = self.bytes;
        let bytes = &mut self.bytes;
        self.entries.retain(|e| {
            let kept = e.packet.body.held_at().is_none_or(|at| at >= place);
            if !kept {
                *bytes -= u64::from(e.packet.wire_len());
            }
            kept
        });
        before - self.bytes
    }

    /// Position past the last byte of an unbroken run of cached bytes that begins at or before `from`;
    /// `from` itself if there is none.
    pub(super) fn contiguous(&self, from: u64) -> u64 {
        self.entries
            .iter()
            .try_fold(from, |edge, e| if e.start <= edge { Ok(edge.max(e.end)) } else { Err(edge) })
            .unwrap_or_else(|edge| edge)
    }

    /// Drops what cannot travel.
    pub(super) fn pack(&mut self) {
        self.entries.retain(|e| can_travel(&e.packet));
        self.count();
    }

    /// Keeps the oldest `count` packets.
    pub(super) fn truncate(&mut self, count: usize) {
        self.entries.truncate(count);
        self.count();
    }

    fn count(&mut self) {
        self.bytes = self.entries.iter().map(|e| u64::from(e.packet.wire_len())).sum();
        self.supers = self.entries.iter().any(|e| e.packet.piece != 0);
    }

    /// Whether these are packets of `flow` in order, none sent as a later transmission than `sent`.
    pub(super) fn is_sound(&self, flow: FlowKey, sent: u64) -> bool {
        let pairs = self.entries.iter().zip(self.entries.iter().skip(1));
        self.entries.iter().all(|e| e.is_sound(flow) && e.sent_as <= sent)
            && pairs.into_iter().all(|(a, b)| a.start < b.start && a.end < b.end)
    }

    /// Drops all packets, but keeps the room they took.
    pub(super) fn clear(&mut self) {
        self.entries.clear();
        self.bytes = 0;
        self.supers = false;
    }
}

impl Travels for Cache {
    fn write(&self, to: &mut Writer) {
        (self.entries.len() as u32).write(to);
        self.entries.iter().for_each(|entry| entry.write(to));
    }
    fn read(from: &mut Reader<'_>) -> Option<Cache> {
        let entries: Vec<Entry> = Travels::read(from)?;
        let mut cache = Cache { entries: entries.into(), ..Cache::default() };
        cache.count();
        Some(cache)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Addr, Body, Flags, Segment, Seq};
    use proptest::prelude::*;

    fn entry(start: u64, end: u64) -> Entry {
        let segment = Segment::new(1, 2, Seq(start as u32), Seq(0), Flags::ACK);
        let body = Body::Pattern { stream: 0, len: (end - start) as u32, offset: start };
        let packet = Packet::tcp(Addr::v4(1, 1, 1, 1), Addr::v4(2, 2, 2, 2), segment, body);
        Entry { start, end, packet, sent_as: start, attempts: 0, by_sender: false, reported: false }
    }

    fn put(cache: &mut Cache, start: u64, end: u64) {
        let new = entry(start, end);
        if !cache.refresh(start, end, &new.packet) {
            cache.insert(new);
        }
    }

    #[test]
    fn attempts_are_those_of_the_packet_that_ends_there() {
        let mut cache = Cache::default();
        for (start, attempts) in [(10, 0), (20, 3), (40, 5)] {
            cache.insert(Entry { attempts, ..entry(start, start + 10) });
        }
        let all = [15, 20, 25, 30, 35, 40, 50, 60].map(|end| cache.attempts(end));
        assert_eq!(all, [0, 0, 0, 3, 0, 0, 5, 0]);
    }

    #[test]
    fn a_hole_ends_the_contiguous_run() {
        let mut cache = Cache::default();
        put(&mut cache, 10, 20);
        put(&mut cache, 30, 40);
        assert_eq!(cache.contiguous(10), 20);
        assert_eq!(cache.contiguous(5), 5);
        put(&mut cache, 20, 30);
        assert_eq!(cache.contiguous(10), 40);
        assert_eq!(cache.contiguous(50), 50);
    }

    #[test]
    fn other_cuts_of_the_same_bytes_do_not_pile_up() {
        let mut cache = Cache::default();
        put(&mut cache, 10, 20);
        put(&mut cache, 20, 30);
        put(&mut cache, 12, 15);
        assert_eq!(cache.len(), 2);
        put(&mut cache, 10, 30);
        assert_eq!(cache.len(), 1);
        assert_eq!(cache.bytes(), 40 + 20);
        assert_eq!(cache.release(30, true), Some(10));
        assert_eq!((cache.len(), cache.bytes()), (0, 0));
    }

    /// The data plane writes over the bytes that it has had longest.
    #[test]
    fn what_the_data_plane_has_no_more_is_dropped_and_counted() {
        let mut cache = Cache::default();
        for (i, place) in [1000u64, 2000, 3000].into_iter().enumerate() {
            let start = 100 * i as u64;
            let mut held = entry(start, start + 100);
            held.packet.body = Body::held(place, 100);
            cache.insert(held);
        }
        put(&mut cache, 300, 400);
        assert_eq!(cache.bytes(), 4 * 140);
        assert_eq!(cache.forget_held(1000), 0, "all are there still");
        assert_eq!(cache.forget_held(3000), 2 * 140, "two packets are gone");
        assert_eq!((cache.len(), cache.bytes()), (2, 2 * 140));
        assert_eq!(cache.forget_held(u64::MAX), 140, "bytes of our own stay");
        assert_eq!((cache.len(), cache.bytes()), (1, 140));
    }

    proptest! {
        #[test]
        fn order_and_byte_count_hold(
            puts in prop::collection::vec((0u64..100, 1u64..30, 0u64..40), 1..60),
        ) {
            let mut cache = Cache::default();
            for (start, len, ack) in puts {
                put(&mut cache, start, start + len);
                prop_assert!(cache.holding(start, start + len).is_some());
                cache.release(ack, true);
                let pairs = cache.entries.iter().zip(cache.entries.iter().skip(1));
                prop_assert!(pairs.clone().all(|(a, b)| a.start < b.start && a.end < b.end));
                let bytes: u64 = cache.entries.iter().map(|e| u64::from(e.packet.wire_len())).sum();
                prop_assert_eq!(cache.bytes(), bytes);
            }
        }
    }
}
