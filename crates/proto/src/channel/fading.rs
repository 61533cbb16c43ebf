//! Frequency and duration of fades for a moving receiver: level crossings of Rayleigh fading.
//!
//! The signal of a receiver that moves at `v` on a carrier `f` fades at the rate of the Doppler shift
//! `fd = v f / c`. Let `rho` be the ratio of a threshold to the root mean square of the envelope:
//! `rho^2 = 10^(-margin / 10)`, where the fading margin is the distance from the mean power at which the
//! receiver fails. The envelope falls below the threshold
//!
//! ```text
//! N = sqrt(2 pi) fd rho exp(-rho^2)             times per second,
//! T = (exp(rho^2) - 1) / (rho fd sqrt(2 pi))    seconds long on average,
//! ```
//!
//! so good periods last `1/N - T = 1 / (rho fd sqrt(2 pi))` (Clarke 1968; Jakes 1974). Wang and Moayeri
//! (1995, eqs. 5 and 8) derive the transition probabilities of a two-state chain from them: level crossings
//! per symbol.

use core::f64::consts::PI;
use core::ops::RangeInclusive;

use crate::describe::Keys;
use crate::units::{Decibels, Frequency, Rate, Span, Speed};

/// Example values of the keys: a walker on the carrier of wireless LANs.
pub(super) const WALK: (Speed, Frequency) = (Speed(555_556), Frequency(2_400_000_000));

/// The keys of a moving receiver, speed and carrier. Neither has a default.
pub(super) fn motion(k: &mut Keys<'_>) -> (Option<Speed>, Option<Frequency>) {
    let (mut speed, mut carrier) = (None, None);
    // From a centimetre per second, slower than a standing person moves, to an aeroplane.
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
    doc: &'static str,
) -> Option<Decibels> {
    let bound = |db: f64| Decibels::new(db).unwrap_or(Decibels::ZERO);
    let mut ratio = None;
    k.maybe(key, &mut ratio, bound(*range.start())..=bound(*range.end()), doc);
    ratio
}

/// A receiver that moves through Rayleigh fading, with its fading margin.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Fading {
    /// Speed.
    pub speed: Speed,
    /// Carrier frequency.
    pub carrier: Frequency,
    /// Distance of the threshold of a bad channel from the mean received power.
    pub margin: Decibels,
}

impl Fading {
    /// Mean durations of a good and of a bad period, seconds.
    pub fn periods(&self) -> [f64; 2] {
        let rho_squared = 1.0 / self.margin.ratio();
        let pace = self.carrier.doppler(self.speed) * rho_squared.sqrt() * (2.0 * PI).sqrt();
        [1.0 / pace, libm::expm1(rho_squared) / pace]
    }

    /// Mean durations as time spans, at least a nanosecond.
    pub fn spans(&self) -> [Span; 2] {
        self.periods().map(|s| Span(libm::round(s * 1e9).max(1.0) as u64))
    }

    /// Mean durations as bits sent at `rate`, at least one. Their inverses are the transition probabilities
    /// after each bit.
    pub fn bits(&self, rate: Rate) -> [u64; 2] {
        self.periods().map(|s| libm::round(s * rate.bps() as f64).max(1.0) as u64)
    }

    /// Share of the time in the bad state: `1 - exp(-rho^2)`.
    #[cfg(test)]
    fn share_bad(&self) -> f64 {
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
        // Computed by hand: fd = 0.5556 * 2.4e9 / 2.998e8 = 4.4475 Hz, rho = 0.31623; 1 / (rho fd 2.50663) =
        // 0.28366 s, and that times exp(0.1) - 1 = 0.105171.
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
        // A margin and a rate at which no bit is ever bad still give a valid chain.
        assert_eq!(walk("900MHz", "100dB").bits(Rate::from_bps(1).unwrap())[1], 1);
    }
}
