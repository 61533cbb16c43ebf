//! A serialising full-duplex line with a queue in front of each transmitter.
//!
//! A plain FIFO needs one event a hop: when a packet arrives, the time at which the line will have carried it
//! is known, so it goes straight into the pipe and comes out by one wake.
//!
//! Where another discipline decides who goes next, packets are kept until their transmission begins. That takes no
//! wake of its own either: whoever waits does so behind a packet in the pipe, and when that comes out, or another
//! packet arrives, all transmissions that have begun since are put into the pipe with the times of their beginning.

use std::collections::VecDeque;

use crate::event::{Cause, Op};
use crate::machine::{Machine, Out, Side};
use crate::queue::{Discipline, DropTail, Queue};
use crate::rng::Stream;
use crate::units::{Rate, Span, Time};
use crate::wire::Packet;

use super::{LineConfig, Pipe};

#[derive(Debug)]
struct Direction {
    rate: Option<Rate>,
    delay: Span,
    /// When the transmitter will be free.
    free_at: Time,
    before: Before,
    pipe: Pipe,
    /// When the first packet of the pipe comes out: asked for after every call, so kept at hand.
    next: Time,
}

/// What stands in front of the transmitter.
#[derive(Debug)]
enum Before {
    /// A plain FIFO: its packets are in the pipe already.
    Schedule(DropTail),
    /// Packets wait here for their turn.
    Queue(Box<Queue>),
}

/// A full-duplex line.
#[derive(Debug)]
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
        let direction = |rate, discipline, part: &str| Direction {
            rate,
            delay: config.delay,
            free_at: Time::ZERO,
            before: match discipline {
                Discipline::Fifo => Before::Schedule(DropTail::new(config.queue)),
                other => Before::Queue(Box::new(Queue::new(config.queue, other, || stream(part)))),
            },
            pipe: VecDeque::new(),
            next: Time::NEVER,
        };
        let directions = [
            direction(config.rate_left, config.discipline_left, "queue.left"),
            direction(config.rate_right, config.discipline_right, "queue.right"),
        ];
        Line { framing: config.framing, directions }
    }
}

impl Direction {
    /// A transmission of `bytes` begins at `start`.
    #[inline]
    fn transmit(&mut self, start: Time, packet: Packet, bytes: u32) {
        let end = match self.rate {
            Some(rate) => {
                self.free_at = start + rate.transmit(bytes.into());
                self.free_at
            }
            None => start,
        };
        let arrives = end + self.delay;
        self.next = self.next.min(arrives);
        self.pipe.push_back((arrives, packet));
    }

    /// Begins what should have begun by `now`.
    #[inline]
    fn catch_up(&mut self, now: Time) {
        if matches!(self.before, Before::Queue(_)) {
            self.begin_waiting(now);
        }
    }

    fn begin_waiting(&mut self, now: Time) {
        while self.free_at <= now {
            let Before::Queue(queue) = &mut self.before else { return };
            let Some(waiting) = queue.leave(self.free_at) else { return };
            self.transmit(self.free_at, waiting.packet, waiting.bytes);
        }
    }
}

impl Machine for Line {
    fn on_packet(&mut self, now: Time, from: Side, packet: Packet, out: &mut Out) {
        let to = from.other();
        let direction = &mut self.directions[to.index()];
        let bytes = packet.wire_len() + self.framing;
        direction.catch_up(now);
        let start = direction.free_at.max(now);
        if start > now {
            match &mut direction.before {
                Before::Schedule(queue) => {
                    if !queue.admit(now, start, bytes) {
                        out.discard(to, packet, Cause::QueueFull);
                        return;
                    }
                }
                Before::Queue(queue) => return queue.enter(now, to, packet, bytes, out),
            }
        } else if let Before::Queue(queue) = &mut direction.before {
            let Some(packet) = queue.pass(now, to, packet, out) else { return };
            return direction.transmit(start, packet, bytes);
        }
        direction.transmit(start, packet, bytes);
    }

    fn on_wake(&mut self, now: Time, out: &mut Out) {
        for side in [Side::Left, Side::Right] {
            let direction = &mut self.directions[side.index()];
            while direction.next <= now {
                direction.catch_up(now);
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
        let waiting = |d: &Direction| match &d.before {
            Before::Schedule(_) => 0,
            Before::Queue(queue) => queue.len(),
        };
        self.directions.iter().map(|d| d.pipe.len() + waiting(d)).sum()
    }
}
