//! Drop-tail: first in, first out; packets that do not fit are dropped.
//!
//! There are two forms. [`Fifo`] stores the packets. [`DropTail`] stores none: in front of a line with a
//! known schedule it suffices to store the start of each waiting packet's transmission.

use std::collections::VecDeque;

use super::{Discipline, Read};
use crate::describe::{Descriptor, Kind, System};
use crate::machine::{Out, Side};
use crate::units::Time;

use super::{FEW, Limit, Order, Room, Waiting};

pub(super) const WORDS: &[Descriptor<Read>] = &[Descriptor {
    word: "fifo",
    system: System::new(
        Kind::Queue,
        "drop-tail",
        "path: queue = \"50p\" or \"64KiB\"",
        "drops packets that do not fit; its limit is in packets or bytes",
        "balakrishnan97 4.1, 4.2.1",
    ),
    read: |_, _| Discipline::Fifo,
}];

/// A drop-tail queue in front of a transmitter with a known schedule. It stores the start of each waiting
/// packet's transmission, so no deadline is needed then.
#[derive(Clone, Debug)]
pub struct DropTail {
    limit: Limit,
    waiting: VecDeque<(Time, u32)>,
    bytes: u64,
}

impl DropTail {
    /// An empty queue.
    pub fn new(limit: Limit) -> DropTail {
        DropTail { limit, waiting: VecDeque::new(), bytes: 0 }
    }

    /// Whether a packet of `bytes` bytes that arrives at `now` and would start at `start` fits. If so, adds
    /// it.
    pub fn admit(&mut self, now: Time, start: Time, bytes: u32) -> bool {
        while self.waiting.front().is_some_and(|(start, _)| *start <= now) {
            if let Some((_, gone)) = self.waiting.pop_front() {
                self.bytes -= u64::from(gone);
            }
        }
        debug_assert_eq!(self.waiting.is_empty(), self.bytes == 0, "an empty queue has no bytes");
        debug_assert!(
            self.waiting.back().is_none_or(|(last, _)| *last <= start),
            "packets are transmitted in the order of their arrival"
        );
        if !self.limit.admits(self.waiting.len(), self.bytes, bytes) {
            return false;
        }
        self.bytes += u64::from(bytes);
        self.waiting.push_back((start, bytes));
        true
    }
}

/// A drop-tail queue that stores the packets, for a transmitter without a known schedule. Urgent packets of a
/// base station precede all others.
#[derive(Clone, Debug, Default)]
pub struct Fifo {
    waiting: VecDeque<Waiting>,
}

impl Fifo {
    /// Its packets, oldest first.
    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = &Waiting> {
        self.waiting.iter()
    }
}

impl Order for Fifo {
    fn check(&self, room: &Room) {
        room.check_packets(self.waiting.iter());
        debug_assert!(
            self.waiting.len() > FEW
                || self.waiting.iter().skip_while(|w| w.packet.urgent).all(|w| !w.packet.urgent),
            "urgent packets precede the others"
        );
    }

    #[inline]
    fn enqueue(&mut self, _: Time, side: Side, waiting: Waiting, room: &mut Room, out: &mut Out) {
        if room.admits(waiting.bytes) {
            room.add(waiting.bytes);
            if waiting.packet.urgent {
                let first = self.waiting.iter().position(|w| !w.packet.urgent);
                self.waiting.insert(first.unwrap_or(self.waiting.len()), waiting);
            } else {
                self.waiting.push_back(waiting);
            }
        } else {
            waiting.overflow(side, out);
        }
    }

    #[inline]
    fn dequeue(&mut self, _: Time, _: Side, room: &mut Room, _: &mut Out) -> Option<Waiting> {
        let next = self.waiting.pop_front()?;
        room.remove(next.bytes);
        Some(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Bytes;

    #[test]
    fn room_is_freed_when_a_transmission_starts() {
        let mut queue = DropTail::new(Limit::Packets(2));
        assert!(queue.admit(Time(0), Time(10), 100));
        assert!(queue.admit(Time(0), Time(20), 100));
        assert!(!queue.admit(Time(5), Time(30), 100));
        assert!(queue.admit(Time(10), Time(30), 100));
        assert!(!queue.admit(Time(10), Time(40), 100));
    }

    #[test]
    fn a_byte_limit_counts_queued_bytes() {
        let mut queue = DropTail::new(Limit::Bytes(Bytes(1500)));
        assert!(queue.admit(Time(0), Time(10), 1000));
        assert!(!queue.admit(Time(0), Time(20), 501));
        assert!(queue.admit(Time(0), Time(20), 500));
    }

    #[test]
    fn urgent_packets_leave_first_in_their_arrival_order() {
        use crate::event::Interest;
        use crate::wire::{Addr, Body, Flags, Packet, PacketId, Segment, Seq};
        let packet = |id: u64, urgent| {
            let segment = Segment::new(1, 2, Seq(0), Seq(0), Flags::ACK);
            let (src, dst) = (Addr::v4(10, 0, 0, 1), Addr::v4(10, 0, 0, 2));
            Packet::tcp(src, dst, segment, Body::EMPTY).with(|packet| {
                packet.id = PacketId(id);
                packet.urgent = urgent;
            })
        };
        let (mut fifo, mut room) = (Fifo::default(), Room::new(Limit::Packets(5)));
        let mut out = Out::new(Interest::NOTHING);
        for (id, urgent) in [(1, false), (2, false), (3, true), (4, true), (5, false), (6, true)] {
            let waiting = Waiting { packet: packet(id, urgent), bytes: 40 };
            fifo.enqueue(Time(0), Side::Right, waiting, &mut room, &mut out);
        }
        let order: Vec<u64> =
            core::iter::from_fn(|| fifo.dequeue(Time(1), Side::Right, &mut room, &mut out))
                .map(|w| w.packet.id.0)
                .collect();
        // The last one found the queue full.
        assert_eq!(order, [3, 4, 1, 2, 5]);
    }
}
