//! Queues in front of a link.
//!
//! How much a queue holds is one thing ([`Limit`]), what it does with the packets is another ([`Discipline`]). A
//! discipline is one file that implements [`Order`]: it takes packets in, may end any of those it has with a
//! cause, and gives the next one out. It owns its state, packets pass through it by value, so it may change them,
//! and what it tells the world goes to [`Out`].

pub mod ack_filter;
pub mod acks_first;
pub mod drop_tail;
pub mod red;

use serde::Serialize;

use crate::event::{Cause, Op};
use crate::machine::{Out, Side};
use crate::rng::Stream;
use crate::units::{Bytes, Time};
use crate::wire::{Damage, Flags, Packet};

pub use ack_filter::AckFilter;
pub use acks_first::AcksFirst;
pub use drop_tail::{DropTail, Fifo};
pub use red::{Red, RedConfig};

/// How much a queue holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Limit {
    /// So many packets, the one in transmission not counted.
    Packets(u32),
    /// So many bytes, the packet in transmission not counted.
    Bytes(Bytes),
}

impl Limit {
    /// Whether a queue that holds `packets` of together `bytes` has room for one more of `more` bytes.
    pub fn admits(self, packets: usize, bytes: u64, more: u32) -> bool {
        match self {
            Limit::Packets(limit) => packets < limit as usize,
            Limit::Bytes(limit) => bytes + u64::from(more) <= limit.0,
        }
    }
}

/// What a queue does with the packets that wait in it.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Discipline {
    /// First in, first out; what does not fit is dropped.
    #[default]
    Fifo,
    /// A new ACK clears the older ones of its connection (balakrishnan97 4.2.2). See [`AckFilter`].
    AckFilter,
    /// ACKs go before everything else (balakrishnan97 4.4.1). See [`AcksFirst`].
    AcksFirst,
    /// ACKs go first, and are filtered.
    #[serde(rename = "ack-filter+acks-first")]
    AckFilterAcksFirst,
    /// Random early detection before a plain queue. See [`Red`].
    Red(RedConfig),
    /// Random early detection by the length of the whole queue, in which ACKs go first.
    #[serde(rename = "red+acks-first")]
    RedAcksFirst(RedConfig),
}

impl Discipline {
    /// Whether this is the plain queue, which every link has unless told otherwise.
    pub fn is_fifo(&self) -> bool {
        *self == Discipline::Fifo
    }

    /// The options of random early detection, if that is part of it.
    pub fn red(self) -> Option<RedConfig> {
        match self {
            Discipline::Red(red) | Discipline::RedAcksFirst(red) => Some(red),
            _ => None,
        }
    }

    /// The same with these options of random early detection, if that is part of it.
    #[must_use]
    pub fn with_red(self, red: RedConfig) -> Discipline {
        match self {
            Discipline::Red(_) => Discipline::Red(red),
            Discipline::RedAcksFirst(_) => Discipline::RedAcksFirst(red),
            other => other,
        }
    }
}

/// A packet in a queue.
#[derive(Debug)]
pub struct Waiting {
    /// The packet.
    pub packet: Packet,
    /// Its length as the queue's limit counts it, with the framing of the link.
    pub bytes: u32,
}

impl Waiting {
    /// There is no room for it.
    fn overflow(self, side: Side, out: &mut Out) {
        out.discard(side, self.packet, Cause::QueueFull);
    }
}

/// How full a queue is.
#[derive(Clone, Debug)]
pub struct Room {
    limit: Limit,
    packets: usize,
    bytes: u64,
}

impl Room {
    /// An empty queue's.
    fn new(limit: Limit) -> Room {
        Room { limit, packets: 0, bytes: 0 }
    }

    /// Whether there is room for `bytes` more.
    #[inline]
    pub fn admits(&self, bytes: u32) -> bool {
        self.limit.admits(self.packets, self.bytes, bytes)
    }

    /// Whether there would be if a packet of `gone` bytes were not there.
    pub fn admits_without(&self, gone: u32, bytes: u32) -> bool {
        self.limit.admits(self.packets - 1, self.bytes - u64::from(gone), bytes)
    }

    /// A packet of `bytes` came.
    #[inline]
    pub fn add(&mut self, bytes: u32) {
        self.packets += 1;
        self.bytes += u64::from(bytes);
    }

    /// A packet of `bytes` went.
    #[inline]
    pub fn remove(&mut self, bytes: u32) {
        self.packets -= 1;
        self.bytes -= u64::from(bytes);
    }
}

