//! A full-duplex serial line with a queue in front of each transmitter.
//!
//! A plain FIFO needs one event per hop: the time of arrival at the far end is known when a packet enters. So
//! the packet enters the pipe immediately, and leaves it at one deadline.
//!
//! With any other discipline, packets are stored until their transmission begins. That needs no separate
//! deadline either, since a waiting packet is behind one in the pipe. When that one leaves, or another packet
//! arrives, all transmissions that have begun since enter the pipe with their start times. Only a discipline
//! that drops leaving packets needs a deadline, so that its drops have the right time.

use crate::event::Cause;
use crate::machine::{Machine, Out, Side};
use crate::queue::DropTail;
use crate::rng::Stream;
use crate::units::Time;
use crate::wire::Packet;

use super::LineConfig;
use super::transmitter::Transmitter;

#[derive(Clone, Debug)]
struct Direction {
    /// A plain FIFO: its packets are in the pipe already, and the transmitter's queue is unused.
    schedule: Option<DropTail>,
    transmitter: Transmitter,
}

/// A full-duplex line.
#[derive(Clone, Debug)]
pub struct Line {
    framing: u32,
    /// Indexed by the side to which packets travel.
    directions: [Direction; 2],
}

impl Line {
    /// An idle line. Random queues draw as in a run with seed 0.
    pub fn new(config: LineConfig) -> Line {
        Line::seeded(config, |part| Stream::new(0, part))
    }

    /// An idle line; `stream` returns the random streams of its parts.
    pub fn seeded(config: LineConfig, stream: impl Fn(&str) -> Stream) -> Line {
        let directions = Side::BOTH.map(|side| Direction {
            schedule: config.discipline(side).is_fifo().then(|| DropTail::new(config.queue)),
            transmitter: config.transmitter(side, &stream),
        });
        Line { framing: config.framing, directions }
    }
}

impl Line {
    /// Removes the packet that leaves by `now`, with its destination side, if the deadline would have no
    /// other effect. The packet counts as [transmitted](crate::event::Op::Transmitted).
    #[inline]
    pub fn take_only(&mut self, now: Time) -> Option<(Side, Packet)> {
        let [left, right] = &mut self.directions;
        let (direction, side) = match (left.next() <= now, right.next() <= now) {
            (true, false) => (left, Side::Left),
            (false, true) => (right, Side::Right),
            _ => return None,
        };
        direction.schedule.as_ref()?;
        direction.transmitter.pipe.take_only(now).map(|packet| (side, packet))
    }

    /// Whether the next packets to `side` are to be prefetched, after one [left](Line::take_only).
    #[inline]
    pub fn reads_ahead(&mut self, side: Side) -> bool {
        self.directions[side.index()].transmitter.pipe.reads_ahead()
    }

    /// The packets to `side` that are prefetched together.
    pub fn next_ones(&self, side: Side) -> impl Iterator<Item = &Packet> {
        self.directions[side.index()].transmitter.pipe.next_ones()
    }

    /// Accepts a packet towards `side` if it needs no event: it enters the pipe or the queue. Otherwise the
    /// packet is returned, for [`Machine::on_packet`].
    #[inline(always)]
    pub fn take_in(&mut self, now: Time, side: Side, packet: Packet) -> Result<(), Packet> {
        let Direction { schedule, transmitter } = &mut self.directions[side.index()];
        let Some(schedule) = schedule else { return Err(packet) };
        let bytes = packet.wire_len() + self.framing;
        let start = transmitter.free_at.max(now);
        if start > now && !schedule.admit(now, start, bytes) {
            return Err(packet);
        }
        let airtime = transmitter.airtime(bytes);
        transmitter.transmit(start, airtime, packet);
        Ok(())
    }
}

impl Direction {
    /// Time of the next action.
    #[inline]
    fn next(&self) -> Time {
        self.transmitter.pipe.next()
    }

    /// Starts a transmission of `bytes` bytes at `start`.
    #[inline]
    fn transmit(&mut self, start: Time, packet: Packet, bytes: u32) {
        let airtime = self.transmitter.airtime(bytes);
        self.transmitter.transmit(start, airtime, packet);
    }

    /// Starts the transmissions towards `side` that should have begun by `now`.
    fn catch_up(&mut self, now: Time, side: Side, out: &mut Out) {
        self.transmitter.pipe.look_ahead();
        while let Some((start, waiting)) = self.transmitter.due(now, side, out) {
            self.transmit(start, waiting.packet, waiting.bytes);
        }
    }

    /// Adds a deadline for a queue that drops leaving packets.
    fn look_by_turn(&mut self) {
        self.transmitter.pipe.look_by(self.transmitter.turn());
    }
}

impl Machine for Line {
    fn check(&self) {
        for Direction { schedule, transmitter } in &self.directions {
            transmitter.check();
            debug_assert!(
                schedule.is_none() || transmitter.queue.is_empty(),
                "a schedule replaces the queue"
            );
            debug_assert!(
                transmitter.queue.is_empty() || transmitter.pipe.len() > 0,
                "packets wait for an idle line"
            );
            debug_assert!(
                transmitter.pipe.last().is_none_or(|last| last >= transmitter.free_at),
                "the last packet arrives before its transmission ends"
            );
        }
    }

    #[inline]
    fn on_packet(&mut self, now: Time, from: Side, packet: Packet, out: &mut Out) {
        let to = from.other();
        let Err(packet) = self.take_in(now, to, packet) else { return };
        let direction = &mut self.directions[to.index()];
        if direction.schedule.is_some() {
            return out.discard(to, packet, Cause::QueueFull);
        }
        let bytes = packet.wire_len() + self.framing;
        direction.catch_up(now, to, out);
        if let Some(packet) = direction.transmitter.arrive(now, to, packet, bytes, out) {
            direction.transmit(now, packet, bytes);
        }
        direction.look_by_turn();
    }

    fn on_wake(&mut self, now: Time, out: &mut Out) {
        for side in Side::BOTH {
            let direction = &mut self.directions[side.index()];
            if direction.next() > now {
                continue;
            }
            let plain = direction.schedule.is_some();
            if !plain {
                direction.catch_up(now, side, out);
            }
            direction.transmitter.pipe.deliver(now, side, out);
            if !plain {
                direction.look_by_turn();
            }
        }
    }

    #[inline]
    fn next_wake(&self) -> Option<Time> {
        let [left, right] = &self.directions;
        left.next().min(right.next()).or_none()
    }

    fn holds(&self) -> usize {
        self.directions.iter().map(|direction| direction.transmitter.holds()).sum()
    }
}
