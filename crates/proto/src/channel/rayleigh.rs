//! Rayleigh fading: the received power is the sum of many reflections around a moving receiver.
//!
//! The power is a sum of sinusoids after Clarke's model (Clarke 1968; Jakes 1974). The Doppler frequencies
//! are those of Paetzold's method of exact Doppler spread (Paetzold and others 1998). It gives the
//! theoretical level-crossing rate exactly in the limit, and keeps both quadratures uncorrelated. The power
//! is a function of time alone: only the phases are drawn, once. So both directions of a radio can have the
//! same fades.
//!
//! During a frame the power is sampled in the middle of equal parts, at least 64 per Doppler period. Each
//! part has the bit error rate of its signal-to-noise ratio under the given modulation.
//!
//! Not modelled: a line of sight (Rice), shadowing, several taps (frequency selectivity), symbol timing.

use core::f64::consts::PI;

use serde::Serialize;

use super::bit_errors::{EachError, FirstError, byte_of};
use super::fading;
use super::{Descriptor, ErrorModel, ErrorSpec, Errors, Model, Read};
use crate::describe::{Keys, Kind, System};
use crate::rng::Stream;
use crate::units::{Decibels, Frequency, Rate, Span, Speed, Time};

/// Number of sinusoids of the in-phase part; the quadrature has one more, so that no two frequencies are
/// equal.
const IN_PHASE: usize = 16;
const QUADRATURE: usize = IN_PHASE + 1;
const WAVES: usize = IN_PHASE + QUADRATURE;

/// Samples of the power per Doppler period.
const RESOLUTION: f64 = 64.0;
/// Limit of samples per frame: a frame longer than 64 Doppler periods is sampled less densely.
const MOST_STEPS: u32 = 4096;

/// Modulation, which maps a signal-to-noise ratio per bit to a bit error rate.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Modulation {
    /// Differential phase shift keying, as 802.11 at 1 Mb/s: `exp(-snr) / 2`.
    #[default]
    Dbpsk,
    /// Coherent phase shift keying: `erfc(sqrt(snr)) / 2`.
    Bpsk,
    /// Noncoherent frequency shift keying: `exp(-snr / 2) / 2`.
    Fsk,
}

impl Modulation {
    /// The bit error rate at the signal-to-noise ratio `snr` per bit (Proakis, *Digital Communications*, chapter 5).
    pub fn ber(self, snr: f64) -> f64 {
        0.5 * match self {
            Modulation::Dbpsk => libm::exp(-snr),
            Modulation::Bpsk => libm::erfc(snr.sqrt()),
            Modulation::Fsk => libm::exp(-0.5 * snr),
        }
    }

    /// Mean bit error rate over Rayleigh fading with the mean ratio `snr` (Proakis, section 14.3).
    #[cfg(test)]
    fn mean_ber(self, snr: f64) -> f64 {
        match self {
            Modulation::Dbpsk => 0.5 / (1.0 + snr),
            Modulation::Bpsk => 0.5 * (1.0 - (snr / (1.0 + snr)).sqrt()),
            Modulation::Fsk => 1.0 / (2.0 + snr),
        }
    }
}

/// Names of the modulations.
const MODULATIONS: [(&str, Modulation); 3] =
    [("dbpsk", Modulation::Dbpsk), ("bpsk", Modulation::Bpsk), ("fsk", Modulation::Fsk)];

/// The power fades as for a receiver that moves between reflections (parsa98 5.3).
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Rayleigh {
    /// Speed.
    pub speed: Speed,
    /// Carrier frequency.
    pub carrier: Frequency,
    /// Mean signal-to-noise ratio per bit.
    pub snr: Decibels,
    /// Modulation.
    pub modulation: Modulation,
}

