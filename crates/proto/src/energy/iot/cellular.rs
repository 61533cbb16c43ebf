//! Modems of LTE-M and NB-IoT.
//!
//! A report wakes the modem, which connects (`RRC connected`). After the last packet it listens continuously
//! for a while and then periodically (connected DRX), until the network releases it. The network defines this
//! inactivity timer. Then the modem can be paged during the active timer (T3324, in idle DRX). Finally it
//! rests as negotiated: in power saving mode (PSM), in which it is unreachable, or in DRX or extended DRX. A
//! device that announces that no more data follows (release assistance, RAI) is released at once.
//!
//! Not modelled: attaching to the network, tracking area updates for reports rarer than the network's timer
//! T3412, changes of cells, and packets for a resting modem.

use super::super::presets::joules;
use super::{Activity, Part, States, Stretch, in_turn, mean_power, milliamperes};
use crate::units::{Energy, Power, Span, Time};

/// How a modem rests between reports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rest {
    /// It listens for a page in each cycle, from 0.32 s to 2.56 s.
    Drx(Span),
    /// Extended DRX: a cycle from 5.12 s to hours.
    Edrx(Span),
    /// It sleeps and is unreachable until its next report.
    Psm,
}

/// Timers that networks set and devices request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timers {
    /// Time from the last packet until the network releases the connection.
    pub inactivity: Span,
    /// Part of the inactivity time in which the modem listens continuously.
    pub attentive: Span,
    /// Cycle of connected DRX after that.
    pub connected_drx: Span,
    /// Time after a release in which the modem can be paged (T3324).
    pub active: Span,
    /// Paging cycle in that time.
    pub idle_drx: Span,
    /// How the modem rests.
    pub rest: Rest,
    /// Whether the device announces the end of its data and is released at once (RAI).
    pub release_assistance: bool,
}

/// Consumption and timers of a modem.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Cellular {
    /// Name of the preset.
    pub name: &'static str,
    /// Short description, for lists.
    pub about: &'static str,
    /// Source of its figures.
    pub source: &'static str,
    /// Energy to wake up, connect and be released.
    pub connect: Energy,
    /// Time to wake up, connect and be released.
    pub connect_span: Span,
    /// Mean power over subframes while sending.
    pub send: Power,
    /// Power while receiving or listening continuously.
    pub listen: Power,
    /// Energy of one DRX occasion: waking up, listening, falling asleep.
    pub occasion: Energy,
    /// Power while asleep.
    pub sleep: Power,
    /// Its timers.
    pub timers: Timers,
}

const VOLTS: f64 = 3.7;
const SLEEP: Power = milliamperes(0.0027, VOLTS);

/// Usual timers of networks. A connection lasts 10 s after the last packet (5 to 60 s: nRF Connect SDK,
/// "Power saving mode"; boaks/zephyr-coaps-client logged 10.6 s with Deutsche Telekom).
const TIMERS: Timers = Timers {
    inactivity: Span::secs(10),
    attentive: Span::millis(200),
    connected_drx: Span::millis(320),
    active: Span::secs(8),
    idle_drx: Span::millis(1280),
    rest: Rest::Psm,
    release_assistance: false,
};

