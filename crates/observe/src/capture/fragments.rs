//! Reassembly of fragmented IP packets, in bounded memory.
//!
//! Fragments are stored as far as they were captured; the reassembled packet has the captured bytes up to the first gap
//! and its length on the wire. As Linux does for both versions of IP, a packet whose fragments overlap is not read
//! (RFC 5722); identical copies of a fragment are no overlap.

use std::collections::BTreeMap;

use lasthop_proto::units::{Span, Time};
use lasthop_proto::wire::{Addr, CE};

use super::content::{Content, Protocol, Reason};
use super::tunnel;

/// Packets that are being reassembled or were completed lately.
const MAX_PACKETS: usize = 1024;

/// Memory for stored fragments.
const MAX_BYTES: usize = 4 << 20;

/// Memory that a fragment takes beyond its bytes, about.
const OVERHEAD: usize = 128;

/// A packet is given up when it is incomplete for so long; Linux has the same limit.
const INCOMPLETE: Span = Span::secs(30);

/// Time for which a complete packet is stored to detect copies of its fragments.
const COMPLETE: Span = Span::secs(1);

/// Length that no IP packet exceeds.
const MAX_LEN: u32 = 65_535;

/// Common fields of the fragments of one packet.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Key {
    pub(super) src: Addr,
    pub(super) dst: Addr,
    /// Zero on IPv6, where fragments are matched without it.
    pub(super) protocol: u8,
    pub(super) id: u32,
}

/// One fragment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fragment<'a> {
    pub(super) key: Key,
    /// Offset of its first byte.
    pub(super) at: u32,
    /// Its length on the wire.
    pub(super) len: usize,
    pub(super) more: bool,
    /// As far as they were captured.
    pub(super) bytes: &'a [u8],
    /// Protocol of the packet's payload.
    pub(super) protocol: u8,
    pub(super) tos: u8,
    pub(super) ttl: u8,
}

/// A reassembled payload.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Whole {
    /// As far as it was captured without a gap.
    pub(super) bytes: Vec<u8>,
    pub(super) wire: usize,
    pub(super) protocol: u8,
    /// That of the first fragment; congestion experienced if any fragment reports it (RFC 3168, 5.3).
    pub(super) tos: u8,
    pub(super) ttl: u8,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Open,
    Complete,
    /// The payload is known not to hold TCP.
    Ignored(Protocol),
    Overlapping,
}

#[derive(Clone, Debug)]
struct Stored {
    len: u32,
    bytes: Box<[u8]>,
}

#[derive(Clone, Debug)]
struct Packet {
    state: State,
    fragments: BTreeMap<u32, Stored>,
    /// Sum of the fragments' lengths.
    have: u32,
    /// Known once the last fragment is there.
    total: Option<u32>,
    began: Time,
    order: u64,
    protocol: u8,
    tos: u8,
    ttl: u8,
    marked: bool,
}

/// The packets that are being reassembled.
#[derive(Clone, Debug, Default)]
pub(super) struct Fragments {
    packets: BTreeMap<Key, Packet>,
    /// By the order of their first fragments.
    queue: BTreeMap<u64, Key>,
    next: u64,
    memory: usize,
}

impl Fragments {
    /// Stores a fragment that was captured at `now`; answers the packet that it completes. `out` gets the outcome of
    /// every fragment except that of the packet itself.
    pub(super) fn insert(
        &mut self,
        now: Time,
        fragment: Fragment<'_>,
        out: &mut impl FnMut(Content),
    ) -> Option<Whole> {
        let Some(len) = checked(&fragment) else {
            out(Content::Unread(Reason::Malformed));
            return None;
        };
        self.expire(now, out);
        if self.is_repeated(now, &fragment, len, out) {
            return None;
        }
        let order = self.next;
        let packet = self.packets.entry(fragment.key).or_insert_with(|| Packet::new(now, order));
        if packet.order == order {
            self.queue.insert(order, fragment.key);
            self.next += 1;
        }
        let end = fragment.at + len;
        if packet.contradicts(fragment.at, end, fragment.more) {
            for _ in 0..=packet.fragments.len() {
                out(Content::Unread(Reason::OverlappingFragments));
            }
            self.memory -= packet.clear();
            packet.state = State::Overlapping;
            return None;
        }
        self.memory += packet.store(&fragment, len);
        if fragment.at == 0 && fragment.protocol == UDP && !tunnel::may_be_tunnel(fragment.bytes) {
            let protocol = Protocol::Ip(UDP);
            (0..packet.fragments.len()).for_each(|_| out(Content::Other(protocol)));
            self.memory -= packet.clear();
            packet.state = State::Ignored(protocol);
            return None;
        }
        let whole = packet.whole();
        if whole.is_some() {
            packet.state = State::Complete;
            packet.began = now;
            (1..packet.fragments.len()).for_each(|_| out(Content::Fragment));
        }
        while self.memory > MAX_BYTES || self.packets.len() > MAX_PACKETS {
            self.evict(out);
        }
        whole
    }

