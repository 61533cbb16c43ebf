//! Values of a connection over time: round trips, outstanding data, receive window, volume.
//!
//! Memory is bounded. If a list is full, only every second sample remains and is stored from then on. If there are too
//! many intervals of volume, their length doubles.

use std::collections::VecDeque;

use lasthop_proto::units::{Span, Time};
use serde::Serialize;

/// Maximum number of intervals of a [`Volumes`]. After the first join there are at least half as many.
const INTERVALS: usize = 512;

/// Maximum number of timestamps that wait for their echo.
const STAMPS: usize = 4096;

/// Values of one direction over time.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct OverTime {
    /// One sample for each ACK or SACK block that measures a round trip.
    pub round_trips: Samples<RoundTrip>,
    /// One sample after each packet with payload, and after each ACK of the peer.
    pub in_flight: Samples<InFlight>,
    /// Payload by time.
    pub volumes: Volumes,
    #[serde(skip)]
    stamps: VecDeque<Stamp>,
}

/// How a round-trip time was measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MeasuredBy {
    /// From a segment that was sent once to the ACK or SACK block that reports it (Karn's rule).
    Segment,
    /// From the first segment with a timestamp to the ACK that echoes it (RFC 7323, 4.1). Used during recovery, where
    /// Karn's rule forbids the other method.
    Timestamp,
}

/// A round-trip time.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct RoundTrip {
    /// When the ACK was captured.
    pub at: Time,
    /// Seconds.
    pub rtt: f64,
    /// How it was measured.
    pub by: MeasuredBy,
}

/// Outstanding bytes, and their limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct InFlight {
    /// Time of the packet.
    pub at: Time,
    /// The highest cumulative ACK so far, as a position in the stream.
    pub acked: i64,
    /// Bytes from the highest cumulative ACK to the highest byte sent.
    pub outstanding: u64,
    /// The latest window of the receiver in bytes; `None` while its scale is unknown, as without a captured handshake.
    pub window: Option<u64>,
}

/// Samples in the order of time.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Samples<T> {
    /// One of `every` samples is stored; above 1 after more than [`crate::Config::points`] samples.
    pub every: u64,
    /// The stored samples.
    pub kept: Vec<T>,
    #[serde(skip)]
    seen: u64,
}

impl<T> Default for Samples<T> {
    fn default() -> Samples<T> {
        Samples { every: 1, kept: Vec::new(), seen: 0 }
    }
}

impl<T> Samples<T> {
    pub(crate) fn add(&mut self, most: usize, sample: T) {
        if self.kept.len() >= most.max(2) {
            self.halve();
        }
        if self.seen.is_multiple_of(self.every) {
            self.kept.push(sample);
        }
        self.seen += 1;
    }

    fn halve(&mut self) {
        let mut odd = false;
        self.kept.retain(|_| {
            odd = !odd;
            odd
        });
        self.every *= 2;
    }

    fn shorten(&mut self, most: usize) {
        if self.kept.len() > most.max(2) {
            while self.kept.len() > most.max(2) {
                self.halve();
            }
            self.kept.shrink_to_fit();
        }
    }
}

/// Payload in intervals of one length, from the first packet of the connection.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Volumes {
    /// Length of an interval: a power of two of milliseconds.
    pub interval: Span,
    /// The intervals, up to the last with payload.
    #[serde(rename = "volumes", serialize_with = "all")]
    filled: Vec<Filled>,
}

/// An interval with payload. Most intervals have none.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Filled {
    number: u32,
    volume: Volume,
}

impl Default for Volumes {
    fn default() -> Volumes {
        Volumes { interval: Span::millis(1), filled: Vec::new() }
    }
}

fn all<S: serde::Serializer>(filled: &[Filled], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(each(filled))
}

/// Volumes of all intervals up to the last of `filled`.
fn each(filled: &[Filled]) -> impl Iterator<Item = Volume> {
    let mut next = 0;
    filled.iter().flat_map(move |interval| {
        let empty = (interval.number - core::mem::replace(&mut next, interval.number + 1)) as usize;
        core::iter::repeat_n(Volume::default(), empty).chain([interval.volume])
    })
}

/// Payload of an interval.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Volume {
    /// Payload bytes, retransmissions included.
    pub bytes: u64,
    /// Payload bytes without retransmissions.
    pub fresh: u64,
}

impl Volumes {
    pub(crate) fn add(&mut self, since: Span, volume: Volume) {
        while since.0 / self.interval.0 >= INTERVALS as u64 {
            *self = self.joined(2);
        }
        self.fill((since.0 / self.interval.0) as u32, volume);
    }

    /// Adds `volume` to the interval with this number.
    fn fill(&mut self, number: u32, volume: Volume) {
        let at = self.filled.iter().rposition(|interval| interval.number <= number);
        match at.map(|at| &mut self.filled[at]) {
            Some(interval) if interval.number == number => {
                interval.volume.bytes += volume.bytes;
                interval.volume.fresh += volume.fresh;
            }
            _ => self.filled.insert(at.map_or(0, |at| at + 1), Filled { number, volume }),
        }
    }

