//! Waiting packets at one station of a radio hop: a queue per receiver served in the order of arrival, or
//! scheduled by the state of the channels (see [`crate::queue::csdp`]).

use std::collections::VecDeque;

use crate::air::Station;
use crate::machine::{Out, Side};
use crate::queue::csdp::{Csdp, CsdpConfig, Knowledge};
use crate::queue::{Airtime, AirtimeConfig, Discipline, Limit, Queue, Room, Waiting as Packeted};
use crate::units::{Span, Time};
use crate::wire::{Packet, PacketId};

/// Waiting packets at one station.
#[derive(Clone, Debug)]
pub(super) enum Waiting {
    /// First in, first out.
    InOrder {
        /// By receiver.
        queues: Vec<Queue>,
        /// Receivers of the waiting packets, oldest first.
        order: VecDeque<Station>,
    },
    /// Scheduled by the base station.
    Scheduled(Box<Scheduler>),
    /// Served by airtime.
    Airtime {
        /// By receiver.
        queues: Vec<Queue>,
        air: Box<Airtime>,
    },
}

impl Waiting {
    /// Number of packets.
    pub fn len(&self) -> usize {
        match self {
            Waiting::InOrder { order, .. } => order.len(),
            Waiting::Scheduled(scheduler) => scheduler.room.len(),
            Waiting::Airtime { queues, .. } => queues.iter().map(Queue::len).sum(),
        }
    }

    /// Asserts that packets, their order and their space agree.
    pub fn check(&self) {
        match self {
            Waiting::InOrder { queues, order } => {
                queues.iter().for_each(Queue::check);
                let packets = queues.iter().map(Queue::len).sum::<usize>();
                debug_assert_eq!(packets, order.len(), "a turn for each packet");
                debug_assert!(
                    order.iter().take(4).all(|to| !queues[to.index()].is_empty()),
                    "a turn of a station without packets"
                );
            }
            Waiting::Airtime { queues, .. } => queues.iter().for_each(Queue::check),
            Waiting::Scheduled(scheduler) => {
                scheduler.room.check();
                debug_assert_eq!(
                    scheduler.queue.len(),
                    scheduler.room.len(),
                    "packets of all hosts"
                );
                scheduler.queue.check_backlogs();
                for served in &scheduler.served {
                    debug_assert!(
                        served.last_frame.is_none_or(|at| at <= scheduler.now),
                        "a frame arrived in the future"
                    );
                    debug_assert!(
                        served.tally.returned <= served.tally.packets,
                        "more packets came back than were taken"
                    );
                }
            }
        }
    }

    /// An empty station with `queues` towards each station.
    pub fn new(queues: Vec<Queue>) -> Waiting {
        Waiting::InOrder { queues, order: VecDeque::new() }
    }

    /// An empty base station with a scheduler for `stations`.
    pub fn scheduled(config: CsdpConfig, limit: Limit, stations: u8) -> Waiting {
        Waiting::Scheduled(Box::new(Scheduler {
            config,
            queue: Csdp::new(&config),
            room: Room::new(limit),
            now: Time::ZERO,
            served: vec![Served::default(); usize::from(stations)],
        }))
    }

    /// An empty base station with `queues`, served by airtime.
    pub fn by_airtime(config: &AirtimeConfig, queues: Vec<Queue>) -> Waiting {
        let air = Box::new(Airtime::new(config, queues.len() as u8));
        Waiting::Airtime { queues, air }
    }

    /// Records a transmission of a base station to `station`, or from it.
    pub fn charge(&mut self, station: Station, airtime: Span) {
        if let Waiting::Airtime { air, .. } = self {
            air.charge(station, airtime);
        }
    }

    /// The scheduler, if there is one.
    pub fn scheduler(&mut self) -> Option<&mut Scheduler> {
        if let Waiting::Scheduled(scheduler) = self { Some(scheduler) } else { None }
    }

    /// Adds `packet` for `to`, on its way to `side`.
    pub fn enter(&mut self, now: Time, side: Side, to: Station, packet: Packet, out: &mut Out) {
        let bytes = packet.wire_len();
        let (queues, order) = match self {
            Waiting::InOrder { queues, order } => (queues, order),
            Waiting::Scheduled(scheduler) => return scheduler.enter(side, to, packet, out),
            Waiting::Airtime { queues, air } => {
                let queue = &mut queues[to.index()];
                queue.enqueue(now, side, packet, bytes, out);
                if !queue.is_empty() {
                    air.activate(to);
                }
                return;
            }
        };
        let queue = &mut queues[to.index()];
        let before = queue.len();
        queue.enqueue(now, side, packet, bytes, out);
        // A discipline may have dropped any number of waiting packets.
        for _ in before..queue.len() {
            order.push_back(to);
        }
        for _ in queue.len()..before {
            if let Some(i) = order.iter().position(|s| *s == to) {
                order.remove(i);
            }
        }
    }

