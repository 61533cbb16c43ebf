//! Channels that alternate between good and bad: by time (bakshi96 3.1) and by bit (parsa98 5.3.2).

use serde::Serialize;

use super::bit_errors::{EachError, FirstError, byte_of, hazard};
use super::fading::{self, Fading};
use super::states::States;
use super::{Descriptor, ErrorModel, ErrorSpec, Errors, Model, Read, Turns, TwoStateBits};
use crate::describe::{Keys, Kind, System};
use crate::rng::Stream;
use crate::units::{Decibels, Probability, Rate, Span, Time};

/// A Markov channel with exponential good and bad periods (bakshi96 3.1).
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct TwoState {
    /// Mean time in the good state.
    pub good: Span,
    /// Mean time in the bad state.
    pub bad: Span,
    /// Bit error rate in the good state.
    pub ber_good: Probability,
    /// Bit error rate in the bad state.
    pub ber_bad: Probability,
    /// Whether the times are constant instead of exponential.
    pub deterministic: bool,
}

impl Model for TwoState {
    const WORDS: &'static [Descriptor<Read>] = &[Descriptor {
        word: "two-state",
        system: System::new(
            Kind::Channel,
            "two-state",
            "path: errors = { model = \"two-state\", good = \"10s\", bad = \"1s\", ber-bad = 1e-2 }",
            "a channel that is good or bad for a while, by time or by bits",
            "bakshi96 3.1, parsa98 5.3.2",
        ),
        read,
    }];

    type Errors = TwoStateErrors;

    fn errors(&self, stream: Stream, states: Option<Stream>) -> TwoStateErrors {
        let (means, bers) = ([self.good, self.bad], [self.ber_good, self.ber_bad]);
        match states {
            None => TwoStateErrors::new(means, bers, self.deterministic, stream),
            Some(states) => {
                TwoStateErrors::with_states(means, bers, self.deterministic, stream, states)
            }
        }
    }

    fn goes_by_time(&self) -> bool {
        true
    }
}

/// Three ways to specify the durations of the states, each with its keys: by bits, by time, by speed.
const WAYS: [&[&str]; 3] = [
    &["good-bits", "bad-bits"],
    &["good", "bad", "deterministic"],
    &["speed", "carrier", "margin", "clock"],
];

/// Reads every key; the combination is checked afterwards.
fn read(k: &mut Keys<'_>, rate: Rate) -> ErrorSpec {
    let mut ber_good = Probability::ZERO;
    k.probability("ber-good", &mut ber_good, "the bit error rate in the good state");
    let ber_bad = k.needed_probability("ber-bad", "1e-2", "the bit error rate in the bad state");
    let (mut good, mut bad, mut deterministic) = (None, None, false);
    let times = Span::micros(1)..=Span::secs(86_400);
    k.maybe("good", &mut good, times.clone(), "the mean time in the good state");
    k.maybe("bad", &mut bad, times, "the mean time in the bad state");
    k.flag(
        "deterministic",
        &mut deterministic,
        "whether these times are constant, not exponential",
    );
    let (mut good_bits, mut bad_bits) = (None, None);
    k.maybe_count(
        "good-bits",
        &mut good_bits,
        1..=1 << 50,
        "the mean length of a good period in bits",
    );
    k.maybe_count(
        "bad-bits",
        &mut bad_bits,
        1..=1 << 50,
        "the mean length of a bad period in bits",
    );
    let (speed, carrier) = fading::motion(k);
    let margin =
        fading::decibels(k, "margin", -3.0..=60.0, "how far the power may fall below its mean");
    let mut by_bits = false;
    let clocks = [("time", false), ("bits", true)];
    let doc = "whether the periods of a moving host are times or numbers of bits";
    k.word("clock", &mut by_bits, &clocks, doc);

    let mut given = WAYS.into_iter().filter_map(|keys| k.first(keys));
    if let (Some(one), Some(other)) = (given.next(), given.next()) {
        k.refuse(
            one,
            format!("`{one}` and `{other}` exclude each other"),
            "states by bits, by time, or by speed",
            "give `good` and `bad` as times, or `good-bits` and `bad-bits` as numbers of bits, or `speed`, `carrier` \
             and `margin` of a moving host",
        );
    }
    let by_speed = k.first(WAYS[2]).is_some();
    let model = if by_speed {
        let fading = Fading {
            speed: k.demand("speed", speed, fading::WALK.0),
            carrier: k.demand("carrier", carrier, fading::WALK.1),
            margin: k.demand("margin", margin, Decibels::ZERO),
        };
        walker(&fading, by_bits.then_some(rate), ber_good, ber_bad)
    } else if k.first(WAYS[0]).is_some() {
        let good_bits = k.demand("good-bits", good_bits, 1);
        let bad_bits = k.demand("bad-bits", bad_bits, 1);
        ErrorModel::TwoStateBits(TwoStateBits { good_bits, bad_bits, ber_good, ber_bad })
    } else {
        let good = k.demand("good", good, Span::secs(1));
        let bad = k.demand("bad", bad, Span::secs(1));
        ErrorModel::TwoState(TwoState { good, bad, ber_good, ber_bad, deterministic })
    };
    let by_time = model.goes_by_time();
    let mut spec = ErrorSpec { reciprocal: by_speed && by_time, ..model.into() };
    k.flag("reciprocal", &mut spec.reciprocal, "whether both directions have the same fades");
    k.flag(
        "tell-turns",
        &mut spec.tell_turns,
        "whether state changes are reported to the stages next to the radio",
    );
    if spec.reciprocal && !by_time {
        k.refuse(
            "reciprocal",
            "both directions cannot share states that depend on the bits sent",
            "needs states by time",
            "give `good` and `bad` as times, or `speed` with `clock = \"time\"`",
        );
    }
    spec
}