    /// The volumes of all intervals up to the last with payload.
    pub fn iter(&self) -> impl Iterator<Item = Volume> {
        each(&self.filled)
    }

    /// The number of these intervals.
    pub fn count(&self) -> usize {
        self.filled.last().map_or(0, |last| last.number as usize + 1)
    }

    /// The same volumes with `count` intervals joined into one.
    #[must_use]
    pub fn joined(&self, count: usize) -> Volumes {
        let count = count.max(1);
        let interval = Span(self.interval.0.saturating_mul(count as u64));
        let mut joined = Volumes { interval, filled: Vec::new() };
        for &Filled { number, volume } in &self.filled {
            joined.fill((number as usize / count) as u32, volume);
        }
        joined
    }
}

/// First and last time at which a timestamp value was sent.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Stamp {
    value: u32,
    first: Time,
    last: Time,
}

impl OverTime {
    /// Whether there are no samples: without payload, or after removal of the lists.
    pub fn is_empty(&self) -> bool {
        self.in_flight.kept.is_empty() && self.round_trips.kept.is_empty()
    }

    /// Records the timestamp `value` of a segment with payload.
    pub(crate) fn stamped(&mut self, at: Time, value: u32) {
        match self.stamps.back_mut() {
            Some(stamp) if stamp.value == value => stamp.last = at,
            // Out of order: its echo is no sample.
            Some(stamp) if (value.wrapping_sub(stamp.value) as i32) < 0 => {}
            _ => {
                if self.stamps.len() >= STAMPS {
                    self.stamps.pop_front();
                }
                self.stamps.push_back(Stamp { value, first: at, last: at });
            }
        }
    }

    /// The round trip of a timestamp that an ACK of new data echoes for the first time.
    //= rfc7323#section-4.1: only an ACK of new data measures a round trip
    pub(crate) fn echoed(&mut self, at: Time, echo: u32) -> Option<Span> {
        while let Some(stamp) = self.stamps.front()
            && (stamp.value.wrapping_sub(echo) as i32) < 0
        {
            self.stamps.pop_front();
        }
        let stamp = *self.stamps.front().filter(|stamp| stamp.value == echo)?;
        self.stamps.pop_front();
        let rtt = at.since(stamp.first);
        // With a slow clock several segments share a timestamp, so the answered one is unknown.
        let distinguishable = stamp.last.since(stamp.first).0.saturating_mul(10) <= rtt.0;
        distinguishable.then_some(rtt)
    }

    /// Samples that are stored.
    pub(crate) fn listed(&self) -> usize {
        self.round_trips.kept.len() + self.in_flight.kept.len()
    }

    /// Thins the samples of each kind to `most`.
    pub(crate) fn shorten(&mut self, most: usize) {
        self.round_trips.shorten(most);
        self.in_flight.shorten(most);
    }

    /// Timestamps that wait for their echo.
    pub(crate) fn pending(&self) -> usize {
        self.stamps.len()
    }

    /// Frees the state for further measurements.
    pub(crate) fn finish(&mut self) {
        self.stamps = VecDeque::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_list_drops_every_second_sample() {
        let mut samples = Samples::default();
        (0..100).for_each(|i| samples.add(8, i));
        assert_eq!((samples.every, samples.kept), (16, vec![0, 16, 32, 48, 64, 80, 96]));
    }

    #[test]
    fn volumes_keep_their_sum_when_intervals_are_joined() {
        let mut volumes = Volumes::default();
        (0..10_000).for_each(|i| {
            volumes.add(Span::millis(i), Volume { bytes: 3, fresh: 2 });
        });
        assert_eq!(volumes.interval, Span::millis(32));
        assert!(volumes.count() <= INTERVALS);
        let sum = |v: &Volumes| v.iter().map(|v| v.bytes).sum::<u64>();
        assert_eq!((sum(&volumes), sum(&volumes.joined(7))), (30_000, 30_000));
        assert_eq!(volumes.iter().nth(5), Some(Volume { bytes: 96, fresh: 64 }));
        let mut pauses = Volumes::default();
        for ms in [7, 3, 7] {
            pauses.add(Span::millis(ms), Volume { bytes: 1, fresh: 1 });
        }
        let bytes: Vec<_> = pauses.iter().map(|volume| volume.bytes).collect();
        assert_eq!((bytes, pauses.count()), (vec![0, 0, 0, 1, 0, 0, 0, 2], 8));
    }

    #[test]
    fn a_timestamp_is_measured_once_and_only_if_its_segments_lie_close() {
        let ms = |ms: u64| Time(ms * 1_000_000);
        let mut over = OverTime::default();
        over.stamped(ms(10), 7);
        over.stamped(ms(11), 7);
        over.stamped(ms(20), u32::MAX);
        over.stamped(ms(30), 9);
        over.stamped(ms(60), 9);
        assert_eq!(over.echoed(ms(50), 7), Some(Span::millis(40)));
        assert_eq!(over.echoed(ms(51), 7), None);
        assert_eq!(over.echoed(ms(80), 9), None, "30 ms apart, and only 50 ms in all");
    }
}
