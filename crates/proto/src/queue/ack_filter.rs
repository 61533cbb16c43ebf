//! ACK filtering: an ACK that enters the queue removes older ones of its connection, since ACKs are
//! cumulative.
//!
//! On a slow return link ACKs arrive faster than they can leave. They fill the queue, and useful ACKs wait
//! behind redundant ones. With the filter about one ACK of each connection waits, and the queue has room.
//!
//! **Which ACK removes which.** The new one is a pure ACK with a larger cumulative acknowledgement, and joins
//! the tail of the queue: the paper's rule. RFC 3449 adds exceptions: an ACK with more information than its
//! number is never removed, nor is a duplicate that fast retransmit counts. The rules are cited in `clears`,
//! `is_plain` and `Memory::note`.
//!
//! **Room.** An ACK that does not fit even in the slot of an older one is dropped as in any full queue, and
//! removes nothing.
//!
//! **Cost.** An ACK finds its connection by one look-up, and through it a chain of removable ACKs; it never
//! searches the queue. It visits at most one ACK more than it removes (all of the chain if it removes at random), at logarithmic cost in the queue's
//! length. Removed ACKs leave holes without bytes. An arrival never finds more holes than the maximum number
//! of packets, plus [`HOLES`].
//!
//! **State.** The paper needs none, because it removes duplicates as well. To recognise a duplicate whose
//! original has left, the last acknowledgement of each connection is stored: of at least the [`FLOWS`] most
//! recent connections, and of at most twice as many. An ACK of an unknown connection is not removed.

use std::collections::VecDeque;

use serde::Serialize;

use super::{Discipline, Read};
use crate::describe::{Descriptor, Keys, Kind, System};
use crate::event::Cause;
use crate::flows::FlowMap;
use crate::machine::{Out, Side};
use crate::rng::Stream;
use crate::units::{Probability, Time};
use crate::wire::{Ackp, Flags, FlowKey, Packet, Segment, Seq};

use super::{FEW, Order, Room, Waiting, is_pure_ack};

/// Minimum number of stored connections.
pub const FLOWS: usize = 1024;
/// Number of holes in the queue that are always tolerated.
pub const HOLES: usize = 16;
/// Copies of an ACK that are not removed: the first and the three duplicates that cause a fast retransmit.
//= rfc3449#section-5.2.1: the three duplicate ACKs that ask for fast retransmit must not be deleted
//= rfc5681#section-3.2: the third duplicate ACK makes the sender retransmit
const COPIES: u32 = 4;
/// The largest window: an acknowledgement further ahead belongs to another connection.
//= rfc7323#section-2.3: windows are at most 2^30 bytes
const WINDOW: i32 = 1 << 30;

/// An entry of the queue.
#[derive(Clone, Debug)]
struct Slot {
    /// Serial number, ascending from head to tail.
    serial: u64,
    /// `None` if it was removed.
    waiting: Option<Waiting>,
    /// Serial number of the previous removable ACK of the same connection.
    previous: Option<u64>,
}

pub(super) const WORDS: &[Descriptor<Read>] = &[Descriptor {
    word: "ack-filter",
    system: System::new(
        Kind::Queue,
        "ack-filter",
        "path: discipline = \"ack-filter\"",
        "a newer cumulative ACK removes older ones of its connection from the queue",
        "balakrishnan97 4.2.2",
    ),
    read: |_, _| Discipline::AckFilter,
}];

pub(super) const RANDOM: &[Descriptor<Read>] = &[Descriptor {
    word: "ack-filter-random",
    system: System::new(
        Kind::Queue,
        "ack-filter-random",
        "path: discipline = \"ack-filter-random\"",
        "a newer cumulative ACK removes a random fraction of the older ones of its connection",
        "balakrishnan97 4.2.2",
    )
    .tier(System::UNLISTED),
    read: |k, _| Discipline::AckFilterRandom(RandomFilter::keys(k)),
}];

/// The random policy of the filter.
//= balakrishnan97#4.2.2: some fraction (or possibly all) of them; deterministic or random
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct RandomFilter {
    /// Probability with which each older ACK is removed.
    pub share: Probability,
}