    /// Whether a packet for `to` may be sent.
    pub fn waits(&self, to: Station) -> bool {
        match self {
            Waiting::InOrder { queues, .. } | Waiting::Airtime { queues, .. } => {
                !queues[to.index()].is_empty()
            }
            Waiting::Scheduled(scheduler) => scheduler.is_open(to) && scheduler.queue.waits(to),
        }
    }

    /// Receiver of the next packet.
    pub fn next(&self) -> Option<Station> {
        match self {
            Waiting::InOrder { order, .. } => order.front().copied(),
            Waiting::Scheduled(scheduler) => scheduler.queue.next(|to| scheduler.is_open(to)),
            Waiting::Airtime { air, .. } => air.next(),
        }
    }

    /// Removes the next packet for `to`.
    pub fn take(&mut self, now: Time, side: Side, to: Station, out: &mut Out) -> Option<Packet> {
        match self {
            Waiting::InOrder { queues, order } => {
                let queue = &mut queues[to.index()];
                let before = queue.len();
                let waiting = queue.dequeue(now, side, out);
                // A discipline may have dropped some before it.
                for _ in queue.len()..before {
                    if let Some(i) = order.iter().position(|s| *s == to) {
                        order.remove(i);
                    }
                }
                waiting.map(|waiting| waiting.packet)
            }
            Waiting::Scheduled(scheduler) => scheduler.take(to),
            Waiting::Airtime { queues, air } => {
                if !air.serves(to) {
                    return None;
                }
                air.serve(to);
                let queue = &mut queues[to.index()];
                let waiting = queue.dequeue(now, side, out);
                if queue.is_empty() {
                    air.deactivate(to);
                }
                waiting.map(|waiting| waiting.packet)
            }
        }
    }
}

/// Counts of a base station for one mobile station.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tally {
    /// Packets passed to the link layer; returned packets count each time.
    pub packets: u64,
    /// Bytes of these packets.
    pub bytes: u64,
    /// Packets that medium access returned.
    pub returned: u64,
    /// Number of times the channel was regarded as bad.
    pub closed: u64,
}

/// State of one mobile station.
#[derive(Clone, Debug, Default)]
struct Served {
    /// No packet is sent to it before this time.
    closed_until: Time,
    /// Time of the last frame from it.
    last_frame: Option<Time>,
    /// The last dequeued packet: its identity, its arrival number, and the number of attempts.
    taken: Option<(PacketId, u64, u32)>,
    tally: Tally,
}

/// Serves the mobile stations in turn, except those with a bad channel.
#[derive(Clone, Debug)]
pub(super) struct Scheduler {
    config: CsdpConfig,
    queue: Csdp<Station>,
    room: Room,
    /// Time of the hop's last step.
    now: Time,
    served: Vec<Served>,
}

impl Scheduler {
    /// Updates the time.
    pub fn advance(&mut self, now: Time) {
        self.now = now.max(self.now);
    }

    /// Whether the scheduler uses the true states of the channels.
    pub fn uses_oracle(&self) -> bool {
        self.config.channel == Knowledge::Oracle
    }

    /// Number of attempts after which medium access returns a frame.
    pub fn attempts(config: &Discipline) -> Option<u32> {
        match config {
            Discipline::Csdp(csdp) if csdp.channel != Knowledge::None => Some(csdp.attempts),
            _ => None,
        }
    }

    /// Whether packets may be sent to `to`.
    pub fn is_open(&self, to: Station) -> bool {
        self.served[to.index()].closed_until <= self.now
    }

    /// Time at which the next closed station opens.
    pub fn next_wake(&self) -> Option<Time> {
        let closed = self.served.iter().map(|served| served.closed_until);
        closed.filter(|until| *until > self.now && *until < Time::NEVER).min()
    }

    /// Counts for each station, the base station first.
    pub fn tallies(&self) -> impl Iterator<Item = Tally> {
        self.served.iter().map(|served| served.tally)
    }