/// Periods of a walker in Rayleigh fading (parsa98 5.3.2), in bits of a rate or in time.
fn walker(
    fading: &Fading,
    rate: Option<Rate>,
    ber_good: Probability,
    ber_bad: Probability,
) -> ErrorModel {
    match rate {
        Some(rate) => {
            let [good_bits, bad_bits] = fading.bits(rate);
            ErrorModel::TwoStateBits(TwoStateBits { good_bits, bad_bits, ber_good, ber_bad })
        }
        None => {
            let [good, bad] = fading.spans();
            let deterministic = false;
            ErrorModel::TwoState(TwoState { good, bad, ber_good, ber_bad, deterministic })
        }
    }
}

/// Above this number of mean cycles, states are averaged instead of iterated. It bounds the work for a
/// channel that changes every nanosecond; after so many cycles the state is independent of the first one.
const MANY_CYCLES: u64 = 1024;

/// Hazards of a bit in the bad (index 0) and in the good state (index 1).
pub(super) fn hazards(ber_good: Probability, ber_bad: Probability) -> [f64; 2] {
    [hazard(ber_bad), hazard(ber_good)]
}

/// A channel with good and bad periods that do not depend on transmissions.
#[derive(Clone, Debug)]
pub struct TwoStateErrors {
    stream: Stream,
    hazards: [f64; 2],
    periods: Periods,
}

impl TwoStateErrors {
    /// A channel that begins good at time zero. A state with a mean time of zero never occurs; if both are
    /// zero, the channel is always good. Errors and states are drawn from the same stream.
    pub fn new(
        [good, bad]: [Span; 2],
        [ber_good, ber_bad]: [Probability; 2],
        deterministic: bool,
        mut stream: Stream,
    ) -> TwoStateErrors {
        let periods = Periods::Mixed(Mixed::new([good, bad], deterministic, &mut stream));
        TwoStateErrors { stream, hazards: hazards(ber_good, ber_bad), periods }
    }

    /// Like [`TwoStateErrors::new`], with states from a separate stream, which depend on the time alone.
    pub fn with_states(
        means: [Span; 2],
        bers: [Probability; 2],
        deterministic: bool,
        stream: Stream,
        states: Stream,
    ) -> TwoStateErrors {
        match States::new(means, deterministic, states) {
            Some(states) => TwoStateErrors {
                stream,
                hazards: hazards(bers[0], bers[1]),
                periods: Periods::Apart(states),
            },
            None => TwoStateErrors::new(means, bers, deterministic, stream),
        }
    }

    /// Calls `part` with the bits of a frame and their hazard, state by state; the states end with the frame.
    fn divide(
        &mut self,
        start: Time,
        duration: Span,
        bytes: u32,
        mut part: impl FnMut(&mut Stream, f64, f64),
    ) {
        let TwoStateErrors { stream, hazards, periods } = self;
        let bits = 8.0 * f64::from(bytes);
        let end = start + duration;
        periods.advance(start, stream);
        if periods.until() >= end {
            part(stream, bits, hazards[usize::from(periods.is_good())]);
            return;
        }
        // The states divide the frame; its bits are evenly distributed over its time.
        let rate = bits / duration.0 as f64;
        let mut from = start;
        if periods.is_long(duration) {
            let good = periods.share_good();
            let mean = hazards[1] * good + hazards[0] * (1.0 - good);
            part(stream, bits, mean);
        } else {
            while periods.until() < end {
                let bits = periods.until().since(from).0 as f64 * rate;
                part(stream, bits, hazards[usize::from(periods.is_good())]);
                from = periods.until();
                periods.turn(stream);
            }
            let rest = end.since(from).0 as f64 * rate;
            part(stream, rest, hazards[usize::from(periods.is_good())]);
        }
        periods.advance(end, stream);
    }
}

