//! Varying values of a radio. Its frames are short, so the values at the start of a frame apply to all of it.
//!
//! A frame takes the rate at its start and the delay at its end, and does not overtake others. At a rate of
//! zero, or in an outage whose packets are kept, no frame starts; a frame on the air then is completed
//! nevertheless.

use super::{Course, OutagePackets, Pace, Varying, Weather};
use crate::event::{Cause, Op};
use crate::link::RadioConfig;
use crate::link::transmitter::{Pipe, report_turn};
use crate::machine::{Out, Side};
use crate::rng::Stream;
use crate::units::{Rate, Span, Time};
use crate::wire::Packet;

/// The varying values of a radio.
#[derive(Clone, Debug)]
pub struct Sky {
    weather: Weather,
    overhead: Span,
    /// Indexed by the side to which packets travel.
    rates: [Option<Course<Option<Rate>>>; 2],
    rng: [Stream; 2],
    lost: [Pipe<(Packet, Cause)>; 2],
    /// Start or end of the next outage.
    turn: Time,
}

impl Sky {
    /// The values of `varying`; `stream` returns the random streams of losses.
    pub fn new(config: &RadioConfig, varying: Varying, stream: &impl Fn(&str) -> Stream) -> Sky {
        let rates = [varying.left, varying.right].map(|pace| match pace {
            Some(Pace::Rates(rates)) => Some(rates),
            _ => None,
        });
        let weather = Weather {
            delay: config.delay,
            delays: varying.delays,
            losses: varying.losses,
            outages: varying.outages,
            buffers: varying.outage_packets == OutagePackets::Keep,
        };
        let rng = Side::BOTH.map(|side| stream(&format!("loss.{}", side.word())));
        let (turn, overhead, lost) = (weather.first_turn(), config.overhead, Default::default());
        Sky { weather, overhead, rates, rng, lost, turn }
    }

    /// Duration of a frame towards `side` that begins at `start`, if rates vary.
    pub fn airtime(&self, start: Time, side: Side, bytes: u32) -> Option<Span> {
        let rate = self.rates[side.index()].as_ref()?.at(start)?;
        Some(self.overhead + rate.transmit(bytes.into()))
    }

    /// Rate towards `side` at `now`, if rates vary: `None` within lets no frame pass.
    pub fn rate(&self, now: Time, side: Side) -> Option<Option<Rate>> {
        self.rates[side.index()].as_ref().map(|rates| rates.at(now))
    }

    /// Propagation delay of a frame that ends at `at`.
    pub fn delay(&self, at: Time) -> Span {
        self.weather.delay(at)
    }

    /// Whether a frame on the air in `during` is lost.
    pub fn loses(&mut self, during: core::ops::Range<Time>, side: Side) -> bool {
        self.weather.loss(during, &mut self.rng[side.index()]).is_some()
    }

    /// Earliest start of a frame towards `side`, at `at` or later; [`Time::NEVER`] if there is none.
    pub fn opens(&self, mut at: Time, side: Side) -> Time {
        /// Limit of examined parts of a course, for one that never lets a packet pass.
        const PARTS: usize = 1_000_000;
        let rates = self.rates[side.index()].as_ref();
        for _ in 0..PARTS {
            let (is_out, until) = self.weather.outage(at);
            let shut = rates.map(|rates| rates.stretch(at)).filter(|s| s.value.is_none());
            at = match shut {
                _ if is_out && self.weather.buffers => until,
                // Along a ramp from zero the rate reaches a bit per second soon.
                Some(rising) if rising.slope > 0.0 => {
                    (at + Span((1.0 / rising.slope) as u64 + 1)).min(rising.until)
                }
                Some(shut) => shut.until,
                None => return at,
            };
            if at == Time::NEVER {
                return at;
            }
        }
        Time::NEVER
    }

    /// Handles an arriving packet: during an outage it waits for the end.
    pub fn arrives(&self, now: Time, side: Side, packet: &Packet, out: &mut Out) {
        if self.weather.is_paused(now) {
            out.packet_event(Op::Redirected(Cause::Outage), side, packet);
        }
    }

    /// Handles a frame on the air from `start` to `end`. Returns its arrival time, and the packet if it
    /// arrives.
    pub fn passes(
        &mut self,
        start: Time,
        end: Time,
        side: Side,
        packet: Packet,
    ) -> (Time, Option<Packet>) {
        let at = end + self.weather.delay(end);
        match self.weather.loss(start..end, &mut self.rng[side.index()]) {
            None => (at, Some(packet)),
            Some(cause) => {
                let lost = &mut self.lost[side.index()];
                lost.push(lost.in_order(at), (packet, cause));
                (at, None)
            }
        }
    }

    /// Reports starts and ends of outages, and lost packets.
    pub fn on_wake(&mut self, now: Time, out: &mut Out) {
        while self.turn <= now {
            let (is_out, until) = self.weather.outage(self.turn);
            Side::BOTH.into_iter().for_each(|side| report_turn(side, !is_out, false, out));
            self.turn = until;
        }
        for side in Side::BOTH {
            while let Some((packet, cause)) = self.lost[side.index()].take(now) {
                out.discard(side, packet, cause);
            }
        }
    }

    /// The next deadline.
    pub fn next(&self) -> Time {
        self.lost.iter().map(Pipe::next).fold(self.turn, Time::min)
    }

    /// Number of packets inside.
    pub fn holds(&self) -> usize {
        self.lost.iter().map(Pipe::len).sum()
    }
}
