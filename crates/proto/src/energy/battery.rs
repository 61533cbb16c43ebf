//! A battery that is drained step by step.

use super::hardware::Hardware;
use super::radio::RadioState;
use crate::units::{Span, Time};

/// The energy that a host has drawn from its battery, by consumer. An empty battery counts nothing more.
#[derive(Clone, Debug)]
pub struct Battery {
    hardware: Hardware,
    /// Time with a radio, by state.
    radio: [Span; RadioState::ALL.len()],
    /// Total time.
    elapsed: Span,
    processing: f64,
    empty: Option<Time>,
}

impl Battery {
    /// Asserts that times and charge agree.
    pub fn check(&self) {
        debug_assert!(
            self.radio.iter().all(|span| *span <= self.elapsed),
            "a state lasts at most as long as the run"
        );
        debug_assert!(
            self.processing.is_finite() && self.processing >= 0.0,
            "energy of processing: {}",
            self.processing
        );
        debug_assert!(
            self.empty.is_none_or(|at| at <= Time::ZERO + self.elapsed),
            "it became empty in the future"
        );
    }

    /// Creates a full battery.
    pub fn new(hardware: Hardware) -> Battery {
        Battery {
            hardware,
            radio: Default::default(),
            elapsed: Span::ZERO,
            processing: 0.0,
            empty: None,
        }
    }

    /// Time at which the battery became empty.
    pub fn empty(&self) -> Option<Time> {
        self.empty
    }

    /// Power drawn in `state`; `None` is a host without a radio.
    fn power(&self, state: Option<RadioState>) -> f64 {
        let radio = &self.hardware.radio;
        let radio = state.map(|state| match state {
            RadioState::Doze => radio.doze,
            RadioState::Idle => radio.idle,
            RadioState::Receive => radio.receive,
            RadioState::Transmit => radio.transmit,
        });
        self.hardware.base.get() + radio.map_or(0.0, |power| power.get())
    }

    /// Charges the time from `from` until `until`, which the radio spends in `state`.
    pub fn pass(&mut self, state: Option<RadioState>, from: Time, until: Time) {
        if self.empty.is_some() || until <= from {
            return;
        }
        let mut span = until.since(from);
        let (power, left) = (self.power(state), self.left());
        if power * span.as_secs_f64() >= left {
            // `left` is finite, so here `power` is not zero, or the battery is empty.
            let lasts = if power > 0.0 { Span::from_secs_f64(left / power) } else { Span::ZERO };
            span = Span(lasts.0.min(span.0));
            self.empty = Some(from + span);
        }
        self.draw(state, span);
    }

    /// Like [`Battery::pass`], for a battery that certainly lasts beyond the end of `span`.
    pub(super) fn draw(&mut self, state: Option<RadioState>, span: Span) {
        self.elapsed = self.elapsed + span;
        if let Some(state) = state {
            let time = &mut self.radio[state.index()];
            *time = *time + span;
        }
        self.check();
    }

    /// Charges work of the stack worth `joules` at `at`.
    pub fn work(&mut self, at: Time, joules: f64) {
        if self.empty.is_some() {
            return;
        }
        let left = self.left();
        if joules >= left {
            self.empty = Some(at);
        }
        self.processing += joules.min(left);
        self.check();
    }

    /// Like [`Battery::work`], for a battery that certainly holds more than `joules`.
    pub(super) fn draw_work(&mut self, joules: f64) {
        self.processing += joules;
    }

    /// Remaining energy in joules.
    pub fn left(&self) -> f64 {
        (self.hardware.capacity.get() - self.spent()).max(0.0)
    }

    /// Total energy drawn, in joules.
    pub fn spent(&self) -> f64 {
        let radio: f64 = RadioState::ALL.into_iter().map(|state| self.by_radio(state)).sum();
        self.base() + radio + self.processing
    }

    /// Base consumption of the host in joules, independent of radio and stack.
    pub fn base(&self) -> f64 {
        (self.hardware.base * self.elapsed).get()
    }

    /// Energy that the radio drew in `state`, in joules.
    pub fn by_radio(&self, state: RadioState) -> f64 {
        let radio = &self.hardware.radio;
        let power = [radio.doze, radio.idle, radio.receive, radio.transmit][state.index()];
        (power * self.time(state)).get()
    }

    /// Energy of the stack's work, in joules.
    pub fn processing(&self) -> f64 {
        self.processing
    }

    /// Time that the radio spent in `state`.
    pub fn time(&self, state: RadioState) -> Span {
        self.radio[state.index()]
    }

    /// Time until the battery was empty, or until the end.
    pub fn elapsed(&self) -> Span {
        self.elapsed
    }

    /// The hardware that draws from the battery.
    pub fn hardware(&self) -> &Hardware {
        &self.hardware
    }
}
