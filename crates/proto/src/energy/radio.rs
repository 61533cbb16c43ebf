//! State of a station's radio over time, derived from the transmissions in its hop.
//!
//! Transmissions are reported in the order of their ends, or of their beginnings by collision-free media.
//! With collisions a later report may concern an earlier beginning. States are therefore settled only up to
//! the time that no later report can change.

use std::collections::VecDeque;

use crate::air::{AirEvent, Station};
use crate::units::{Span, Time};

/// State of a radio.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum RadioState {
    /// Asleep.
    Doze,
    /// Listening; nothing is on the air.
    Idle,
    /// Receiving at least one frame, and not sending.
    Receive,
    /// Sending.
    Transmit,
}

impl RadioState {
    /// Every state, in a fixed order.
    pub const ALL: [RadioState; 4] =
        [RadioState::Doze, RadioState::Idle, RadioState::Receive, RadioState::Transmit];

    /// Its index in [`RadioState::ALL`].
    pub fn index(self) -> usize {
        self as usize
    }
}

/// A station's radio, and when its hop reports transmissions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Antenna {
    /// The station.
    pub station: Station,
    /// Propagation delay between two stations.
    pub delay: Span,
    /// When the hop reports a transmission.
    pub reported: ReportTime,
}

/// When a hop reports a transmission.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReportTime {
    /// At its beginning, in collision-free media.
    AtStart,
    /// After its end has been received; no transmission is longer than `longest`.
    AtEnd {
        /// Upper bound of the time on the air.
        longest: Span,
    },
}

/// The states of one station's radio over time.
#[derive(Clone, Debug)]
pub struct RadioStates {
    antenna: Antenna,
    own: Stretches,
    received: Stretches,
    /// Times at which it falls asleep or wakes up, in order.
    dozes: VecDeque<(Time, bool)>,
    asleep: bool,
    settled: Time,
}

impl RadioStates {
    /// Creates a radio that listens from the beginning.
    pub fn new(antenna: Antenna) -> RadioStates {
        RadioStates {
            antenna,
            own: Stretches::default(),
            received: Stretches::default(),
            dozes: VecDeque::new(),
            asleep: false,
            settled: Time::ZERO,
        }
    }

    /// Records a transmission that any station has started or finished.
    pub fn air(&mut self, at: Time, event: &AirEvent) {
        let Antenna { station, delay, reported } = self.antenna;
        let before = |span: Span| Time(at.0.saturating_sub(span.0));
        let start = match reported {
            ReportTime::AtStart => at,
            ReportTime::AtEnd { .. } => before(event.airtime + delay),
        };
        let (stretches, from) = match event.station == station {
            true => (&mut self.own, start),
            false => (&mut self.received, start + delay),
        };
        stretches.add(from.max(self.settled), from + event.airtime);
    }

    /// Records that the radio goes to sleep or wakes up. Times must not decrease.
    pub fn doze(&mut self, at: Time, asleep: bool) {
        self.dozes.push_back((at.max(self.settled), asleep));
    }

    /// Time up to which all states are final, after all events until `now`.
    pub fn known(&self, now: Time) -> Time {
        match self.antenna.reported {
            ReportTime::AtStart => now,
            ReportTime::AtEnd { longest } => {
                Time(now.0.saturating_sub((longest + self.antenna.delay).0)).max(self.settled)
            }
        }
    }

    /// Settles everything up to `until` and reports each state with its beginning and end, in order and
    /// without gaps.
    pub fn settle(&mut self, until: Time, mut each: impl FnMut(RadioState, Time, Time)) {
        while self.settled < until {
            let from = self.settled;
            while let Some((_, asleep)) = self.dozes.front().filter(|(at, _)| *at <= from) {
                self.asleep = *asleep;
                self.dozes.pop_front();
            }
            let turn = self.dozes.front().map_or(Time::NEVER, |(at, _)| *at);
            let (sends, own_turn) = self.own.look(from);
            let (receives, received_turn) = self.received.look(from);
            let state = match (sends, self.asleep, receives) {
                (true, ..) => RadioState::Transmit,
                (false, true, _) => RadioState::Doze,
                (false, false, true) => RadioState::Receive,
                (false, false, false) => RadioState::Idle,
            };
            let to = until.min(turn).min(own_turn).min(received_turn);
            each(state, from, to);
            self.settled = to;
        }
    }
}

/// Time intervals in order that neither overlap nor touch.
#[derive(Clone, Debug, Default)]
struct Stretches(VecDeque<(Time, Time)>);

impl Stretches {
    /// Adds an interval and merges it with those that it touches.
    fn add(&mut self, mut from: Time, mut until: Time) {
        if until <= from {
            return;
        }
        let first = self.0.partition_point(|(_, end)| *end < from);
        let mut behind = first;
        while let Some((start, end)) = self.0.get(behind).filter(|(start, _)| *start <= until) {
            (from, until) = (from.min(*start), until.max(*end));
            behind += 1;
        }
        if behind == first {
            self.0.insert(first, (from, until));
        } else {
            self.0[first] = (from, until);
            self.0.drain(first + 1..behind);
        }
    }

    /// Whether an interval contains `at`, and the time of the next change. Intervals that are over by `at`
    /// are discarded.
    fn look(&mut self, at: Time) -> (bool, Time) {
        while self.0.front().is_some_and(|(_, end)| *end <= at) {
            self.0.pop_front();
        }
        match self.0.front() {
            None => (false, Time::NEVER),
            Some((start, end)) if *start <= at => (true, *end),
            Some((start, _)) => (false, *start),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn radio(reported: ReportTime) -> RadioStates {
        RadioStates::new(Antenna { station: Station(0), delay: Span::micros(2), reported })
    }

    /// A hop that reports a transmission at its end leaves the duration of the longest one open. The settled
    /// time never decreases.
    #[test]
    fn final_time_lags_by_the_longest_unreported_transmission() {
        let now = Time(1_000_000);
        assert_eq!(radio(ReportTime::AtStart).known(now), now);
        let mut late = radio(ReportTime::AtEnd { longest: Span::micros(98) });
        assert_eq!(late.known(now), Time(900_000));
        assert_eq!(late.known(Time(50_000)), Time::ZERO);
        late.settle(Time(950_000), |_, _, _| {});
        assert_eq!(late.known(now), Time(950_000));
        assert_eq!(late.known(Time(1_100_000)), Time(1_000_000));
    }
}
