//! A line whose rate, delay, losses and outages vary over time.
//!
//! The variation is known in advance, as a [`Course`] or as a [`Trace`] of delivery opportunities. So a
//! transmission is computed when it begins, as on a [`Line`](super::Line). A packet in transmission when the
//! rate changes continues at the new rate, since its sent bits are out. A transmission ends when the rate has
//! let pass all bits of the packet since its start.
//!
//! A packet takes the delay at the time when its last bit is sent. No packet overtakes another: when the
//! delay decreases, later packets leave at the earliest together with the last one before them.
//!
//! During an outage either the transmitter pauses and resumes afterwards (`keep`), or it continues and all
//! packets on the line are lost (`drop`), as under a bridge.
//!
//! After that, packets may be subject to netem's impairments such as jitter ([`Impairments`]), with which
//! they may overtake each other.
//!
//! Not modelled: half duplex and medium access. A [`Radio`](super::Radio) may vary as well, from frame to
//! frame.

mod course;
mod direction;
mod distribution;
mod impair;
mod keys;
mod light;
pub mod measured;
mod sky;
mod trace;

use core::ops::Range;

use serde::Serialize;

use crate::event::{Cause, Op};
use crate::machine::{Machine, Out, Side};
use crate::rng::Stream;
use crate::units::{Probability, Rate, Span, Time};
use crate::wire::Packet;

use super::LineConfig;
use super::transmitter::report_turn;
use direction::Direction;

pub use course::{Course, Level, Stretch, Wrong};
pub use distribution::Distribution;
pub use impair::{Impairments, Loss, Order};
pub use keys::{Varying, names_file};
pub use light::Light;
pub use sky::Sky;
pub use trace::{MOST, OPPORTUNITY, Trace, TraceError};

/// A varying line.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct VariedConfig {
    /// The settings of every line. Its rates and its delay are the defaults.
    pub line: LineConfig,
    /// Pacing towards the right.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub right: Option<Pace>,
    /// Pacing towards the left.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left: Option<Pace>,
    /// The propagation delay over time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delays: Option<Course<Span>>,
    /// Loss probability over time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub losses: Option<Course<Probability>>,
    /// Outages: true while the line is out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outages: Option<Course<bool>>,
    /// Treatment of packets in an outage.
    pub outage_packets: OutagePackets,
    /// Further impairments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub impairments: Option<Impairments>,
}

/// Pacing of a direction over time.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Pace {
    /// Rate in bits per second; `None` lets no packet pass.
    Rates(Course<Option<Rate>>),
    /// Opportunities: a fixed number of bytes at given times.
    Trace(Trace),
}

/// Treatment of packets in an outage.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum OutagePackets {
    /// They wait until its end.
    #[default]
    Keep,
    /// Packets on the line are lost.
    Drop,
}

impl VariedConfig {
    /// Whether anything changes over time.
    pub fn varies(&self) -> bool {
        let paced = self.right.is_some() || self.left.is_some();
        paced || self.delays.is_some() || self.losses.is_some() || self.outages.is_some()
    }

    /// The mean rate towards `side` over one period, if it has any rate.
    pub fn mean_rate(&self, side: Side) -> Option<Rate> {
        match super::towards(side, &self.left, &self.right) {
            None => super::towards(side, self.line.rate_left, self.line.rate_right),
            Some(Pace::Rates(rates)) => Rate::from_bps(rates.mean() as u64),
            Some(Pace::Trace(trace)) => trace.mean_rate(),
        }
    }
}

/// Values shared by both directions.
#[derive(Clone, Debug)]
struct Weather {
    delay: Span,
    delays: Option<Course<Span>>,
    losses: Option<Course<Probability>>,
    outages: Option<Course<bool>>,
    buffers: bool,
}

impl Weather {
    /// Delay of a packet sent by `at`.
    fn delay(&self, at: Time) -> Span {
        self.delays.as_ref().map_or(self.delay, |delays| delays.at(at))
    }

    /// Whether the line is out at `at`, and the end of that state.
    fn outage(&self, at: Time) -> (bool, Time) {
        match &self.outages {
            None => (false, Time::NEVER),
            Some(outages) => (outages.at(at), outages.stretch(at).until),
        }
    }

    /// Time of the first outage's report; an outage at the start of the run is reported as well.
    fn first_turn(&self) -> Time {
        match self.outage(Time::ZERO) {
            (true, _) => Time::ZERO,
            (false, until) => until,
        }
    }

    /// Whether the transmitter pauses at `at`.
    fn is_paused(&self, at: Time) -> bool {
        self.buffers && self.outage(at).0
    }

    /// Cause of the loss of a packet sent in `during`, if it is lost.
    fn loss(&self, during: Range<Time>, rng: &mut Stream) -> Option<Cause> {
        if !self.buffers && self.outages.is_some() {
            let (out, until) = self.outage(during.start);
            if out || until < during.end && during.end != Time::NEVER {
                return Some(Cause::Outage);
            }
        }
        let p = self.losses.as_ref()?.at(during.end).get();
        (p > 0.0 && rng.chance(p)).then_some(Cause::FrameLost)
    }
}

/// A varying line.
#[derive(Clone, Debug)]
pub struct Varied {
    weather: Weather,
    /// Start or end of the next outage.
    turn: Time,
    /// Indexed by the side to which packets travel.
    directions: [Direction; 2],
}

impl Varied {
    /// An idle line; `stream` returns the random streams of its parts: losses and queues of each direction.
    pub fn new(config: VariedConfig, stream: impl Fn(&str) -> Stream) -> Varied {
        let directions = Side::BOTH.map(|side| Direction::new(&config, side, &stream));
        let weather = Weather {
            delay: config.line.delay,
            delays: config.delays,
            losses: config.losses,
            outages: config.outages,
            buffers: config.outage_packets == OutagePackets::Keep,
        };
        Varied { turn: weather.first_turn(), weather, directions }
    }

    /// Reports starts and ends of outages, and the interrupted packets.
    fn turns(&mut self, now: Time, out: &mut Out) {
        while self.turn <= now {
            let (is_out, until) = self.weather.outage(self.turn);
            for side in Side::BOTH {
                report_turn(side, !is_out, false, out);
                let interrupted = self.directions[side.index()].in_transmission(self.turn);
                if let Some(packet) = interrupted.filter(|_| is_out && self.weather.buffers) {
                    out.packet_event(Op::Redirected(Cause::Outage), side, packet);
                }
            }
            self.turn = until;
        }
    }
}

impl Machine for Varied {
    fn check(&self) {
        self.directions.iter().for_each(Direction::check);
    }

    fn on_packet(&mut self, now: Time, from: Side, packet: Packet, out: &mut Out) {
        let to = from.other();
        let direction = &mut self.directions[to.index()];
        direction.catch_up(now, to, &self.weather, out);
        if self.weather.is_paused(now) {
            out.packet_event(Op::Redirected(Cause::Outage), to, &packet);
        }
        direction.arrive(now, to, packet, &self.weather, out);
    }

    fn on_wake(&mut self, now: Time, out: &mut Out) {
        for side in Side::BOTH {
            let direction = &mut self.directions[side.index()];
            direction.catch_up(now, side, &self.weather, out);
            direction.deliver(now, side, out);
        }
        self.turns(now, out);
    }

    fn next_wake(&self) -> Option<Time> {
        let [left, right] = &self.directions;
        left.next().min(right.next()).min(self.turn).or_none()
    }

    fn holds(&self) -> usize {
        self.directions.iter().map(Direction::holds).sum()
    }
}
