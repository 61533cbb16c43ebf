//! ACKs first: two classes with strict priority of ACKs over all other packets.
//!
//! On a slow return link the transmission of a data packet takes a quarter of a second. If ACKs wait behind
//! two of them, the forward transfer idles. Here they wait at most for the packet in transmission.
//!
//! **What counts as an ACK** is defined by [`is_pure_ack`], with any options. A FIN or SYN belongs to the
//! data class, so that it does not overtake its data.
//!
//! **Starvation.** The priority is strict, as in the paper: ACKs at the link's rate or faster leave nothing
//! for data. The paper combined it with ACK congestion control, which slows the ACKs down. Here the filter
//! can precede the ACK class, which bounds the number of waiting ACKs but not their share of the link.
//!
//! **Room** is shared. The paper's router has one buffer, so an ACK that finds it full of data is dropped.

use super::{Discipline, Read};
use crate::describe::{Descriptor, Kind, System};
use crate::machine::{Out, Side};
use crate::units::Time;

use super::{Fifo, Order, Room, Waiting, is_pure_ack};

pub(super) const WORDS: &[Descriptor<Read>] = &[Descriptor {
    word: "acks-first",
    system: System::new(
        Kind::Queue,
        "acks-first",
        "path: discipline = \"acks-first\", or \"ack-filter+acks-first\"",
        "ACKs overtake data",
        "balakrishnan97 4.4.1",
    ),
    read: |_, _| Discipline::AcksFirst,
}];

pub(super) const WITH_FILTER: &[Descriptor<Read>] = &[Descriptor {
    word: "ack-filter+acks-first",
    system: System::new(
        Kind::Queue,
        "ack-filter+acks-first",
        "path: discipline = \"ack-filter+acks-first\"",
        "ACKs overtake data, and a newer one removes older ones",
        "balakrishnan97 4.4.1",
    )
    .tier(System::UNLISTED),
    read: |_, _| Discipline::AckFilterAcksFirst,
}];

/// Two classes in strict order; `A` is the discipline of the ACKs.
//= balakrishnan97#4.4.1: priority scheduling of ACKs at the router of the return channel
//= rfc3449#section-5.4.2: ACKs get a higher priority than data; no state for connections is needed
#[derive(Clone, Debug, Default)]
pub struct AcksFirst<A> {
    acks: A,
    data: Fifo,
}

impl<A: Order> Order for AcksFirst<A> {
    fn check(&self, room: &Room) {
        debug_assert!(self.data.iter().len() <= room.len(), "packets that occupy the room");
        debug_assert!(
            self.data.iter().take(4).all(|waiting| !is_pure_ack(&waiting.packet)),
            "ACKs are in the class of ACKs"
        );
    }

    fn enqueue(&mut self, now: Time, side: Side, waiting: Waiting, room: &mut Room, out: &mut Out) {
        if is_pure_ack(&waiting.packet) {
            self.acks.enqueue(now, side, waiting, room, out);
        } else {
            // A filter learns of new connections from SYNs in the data class.
            self.acks.watch(&waiting.packet);
            self.data.enqueue(now, side, waiting, room, out);
        }
    }

    fn dequeue(&mut self, at: Time, side: Side, room: &mut Room, out: &mut Out) -> Option<Waiting> {
        self.acks.dequeue(at, side, room, out).or_else(|| self.data.dequeue(at, side, room, out))
    }
}