/// Modems with published figures. All are those of one chip at 3.7 V, so that comparisons concern
/// technologies, not chips.
///
/// `occasion` follows from the mean current of extended DRX with one occasion in 81.92 s, less that of sleep: (18 - 2.7) uA
/// x 81.92 s for LTE-M and (37 - 2.7) uA x 81.92 s for NB-IoT. A cycle of connected DRX is charged as one of idle DRX.
pub const CELLULARS: [Cellular; 3] = [
    Cellular {
        name: "lte-m",
        about: "LTE-M modem (nRF9160), 23 dBm",
        source: "Nordic Semiconductor, nRF9160 Product Specification, modem current consumption",
        // PSM TAU event, Cat-M1: 105 mJ in 1.5 s.
        connect: joules(0.105),
        connect_span: Span::millis(1500),
        // Uplink of 180 kbit/s at 23 dBm: 100 mA; at 0 dBm 45 mA, which is charged as listening.
        send: milliamperes(100.0, VOLTS),
        listen: milliamperes(45.0, VOLTS),
        occasion: joules((18e-6 - 2.7e-6) * 81.92 * VOLTS),
        sleep: SLEEP,
        timers: TIMERS,
    },
    Cellular {
        name: "nb-iot",
        about: "NB-IoT modem (nRF9160), 10 dBm: good coverage",
        source: "nRF9160 Product Specification; phases of a connection: Nordic's Online Power Profiler, as quoted in \
                 lkrzak/ijet2023",
        // Network sync, SIM, RRC setup, TAU, RRC release: 74.46 ms x 16.709 mA + 483 ms x 6.093 mA + 1080.9 ms x 36.294 mA
        // + 527.9 ms x 17.523 mA = 52.67 mC.
        connect: joules(0.05267 * VOLTS),
        connect_span: Span::millis(2166),
        // 15 kHz, one carrier, a third of the time each sent and received: 40 mA at 10 dBm, 35 mA at 0 dBm.
        send: milliamperes(40.0, VOLTS),
        listen: milliamperes(35.0, VOLTS),
        occasion: joules((37e-6 - 2.7e-6) * 81.92 * VOLTS),
        sleep: SLEEP,
        timers: Timers {
            connected_drx: Span::millis(2048),
            idle_drx: Span::millis(2560),
            ..TIMERS
        },
    },
    Cellular {
        name: "nb-iot-edge",
        about: "NB-IoT modem (nRF9160), 23 dBm: edge of the cell",
        source: "nRF9160 Product Specification; peak current: Nordic white paper nWP-034",
        // PSM TAU event, Cat-NB1, 23 dBm: 550 mJ in 2.7 s, without repetitions.
        connect: joules(0.55),
        connect_span: Span::millis(2700),
        // Repetitions keep the amplifier on for as long as a packet takes: the peak of about 300 mA.
        send: milliamperes(300.0, VOLTS),
        listen: milliamperes(35.0, VOLTS),
        occasion: joules((37e-6 - 2.7e-6) * 81.92 * VOLTS),
        sleep: SLEEP,
        timers: Timers {
            connected_drx: Span::millis(2048),
            idle_drx: Span::millis(2560),
            ..TIMERS
        },
    },
];

impl Cellular {
    /// States of the modem from one report to the next, `period` later; `activities` are the packets of the
    /// report. A long gap between two packets can release the modem, which then connects again.
    pub fn states(&self, activities: &[Activity], period: Span) -> Vec<Stretch> {
        let mut states = States::default();
        self.connect(&mut states);
        let mut until = Time::ZERO;
        for activity in in_turn(activities) {
            if self.pause(&mut states, activity.from.since(until), false) {
                self.connect(&mut states);
            }
            let (part, power) =
                if activity.sends { (Part::Send, self.send) } else { (Part::Listen, self.listen) };
            states.add(part, activity.until.since(activity.from), power);
            until = activity.until;
        }
        let rest = period.saturating_sub(states.span());
        self.pause(&mut states, rest, true);
        states.0
    }

    fn connect(&self, states: &mut States) {
        let power = mean_power(self.connect, self.connect_span);
        states.add(Part::Connect, self.connect_span, power);
    }

    /// Adds an idle `span` and returns whether the modem was released in that time. `over` means that no more
    /// data follows.
    fn pause(&self, states: &mut States, span: Span, over: bool) -> bool {
        let timers = &self.timers;
        let inactivity =
            if over && timers.release_assistance { Span::ZERO } else { timers.inactivity };
        let attentive = timers.attentive.min(inactivity);
        let (rest_part, rest_power) = match timers.rest {
            Rest::Psm => (Part::Sleep, self.sleep),
            Rest::Drx(cycle) | Rest::Edrx(cycle) => (Part::Reachable, self.cycle(cycle)),
        };
        let phases = [
            (attentive, Part::Listen, self.listen),
            (inactivity.saturating_sub(attentive), Part::Tail, self.cycle(timers.connected_drx)),
            (timers.active, Part::Reachable, self.cycle(timers.idle_drx)),
            (span, rest_part, rest_power),
        ];
        let mut left = span;
        for (most, part, power) in phases {
            states.add(part, left.min(most), power);
            left = left.saturating_sub(most);
        }
        span > inactivity
    }