impl Model for Rayleigh {
    const WORDS: &'static [Descriptor<Read>] = &[Descriptor {
        word: "rayleigh",
        system: System::new(
            Kind::Channel,
            "rayleigh",
            "path: errors = { model = \"rayleigh\", speed = \"2km/h\", carrier = \"2.4GHz\", snr = \"20dB\" }",
            "the received power fades as for a host that moves among reflections",
            "Clarke 1968, Jakes 1974",
        )
        .tier(0),
        read,
    }];

    type Errors = RayleighErrors;

    fn errors(&self, mut stream: Stream, states: Option<Stream>) -> RayleighErrors {
        let phases = states.unwrap_or_else(|| Stream::new(stream.next_u64(), "rayleigh.phases"));
        let doppler = self.carrier.doppler(self.speed);
        RayleighErrors::new(doppler, self.snr, self.modulation, stream, phases)
    }

    fn goes_by_time(&self) -> bool {
        true
    }
}

fn read(k: &mut Keys<'_>, _: Rate) -> ErrorSpec {
    let (speed, carrier) = fading::motion(k);
    let speed = k.demand("speed", speed, fading::WALK.0);
    let carrier = k.demand("carrier", carrier, fading::WALK.1);
    let snr = fading::decibels(k, "snr", -50.0..=100.0, "the mean signal-to-noise ratio per bit");
    let snr = k.demand("snr", snr, Decibels::ZERO);
    let mut modulation = Modulation::default();
    k.word("modulation", &mut modulation, &MODULATIONS, "the modulation");
    // Reciprocity: waves take the same paths in both directions.
    let mut reciprocal = true;
    k.flag("reciprocal", &mut reciprocal, "whether both directions have the same fades");
    let model = ErrorModel::Rayleigh(Rayleigh { speed, carrier, snr, modulation });
    ErrorSpec { reciprocal, ..model.into() }
}

/// The power of a fading signal, with mean 1, as a function of time.
#[derive(Clone, Debug)]
struct Power {
    /// Frequency in hertz and phase in cycles of each sinusoid.
    waves: [(f64, f64); WAVES],
}

/// The sinusoids at one time, and their rotation from one sample to the next.
struct Phasors {
    now: [(f64, f64); WAVES],
    step: [(f64, f64); WAVES],
}

impl Power {
    fn new(doppler: f64, mut phases: Stream) -> Power {
        let waves = core::array::from_fn(|i| {
            let (n, of) = if i < IN_PHASE { (i, IN_PHASE) } else { (i - IN_PHASE, QUADRATURE) };
            let frequency = doppler * libm::sin(PI / (2.0 * of as f64) * (n as f64 + 0.5));
            (frequency, phases.unit())
        });
        Power { waves }
    }

    /// The sinusoids at `at` nanoseconds, for samples every `step` nanoseconds.
    fn phasors(&self, at: f64, step: f64) -> Phasors {
        let circle = |cycles: f64| {
            // Whole cycles are removed first: late in a long run the angle would lose precision.
            let (sin, cos) = libm::sincos(2.0 * PI * (cycles - cycles.floor()));
            (cos, sin)
        };
        Phasors {
            now: self.waves.map(|(f, phase)| circle(f * (at * 1e-9) + phase)),
            step: self
                .waves
                .map(|(f, _)| if step > 0.0 { circle(f * (step * 1e-9)) } else { (1.0, 0.0) }),
        }
    }
}

impl Phasors {
    fn power(&self) -> f64 {
        let sum = |part: &[(f64, f64)]| part.iter().map(|(cos, _)| cos).sum::<f64>();
        let (i, q) = (sum(&self.now[..IN_PHASE]), sum(&self.now[IN_PHASE..]));
        i * i / IN_PHASE as f64 + q * q / QUADRATURE as f64
    }

    fn advance(&mut self) {
        for ((cos, sin), (c, s)) in self.now.iter_mut().zip(&self.step) {
            (*cos, *sin) = (*cos * c - *sin * s, *sin * c + *cos * s);
        }
    }
}

/// A Rayleigh fading channel.
#[derive(Clone, Debug)]
pub struct RayleighErrors {
    stream: Stream,
    power: Power,
    /// Maximum Doppler shift, hertz.
    doppler: f64,
    /// Mean signal-to-noise ratio per bit.
    snr: f64,
    modulation: Modulation,
}

impl RayleighErrors {
    /// A channel with the maximum Doppler shift `doppler` in hertz and the mean signal-to-noise ratio `snr`
    /// per bit. Errors are drawn from `stream`, the fading from `phases`.
    pub fn new(
        doppler: f64,
        snr: Decibels,
        modulation: Modulation,
        stream: Stream,
        phases: Stream,
    ) -> RayleighErrors {
        RayleighErrors {
            stream,
            power: Power::new(doppler, phases),
            doppler,
            snr: snr.ratio(),
            modulation,
        }
    }

