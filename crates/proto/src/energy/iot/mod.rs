//! Energy of a radio of the Internet of Things per report and between reports.
//!
//! Such a radio sleeps nearly always. Its consumption depends on the states around a few packets: it
//! connects, transfers data, stays connected for a while in case more arrives, and goes back to sleep. Each
//! family of radios has a file with its states and with presets from published figures. The input is
//! simulated packets as [`Activity`]; the output is [`Stretch`]es of time, each in one state.

mod ble;
mod cellular;
mod lora;
mod wifi;

use serde::Serialize;

pub use ble::{BLES, Ble};
pub use cellular::{CELLULARS, Cellular, Rest, Timers};
pub use lora::{LORAS, Lora, Spreading};
pub use wifi::{Keeps, WIFIS, Wifi};

use super::presets::watts;
use crate::names::named;
use crate::units::{Energy, Power, Span, Time};

/// State of a radio.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// Waking up and connecting: synchronisation, random access, signalling, release.
    Connect,
    /// Sending data.
    Send,
    /// Receiving data, or listening for it continuously.
    Listen,
    /// Connected after the last packet and listening periodically.
    Tail,
    /// Reachable without a connection: listening for pages, beacons or connection events.
    Reachable,
    /// Asleep and unreachable.
    Sleep,
}

impl Part {
    /// Every state, in a fixed order.
    pub const ALL: [Part; 6] =
        [Part::Connect, Part::Send, Part::Listen, Part::Tail, Part::Reachable, Part::Sleep];
}

named!(Part: Connect Send Listen Tail Reachable Sleep);

/// A packet on the air, or a part of one, from the view of the device's radio.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Activity {
    /// Its beginning, relative to the time at which the device first has data to send.
    pub from: Time,
    /// Its end.
    pub until: Time,
    /// Whether the device sends it.
    pub sends: bool,
}

/// Time in one state.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Stretch {
    /// State of the radio.
    pub part: Part,
    /// Duration.
    pub span: Span,
    /// Mean power.
    pub power: Power,
}

/// Energy in joules, by state of the radio.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Joules([f64; Part::ALL.len()]);

impl Joules {
    /// The sum of `stretches`.
    pub fn of<'a>(stretches: impl IntoIterator<Item = &'a Stretch>) -> Joules {
        let mut all = Joules::default();
        for stretch in stretches {
            all.0[stretch.part as usize] += (stretch.power * stretch.span).get();
        }
        all
    }

    /// Energy of one state.
    pub fn part(&self, part: Part) -> f64 {
        self.0[part as usize]
    }

    /// Total energy.
    pub fn total(&self) -> f64 {
        self.0.iter().sum()
    }
}

/// Consecutive stretches; adjacent ones of the same state are merged.
#[derive(Clone, Debug, Default)]
struct States(Vec<Stretch>);

impl States {
    fn add(&mut self, part: Part, span: Span, power: Power) {
        match self.0.last_mut() {
            _ if span == Span::ZERO => {}
            Some(last) if last.part == part && last.power == power => last.span = last.span + span,
            _ => self.0.push(Stretch { part, span, power }),
        }
    }

    /// Total duration.
    fn span(&self) -> Span {
        self.0.iter().fold(Span::ZERO, |sum, stretch| sum + stretch.span)
    }
}

/// Sorts `activities` and removes overlaps: of two at a time the earlier one continues to its end.
fn in_turn(activities: &[Activity]) -> Vec<Activity> {
    let mut sorted = activities.to_vec();
    sorted.sort_by_key(|a| (a.from, a.until));
    let mut until = Time::ZERO;
    sorted.retain_mut(|a| {
        a.from = a.from.max(until);
        until = until.max(a.until);
        a.from < a.until
    });
    sorted
}

/// Power of a current in milliamperes at a voltage in volts.
const fn milliamperes(ma: f64, volts: f64) -> Power {
    watts(ma * volts / 1e3)
}

/// Mean power of `energy` over `span`.
fn mean_power(energy: Energy, span: Span) -> Power {
    Power::watts(energy.get() / span.as_secs_f64()).unwrap_or(Power::ZERO)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_have_their_places_and_stretches_add_up() {
        for (place, part) in Part::ALL.into_iter().enumerate() {
            assert_eq!(part as usize, place);
        }
        let power = milliamperes(100.0, 3.0);
        let mut states = States::default();
        states.add(Part::Send, Span::secs(1), power);
        states.add(Part::Send, Span::secs(2), power);
        states.add(Part::Listen, Span::ZERO, power);
        states.add(Part::Sleep, Span::secs(10), milliamperes(0.001, 3.0));
        assert_eq!(states.0.len(), 2);
        let joules = Joules::of(&states.0);
        assert!((joules.part(Part::Send) - 0.9).abs() < 1e-12);
        assert!((joules.total() - 0.9 - 30e-6).abs() < 1e-12);
    }

    #[test]
    fn of_two_packets_at_a_time_the_second_begins_when_the_first_ends() {
        let at = |from, until, sends| Activity { from: Time(from), until: Time(until), sends };
        let all = in_turn(&[at(5, 9, false), at(0, 7, true), at(6, 8, true)]);
        assert_eq!(all, [at(0, 7, true), at(7, 9, false)]);
    }
}