    /// Mean power of a modem that wakes up once in each `cycle`.
    pub fn cycle(&self, cycle: Span) -> Power {
        self.sleep + mean_power(self.occasion, cycle)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Joules;
    use super::*;

    /// A modem for mental arithmetic: 1 J in 2 s to connect, sends at 2 W, listens at 1 W, 0.1 J per
    /// occasion, 0 W asleep. The connection lasts 10 s: 1 s of listening, then a cycle of 1 s. It is paged
    /// each 2 s for 8 s.
    fn modem() -> Cellular {
        Cellular {
            name: "round",
            about: "",
            source: "",
            connect: joules(1.0),
            connect_span: Span::secs(2),
            send: milliamperes(2000.0, 1.0),
            listen: milliamperes(1000.0, 1.0),
            occasion: joules(0.1),
            sleep: Power::ZERO,
            timers: Timers {
                attentive: Span::secs(1),
                connected_drx: Span::secs(1),
                idle_drx: Span::secs(2),
                ..TIMERS
            },
        }
    }

    fn at(from: u64, until: u64, sends: bool) -> Activity {
        Activity {
            from: Time::ZERO + Span::secs(from),
            until: Time::ZERO + Span::secs(until),
            sends,
        }
    }

    fn close(joules: &Joules, expected: [f64; 6]) {
        for (part, value) in Part::ALL.into_iter().zip(expected) {
            let got = joules.part(part);
            assert!((got - value).abs() < 1e-9, "{}: {got}, not {value}", part.name());
        }
    }

    #[test]
    fn a_report_passes_through_all_states() {
        // 3 s sent, 2 s attentive and asleep in turns (1 s listened, 1 s of cycles), 1 s received.
        let states = modem().states(&[at(0, 3, true), at(5, 6, false)], Span::secs(100));
        // Connect 1 J. Send 6 J. Listen 1 s in the gap, 1 s of reception, 1 s behind: 3 J. Tail: 1 s + 9 s at 0.1 W: 1 J.
        // Active 8 s at 0.05 W: 0.4 J.
        close(&Joules::of(&states), [1.0, 6.0, 3.0, 1.0, 0.4, 0.0]);
        let span = states.iter().fold(Span::ZERO, |sum, s| sum + s.span);
        assert_eq!(span, Span::secs(100));
        let parts: Vec<Part> = states.iter().map(|s| s.part).collect();
        use Part::*;
        assert_eq!(parts, [Connect, Send, Listen, Tail, Listen, Tail, Reachable, Sleep]);
        // 100 s less connecting, 6 s of packets, 10 s of tail and 8 s reachable.
        assert_eq!(states.last().map(|s| s.span), Some(Span::secs(74)));
    }

    #[test]
    fn release_assistance_saves_the_tail_and_nothing_else() {
        let mut modem = modem();
        modem.timers.release_assistance = true;
        let states = modem.states(&[at(0, 3, true), at(5, 6, false)], Span::secs(100));
        // The gap inside the report costs the same. The 1 J of listening and 0.9 J of tail after the report
        // disappear.
        close(&Joules::of(&states), [1.0, 6.0, 2.0, 0.1, 0.4, 0.0]);
    }

    #[test]
    fn a_gap_longer_than_the_inactivity_timer_costs_a_second_connection() {
        let states = modem().states(&[at(0, 1, true), at(31, 32, true)], Span::secs(200));
        // The gap of 30 s: 1 s of listening, 9 s of tail, 8 s reachable, 12 s asleep. The same follows the
        // report.
        close(&Joules::of(&states), [2.0, 4.0, 2.0, 1.8, 0.8, 0.0]);
        // A gap of exactly 10 s does not.
        let states = modem().states(&[at(0, 1, true), at(11, 12, true)], Span::secs(200));
        close(&Joules::of(&states), [1.0, 4.0, 2.0, 1.8, 0.4, 0.0]);
    }

    #[test]
    fn extended_drx_pays_for_an_occasion_in_each_cycle() {
        let mut modem = modem();
        modem.timers.rest = Rest::Edrx(Span::secs(20));
        let states = modem.states(&[at(0, 1, true)], Span::secs(121));
        // 121 - 2 - 1 - 10 - 8 = 100 s at rest: five occasions, in addition to the four of the active time.
        close(&Joules::of(&states), [1.0, 2.0, 1.0, 0.9, 0.9, 0.0]);
    }

    #[test]
    fn reports_that_follow_closely_never_let_the_modem_rest() {
        let states = modem().states(&[at(0, 1, true)], Span::secs(5));
        let span = states.iter().fold(Span::ZERO, |sum, s| sum + s.span);
        assert_eq!(span, Span::secs(5));
        assert!(states.iter().all(|s| !matches!(s.part, Part::Sleep | Part::Reachable)));
    }

    #[test]
    fn presets_give_the_data_sheets_currents_of_extended_drx_again() {
        // `occasion` is derived at 81.92 s. At 655 s the sheet gives 6 and 9 uA, more than computed because
        // its window is longer.
        for (place, near, far) in [(0, 18.0, 6.0), (1, 37.0, 9.0)] {
            let modem = CELLULARS[place];
            let ua = |s| modem.cycle(Span::from_secs_f64(s)).get() / VOLTS * 1e6;
            assert!((ua(81.92) - near).abs() < 0.01, "{}", ua(81.92));
            assert!(ua(655.36) < far && ua(655.36) > far - 2.5, "{}", ua(655.36));
        }
    }
}
