//! What waits at one station of a radio hop: a queue for each receiver in the order of arrival, or scheduled by the
//! state of the channels (see [`crate::queue::csdp`]).

use std::collections::VecDeque;

use crate::air::Station;
use crate::machine::{Out, Side};
use crate::queue::csdp::{Csdp, CsdpConfig, Knowledge};
use crate::queue::{Discipline, Limit, Queue, Room, Waiting as Packeted};
use crate::units::{Span, Time};
use crate::wire::{Packet, PacketId};

/// What waits at one station.
#[derive(Clone, Debug)]
pub(super) enum Waiting {
    /// First in, first out.
    InOrder {
        /// By receiver.
        queues: Vec<Queue>,
        /// Whom the waiting packets are for, oldest first.
        order: VecDeque<Station>,
    },
    /// As the base station's scheduler has it.
    Scheduled(Box<Scheduler>),
}

impl Waiting {
    /// Nothing, at a station that has `queue` towards each of `count` stations.
    pub fn new(queues: Vec<Queue>) -> Waiting {
        Waiting::InOrder { queues, order: VecDeque::new() }
    }

    /// Nothing, at a base station that schedules for `stations`.
    pub fn scheduled(config: CsdpConfig, limit: Limit, stations: u8) -> Waiting {
        Waiting::Scheduled(Box::new(Scheduler {
            config,
            queue: Csdp::new(&config),
            room: Room::new(limit),
            now: Time::ZERO,
            served: vec![Served::default(); usize::from(stations)],
        }))
    }

    /// The scheduler, if there is one.
    pub fn scheduler(&mut self) -> Option<&mut Scheduler> {
        if let Waiting::Scheduled(scheduler) = self { Some(scheduler) } else { None }
    }

    /// `packet` arrives for `to`, on its way to `side`.
    pub fn enter(&mut self, now: Time, side: Side, to: Station, packet: Packet, out: &mut Out) {
        let bytes = packet.wire_len();
        let (queues, order) = match self {
            Waiting::InOrder { queues, order } => (queues, order),
            Waiting::Scheduled(scheduler) => return scheduler.enter(side, to, packet, out),
        };
        let queue = &mut queues[to.index()];
        let before = queue.len();
        queue.enter(now, side, packet, bytes, out);
        // A discipline may have ended any number of those that waited.
        for _ in before..queue.len() {
            order.push_back(to);
        }
        for _ in queue.len()..before {
            if let Some(i) = order.iter().position(|s| *s == to) {
                order.remove(i);
            }
        }
    }

    /// Whether something may be sent to `to`.
    pub fn waits(&self, to: Station) -> bool {
        match self {
            Waiting::InOrder { queues, .. } => !queues[to.index()].is_empty(),
            Waiting::Scheduled(scheduler) => scheduler.is_open(to) && scheduler.queue.waits(to),
        }
    }

    /// Whom the packet is for that is to be sent next.
    pub fn next(&self) -> Option<Station> {
        match self {
            Waiting::InOrder { order, .. } => order.front().copied(),
            Waiting::Scheduled(scheduler) => scheduler.queue.next(|to| scheduler.is_open(to)),
        }
    }

    /// Takes the next packet for `to`.
    pub fn take(&mut self, now: Time, side: Side, to: Station, out: &mut Out) -> Option<Packet> {
        match self {
            Waiting::InOrder { queues, order } => {
                let queue = &mut queues[to.index()];
                let before = queue.len();
                let waiting = queue.leave(now, side, out);
                // A discipline may have ended some before it.
                for _ in queue.len()..before {
                    if let Some(i) = order.iter().position(|s| *s == to) {
                        order.remove(i);
                    }
                }
                waiting.map(|waiting| waiting.packet)
            }
            Waiting::Scheduled(scheduler) => scheduler.take(to),
        }
    }
}

/// What a base station has done for one mobile station.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tally {
    /// Packets handed to the link layer, those that came back counted each time.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Packets that medium access handed back.
    pub returned: u64,
    /// How often the channel was taken for bad.
    pub closed: u64,
}

