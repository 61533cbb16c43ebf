//! What is on the air among stations that all hear each other, and what each of them hears of it.
//!
//! A transmission is heard by every other station one propagation delay later. A station reads it unless, at that
//! station, a third one's transmission or its own overlaps with it (no capture). The channel's errors harm a frame at
//! the station that it is for; the others read it as it was sent.

use super::Air;
use crate::air::{AirEvent, FrameFate, FrameKind, Station};
use crate::link::frame::Frame;
use crate::units::{Span, Time};

/// A transmission.
#[derive(Debug)]
pub(super) struct Flight {
    pub from: Station,
    pub to: Station,
    pub kind: FrameKind,
    /// Length in bytes, without coding.
    pub bytes: u32,
    pub start: Time,
    pub airtime: Span,
    /// For how long after its end its sender claims the channel.
    pub claim: Span,
    /// Whether it answers the frame before it, without contention.
    pub answers: bool,
    /// What it carries, where medium access does not keep it. Boxed: most carry nothing, and all are moved.
    pub frame: Option<Box<Frame>>,
}

/// A transmission under way.
#[derive(Debug)]
struct Wave {
    flight: Flight,
    damaged: bool,
    /// Another sender whose transmission overlaps with it, and whether there are more.
    met: Option<Station>,
    crowd: bool,
    /// Whether its beginning has been heard.
    heard: bool,
}

/// A transmission that is over, everywhere.
#[derive(Debug)]
pub(super) struct Heard {
    pub flight: Flight,
    /// Whether the channel spared it, at the station that it is for.
    pub spared: bool,
    met: Option<Station>,
    crowd: bool,
}

/// The air, and each station's ear.
#[derive(Debug)]
pub(super) struct Ether {
    delay: Span,
    waves: Vec<Wave>,
    ears: Vec<Ear>,
}

#[derive(Clone, Copy, Debug)]
struct Ear {
    /// How many transmissions of others are heard.
    carriers: u32,
    /// Since when there are none, if there are none.
    quiet_since: Time,
    /// When the station's own last transmission ends.
    own_until: Time,
    /// Since when its radio is awake; never, while it sleeps.
    awake_since: Time,
}

impl Ether {
    /// Silence among `stations` stations, `delay` apart.
    pub fn new(stations: u8, delay: Span) -> Ether {
        let ear = Ear {
            carriers: 0,
            quiet_since: Time::ZERO,
            own_until: Time::ZERO,
            awake_since: Time::ZERO,
        };
        Ether { delay, waves: Vec::new(), ears: vec![ear; usize::from(stations)] }
    }

    /// Puts `flight` on the air.
    pub fn send(&mut self, flight: Flight, air: &mut dyn Air) {
        let Flight { from, to, kind, bytes, start, airtime, .. } = flight;
        let mut wave = Wave { flight, damaged: false, met: None, crowd: false, heard: false };
        for other in &mut self.waves {
            if other.flight.start + other.flight.airtime > start {
                other.meet(from);
                wave.meet(other.flight.from);
            }
        }
        // Of a broadcast, each station asks for itself.
        wave.damaged = to != Station::ALL && air.damages(from, to, kind, bytes, start, airtime);
        self.ears[from.index()].own_until = start + airtime;
        self.waves.push(wave);
    }

    /// When something is to be heard next.
    pub fn next(&self) -> Option<Time> {
        self.waves.iter().map(|wave| wave.next(self.delay)).min()
    }

    /// A transmission that has ended for all who hear it.
    pub fn ended(&mut self, now: Time, air: &mut dyn Air) -> Option<Heard> {
        let i = self.waves.iter().position(|w| w.heard && w.next(self.delay) <= now)?;
        let Wave { flight, damaged, met, crowd, .. } = self.waves.remove(i);
        let heard = Heard { flight, spared: !damaged, met, crowd };
        let Flight { from, to, kind, bytes, airtime, .. } = heard.flight;
        for (s, ear) in self.ears.iter_mut().enumerate() {
            if s != from.index() {
                ear.carriers -= 1;
                ear.quiet_since = now;
            }
        }
        let fate = match heard.met {
            None if to == Station::ALL => FrameFate::Received,
            Some(_) if to == Station::ALL => FrameFate::Collided,
            _ if self.is_asleep_during(&heard, to) => FrameFate::Missed,
            _ if self.is_clear(&heard, to) => FrameFate::of(damaged),
            _ => FrameFate::Collided,
        };
        air.report(AirEvent { station: from, to, kind, bytes, airtime, fate });
        Some(heard)
    }

    /// Whether nothing else was on the air at `station` while it heard this, and it did not send itself.
    pub fn is_clear(&self, heard: &Heard, station: Station) -> bool {
        let collided = heard.crowd || heard.met.is_some_and(|other| other != station);
        !collided && !self.is_deaf(heard, station)
    }

    /// Whether `station` was sending itself while this came, or its radio slept.
    pub fn is_deaf(&self, heard: &Heard, station: Station) -> bool {
        let sent = self.ears[station.index()].own_until > heard.flight.start + self.delay;
        sent || self.is_asleep_during(heard, station)
    }

    fn is_asleep_during(&self, heard: &Heard, station: Station) -> bool {
        self.ears[station.index()].awake_since > heard.flight.start + self.delay
    }

    /// The radio of `station` goes to sleep.
    pub fn sleep(&mut self, station: usize) {
        self.ears[station].awake_since = Time::NEVER;
    }

    /// The radio of `station` wakes up.
    pub fn wake(&mut self, now: Time, station: usize) {
        self.ears[station].awake_since = now;
    }

    /// Whether the radio of `station` sleeps.
    pub fn is_asleep(&self, station: usize) -> bool {
        self.ears[station].awake_since == Time::NEVER
    }

    /// A transmission begins to be heard: its sender.
    pub fn begun(&mut self, now: Time) -> Option<Station> {
        let delay = self.delay;
        let wave = self.waves.iter_mut().find(|w| !w.heard && w.next(delay) <= now)?;
        wave.heard = true;
        let from = wave.flight.from;
        for (s, ear) in self.ears.iter_mut().enumerate() {
            ear.carriers += u32::from(s != from.index());
        }
        Some(from)
    }

    /// How many transmissions of others `station` hears.
    pub fn carriers(&self, station: usize) -> u32 {
        self.ears[station].carriers
    }

    /// Since when `station` has neither heard anything nor sent, given that it hears nothing now.
    pub fn quiet_since(&self, station: usize) -> Time {
        let ear = &self.ears[station];
        ear.quiet_since.max(ear.own_until)
    }
}

impl Wave {
    fn meet(&mut self, other: Station) {
        self.crowd |= self.met.is_some_and(|met| met != other);
        self.met = Some(other);
    }

    /// When it begins to be heard, or is over.
    fn next(&self, delay: Span) -> Time {
        let until = if self.heard { self.flight.airtime } else { Span::ZERO };
        self.flight.start + until + delay
    }
}
