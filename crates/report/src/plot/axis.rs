//! Axes: conversion of values to coordinates, with ticks at round numbers.

use super::canvas::{Anchor, Canvas};
use crate::number::grouped;

/// The scale of an axis.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Spread {
    Linear,
    Log,
    /// From zero: linear up to this value over the length of a decade, logarithmic above.
    FromZero(f64),
}

impl Spread {
    /// The scale for `values`: logarithmic if `log` is set, with a position for zero if a value is zero.
    pub(super) fn of(log: bool, values: impl Iterator<Item = f64> + Clone) -> Spread {
        let least = values.clone().filter(|v| *v > 0.0).fold(f64::INFINITY, f64::min);
        let zero = values.into_iter().any(|v| v == 0.0);
        match (log, zero) {
            (true, true) if least.is_finite() => Spread::FromZero(least),
            (true, false) => Spread::Log,
            _ => Spread::Linear,
        }
    }
}

/// Decades above `least`; the linear part below counts as one decade.
fn decades(value: f64, least: f64) -> f64 {
    if value <= least { value / least } else { 1.0 + libm::log10(value / least) }
}

/// An axis that maps the values `low..high` to the coordinates `from..to`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Axis {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
    spread: Spread,
}

impl Axis {
    /// An axis for `low..=high`; an empty range is widened.
    pub(super) fn new(low: f64, high: f64, from: f64, to: f64, spread: Spread) -> Axis {
        let (low, high) = if low.is_finite() && high > low {
            (low, high)
        } else if spread == Spread::Log {
            (low.max(1e-12) * 0.5, low.max(1e-12) * 2.0)
        } else {
            let low = if low.is_finite() { low } else { 0.0 };
            (low, low + 1.0)
        };
        Axis { low, high, from, to, spread }
    }

    pub(super) fn low(&self) -> f64 {
        self.low
    }

    /// The coordinate of `value`.
    pub(super) fn at(&self, value: f64) -> f64 {
        let share = match self.spread {
            Spread::Linear => (value - self.low) / (self.high - self.low),
            Spread::Log => {
                libm::log(value.max(1e-300) / self.low) / libm::log(self.high / self.low)
            }
            Spread::FromZero(least) => decades(value, least) / decades(self.high, least),
        };
        self.from + share * (self.to - self.from)
    }

    /// Approximately `count` ticks at round numbers, with labels.
    pub(super) fn ticks(&self, count: usize) -> Vec<(f64, String)> {
        match self.spread {
            Spread::Linear => self.linear_ticks(count),
            Spread::Log => self.log_ticks(self.low),
            Spread::FromZero(least) => {
                let zero = (0.0, "0".to_owned());
                std::iter::once(zero).chain(self.log_ticks(least)).collect()
            }
        }
    }

    fn linear_ticks(&self, count: usize) -> Vec<(f64, String)> {
        let step = round_step((self.high - self.low) / count.max(1) as f64);
        let decimals = (-libm::log10(step).floor()).clamp(0.0, 9.0) as usize;
        let first = (self.low / step - 1e-9).ceil() as i64;
        let last = (self.high / step + 1e-9).floor() as i64;
        let label = |v: f64| grouped(&format!("{v:.decimals$}"));
        (first..=last).map(|i| i as f64 * step).map(|v| (v, label(v))).collect()
    }

    fn log_ticks(&self, low: f64) -> Vec<(f64, String)> {
        let (first, last) = (libm::log10(low).floor() as i32, libm::log10(self.high).ceil() as i32);
        // On an axis of few decades, 2 and 5 between the powers of ten fit as well.
        let steps: &[f64] = if last - first <= 3 { &[1.0, 2.0, 5.0] } else { &[1.0] };
        let all =
            (first..=last).flat_map(|e| steps.iter().map(move |s| s * libm::exp10(f64::from(e))));
        let fits = |v: &f64| *v >= low * 0.999 && *v <= self.high * 1.001;
        all.filter(fits).map(|v| (v, log_label(v))).collect()
    }
}

fn log_label(value: f64) -> String {
    if (1e-3..1e5).contains(&value) {
        let decimals = (-libm::log10(value).floor()).clamp(0.0, 3.0) as usize;
        grouped(&format!("{value:.decimals$}"))
    } else {
        format!("{value:e}").replace('-', "\u{2212}")
    }
}

