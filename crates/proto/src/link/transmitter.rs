//! Common parts of links: a queue, its transmitter, and the packets under way.

use std::collections::VecDeque;

use crate::event::{EventKind, Op};
use crate::machine::{Out, Side, Signal};
use crate::queue::{Queue, Waiting};
use crate::units::{Rate, Span, Time};
use crate::wire::Packet;

/// Packets under way in one direction, with their arrival times.
#[derive(Clone, Debug)]
pub(crate) struct Pipe<T = Packet> {
    /// Ordered by time.
    under_way: VecDeque<(Time, T)>,
    /// Time of the first arrival: read after every call, so it is stored here.
    next: Time,
    /// How many of the first ones were [prefetched](Pipe::reads_ahead).
    seen: usize,
}

impl<T> Default for Pipe<T> {
    fn default() -> Pipe<T> {
        Pipe { under_way: VecDeque::new(), next: Time::NEVER, seen: 0 }
    }
}

impl<T> Pipe<T> {
    /// Asserts that the cached time is not later than the first item.
    pub fn check(&self) {
        debug_assert!(
            self.under_way.front().is_none_or(|(at, _)| self.next <= *at),
            "an item is overlooked"
        );
    }

    /// Adds `item` with the arrival time `at`, behind all others.
    #[inline]
    pub fn push(&mut self, at: Time, item: T) {
        self.next = self.next.min(at);
        self.under_way.push_back((at, item));
    }

    /// Adds `item` with the arrival time `at`, which may be before others.
    pub fn insert(&mut self, at: Time, item: T) {
        let index = self.under_way.partition_point(|(other, _)| *other <= at);
        self.next = self.next.min(at);
        self.under_way.insert(index, (at, item));
    }

    /// Removes the first one, if it arrives by `now`.
    #[inline]
    pub fn take(&mut self, now: Time) -> Option<T> {
        if self.next > now {
            return None;
        }
        let (_, item) = self.under_way.pop_front()?;
        self.look_ahead();
        Some(item)
    }

    /// Adds a deadline at `at`, if nothing arrives before.
    pub fn look_by(&mut self, at: Time) {
        self.next = self.next.min(at);
    }

    /// Resets the deadline to the first arrival.
    #[inline]
    pub fn look_ahead(&mut self) {
        self.next = self.under_way.front().map_or(Time::NEVER, |(at, _)| *at);
    }

    /// Time of the next deadline; [`Time::NEVER`] if there is none.
    #[inline]
    pub fn next(&self) -> Time {
        self.next
    }

    /// Time of the last arrival, if there is one.
    pub fn last(&self) -> Option<Time> {
        self.under_way.back().map(|(at, _)| *at)
    }

    /// The time `at`, or that of the last arrival if it is later: nothing overtakes.
    pub fn in_order(&self, at: Time) -> Time {
        self.last().map_or(at, |last| at.max(last))
    }

    /// Number of packets under way.
    pub fn len(&self) -> usize {
        self.under_way.len()
    }

    /// Packets under way, first to last.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &T> {
        self.under_way.iter().map(|(_, item)| item)
    }
}

impl Pipe {
    /// Removes the only packet that arrives by `now`; `None` if there are several.
    #[inline]
    pub fn take_only(&mut self, now: Time) -> Option<Packet> {
        if self.next > now {
            return None;
        }
        let first = self.under_way.pop_front()?;
        self.look_ahead();
        if self.next <= now {
            self.put_back(first);
            return None;
        }
        Some(first.1)
    }

    /// Puts the first one back.
    #[cold]
    fn put_back(&mut self, first: (Time, Packet)) {
        self.next = first.0;
        self.under_way.push_front(first);
    }

    /// Whether the [next](Pipe::next_ones) packets are to be prefetched together, after one was removed. With
    /// many packets under way the first ones and their connections are in no near cache, and each would wait
    /// for memory separately.
    #[inline]
    pub fn reads_ahead(&mut self) -> bool {
        let reads = self.seen == 0 && self.under_way.len() > FAR;
        self.seen = if reads { AHEAD } else { self.seen }.saturating_sub(1);
        reads
    }

    /// The packets that are prefetched together.
    pub fn next_ones(&self) -> impl Iterator<Item = &Packet> {
        self.iter().take(AHEAD)
    }

    /// Forwards packets that arrive at `side` by `now`.
    #[inline]
    pub fn deliver(&mut self, now: Time, side: Side, out: &mut Out) {
        while self.next <= now {
            let Some((_, packet)) = self.under_way.pop_front() else { return };
            self.look_ahead();
            out.send_after(Op::Transmitted, side, packet);
        }
    }
}

/// Number of packets above which they do not remain in near caches.
const FAR: usize = 128;
/// Number of packets prefetched together.
const AHEAD: usize = 16;

/// One direction of a link.
#[derive(Clone, Debug)]
pub(crate) struct Transmitter<T = Packet> {
    /// Waiting packets.
    pub queue: Queue,
    /// Time at which the transmitter becomes free.
    pub free_at: Time,
    /// Packets that were sent or are being sent.
    pub pipe: Pipe<T>,
    /// Rate; `None` is infinite.
    rate: Option<Rate>,
    /// Time of each transmission in addition to its bits.
    overhead: Span,
    /// Propagation delay.
    delay: Span,
    /// Length and duration of the last transmission: nearly all packets have one of two lengths.
    last: (u32, Span),
}