/// What is known about one mobile station.
#[derive(Clone, Debug, Default)]
struct Served {
    /// Nothing is sent to it before.
    closed_until: Time,
    /// When something came from it last.
    heard: Option<Time>,
    /// The packet that was taken last: its place in the order of arrival, and how often it was taken.
    taken: Option<(PacketId, u64, u32)>,
    tally: Tally,
}

/// Serves the mobile stations in turn, without those whose channel is bad.
#[derive(Clone, Debug)]
pub(super) struct Scheduler {
    config: CsdpConfig,
    queue: Csdp<Station>,
    room: Room,
    /// As of the last step of the hop.
    now: Time,
    served: Vec<Served>,
}

impl Scheduler {
    /// It is `now`.
    pub fn advance(&mut self, now: Time) {
        self.now = now.max(self.now);
    }

    /// Whether the channels are to tell it their states.
    pub fn asks_oracle(&self) -> bool {
        self.config.channel == Knowledge::Oracle
    }

    /// After how many attempts medium access is to hand a frame back.
    pub fn attempts(config: &Discipline) -> Option<u32> {
        match config {
            Discipline::Csdp(csdp) if csdp.channel != Knowledge::None => Some(csdp.attempts),
            _ => None,
        }
    }

    /// Whether anything may be sent to `to`.
    pub fn is_open(&self, to: Station) -> bool {
        self.served[to.index()].closed_until <= self.now
    }

    /// When the next station may be sent to again.
    pub fn next_wake(&self) -> Option<Time> {
        let closed = self.served.iter().map(|served| served.closed_until);
        closed.filter(|until| *until > self.now && *until < Time::NEVER).min()
    }

    /// What has been done for each station, the base station first.
    pub fn tallies(&self) -> impl Iterator<Item = Tally> {
        self.served.iter().map(|served| served.tally)
    }

    /// The oracle says that the channel to `to` is bad until then; a time that has passed means that it is good.
    pub fn foretold(&mut self, to: Station, until: Time) {
        let open = self.is_open(to);
        self.served[to.index()].closed_until = until;
        self.served[to.index()].tally.closed += u64::from(open && until > self.now);
    }

    fn enter(&mut self, side: Side, to: Station, packet: Packet, out: &mut Out) {
        let waiting = Packeted { bytes: packet.wire_len(), packet };
        if !self.room.admits(waiting.bytes) {
            return waiting.overflow(side, out);
        }
        self.room.add(waiting.bytes);
        self.queue.put(to, waiting);
    }

    fn take(&mut self, to: Station) -> Option<Packet> {
        let (stamp, Packeted { packet, bytes }) = self.queue.take(to)?;
        self.room.remove(bytes);
        let served = &mut self.served[to.index()];
        served.tally.packets += 1;
        served.tally.bytes += u64::from(bytes);
        let times = match served.taken {
            Some((id, _, times)) if id == packet.id => times + 1,
            _ => 1,
        };
        served.taken = Some((packet.id, stamp, times));
        Some(packet)
    }

    /// Whether `packet`, which medium access hands back, is to wait again: the last one taken, until it has been tried
    /// often enough.
    pub fn takes_back(&self, to: Station, packet: &Packet) -> bool {
        let last = self.served[to.index()].taken;
        self.config.channel != Knowledge::None
            && last.is_some_and(|(id, _, times)| id == packet.id && times < self.config.tries)
    }

    /// Puts such a packet back.
    pub fn put_back(&mut self, to: Station, packet: Packet) {
        let served = &mut self.served[to.index()];
        served.tally.returned += 1;
        let stamp = served.taken.map_or(0, |(_, stamp, _)| stamp);
        let bytes = packet.wire_len();
        self.room.add(bytes);
        self.queue.put_back(to, stamp, Packeted { packet, bytes });
    }

    /// Something has come from `from`, or has been acknowledged by it: its channel is good.
    pub fn heard(&mut self, from: Station) {
        let served = &mut self.served[from.index()];
        served.heard = Some(self.now);
        if self.config.channel == Knowledge::Failures {
            served.closed_until = Time::ZERO;
        }
    }

    /// An attempt to send to `to` has failed: whether its channel is taken for bad from now on.
    pub fn failed(&mut self, to: Station) -> bool {
        if self.config.channel != Knowledge::Failures || !self.is_open(to) {
            return false;
        }
        let served = &mut self.served[to.index()];
        served.closed_until = self.now + self.config.backoff;
        served.tally.closed += 1;
        true
    }