impl RandomFilter {
    /// Reads the keys.
    pub fn keys(k: &mut Keys<'_>) -> RandomFilter {
        let mut share = Probability::nearest(0.5);
        k.table("ack-filter-random", "options of `ack-filter-random`", |k| {
            k.probability(
                "share",
                &mut share,
                "the probability with which an older ACK is removed",
            );
        });
        RandomFilter { share }
    }
}

/// The filtering queue. See the head of the file.
#[derive(Clone, Debug, Default)]
pub struct AckFilter {
    slots: VecDeque<Slot>,
    next: u64,
    holes: usize,
    memory: Memory,
    /// The random policy; without it each older ACK is removed.
    random: Option<(RandomFilter, Stream)>,
}

/// State of a connection in the direction of its ACKs.
#[derive(Clone, Copy, Debug)]
struct Flow {
    ack: Seq,
    window: u16,
    /// Number of ACKs with this number.
    copies: u32,
    /// Serial number of the newest removable ACK in the queue.
    removable: Option<u64>,
}

/// The most recent connections in two generations: when the younger one is full, the older one is discarded.
#[derive(Clone, Debug, Default)]
struct Memory {
    young: FlowMap<Flow>,
    old: FlowMap<Flow>,
}

/// Relation of an ACK to its connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Turn {
    /// It acknowledges new data.
    Advances,
    /// A duplicate beyond those that a sender counts.
    Spare,
    /// It must not be removed.
    Needed,
}

impl Memory {
    fn get(&mut self, key: FlowKey) -> Option<Flow> {
        self.young.get(&key).or_else(|| self.old.get(&key)).copied()
    }

    fn set(&mut self, key: FlowKey, flow: Flow) {
        if self.young.len() == FLOWS && !self.young.contains_key(&key) {
            self.old.clear();
            core::mem::swap(&mut self.young, &mut self.old);
        }
        self.young.insert(key, flow);
    }

    fn forget(&mut self, key: FlowKey) {
        self.young.remove(&key);
        self.old.remove(&key);
    }

    /// Records an ACK. Returns its relation to the connection, and the connection's new state.
    fn note(flow: Option<Flow>, segment: &Segment) -> (Turn, Flow) {
        let fresh = Flow { ack: segment.ack, window: segment.window, copies: 1, removable: None };
        // Earlier ACKs are unknown, so this one may be a duplicate.
        let Some(flow) = flow else { return (Turn::Needed, fresh) };
        let ahead = segment.ack - flow.ack;
        if ahead > 0 && ahead <= WINDOW {
            (Turn::Advances, Flow { removable: flow.removable, ..fresh })
        } else if ahead != 0 {
            // Older than an earlier ACK, or from a previous use of these ports: it passes. The earlier one
            // remains as well, since a sender that has not seen it takes this one for a duplicate.
            (Turn::Needed, Flow { removable: None, ..flow })
        } else if segment.window != flow.window {
            //= rfc5681#section-2: an ACK that changes the window is no duplicate, and may open a closed window
            (Turn::Needed, Flow { window: segment.window, removable: None, ..flow })
        } else {
            let copies = flow.copies.saturating_add(1);
            let turn = if copies > COPIES { Turn::Spare } else { Turn::Needed };
            // The first duplicate also protects the ACK that it repeats. A sender that never saw that one
            // would take the duplicate for it, and count one less.
            let removable = if turn == Turn::Spare { flow.removable } else { None };
            (turn, Flow { copies, removable, ..flow })
        }
    }
}

/// Whether the ACK contains only its number, its window and its timestamps, which a later ACK of the
/// connection repeats.
pub(crate) fn is_plain(packet: &Packet) -> bool {
    let Some(segment) = packet.segment() else { return false };
    is_pure_ack(packet)
        // ECN echo and CWR are sent once. PSH has no defined meaning in a pure ACK, so such an ACK is not
        // removed.
        //= rfc3449#section-5.2.1: ECN feedback in the TCP header must be preserved
        && segment.flags == Flags::ACK
        // A router's mark on the ACK itself.
        && !packet.is_marked()
        // SACK blocks, loss notifications, partial acknowledgements, and unknown options.
        //= rfc3449#section-5.2.1: an ACK with the SACK option must not be deleted
        && (!segment.has_options() || segment.options().wire_len() == 0)
}

