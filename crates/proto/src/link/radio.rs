//! A radio hop: a medium that carries one frame at a time, with errors in each direction.
//!
//! Both stations may have frames waiting. When the medium becomes free and both do, they alternate, which is
//! what fair contention gives in the long run; the time that access takes is part of the per-frame overhead.
//! Collisions and back-off are not modelled here.

use crate::channel::{Channel, Traffic, Turns, damage_at};
use crate::event::Op;
use crate::machine::{Machine, Out, Side};
use crate::rng::Stream;
use crate::units::{Span, Time};
use crate::wire::Packet;

use super::RadioConfig;
use super::transmitter::{Transmitter, tell_turn};

#[derive(Debug)]
struct Direction {
    transmitter: Transmitter,
    channel: Option<Channel>,
    /// The turns of the channel, where they are to be told when they happen.
    turns: Option<Turns>,
}

/// A radio hop.
#[derive(Debug)]
pub struct Radio {
    half_duplex: bool,
    /// By the side that packets travel to.
    directions: [Direction; 2],
    /// Whose turn it is when both have frames waiting.
    turn: Side,
}

impl Radio {
    /// An idle radio; the channels damage what travels left and right. Queues that leave something to chance draw as
    /// in a run with seed 0.
    pub fn new(config: RadioConfig, left: Option<Channel>, right: Option<Channel>) -> Radio {
        Radio::seeded(config, left, right, |part| Stream::new(0, part))
    }

    /// The same; `stream` gives the random draws of its queues.
    pub fn seeded(
        config: RadioConfig,
        left: Option<Channel>,
        right: Option<Channel>,
        stream: impl Fn(&str) -> Stream,
    ) -> Radio {
        let direction = |side: Side, channel: Option<Channel>| Direction {
            transmitter: config.transmitter(side, &stream),
            turns: channel.as_ref().filter(|c| c.tells()).and_then(Channel::turns),
            channel,
        };
        let directions = [direction(Side::Left, left), direction(Side::Right, right)];
        Radio { half_duplex: config.half_duplex, directions, turn: Side::Right }
    }

    /// Sends `packet` to `side` at `start`, when the medium is free.
    fn transmit(&mut self, start: Time, side: Side, mut packet: Packet, out: &mut Out) {
        let bytes = packet.wire_len();
        let direction = &mut self.directions[side.index()];
        let airtime = direction.transmitter.airtime(bytes);
        if let Some(channel) = &mut direction.channel
            && channel.applies_to(Traffic::of(&packet))
        {
            let fate = channel.pass(start, airtime, bytes);
            if let Some(good) = fate.turned
                && direction.turns.is_none()
            {
                tell_turn(side, good, channel.tells(), out);
            }
            if let Some(position) = fate.damaged_at {
                packet.damage = damage_at(position, &packet);
                out.packet_event(Op::Damaged, side, &packet);
            }
        }
        direction.transmitter.transmit(start, airtime, packet);
        if self.half_duplex {
            self.directions[side.other().index()].transmitter.free_at = start + airtime;
        }
        self.turn = side.other();
    }

    /// Tells the turns that are due.
    #[inline]
    fn tell_turns(&mut self, now: Time, out: &mut Out) {
        for side in Side::BOTH {
            let Some(turns) = &mut self.directions[side.index()].turns else { continue };
            while let Some(good) = turns.take(now) {
                tell_turn(side, good, true, out);
            }
        }
    }

    /// Hands on what has arrived by `now`.
    #[inline]
    fn deliver(&mut self, now: Time, out: &mut Out) {
        for side in Side::BOTH {
            self.directions[side.index()].transmitter.pipe.deliver(now, side, out);
        }
    }

    /// When the next waiting frame starts, and towards which side.
    fn next_start(&self) -> Option<(Time, Side)> {
        let starts = |side: Side| {
            let Transmitter { queue, free_at, .. } = &self.directions[side.index()].transmitter;
            (!queue.is_empty()).then_some((*free_at, side))
        };
        let sides = [self.turn, self.turn.other()];
        sides.into_iter().filter_map(starts).min_by_key(|(at, _)| *at)
    }

    /// Starts the waiting frames that should have started before `end`, each when the medium became free.
    #[inline]
    fn start_before(&mut self, end: Time, out: &mut Out) {
        while let Some((at, side)) = self.next_start().filter(|(at, _)| *at < end) {
            let next = self.directions[side.index()].transmitter.queue.leave(at, side, out);
            // A discipline may have ended all that waited.
            let Some(waiting) = next else { continue };
            self.transmit(at, side, waiting.packet, out);
        }
    }
}

impl Machine for Radio {
    fn on_packet(&mut self, now: Time, from: Side, packet: Packet, out: &mut Out) {
        let side = from.other();
        // If the wake is late, frames have started that nobody saw start.
        self.start_before(now, out);
        let transmitter = &mut self.directions[side.index()].transmitter;
        let bytes = packet.wire_len();
        if let Some(packet) = transmitter.arrive(now, side, packet, bytes, out) {
            self.transmit(now, side, packet, out);
        }
    }

    fn on_wake(&mut self, now: Time, out: &mut Out) {
        self.tell_turns(now, out);
        self.deliver(now, out);
        self.start_before(now + Span(1), out);
        // A wake that is very late finds frames that have started and arrived.
        self.deliver(now, out);
    }

    fn next_wake(&self) -> Option<Time> {
        let mut at = Time::NEVER;
        for Direction { transmitter, turns, .. } in &self.directions {
            at = at.min(transmitter.pipe.next());
            if !transmitter.queue.is_empty() {
                at = at.min(transmitter.free_at);
            }
            if let Some(turns) = turns {
                at = at.min(turns.next());
            }
        }
        at.or_none()
    }

    fn holds(&self) -> usize {
        self.directions.iter().map(|direction| direction.transmitter.holds()).sum()
    }
}