    /// The link layer sends something to `to` once more. That a frame was lost says nothing of the channel by itself:
    /// bad is one from which nothing has come either.
    pub fn repeated(&mut self, to: Station) -> bool {
        let silent = |at: Time| self.now.since(at) >= self.config.backoff.max(Span(1));
        let quiet = self.served[to.index()].heard.is_none_or(silent);
        quiet && self.failed(to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a scheduler of this knowledge thinks of a station whose frame is sent once more `after` something came
    /// from it.
    fn closes(channel: Knowledge, backoff: Span, after: Option<Span>) -> (bool, u64) {
        let config = CsdpConfig { channel, backoff, ..CsdpConfig::default() };
        let mut waiting = Waiting::scheduled(config, Limit::Packets(10), 3);
        let scheduler = waiting.scheduler().unwrap();
        let to = Station(1);
        let heard = Time::ZERO + Span::secs(1);
        scheduler.now = heard;
        if let Some(after) = after {
            scheduler.served[to.index()].heard = Some(heard);
            scheduler.now = heard + after;
        }
        let closed = scheduler.repeated(to);
        (closed, scheduler.served[to.index()].tally.closed)
    }

    #[test]
    fn a_repetition_closes_a_channel_from_which_nothing_came_for_as_long_as_it_then_is() {
        let backoff = Span::millis(10);
        let late = |nanos| Some(Span(nanos));
        let cases = [
            (backoff, None, true),
            (backoff, late(9_999_999), false),
            (backoff, late(10_000_000), true),
            (backoff, late(20_000_000), true),
            // At the same instant something has been heard.
            (Span::ZERO, late(0), false),
            (Span::ZERO, late(1), true),
        ];
        for (backoff, after, closed) in cases {
            let found = closes(Knowledge::Failures, backoff, after);
            assert_eq!(found, (closed, u64::from(closed)), "{backoff:?}, {after:?}");
        }
        for channel in [Knowledge::None, Knowledge::Oracle] {
            assert_eq!(
                closes(channel, backoff, None),
                (false, 0),
                "{channel:?} does not go by failures"
            );
        }
    }

    /// Packets go in the order in which they came, whoever they are for; where a discipline ends some to let another one
    /// in, turns of their receiver are gone and nobody else's.
    #[test]
    fn turns_are_those_of_the_packets_that_wait() {
        use crate::wire::{Addr, Body, Flags, Segment, Seq};
        let packet = |id, bytes: usize| {
            let segment = Segment::new(1, 2, Seq(1), Seq(1), Flags::ACK);
            let body = Body::copy_of(&vec![0; bytes]);
            Packet::tcp(Addr::v4(10, 0, 0, 1), Addr::v4(10, 0, 0, 2), segment, body)
                .with(|packet| packet.id = PacketId(id))
        };
        let stream = || crate::rng::Stream::new(1, "queue");
        let queue =
            || Queue::new(Limit::Bytes(crate::units::Bytes(2000)), Discipline::HeadDrop, stream);
        let mut waiting = Waiting::new(vec![queue(), queue(), queue()]);
        let mut out = Out::new(crate::event::Wants::METRICS);
        // The fifth has room alone.
        for (id, to, bytes) in
            [(1, 1, 500), (2, 2, 500), (3, 1, 500), (4, 1, 500), (5, 1, 1900), (6, 2, 500)]
        {
            let packet = packet(id, bytes);
            waiting.enter(Time::ZERO, Side::Right, Station(to), packet, &mut out);
        }
        let mut left = Vec::new();
        while let Some(to) = waiting.next() {
            assert!(waiting.waits(to), "it is nobody's turn: {left:?}");
            let packet = waiting.take(Time::ZERO, Side::Right, to, &mut out);
            left.push((packet.expect("a packet whose turn it is").id.0, to.0));
        }
        assert_eq!(left, [(2, 2), (5, 1), (6, 2)]);
        assert!((0..3).all(|to| !waiting.waits(Station(to))), "somebody waits for ever");
    }
}
