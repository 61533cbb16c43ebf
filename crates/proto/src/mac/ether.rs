//! Transmissions among stations that all hear each other, and their reception at each station.
//!
//! Every other station hears a transmission one propagation delay later. A station can read it unless a
//! transmission of a third station or its own overlaps with it there (no capture). Channel errors damage a
//! frame only at its receiver; the other stations read it as sent.

use super::Air;
use crate::air::{AirEvent, FrameFate, FrameKind, Station};
use crate::link::frame::Frame;
use crate::units::{Span, Time};

/// A transmission.
#[derive(Clone, Debug)]
pub(super) struct Flight {
    pub from: Station,
    pub to: Station,
    pub kind: FrameKind,
    /// Length in bytes, without coding.
    pub bytes: u32,
    pub start: Time,
    pub airtime: Span,
    /// Time after its end for which its sender claims the channel.
    pub claim: Span,
    /// Whether it answers the previous frame, without contention.
    pub answers: bool,
    /// Whether the channel damages its parts separately, at their receiver.
    pub aggregate: bool,
    /// Frame that it carries, where medium access does not store it. Boxed, because most carry none and all
    /// are moved.
    pub frame: Option<Box<Frame>>,
}

/// A transmission in progress.
#[derive(Clone, Debug)]
struct Wave {
    flight: Flight,
    damaged: bool,
    /// Another sender whose transmission overlaps with it, and whether there are more.
    met: Option<Station>,
    crowd: bool,
    /// Whether its beginning has reached the other stations.
    audible: bool,
}

/// A transmission that has ended at all stations.
#[derive(Clone, Debug)]
pub(super) struct Reception {
    pub flight: Flight,
    /// Whether the channel left it intact at its receiver.
    pub spared: bool,
    met: Option<Station>,
    crowd: bool,
}

/// The air, and the reception state of each station.
#[derive(Clone, Debug)]
pub(super) struct Ether {
    delay: Span,
    waves: Vec<Wave>,
    ears: Vec<Ear>,
    /// When the next wave begins to be heard, and when the first audible one ends. Cached, because they are
    /// read more often than they change.
    begins: Time,
    ends: Time,
}

#[derive(Clone, Copy, Debug)]
struct Ear {
    /// Number of audible transmissions of other stations.
    carriers: u32,
    /// Since when there are none, if the count is zero.
    quiet_since: Time,
    /// End of the station's own last transmission.
    own_until: Time,
    /// Since when its radio is awake; [`Time::NEVER`] while it sleeps.
    awake_since: Time,
}

impl Ether {
    /// Asserts that carriers and transmissions agree.
    pub fn check(&self) {
        let next = |audible| {
            let waves = self.waves.iter().filter(|wave| wave.audible == audible);
            waves.map(|wave| wave.next(self.delay)).min().unwrap_or(Time::NEVER)
        };
        debug_assert_eq!(self.begins, next(false), "the next carrier");
        debug_assert_eq!(self.ends, next(true), "the next end of a carrier");
        for (s, ear) in self.ears.iter().enumerate() {
            let others = self.waves.iter().filter(|w| w.audible && w.flight.from.index() != s);
            debug_assert_eq!(ear.carriers as usize, others.count(), "carriers at station {s}");
        }
        debug_assert!(
            self.waves.iter().all(|wave| wave.flight.airtime > Span::ZERO),
            "a transmission takes time"
        );
        debug_assert!(
            self.waves.iter().all(|wave| wave.met.is_some() || !wave.crowd),
            "a crowd has met a station"
        );
    }

    /// Creates silence among `stations` stations, `delay` apart.
    pub fn new(stations: u8, delay: Span) -> Ether {
        let ear = Ear {
            carriers: 0,
            quiet_since: Time::ZERO,
            own_until: Time::ZERO,
            awake_since: Time::ZERO,
        };
        let ears = vec![ear; usize::from(stations)];
        Ether { delay, waves: Vec::new(), ears, begins: Time::NEVER, ends: Time::NEVER }
    }

    /// Puts `flight` on the air.
    pub fn send(&mut self, flight: Flight, air: &mut dyn Air) {
        let Flight { from, to, kind, bytes, start, airtime, .. } = flight;
        let mut wave = Wave { flight, damaged: false, met: None, crowd: false, audible: false };
        for other in &mut self.waves {
            if other.flight.start + other.flight.airtime > start {
                other.meet(from);
                wave.meet(other.flight.from);
            }
        }
        // For a broadcast each station draws separately.
        let whole = to != Station::ALL && !wave.flight.aggregate;
        wave.damaged = whole && air.damages(from, to, kind, bytes, start, airtime);
        self.ears[from.index()].own_until = start + airtime;
        self.begins = self.begins.min(wave.next(self.delay));
        self.waves.push(wave);
    }

    /// Time of the next audible beginning or end; [`Time::NEVER`] if there is none.
    pub fn next(&self) -> Time {
        self.begins.min(self.ends)
    }

