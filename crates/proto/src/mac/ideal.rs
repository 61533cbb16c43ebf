//! The ideal channel: no collisions, and access costs only each frame's overhead.
//!
//! In half duplex one frame is on the air at a time, and stations with frames waiting take turns, an answer
//! first. In full duplex each station has a separate channel.

use super::{Access, Air, Mac, Outcome, side_of};
use super::{Chosen, MacConfig, Read};
use crate::air::{AirEvent, FrameFate, Station};
use crate::describe::{Descriptor, Kind, System};
use crate::link::RadioConfig;
use crate::link::fec::Coding;
use crate::link::frame::{Frame, SHORT_ANSWER, Timing};
use crate::link::transmitter::Pipe;
use crate::link::varied::Sky;
use crate::units::{Rate, Span, Time};

pub(super) const WORDS: &[Descriptor<Read>] = &[Descriptor {
    word: "ideal",
    system: System::new(
        Kind::Mac,
        "ideal",
        "path: mac = \"ideal\"",
        "stations with frames waiting take turns, nothing collides",
        "bakshi96 3.1",
    )
    .tier(System::UNLISTED),
    read: |_| Chosen::Hop(MacConfig::Ideal),
}];

/// State of the air, and the frames that wait for it.
#[derive(Clone, Debug)]
pub struct Ideal {
    rate: Rate,
    delay: Span,
    overhead: Span,
    half_duplex: bool,
    coding: Coding,
    stations: Vec<Sender>,
    /// Frames that have left and not arrived, each with whether it is intact.
    flying: Pipe<(Frame, bool)>,
    /// The station whose turn it is when several have frames waiting.
    turn: usize,
    /// Varying values, if there are any.
    sky: Option<Box<Sky>>,
}

/// A station's transmitter and its waiting frame.
#[derive(Clone, Debug, Default)]
struct Sender {
    /// With its access, and since when.
    waiting: Option<(Frame, Access, Time)>,
    /// Receiver of the frame on the air.
    sending: Option<Station>,
    /// When the station's medium becomes free; in half duplex those of the others count as well.
    free_at: Time,
}

impl Ideal {
    /// Creates a silent medium for `stations` stations, with `coding` applied to frames.
    pub fn new(config: &RadioConfig, stations: u8, coding: Coding) -> Ideal {
        Ideal {
            rate: config.rate,
            delay: config.delay,
            overhead: config.overhead,
            half_duplex: config.half_duplex,
            coding,
            stations: (0..stations).map(|_| Sender::default()).collect(),
            flying: Pipe::default(),
            turn: 0,
            sky: None,
        }
    }

    fn free_at(&self, station: usize) -> Time {
        if self.half_duplex {
            self.stations.iter().map(|s| s.free_at).max().unwrap_or(Time::ZERO)
        } else {
            self.stations[station].free_at
        }
    }

    /// Time from which a waiting frame of station `i` may be sent.
    fn opens(&self, i: usize) -> Time {
        let free = self.free_at(i);
        match (&self.sky, &self.stations[i].waiting) {
            (Some(sky), Some((_, _, since))) => sky.opens(free.max(*since), side_of(i)),
            _ => free,
        }
    }

    fn airtime(&self, bytes: u32) -> Span {
        self.overhead + self.rate.transmit(self.coding.on_air(bytes).into())
    }

    /// Puts all frames on the air that may be sent at `now`.
    fn start(&mut self, now: Time, air: &mut dyn Air) {
        let n = self.stations.len();
        let urgent = |s: &Sender| matches!(s.waiting, Some((_, Access::Reply, _)));
        let answers = (0..n).filter(|i| urgent(&self.stations[*i]));
        let order: Vec<usize> = answers.chain((0..n).map(|k| (self.turn + k) % n)).collect();
        for i in order {
            if self.opens(i) > now || self.stations[i].sending.is_some() {
                continue;
            }
            if let Some((frame, ..)) = self.stations[i].waiting.take() {
                self.transmit(now, i, frame, air);
                self.turn = (i + 1) % n;
            }
        }
    }

