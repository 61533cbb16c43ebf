//! ACK filtering: an ACK that enters the queue clears the older ones of its connection, since ACKs are cumulative.
//!
//! On a slow return link ACKs come faster than they can leave. They fill the queue, and those that matter wait
//! behind those that do not. With the filter about one ACK of each connection waits, and the queue has room.
//!
//! **Which ACK clears which.** The new one is a pure ACK with a larger cumulative acknowledgement, and joins the
//! tail of the queue: the paper's rule. An ACK that says more than its number is never removed, and neither is a
//! duplicate that fast retransmit counts: RFC 3449's. The rules are cited where they are obeyed, in `clears`,
//! `is_plain` and `Memory::note`.
//!
//! **Room.** An ACK that could not be kept even in place of an older one is dropped as by any full queue, and
//! clears nothing.
//!
//! **Cost.** An ACK finds its connection by one look-up, and through it the one before it that may be removed, and
//! so on; it never searches the queue. It looks at one ACK more than it removes, at most, and each look takes the
//! logarithm of the queue's length. Removed ACKs leave a hole that costs no room; an arrival never finds more
//! holes than there were packets at most, plus [`HOLES`].
//!
//! **State.** The paper needs none, because it clears duplicates as well. To know a duplicate whose original has
//! left, the last acknowledgement of each connection is remembered: of the [`FLOWS`] that were heard last at
//! least, of twice as many at most. An ACK of a connection that has been forgotten is kept.

use std::collections::VecDeque;

use super::{Discipline, Read};
use crate::describe::{Descriptor, Kind, System};
use crate::event::Cause;
use crate::flows::FlowMap;
use crate::machine::{Out, Side};
use crate::units::Time;
use crate::wire::{Ackp, Flags, FlowKey, Packet, Segment, Seq};

use super::{Order, Room, Waiting, is_pure_ack};

/// Connections remembered for certain.
pub const FLOWS: usize = 1024;
/// Holes in the queue that are always tolerated.
pub const HOLES: usize = 16;
/// Copies of an ACK that are kept: the first and the three duplicates that make a sender retransmit.
//= rfc3449#section-5.2.1: the three duplicate ACKs that ask for fast retransmit must not be deleted
//= rfc5681#section-3.2: the third duplicate ACK makes the sender retransmit
const COPIES: u32 = 4;
/// The largest window: an acknowledgement further ahead than this is not of the same connection.
//= rfc7323#section-2.3: windows are at most 2^30 bytes
const WINDOW: i32 = 1 << 30;

/// A place in the queue.
#[derive(Clone, Debug)]
struct Place {
    /// Which one it is, ascending from head to tail.
    serial: u64,
    /// Nothing if it was removed.
    waiting: Option<Waiting>,
    /// The removable ACK of the same connection before this one.
    previous: Option<u64>,
}

pub(super) const WORDS: &[Descriptor<Read>] = &[Descriptor {
    word: "ack-filter",
    system: System::new(
        Kind::Queue,
        "ack-filter",
        "path: discipline = \"ack-filter\"",
        "a newer cumulative ACK throws older ones of its connection out of the queue",
        "balakrishnan97 4.2.2",
    ),
    read: |_, _| Discipline::AckFilter,
}];

/// The queue that filters. See the head of the file.
#[derive(Clone, Debug, Default)]
pub struct AckFilter {
    places: VecDeque<Place>,
    next: u64,
    holes: usize,
    memory: Memory,
}

/// What is known of a connection, in the direction of its ACKs.
#[derive(Clone, Copy, Debug)]
struct Flow {
    ack: Seq,
    window: u16,
    /// How many ACKs with this number came.
    copies: u32,
    /// The newest ACK in the queue that may be removed.
    removable: Option<u64>,
}

/// The connections that were heard last, in two generations: when the younger one is full, the older is
/// forgotten.
#[derive(Clone, Debug, Default)]
struct Memory {
    young: FlowMap<Flow>,
    old: FlowMap<Flow>,
}

/// What an ACK is to its connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Turn {
    /// It acknowledges more than those before it.
    Advances,
    /// It is one duplicate more than anybody counts.
    Spare,
    /// It is needed.
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

    /// Takes note of an ACK; says what it is to its connection, and what that is like now.
    fn note(flow: Option<Flow>, segment: &Segment) -> (Turn, Flow) {
        let fresh = Flow { ack: segment.ack, window: segment.window, copies: 1, removable: None };
        // Whoever came before was not seen, so this one may be a duplicate.
        let Some(flow) = flow else { return (Turn::Needed, fresh) };
        let ahead = segment.ack - flow.ack;
        if ahead > 0 && ahead <= WINDOW {
            (Turn::Advances, Flow { removable: flow.removable, ..fresh })
        } else if ahead != 0 {
            // Older than what came before, or of another life of these ports: whatever it is, it passes. What
            // came before stays as well: a sender that has not seen that takes this one for a duplicate.
            (Turn::Needed, Flow { removable: None, ..flow })
        } else if segment.window != flow.window {
            //= rfc5681#section-2: an ACK that changes the window is no duplicate, and may open a closed window
            (Turn::Needed, Flow { window: segment.window, removable: None, ..flow })
        } else {
            let copies = flow.copies.saturating_add(1);
            let turn = if copies > COPIES { Turn::Spare } else { Turn::Needed };
            // The first duplicate also protects the ACK that it repeats: a sender that never saw that one
            // would take the duplicate for it, and count one less.
            let removable = if turn == Turn::Spare { flow.removable } else { None };
            (turn, Flow { copies, removable, ..flow })
        }
    }
}

