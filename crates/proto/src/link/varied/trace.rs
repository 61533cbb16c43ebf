//! Traces in the format of Mahimahi's `mm-link`: the capacity of a link over time.
//!
//! A line is a time in whole milliseconds, and means one opportunity to deliver 1504 bytes at that time; a
//! time may occur several times. After the last line the trace repeats, later by the last line's time. A
//! packet counts with the four bytes that a TUN device adds. Several packets may share an opportunity. A
//! packet that does not fit continues in the next one, and arrives with its last byte. Unused opportunities
//! are lost: a packet uses the first opportunity later than its arrival.

use std::sync::Arc;

use serde::ser::SerializeStruct as _;
use serde::{Serialize, Serializer};

use super::light::{self, Light, Train};
use crate::units::{Rate, Span, Time};

/// Bytes per opportunity.
pub const OPPORTUNITY: u32 = 1504;
/// Bytes that a TUN device adds to each packet.
pub(super) const TUN_HEADER: u32 = 4;
/// Limit of lines of a trace.
pub const MOST: usize = 100_000_000;

/// A trace of delivery opportunities.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Trace {
    /// Ordered by time; the last time is the period.
    steps: Arc<[Step]>,
    light: Option<Light>,
}

/// The opportunities of one millisecond.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Step {
    /// Milliseconds.
    at: u32,
    /// At least one.
    count: u32,
}

/// An error in a trace.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TraceError {
    /// No lines.
    #[error("it is empty; a trace has a time in milliseconds on each line")]
    Empty,
    /// An empty line.
    #[error("line {0} is empty; each line is a time in milliseconds, remove it")]
    EmptyLine(usize),
    /// A line that is no time.
    #[error("line {0}: `{1}` is no time; each line is a time in whole milliseconds such as `17`")]
    NotATime(usize, String),
    /// A time below the previous one.
    #[error("line {0}: {1} comes after {2}; times never fall, sort the lines by `sort -n`")]
    Falls(usize, u32, u32),
    /// All times are zero.
    #[error("all times are 0; the last one is the period and must be later")]
    NoPeriod,
    /// Too many lines.
    #[error("it has more than {MOST} lines; cut a part of it by `head -n {MOST}`")]
    TooLong,
}

impl TraceError {
    /// The invalid line, counted from one.
    pub fn line(&self) -> Option<usize> {
        match self {
            TraceError::EmptyLine(line)
            | TraceError::NotATime(line, _)
            | TraceError::Falls(line, ..) => Some(*line),
            TraceError::Empty | TraceError::NoPeriod | TraceError::TooLong => None,
        }
    }
}

impl Trace {
    /// The trace of these times in milliseconds.
    ///
    /// # Errors
    /// If there is none, there are too many, one decreases, or the last is zero.
    pub fn new(times: impl IntoIterator<Item = u32>) -> Result<Trace, TraceError> {
        let mut lines = Lines::default();
        times.into_iter().try_for_each(|at| lines.add(at, 1))?;
        lines.finish()
    }

    /// The trace with these numbers of opportunities at these times in milliseconds. A number of zero has no
    /// effect.
    ///
    /// # Errors
    /// As [`Trace::new`].
    pub fn counted(counts: impl IntoIterator<Item = (u32, u64)>) -> Result<Trace, TraceError> {
        let mut lines = Lines::default();
        counts.into_iter().try_for_each(|(at, count)| lines.add(at, count))?;
        lines.finish()
    }

    /// Parses a trace.
    ///
    /// # Errors
    /// The first invalid line, with the remedy.
    pub fn parse(text: &str) -> Result<Trace, TraceError> {
        let mut lines = Lines::default();
        for (i, line) in text.lines().enumerate() {
            if line.trim().is_empty() {
                return Err(TraceError::EmptyLine(i + 1));
            }
            let digits = line.bytes().all(|b| b.is_ascii_digit());
            let time = line.parse().ok().filter(|_| digits);
            let brief = || line.chars().take(20).collect();
            lines.add(time.ok_or_else(|| TraceError::NotATime(i + 1, brief()))?, 1)?;
        }
        lines.finish()
    }