    /// Updates both times after a wave has begun to be heard or has ended.
    fn find_next(&mut self) {
        (self.begins, self.ends) = (Time::NEVER, Time::NEVER);
        for wave in &self.waves {
            let first = if wave.audible { &mut self.ends } else { &mut self.begins };
            *first = wave.next(self.delay).min(*first);
        }
    }

    /// A transmission that has ended at all its receivers.
    #[inline(always)]
    pub fn ended(&mut self, now: Time, air: &mut dyn Air) -> Option<Reception> {
        if self.ends > now { None } else { self.end_first(now, air) }
    }

    fn end_first(&mut self, now: Time, air: &mut dyn Air) -> Option<Reception> {
        let i = self.waves.iter().position(|w| w.audible && w.next(self.delay) <= now)?;
        let Wave { flight, damaged, met, crowd, .. } = self.waves.remove(i);
        self.find_next();
        let reception = Reception { flight, spared: !damaged, met, crowd };
        let Flight { from, to, kind, bytes, airtime, .. } = reception.flight;
        for (s, ear) in self.ears.iter_mut().enumerate() {
            if s != from.index() {
                ear.carriers -= 1;
                ear.quiet_since = now;
            }
        }
        let fate = match reception.met {
            None if to == Station::ALL => FrameFate::Received,
            Some(_) if to == Station::ALL => FrameFate::Collided,
            _ if self.is_asleep_during(&reception, to) => FrameFate::Missed,
            _ if self.is_clear(&reception, to) => FrameFate::of(damaged),
            _ => FrameFate::Collided,
        };
        air.report(AirEvent { station: from, to, kind, bytes, airtime, fate });
        Some(reception)
    }

    /// Whether nothing else was on the air at `station` during the transmission, and the station did not
    /// send.
    pub fn is_clear(&self, reception: &Reception, station: Station) -> bool {
        let collided = reception.crowd || reception.met.is_some_and(|other| other != station);
        !collided && !self.is_deaf(reception, station)
    }

    /// Whether `station` was sending or asleep during the transmission.
    pub fn is_deaf(&self, reception: &Reception, station: Station) -> bool {
        let sent = self.ears[station.index()].own_until > reception.flight.start + self.delay;
        sent || self.is_asleep_during(reception, station)
    }

    fn is_asleep_during(&self, reception: &Reception, station: Station) -> bool {
        self.ears[station.index()].awake_since > reception.flight.start + self.delay
    }

    /// Puts the radio of `station` to sleep.
    pub fn sleep(&mut self, station: usize) {
        self.ears[station].awake_since = Time::NEVER;
    }

    /// Wakes the radio of `station`.
    pub fn wake(&mut self, now: Time, station: usize) {
        self.ears[station].awake_since = now;
    }

    /// Whether the radio of `station` sleeps.
    pub fn is_asleep(&self, station: usize) -> bool {
        self.ears[station].awake_since == Time::NEVER
    }

    /// Returns the sender of a transmission that begins to be heard.
    #[inline(always)]
    pub fn begun(&mut self, now: Time) -> Option<Station> {
        if self.begins > now { None } else { self.begin_first(now) }
    }

    fn begin_first(&mut self, now: Time) -> Option<Station> {
        let delay = self.delay;
        let wave = self.waves.iter_mut().find(|w| !w.audible && w.next(delay) <= now)?;
        wave.audible = true;
        let from = wave.flight.from;
        self.find_next();
        for (s, ear) in self.ears.iter_mut().enumerate() {
            ear.carriers += u32::from(s != from.index());
        }
        Some(from)
    }

    /// Number of other stations' transmissions that `station` hears.
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

    /// When it begins to be heard, or ends.
    fn next(&self, delay: Span) -> Time {
        let until = if self.audible { self.flight.airtime } else { Span::ZERO };
        self.flight.start + until + delay
    }
}

#[cfg(test)]
mod tests {
    use super::super::Outcome;
    use super::*;

    const DELAY: Span = Span::micros(1);

    #[derive(Clone, Default)]
    struct Ears {
        damages: bool,
        queries: u32,
        reports: Vec<AirEvent>,
    }

    impl Air for Ears {
        fn damages(
            &mut self,
            _: Station,
            _: Station,
            _: FrameKind,
            _: u32,
            _: Time,
            _: Span,
        ) -> bool {
            self.queries += 1;
            self.damages
        }

        fn report(&mut self, event: AirEvent) {
            self.reports.push(event);
        }

        fn outcome(&mut self, _: Outcome) {}
    }

    /// A transmission from one station to another, from `start` on for `nanos` nanoseconds.
    fn flight(from: u8, to: Station, start: u64, nanos: u64) -> Flight {
        Flight {
            from: Station(from),
            to,
            kind: FrameKind::Data,
            bytes: 100,
            start: Time(start),
            airtime: Span(nanos),
            claim: Span::ZERO,
            answers: false,
            aggregate: false,
            frame: None,
        }
    }

