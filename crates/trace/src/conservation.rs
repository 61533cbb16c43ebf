//! The books: every packet that is put into the path is taken in by a host, dropped for a cause, or still
//! on its way.

use std::collections::BTreeSet;

use lasthop_proto::event::{Event, Op, Wants, What};
use lasthop_proto::wire::PacketId;

use crate::Sink;
use crate::counts::CauseCounts;

/// Follows every packet from its origin to its end. Needs the full trace; for tests, not for long sweeps.
#[derive(Debug, Default)]
pub struct Conservation {
    on_the_way: BTreeSet<PacketId>,
    /// Packets put into the path, by cause.
    pub originated: CauseCounts,
    /// Packets that a host took in.
    pub received: u64,
    /// Packets whose life ended on the way, by cause.
    pub dropped: CauseCounts,
    /// Events of packets that were never put into the path, or whose life had ended before.
    pub ghosts: u64,
}

impl Conservation {
    /// Packets that have begun and not ended: queued, in a medium, or lost by a fault of the implementation.
    pub fn in_flight(&self) -> u64 {
        self.on_the_way.len() as u64
    }

    /// Whether the books balance with `held` packets inside machines and media.
    ///
    /// # Errors
    ///
    /// A sentence with the entries that do not add up.
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
    fn wants(&self) -> Wants {
        Wants::EVERYTHING
    }

    fn event(&mut self, event: &Event) {
        let What::Packet { op, packet, .. } = &event.what else { return };
        match *op {
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