    /// The same as the heavy trace of a pair.
    #[must_use]
    pub fn with_light(self, light: Light) -> Trace {
        Trace { light: Some(light), ..self }
    }

    /// Bytes of an opportunity.
    pub(super) fn room(&self) -> u32 {
        if self.light.is_some() { light::OPPORTUNITY } else { OPPORTUNITY }
    }

    /// The times of the opportunities in milliseconds, in order.
    pub fn times(&self) -> impl Iterator<Item = u32> + '_ {
        self.steps.iter().flat_map(|step| (0..step.count).map(|_| step.at))
    }

    /// Each time in milliseconds once, with its number of opportunities.
    pub fn counts(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.steps.iter().map(|step| (step.at, step.count))
    }

    /// Number of opportunities in a period.
    pub fn opportunities(&self) -> u64 {
        self.steps.iter().map(|step| u64::from(step.count)).sum()
    }

    /// Period, milliseconds.
    pub fn period(&self) -> u32 {
        self.steps.last().map_or(1, |step| step.at)
    }

    /// Average capacity of its opportunities.
    pub fn mean_rate(&self) -> Option<Rate> {
        let bits = self.opportunities() * u64::from(self.room()) * 8;
        Rate::from_bps(bits * 1000 / u64::from(self.period()))
    }
}

/// A trace under construction.
#[derive(Default)]
struct Lines {
    steps: Vec<Step>,
    count: usize,
}

impl Lines {
    fn add(&mut self, at: u32, count: u64) -> Result<(), TraceError> {
        let Some(count) = u32::try_from(count).ok().filter(|count| *count <= MOST as u32) else {
            return Err(TraceError::TooLong);
        };
        if count == 0 {
            return Ok(());
        }
        self.count += count as usize;
        if self.count > MOST {
            return Err(TraceError::TooLong);
        }
        match self.steps.last_mut() {
            Some(last) if at < last.at => {
                return Err(TraceError::Falls(self.count, at, last.at));
            }
            Some(last) if at == last.at => last.count += count,
            _ => self.steps.push(Step { at, count }),
        }
        Ok(())
    }

    fn finish(self) -> Result<Trace, TraceError> {
        match self.steps.last() {
            None => Err(TraceError::Empty),
            Some(last) if last.at == 0 => Err(TraceError::NoPeriod),
            Some(_) => Ok(Trace { steps: self.steps.into(), light: None }),
        }
    }
}

impl Serialize for Trace {
    /// Serializes a digest, which identifies runs, since a trace may have millions of lines.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let fields = 3 + usize::from(self.light.is_some());
        let mut fields = serializer.serialize_struct("Trace", fields)?;
        fields.serialize_field("opportunities", &self.opportunities())?;
        fields.serialize_field("period_ms", &self.period())?;
        let bytes = self.times().flat_map(u32::to_le_bytes);
        fields.serialize_field("digest", &digest(bytes))?;
        if let Some(light) = &self.light {
            fields.serialize_field("light", &digest(light.bytes()))?;
        }
        fields.end()
    }
}

/// FNV-1a with 128 bits.
fn digest(bytes: impl Iterator<Item = u8>) -> String {
    let hash = bytes.fold(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d_u128, |hash, byte| {
        (hash ^ u128::from(byte)).wrapping_mul(0x0100_0000_0000_0000_0000_013b)
    });
    format!("{hash:032x}")
}

/// Position of a link in its trace.
#[derive(Clone, Debug)]
pub(super) struct Cursor {
    trace: Trace,
    /// Number of repetitions so far.
    round: u64,
    index: usize,
    /// Used opportunities of the present millisecond.
    used: u32,
    train: Option<Train>,
}

const MS: u64 = 1_000_000;

impl Cursor {
    /// Before the first opportunity.
    pub fn new(trace: Trace) -> Cursor {
        let train = trace.light.clone().map(Train::new);
        Cursor { trace, round: 0, index: 0, used: 0, train }
    }

