//! How often and for how long a walker's signal fades: level crossings of Rayleigh fading.
//!
//! The signal of somebody who moves at `v` on a carrier `f` fades at the pace of the Doppler shift `fd = v f / c`.
//! With `rho` the ratio of a threshold to the root mean square of the envelope (`rho^2 = 10^(-margin / 10)`, where the
//! fading margin says how far below the mean power the receiver fails), the envelope falls below it
//!
//! ```text
//! N = sqrt(2 pi) fd rho exp(-rho^2)             times a second,
//! T = (exp(rho^2) - 1) / (rho fd sqrt(2 pi))    seconds long on average,
//! ```
//!
//! so that good periods last `1/N - T = 1 / (rho fd sqrt(2 pi))` (Clarke 1968; Jakes 1974; Wang and Moayeri 1995, eqs.
//! 5 and 8, make the transition probabilities of a two-state chain of them: level crossings per symbol).

use core::f64::consts::PI;
use core::ops::RangeInclusive;

use crate::describe::Keys;
use crate::units::{Decibels, Frequency, Rate, Span, Speed};

/// Somebody who walks, on the carrier of wireless LANs: what keys are listed with.
pub(super) const WALK: (Speed, Frequency) = (Speed(555_556), Frequency(2_400_000_000));

/// The keys of somebody who moves: how fast, and on which carrier. Neither has a default.
pub(super) fn motion(k: &mut Keys<'_>) -> (Option<Speed>, Option<Frequency>) {
    let (mut speed, mut carrier) = (None, None);
    // From a centimetre a second, slower than anybody stands, to an aeroplane.
    let speeds = Speed(10_000)..=Speed(1_000_000_000);
    let carriers = Frequency(1_000_000)..=Frequency(1_000_000_000_000);
    k.maybe("speed", &mut speed, speeds, "how fast the mobile host moves");
    k.maybe("carrier", &mut carrier, carriers, "the frequency of the carrier");
    (speed, carrier)
}

/// A key with a ratio in decibels, without a default.
pub(super) fn decibels(
    k: &mut Keys<'_>,
    key: &'static str,
    range: RangeInclusive<f64>,
    what: &'static str,
) -> Option<Decibels> {
    let bound = |db: f64| Decibels::new(db).unwrap_or(Decibels::ZERO);
    let mut ratio = None;
    k.maybe(key, &mut ratio, bound(*range.start())..=bound(*range.end()), what);
    ratio
}

/// Somebody who moves through Rayleigh fading, and how deep a fade the receiver bears.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Fading {
    /// How fast.
    pub speed: Speed,
    /// On which carrier.
    pub carrier: Frequency,
    /// How far below its mean the received power may fall before the channel is bad.
    pub margin: Decibels,
}

impl Fading {
    /// Mean lengths in seconds of a good and of a bad period.
    pub fn periods(&self) -> [f64; 2] {
        let rho_squared = 1.0 / self.margin.ratio();
        let pace = self.carrier.doppler(self.speed) * rho_squared.sqrt() * (2.0 * PI).sqrt();
        [1.0 / pace, libm::expm1(rho_squared) / pace]
    }

    /// The same as times, at least a nanosecond.
    pub fn spans(&self) -> [Span; 2] {
        self.periods().map(|s| Span(libm::round(s * 1e9).max(1.0) as u64))
    }

    /// The same as bits sent at `rate`, at least one. Their inverses are the transition probabilities after each bit.
    pub fn bits(&self, rate: Rate) -> [u64; 2] {
        self.periods().map(|s| libm::round(s * rate.bps() as f64).max(1.0) as u64)
    }

    /// Share of the time in which the channel is bad: `1 - exp(-rho^2)`.
    pub fn share_bad(&self) -> f64 {
        -libm::expm1(-1.0 / self.margin.ratio())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walk(carrier: &str, margin: &str) -> Fading {
        Fading {
            speed: "2km/h".parse().unwrap(),
            carrier: carrier.parse().unwrap(),
            margin: margin.parse().unwrap(),
        }
    }

    #[test]
    fn periods_are_those_of_the_formulas() {
        // By hand: fd = 0.5556 * 2.4e9 / 2.998e8 = 4.4475 Hz, rho = 0.31623; 1 / (rho fd 2.50663) = 0.28366 s,
        // and that times exp(0.1) - 1 = 0.105171.
        let [good, bad] = walk("2.4GHz", "10dB").periods();
        assert!((good - 0.28366).abs() < 1e-4 && (bad - 0.029832).abs() < 1e-5, "{good} {bad}");
        let [good, bad] = walk("900MHz", "20dB").periods();
        assert!((good - 2.39202).abs() < 1e-3 && (bad - 0.0240403).abs() < 1e-5, "{good} {bad}");
    }

    #[test]
    fn crossings_times_duration_is_the_share() {
        for margin in ["1dB", "3dB", "10dB", "30dB"] {
            let fading = walk("900MHz", margin);
            let [good, bad] = fading.periods();
            assert!((bad / (good + bad) / fading.share_bad() - 1.0).abs() < 1e-12);
            let crossings = (2.0 * PI).sqrt() * fading.carrier.doppler(fading.speed);
            let rho = (1.0 / fading.margin.ratio()).sqrt();
            let crossings = crossings * rho * libm::exp(-rho * rho);
            assert!((crossings * (good + bad) - 1.0).abs() < 1e-12);
        }
    }

    #[test]
    fn bits_are_times_at_the_rate() {
        let fading = walk("2.4GHz", "10dB");
        let [good, bad] = fading.bits(Rate::from_bps(1_000_000).unwrap());
        assert!(good.abs_diff(283_660) < 100 && bad.abs_diff(29_832) < 10, "{good} {bad}");
        assert!((fading.spans()[0].0 / 1000).abs_diff(good) <= 1);
        // A margin so deep and a rate so low that no bit is ever bad still makes a chain.
        assert_eq!(walk("900MHz", "100dB").bits(Rate::from_bps(1).unwrap())[1], 1);
    }
}