    fn transmit(&mut self, start: Time, i: usize, frame: Frame, air: &mut dyn Air) {
        let (station, to) = (frame.from, frame.to);
        let varied = self
            .sky
            .as_ref()
            .and_then(|sky| sky.airtime(start, side_of(i), self.coding.on_air(frame.bytes)));
        let airtime = varied.unwrap_or_else(|| self.airtime(frame.bytes));
        self.stations[i].free_at = start + airtime;
        self.stations[i].sending = Some(to);
        air.outcome(Outcome::Trans { station, to, airtime });
        let hold = airtime.saturating_sub(self.airtime(SHORT_ANSWER));
        if self.half_duplex && hold > Span::ZERO {
            for other in (0..self.stations.len()).filter(|other| *other != i) {
                air.outcome(Outcome::Wait { station: Station(other as u8), from: station, hold });
            }
        }
        let damaged = air.damages(station, to, frame.kind(), frame.bytes, start, airtime);
        air.report(AirEvent {
            station,
            to,
            kind: frame.kind(),
            bytes: frame.bytes,
            airtime,
            fate: FrameFate::of(damaged),
        });
        let end = start + airtime;
        let delay = self.sky.as_ref().map_or(self.delay, |sky| sky.delay(end));
        self.flying.insert(end + delay, (frame, !damaged));
    }
}

impl Mac for Ideal {
    fn check(&self) {
        debug_assert!(self.turn < self.stations.len(), "turn of station {}", self.turn);
        debug_assert!(
            self.stations.iter().flat_map(|s| s.sending).all(|to| to.index() < self.stations.len()),
            "a frame to an unknown station"
        );
    }

    fn request(&mut self, now: Time, frame: Frame, access: Access, air: &mut dyn Air) {
        let i = frame.from.index();
        self.stations[i].waiting = Some((frame, access, now));
        self.start(now, air);
    }

    fn on_wake(&mut self, now: Time, air: &mut dyn Air) {
        for i in 0..self.stations.len() {
            let sender = &mut self.stations[i];
            if sender.free_at <= now
                && let Some(to) = sender.sending.take()
            {
                air.outcome(Outcome::Done { station: Station(i as u8), to, acked: None });
            }
        }
        while let Some((frame, intact)) = self.flying.take(now) {
            air.outcome(Outcome::Arrived { frame, intact, may_reply: true });
        }
        self.start(now, air);
    }

    fn next_wake(&self) -> Option<Time> {
        let mut at = self.flying.next();
        for (i, sender) in self.stations.iter().enumerate() {
            if sender.sending.is_some() {
                at = at.min(sender.free_at);
            }
            if sender.waiting.is_some() {
                at = at.min(self.opens(i));
            }
        }
        at.or_none()
    }

    fn is_idle(&self, station: Station) -> bool {
        let sender = &self.stations[station.index()];
        sender.waiting.is_none() && sender.sending.is_none()
    }

    fn waiting(&mut self, station: Station) -> Option<&mut Frame> {
        self.stations[station.index()].waiting.as_mut().map(|(frame, ..)| frame)
    }

    fn hurry(&mut self, now: Time, station: Station, air: &mut dyn Air) {
        if let Some((_, access, _)) = &mut self.stations[station.index()].waiting {
            *access = Access::Reply;
        }
        self.start(now, air);
    }

    fn vary(&mut self, sky: Sky) {
        self.sky = Some(Box::new(sky));
    }

    fn timing(&self) -> Timing {
        Timing {
            byte_ps: libm::ceil(8e12 * self.coding.factor() / self.rate.bps() as f64) as u64,
            frame: self.overhead,
            propagation: self.delay,
            turnaround: Span::ZERO,
            processing: Span::ZERO,
            turn: Span::ZERO,
        }
    }
}