/// What a discipline decides: who may wait, and who goes next.
pub trait Order {
    /// A packet on its way to `side` arrives. It is kept and counted into `room`, or ended; others that wait may
    /// be ended as well, and leave `room` then.
    fn enter(&mut self, side: Side, waiting: Waiting, room: &mut Room, out: &mut Out);

    /// The next packet to be transmitted. [`Queue::leave`] takes it out of the room.
    fn leave(&mut self) -> Option<Waiting>;
}

/// The disciplines. An enum, so that a packet costs no indirect call; the plain one is not even boxed.
#[derive(Debug)]
enum Kind {
    Fifo(Fifo),
    AckFilter(Box<AckFilter>),
    AcksFirst(Box<AcksFirst>),
}

/// A queue that keeps packets until the transmitter is free.
#[derive(Debug)]
pub struct Queue {
    room: Room,
    kind: Kind,
    red: Option<Box<Red>>,
}

impl Queue {
    /// An empty queue. What it leaves to chance is drawn from `chance`.
    pub fn new(limit: Limit, discipline: Discipline, chance: impl FnOnce() -> Stream) -> Queue {
        let kind = match discipline {
            Discipline::Fifo | Discipline::Red(_) => Kind::Fifo(Fifo::default()),
            Discipline::AckFilter => Kind::AckFilter(Box::default()),
            Discipline::AcksFirst | Discipline::RedAcksFirst(_) => {
                Kind::AcksFirst(Box::new(AcksFirst::new(false)))
            }
            Discipline::AckFilterAcksFirst => Kind::AcksFirst(Box::new(AcksFirst::new(true))),
        };
        let red = discipline.red().map(|config| Box::new(Red::new(config, chance())));
        Queue { room: Room::new(limit), kind, red }
    }

    /// A packet on its way to `side` arrives; `bytes` is its length as the limit counts it.
    #[inline]
    pub fn enter(&mut self, now: Time, side: Side, packet: Packet, bytes: u32, out: &mut Out) {
        let Some(packet) = self.detect(now, side, packet, out) else { return };
        let waiting = Waiting { packet, bytes };
        match &mut self.kind {
            Kind::Fifo(order) => order.enter(side, waiting, &mut self.room, out),
            Kind::AckFilter(order) => order.enter(side, waiting, &mut self.room, out),
            Kind::AcksFirst(order) => order.enter(side, waiting, &mut self.room, out),
        }
    }

    /// A packet on its way to `side` finds nobody waiting and the transmitter free. It need not wait, but what
    /// detects congestion early counts it; `None` if it ended by that.
    #[inline]
    pub fn pass(&mut self, now: Time, side: Side, packet: Packet, out: &mut Out) -> Option<Packet> {
        self.detect(now, side, packet, out)
    }

    #[inline]
    fn detect(
        &mut self,
        now: Time,
        side: Side,
        mut packet: Packet,
        out: &mut Out,
    ) -> Option<Packet> {
        let Some(red) = &mut self.red else { return Some(packet) };
        match red.arrive(now, self.room.packets, &mut packet) {
            red::Fate::Passes => {}
            red::Fate::Marked => out.packet_event(Op::Marked, side, &packet),
            red::Fate::Dropped => {
                out.discard(side, packet, Cause::EarlyDrop);
                return None;
            }
        }
        Some(packet)
    }

    /// The packet whose transmission begins at `at`, and its length as it was given.
    #[inline]
    pub fn leave(&mut self, at: Time) -> Option<Waiting> {
        let waiting = match &mut self.kind {
            Kind::Fifo(order) => order.leave(),
            Kind::AckFilter(order) => order.leave(),
            Kind::AcksFirst(order) => order.leave(),
        }?;
        self.room.remove(waiting.bytes);
        if self.room.packets == 0
            && let Some(red) = &mut self.red
        {
            red.emptied(at);
        }
        Some(waiting)
    }

    /// The average length in packets that random early detection goes by, if it is part of this queue.
    pub fn average(&self) -> Option<f64> {
        self.red.as_ref().map(|red| red.average())
    }

    /// How many packets wait.
    #[inline]
    pub fn len(&self) -> usize {
        self.room.packets
    }

    /// Whether none waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Whether a packet acknowledges and does nothing else: no data, and no control flag that has a place in the
/// order of the data. A damaged one is none, since its receiver will not read it.
//= rfc3449#section-5.2.1: an ACK with data or with SYN, FIN, RST or URG set has other functions
pub fn is_pure_ack(packet: &Packet) -> bool {
    let Some(segment) = packet.segment() else { return false };
    let flags = segment.flags;
    packet.body.is_empty()
        && packet.damage == Damage::None
        && flags.has(Flags::ACK)
        && !flags.any(Flags::SYN | Flags::FIN | Flags::RST | Flags::URG)
}