/// Whether `new`, which acknowledges more, repeats all information of the plain ACK `old`.
//= balakrishnan97#4.2.2: a new ACK with a larger cumulative value clears the preceding ones of its connection
pub(crate) fn clears(new: &Segment, old: &Segment) -> bool {
    // An unknown option may change the meaning of the number.
    let known = new.options().unknown.is_empty();
    // The sender uses the window of the segment with the newest sequence number.
    //= rfc9293#section-3.10.7.4: SND.WL1 keeps an old segment from setting the window
    let window = old.seq.le(new.seq);
    // The remaining timestamp echo is the newer one: a shorter round trip, measured by a later segment. A
    // segment with an older timestamp would be dropped itself.
    //= rfc7323#section-5.2: a segment with an older timestamp than the last is dropped
    let clock = match (new.timestamps, old.timestamps) {
        (Some(new), Some(old)) => new.value.wrapping_sub(old.value) as i32 >= 0,
        (None, None) => true,
        _ => false,
    };
    let ahead = new.ack - old.ack;
    known && window && clock && ahead > 0 && ahead <= WINDOW
}

impl AckFilter {
    /// A filter that removes older ACKs at random.
    pub fn random(config: RandomFilter, stream: Stream) -> AckFilter {
        AckFilter { random: Some((config, stream)), ..AckFilter::default() }
    }

    /// Draws whether an older ACK is removed.
    fn removes(&mut self) -> bool {
        self.random.as_mut().is_none_or(|(config, stream)| stream.chance(config.share.get()))
    }

    /// The older ACKs of a chain that `new` removes, from the newest on, with their lengths. Other removable ones
    /// remain in the chain, whose first serial number is returned as well.
    fn choose(&mut self, mut older: Option<u64>, new: &Segment) -> (Vec<(u64, u32)>, Option<u64>) {
        let (mut removed, mut first, mut last) = (Vec::new(), None, None);
        while let Some(serial) = older {
            let Some((bytes, previous)) = self.cleared(serial, new) else { break };
            if self.removes() {
                removed.push((serial, bytes));
            } else {
                first = first.or(Some(serial));
                last.replace(serial).into_iter().for_each(|last| self.link(last, Some(serial)));
            }
            older = previous;
        }
        // The rest of the chain has left the queue, or must remain.
        last.into_iter().for_each(|last| self.link(last, None));
        (removed, first)
    }

    /// Makes `previous` the removable ACK before `serial`.
    fn link(&mut self, serial: u64, previous: Option<u64>) {
        if let Some(slot) = self.slot(serial) {
            slot.previous = previous;
        }
    }

    fn slot(&mut self, serial: u64) -> Option<&mut Slot> {
        let index = self.slots.binary_search_by_key(&serial, |slot| slot.serial).ok()?;
        self.slots.get_mut(index)
    }

    /// Length of the ACK at `serial` if `new` removes it, and the serial number of the one before it.
    fn cleared(&mut self, serial: u64, new: &Segment) -> Option<(u32, Option<u64>)> {
        let slot = self.slot(serial)?;
        let waiting = slot.waiting.as_ref()?;
        let old = waiting.packet.segment()?;
        clears(new, old).then_some((waiting.bytes, slot.previous))
    }

    fn push(&mut self, waiting: Waiting, previous: Option<u64>, room: &mut Room) -> u64 {
        let serial = self.next;
        self.next += 1;
        room.add(waiting.bytes);
        self.slots.push_back(Slot { serial, waiting: Some(waiting), previous });
        serial
    }

    fn compact(&mut self) {
        if self.holes > HOLES + (self.slots.len() - self.holes) {
            self.slots.retain(|slot| slot.waiting.is_some());
            self.holes = 0;
        }
    }

