//! A radio hop: a medium that carries one frame at a time, with errors in each direction.
//!
//! Both stations may have frames waiting. When the medium becomes free and both do, they alternate, which is
//! what fair contention gives in the long run; the time that access takes is part of the per-frame overhead.
//! Collisions and back-off are not modelled here.

use crate::channel::{Channel, Traffic, Turns, damage_at};
use crate::event::{Op, What};
use crate::machine::{Machine, Out, Side, Signal};
use crate::queue::Queue;
use crate::rng::Stream;
use crate::units::{Span, Time};
use crate::wire::Packet;

use super::{Pipe, RadioConfig};

#[derive(Debug)]
struct Station {
    queue: Queue,
    channel: Option<Channel>,
    /// The turns of the channel, where they are to be told when they happen.
    turns: Option<Turns>,
    pipe: Pipe,
    /// When the medium that this station uses will be free; in half duplex that of the other counts as well.
    free_at: Time,
}

/// A radio hop.
#[derive(Debug)]
pub struct Radio {
    config: RadioConfig,
    /// By the side that packets travel to.
    stations: [Station; 2],
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
        let station = |channel: Option<Channel>, discipline, part: &str| Station {
            queue: Queue::new(config.queue, discipline, || stream(part)),
            turns: channel.as_ref().filter(|c| c.tells()).and_then(Channel::turns),
            channel,
            pipe: Pipe::new(),
            free_at: Time::ZERO,
        };
        let stations = [
            station(left, config.discipline_left, "queue.left"),
            station(right, config.discipline_right, "queue.right"),
        ];
        Radio { config, stations, turn: Side::Right }
    }

    /// When the medium is free for packets that travel to `side`.
    fn free_at(&self, side: Side) -> Time {
        let own = self.stations[side.index()].free_at;
        if self.config.half_duplex {
            own.max(self.stations[side.other().index()].free_at)
        } else {
            own
        }
    }

    /// Sends `packet` to `side` at `start`, when the medium is free.
    fn transmit(&mut self, start: Time, side: Side, mut packet: Packet, out: &mut Out) {
        let bytes = packet.wire_len();
        let duration = self.config.overhead + self.config.rate.transmit(bytes.into());
        let station = &mut self.stations[side.index()];
        station.free_at = start + duration;
        self.turn = side.other();
        if let Some(channel) = &mut station.channel
            && channel.applies_to(Traffic::of(&packet))
        {
            let fate = channel.pass(start, duration, bytes);
            if let Some(good) = fate.turned
                && station.turns.is_none()
            {
                out.event(What::Channel { side, good });
                if channel.tells() {
                    out.signal(side.other(), Signal::ChannelGood(good));
                }
            }
            if let Some(position) = fate.damaged_at {
                packet.damage = damage_at(position, &packet);
                out.packet_event(Op::Damaged, side, &packet);
            }
        }
        station.pipe.push_back((station.free_at + self.config.delay, packet));
    }

    /// Tells the turns that are due: to the world, and to the neighbour that sends into that channel.
    #[inline]
    fn tell_turns(&mut self, now: Time, out: &mut Out) {
        for side in [Side::Left, Side::Right] {
            let Some(turns) = &mut self.stations[side.index()].turns else { continue };
            while let Some(good) = turns.take(now) {
                out.event(What::Channel { side, good });
                out.signal(side.other(), Signal::ChannelGood(good));
            }
        }
    }

    /// Hands on what has arrived by `now`.
    #[inline]
    fn deliver(&mut self, now: Time, out: &mut Out) {
        for side in [Side::Left, Side::Right] {
            let pipe = &mut self.stations[side.index()].pipe;
            while pipe.front().is_some_and(|(at, _)| *at <= now) {
                if let Some((_, packet)) = pipe.pop_front() {
                    out.packet_event(Op::Transmitted, side, &packet);
                    out.send(side, packet);
                }
            }
        }
    }

    /// When the next waiting frame starts, and towards which side.
    fn next_start(&self) -> Option<(Time, Side)> {
        let waiting = |side: &Side| !self.stations[side.index()].queue.is_empty();
        let sides = [self.turn, self.turn.other()].into_iter().filter(waiting);
        sides.map(|side| (self.free_at(side), side)).min_by_key(|(at, _)| *at)
    }

    /// Starts the waiting frames that should have started before `end`, each when the medium became free.
    #[inline]
    fn start_before(&mut self, end: Time, out: &mut Out) {
        while let Some((at, side)) = self.next_start().filter(|(at, _)| *at < end) {
            let Some(waiting) = self.stations[side.index()].queue.leave(at) else { return };
            self.transmit(at, side, waiting.packet, out);
        }
    }
}

impl Machine for Radio {
    fn on_packet(&mut self, now: Time, from: Side, packet: Packet, out: &mut Out) {
        let side = from.other();
        // If the wake is late, frames have started that nobody saw start.
        self.start_before(now, out);
        let free = self.free_at(side) <= now;
        let station = &mut self.stations[side.index()];
        if free && station.queue.is_empty() {
            let Some(packet) = station.queue.pass(now, side, packet, out) else { return };
            self.transmit(now, side, packet, out);
            return;
        }
        let bytes = packet.wire_len();
        station.queue.enter(now, side, packet, bytes, out);
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
        for side in [Side::Left, Side::Right] {
            let station = &self.stations[side.index()];
            if let Some((arrival, _)) = station.pipe.front() {
                at = at.min(*arrival);
            }
            if !station.queue.is_empty() {
                at = at.min(self.free_at(side));
            }
            if let Some(turns) = &station.turns {
                at = at.min(turns.next());
            }
        }
        (at != Time::NEVER).then_some(at)
    }

    fn holds(&self) -> usize {
        self.stations.iter().map(|s| s.pipe.len() + s.queue.len()).sum()
    }
}