    /// Gives up all packets that are not complete.
    pub(super) fn finish(&mut self, out: &mut impl FnMut(Content)) {
        while !self.queue.is_empty() {
            self.evict(out);
        }
    }

    /// Whether the outcome of a fragment follows from that of its packet.
    fn is_repeated(
        &mut self,
        now: Time,
        fragment: &Fragment<'_>,
        len: u32,
        out: &mut impl FnMut(Content),
    ) -> bool {
        let Some(packet) = self.packets.get(&fragment.key) else { return false };
        let stored = packet.fragments.get(&fragment.at).filter(|stored| stored.len == len);
        let copy = stored.map(|stored| *stored.bytes == *fragment.bytes);
        match (packet.state, copy) {
            (State::Ignored(protocol), _) => out(Content::Other(protocol)),
            (State::Overlapping, _) => out(Content::Unread(Reason::OverlappingFragments)),
            (State::Complete, Some(true)) if age(now, packet) <= COMPLETE => out(Content::Fragment),
            (State::Open, Some(true)) => out(Content::Fragment),
            // The identification is used again.
            (State::Complete, _) | (State::Open, Some(false)) => {
                self.remove(fragment.key, out);
                return false;
            }
            (State::Open, None) => return false,
        }
        true
    }

    fn expire(&mut self, now: Time, out: &mut impl FnMut(Content)) {
        while let Some(key) = self.queue.first_key_value().map(|(_, key)| *key)
            && self.packets.get(&key).is_some_and(|packet| age(now, packet) > INCOMPLETE)
        {
            self.remove(key, out);
        }
    }

    fn evict(&mut self, out: &mut impl FnMut(Content)) {
        let Some((_, key)) = self.queue.first_key_value() else { return };
        self.remove(*key, out);
    }

    fn remove(&mut self, key: Key, out: &mut impl FnMut(Content)) {
        let Some(mut packet) = self.packets.remove(&key) else { return };
        self.queue.remove(&packet.order);
        if packet.state == State::Open {
            let incomplete = Content::Unread(Reason::IncompleteFragments);
            packet.fragments.iter().for_each(|_| out(incomplete.clone()));
        }
        self.memory -= packet.clear();
    }
}

const UDP: u8 = 17;

fn age(now: Time, packet: &Packet) -> Span {
    Span(now.0.saturating_sub(packet.began.0))
}

/// The length of a fragment that is formed as one.
fn checked(fragment: &Fragment<'_>) -> Option<u32> {
    let len = u32::try_from(fragment.len).ok()?;
    let fits = len > 0 && fragment.at.checked_add(len)? <= MAX_LEN;
    // All but the last are counted in units of eight bytes.
    (fits && (!fragment.more || len.is_multiple_of(8))).then_some(len)
}

impl Packet {
    fn new(began: Time, order: u64) -> Packet {
        Packet {
            state: State::Open,
            fragments: BTreeMap::new(),
            have: 0,
            total: None,
            began,
            order,
            protocol: 0,
            tos: 0,
            ttl: 0,
            marked: false,
        }
    }

    /// Whether the bytes `at..end` overlap others, or pass the end of the packet.
    fn contradicts(&self, at: u32, end: u32, more: bool) -> bool {
        let before = self.fragments.range(..=at).next_back();
        let after = self.fragments.range(at..).next();
        let last = self.fragments.last_key_value().map_or(0, |(at, stored)| at + stored.len);
        before.is_some_and(|(begin, stored)| begin + stored.len > at)
            || after.is_some_and(|(begin, _)| *begin < end)
            || self.total.is_some_and(|total| end > total || (!more && end != total))
            || (!more && last > end)
    }

    /// Stores a fragment; answers what memory it takes.
    fn store(&mut self, fragment: &Fragment<'_>, len: u32) -> usize {
        let bytes: Box<[u8]> = fragment.bytes.into();
        let memory = bytes.len() + OVERHEAD;
        self.fragments.insert(fragment.at, Stored { len, bytes });
        self.have += len;
        self.marked |= fragment.tos & CE == CE;
        if !fragment.more {
            self.total = Some(fragment.at + len);
        }
        if fragment.at == 0 {
            self.protocol = fragment.protocol;
            self.tos = fragment.tos;
            self.ttl = fragment.ttl;
        }
        memory
    }

    /// Forgets the fragments; answers what memory they took.
    fn clear(&mut self) -> usize {
        let fragments = core::mem::take(&mut self.fragments);
        fragments.values().map(|stored| stored.bytes.len() + OVERHEAD).sum()
    }

    fn whole(&self) -> Option<Whole> {
        let total = self.total.filter(|total| self.have == *total)?;
        let mut bytes = Vec::new();
        for (at, stored) in &self.fragments {
            if bytes.len() != *at as usize {
                break;
            }
            bytes.extend_from_slice(&stored.bytes);
        }
        let tos = if self.marked { self.tos | CE } else { self.tos };
        Some(Whole { bytes, wire: total as usize, protocol: self.protocol, tos, ttl: self.ttl })
    }
}