    /// Number of parts of a frame.
    fn steps(&self, duration: Span) -> u32 {
        let steps = libm::ceil(duration.as_secs_f64() * self.doppler * RESOLUTION);
        // A float outside the range saturates.
        (steps as u32).clamp(1, MOST_STEPS)
    }

    /// Calls `part` with the hazard of a bit in each of the equal parts of a frame, until it returns that no
    /// more are needed.
    fn divide(
        &self,
        start: Time,
        duration: Span,
        mut part: impl FnMut(f64, f64) -> bool,
        bits: f64,
    ) {
        let steps = self.steps(duration);
        let step = duration.0 as f64 / f64::from(steps);
        let turn = if steps > 1 { step } else { 0.0 };
        let mut phasors = self.power.phasors(start.0 as f64 + 0.5 * step, turn);
        let bits = bits / f64::from(steps);
        for _ in 0..steps {
            let ber = self.modulation.ber(self.snr * phasors.power());
            if part(bits, -libm::log1p(-ber)) {
                return;
            }
            phasors.advance();
        }
    }
}

impl Errors for RayleighErrors {
    fn pass(&mut self, start: Time, duration: Span, bytes: u32) -> Option<u32> {
        let mut error = FirstError::draw(&mut self.stream);
        let mut hit = None;
        let walk = |bits, hazard| {
            hit = error.walk(bits, hazard);
            hit.is_some()
        };
        self.divide(start, duration, walk, 8.0 * f64::from(bytes));
        hit.map(|bit| byte_of(bit, bytes))
    }

