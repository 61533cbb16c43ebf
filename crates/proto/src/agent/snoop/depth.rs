//! Occupancy of the radio's queue, from local round trips. A loss at a full queue is congestion, to which
//! the sender must react.
//!
//! If an agent repairs and hides all losses, no loss limits the sender's window: the queue remains full,
//! and repairs are lost in it too. So a loss is left to the sender while
//!
//! - the queue is as long as its recent maximum, and contains a considerable part of the path's capacity,
//!   so that the link remains busy with a smaller flight; or
//! - a large part of all packets is lost at once.
//!
//! A round trip is measured with a packet that was never retransmitted, up to the first ACK or SACK block
//! that reports it.

use std::collections::VecDeque;

use crate::units::{Span, Time};

/// Limit of packets that are timed simultaneously.
const MARKS: usize = 64;
/// Minimum time between two timed packets.
const SPACING: Span = Span::millis(1);
/// Percentage of the longest queue from which the queue counts as full.
const FULL: u64 = 90;
/// Minimum delay of a full queue as a percentage of the round trip between the hosts. BBR adds 25 % to its
/// flight when it probes for bandwidth.
const CONSIDERABLE: u64 = 33;
/// Time after which the longest queue is discarded, after a second period of this length.
const LATELY: Span = Span::secs(10);
/// Minimum number of simultaneous losses, and their percentage of the cached packets.
const MANY: usize = 16;
const LARGE_PART: usize = 25;

/// Local round trips of one flow.
#[derive(Clone, Debug, Default)]
pub(super) struct Depth {
    /// End positions of timed packets, with the times at which they passed.
    marks: VecDeque<(u64, Time)>,
    /// Position past the highest reported byte.
    highest: u64,
    last: Span,
    least: Option<Span>,
    /// Longest round trip of this period and of the previous one.
    longest: [Span; 2],
    since: Time,
}

impl Depth {
    /// Records the first transmission of a packet that ends at `end`.
    pub(super) fn sent(&mut self, now: Time, end: u64) {
        let early = self.marks.back().is_some_and(|(_, at)| now.since(*at) < SPACING);
        if !early && self.marks.len() < MARKS {
            self.marks.push_back((end, now));
        }
    }

    /// Records the receiver's first report of the bytes from `start` to `end`; `delayed` if the report had to
    /// wait for a hole to be filled.
    pub(super) fn arrived(&mut self, now: Time, start: u64, end: u64, delayed: bool) {
        if end <= self.highest {
            return;
        }
        self.highest = end;
        let mut newest = None;
        while let Some(mark) = self.marks.front().filter(|(position, _)| *position <= end) {
            newest = Some(*mark);
            self.marks.pop_front();
        }
        let Some((position, at)) = newest.filter(|_| !delayed) else { return };
        if position <= start {
            return;
        }
        self.last = now.since(at);
        self.least = Some(self.least.map_or(self.last, |least| least.min(self.last)));
        if now.since(self.since) >= LATELY {
            self.longest = [Span::ZERO, self.longest[0]];
            self.since = now;
        }
        self.longest[0] = self.longest[0].max(self.last);
    }

    /// Whether the queue is full, for a round trip of `far` between base station and sender.
    pub(super) fn is_full(&self, far: Span) -> bool {
        let Some(least) = self.least else { return false };
        let longest = self.longest[0].max(self.longest[1]).saturating_sub(least);
        let now = self.last.saturating_sub(least);
        now * 100 >= longest * FULL && now * 100 >= (far + least) * CONSIDERABLE
    }

    /// Whether `lost` of `all` packets are too many for a hop that only damages packets.
    pub(super) fn is_many(lost: usize, all: usize) -> bool {
        lost >= MANY && lost * 100 >= all * LARGE_PART
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Time {
        Time::ZERO + Span::millis(millis)
    }

    /// Successive packets of 100 bytes with these local round trips.
    fn measured(trips: &[u64]) -> Depth {
        let mut depth = Depth::default();
        for (i, trip) in (0..).zip(trips) {
            let (start, now) = (100 * i, at(1000 * i));
            depth.sent(now, start + 100);
            depth.arrived(now + Span::millis(*trip), start, start + 100, false);
        }
        depth
    }

    #[test]
    fn a_full_queue_is_long_and_near_its_maximum() {
        for (trips, far, full) in [
            (&[2, 40][..], 20, true),
            (&[2, 40, 37], 20, true),
            (&[2, 40, 20], 20, false),
            (&[2, 40], 300, false),
            (&[2, 8], 20, false),
            (&[2, 10], 20, true),
            (&[], 0, false),
            // The longest one is outdated.
            (
                &[2, 40, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 20],
                20,
                true,
            ),
        ] {
            assert_eq!(measured(trips).is_full(Span::millis(far)), full, "{trips:?} {far}");
        }
    }

    #[test]
    fn hole_delayed_or_already_reported_data_gives_no_sample() {
        let mut depth = measured(&[5]);
        depth.sent(at(2000), 200);
        depth.arrived(at(2090), 100, 200, true);
        assert_eq!((depth.last, depth.least), (Span::millis(5), Some(Span::millis(5))));
        depth.arrived(at(2095), 100, 200, false);
        assert_eq!(depth.last, Span::millis(5));
        // A block above a hole reports newly arrived data; the hole has not arrived.
        depth.sent(at(3000), 300);
        depth.sent(at(3001), 400);
        depth.arrived(at(3010), 300, 400, false);
        assert_eq!(depth.last, Span::millis(9));
        depth.sent(at(4000), 500);
        depth.arrived(at(4050), 500, 600, false);
        assert_eq!(depth.last, Span::millis(9), "the packet that was timed is not in the block");
    }

    #[test]
    fn the_number_of_timed_packets_is_bounded() {
        let mut depth = Depth::default();
        (0..10_000).for_each(|i| depth.sent(at(i), i));
        assert_eq!(depth.marks.len(), MARKS);
    }

    #[test]
    fn many_losses_means_at_least_16_and_a_quarter() {
        for (lost, all, many) in
            [(15, 15, false), (16, 64, true), (16, 65, false), (100, 400, true)]
        {
            assert_eq!(Depth::is_many(lost, all), many, "{lost} of {all}");
        }
    }
}