    /// Fates of the flights among four stations, by sender.
    fn fates(ether: &mut Ether, air: &mut Ears, flights: Vec<Flight>) -> Vec<(u8, FrameFate)> {
        flights.into_iter().for_each(|flight| ether.send(flight, air));
        while let Some(at) = ether.next().or_none() {
            while ether.ended(at, air).is_some() || ether.begun(at).is_some() {}
        }
        let mut fates: Vec<_> = air.reports.iter().map(|e| (e.station.0, e.fate)).collect();
        fates.sort_by_key(|(from, _)| *from);
        fates
    }

    fn alone(flights: Vec<Flight>) -> Vec<(u8, FrameFate)> {
        fates(&mut Ether::new(4, DELAY), &mut Ears::default(), flights)
    }

    use FrameFate::{Collided, Damaged, Missed, Received};

    #[test]
    fn frames_collide_exactly_while_they_overlap() {
        for (second, fate) in [(0, Collided), (99_999, Collided), (100_000, Received)] {
            let flights =
                vec![flight(0, Station(2), 0, 100_000), flight(1, Station(2), second, 100_000)];
            assert_eq!(alone(flights), [(0, fate), (1, fate)], "{second}");
            let all = vec![flight(0, Station::ALL, 0, 100_000), flight(1, Station::ALL, second, 9)];
            assert_eq!(alone(all), [(0, fate), (1, fate)], "broadcasts, {second}");
        }
    }

    /// A station hears its own transmission at once, and that of others a delay later.
    #[test]
    fn a_sending_station_receives_only_after_its_frame_ends() {
        for (nanos, fate) in [(1000, Received), (1001, Collided)] {
            let flights = vec![flight(0, Station(1), 0, 50_000), flight(1, Station(3), 0, nanos)];
            assert_eq!(alone(flights)[0], (0, fate), "{nanos}");
            // With a third transmission nothing is readable in any case.
            let flights = vec![
                flight(0, Station(1), 0, 50_000),
                flight(1, Station(3), 0, nanos),
                flight(2, Station(3), 10_000, 1000),
            ];
            assert_eq!(alone(flights)[0], (0, Collided), "{nanos}, and a third one");
        }
    }

    #[test]
    fn a_radio_that_wakes_within_a_frame_misses_it() {
        for (woken, fate) in [(0, Received), (1000, Received), (1001, Missed)] {
            let mut ether = Ether::new(4, DELAY);
            ether.sleep(1);
            assert!(ether.is_asleep(1) && !ether.is_asleep(2));
            ether.wake(Time(woken), 1);
            assert!(!ether.is_asleep(1));
            let sent = vec![flight(0, Station(1), 0, 5000)];
            assert_eq!(fates(&mut ether, &mut Ears::default(), sent), [(0, fate)], "{woken}");
        }
        let mut ether = Ether::new(4, DELAY);
        ether.sleep(1);
        let sent = vec![flight(0, Station(1), 0, 5000)];
        assert_eq!(fates(&mut ether, &mut Ears::default(), sent), [(0, Missed)], "asleep");
    }

    #[test]
    fn unicasts_query_the_channel_once_and_broadcasts_never() {
        for (to, damages, fate, queries) in [
            (Station(1), true, Damaged, 1),
            (Station(1), false, Received, 1),
            (Station::ALL, true, Received, 0),
        ] {
            let mut air = Ears { damages, ..Ears::default() };
            let sent = vec![flight(0, to, 0, 5000)];
            assert_eq!(fates(&mut Ether::new(4, DELAY), &mut air, sent), [(0, fate)]);
            assert_eq!(air.queries, queries, "{to:?}");
        }
    }

    #[test]
    fn carrier_sense_lags_a_frame_by_the_propagation_delay() {
        let (mut ether, mut air) = (Ether::new(3, DELAY), Ears::default());
        let carriers = |ether: &Ether| [0, 1, 2].map(|s| ether.carriers(s));
        let quiet = |ether: &Ether| [0, 1, 2].map(|s| ether.quiet_since(s).0);
        assert_eq!(ether.next(), Time::NEVER);
        ether.send(flight(1, Station(0), 10_000, 5000), &mut air);
        assert_eq!(ether.next(), Time(11_000));
        assert_eq!(ether.begun(Time(10_999)), None);
        assert_eq!(carriers(&ether), [0, 0, 0]);
        assert_eq!(ether.begun(Time(11_000)), Some(Station(1)));
        assert_eq!(ether.begun(Time(11_000)), None, "it begins once");
        assert_eq!(carriers(&ether), [1, 0, 1]);
        assert_eq!(ether.next(), Time(16_000));
        assert!(ether.ended(Time(15_999), &mut air).is_none());
        assert_eq!(quiet(&ether), [0, 15_000, 0]);
        let reception = ether.ended(Time(16_000), &mut air).unwrap();
        assert!(reception.spared && ether.is_clear(&reception, Station(2)));
        assert_eq!(carriers(&ether), [0, 0, 0]);
        assert_eq!(quiet(&ether), [16_000, 15_000, 16_000]);
        assert_eq!(ether.next(), Time::NEVER);
    }
}
