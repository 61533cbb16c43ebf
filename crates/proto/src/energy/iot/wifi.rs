//! Wi-Fi stations that stay associated: with target wake time (TWT), or by receiving every n-th beacon.
//!
//! With TWT (IEEE 802.11ax, individual agreements) station and access point agree on service periods; in
//! between the station receives nothing, not even beacons. A report does not wait for the next service
//! period: the station wakes up and sends.
//!
//! Not modelled: association, the access point's handling of idle stations, TWT setup, retransmitted frames,
//! DHCP and ARP, and broadcasts.

use super::{Activity, Part, States, Stretch, in_turn, milliamperes};
use crate::units::{Power, Span, Time};

/// How a station stays reachable.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Keeps {
    /// It wakes up at regular intervals for a fixed time.
    WakeTime {
        /// From one service period to the next.
        every: Span,
        /// Time awake in each service period.
        awake: Span,
    },
    /// It receives beacons; its mean power in total.
    Beacons(Power),
}

/// A station.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Wifi {
    /// Name of the preset.
    pub name: &'static str,
    /// Short description, for lists.
    pub about: &'static str,
    /// Source of its figures.
    pub source: &'static str,
    /// Power while sending.
    pub send: Power,
    /// Power while awake.
    pub listen: Power,
    /// Power while asleep.
    pub sleep: Power,
    /// Time to wake up.
    pub wake: Span,
    /// Time that it stays awake after the last packet.
    pub linger: Span,
    /// How it stays reachable.
    pub keeps: Keeps,
}

/// Stations with published figures.
pub const WIFIS: [Wifi; 2] = [
    Wifi {
        name: "wifi-twt",
        about: "Wi-Fi 6 station (nRF7002) with target wake time, awake for 10 ms each minute",
        source: "sleep of 15 uA: nRF Connect SDK, \"Operating in power save modes\"; 60 and 191 mA awake: nRF7002 Product \
                 Specification, from memory; times awake: assumed",
        send: milliamperes(191.0, 3.6),
        listen: milliamperes(60.0, 3.6),
        sleep: milliamperes(0.015, 3.6),
        wake: Span::millis(5),
        linger: Span::millis(10),
        keeps: Keeps::WakeTime { every: Span::secs(60), awake: Span::millis(10) },
    },
    Wifi {
        name: "wifi-dtim10",
        about: "Wi-Fi station (ESP32-C3) that hears each tenth beacon",
        source: "0.31 mA on average: ESP-IDF, \"Introduction to low power mode in Wi-Fi scenarios\" (auto light-sleep, \
                 DTIM10); awake: the preset `esp32`",
        send: milliamperes(240.0, 3.3),
        listen: milliamperes(97.5, 3.3),
        sleep: milliamperes(0.31, 3.3),
        wake: Span::millis(5),
        linger: Span::millis(100),
        keeps: Keeps::Beacons(milliamperes(0.31, 3.3)),
    },
];

impl Wifi {
    /// States of the station from one report to the next, `period` later; `activities` are the packets of the
    /// report. The station stays awake between them.
    pub fn states(&self, activities: &[Activity], period: Span) -> Vec<Stretch> {
        let mut states = States::default();
        states.add(Part::Connect, self.wake, self.listen);
        let mut until = Time::ZERO;
        for activity in in_turn(activities) {
            states.add(Part::Listen, activity.from.since(until), self.listen);
            let (part, power) =
                if activity.sends { (Part::Send, self.send) } else { (Part::Listen, self.listen) };
            states.add(part, activity.until.since(activity.from), power);
            until = activity.until;
        }
        let left = period.saturating_sub(states.span());
        states.add(Part::Tail, left.min(self.linger), self.listen);
        let left = left.saturating_sub(self.linger);
        match self.keeps {
            Keeps::Beacons(power) => states.add(Part::Reachable, left, power),
            Keeps::WakeTime { every, awake } => {
                let times = left.0 / every.0;
                let awake = Span(times * (awake + self.wake).0).0.min(left.0);
                states.add(Part::Reachable, Span(awake), self.listen);
                states.add(Part::Sleep, left.saturating_sub(Span(awake)), self.sleep);
            }
        }
        states.0
    }
}

#[cfg(test)]
mod tests {
    use super::super::Joules;
    use super::*;

    #[test]
    fn a_station_meets_its_access_point_and_sleeps_in_between() {
        // 1 W awake, 3 W to send, 1 mW asleep; 1 s to wake up, 2 s after packets, 3 s each 100 s.
        let watts = |w: f64| milliamperes(w * 1e3, 1.0);
        let station = Wifi {
            send: watts(3.0),
            listen: watts(1.0),
            sleep: watts(0.001),
            wake: Span::secs(1),
            linger: Span::secs(2),
            keeps: Keeps::WakeTime { every: Span::secs(100), awake: Span::secs(3) },
            ..WIFIS[0]
        };
        let at = |from, until, sends| Activity {
            from: Time::ZERO + Span::secs(from),
            until: Time::ZERO + Span::secs(until),
            sends,
        };
        let states = station.states(&[at(0, 1, true), at(4, 5, false)], Span::secs(1008));
        let joules = Joules::of(&states);
        // Awake: 1 s, then 1 s of sending, 3 s of waiting, 1 s of receiving, 2 s after that. The remaining
        // 1000 s have ten service periods of 1 + 3 s and 960 s asleep.
        let expected = [1.0, 3.0, 4.0, 2.0, 40.0, 0.96];
        for (part, value) in Part::ALL.into_iter().zip(expected) {
            assert!((joules.part(part) - value).abs() < 1e-9, "{}: {joules:?}", part.name());
        }
    }

    #[test]
    fn beacons_are_paid_for_by_their_mean() {
        let states = WIFIS[1].states(&[], Span::secs(3600));
        let joules = Joules::of(&states);
        // 0.31 mA x 3.3 V for an hour less 105 ms.
        assert!((joules.part(Part::Reachable) - 3.6827).abs() < 1e-3, "{joules:?}");
        assert_eq!(joules.part(Part::Sleep), 0.0);
    }
}
