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

use crate::units::{Rate, Time};

/// Bytes per opportunity.
pub const OPPORTUNITY: u32 = 1504;
/// Bytes that a TUN device adds to each packet.
pub(super) const TUN_HEADER: u32 = 4;
/// Limit of lines of a trace.
const MOST: usize = 10_000_000;

/// A trace of delivery opportunities.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Trace {
    /// Times in milliseconds, ordered; the last one is the period.
    times: Arc<[u32]>,
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

impl Trace {
    /// The trace of these times in milliseconds.
    ///
    /// # Errors
    /// If there is none, one decreases, or the last is zero.
    pub fn new(times: Vec<u32>) -> Result<Trace, TraceError> {
        let last = *times.last().ok_or(TraceError::Empty)?;
        if let Some(i) = times.windows(2).position(|pair| pair[1] < pair[0]) {
            return Err(TraceError::Falls(i + 2, times[i + 1], times[i]));
        }
        if last == 0 {
            return Err(TraceError::NoPeriod);
        }
        Ok(Trace { times: times.into() })
    }

    /// Parses a trace.
    ///
    /// # Errors
    /// The first invalid line, with the remedy.
    pub fn parse(text: &str) -> Result<Trace, TraceError> {
        let mut times = Vec::new();
        for (i, line) in text.lines().enumerate() {
            if i == MOST {
                return Err(TraceError::TooLong);
            }
            if line.trim().is_empty() {
                return Err(TraceError::EmptyLine(i + 1));
            }
            let digits = line.bytes().all(|b| b.is_ascii_digit());
            let time = line.parse().ok().filter(|_| digits);
            let brief = || line.chars().take(20).collect();
            times.push(time.ok_or_else(|| TraceError::NotATime(i + 1, brief()))?);
        }
        Trace::new(times)
    }

    /// The times of the opportunities in milliseconds, in order.
    pub fn times(&self) -> &[u32] {
        &self.times
    }

    /// Period, milliseconds.
    pub fn period(&self) -> u32 {
        self.times.last().copied().unwrap_or(1)
    }

    /// Average capacity of its opportunities.
    pub fn mean_rate(&self) -> Option<Rate> {
        let bits = self.times.len() as u64 * u64::from(OPPORTUNITY) * 8;
        Rate::from_bps(bits * 1000 / u64::from(self.period()))
    }
}

impl Serialize for Trace {
    /// Serializes a digest, which identifies runs, since a trace may have millions of lines.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // FNV-1a with 128 bits.
        let bytes = self.times.iter().flat_map(|time| time.to_le_bytes());
        let digest = bytes.fold(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d_u128, |hash, byte| {
            (hash ^ u128::from(byte)).wrapping_mul(0x0100_0000_0000_0000_0000_013b)
        });
        let mut fields = serializer.serialize_struct("Trace", 3)?;
        fields.serialize_field("opportunities", &self.times.len())?;
        fields.serialize_field("period_ms", &self.period())?;
        fields.serialize_field("digest", &format!("{digest:032x}"))?;
        fields.end()
    }
}

/// Position of a link in its trace.
#[derive(Clone, Debug)]
pub(super) struct Cursor {
    trace: Trace,
    /// Number of repetitions so far.
    round: u64,
    index: usize,
}

const MS: u64 = 1_000_000;

impl Cursor {
    /// Before the first opportunity.
    pub fn new(trace: Trace) -> Cursor {
        Cursor { trace, round: 0, index: 0 }
    }

    /// Time of the next opportunity.
    pub fn next(&self) -> Time {
        let period = u64::from(self.trace.period());
        let ms = self.round.saturating_mul(period) + u64::from(self.trace.times[self.index]);
        Time(ms.saturating_mul(MS))
    }

    /// Consumes the next opportunity.
    pub fn take(&mut self) -> Time {
        let at = self.next();
        self.index += 1;
        if self.index == self.trace.times.len() {
            (self.round, self.index) = (self.round + 1, 0);
        }
        at
    }

    /// Skips all opportunities up to `now`.
    pub fn skip_to(&mut self, now: Time) {
        if self.next() > now {
            return;
        }
        let (period, first) = (u64::from(self.trace.period()), now.0 / MS + 1);
        // Times within a round include the period.
        self.round = (first - 1) / period;
        let within = (first - self.round * period) as u32;
        self.index = self.trace.times.partition_point(|time| *time < within);
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
        assert_eq!(Trace::parse("0\r\n5\r\n").unwrap().times(), [0, 5]);
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
            assert_eq!((one.round, one.index), (other.round, other.index), "{now}");
        }
    }
}
