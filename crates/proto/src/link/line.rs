//! A serialising full-duplex line with a queue in front of each transmitter.
//!
//! A plain FIFO needs one event a hop: when a packet arrives, the time at which the line will have carried it
//! is known, so it goes straight into the pipe and comes out by one wake.
//!
//! Where another discipline decides who goes next, packets are kept until their transmission begins. That takes no
//! wake of its own either: whoever waits does so behind a packet in the pipe, and when that comes out, or another
//! packet arrives, all transmissions that have begun since are put into the pipe with the times of their beginning.
//! Only a discipline that judges what leaves is woken for, so that what it drops is told at its time.

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
    /// A plain FIFO: its packets are in the pipe already, and the transmitter's queue is not used.
    schedule: Option<DropTail>,
    transmitter: Transmitter,
}

/// A full-duplex line.
#[derive(Clone, Debug)]
pub struct Line {
    framing: u32,
    /// By the side that packets travel to.
    directions: [Direction; 2],
}

impl Line {
    /// An idle line. Queues that leave something to chance draw as in a run with seed 0.
    pub fn new(config: LineConfig) -> Line {
        Line::seeded(config, |part| Stream::new(0, part))
    }

    /// An idle line; `stream` gives the random draws of its parts.
    pub fn seeded(config: LineConfig, stream: impl Fn(&str) -> Stream) -> Line {
        let directions = Side::BOTH.map(|side| Direction {
            schedule: config.discipline(side).is_fifo().then(|| DropTail::new(config.queue)),
            transmitter: config.transmitter(side, &stream),
        });
        Line { framing: config.framing, directions }
    }
}

impl Line {
    /// The packet that comes out by `now`, and the side that it goes to, if a wake would hand on this one and do nothing
    /// else. Then it is gone from here, and has been [transmitted](crate::event::Op::Transmitted).
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

    /// A packet arrives on its way to `side`, and nothing is to be told of it: it is on its way, or waits for its turn. Else it
    /// comes back, and is for [`Machine::on_packet`].
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
    /// When something is to be done.
    #[inline]
    fn next(&self) -> Time {
        self.transmitter.pipe.next()
    }

    /// A transmission of `bytes` begins at `start`.
    #[inline]
    fn transmit(&mut self, start: Time, packet: Packet, bytes: u32) {
        let airtime = self.transmitter.airtime(bytes);
        self.transmitter.transmit(start, airtime, packet);
    }

    /// Begins what should have begun by `now` towards `side`.
    fn catch_up(&mut self, now: Time, side: Side, out: &mut Out) {
        self.transmitter.pipe.look_ahead();
        while let Some((start, waiting)) = self.transmitter.due(now, side, out) {
            self.transmit(start, waiting.packet, waiting.bytes);
        }
    }

    /// Asks for a wake when a queue that judges what leaves is to be asked.
    fn look_by_turn(&mut self) {
        self.transmitter.pipe.look_by(self.transmitter.turn());
    }
}

impl Machine for Line {
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
