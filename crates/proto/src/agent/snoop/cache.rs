//! Packets of one flow that have passed the base station and are unacknowledged.

use std::collections::VecDeque;

use crate::agent::StoredSegment;
use crate::travel::{Travels, can_travel, travels};
use crate::wire::Packet;

/// A cached packet. Positions are 64-bit stream offsets, so they never wrap.
#[derive(Clone, Debug)]
pub(in super::super) struct Entry {
    /// Position of its first byte.
    pub(in super::super) start: u64,
    /// Position past its last byte; a FIN counts one.
    pub(in super::super) end: u64,
    /// The copy.
    pub(super) packet: Packet,
    /// Number of its last transmission over the wireless link, among all of the flow, from 1.
    pub(in super::super) sent_as: u64,
    /// Local retransmissions since the sender's last transmission.
    pub(in super::super) attempts: u32,
    /// Whether the sender's last transmission was a retransmission, so that it expects duplicate ACKs.
    pub(in super::super) by_sender: bool,
    /// Whether the receiver has reported it as received, behind a hole.
    pub(in super::super) reported: bool,
}

travels!(Entry { start, end, packet, sent_as, attempts, by_sender, reported });

impl Entry {
    /// Its description for [`StoredSegment`].
    pub(super) fn stored_segment(&self) -> Option<StoredSegment> {
        let (flow, segment) = (self.packet.flow()?, self.packet.segment()?);
        let attempts = self.attempts;
        Some(StoredSegment { flow, seq: segment.seq, len: self.packet.body.len(), attempts })
    }
}

/// Cached packets ordered by position. No packet contains another, so the ends are ordered as well.
#[derive(Clone, Debug, Default)]
pub(super) struct Cache {
    entries: VecDeque<Entry>,
    bytes: u64,
    /// Whether there may be super-packets.
    supers: bool,
}

impl Cache {
    /// Asserts that the entries are in order, and that their bytes are counted.
    pub(super) fn check(&self) {
        debug_assert_eq!(self.entries.is_empty(), self.bytes == 0, "bytes of the cache");
        if !cfg!(debug_assertions) || self.entries.len() > 32 {
            return;
        }
        debug_assert!(self.entries.iter().all(|entry| entry.start < entry.end), "an empty packet");
        debug_assert!(
            self.entries.iter().is_sorted_by(|a, b| a.start < b.start),
            "packets in the order of their data"
        );
        debug_assert!(
            self.entries.iter().is_sorted_by(|a, b| a.end < b.end),
            "no packet contains another"
        );
        let bytes = self.entries.iter().map(|entry| u64::from(entry.packet.wire_len()));
        debug_assert_eq!(bytes.sum::<u64>(), self.bytes, "bytes of the cached packets");
        debug_assert!(
            self.supers || self.entries.iter().all(|entry| entry.packet.piece == 0),
            "a super-packet"
        );
    }

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