    /// Records that the channel to `to` is bad until `until`; a time in the past means good.
    pub fn set_bad_until(&mut self, to: Station, until: Time) {
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

    /// Whether a `packet` returned by medium access is queued again: it must be the last dequeued one, with
    /// attempts left.
    pub fn takes_back(&self, to: Station, packet: &Packet) -> bool {
        let last = self.served[to.index()].taken;
        self.config.channel != Knowledge::None
            && last.is_some_and(|(id, _, times)| id == packet.id && times < self.config.tries)
    }

    /// Queues such a packet again.
    pub fn put_back(&mut self, to: Station, packet: Packet) {
        let served = &mut self.served[to.index()];
        served.tally.returned += 1;
        let stamp = served.taken.map_or(0, |(_, stamp, _)| stamp);
        let bytes = packet.wire_len();
        self.room.add(bytes);
        self.queue.put_back(to, stamp, Packeted { packet, bytes });
    }

    /// Records a frame or an acknowledgement from `from`: its channel is good.
    pub fn record_arrival(&mut self, from: Station) {
        let served = &mut self.served[from.index()];
        served.last_frame = Some(self.now);
        if self.config.channel == Knowledge::Failures {
            served.closed_until = Time::ZERO;
        }
    }

    /// Records a failed attempt to send to `to`. Returns whether its channel is regarded as bad from now on.
    pub fn failed(&mut self, to: Station) -> bool {
        if self.config.channel != Knowledge::Failures || !self.is_open(to) {
            return false;
        }
        let served = &mut self.served[to.index()];
        served.closed_until = self.now + self.config.backoff;
        served.tally.closed += 1;
        true
    }

    /// Records a retransmission of the link layer to `to`. A lost frame alone does not show a bad channel: it
    /// is bad if no frame has arrived from it either.
    pub fn repeated(&mut self, to: Station) -> bool {
        let silent = |at: Time| self.now.since(at) >= self.config.backoff.max(Span(1));
        let quiet = self.served[to.index()].last_frame.is_none_or(silent);
        quiet && self.failed(to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether the scheduler closes the channel of a station that needs a retransmission `after` its last
    /// frame.
    fn closes(channel: Knowledge, backoff: Span, after: Option<Span>) -> (bool, u64) {
        let config = CsdpConfig { channel, backoff, ..CsdpConfig::default() };
        let mut waiting = Waiting::scheduled(config, Limit::Packets(10), 3);
        let scheduler = waiting.scheduler().unwrap();
        let to = Station(1);
        let arrival = Time::ZERO + Span::secs(1);
        scheduler.now = arrival;
        if let Some(after) = after {
            scheduler.served[to.index()].last_frame = Some(arrival);
            scheduler.now = arrival + after;
        }
        let closed = scheduler.repeated(to);
        (closed, scheduler.served[to.index()].tally.closed)
    }

    #[test]
    fn a_retry_closes_a_channel_silent_for_the_backoff() {
        let backoff = Span::millis(10);
        let late = |nanos| Some(Span(nanos));
        let cases = [
            (backoff, None, true),
            (backoff, late(9_999_999), false),
            (backoff, late(10_000_000), true),
            (backoff, late(20_000_000), true),
            // A frame from the station arrived at the same instant.
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

    /// Packets leave in the order of arrival, whatever their receiver. If a discipline drops some for a new
    /// one, only their receiver's turns are removed.
    #[test]
    fn turns_match_the_queued_packets_after_drops() {
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
        let mut out = Out::new(crate::event::Interest::METRICS);
        // The fifth only fits alone.
        for (id, to, bytes) in
            [(1, 1, 500), (2, 2, 500), (3, 1, 500), (4, 1, 500), (5, 1, 1900), (6, 2, 500)]
        {
            let packet = packet(id, bytes);
            waiting.enter(Time::ZERO, Side::Right, Station(to), packet, &mut out);
        }
        let mut left = Vec::new();
        while let Some(to) = waiting.next() {
            assert!(waiting.waits(to), "no packet for {to:?}: {left:?}");
            let packet = waiting.take(Time::ZERO, Side::Right, to, &mut out);
            left.push((packet.expect("a packet whose turn it is").id.0, to.0));
        }
        assert_eq!(left, [(2, 2), (5, 1), (6, 2)]);
        assert!((0..3).all(|to| !waiting.waits(Station(to))), "a station waits forever");
    }
}