    fn pass_symbols(
        &mut self,
        start: Time,
        duration: Span,
        bytes: u32,
        hit: &mut dyn FnMut(u32),
    ) -> bool {
        let mut stream = self.stream.clone();
        let mut errors = EachError::draw(&mut stream, bytes);
        let walk = |bits, hazard| {
            errors.walk(&mut stream, bits, hazard, hit);
            false
        };
        self.divide(start, duration, walk, 8.0 * f64::from(bytes));
        self.stream = stream;
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOPPLER: f64 = 4.4475;

    fn channel(snr: f64, modulation: Modulation, seed: u64) -> RayleighErrors {
        let stream = |name| Stream::new(seed, name);
        let snr = Decibels::new(snr).unwrap();
        RayleighErrors::new(
            DOPPLER,
            snr,
            modulation,
            stream("radio.errors"),
            stream("radio.states"),
        )
    }

    /// Samples of the power, `per` per Doppler period.
    fn samples(seed: u64, per: f64, n: usize) -> Vec<f64> {
        let power = Power::new(DOPPLER, Stream::new(seed, "radio.states"));
        let step = 1e9 / (DOPPLER * per);
        (0..n).map(|i| power.phasors(i as f64 * step, 0.0).power()).collect()
    }

    #[test]
    fn level_crossing_rate_and_fade_duration_match_the_theory() {
        // parsa98 5.3.2 relies on these two figures: rate and duration of the envelope's fades below a level.
        let (per, n) = (400.0, 1_200_000);
        let powers = samples(1, per, n);
        for (margin, tolerance) in [(3.0, 0.03), (10.0, 0.05), (20.0, 0.08)] {
            let level = libm::pow(10.0, -margin / 10.0);
            let down = powers.windows(2).filter(|w| w[0] >= level && w[1] < level).count() as f64;
            let below = powers.iter().filter(|p| **p < level).count() as f64;
            let periods = n as f64 / per;
            let rate = (2.0 * PI * level).sqrt() * libm::exp(-level);
            let fade = libm::expm1(level) / (2.0 * PI * level).sqrt();
            assert!((down / periods / rate - 1.0).abs() < tolerance, "{margin} dB: {down}");
            let measured = below / down / per;
            assert!((measured / fade - 1.0).abs() < tolerance, "{margin} dB: {measured} {fade}");
        }
    }

    #[test]
    fn the_mean_power_is_one_and_its_distribution_exponential() {
        let powers = samples(2, 3.7, 400_000);
        let mean = powers.iter().sum::<f64>() / powers.len() as f64;
        assert!((mean - 1.0).abs() < 0.01, "{mean}");
        for level in [0.1, 0.5, 1.0, 2.0] {
            let share = powers.iter().filter(|p| **p < level).count() as f64 / powers.len() as f64;
            let want = -libm::expm1(-level);
            assert!((share / want - 1.0).abs() < 0.035, "{level}: {share} {want}");
        }
    }

    #[test]
    fn the_mean_bit_error_rate_matches_the_closed_form() {
        let powers = samples(3, 3.7, 400_000);
        for modulation in [Modulation::Dbpsk, Modulation::Bpsk, Modulation::Fsk] {
            for db in [0.0, 10.0, 20.0] {
                let snr = libm::pow(10.0, db / 10.0);
                let mean = powers.iter().map(|p| modulation.ber(snr * p)).sum::<f64>()
                    / powers.len() as f64;
                let want = modulation.mean_ber(snr);
                // With sixteen sinusoids the deepest fades are about 2 % too rare.
                assert!((mean / want - 1.0).abs() < 0.05, "{modulation:?} {db} dB: {mean} {want}");
            }
        }
    }

    #[test]
    fn frame_error_rates_follow_from_bit_error_rates() {
        // One-byte frames with independent fading: eight bits at the mean rate, but all in the same fade.
        let mut channel = channel(10.0, Modulation::Dbpsk, 4);
        let n = 200_000_u64;
        let hits = (0..n)
            .filter(|i| channel.pass(Time(i * 61_000_000), Span::micros(8), 1).is_some())
            .count() as f64;
        // The mean of 1 - (1 - ber)^8 over exponential power, by the trapezoid rule.
        let steps = 200_000;
        let width = 40.0 / f64::from(steps);
        let bad = |p: f64| 1.0 - libm::pow(1.0 - Modulation::Dbpsk.ber(10.0 * p), 8.0);
        let want: f64 = (0..steps)
            .map(|i| (f64::from(i) + 0.5) * width)
            .map(|p| bad(p) * libm::exp(-p) * width)
            .sum();
        assert!((hits / n as f64 / want - 1.0).abs() < 0.05, "{} {want}", hits / n as f64);
    }

    #[test]
    fn errors_occur_only_where_a_fade_meets_the_frame() {
        let mut channel = channel(30.0, Modulation::Dbpsk, 5);
        let period = 1e9 / DOPPLER;
        let deep = (0..1_000_000)
            .map(|i| f64::from(i) * period / 100.0)
            .find(|at| channel.power.phasors(*at, 0.0).power() < 1e-3)
            .unwrap();
        let frame = |channel: &mut RayleighErrors, at: f64| {
            channel.pass(Time(at as u64), Span::micros(10), 1500)
        };
        assert!(frame(&mut channel, deep).is_some());
        let high = (0..1_000).map(|i| deep + f64::from(i) * period / 100.0);
        let high =
            high.into_iter().find(|at| channel.power.phasors(*at, 0.0).power() > 0.1).unwrap();
        assert_eq!(frame(&mut channel, high), None);
        // A frame that begins at high power and ends in the fade is damaged near its end.
        let begin = (0..1_000).map(|i| deep - f64::from(i) * period / 100.0);
        let begin =
            begin.into_iter().find(|at| channel.power.phasors(*at, 0.0).power() > 0.1).unwrap();
        let hit = channel.pass(Time(begin as u64), Span((deep - begin) as u64), 1500);
        assert!(hit.is_some_and(|at| at > 750), "{hit:?}");
    }

    #[test]
    fn advancing_phasors_equals_recomputing_them() {
        let power = Power::new(100.0, Stream::new(6, "radio.states"));
        let step = 1e9 / 6400.0;
        let mut phasors = power.phasors(5e9, step);
        (0..4096).for_each(|_| phasors.advance());
        let recomputed = power.phasors(5e9 + 4096.0 * step, 0.0);
        assert!((phasors.power() - recomputed.power()).abs() < 1e-7);
    }
}
