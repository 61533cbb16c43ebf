//! Data that arrives out of order at the base station.

use std::collections::VecDeque;

use super::super::config::SnoopConfig;
use crate::units::Time;
use crate::wire::Segment;

/// Maximum number of stored holes. Data in an older one counts as retransmitted.
const GAPS: usize = 64;

/// A hole in the sender's data, as it arrived at the base station.
#[derive(Clone, Copy, Debug)]
struct Gap {
    /// Positions of its first byte and past its last byte.
    start: u64,
    end: u64,
    /// Arrival of the data behind it.
    since: Time,
    /// Timestamp of the data behind it.
    stamp: Option<u32>,
    /// Whether a duplicate ACK was forwarded to the sender since then.
    visible: bool,
}

/// The holes that the receiver has not acknowledged yet.
///
/// Data that fills a hole was retransmitted by the sender, or overtaken on its way to the base station. It was
/// overtaken if the sender cannot have detected the hole. This is so if the sender received no duplicate ACK,
/// or if the timestamp of the data is not later than that of the data behind the hole. No sender's timer is
/// shorter than the minimum local timeout.
#[derive(Clone, Debug, Default)]
pub(super) struct Gaps(VecDeque<Gap>);

impl Gaps {
    /// Records that `segment` arrived at position `end`, past the highest position `start`.
    pub(super) fn open(&mut self, [start, end]: [u64; 2], now: Time, segment: &Segment) {
        if self.0.len() >= GAPS {
            self.0.pop_front();
        }
        let stamp = segment.timestamps.map(|stamps| stamps.value);
        self.0.push_back(Gap { start, end, since: now, stamp, visible: false });
    }

    /// Records a duplicate ACK that is forwarded to the sender.
    pub(super) fn dupack_forwarded(&mut self) {
        self.0.iter_mut().for_each(|gap| gap.visible = true);
    }

    /// Removes acknowledged holes.
    pub(super) fn acked(&mut self, ack: u64) {
        while self.0.front().is_some_and(|gap| gap.end <= ack) {
            self.0.pop_front();
        }
    }

    fn at(&self, position: u64) -> Option<&Gap> {
        self.0.iter().find(|gap| (gap.start..gap.end).contains(&position))
    }

    /// Whether the position lies in a hole.
    pub(super) fn contains(&self, position: u64) -> bool {
        self.at(position).is_some()
    }

    /// Whether data that fills a hole was overtaken by the data behind it.
    pub(super) fn is_overtaken(
        &self,
        position: u64,
        now: Time,
        segment: &Segment,
        config: &SnoopConfig,
    ) -> bool {
        self.at(position).is_some_and(|gap| {
            let stamps = segment.timestamps.map(|stamps| stamps.value).zip(gap.stamp);
            let earlier = stamps.is_some_and(|(own, behind)| own.wrapping_sub(behind) as i32 <= 0);
            now.since(gap.since) < config.min_timeout && (earlier || !gap.visible)
        })
    }
}