impl<T> Transmitter<T> {
    /// Asserts the invariants of queue, transmitter and medium.
    pub fn check(&self) {
        self.queue.check();
        self.pipe.check();
        debug_assert!(self.last.1 >= self.overhead, "a transmission takes at least the overhead");
    }

    /// An idle transmitter behind `queue`.
    pub fn new(queue: Queue, rate: Option<Rate>, overhead: Span, delay: Span) -> Transmitter<T> {
        let last = (0, overhead);
        Transmitter {
            queue,
            free_at: Time::ZERO,
            pipe: Pipe::default(),
            rate,
            overhead,
            delay,
            last,
        }
    }

    /// Duration of a transmission of `bytes` bytes.
    #[inline]
    pub fn airtime(&mut self, bytes: u32) -> Span {
        if self.last.0 != bytes {
            self.last = (bytes, self.work_out(bytes));
        }
        self.last.1
    }

    #[inline(never)]
    fn work_out(&self, bytes: u32) -> Span {
        self.overhead + self.rate.map_or(Span::ZERO, |rate| rate.transmit(bytes.into()))
    }

    /// Starts a transmission of duration `airtime` at `start`.
    #[inline]
    pub fn transmit(&mut self, start: Time, airtime: Span, item: T) {
        debug_assert!(start >= self.free_at, "two transmissions at once");
        self.free_at = start + airtime;
        self.pipe.push(self.free_at + self.delay, item);
    }

    /// Handles an arriving `packet` of `bytes` bytes towards `side`. Returns it if its transmission begins
    /// immediately. Earlier transmissions must have begun already.
    #[inline]
    pub fn arrive(
        &mut self,
        now: Time,
        side: Side,
        packet: Packet,
        bytes: u32,
        out: &mut Out,
    ) -> Option<Packet> {
        if self.free_at > now || !self.queue.is_empty() {
            self.queue.enqueue(now, side, packet, bytes, out);
            return None;
        }
        self.queue.pass(now, side, packet, out)
    }

    /// The next packet towards `side` with its start time, if its transmission should have begun by `now`.
    #[inline]
    pub fn due(&mut self, now: Time, side: Side, out: &mut Out) -> Option<(Time, Waiting)> {
        let start = self.free_at;
        if start > now {
            return None;
        }
        self.queue.dequeue(start, side, out).map(|waiting| (start, waiting))
    }

    /// Time at which the queue must be read for the next packet, if its decision then must have the right
    /// time; otherwise [`Time::NEVER`].
    pub fn turn(&self) -> Time {
        let waits = self.queue.judges_leaving() && !self.queue.is_empty();
        if waits { self.free_at } else { Time::NEVER }
    }

    /// Number of packets that wait or are under way.
    pub fn holds(&self) -> usize {
        self.queue.len() + self.pipe.len()
    }
}

/// Reports a change of the channel towards `side` to good or bad, as an event, and with `neighbour` also to
/// the neighbour that sends into it.
pub(crate) fn report_turn(side: Side, good: bool, neighbour: bool, out: &mut Out) {
    out.event(EventKind::Channel { side, good });
    if neighbour {
        out.signal(side.other(), Signal::ChannelGood(good));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Addr, Body, Flags, PacketId, Segment, Seq};

    fn packet(id: u64) -> Packet {
        let segment = Segment::new(1, 2, Seq(0), Seq(0), Flags::ACK);
        let (src, dst) = (Addr::v4(10, 0, 0, 1), Addr::v4(10, 0, 0, 2));
        Packet::tcp(src, dst, segment, Body::EMPTY).with(|packet| packet.id = PacketId(id))
    }

    #[test]
    fn of_several_that_come_out_at_once_none_is_taken_alone() {
        let mut pipe = Pipe::default();
        [(5, 1), (5, 2), (8, 3)].into_iter().for_each(|(at, id)| pipe.push(Time(at), packet(id)));
        assert_eq!(pipe.take_only(Time(4)), None);
        assert_eq!((pipe.take_only(Time(5)), pipe.next(), pipe.len()), (None, Time(5), 3));
        let taken = [5, 5].map(|at| pipe.take(Time(at)).map(|packet| packet.id.0));
        assert_eq!((taken, pipe.next()), ([Some(1), Some(2)], Time(8)));
        assert_eq!(pipe.take_only(Time(8)).map(|packet| packet.id.0), Some(3));
    }

    #[test]
    fn many_packets_are_read_ahead_and_come_out_in_their_order() {
        let mut pipe = Pipe::default();
        let count = 2 * FAR as u64;
        (0..count).for_each(|id| pipe.push(Time(id), packet(id)));
        let mut read = Vec::new();
        for id in 0..count {
            assert_eq!(pipe.take_only(Time(id)).map(|packet| packet.id), Some(PacketId(id)));
            if pipe.reads_ahead() {
                read.extend(pipe.next_ones().map(|packet| packet.id.0));
            }
        }
        // All but the first one, and those that are left when few remain.
        assert_eq!(read, (1..=FAR as u64).collect::<Vec<_>>());
        assert_eq!(pipe.take_only(Time(count)), None);
    }
}
