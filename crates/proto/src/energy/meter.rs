//! The energy meter of one host: energy drawn and data moved, computed from the events of a run.

use std::collections::VecDeque;

use super::battery::Battery;
use super::costs;
use super::hardware::Hardware;
use super::operation::Work;
use super::radio::{Antenna, RadioStates};
use crate::air::AirEvent;
use crate::units::Time;

/// Maximum number of transmissions before they are settled, while the battery is far from empty.
const PUT_OFF: u32 = 32;
/// Minimum share of its capacity for a battery that is far from empty: much more than the rounding error of a
/// sum.
const FAR: f64 = 1e-3;

/// Measures one host. Events arrive in the order of their time.
#[derive(Clone, Debug)]
pub struct Meter {
    /// Joules per instruction.
    price: f64,
    /// Maximum power of the host in watts, without the work of its stack.
    most: f64,
    /// Charge of the battery above [`FAR`] when it was last settled, less the maximum consumption since then,
    /// in joules.
    ample: f64,
    /// Events since the last settlement.
    put_off: u32,
    radio: Option<RadioStates>,
    battery: Battery,
    /// Unsettled marks; the state of the radio at their time is not known yet.
    marks: VecDeque<(Time, Mark)>,
    settled: Time,
    totals: Totals,
}

#[derive(Clone, Copy, Debug)]
enum Mark {
    Instructions(f64),
    Sent(u64),
    Received(u64),
}

/// Counts up to the time at which the battery became empty.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Totals {
    /// Instructions of the stack.
    pub instructions: f64,
    /// Payload of this host that the other end delivered, in bytes.
    pub sent: u64,
    /// Payload delivered at this host, in bytes.
    pub received: u64,
}

impl Meter {
    /// Creates the meter of a host with a full battery; a host without `antenna` is wired.
    pub fn new(hardware: Hardware, antenna: Option<Antenna>) -> Meter {
        let of = hardware.radio;
        let radio = [of.doze, of.idle, of.receive, of.transmit].map(|power| power.get());
        Meter {
            price: hardware.segment.get() / costs::BASE,
            most: hardware.base.get() + radio.into_iter().fold(0.0, f64::max),
            ample: 0.0,
            put_off: 0,
            radio: antenna.map(RadioStates::new),
            battery: Battery::new(hardware),
            marks: VecDeque::new(),
            settled: Time::ZERO,
            totals: Totals::default(),
        }
    }

    /// Records a transmission in the host's radio hop.
    pub fn air(&mut self, at: Time, event: &AirEvent) {
        if self.battery.empty().is_some() {
            return;
        }
        if let Some(radio) = &mut self.radio {
            radio.air(at, event);
        }
        self.settle_known(at);
    }

    /// Records that the host's radio goes to sleep or wakes up.
    pub fn doze(&mut self, at: Time, asleep: bool) {
        if let Some(radio) = &mut self.radio {
            radio.doze(at, asleep);
        }
        self.settle_known(at);
    }

    /// Records work of the host's stack.
    pub fn work(&mut self, at: Time, work: &Work) {
        self.mark(at, Mark::Instructions(work.instructions()));
    }

    /// Records that the other end has delivered `bytes` from this host.
    pub fn sent(&mut self, at: Time, bytes: u64) {
        self.mark(at, Mark::Sent(bytes));
    }

    /// Records that `bytes` have been delivered at this host.
    pub fn received(&mut self, at: Time, bytes: u64) {
        self.mark(at, Mark::Received(bytes));
    }

    fn mark(&mut self, at: Time, mark: Mark) {
        if self.battery.empty().is_some() {
            return;
        }
        if self.marks.is_empty() && self.outlasts(at, self.joules(mark)) {
            return self.count(at, mark);
        }
        self.marks.push_back((at, mark));
        self.settle_known(at);
    }

    /// Whether the battery lasts until `now` for any behaviour of the radio and for work worth `joules`. If
    /// so, the time of settlement does not matter.
    fn outlasts(&self, now: Time, joules: f64) -> bool {
        self.at_most(now) + joules < self.ample
    }

    /// Energy of the work in joules.
    fn joules(&self, mark: Mark) -> f64 {
        if let Mark::Instructions(count) = mark { count * self.price } else { 0.0 }
    }

    /// Maximum energy drawn since the last settlement, in joules, without work.
    fn at_most(&self, now: Time) -> f64 {
        self.most * now.since(self.settled).as_secs_f64()
    }

    fn settle_known(&mut self, now: Time) {
        self.put_off += 1;
        if self.put_off < PUT_OFF && self.marks.is_empty() && self.outlasts(now, 0.0) {
            return;
        }
        let known = self.radio.as_ref().map_or(now, |radio| radio.known(now));
        self.settle(known);
        self.put_off = 0;
        self.ample = self.battery.left() - FAR * self.battery.hardware().capacity.get();
    }

    fn count(&mut self, at: Time, mark: Mark) {
        match mark {
            Mark::Instructions(count) => {
                self.totals.instructions += count;
                let joules = self.joules(mark);
                match self.outlasts(at, joules) {
                    true => self.battery.draw_work(joules),
                    false => self.battery.work(at, joules),
                }
                self.ample -= joules;
            }
            Mark::Sent(bytes) => self.totals.sent += bytes,
            Mark::Received(bytes) => self.totals.received += bytes,
        }
    }

    /// Charges everything up to `until`.
    fn settle(&mut self, until: Time) {
        while let Some(&(at, mark)) = self.marks.front().filter(|(at, _)| *at <= until) {
            self.marks.pop_front();
            self.pass(at);
            if self.battery.empty().is_some() {
                break;
            }
            self.count(at, mark);
        }
        self.pass(until);
        if self.battery.empty().is_some() {
            self.marks.clear();
        }
    }

    /// Charges the radio states up to `until`.
    fn pass(&mut self, until: Time) {
        let sure = self.outlasts(until, 0.0);
        self.ample -= self.at_most(until);
        let battery = &mut self.battery;
        match &mut self.radio {
            Some(radio) if sure => {
                radio.settle(until, |state, from, to| battery.draw(Some(state), to.since(from)));
            }
            Some(radio) => {
                radio.settle(until, |state, from, to| battery.pass(Some(state), from, to));
            }
            None => battery.pass(None, self.settled, until),
        }
        self.settled = self.settled.max(until);
    }

    /// The battery and the counts of a run that ended at `end`. A frame on the air at the end is not counted.
    pub fn finish(&self, end: Time) -> (Battery, Totals) {
        let mut meter = self.clone();
        meter.settle(end);
        (meter.battery, meter.totals)
    }
}
