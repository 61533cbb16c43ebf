//! Synthetic traces.

use lasthop_proto::link::varied::{Course, OPPORTUNITY, Trace};
use lasthop_proto::rng::Stream;
use lasthop_proto::units::{Rate, Span, Time};

use crate::Error;

/// Most lines of a trace that is made.
const MOST: usize = 10_000_000;
/// How long one satellite of a low orbit serves a terminal.
const SATELLITE: u64 = 15_000;

/// What a synthetic trace is like.
#[derive(Clone, PartialEq, Debug)]
pub enum Model {
    /// The same rate at all times.
    Constant {
        /// The rate.
        rate: Rate,
    },
    /// One of several rates, which goes to a neighbour in the list after an exponential time.
    Markov {
        /// The rates.
        rates: Vec<Rate>,
        /// The mean time in one of them.
        dwell: Span,
    },
    /// As a cellular link: opportunities are a Poisson process whose rate walks at random between nothing and the peak;
    /// at nothing it stays until it escapes, once in a second. That is the model of Sprout (Winstein and others, NSDI
    /// 2013), whose walk has a standard deviation of 200 packets per second after a second where the peak is 1000 packets
    /// per second; here a fifth of any peak.
    Lte {
        /// The highest rate.
        peak: Rate,
    },
    /// As a low orbit: another satellite every 15 s, each with a rate of its own between half of `rate` and half as much
    /// again, and nothing for `gap` when it takes over. The figures within those bounds are ours, not measured.
    Leo {
        /// The mean rate.
        rate: Rate,
        /// How long nothing is carried at a hand-off.
        gap: Span,
    },
}

/// A trace of this model; the same seed makes the same trace.
///
/// # Errors
/// When it would be too long, or last for no millisecond.
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
                        // The first stay is in any of them.
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

/// The trace of a rate, in bits per second, in each of so many milliseconds. An opportunity comes at the end of the
/// millisecond in which its last bit has passed. The last one stands at the end whatever is left, since it is the period.
///
/// # Errors
/// When it would be too long, or last for no millisecond.
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
    // The middle of a millisecond stands for all of it: exact for ramps.
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

/// The trace that ends at `end`.
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
    /// How often the rate is drawn anew, in milliseconds.
    const STEP: u64 = 20;
    let end = u32::try_from(millis).map_err(|_| too_long())?;
    let peak = peak.bps() as f64 / (f64::from(OPPORTUNITY) * 8.0);
    let deviation = 0.2 * peak * libm::sqrt(STEP as f64 / 1000.0);
    let mut rate = peak / 2.0;
    let (mut times, mut next) = (Vec::new(), 0.0);
    for ms in 0..end {
        if u64::from(ms) % STEP == 0 {
            // At nothing it stays unless it escapes, once in a second.
            if rate > 0.0 || chance.chance(STEP as f64 / 1000.0) {
                rate = (rate + deviation * normal(chance)).clamp(0.0, peak);
            }
            // The process has no memory: what is left of a gap is drawn anew at the new rate.
            next = f64::from(ms) + gap(rate, chance);
        }
        while next < f64::from(ms + 1) {
            push(&mut times, ms + 1)?;
            next += gap(rate, chance);
        }
    }
    ended(times, end)
}

/// Milliseconds until the next opportunity at so many a second.
fn gap(rate: f64, chance: &mut Stream) -> f64 {
    if rate > 0.0 { chance.exponential(1000.0 / rate) } else { f64::INFINITY }
}

/// A normal draw with mean 0 and deviation 1, after Box and Muller.
fn normal(chance: &mut Stream) -> f64 {
    let radius = libm::sqrt(chance.exponential(2.0));
    radius * libm::cos(2.0 * core::f64::consts::PI * chance.unit())
}
