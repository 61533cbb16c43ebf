//! A serialising full-duplex line with a drop-tail queue in front of each transmitter.
//!
//! A plain FIFO needs one event a hop: when a packet arrives, the time at which the line will have carried it
//! is known, so it goes straight into the pipe and comes out by one wake.

use std::collections::VecDeque;

use crate::event::{Cause, Op};
use crate::machine::{Machine, Out, Side};
use crate::queue::DropTail;
use crate::units::{Rate, Time};
use crate::wire::Packet;

use super::{LineConfig, Pipe};

#[derive(Debug)]
struct Direction {
    rate: Option<Rate>,
    /// When the transmitter will be free.
    free_at: Time,
    queue: DropTail,
    pipe: Pipe,
    /// When the first packet of the pipe comes out: asked for after every call, so kept at hand.
    next: Time,
}

/// A full-duplex line.
#[derive(Debug)]
pub struct Line {
    config: LineConfig,
    /// By the side that packets travel to.
    directions: [Direction; 2],
}

impl Line {
    /// An idle line.
    pub fn new(config: LineConfig) -> Line {
        let direction = |rate| Direction {
            rate,
            free_at: Time::ZERO,
            queue: DropTail::new(config.queue),
            pipe: VecDeque::new(),
            next: Time::NEVER,
        };
        let directions = [direction(config.rate_left), direction(config.rate_right)];
        Line { config, directions }
    }
}

impl Machine for Line {
    fn on_packet(&mut self, now: Time, from: Side, packet: Packet, out: &mut Out) {
        let to = from.other();
        let direction = &mut self.directions[to.index()];
        let bytes = packet.wire_len() + self.config.framing;
        let start = direction.free_at.max(now);
        if start > now && !direction.queue.admit(now, start, bytes) {
            out.discard(to, packet, Cause::QueueFull);
            return;
        }
        if let Some(rate) = direction.rate {
            direction.free_at = start + rate.transmit(bytes.into());
        }
        let arrives = direction.free_at.max(now) + self.config.delay;
        direction.next = direction.next.min(arrives);
        direction.pipe.push_back((arrives, packet));
    }

    fn on_wake(&mut self, now: Time, out: &mut Out) {
        for side in [Side::Left, Side::Right] {
            let direction = &mut self.directions[side.index()];
            while direction.next <= now {
                let Some((_, packet)) = direction.pipe.pop_front() else { break };
                direction.next = direction.pipe.front().map_or(Time::NEVER, |(at, _)| *at);
                out.packet_event(Op::Transmitted, side, &packet);
                out.send(side, packet);
            }
        }
    }

    fn next_wake(&self) -> Option<Time> {
        let at = self.directions[0].next.min(self.directions[1].next);
        (at != Time::NEVER).then_some(at)
    }

    fn holds(&self) -> usize {
        self.directions.iter().map(|d| d.pipe.len()).sum()
    }
}