    /// Handles a pure ACK.
    fn enter_ack(
        &mut self,
        key: FlowKey,
        side: Side,
        waiting: Waiting,
        room: &mut Room,
        out: &mut Out,
    ) {
        let plain = is_plain(&waiting.packet);
        let Some(segment) = waiting.packet.segment() else { return };
        if segment.options().ackp == Some(Ackp::Partial) {
            // A base station forged it; its number does not reflect the receiver's state.
            //= west97#3.4: no part of normal ACK processing is done for a partial acknowledgement
            return self.enter_other(side, waiting, room, out);
        }
        let known = self.memory.get(key);
        let (turn, mut flow) = Memory::note(known, segment);
        let older = flow.removable.filter(|_| turn == Turn::Advances);
        let first = older.and_then(|serial| self.cleared(serial, segment));
        let fits = room.admits(waiting.bytes);
        if !fits && first.is_none_or(|(gone, _)| !room.admits_without(gone, waiting.bytes)) {
            waiting.overflow(side, out);
            return;
        }
        let (removed, retained) = self.choose(older, segment);
        if !fits && removed.is_empty() {
            waiting.overflow(side, out);
            return;
        }
        for (serial, gone) in &removed {
            if let Some(ended) = self.slot(*serial).and_then(|slot| slot.waiting.take()) {
                self.holes += 1;
                room.remove(*gone);
                out.discard(side, ended.packet, Cause::SupersededAck);
            }
        }
        if !removed.is_empty() || retained.is_some() {
            flow.removable = retained;
        }
        let serial = self.push(waiting, flow.removable, room);
        if plain && turn != Turn::Needed {
            flow.removable = Some(serial);
        }
        self.memory.set(key, flow);
        self.compact();
    }

    /// Handles any other packet.
    fn enter_other(&mut self, side: Side, waiting: Waiting, room: &mut Room, out: &mut Out) {
        if room.admits(waiting.bytes) {
            self.push(waiting, None, room);
        } else {
            waiting.overflow(side, out);
        }
    }
}

impl Order for AckFilter {
    fn check(&self, room: &Room) {
        debug_assert!(self.holes <= self.slots.len(), "removed ACKs");
        debug_assert_eq!(self.slots.len() - self.holes, room.len(), "packets that occupy the room");
        debug_assert!(
            self.slots.back().is_none_or(|slot| slot.serial < self.next),
            "serial numbers"
        );
        debug_assert!(
            self.slots.iter().take(FEW).map(|slot| slot.serial).is_sorted_by(|a, b| a < b),
            "serial numbers ascend, so that a slot is found"
        );
        debug_assert!(
            self.slots.iter().take(FEW).all(|slot| slot.previous.is_none_or(|p| p < slot.serial)),
            "an ACK only removes older ones"
        );
        debug_assert!(
            self.memory.young.len() <= FLOWS && self.memory.old.len() <= FLOWS,
            "limit of remembered flows"
        );
    }

    fn enqueue(&mut self, _: Time, side: Side, waiting: Waiting, room: &mut Room, out: &mut Out) {
        self.watch(&waiting.packet);
        match waiting.packet.flow().filter(|_| is_pure_ack(&waiting.packet)) {
            Some(key) => self.enter_ack(key, side, waiting, room, out),
            None => self.enter_other(side, waiting, room, out),
        }
    }

    /// A packet in another queue affects its connection too.
    fn watch(&mut self, packet: &Packet) {
        let restarts = |s: &Segment| s.flags.any(Flags::SYN | Flags::RST);
        if let Some(key) = packet.flow().filter(|_| packet.segment().is_some_and(restarts)) {
            self.memory.forget(key);
        }
    }

    fn dequeue(&mut self, _: Time, _: Side, room: &mut Room, _: &mut Out) -> Option<Waiting> {
        while let Some(slot) = self.slots.pop_front() {
            match slot.waiting {
                Some(waiting) => {
                    room.remove(waiting.bytes);
                    return Some(waiting);
                }
                None => self.holes -= 1,
            }
        }
        None
    }
}
