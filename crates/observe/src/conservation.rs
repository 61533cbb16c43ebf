//! Conservation of packets: every originated packet is received by a host, dropped for a cause, or in flight.

use std::collections::BTreeSet;

use lasthop_proto::event::Op;
use lasthop_proto::machine::{Side, StageId};
use lasthop_proto::units::Time;
use lasthop_proto::wire::{Packet, PacketId};

use crate::Sink;
use crate::counts::CauseCounts;

/// Follows every packet from its origin to its end. Needs the full trace, so it is for tests, not for long
/// sweeps.
#[derive(Debug, Default)]
pub struct Conservation {
    on_the_way: BTreeSet<PacketId>,
    /// Originated packets by cause.
    pub originated: CauseCounts,
    /// Packets that a host received.
    pub received: u64,
    /// Packets dropped on the path, by cause.
    pub dropped: CauseCounts,
    /// Events of packets that were never originated, or that had ended before.
    pub ghosts: u64,
}

impl Conservation {
    /// Packets that have not ended: queued, in a medium, or lost by a fault of the implementation.
    pub fn in_flight(&self) -> u64 {
        self.on_the_way.len() as u64
    }

    /// Whether the counts balance with `held` packets inside machines and media.
    ///
    /// # Errors
    ///
    /// A sentence with the inconsistent counts.
    pub fn check(&self, held: u64) -> Result<(), String> {
        let (sent, dropped) = (self.originated.total(), self.dropped.total());
        if self.ghosts > 0 {
            return Err(format!("{} events of packets that do not exist", self.ghosts));
        }
        if sent == self.received + dropped + held {
            Ok(())
        } else {
            Err(format!(
                "{sent} sent is not {} received + {dropped} dropped {:?} + {held} held",
                self.received, self.dropped
            ))
        }
    }

    fn end(&mut self, id: PacketId) {
        self.ghosts += u64::from(!self.on_the_way.remove(&id));
    }
}

impl Sink for Conservation {
    fn packet(&mut self, _: Time, _: StageId, op: Op, _: Side, packet: &Packet) {
        match op {
            Op::Originated(cause) => {
                self.originated.add(cause);
                self.ghosts += u64::from(!self.on_the_way.insert(packet.id));
            }
            Op::Received => {
                self.received += 1;
                self.end(packet.id);
            }
            Op::Dropped(cause) => {
                self.dropped.add(cause);
                self.end(packet.id);
            }
            Op::Transmitted
            | Op::Marked
            | Op::MarkedBy(_)
            | Op::Damaged
            | Op::Repeated(_)
            | Op::Redirected(_) => {
                self.ghosts += u64::from(!self.on_the_way.contains(&packet.id));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use lasthop_proto::event::{Cause, Event, EventKind, Interest};
    use lasthop_proto::machine::{Side, StageId};
    use lasthop_proto::units::Time;
    use lasthop_proto::wire::{Addr, Body, Flags, Packet, Segment, Seq};

    use super::*;

    fn books(events: &[(u64, Op)]) -> Conservation {
        let mut books = Conservation::default();
        for (id, op) in events {
            let (src, dst) = (Addr::v4(10, 0, 0, 1), Addr::v4(10, 0, 0, 2));
            let segment = Segment::new(1, 2, Seq(0), Seq(0), Flags::ACK);
            let packet = Packet::tcp(src, dst, segment, Body::EMPTY)
                .with(|packet| packet.id = PacketId(*id));
            let kind = EventKind::Packet { op: *op, side: Side::Right, packet };
            books.event(&Event { at: Time::ZERO, stage: StageId(1), kind });
        }
        books
    }

    #[test]
    fn packet_counts_balance_only_with_the_held_packets() {
        let (sent, lost) = (Op::Originated(Cause::Data), Op::Dropped(Cause::QueueFull));
        let books = books(&[
            (1, sent),
            (2, sent),
            (3, sent),
            (4, sent),
            (1, Op::Received),
            (2, lost),
            (3, Op::Received),
        ]);
        assert_eq!((books.received, books.dropped.total(), books.in_flight()), (2, 1, 1));
        assert_eq!(books.check(1), Ok(()));
        for held in [0, 2] {
            let error = books.check(held).unwrap_err();
            let expected =
                format!("4 sent is not 2 received + 1 dropped {{\"queue-full\": 1}} + {held} held");
            assert_eq!(error, expected);
        }
        assert_eq!(books.interest(), Interest::EVERYTHING);
    }

    /// An event of a packet that was never sent, or that has ended, counts as a ghost.
    #[test]
    fn events_of_nonexistent_packets_are_reported() {
        let sent = Op::Originated(Cause::Data);
        let on_the_way = [
            Op::Transmitted,
            Op::Marked,
            Op::MarkedBy(Cause::QueueFull),
            Op::Damaged,
            Op::Repeated(Cause::LocalTimeout),
            Op::Redirected(Cause::HandoffStale),
        ];
        for op in on_the_way.into_iter().chain([Op::Received, Op::Dropped(Cause::QueueFull)]) {
            assert_eq!(books(&[(1, sent), (1, op)]).ghosts, 0, "{op:?}");
            for events in
                [&[(1, op), (2, op)][..], &[(1, sent), (1, Op::Received), (1, op), (1, op)]]
            {
                let books = books(events);
                assert_eq!(books.ghosts, 2, "{op:?}");
                let error = books.check(0).unwrap_err();
                assert_eq!(error, "2 events of packets that do not exist", "{op:?}");
            }
        }
        assert_eq!(
            books(&[(1, sent), (1, sent), (1, sent)]).ghosts,
            2,
            "retransmitted under its number"
        );
    }
}
