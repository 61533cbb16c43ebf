//! A radio hop: a medium that carries one frame at a time, with errors in each direction.
//!
//! Both stations may have waiting frames. When the medium becomes free and both have, they alternate, which
//! is the long-term result of fair contention. The time for access is part of the per-frame overhead.
//! Collisions and backoff are not modelled here. Values that vary over time are read at the start of a frame
//! ([`Radio::varied`]).

use crate::channel::{Channel, Traffic, Turns, damage_at};
use crate::event::Op;
use crate::machine::{Machine, Out, Side};
use crate::rng::Stream;
use crate::units::{Span, Time};
use crate::wire::Packet;

use super::RadioConfig;
use super::transmitter::{Transmitter, report_turn};
use super::varied::{Sky, Varying};

#[derive(Clone, Debug)]
struct Direction {
    transmitter: Transmitter,
    channel: Option<Channel>,
    /// Changes of the channel, if they are reported immediately.
    turns: Option<Turns>,
}

/// A radio hop. A varying one is a separate type, so that others have no additional cost.
#[derive(Clone, Debug)]
pub struct Radio<const VARIES: bool = false> {
    half_duplex: bool,
    /// Indexed by the side to which packets travel.
    directions: [Direction; 2],
    /// The side that sends next if both have waiting frames.
    turn: Side,
    /// Varying values, if there are any.
    sky: Option<Box<Sky>>,
}

impl Radio {
    /// An idle radio; the channels damage packets to the left and to the right. Random queues draw as in a
    /// run with seed 0.
    pub fn new(config: RadioConfig, left: Option<Channel>, right: Option<Channel>) -> Radio {
        Radio::seeded(config, left, right, |part| Stream::new(0, part))
    }

    /// An idle radio; `stream` returns the random streams of its queues.
    pub fn seeded(
        config: RadioConfig,
        left: Option<Channel>,
        right: Option<Channel>,
        stream: impl Fn(&str) -> Stream,
    ) -> Radio {
        let direction = |side: Side, channel: Option<Channel>| Direction {
            transmitter: config.transmitter(side, &stream),
            turns: channel.as_ref().filter(|c| c.reports_changes()).and_then(Channel::turns),
            channel,
        };
        let directions = [direction(Side::Left, left), direction(Side::Right, right)];
        Radio { half_duplex: config.half_duplex, directions, turn: Side::Right, sky: None }
    }
}

impl Radio<true> {
    /// A radio that varies over time.
    pub fn varied(
        config: &RadioConfig,
        left: Option<Channel>,
        right: Option<Channel>,
        varying: Varying,
        stream: impl Fn(&str) -> Stream,
    ) -> Radio<true> {
        let sky = Some(Box::new(Sky::new(config, varying, &stream)));
        let Radio { half_duplex, directions, turn, .. } =
            Radio::<false>::seeded(config.clone(), left, right, stream);
        Radio { half_duplex, directions, turn, sky }
    }
}

impl<const VARIES: bool> Radio<VARIES> {
    /// Delays the medium's free time until a frame may begin.
    fn wait_for_sky(&mut self, now: Time) {
        let Some(sky) = self.sky.as_ref().filter(|_| VARIES) else { return };
        for side in Side::BOTH {
            let free_at = &mut self.directions[side.index()].transmitter.free_at;
            let at = now.max(*free_at);
            let opens = sky.opens(at, side);
            if opens > at {
                *free_at = opens;
            }
        }
    }