    /// Bytes of an unused opportunity.
    pub fn full(&self) -> u32 {
        self.trace.room()
    }

    /// Base delay of the present train, if the trace has a light one.
    pub fn delay(&self) -> Option<Span> {
        self.train.as_ref().map(|train| train.delay)
    }

    /// Room of the next opportunity, if a train has it.
    pub fn train_room(&self) -> Option<u32> {
        self.train.as_ref().filter(|train| train.next().is_some()).map(|train| train.room)
    }

    /// Time of the next opportunity.
    pub fn next(&self) -> Time {
        self.train.as_ref().and_then(Train::next).unwrap_or_else(|| self.next_step())
    }

    /// Time of the trace's next opportunity.
    fn next_step(&self) -> Time {
        let period = u64::from(self.trace.period());
        let ms = self.round.saturating_mul(period) + u64::from(self.trace.steps[self.index].at);
        Time(ms.saturating_mul(MS))
    }

    /// Consumes the next opportunity.
    pub fn take(&mut self) -> Time {
        if let Some(at) = self.train.as_mut().and_then(Train::take) {
            self.skip_to(at);
            return at;
        }
        let at = self.next_step();
        if let Some(train) = &mut self.train {
            train.last = Some(at);
        }
        self.used += 1;
        if self.used == self.trace.steps[self.index].count {
            (self.used, self.index) = (0, self.index + 1);
            if self.index == self.trace.steps.len() {
                (self.round, self.index) = (self.round + 1, 0);
            }
        }
        at
    }

    /// Returns the last opportunity, one of a train, for packets of the same instant.
    pub fn put_back(&mut self, room: u32) {
        if let Some(train) = &mut self.train {
            train.put_back(room);
        }
    }

    /// Handles a packet that finds no other one waiting. Unused opportunities are lost, including those of
    /// this instant.
    pub fn arrive(&mut self, now: Time) {
        self.skip_to(now);
        if let Some(train) = &mut self.train {
            train.arrive(now);
        }
    }

    /// Skips all opportunities of the trace up to `now`.
    fn skip_to(&mut self, now: Time) {
        if self.next_step() > now {
            return;
        }
        let (period, first) = (u64::from(self.trace.period()), now.0 / MS + 1);
        // Times within a round include the period.
        self.round = (first - 1) / period;
        let within = (first - self.round * period) as u32;
        self.used = 0;
        self.index = self.trace.steps.partition_point(|step| step.at < within);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_trace_is_refused_with_its_line() {
        let error = |text| Trace::parse(text).unwrap_err().to_string();
        assert!(error("").contains("empty"));
        assert!(error("1\n\n2\n").starts_with("line 2 is empty"));
        assert!(error("1\n-3\n").starts_with("line 2: `-3`"));
        assert!(error("1\n+3\n").starts_with("line 2: `+3`"));
        assert!(error("1\n2.5\n").starts_with("line 2: `2.5`"));
        assert!(error("1\n99999999999\n").starts_with("line 2: `99999999999`"));
        assert!(error("7\n9\n8\n").starts_with("line 3: 8 comes after 9"));
        assert!(error("0\n0\n").contains("all times are 0"));
        assert!(Trace::parse("0\r\n5\r\n").unwrap().times().eq([0, 5]));
    }

    #[test]
    fn skip_to_matches_stepping_the_cursor() {
        let trace = Trace::new(vec![0, 0, 2, 2, 7, 10]).unwrap();
        for now in 0..35 * MS / 500_000 {
            let now = Time(now * 500_000);
            let (mut one, mut other) = (Cursor::new(trace.clone()), Cursor::new(trace.clone()));
            while one.next() <= now {
                one.take();
            }
            other.skip_to(now);
            let place = |cursor: &Cursor| (cursor.round, cursor.index, cursor.used);
            assert_eq!(place(&one), place(&other), "{now}");
        }
    }
}
