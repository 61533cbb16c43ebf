//! A router that other people's traffic shares: it drops some data packets and delays what passes.

use serde::Serialize;

use crate::event::Cause;
use crate::machine::{Machine, Out, Side};
use crate::rng::Stream;
use crate::units::{Probability, Span, Time};
use crate::wire::Packet;

use super::transmitter::Pipe;

/// How much other traffic there is.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct CrossTraffic {
    /// Probability that a packet with data is dropped.
    pub loss: Probability,
    /// Largest extra delay; each packet draws uniformly below it, and order is kept.
    pub jitter: Span,
}

/// The router.
#[derive(Debug)]
pub struct Cross {
    config: CrossTraffic,
    chance: Stream,
    pipes: [Pipe; 2],
}

impl Cross {
    /// An empty router that draws from `chance`.
    pub fn new(config: CrossTraffic, chance: Stream) -> Cross {
        Cross { config, chance, pipes: Default::default() }
    }
}

impl Machine for Cross {
    fn on_packet(&mut self, now: Time, from: Side, packet: Packet, out: &mut Out) {
        let side = from.other();
        if packet.is_data() && self.chance.chance(self.config.loss.get()) {
            out.discard(side, packet, Cause::CrossTraffic);
            return;
        }
        let delay = Span(self.chance.below(self.config.jitter.0 + 1));
        let pipe = &mut self.pipes[side.index()];
        let last = pipe.last().unwrap_or(Time::ZERO);
        pipe.push((now + delay).max(last), packet);
    }

    fn on_wake(&mut self, now: Time, out: &mut Out) {
        for side in Side::BOTH {
            while let Some(packet) = self.pipes[side.index()].take(now) {
                out.send(side, packet);
            }
        }
    }

    fn next_wake(&self) -> Option<Time> {
        self.pipes[0].next().min(self.pipes[1].next()).or_none()
    }

    fn holds(&self) -> usize {
        self.pipes.iter().map(Pipe::len).sum()
    }
}
