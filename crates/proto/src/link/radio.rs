//! A radio hop: a medium that carries one frame at a time, with errors in each direction.
//!
//! Both stations may have frames waiting. When the medium becomes free and both do, they alternate, which is
//! what fair contention gives in the long run; the time that access takes is part of the per-frame overhead.
//! Collisions and back-off are not modelled here.

use std::collections::VecDeque;

use crate::channel::{Channel, damage_at};
use crate::event::{Cause, Op, What};
use crate::machine::{Machine, Out, Side};
use crate::units::Time;
use crate::wire::Packet;

use super::{Pipe, RadioConfig};

#[derive(Debug)]
struct Station {
    waiting: VecDeque<Packet>,
    bytes: u64,
    channel: Option<Channel>,
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
    /// An idle radio; the channels damage what travels left and right.
    pub fn new(config: RadioConfig, left: Option<Channel>, right: Option<Channel>) -> Radio {
        let station = |channel| Station {
            waiting: VecDeque::new(),
            bytes: 0,
            channel,
            pipe: VecDeque::new(),
            free_at: Time::ZERO,
        };
        Radio { config, stations: [station(left), station(right)], turn: Side::Right }
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

    /// Sends `packet` to `side` now; the medium is free.
    fn transmit(&mut self, now: Time, side: Side, mut packet: Packet, out: &mut Out) {
        let bytes = packet.wire_len();
        let duration = self.config.overhead + self.config.rate.transmit(bytes.into());
        let station = &mut self.stations[side.index()];
        station.free_at = now + duration;
        self.turn = side.other();
        if let Some(channel) = &mut station.channel {
            let fate = channel.pass(now, duration, bytes);
            if let Some(good) = fate.turned {
                out.event(What::Channel { side, good });
            }
            if let Some(position) = fate.damaged_at {
                packet.damage = damage_at(position, &packet);
                out.packet_event(Op::Damaged, side, &packet);
            }
        }
        station.pipe.push_back((station.free_at + self.config.delay, packet));
    }

    /// Starts what can be started.
    fn start(&mut self, now: Time, out: &mut Out) {
        for side in [self.turn, self.turn.other()] {
            if self.free_at(side) > now {
                continue;
            }
            let station = &mut self.stations[side.index()];
            if let Some(packet) = station.waiting.pop_front() {
                station.bytes -= u64::from(packet.wire_len());
                self.transmit(now, side, packet, out);
            }
        }
    }
}

impl Machine for Radio {
    fn on_packet(&mut self, now: Time, from: Side, packet: Packet, out: &mut Out) {
        let side = from.other();
        let free = self.free_at(side) <= now;
        let limit = self.config.queue;
        let station = &mut self.stations[side.index()];
        if free && station.waiting.is_empty() {
            self.transmit(now, side, packet, out);
            return;
        }
        let bytes = packet.wire_len();
        if limit.admits(station.waiting.len(), station.bytes, bytes) {
            station.bytes += u64::from(bytes);
            station.waiting.push_back(packet);
        } else {
            out.discard(side, packet, Cause::QueueFull);
        }
    }

    fn on_wake(&mut self, now: Time, out: &mut Out) {
        for side in [Side::Left, Side::Right] {
            let pipe = &mut self.stations[side.index()].pipe;
            while pipe.front().is_some_and(|(at, _)| *at <= now) {
                if let Some((_, packet)) = pipe.pop_front() {
                    out.packet_event(Op::Transmitted, side, &packet);
                    out.send(side, packet);
                }
            }
        }
        self.start(now, out);
    }

    fn next_wake(&self) -> Option<Time> {
        let mut at = Time::NEVER;
        for side in [Side::Left, Side::Right] {
            let station = &self.stations[side.index()];
            if let Some((arrival, _)) = station.pipe.front() {
                at = at.min(*arrival);
            }
            if !station.waiting.is_empty() {
                at = at.min(self.free_at(side));
            }
        }
        (at != Time::NEVER).then_some(at)
    }

    fn holds(&self) -> usize {
        self.stations.iter().map(|s| s.pipe.len() + s.waiting.len()).sum()
    }
}
