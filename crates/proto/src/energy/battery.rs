//! A battery that is drained step by step.

use super::hardware::Hardware;
use super::radio::RadioState;
use crate::units::{Span, Time};

/// What a host has drawn from its battery. Once that is empty, nothing more is counted.
#[derive(Clone, Debug)]
pub struct Battery {
    hardware: Hardware,
    /// Time with a radio, by state.
    radio: [Span; RadioState::ALL.len()],
    /// All the time.
    elapsed: Span,
    processing: f64,
    empty: Option<Time>,
}

impl Battery {
    /// A full battery.
    pub fn new(hardware: Hardware) -> Battery {
        Battery {
            hardware,
            radio: Default::default(),
            elapsed: Span::ZERO,
            processing: 0.0,
            empty: None,
        }
    }

    /// When it was empty, if it is.
    pub fn empty(&self) -> Option<Time> {
        self.empty
    }

    /// What is drawn in `state`; `None` is a host without a radio.
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

    /// The radio is in `state` from `from` until `until`.
    pub fn pass(&mut self, state: Option<RadioState>, from: Time, until: Time) {
        if self.empty.is_some() || until <= from {
            return;
        }
        let mut span = until.since(from);
        let (power, left) = (self.power(state), self.left());
        if power * span.as_secs_f64() >= left {
            // `left` is finite, so here `power` is not zero, or there is nothing left.
            let lasts = if power > 0.0 { Span::from_secs_f64(left / power) } else { Span::ZERO };
            span = Span(lasts.0.min(span.0));
            self.empty = Some(from + span);
        }
        self.draw(state, span);
    }

    /// The same for a battery that surely is not empty before the end of `span`.
    pub(super) fn draw(&mut self, state: Option<RadioState>, span: Span) {
        self.elapsed = self.elapsed + span;
        if let Some(state) = state {
            let time = &mut self.radio[state.index()];
            *time = *time + span;
        }
    }

    /// The stack does work worth `joules` at `at`.
    pub fn work(&mut self, at: Time, joules: f64) {
        if self.empty.is_some() {
            return;
        }
        let left = self.left();
        if joules >= left {
            self.empty = Some(at);
        }
        self.processing += joules.min(left);
    }

    /// The same for a battery that surely holds more.
    pub(super) fn draw_work(&mut self, joules: f64) {
        self.processing += joules;
    }

    /// What is left, in joules.
    pub fn left(&self) -> f64 {
        (self.hardware.capacity.get() - self.spent()).max(0.0)
    }

    /// What was drawn in all, in joules.
    pub fn spent(&self) -> f64 {
        let radio: f64 = RadioState::ALL.into_iter().map(|state| self.by_radio(state)).sum();
        self.base() + radio + self.processing
    }

    /// What the host drew whatever happened, in joules.
    pub fn base(&self) -> f64 {
        (self.hardware.base * self.elapsed).get()
    }

    /// What the radio drew in `state`, in joules.
    pub fn by_radio(&self, state: RadioState) -> f64 {
        let radio = &self.hardware.radio;
        let power = [radio.doze, radio.idle, radio.receive, radio.transmit][state.index()];
        (power * self.time(state)).get()
    }

    /// What the work of the stack drew, in joules.
    pub fn processing(&self) -> f64 {
        self.processing
    }

    /// For how long the radio was in `state`.
    pub fn time(&self, state: RadioState) -> Span {
        self.radio[state.index()]
    }

    /// For how long something was drawn: until the end, or until it was empty.
    pub fn elapsed(&self) -> Span {
        self.elapsed
    }

    /// What draws from it.
    pub fn hardware(&self) -> &Hardware {
        &self.hardware
    }
}