    /// Bytes of headers and payload of all cached packets.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn front(&self) -> Option<&Entry> {
        self.entries.front()
    }

    pub(super) fn get(&self, i: usize) -> Option<&Entry> {
        self.entries.get(i)
    }

    pub(super) fn get_mut(&mut self, i: usize) -> Option<&mut Entry> {
        self.entries.get_mut(i)
    }

    /// The entries in order.
    pub(super) fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter()
    }

    /// The entries in order, mutable.
    pub(super) fn entries_mut(&mut self) -> impl Iterator<Item = &mut Entry> {
        self.entries.iter_mut()
    }

    /// Index of the entry that a timer retransmits: the first one that no SACK block has reported.
    pub(super) fn first_missing(&self) -> usize {
        self.position(|e| !e.reported).unwrap_or(0)
    }

    /// Index of the first entry that fulfils `is`.
    pub(super) fn position(&self, is: impl FnMut(&Entry) -> bool) -> Option<usize> {
        self.entries.iter().position(is)
    }

    /// Local retransmissions of the packet that ends at `end`; zero if it is not cached.
    pub(super) fn attempts(&self, end: u64) -> u32 {
        let at = self.entries.partition_point(|e| e.end < end);
        self.entries.get(at).filter(|e| e.end == end).map_or(0, |e| e.attempts)
    }

    /// The entry that contains all bytes from `start` to `end`.
    pub(super) fn holding(&mut self, start: u64, end: u64) -> Option<&mut Entry> {
        let after = self.entries.partition_point(|e| e.start <= start);
        let entry = self.entries.get_mut(after.checked_sub(1)?)?;
        (end <= entry.end).then_some(entry)
    }

    /// Replaces the packet of the entry that contains all its bytes by one with new headers. Returns false if
    /// the range is not cached as one packet; a smaller piece leaves the larger one unchanged.
    pub(super) fn refresh(&mut self, start: u64, end: u64, packet: &Packet) -> bool {
        let Some(entry) = self.holding(start, end) else { return false };
        if (entry.start, entry.end) == (start, end) {
            let old = u64::from(entry.packet.wire_len());
            entry.packet.clone_from(packet);
            self.bytes = self.bytes - old + u64::from(packet.wire_len());
        }
        true
    }

    /// Adds an entry that no other entry contains, and removes all entries within it. A sender may use
    /// other packet boundaries when it retransmits.
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

    /// Removes all packets below `ack`. Returns the latest transmission that this ACK confirms. For a
    /// retransmitted packet this is the retransmission only if `hole` shows that the first transmission was
    /// lost.
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

    /// Replaces super-packet `i` by its packets, without those below `acked`. Returns the number of new
    /// entries.
    pub(super) fn cut(&mut self, i: usize, acked: u64) -> usize {
        let Some(whole) = self.entries.get(i).filter(|e| e.packet.pieces() > 1) else { return 1 };
        let whole = whole.clone();
        let count = u64::from(whole.packet.pieces());
        let size = u64::from(whole.packet.piece);
        let pieces = (0..count).zip(whole.packet.cut()).map(|(n, packet)| {
            let start = whole.start + n * size;
            let end = if n + 1 == count { whole.end } else { start + size };
            // A retransmission of the whole counts once.
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

    /// Splits the super-packet that contains more than the bytes from `start` to `end`.
    pub(super) fn cut_holding(&mut self, start: u64, end: u64, acked: u64) {
        let after = self.entries.partition_point(|e| e.start <= start);
        if let Some(i) = after.checked_sub(1)
            && self.entries[i].end >= end
            && (self.entries[i].start, self.entries[i].end) != (start, end)
        {
            self.cut(i, acked);
        }
    }

    /// Removes packets with the data plane's bytes before `place`. Returns the number of bytes.
    pub(super) fn forget_held(&mut self, place: u64) -> u64 {
        let before = self.bytes;
        let bytes = &mut self.bytes;
        self.entries.retain(|e| {
            let retained = e.packet.body.held_at().is_none_or(|at| at >= place);
            if !retained {
                *bytes -= u64::from(e.packet.wire_len());
            }
            retained
        });
        before - self.bytes
    }

    /// Position past the last byte of a run of cached bytes without holes that begins at or before `from`;
    /// `from` itself if there is none.
    pub(super) fn contiguous(&self, from: u64) -> u64 {
        self.entries
            .iter()
            .try_fold(from, |edge, e| if e.start <= edge { Ok(edge.max(e.end)) } else { Err(edge) })
            .unwrap_or_else(|edge| edge)
    }

    /// Removes packets that cannot be moved to another base station.
    pub(super) fn pack(&mut self) {
        self.entries.retain(|e| can_travel(&e.packet));
        self.count();
    }

    /// Retains the oldest `count` packets.
    pub(super) fn truncate(&mut self, count: usize) {
        self.entries.truncate(count);
        self.count();
    }

    fn count(&mut self) {
        self.bytes = self.entries.iter().map(|e| u64::from(e.packet.wire_len())).sum();
        self.supers = self.entries.iter().any(|e| e.packet.piece != 0);
    }

    /// Removes all packets, but retains the capacity.
    pub(super) fn clear(&mut self) {
        self.entries.clear();
        self.bytes = 0;
        self.supers = false;
    }
}

impl Travels for Cache {
    fn size(&self) -> u64 {
        4 + self.entries.iter().map(Travels::size).sum::<u64>()
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
    fn attempts_are_looked_up_by_packet_end() {
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
    fn the_cache_does_not_grow_with_resegmented_data() {
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

    /// The data plane overwrites its oldest bytes first.
    #[test]
    fn packets_the_data_plane_overwrote_are_dropped_and_counted() {
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
        fn entries_stay_ordered_and_the_byte_count_is_exact(
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
