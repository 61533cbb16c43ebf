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
        direction.pipe.push_back((direction.free_at.max(now) + self.config.delay, packet));
    }

    fn on_wake(&mut self, now: Time, out: &mut Out) {
        for side in [Side::Left, Side::Right] {
            let pipe = &mut self.directions[side.index()].pipe;
            while pipe.front().is_some_and(|(at, _)| *at <= now) {
                if let Some((_, packet)) = pipe.pop_front() {
                    out.packet_event(Op::Transmitted, side, &packet);
                    out.send(side, packet);
                }
            }
        }
    }

    fn next_wake(&self) -> Option<Time> {
        let head = |i: usize| self.directions[i].pipe.front().map_or(Time::NEVER, |(at, _)| *at);
        let at = head(0).min(head(1));
        (at != Time::NEVER).then_some(at)
    }

    fn holds(&self) -> usize {
        self.directions.iter().map(|d| d.pipe.len()).sum()
    }
}