    /// Sends `packet` to `side` at `start`, when the medium is free.
    fn transmit(&mut self, start: Time, side: Side, mut packet: Packet, out: &mut Out) {
        let bytes = packet.wire_len();
        let direction = &mut self.directions[side.index()];
        let sky = self.sky.as_mut().filter(|_| VARIES);
        let varied = sky.as_ref().and_then(|sky| sky.airtime(start, side, bytes));
        let airtime = varied.unwrap_or_else(|| direction.transmitter.airtime(bytes));
        if let Some(channel) = &mut direction.channel
            && channel.applies_to(Traffic::of(&packet))
        {
            let fate = channel.pass(start, airtime, bytes);
            if let Some(good) = fate.turned
                && direction.turns.is_none()
            {
                report_turn(side, good, channel.reports_changes(), out);
            }
            if let Some(position) = fate.damaged_at {
                packet.damage = damage_at(position, &packet);
                out.packet_event(Op::Damaged, side, &packet);
            }
        }
        let end = start + airtime;
        match sky {
            None => direction.transmitter.transmit(start, airtime, packet),
            Some(sky) => {
                let Transmitter { pipe, free_at, .. } = &mut direction.transmitter;
                *free_at = end;
                let (at, packet) = sky.passes(start, end, side, packet);
                packet.into_iter().for_each(|p| pipe.push(pipe.in_order(at), p));
            }
        }
        if self.half_duplex {
            self.directions[side.other().index()].transmitter.free_at = end;
        }
        self.turn = side.other();
        if VARIES {
            self.wait_for_sky(end);
        }
    }

    /// The channel towards `side`.
    pub fn channel(&self, side: Side) -> Option<&Channel> {
        self.directions[side.index()].channel.as_ref()
    }

    /// The same, to change its script.
    pub fn channel_mut(&mut self, side: Side) -> Option<&mut Channel> {
        self.directions[side.index()].channel.as_mut()
    }

    /// Reports due changes of the channels.
    #[inline]
    fn report_turns(&mut self, now: Time, out: &mut Out) {
        for side in Side::BOTH {
            let Some(turns) = &mut self.directions[side.index()].turns else { continue };
            while let Some(good) = turns.take(now) {
                report_turn(side, good, true, out);
            }
        }
    }

    /// Forwards packets that have arrived by `now`.
    #[inline]
    fn deliver(&mut self, now: Time, out: &mut Out) {
        for side in Side::BOTH {
            self.directions[side.index()].transmitter.pipe.deliver(now, side, out);
        }
    }

    /// Start and side of the next waiting frame.
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
            let next = self.directions[side.index()].transmitter.queue.dequeue(at, side, out);
            // A discipline may have dropped all waiting packets.
            let Some(waiting) = next else { continue };
            self.transmit(at, side, waiting.packet, out);
        }
    }
}

impl<const VARIES: bool> Machine for Radio<VARIES> {
    fn check(&self) {
        let [left, right] = &self.directions;
        left.transmitter.check();
        right.transmitter.check();
        debug_assert!(
            !self.half_duplex || left.transmitter.free_at == right.transmitter.free_at,
            "both directions of a half-duplex radio share its time"
        );
        debug_assert!(VARIES || self.sky.is_none(), "a radio without variations has none");
    }

    fn on_packet(&mut self, now: Time, from: Side, packet: Packet, out: &mut Out) {
        let side = from.other();
        // After a late call, some frames have nominally started already.
        self.start_before(now, out);
        if let Some(sky) = self.sky.as_ref().filter(|_| VARIES) {
            sky.arrives(now, side, &packet, out);
            self.wait_for_sky(now);
        }
        let transmitter = &mut self.directions[side.index()].transmitter;
        let bytes = packet.wire_len();
        if let Some(packet) = transmitter.arrive(now, side, packet, bytes, out) {
            self.transmit(now, side, packet, out);
        }
    }

    fn on_wake(&mut self, now: Time, out: &mut Out) {
        self.report_turns(now, out);
        if let Some(sky) = self.sky.as_mut().filter(|_| VARIES) {
            sky.on_wake(now, out);
        }
        self.deliver(now, out);
        self.start_before(now + Span(1), out);
        // After a very late call, some frames have started and arrived already.
        self.deliver(now, out);
    }

    fn next_wake(&self) -> Option<Time> {
        let sky = self.sky.as_ref().filter(|_| VARIES);
        let mut at = sky.map_or(Time::NEVER, |sky| sky.next());
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
        let lost = self.sky.as_ref().filter(|_| VARIES).map_or(0, |sky| sky.holds());
        self.directions.iter().map(|direction| direction.transmitter.holds()).sum::<usize>() + lost
    }
}