/// The nearest of 1, 2, 5 times a power of ten to `rough`, by ratio.
fn round_step(rough: f64) -> f64 {
    let power = libm::exp10(libm::log10(rough.max(1e-12)).floor());
    // The borders are the geometric means of neighbours.
    let steps = [(1.414, 1.0), (3.162, 2.0), (7.071, 5.0)];
    let step = steps.into_iter().find(|(border, _)| rough / power <= *border);
    step.map_or(10.0, |(_, step)| step) * power
}

/// A round number a little above `high`, as the end of an axis from zero.
pub(super) fn round_end(high: f64) -> f64 {
    if !(high > 0.0 && high.is_finite()) {
        return 1.0;
    }
    let step = round_step(high / 5.0);
    (high * 1.04 / step).ceil() * step
}

/// The horizontal grid of a panel with its labels at the left.
pub(super) fn draw_y(canvas: &mut Canvas, axis: &Axis, left: f64, right: f64, count: usize) {
    for (value, label) in axis.ticks(count) {
        let y = axis.at(value);
        canvas.line("s-grid", (left, y), (right, y), 1.0);
        canvas.text("k", left - 8.0, y + 4.0, Anchor::End, &label);
    }
}

/// The horizontal axis at `y` with its ticks and title below.
pub(super) fn draw_x(canvas: &mut Canvas, axis: &Axis, y: f64, count: usize, title: &str) {
    canvas.line("s-axis", (axis.from, y), (axis.to, y), 1.2);
    for (value, label) in axis.ticks(count) {
        let x = axis.at(value);
        canvas.line("s-axis", (x, y), (x, y + 5.0), 1.2);
        canvas.text("k", x, y + 19.0, Anchor::Middle, &label);
    }
    canvas.text("l", (axis.from + axis.to) / 2.0, y + 39.0, Anchor::Middle, title);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(low: f64, high: f64, spread: Spread) -> Vec<String> {
        Axis::new(low, high, 0.0, 100.0, spread).ticks(5).into_iter().map(|(_, l)| l).collect()
    }

    #[test]
    fn ticks_are_at_round_numbers() {
        assert_eq!(labels(0.0, 12.7, Spread::Linear), ["0", "2", "4", "6", "8", "10", "12"]);
        assert_eq!(labels(0.0, 1.0, Spread::Linear), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(labels(0.0, 0.0, Spread::Linear).len(), 6);
        assert_eq!(labels(1.0, 100.0, Spread::Log), ["1", "2", "5", "10", "20", "50", "100"]);
        assert_eq!(labels(1e-7, 1e-3, Spread::Log)[0], "1e\u{2212}7");
        assert_eq!(labels(f64::NAN, f64::NAN, Spread::Linear).len(), 6);
    }

    #[test]
    fn a_logarithmic_axis_has_a_tick_for_zero() {
        let spread = Spread::of(true, [0.0, 0.1, 1.0, 10.0].into_iter());
        assert_eq!(spread, Spread::FromZero(0.1));
        let axis = Axis::new(0.0, 10.0, 0.0, 300.0, spread);
        let places: Vec<_> = [0.0, 0.05, 0.1, 1.0, 10.0].map(|v| axis.at(v).round()).into();
        assert_eq!(places, [0.0, 50.0, 100.0, 200.0, 300.0]);
        let labels: Vec<String> = axis.ticks(5).into_iter().map(|(_, label)| label).collect();
        assert_eq!(labels, ["0", "0.1", "0.2", "0.5", "1", "2", "5", "10"]);
        assert_eq!(Spread::of(true, [1.0, 2.0].into_iter()), Spread::Log);
        assert_eq!(Spread::of(true, [0.0].into_iter()), Spread::Linear);
    }

    #[test]
    fn axis_ends_are_round_and_above_the_maximum() {
        assert_eq!(round_end(199.9), 250.0);
        assert_eq!(round_end(240.0), 250.0);
        assert!((round_end(0.974) - 1.2).abs() < 1e-9);
        assert_eq!(round_end(0.0), 1.0);
    }
}