impl Errors for TwoStateErrors {
    fn pass(&mut self, start: Time, duration: Span, bytes: u32) -> Option<u32> {
        let mut error = FirstError::draw(&mut self.stream);
        let mut hit = None;
        let walk = |_: &mut Stream, bits, hazard| {
            hit = hit.or_else(|| error.walk(bits, hazard));
        };
        self.divide(start, duration, bytes, walk);
        hit.map(|bit| byte_of(bit, bytes))
    }

    fn pass_symbols(
        &mut self,
        start: Time,
        duration: Span,
        bytes: u32,
        hit: &mut dyn FnMut(u32),
    ) -> bool {
        let mut errors = EachError::draw(&mut self.stream, bytes);
        let walk = |stream: &mut Stream, bits, hazard| errors.walk(stream, bits, hazard, hit);
        self.divide(start, duration, bytes, walk);
        false
    }

    fn is_good(&self) -> bool {
        self.periods.is_good()
    }

    fn next_turn(&self) -> Option<Time> {
        Some(self.periods.until()).filter(|until| *until != Time::NEVER)
    }

    fn advance(&mut self, now: Time) {
        self.periods.advance(now, &mut self.stream);
    }

    fn turns(&self) -> Option<Turns> {
        match &self.periods {
            Periods::Mixed(_) => None,
            Periods::Apart(states) => Some(Turns(states.clone())),
        }
    }
}

/// Good and bad periods: drawn between the errors of frames, or from a separate stream.
#[derive(Clone, Debug)]
enum Periods {
    Mixed(Mixed),
    Apart(States),
}

impl Periods {
    fn is_good(&self) -> bool {
        match self {
            Periods::Mixed(mixed) => mixed.good,
            Periods::Apart(states) => states.is_good(),
        }
    }

    fn until(&self) -> Time {
        match self {
            Periods::Mixed(mixed) => mixed.until,
            Periods::Apart(states) => states.until(),
        }
    }

    fn turn(&mut self, stream: &mut Stream) {
        match self {
            Periods::Mixed(mixed) => mixed.turn(stream),
            Periods::Apart(states) => states.turn(),
        }
    }

    fn advance(&mut self, now: Time, stream: &mut Stream) {
        match self {
            Periods::Mixed(mixed) => mixed.advance(now, stream),
            Periods::Apart(states) => states.advance(now),
        }
    }

    fn share_good(&self) -> f64 {
        match self {
            Periods::Mixed(mixed) => mixed.means[1].0 as f64 / mixed.cycle().0 as f64,
            Periods::Apart(states) => states.share_good(),
        }
    }

    fn is_long(&self, duration: Span) -> bool {
        match self {
            Periods::Mixed(mixed) => duration > mixed.cycle() * MANY_CYCLES,
            Periods::Apart(states) => states.is_long(duration),
        }
    }
}

/// Periods whose draws come from the stream of the errors when needed.
#[derive(Clone, Debug)]
struct Mixed {
    /// Mean time in the bad (index 0) and in the good state (index 1).
    means: [Span; 2],
    deterministic: bool,
    good: bool,
    /// End of the present state.
    until: Time,
}

impl Mixed {
    fn new([good, bad]: [Span; 2], deterministic: bool, stream: &mut Stream) -> Mixed {
        let mut mixed = Mixed {
            means: [bad, good],
            deterministic,
            good: good != Span::ZERO || bad == Span::ZERO,
            until: Time::NEVER,
        };
        if good != Span::ZERO && bad != Span::ZERO {
            mixed.until = Time::ZERO + mixed.sojourn(stream);
        }
        mixed
    }

    fn sojourn(&self, stream: &mut Stream) -> Span {
        let mean = self.means[usize::from(self.good)];
        let drawn = if self.deterministic {
            mean
        } else {
            Span(libm::round(stream.exponential(mean.0 as f64)) as u64)
        };
        // At least a nanosecond, so that time advances.
        Span(drawn.0.max(1))
    }

    fn turn(&mut self, stream: &mut Stream) {
        self.good = !self.good;
        self.until += self.sojourn(stream);
    }

    fn cycle(&self) -> Span {
        self.means[0] + self.means[1]
    }

    fn advance(&mut self, now: Time, stream: &mut Stream) {
        // `Time::NEVER` means no change at all and cannot be reached.
        let now = now.min(Time(Time::NEVER.0 - 1));
        if self.until > now {
            return;
        }
        let behind = now.since(self.until);
        if self.deterministic {
            // Whole cycles change nothing.
            self.until += self.cycle() * (behind.0 / self.cycle().0);
        } else if behind > self.cycle() * MANY_CYCLES {
            // The state has the stationary distribution, and its remainder is exponential again.
            let good = self.means[1].0 as f64 / self.cycle().0 as f64;
            self.good = stream.chance(good);
            self.until = now + self.sojourn(stream);
        }
        while self.until <= now {
            self.turn(stream);
        }
    }
}

#[cfg(test)]
mod tests;
