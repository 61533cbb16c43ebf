//! A recording of every event in memory.

use lasthop_proto::event::{Event, EventKind, Interest, Op};
use lasthop_proto::machine::{Side, StageId};
use lasthop_proto::units::Time;
use lasthop_proto::wire::{Packet, Parts};

use crate::Sink;

/// Size of the cache of stored packets: more than are in flight on most paths.
const KNOWN: usize = 1 << 12;

/// A recording of every event in memory.
///
/// Most events concern a packet that was seen before and is unchanged, so it is stored once for all of them.
/// Fresh memory is the main cost: an event uses three words, a packet only its own size, and nothing is
/// moved.
#[derive(Default, Clone)]
pub struct Record {
    events: Pages<StoredEvent>,
    packets: Pages<Parts>,
    others: Pages<EventKind>,
    /// Index in `packets` of the latest packet, by the low bits of its number.
    known: Vec<u32>,
}

/// An event without its packet or content.
#[derive(Debug, Clone, Copy)]
struct StoredEvent {
    at: Time,
    /// Index in `packets` or `others`.
    index: u32,
    stage: StageId,
    /// The operation on the packet, if the event is about one.
    done: Option<(Op, Side)>,
}

const _: () = assert!(size_of::<StoredEvent>() <= 24);

/// A list that grows by pages, so that entries never move.
#[derive(Clone)]
struct Pages<T>(Vec<Vec<T>>);

/// Entries per page.
const PAGE: usize = 512;

impl<T> Default for Pages<T> {
    fn default() -> Pages<T> {
        Pages(Vec::new())
    }
}

impl<T> Pages<T> {
    fn len(&self) -> usize {
        self.0.last().map_or(0, |last| (self.0.len() - 1) * PAGE + last.len())
    }

    fn get(&self, index: usize) -> &T {
        &self.0[index / PAGE][index % PAGE]
    }

    /// Appends an entry and returns its index.
    fn push(&mut self, one: T) -> usize {
        let page = match self.0.last_mut() {
            Some(page) if page.len() < PAGE => page,
            _ => self.begin(),
        };
        page.push(one);
        self.len() - 1
    }

    #[cold]
    fn begin(&mut self) -> &mut Vec<T> {
        self.0.push(Vec::with_capacity(PAGE));
        self.0.last_mut().unwrap_or_else(|| unreachable!("it is there"))
    }
}

impl Record {
    /// The events in order.
    pub fn events(&self) -> impl ExactSizeIterator<Item = Event> {
        (0..self.events.len()).map(|i| {
            let StoredEvent { at, index, stage, done } = *self.events.get(i);
            let kind = match done {
                Some((op, side)) => {
                    let packet = Packet::new(self.packets.get(index as usize).clone());
                    EventKind::Packet { op, side, packet }
                }
                None => self.others.get(index as usize).clone(),
            };
            Event { at, stage, kind }
        })
    }

    /// Index of this packet; stores a new one.
    #[inline]
    fn index_of(&mut self, packet: &Packet) -> u32 {
        if self.known.is_empty() {
            self.known = vec![u32::MAX; KNOWN];
        }
        let known = &mut self.known[packet.id.0 as usize % KNOWN];
        if *known == u32::MAX || *self.packets.get(*known as usize) != **packet {
            *known = self.packets.push(Parts::clone(packet)) as u32;
        }
        *known
    }
}

impl Sink for Record {
    fn interest(&self) -> Interest {
        Interest::EVERYTHING
    }

    fn event(&mut self, event: &Event) {
        let Event { at, stage, kind } = event;
        if let EventKind::Packet { op, side, packet } = kind {
            return self.packet(*at, *stage, *op, *side, packet);
        }
        let index = self.others.push(kind.clone()) as u32;
        self.events.push(StoredEvent { at: *at, index, stage: *stage, done: None });
    }

    fn packet(&mut self, at: Time, stage: StageId, op: Op, side: Side, packet: &Packet) {
        let index = self.index_of(packet);
        self.events.push(StoredEvent { at, index, stage, done: Some((op, side)) });
    }
}

#[cfg(test)]
mod tests {
    use lasthop_proto::event::Cause;
    use lasthop_proto::wire::{Addr, Body, Damage, Flags, PacketId, Segment, Seq};

    use super::*;

    fn packet(id: u64) -> Packet {
        let segment = Segment::new(1, 2, Seq(id as u32), Seq(0), Flags::ACK);
        let (src, dst) = (Addr::v4(10, 0, 0, 1), Addr::v4(10, 0, 0, 2));
        Packet::tcp(src, dst, segment, Body::EMPTY).with(|packet| packet.id = PacketId(id))
    }

    #[test]
    fn events_are_replayed_and_unchanged_packets_stored_once() {
        let operations = [
            (Op::Originated(Cause::Data), packet(1)),
            (Op::Transmitted, packet(1)),
            // It has the same cache entry as the first packet.
            (Op::Transmitted, packet(1 + KNOWN as u64)),
            (Op::Transmitted, packet(1)),
            (Op::Damaged, packet(1).with(|packet| packet.damage = Damage::Ip)),
            (Op::Dropped(Cause::IpChecksum), packet(1).with(|packet| packet.damage = Damage::Ip)),
        ];
        let mut events = Vec::new();
        let mut record = Record::default();
        for (i, (op, packet)) in operations.into_iter().enumerate() {
            let (at, stage, side) = (Time(i as u64), StageId(i as u16), Side::Left);
            let kind = EventKind::Packet { op, side, packet };
            events.push(Event { at, stage, kind });
            let good = i % 2 == 0;
            events.push(Event { at, stage, kind: EventKind::Channel { side, good } });
        }
        for event in &events {
            match &event.kind {
                EventKind::Packet { op: Op::Transmitted, side, packet } => {
                    record.packet(event.at, event.stage, Op::Transmitted, *side, packet);
                }
                _ => record.event(event),
            }
        }
        assert!(record.events().eq(events));
        assert_eq!(record.events().len(), 12);
        assert_eq!(record.packets.len(), 4);
    }
}
