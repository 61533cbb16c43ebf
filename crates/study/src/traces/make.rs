//! Synthetic traces.

use lasthop_proto::link::varied::{Course, OPPORTUNITY, Trace};
use lasthop_proto::rng::Stream;
use lasthop_proto::units::{Rate, Span, Time};

use crate::Error;

/// Maximum number of lines of a generated trace.
const MOST: usize = 10_000_000;
/// Milliseconds during which one satellite of a low orbit serves a terminal.
const SATELLITE: u64 = 15_000;

/// The model of a synthetic trace.
#[derive(Clone, PartialEq, Debug)]
pub enum Model {
    /// A constant rate.
    Constant { rate: Rate },
    /// One of several rates, which changes to a neighbour in the list after an exponential time.
    Markov {
        rates: Vec<Rate>,
        /// The mean time at one rate.
        dwell: Span,
    },
    /// A cellular link: opportunities are a Poisson process whose rate is a random walk between zero and the peak. It
    /// leaves zero once per second on average. This is the model of Sprout (Winstein et al., NSDI 2013). There, at a
    /// peak of 1000 packets per second, the walk has a standard deviation of 200 packets per second after one second.
    /// Here the deviation is a fifth of any peak.
    Lte {
        /// The highest rate.
        peak: Rate,
    },
    /// A low orbit: another satellite every 15 s, each with its own rate between 0.5 and 1.5 times `rate`, and an
    /// outage of `gap` at each handover. These bounds are assumptions, not measurements.
    Leo {
        /// The mean rate.
        rate: Rate,
        /// Outage at a handover.
        gap: Span,
    },
}

/// A trace of this model; equal seeds give equal traces.
///
/// # Errors
///
/// It would be too long, or shorter than a millisecond.
pub fn make(model: &Model, duration: Span, seed: u64) -> Result<Trace, Error> {
    let mut chance = Stream::new(seed, "trace");
    let millis = duration.0 / 1_000_000;
    match model {
        Model::Constant { rate } => from_rates(millis, |_| rate.bps() as f64),
        Model::Markov { rates, dwell } => {
            let (mut state, mut until) = (0_usize, 0.0);
            from_rates(millis, |ms| {
                while ms as f64 >= until {
                    state = match (state, rates.len()) {
                        // The first rate is a random one of the list.
                        _ if until == 0.0 => chance.below(rates.len() as u64) as usize,
                        (_, 1) => 0,
                        (0, _) => 1,
                        (state, n) if state + 1 == n => n - 2,
                        (state, _) => {
                            if chance.chance(0.5) {
                                state + 1
                            } else {
                                state - 1
                            }
                        }
                    };
                    until += chance.exponential(dwell.0 as f64 / 1e6).max(1e-6);
                }
                rates[state].bps() as f64
            })
        }
        Model::Lte { peak } => lte(millis, *peak, &mut chance),
        Model::Leo { rate, gap } => {
            let gap = gap.0.div_ceil(1_000_000);
            let (mut satellite, mut factor) = (None, 1.0);
            from_rates(millis, |ms| {
                if satellite != Some(ms / SATELLITE) {
                    satellite = Some(ms / SATELLITE);
                    factor = 0.5 + chance.unit();
                }
                if ms % SATELLITE < gap { 0.0 } else { rate.bps() as f64 * factor }
            })
        }
    }
}

/// The trace of a rate, in bits per second, in each millisecond. An opportunity comes at the end of the millisecond in
/// which its last bit has passed. The last opportunity is always at the end, because it sets the period.
///
/// # Errors
///
/// It would be too long, or shorter than a millisecond.
pub fn from_rates(millis: u64, mut rate: impl FnMut(u64) -> f64) -> Result<Trace, Error> {
    let bits = f64::from(OPPORTUNITY) * 8.0;
    let (mut times, mut passed) = (Vec::new(), 0.0);
    let end = u32::try_from(millis).map_err(|_| too_long())?;
    for ms in 0..end {
        passed += rate(u64::from(ms)) / 1000.0;
        while passed >= bits {
            push(&mut times, ms + 1)?;
            passed -= bits;
        }
    }
    ended(times, end)
}

/// The trace of a course of rates until `end`.
pub(super) fn from_course(course: &Course<Option<Rate>>, end: Span) -> Result<Trace, Error> {
    // The middle of a millisecond represents all of it: exact for ramps.
    let at =
        |ms: u64| course.at(Time(ms * 1_000_000 + 500_000)).map_or(0.0, |rate| rate.bps() as f64);
    from_rates(end.0 / 1_000_000, at)
}

fn push(times: &mut Vec<u32>, at: u32) -> Result<(), Error> {
    if times.len() == MOST {
        return Err(too_long());
    }
    times.push(at);
    Ok(())
}

fn too_long() -> Error {
    Error::Input {
        message: format!("the trace would have more than {MOST} lines"),
        help: "a shorter duration or a lower rate; a trace repeats by itself".to_owned(),
    }
}

/// The trace with the period `end`.
pub(super) fn ended(mut times: Vec<u32>, end: u32) -> Result<Trace, Error> {
    if times.last() != Some(&end) {
        times.push(end);
    }
    Trace::new(times).map_err(|_| Error::Input {
        message: "the trace would last for no millisecond".to_owned(),
        help: "give a longer duration".to_owned(),
    })
}

fn lte(millis: u64, peak: Rate, chance: &mut Stream) -> Result<Trace, Error> {
    /// Interval between two draws of the rate, in milliseconds.
    const STEP: u64 = 20;
    let end = u32::try_from(millis).map_err(|_| too_long())?;
    let peak = peak.bps() as f64 / (f64::from(OPPORTUNITY) * 8.0);
    let deviation = 0.2 * peak * libm::sqrt(STEP as f64 / 1000.0);
    let mut rate = peak / 2.0;
    let (mut times, mut next) = (Vec::new(), 0.0);
    for ms in 0..end {
        if u64::from(ms) % STEP == 0 {
            // The rate leaves zero once per second on average.
            if rate > 0.0 || chance.chance(STEP as f64 / 1000.0) {
                rate = (rate + deviation * normal(chance)).clamp(0.0, peak);
            }
            // The process is memoryless: the rest of a gap is drawn again at the new rate.
            next = f64::from(ms) + gap(rate, chance);
        }
        while next < f64::from(ms + 1) {
            push(&mut times, ms + 1)?;
            next += gap(rate, chance);
        }
    }
    ended(times, end)
}

/// Milliseconds until the next opportunity at `rate` per second.
fn gap(rate: f64, chance: &mut Stream) -> f64 {
    if rate > 0.0 { chance.exponential(1000.0 / rate) } else { f64::INFINITY }
}

/// A standard normal draw, after Box and Muller.
fn normal(chance: &mut Stream) -> f64 {
    let radius = libm::sqrt(chance.exponential(2.0));
    radius * libm::cos(2.0 * core::f64::consts::PI * chance.unit())
}
