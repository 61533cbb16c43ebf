//! How full the radio's queue is, from local round trips: a loss in a full queue is congestion, which the sender must see.
//!
//! An agent that hides all losses, and has room to repair them all, takes from the sender what limits its window: the queue stays
//! full, and repairs are lost in it like all else. So a loss is left to the sender while
//!
//! - the queue is as long as it has been lately, and holds a considerable part of what the path holds: with less in
//!   flight the link is still busy; or
//! - a large part of all packets is lost at once.
//!
//! A round trip is that of a packet that nobody sent again, up to the ACK or SACK block that first reports it.

use std::collections::VecDeque;

use crate::units::{Span, Time};

/// Packets that are timed at once.
const MARKS: usize = 64;
/// Shortest time between two of them.
const SPACING: Span = Span::millis(1);
/// Part of the longest queue, in percent, from which the queue is full.
const FULL: u64 = 90;
/// Part of the round trip between the hosts, in percent, that a queue takes at least that is full. BBR adds 25 % to what is in
/// flight when it probes for bandwidth.
const CONSIDERABLE: u64 = 33;
/// Time after which the longest queue is forgotten, and as long again.
const LATELY: Span = Span::secs(10);
/// Losses at once, and their part of the packets that are cached, in percent.
const MANY: usize = 16;
const LARGE_PART: usize = 25;

/// Local round trips of one flow.
#[derive(Clone, Debug, Default)]
pub(super) struct Depth {
    /// End positions of packets, and when they passed.
    marks: VecDeque<(u64, Time)>,
    /// Position past the highest byte that was reported.
    highest: u64,
    last: Span,
    least: Option<Span>,
    /// Longest of this period, and of the one before.
    longest: [Span; 2],
    since: Time,
}

impl Depth {
    /// A packet that ends at `end` passes for the first time.
    pub(super) fn sent(&mut self, now: Time, end: u64) {
        let early = self.marks.back().is_some_and(|(_, at)| now.since(*at) < SPACING);
        if !early && self.marks.len() < MARKS {
            self.marks.push_back((end, now));
        }
    }

    /// The receiver reports for the first time that it has the bytes from `start` to `end`; `delayed` if the report had to
    /// wait until a hole was filled.
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

    /// Whether the queue is full, where the round trip between base station and sender is `far`.
    pub(super) fn is_full(&self, far: Span) -> bool {
        let Some(least) = self.least else { return false };
        let longest = self.longest[0].max(self.longest[1]).saturating_sub(least);
        let now = self.last.saturating_sub(least);
        now * 100 >= longest * FULL && now * 100 >= (far + least) * CONSIDERABLE
    }

    /// Whether `lost` of `all` packets are too many for a hop that only damages them.
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

    /// Packets of 100 bytes with these local round trips, one after the other.
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
    fn a_queue_is_full_if_it_is_as_long_as_ever_and_long() {
        for (trips, far, full) in [
            (&[2, 40][..], 20, true),
            (&[2, 40, 37], 20, true),
            (&[2, 40, 20], 20, false),
            (&[2, 40], 300, false),
            (&[2, 8], 20, false),
            (&[2, 10], 20, true),
            (&[], 0, false),
            // The longest one was long ago.
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
    fn what_waited_for_a_hole_or_was_reported_before_is_no_measurement() {
        let mut depth = measured(&[5]);
        depth.sent(at(2000), 200);
        depth.arrived(at(2090), 100, 200, true);
        assert_eq!((depth.last, depth.least), (Span::millis(5), Some(Span::millis(5))));
        depth.arrived(at(2095), 100, 200, false);
        assert_eq!(depth.last, Span::millis(5));
        // A block above a hole: what it reports has just arrived; what lies in the hole has not.
        depth.sent(at(3000), 300);
        depth.sent(at(3001), 400);
        depth.arrived(at(3010), 300, 400, false);
        assert_eq!(depth.last, Span::millis(9));
        depth.sent(at(4000), 500);
        depth.arrived(at(4050), 500, 600, false);
        assert_eq!(depth.last, Span::millis(9), "the packet that was timed is not in the block");
    }

    #[test]
    fn few_packets_are_timed_at_once() {
        let mut depth = Depth::default();
        (0..10_000).for_each(|i| depth.sent(at(i), i));
        assert_eq!(depth.marks.len(), MARKS);
    }

    #[test]
    fn many_losses_are_a_large_part_and_not_a_handful() {
        for (lost, all, many) in
            [(15, 15, false), (16, 64, true), (16, 65, false), (100, 400, true)]
        {
            assert_eq!(Depth::is_many(lost, all), many, "{lost} of {all}");
        }
    }
}
