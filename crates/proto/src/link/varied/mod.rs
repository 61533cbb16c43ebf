//! A line whose rate, delay, losses and outages vary over time.
//!
//! What varies is known in advance, as a [`Course`] or as a [`Trace`] of delivery opportunities. So a transmission is
//! reckoned when it begins, as on a [`Line`](super::Line): a packet under way when the rate changes goes on at the new
//! rate from that moment on, since the bits that are out are out. The end of a transmission is where the bits that the
//! rate has let pass since its beginning are those of the packet.
//!
//! A packet takes the delay that holds when its last bit is sent. No packet overtakes another one: where the delay
//! falls, those behind come out together with the last one before them, at the earliest.
//!
//! In an outage either the transmitter stands still and goes on where it stopped (`keep`), or it goes on and all that
//! is on the line meanwhile is lost (`drop`), as under a bridge.
//!
//! Behind all that packets may suffer what netem does to them, jitter and the like ([`Impairments`]); those may
//! overtake each other.
//!
//! Not modelled: half duplex and medium access. A [`Radio`](super::Radio) may vary as well, from frame to frame.

mod course;
mod direction;
mod distribution;
mod impair;
mod keys;
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
use super::transmitter::tell_turn;
use direction::Direction;

pub use course::{Course, Level, Stretch, Wrong};
pub use distribution::Distribution;
pub use impair::{Impairments, Loss, Order};
pub use keys::Varying;
pub(in crate::link) use sky::Sky;
pub use trace::{OPPORTUNITY, Trace, TraceError};

/// A line that varies.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct VariedConfig {
    /// What it has in common with every line. Its rates and its delay hold where nothing else is said.
    pub line: LineConfig,
    /// How fast it is towards the right.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub right: Option<Pace>,
    /// How fast it is towards the left.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left: Option<Pace>,
    /// The propagation delay over time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delays: Option<Course<Span>>,
    /// The probability over time that a packet is lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub losses: Option<Course<Probability>>,
    /// When it is out: true at those times.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outages: Option<Course<bool>>,
    /// What becomes of packets in an outage.
    pub outage_packets: OutagePackets,
    /// What else happens to packets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub impairments: Option<Impairments>,
}

/// How fast a direction is over time.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Pace {
    /// So many bits per second; `None` lets nothing pass.
    Rates(Course<Option<Rate>>),
    /// At given times so many bytes at once.
    Trace(Trace),
}

/// What becomes of packets in an outage.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum OutagePackets {
    /// They wait until it is over.
    #[default]
    Keep,
    /// What is on the line is lost.
    Drop,
}

impl VariedConfig {
    /// Whether anything changes with time.
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

/// What both directions share.
#[derive(Clone, Debug)]
struct Weather {
    delay: Span,
    delays: Option<Course<Span>>,
    losses: Option<Course<Probability>>,
    outages: Option<Course<bool>>,
    kept: bool,
}

impl Weather {
    /// The delay of what has been sent by `at`.
    fn delay(&self, at: Time) -> Span {
        self.delays.as_ref().map_or(self.delay, |delays| delays.at(at))
    }

    /// Whether the line is out at `at`, and until when that holds.
    fn outage(&self, at: Time) -> (bool, Time) {
        match &self.outages {
            None => (false, Time::NEVER),
            Some(outages) => (outages.at(at), outages.stretch(at).until),
        }
    }

    /// When the first outage is told; one that begins with the run is told as well.
    fn first_turn(&self) -> Time {
        match self.outage(Time::ZERO) {
            (true, _) => Time::ZERO,
            (false, until) => until,
        }
    }

    /// Whether the transmitter stands still at `at`.
    fn stands_still(&self, at: Time) -> bool {
        self.kept && self.outage(at).0
    }

    /// Why a packet is lost that is sent in `during`, if it is.
    fn loss(&self, during: Range<Time>, chance: &mut Stream) -> Option<Cause> {
        if !self.kept && self.outages.is_some() {
            let (out, until) = self.outage(during.start);
            if out || until < during.end && during.end != Time::NEVER {
                return Some(Cause::Outage);
            }
        }
        let p = self.losses.as_ref()?.at(during.end).get();
        (p > 0.0 && chance.chance(p)).then_some(Cause::FrameLost)
    }
}

/// A line that varies.
#[derive(Clone, Debug)]
pub struct Varied {
    weather: Weather,
    /// When the next outage begins or ends.
    turn: Time,
    /// By the side that packets travel to.
    directions: [Direction; 2],
}

impl Varied {
    /// An idle line; `stream` gives the random draws of its parts: losses and queues of each direction.
    pub fn new(config: VariedConfig, stream: impl Fn(&str) -> Stream) -> Varied {
        let directions = Side::BOTH.map(|side| Direction::new(&config, side, &stream));
        let weather = Weather {
            delay: config.line.delay,
            delays: config.delays,
            losses: config.losses,
            outages: config.outages,
            kept: config.outage_packets == OutagePackets::Keep,
        };
        Varied { turn: weather.first_turn(), weather, directions }
    }

    /// Tells outages that begin or end, and which packets they interrupt.
    fn turns(&mut self, now: Time, out: &mut Out) {
        while self.turn <= now {
            let (is_out, until) = self.weather.outage(self.turn);
            for side in Side::BOTH {
                tell_turn(side, !is_out, false, out);
                let interrupted = self.directions[side.index()].in_transmission(self.turn);
                if let Some(packet) = interrupted.filter(|_| is_out && self.weather.kept) {
                    out.packet_event(Op::Redirected(Cause::Outage), side, packet);
                }
            }
            self.turn = until;
        }
    }
}

impl Machine for Varied {
    fn on_packet(&mut self, now: Time, from: Side, packet: Packet, out: &mut Out) {
        let to = from.other();
        let direction = &mut self.directions[to.index()];
        direction.catch_up(now, to, &self.weather, out);
        if self.weather.stands_still(now) {
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
