//! The latest packets of a capture, by their fingerprints: a table with sets of four, as in the cache of a processor.

use core::cmp::Reverse;

use super::{ELSEWHERE, Print, WITHIN};
use lasthop_proto::units::Span;

/// Initial and maximum number of sets of stored packets: at most 512 KiB of slots and 64 KiB of tags.
const FIRST_SETS: usize = 1 << 8;
const SETS: usize = 1 << 13;
/// Packets of one set; the oldest is replaced, unless it may still have a copy and the table can grow.
const WAYS: usize = 4;

/// A stored packet, in a quarter of a cache line.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Slot {
    /// Lower half of its fingerprint; zero if there is none.
    print: u32,
    /// Time in units of 1024 ns, modulo 73 minutes.
    at: u32,
    pub(super) link: u32,
    /// Bits of its fingerprint that select the set.
    index: u16,
    pub(super) ttl: u8,
    /// Number of its copies.
    pub(super) copies: u8,
}

const _: () = assert!(size_of::<Set>() == 64);

#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
struct Set([Slot; WAYS]);

impl Slot {
    pub(super) fn new(packet: &Print) -> Slot {
        Slot {
            print: packet.value as u32 | 1,
            at: (packet.at.0 >> 10) as u32,
            link: packet.link,
            index: (packet.value >> 40) as u16,
            ttl: packet.ttl,
            copies: 0,
        }
    }

    /// Bits of the fingerprint for [`Tags`], never zero.
    fn tag(&self) -> u64 {
        u64::from(self.print >> 1 & Tags::MASK as u32).max(1)
    }

    /// Whether both have the same fingerprint.
    fn is_of(&self, other: &Slot) -> bool {
        (self.print, self.index) == (other.print, other.index)
    }

    /// Whether there is a packet that was captured so shortly before `later` that a copy may follow.
    fn may_have_copy(&self, later: &Slot) -> bool {
        self.print != 0 && self.until(later, ELSEWHERE).is_some_and(|after| after <= WITHIN)
    }

    /// The time between this packet and `later`, in either order; `None` if their times are in the wrong order by more
    /// than `swapped`.
    pub(super) fn until(&self, later: &Slot, swapped: Span) -> Option<Span> {
        let span = |units: u32| Span(u64::from(units) << 10);
        let after = later.at.wrapping_sub(self.at);
        match after <= u32::MAX / 2 {
            true => Some(span(after)),
            false => Some(span(after.wrapping_neg())).filter(|before| *before <= swapped),
        }
    }
}

/// Tags of the packets in a set, zero if there is none, and the way of the next packet in the lowest bits. Most
/// packets are no copies, as their tags show. The tags stay in a faster cache than the slots, which are only written.
#[derive(Clone, Copy, Debug, Default)]
struct Tags(u64);

impl Tags {
    const BITS: usize = 15;
    const MASK: u64 = (1 << Tags::BITS) - 1;
    /// Ways are counted in two bits.
    const WAY: u64 = WAYS as u64 - 1;

    fn shift(way: usize) -> usize {
        Tags::BITS * way + 2
    }

    fn next(self) -> usize {
        (self.0 & Tags::WAY) as usize
    }

    fn is_at(self, way: usize, tag: u64) -> bool {
        self.0 >> Tags::shift(way) & Tags::MASK == tag
    }

    /// Replaces the tag of the next way.
    fn add(&mut self, tag: u64) {
        let (way, at) = (self.next(), Tags::shift(self.next()));
        let rest = self.0 & !(Tags::MASK << at | Tags::WAY);
        self.0 = rest | tag << at | (way as u64 + 1) & Tags::WAY;
    }
}

/// The latest packets of a capture, by their fingerprints.
#[derive(Clone, Debug, Default)]
pub(super) struct Store {
    sets: Vec<Set>,
    /// Tags of each set.
    tags: Vec<Tags>,
}

impl Store {
    /// The number of the packet's set.
    fn place(&self, packet: &Slot) -> usize {
        usize::from(packet.index) & (self.sets.len() - 1)
    }

    /// The stored packet with the fingerprint of `packet`.
    pub(super) fn find(&mut self, packet: &Slot) -> Option<&mut Slot> {
        if self.sets.is_empty() {
            return None;
        }
        let place = self.place(packet);
        let (Set(slots), tags) = (&mut self.sets[place], &self.tags[place]);
        let tag = packet.tag();
        let way = (0..WAYS).find(|way| tags.is_at(*way, tag) && slots[*way].is_of(packet))?;
        Some(&mut slots[way])
    }

