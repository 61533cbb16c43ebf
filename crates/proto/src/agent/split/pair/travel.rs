//! Hand-off of a pair to another base station.

use super::{Absence, Doubt, Ends, Fate, Pair, Room, Shared};
use crate::machine::{Out, Side};
use crate::tcp::Connection;
use crate::tcp::connection::Snapshot;
use crate::travel::travels;
use crate::units::{Span, Time};
use crate::wire::FlowKey;

/// A pair in the form in which another base station imports it.
#[derive(Clone, Debug)]
pub(in crate::agent) struct Moved {
    halves: [Snapshot; 2],
    /// Whether the host on the left opened the connection.
    from_left: bool,
    /// Remaining time of the handshake.
    open_for: Option<Span>,
    /// Buffers, indexed by the source's side: size in bytes, and number of freed bytes.
    rooms: [(u32, u64); 2],
}

travels!(Moved { halves, from_left, open_for, rooms });

impl Moved {
    /// Whether its halves acknowledge for each other (M-TCP).
    pub(in crate::agent) fn acks_end_to_end(&self) -> bool {
        self.halves.iter().all(Snapshot::acks_end_to_end)
    }

    /// Whether its opener has not acknowledged its SYN-ACK.
    pub(in crate::agent) fn is_half_open(&self) -> bool {
        self.open_for.is_some()
    }

    /// Its buffer sizes at a base station with an initial size of `least` bytes.
    pub(in crate::agent) fn limits(&self, least: u32) -> [u32; 2] {
        self.rooms.map(|(limit, _)| limit.max(least))
    }
}

impl Pair {
    /// Exports the pair. Corked data is sent before.
    pub(in crate::agent) fn moved(&mut self, now: Time, out: &mut Out) -> Moved {
        self.halves.iter_mut().for_each(|half| half.uncork(now, out));
        let [left, right] = &self.halves;
        Moved {
            halves: [left.snapshot(), right.snapshot()],
            from_left: self.opener == Side::Left,
            open_for: self.open_until.map(|until| until.since(now)),
            rooms: self.rooms.map(|room| (room.limit, room.freed)),
        }
    }

    /// Imports the pair of the connection `key`, left to right.
    pub(in crate::agent) fn resume(now: Time, key: FlowKey, moved: Moved, ends: &Ends) -> Pair {
        let limits = moved.limits(ends.buffer);
        let [left, right] = moved.halves;
        let half = |side: Side, snapshot: Snapshot, flow: FlowKey| {
            let i = side.index();
            let tcp = ends.tcp[i].clone();
            let mut half = Connection::resume(now, snapshot, tcp, (flow, side), limits[i]);
            half.grow_outbox(limits[1 - i]);
            half.set_suspicious(ends.suspects_size);
            half
        };
        let mut halves = [half(Side::Left, left, key.reversed()), half(Side::Right, right, key)];
        // A lost host is probed immediately.
        let gone = halves[0].has_closed_window().then_some(Absence::new(now));
        if gone.is_some() {
            halves[1].freeze();
        }
        let room = |i: usize| Room {
            limit: limits[i],
            freed: moved.rooms[i].1,
            since: (now, moved.rooms[i].1),
        };
        Pair {
            held: halves.iter().map(Connection::held_bytes).sum(),
            halves,
            opener: if moved.from_left { Side::Left } else { Side::Right },
            open_until: moved.open_for.map(|left| now + left),
            rooms: [room(0), room(1)],
            last_packet: now,
            uncork: None,
            knocks: ends.mtcp.map(|mtcp| mtcp.knock),
            gone,
            behind: None,
            doubts: [Doubt::default(); 2],
            probing: [false; 2],
            probed: [Doubt::default(); 2],
            first: None,
            rival: None,
        }
    }

    /// Sends the data that was due at the export.
    pub(in crate::agent) fn proceed(
        &mut self,
        now: Time,
        shared: &mut Shared<'_>,
        out: &mut Out,
    ) -> Fate {
        // A half before its handshake has no window to advertise.
        let open = self.halves.iter_mut().filter(|half| half.state().is_synchronised());
        open.for_each(|half| half.relayed(now, 0, out));
        self.settle(now, shared, out)
    }
}
