//! Drop from front: a packet that finds the queue full enters, and the oldest packets are dropped.
//!
//! TCP notices the loss earlier, by the transmission time of a full queue (Lakshman, Neidhardt and Ott 1996).
//! A packet that does not fit into the empty queue is dropped itself. Urgent packets of a base station are at
//! the front, and are dropped first as well.

use super::{Discipline, Fifo, Order, Read, Room, Waiting};
use crate::describe::{Descriptor, Kind, System};
use crate::machine::{Out, Side};
use crate::units::Time;

pub(super) const WORDS: &[Descriptor<Read>] = &[Descriptor {
    word: "head-drop",
    system: System::new(
        Kind::Queue,
        "head-drop",
        "path: discipline = \"head-drop\"",
        "a full queue drops the packets that have waited longest",
        "Lakshman, Neidhardt and Ott 1996",
    )
    .tier(0),
    read: |_, _| Discipline::HeadDrop,
}];

/// A queue that drops from its front.
#[derive(Clone, Debug, Default)]
pub struct HeadDrop {
    fifo: Fifo,
}

impl Order for HeadDrop {
    fn check(&self, room: &Room) {
        self.fifo.check(room);
    }

    fn enqueue(&mut self, now: Time, side: Side, waiting: Waiting, room: &mut Room, out: &mut Out) {
        while !room.admits(waiting.bytes)
            && let Some(oldest) = self.fifo.dequeue(now, side, room, out)
        {
            oldest.overflow(side, out);
        }
        self.fifo.enqueue(now, side, waiting, room, out);
    }

    fn dequeue(&mut self, at: Time, side: Side, room: &mut Room, out: &mut Out) -> Option<Waiting> {
        self.fifo.dequeue(at, side, room, out)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Limit, Queue};
    use super::*;
    use crate::event::{Cause, EventKind, Interest, Op};
    use crate::rng::Stream;
    use crate::units::Bytes;
    use crate::wire::{Addr, Body, Flags, Packet, PacketId, Segment, Seq};

    /// Remaining packets in order, and dropped packets, after arrivals of these lengths.
    fn left(limit: Limit, lengths: &[u32]) -> (Vec<u64>, Vec<u64>) {
        let mut queue = Queue::new(limit, Discipline::HeadDrop, || Stream::new(1, "queue"));
        let mut out = Out::new(Interest::EVERYTHING);
        for (id, bytes) in lengths.iter().enumerate() {
            let segment = Segment::new(1, 2, Seq(0), Seq(0), Flags::ACK);
            let (src, dst) = (Addr::v4(10, 0, 0, 1), Addr::v4(10, 0, 0, 2));
            let packet = Packet::tcp(src, dst, segment, Body::EMPTY);
            let packet = packet.with(|packet| packet.id = PacketId(id as u64));
            queue.enqueue(Time(0), Side::Right, packet, *bytes, &mut out);
        }
        let dropped = out.events.iter().filter_map(|event| match &event.kind {
            EventKind::Packet { op: Op::Dropped(Cause::QueueFull), packet, .. } => {
                Some(packet.id.0)
            }
            _ => None,
        });
        let dropped = dropped.collect();
        let left = core::iter::from_fn(|| queue.dequeue(Time(1), Side::Right, &mut out))
            .map(|w| w.packet.id.0)
            .collect();
        (left, dropped)
    }

    #[test]
    fn the_oldest_make_room_for_the_newest() {
        let (left, dropped) = left(Limit::Packets(3), &[40; 5]);
        assert_eq!((left, dropped), (vec![2, 3, 4], vec![0, 1]));
    }

    #[test]
    fn a_long_packet_throws_out_several_and_one_too_long_itself() {
        let (left, dropped) = left(Limit::Bytes(Bytes(1000)), &[400, 400, 900]);
        assert_eq!((left, dropped), (vec![2], vec![0, 1]));
        let (left, dropped) = self::left(Limit::Bytes(Bytes(1000)), &[400, 1001]);
        assert_eq!((left, dropped), (vec![], vec![0, 1]));
    }
}