    /// Stores a packet. The table grows if the packet would replace one that may still have a copy.
    pub(super) fn insert(&mut self, packet: Slot) {
        if self.sets.is_empty() {
            self.grow(packet.at);
        }
        while self.sets.len() < SETS && self.replaced_by(&packet).may_have_copy(&packet) {
            self.grow(packet.at);
        }
        self.add(packet);
    }

    /// The slot of the oldest packet in the set of `packet`.
    fn replaced_by(&self, packet: &Slot) -> &Slot {
        let place = self.place(packet);
        &self.sets[place].0[self.tags[place].next()]
    }

    /// Replaces the oldest packet of a set.
    fn add(&mut self, packet: Slot) {
        let place = self.place(&packet);
        let tags = &mut self.tags[place];
        self.sets[place].0[tags.next()] = packet;
        tags.add(packet.tag());
    }

    /// Doubles the number of sets; `now` is the time of the next packet.
    fn grow(&mut self, now: u32) {
        let many = (self.sets.len() * 2).clamp(FIRST_SETS, SETS);
        let old = core::mem::replace(&mut self.sets, vec![Set::default(); many]);
        self.tags = vec![Tags::default(); many];
        let slots = old.into_iter().flat_map(|set| set.0).filter(|slot| slot.print != 0);
        let mut slots: Vec<Slot> = slots.collect();
        // Ways are replaced in the order in which they were filled, so insert the oldest packet first.
        slots.sort_by_key(|slot| Reverse(now.wrapping_sub(slot.at) as i32));
        slots.into_iter().for_each(|slot| self.add(slot));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::copies::{Copies, Doubling, Feedback};
    use lasthop_proto::units::Time;

    /// Whether each of `packets` is a copy; a packet has a number, a set, and a time in milliseconds.
    fn are_copies(packets: &[(u64, u64, u64)]) -> Vec<bool> {
        let (mut copies, mut doubling) = (Copies::default(), Doubling::default());
        let is_copy = |&(number, set, at): &(u64, u64, u64)| {
            let (value, at) = (set << 40 | number << 1, Time::ZERO + Span::millis(at));
            let (identified, opens, counts) = (true, false, true);
            // The copies are those behind a router.
            let (link, ttl, retry) =
                (0, if at < Time::ZERO + Span::millis(500) { 64 } else { 63 }, false);
            let packet = Print { value, at, link, ttl, identified, opens, counts, retry };
            copies.is_copy(&mut doubling, &Doubling::default(), &packet, None, Feedback::default)
        };
        packets.iter().map(is_copy).collect()
    }

    /// The fifth packet of a set makes the table grow, which separates them.
    #[test]
    fn packets_that_may_have_copies_are_not_replaced() {
        let set_of = |number: u64| number * FIRST_SETS as u64;
        let packets = (1..=5).map(|number| (number, set_of(number), number));
        let copies = (1..=5).map(|number| (number, set_of(number), 500 + number));
        let found = are_copies(&packets.chain(copies).collect::<Vec<_>>());
        assert_eq!(found, [[false; 5], [true; 5]].concat());
    }

    /// Growth cannot separate packets with equal bits. They keep their order, so the first one is replaced.
    #[test]
    fn the_oldest_packet_of_a_set_is_replaced() {
        let packets = (1..=5).map(|number| (number, 0, number));
        let copies = (1..=5).rev().map(|number| (number, 0, 506 - number));
        let found = are_copies(&packets.chain(copies).collect::<Vec<_>>());
        assert_eq!(found, [[false; 5], [true, true, true, true, false]].concat());
    }

    #[test]
    fn the_oldest_of_four_tags_is_replaced() {
        let mut tags = Tags::default();
        for tag in 1..=6 {
            tags.add(tag);
        }
        let at = |tag| (0..WAYS).find(|way| tags.is_at(*way, tag));
        assert_eq!([1, 2, 3, 4, 5, 6].map(at), [None, None, Some(2), Some(3), Some(0), Some(1)]);
        tags.add(Tags::MASK);
        assert_eq!((tags.is_at(2, Tags::MASK), tags.is_at(3, 4), tags.next()), (true, true, 3));
    }
}
