//! Synthetic traces.

use std::fmt::Write as _;

use lasthop_proto::link::varied::{Course, MOST, OPPORTUNITY, Trace, TraceError};
use lasthop_proto::rng::Stream;
use lasthop_proto::units::{Rate, Span, Time};

use crate::Error;

/// Milliseconds during which one satellite of a low orbit serves a terminal.
const SATELLITE: u64 = 15_000;
/// Milliseconds that the first satellite has already served it.
const FIRST: u64 = 6_300;

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
    /// A terminal of Starlink: another satellite every 15 s with another rate, and a gap between two. The
    /// figures are those of a record of 120 s by LeoCC (SIGCOMM 2025): gaps of 59 to 135 ms at each change, rates of
    /// 0.75 to 1.45 times the mean over the time of a satellite, which vary by a tenth from 100 ms to 100 ms.
    Starlink {
        /// The mean rate.
        rate: Rate,
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
        Model::Starlink { rate } => {
            let gaps = gaps(millis, seed);
            let (mut satellite, mut window, mut factor, mut part) = (None, None, 1.0, 1.0);
            from_rates(millis, |ms| {
                if satellite.replace((ms + FIRST) / SATELLITE) != Some((ms + FIRST) / SATELLITE) {
                    factor = 0.75 + 0.5 * chance.unit() + 0.2 * chance.unit() * chance.unit();
                }
                if window.replace(ms / 100) != Some(ms / 100) {
                    part = (1.0 + 0.1 * normal(&mut chance)).clamp(0.6, 1.4);
                }
                let out = gaps.iter().any(|(at, long)| (*at..at + long).contains(&ms));
                if out { 0.0 } else { rate.bps() as f64 * factor * part }
            })
        }
    }
}

/// Start and duration of the gaps of a Starlink trace with this seed, milliseconds.
fn gaps(millis: u64, seed: u64) -> Vec<(u64, u64)> {
    let mut chance = Stream::new(seed, "trace.gaps");
    let starts = (0..).map(|n| SATELLITE - FIRST + n * SATELLITE).take_while(|at| *at < millis);
    starts.map(|at| (at, 59 + chance.below(135 - 59 + 1))).collect()
}

/// Milliseconds between two delays of [`starlink_delays`].
const DELAYS_STEP: u64 = 10;
/// The mean delay outside of gaps in milliseconds.
const DELAY_MS: f64 = 10.5;

/// One-way delays of the Starlink trace with this seed, in milliseconds, every 10 ms. In the record of LeoCC they are
/// 7 to 16 ms with a mean of 10.7 ms. Packets that are sent within a gap arrive after it, with up to 68 ms.
pub(super) fn starlink_delays(duration: Span, seed: u64) -> Vec<u32> {
    let millis = duration.0 / 1_000_000;
    let gaps = gaps(millis, seed);
    let mut chance = Stream::new(seed, "trace.delays");
    let mut delay = DELAY_MS;
    let steps = (0..millis / DELAYS_STEP).map(|step| {
        let at = step * DELAYS_STEP;
        // Each value is half of the one before and half of a new one.
        delay = (delay + DELAY_MS + 1.8 * normal(&mut chance)) / 2.0;
        let after = gaps.iter().find(|(start, long)| (*start..start + long + 20).contains(&at));
        let late =
            after.map_or(0.0, |(start, long)| (start + long - at.min(start + long)) as f64 / 2.0);
        libm::round(f64::max(delay.clamp(7.0, 16.0), late)) as u32
    });
    steps.collect()
}

/// Rates and delays of a Starlink terminal over time, a row per 20 ms, as a file for `measured` of a link: those of the
/// trace with this seed. `delay_ms` is the mean delay.
///
/// # Errors
///
/// As of [`make`].
pub fn starlink_table(
    rate: Rate,
    delay_ms: f64,
    duration: Span,
    seed: u64,
) -> Result<String, Error> {
    const ROW: u64 = 20;
    let trace = make(&Model::Starlink { rate }, duration, seed)?;
    let rates = super::statistics(&trace, ROW as u32).windows_bps;
    let delays = starlink_delays(duration, seed);
    let mut text = "time (s),rate (bit),delay (ms)\n".to_owned();
    for (row, bps) in (0..).zip(rates) {
        let index = (row * ROW / DELAYS_STEP) as usize;
        let drawn = delays.get(index).map_or(DELAY_MS, |ms| f64::from(*ms));
        let delay = f64::max(drawn + delay_ms - DELAY_MS, 0.1);
        let _ = writeln!(text, "{:.2},{bps:.0},{delay:.1}", (row * ROW) as f64 / 1e3);
    }
    let _ = writeln!(text, "{},again,", duration.as_secs_f64());
    Ok(text)
}

/// The trace of a rate, in bits per second, in each millisecond. An opportunity comes at the end of the millisecond in
/// which its last bit has passed. The last opportunity is always at the end, because it sets the period.
///
/// # Errors
///
/// It would be too long, or shorter than a millisecond.
pub fn from_rates(millis: u64, mut rate: impl FnMut(u64) -> f64) -> Result<Trace, Error> {
    let bits = f64::from(OPPORTUNITY) * 8.0;
    let end = u32::try_from(millis).map_err(|_| too_long())?;
    let (mut counts, mut passed, mut lines) = (Vec::new(), 0.0, 0);
    for ms in 0..end {
        passed += rate(u64::from(ms)) / 1000.0;
        let count = libm::floor(passed / bits).max(0.0);
        if count > 0.0 {
            passed -= count * bits;
            counts.push((ms + 1, count as u64));
            lines += count as usize;
        }
        if lines > MOST {
            return Err(too_long());
        }
    }
    if counts.last().is_none_or(|(at, _)| *at != end) {
        counts.push((end, 1));
    }
    made(Trace::counted(counts))
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
        help: "a shorter duration or a lower rate, since a trace repeats; `convert --to csv` has no such limit".to_owned(),
    }
}

/// The trace with the period `end`.
pub(super) fn ended(mut times: Vec<u32>, end: u32) -> Result<Trace, Error> {
    if times.last() != Some(&end) {
        times.push(end);
    }
    made(Trace::new(times))
}

fn made(trace: Result<Trace, TraceError>) -> Result<Trace, Error> {
    trace.map_err(|error| match error {
        TraceError::TooLong => too_long(),
        _ => Error::Input {
            message: "the trace would last for no millisecond".to_owned(),
            help: "give a longer duration".to_owned(),
        },
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