/// Whether nothing is lost with this ACK but its number, its window and its timestamps, which a later ACK of the
/// connection says again.
pub(crate) fn is_plain(packet: &Packet) -> bool {
    let Some(segment) = packet.segment() else { return false };
    is_pure_ack(packet)
        // ECN echo and CWR are told once. PSH has no business here; who knows what it means to somebody.
        //= rfc3449#section-5.2.1: ECN feedback in the TCP header must be preserved
        && segment.flags == Flags::ACK
        // A mark of a router on the ACK itself.
        && !packet.is_marked()
        // SACK blocks, loss notifications, partial acknowledgements, and whatever is not known.
        //= rfc3449#section-5.2.1: an ACK with the SACK option must not be deleted
        && (!segment.has_options() || segment.options().wire_len() == 0)
}

/// Whether everything that the plain ACK `old` said is said by `new`, which acknowledges more.
//= balakrishnan97#4.2.2: a new ACK with a larger cumulative value clears the preceding ones of its connection
pub(crate) fn clears(new: &Segment, old: &Segment) -> bool {
    // Who knows what an unknown option makes of the number beside it.
    let known = new.options().unknown.is_empty();
    // The sender takes the window from the segment with the newest sequence number.
    //= rfc9293#section-3.10.7.4: SND.WL1 keeps an old segment from setting the window
    let window = old.seq.le(new.seq);
    // The echo that survives is the newer one: a shorter round trip, measured by a segment that was sent later.
    // A segment whose own clock is behind would not survive itself.
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
    fn place(&mut self, serial: u64) -> Option<&mut Place> {
        let index = self.places.binary_search_by_key(&serial, |place| place.serial).ok()?;
        self.places.get_mut(index)
    }

    /// The length of the ACK at `serial` if `new` clears it, and which one is before it.
    fn cleared(&mut self, serial: u64, new: &Segment) -> Option<(u32, Option<u64>)> {
        let place = self.place(serial)?;
        let waiting = place.waiting.as_ref()?;
        let old = waiting.packet.segment()?;
        clears(new, old).then_some((waiting.bytes, place.previous))
    }

    fn push(&mut self, waiting: Waiting, previous: Option<u64>, room: &mut Room) -> u64 {
        let serial = self.next;
        self.next += 1;
        room.add(waiting.bytes);
        self.places.push_back(Place { serial, waiting: Some(waiting), previous });
        serial
    }

    fn compact(&mut self) {
        if self.holes > HOLES + (self.places.len() - self.holes) {
            self.places.retain(|place| place.waiting.is_some());
            self.holes = 0;
        }
    }

    /// A pure ACK arrives.
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
            // A base station forged it; its number says nothing about the receiver.
            //= west97#3.4: no part of normal ACK processing is done for a partial acknowledgement
            return self.enter_other(side, waiting, room, out);
        }
        let known = self.memory.get(key);
        let (turn, mut flow) = Memory::note(known, segment);
        let mut older = flow.removable.filter(|_| turn == Turn::Advances);
        let first = older.and_then(|serial| self.cleared(serial, segment));
        let fits = room.admits(waiting.bytes)
            || first.is_some_and(|(gone, _)| room.admits_without(gone, waiting.bytes));
        if !fits {
            waiting.overflow(side, out);
            return;
        }
        if first.is_some() {
            while let Some(serial) = older {
                let Some((gone, previous)) = self.cleared(serial, segment) else { break };
                let Some(ended) = self.place(serial).and_then(|place| place.waiting.take()) else {
                    break;
                };
                self.holes += 1;
                room.remove(gone);
                out.discard(side, ended.packet, Cause::SupersededAck);
                older = previous;
            }
            // What is left of the chain has gone out, or is one that this ACK does not replace and that stays.
            flow.removable = None;
        }
        let serial = self.push(waiting, flow.removable, room);
        if plain && turn != Turn::Needed {
            flow.removable = Some(serial);
        }
        self.memory.set(key, flow);
        self.compact();
    }

    /// Any other packet.
    fn enter_other(&mut self, side: Side, waiting: Waiting, room: &mut Room, out: &mut Out) {
        if room.admits(waiting.bytes) {
            self.push(waiting, None, room);
        } else {
            waiting.overflow(side, out);
        }
    }
}

impl Order for AckFilter {
    fn enter(&mut self, _: Time, side: Side, waiting: Waiting, room: &mut Room, out: &mut Out) {
        self.watch(&waiting.packet);
        match waiting.packet.flow().filter(|_| is_pure_ack(&waiting.packet)) {
            Some(key) => self.enter_ack(key, side, waiting, room, out),
            None => self.enter_other(side, waiting, room, out),
        }
    }

    /// What a packet in another queue says of its connection counts all the same.
    fn watch(&mut self, packet: &Packet) {
        let restarts = |s: &Segment| s.flags.any(Flags::SYN | Flags::RST);
        if let Some(key) = packet.flow().filter(|_| packet.segment().is_some_and(restarts)) {
            self.memory.forget(key);
        }
    }

    fn leave(&mut self, _: Time, _: Side, room: &mut Room, _: &mut Out) -> Option<Waiting> {
        while let Some(place) = self.places.pop_front() {
            match place.waiting {
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
