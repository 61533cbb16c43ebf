//! What links have in common: a queue, a transmitter behind it, and behind that what is under way.

use std::collections::VecDeque;

use crate::event::{Op, What};
use crate::machine::{Out, Side, Signal};
use crate::queue::{Queue, Waiting};
use crate::units::{Rate, Span, Time};
use crate::wire::Packet;

/// What is under way in one direction, each with the time at which it comes out.
#[derive(Clone, Debug)]
pub(crate) struct Pipe<T = Packet> {
    /// In the order of the times.
    under_way: VecDeque<(Time, T)>,
    /// When the first comes out: asked for after every call, so kept at hand.
    next: Time,
    /// How many of the first have been [read](Pipe::look_at_next).
    seen: usize,
}

impl<T> Default for Pipe<T> {
    fn default() -> Pipe<T> {
        Pipe { under_way: VecDeque::new(), next: Time::NEVER, seen: 0 }
    }
}

impl<T> Pipe<T> {
    /// Puts in what comes out at `at`, behind everything else.
    #[inline]
    pub fn push(&mut self, at: Time, what: T) {
        self.next = self.next.min(at);
        self.under_way.push_back((at, what));
    }

    /// Puts in what comes out at `at`, which may be before others.
    pub fn insert(&mut self, at: Time, what: T) {
        let place = self.under_way.partition_point(|(other, _)| *other <= at);
        self.next = self.next.min(at);
        self.under_way.insert(place, (at, what));
    }

    /// Takes out the first, if it comes out by `now`.
    #[inline]
    pub fn take(&mut self, now: Time) -> Option<T> {
        if self.next > now {
            return None;
        }
        let (_, what) = self.under_way.pop_front()?;
        self.look_ahead();
        Some(what)
    }

    /// Asks for a wake by `at`, if nothing comes out before.
    pub fn look_by(&mut self, at: Time) {
        self.next = self.next.min(at);
    }

    /// When the first comes out is when something is to be done, and no sooner.
    #[inline]
    pub fn look_ahead(&mut self) {
        self.next = self.under_way.front().map_or(Time::NEVER, |(at, _)| *at);
    }

    /// When the first comes out; [`Time::NEVER`] if there is none.
    #[inline]
    pub fn next(&self) -> Time {
        self.next
    }

    /// When the last comes out, if there is one.
    pub fn last(&self) -> Option<Time> {
        self.under_way.back().map(|(at, _)| *at)
    }

    /// How many are under way.
    pub fn len(&self) -> usize {
        self.under_way.len()
    }

    /// What is under way, first to last.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &T> {
        self.under_way.iter().map(|(_, what)| what)
    }
}

impl Pipe {
    /// Takes out the only one that comes out by `now`; none if there are several.
    #[inline]
    pub fn take_only(&mut self, now: Time) -> Option<Packet> {
        if self.next > now {
            return None;
        }
        self.look_at_next();
        let first = self.under_way.pop_front()?;
        self.look_ahead();
        if self.next <= now {
            self.put_back(first);
            return None;
        }
        Some(first.1)
    }

    /// The first was taken out too soon.
    #[cold]
    fn put_back(&mut self, first: (Time, Packet)) {
        self.next = first.0;
        self.under_way.push_front(first);
    }

    /// Where many packets are under way, the first ones lie in no near cache any more, and each would wait for memory by
    /// itself. So some are read together before they come out, and wait once.
    #[inline]
    fn look_at_next(&mut self) {
        if self.seen > 0 {
            self.seen -= 1;
        } else if self.under_way.len() > FAR {
            self.read_next();
        }
    }

    #[inline(never)]
    fn read_next(&mut self) {
        let mut words = 0;
        for i in 0..AHEAD {
            words ^= self.under_way.get(i).map_or(0, |(_, packet)| packet.touch());
        }
        core::hint::black_box(words);
        self.seen = AHEAD - 1;
    }

    /// Hands on to `side` what comes out by `now`.
    #[inline]
    pub fn deliver(&mut self, now: Time, side: Side, out: &mut Out) {
        while self.next <= now {
            let Some((_, packet)) = self.under_way.pop_front() else { return };
            self.look_ahead();
            out.send_after(Op::Transmitted, side, packet);
        }
    }
}

/// More packets than this do not stay in near caches.
const FAR: usize = 128;
/// So many are read together before they come out.
const AHEAD: usize = 16;

/// One direction of a link.
#[derive(Clone, Debug)]
pub(crate) struct Transmitter<T = Packet> {
    /// What waits.
    pub queue: Queue,
    /// When the transmitter will be free.
    pub free_at: Time,
    /// What has been sent, or is being sent.
    pub pipe: Pipe<T>,
    /// `None` is infinitely fast.
    rate: Option<Rate>,
    /// Time that each transmission takes beside its bits.
    overhead: Span,
    /// Propagation delay.
    delay: Span,
    /// How long the last transmission took, and of how many bytes: nearly all packets have one of two lengths.
    last: (u32, Span),
}

impl<T> Transmitter<T> {
    /// An idle one behind `queue`.
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

    /// How long a transmission of `bytes` takes.
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

    /// A transmission that takes `airtime` begins at `start`.
    #[inline]
    pub fn transmit(&mut self, start: Time, airtime: Span, what: T) {
        self.free_at = start + airtime;
        self.pipe.push(self.free_at + self.delay, what);
    }

    /// `packet`, of `bytes` for the queue, arrives on its way to `side`; it is the answer if its transmission begins
    /// at once. What should have begun before has begun.
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
            self.queue.enter(now, side, packet, bytes, out);
            return None;
        }
        self.queue.pass(now, side, packet, out)
    }

    /// The next packet on its way to `side`, if its transmission should have begun by `now`, and when.
    #[inline]
    pub fn due(&mut self, now: Time, side: Side, out: &mut Out) -> Option<(Time, Waiting)> {
        let start = self.free_at;
        if start > now {
            return None;
        }
        self.queue.leave(start, side, out).map(|waiting| (start, waiting))
    }

    /// When the queue must be asked for the next packet, if what it decides then is to have its time; otherwise
    /// [`Time::NEVER`].
    pub fn turn(&self) -> Time {
        let waits = self.queue.judges_leaving() && !self.queue.is_empty();
        if waits { self.free_at } else { Time::NEVER }
    }

    /// How many packets wait or are under way.
    pub fn holds(&self) -> usize {
        self.queue.len() + self.pipe.len()
    }
}

/// The channel towards `side` has turned good or bad: tells the world, and if so wanted the
/// neighbour that sends into it.
pub(crate) fn tell_turn(side: Side, good: bool, neighbour: bool, out: &mut Out) {
    out.event(What::Channel { side, good });
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
            read.extend((pipe.seen == AHEAD - 1).then_some(id));
        }
        // Each time with the first that came out; where few are left, none is read.
        let far = count - FAR as u64;
        assert_eq!(read, (0..far).step_by(AHEAD).collect::<Vec<_>>());
        assert_eq!(pipe.take_only(Time(count)), None);
    }
}
