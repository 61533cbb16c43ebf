//! Queues in front of a link.
//!
//! The capacity of a queue ([`Limit`]) is independent of its treatment of packets ([`Discipline`]). A
//! discipline is one file that implements [`Order`]: it accepts packets, may drop any of its packets with a
//! cause, and returns the next one. It owns its state. Packets pass through it by value, so it may change
//! them; its events go to [`Out`].

use serde::Serialize;

use crate::describe::Keys;
use crate::event::{Cause, Op};
use crate::machine::{Out, Side};
use crate::rng::Stream;
use crate::units::{Rate, Time};
use crate::wire::{Addr, CE, Damage, Flags, Packet};

mod longest;

pub use crate::units::Limit;

pub use ack_filter::{AckFilter, RandomFilter};
pub use acks_first::AcksFirst;
pub use airtime::{Airtime, AirtimeConfig};
pub use codel::{Codel, CodelConfig};
pub use csdp::{Csdp, CsdpConfig};
pub use drop_tail::{DropTail, Fifo};
pub use dualpi2::{DualPi2, DualPi2Config};
pub use fq_codel::{FqCodel, FqCodelConfig, Share};
pub use pie::{Pie, PieConfig};
pub use red::{Red, RedConfig};

/// Reads the keys of a discipline in front of a transmitter of this rate.
pub type Read = fn(&mut Keys<'_>, Option<Rate>) -> Discipline;

family! {
    $ each;

    /// Treatment of waiting packets.
    #[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
    #[serde(rename_all = "kebab-case")]
    config Discipline;

    /// The disciplines. An enum, so that a packet needs no indirect call; the plain one is not even boxed.
    #[derive(Clone, Debug)]
    machine Kind(rng: &dyn Fn() -> Stream);

    /// Descriptors of the disciplines, in the order of the manual.
    words Read;

    /// First in, first out; packets that do not fit are dropped. See [`drop_tail`].
    #[default]
    [drop_tail] Fifo => Fifo = Fifo::default(), drop_tail::WORDS;
    [head_drop] HeadDrop => Box<head_drop::HeadDrop> = Box::default(), head_drop::WORDS;
    /// A new ACK removes the older ones of its connection (balakrishnan97 4.2.2). See [`AckFilter`].
    [ack_filter] AckFilter => Box<AckFilter> = Box::default(), ack_filter::WORDS;
    /// A new ACK removes a random fraction of them. See [`AckFilter`].
    AckFilterRandom(filter: RandomFilter) => Box<AckFilter> = Box::new(AckFilter::random(*filter, rng())), ack_filter::RANDOM;
    /// ACKs precede all other packets (balakrishnan97 4.4.1). See [`AcksFirst`].
    [acks_first] AcksFirst => Box<AcksFirst<Fifo>> = Box::default(), acks_first::WORDS;
    /// ACKs precede all other packets, and are filtered.
    #[serde(rename = "ack-filter+acks-first")]
    AckFilterAcksFirst => Box<AcksFirst<AckFilter>> = Box::default(), acks_first::WITH_FILTER;
    /// Random early detection in front of a plain queue. See [`Red`].
    [red] Red(red: RedConfig) => Box<Red<Fifo>> = Box::new(Red::new(*red, rng())), red::WORDS;
    /// Random early detection by the length of the whole queue, with ACKs first.
    #[serde(rename = "red+acks-first")]
    RedAcksFirst(red: RedConfig) => Box<Red<AcksFirst<Fifo>>> = Box::new(Red::new(*red, rng())), red::BEFORE_CLASSES;
    /// A queue per host, served in turn; in a radio hop except for hosts with a bad channel. See [`csdp`].
    [csdp] Csdp(csdp: CsdpConfig) => Box<Csdp<Addr>> = Box::new(Csdp::new(csdp)), csdp::WORDS;
    /// A queue per mobile station, served by airtime. See [`airtime`].
    [airtime] Airtime(air: AirtimeConfig) => Box<FqCodel> = Box::new(FqCodel::new(air.flows(), rng())), airtime::WORDS;
    /// Drops packets from the head while the delay is persistently too long (RFC 8289). See [`Codel`].
    [codel] Codel(codel: CodelConfig) => Box<Codel> = Box::new(Codel::new(*codel)), codel::WORDS;
    /// A queue with [`Codel`] per flow, served in turn (RFC 8290). See [`FqCodel`].
    [fq_codel] FqCodel(fq: FqCodelConfig) => Box<FqCodel> = Box::new(FqCodel::new(*fq, rng())), fq_codel::WORDS;
    /// Drops arriving packets with a probability that holds the delay at its target (RFC 8033). See [`Pie`].
    [pie] Pie(pie: PieConfig) => Box<Pie> = Box::new(Pie::new(*pie, rng())), pie::WORDS;
    /// Two queues with coupled marks, for L4S and for classic traffic (RFC 9332). See [`DualPi2`].
    [dualpi2] DualPi2(dual: DualPi2Config) => Box<DualPi2> = Box::new(DualPi2::new(*dual)), dualpi2::WORDS;
}

impl Discipline {
    /// Whether this is the plain queue, the default of every link.
    pub fn is_fifo(&self) -> bool {
        *self == Discipline::Fifo
    }
}

/// A packet in a queue.
#[derive(Clone, Debug)]
pub struct Waiting {
    /// The packet.
    pub packet: Packet,
    /// Its length in the unit of the queue's limit, with the framing of the link.
    pub bytes: u32,
}

impl Waiting {
    /// Drops the packet for a full queue.
    pub fn overflow(self, side: Side, out: &mut Out) {
        out.discard(side, self.packet, Cause::QueueFull);
    }
}

/// Handles a `packet` on its way to `side` that a discipline has chosen for a congestion signal. An
/// ECN-capable packet is marked and returned; others are dropped.
//= rfc3168#section-5: a router sets CE on packets of an ECN-capable transport instead of dropping them
fn choose(mark: bool, side: Side, mut packet: Packet, out: &mut Out) -> Option<Packet> {
    if !mark || !packet.is_ecn_capable() {
        out.discard(side, packet, Cause::EarlyDrop);
        return None;
    }
    packet.tos |= CE;
    out.packet_event(Op::Marked, side, &packet);
    Some(packet)
}

/// Longest queue whose packets are summed by assertions after each call.
const FEW: usize = 32;

/// Occupancy of a queue.
#[derive(Clone, Debug)]
pub struct Room {
    limit: Limit,
    packets: usize,
    bytes: u64,
}

impl Room {
    /// Asserts that the counts of packets and bytes agree.
    pub fn check(&self) {
        debug_assert_eq!(self.packets == 0, self.bytes == 0, "an empty queue has no bytes");
        debug_assert!(self.bytes >= self.packets as u64, "each packet has bytes: {self:?}");
    }

    /// Asserts that these are its packets.
    fn check_packets<'a>(&self, packets: impl ExactSizeIterator<Item = &'a Waiting>) {
        debug_assert_eq!(self.packets, packets.len(), "packets that occupy the room");
        if cfg!(debug_assertions) && packets.len() <= FEW {
            let bytes = packets.map(|waiting| u64::from(waiting.bytes)).sum::<u64>();
            debug_assert_eq!(self.bytes, bytes, "bytes of the waiting packets");
        }
    }

    /// An empty queue's.
    pub fn new(limit: Limit) -> Room {
        Room { limit, packets: 0, bytes: 0 }
    }

    /// Waiting bytes, in the unit of the limit.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Number of waiting packets.
    #[inline]
    pub fn len(&self) -> usize {
        self.packets
    }

    /// Whether no packet waits.
    pub fn is_empty(&self) -> bool {
        self.packets == 0
    }

    /// Whether `bytes` more bytes fit.
    #[inline]
    pub fn admits(&self, bytes: u32) -> bool {
        self.limit.admits(self.packets, self.bytes, bytes)
    }

    /// Whether `bytes` bytes would fit without a packet of `gone` bytes.
    pub fn admits_without(&self, gone: u32, bytes: u32) -> bool {
        self.limit.admits(self.packets - 1, self.bytes - u64::from(gone), bytes)
    }

    /// Adds a packet of `bytes` bytes.
    #[inline]
    pub fn add(&mut self, bytes: u32) {
        debug_assert!(bytes > 0, "a packet without bytes");
        self.packets += 1;
        self.bytes += u64::from(bytes);
    }

    /// Removes a packet of `bytes` bytes.
    #[inline]
    pub fn remove(&mut self, bytes: u32) {
        debug_assert!(self.packets > 0, "no packet to remove");
        debug_assert!(u64::from(bytes) <= self.bytes, "more bytes than the queue has: {bytes}");
        self.packets -= 1;
        self.bytes -= u64::from(bytes);
    }
}

/// The decisions of a discipline: admission and order.
pub trait Order {
    /// Asserts the invariants of the discipline, whose packets take the space of `room`.
    fn check(&self, room: &Room) {
        let _ = room;
    }

    /// Handles a packet on its way to `side`. It is stored and added to `room`, or dropped; other waiting
    /// packets may be dropped and removed from `room` as well.
    fn enqueue(&mut self, now: Time, side: Side, waiting: Waiting, room: &mut Room, out: &mut Out);

    /// Handles a packet on its way to `side` that need not wait; `None` if it is dropped.
    fn pass(
        &mut self,
        now: Time,
        side: Side,
        packet: Packet,
        room: &Room,
        out: &mut Out,
    ) -> Option<Packet> {
        let _ = (now, side, room, out);
        Some(packet)
    }

    /// Observes a packet in another queue of the same transmitter.
    fn watch(&mut self, packet: &Packet) {
        let _ = packet;
    }

    /// The next packet to transmit towards `side`, from `at` on. Removes it from `room`, together with
    /// packets before it that the discipline drops.
    fn dequeue(&mut self, at: Time, side: Side, room: &mut Room, out: &mut Out) -> Option<Waiting>;

    /// Whether a packet may be dropped when it leaves. Such a discipline is called at that time, so that the
    /// event has the right time.
    fn judges_leaving(&self) -> bool {
        false
    }

    /// The average length in packets, if the discipline uses one.
    fn average(&self) -> Option<f64> {
        None
    }
}

/// A queue that stores packets until the transmitter is free.
#[derive(Clone, Debug)]
pub struct Queue {
    room: Room,
    kind: Kind,
}

impl Queue {
    /// Asserts the invariants of queue and discipline.
    pub fn check(&self) {
        self.room.check();
        each!(&self.kind, order => order.check(&self.room));
    }

    /// An empty queue, with random draws from `rng`.
    pub fn new(limit: Limit, discipline: Discipline, rng: impl Fn() -> Stream) -> Queue {
        Queue { room: Room::new(limit), kind: Kind::new(&discipline, &rng) }
    }

    /// Adds a packet on its way to `side`; `bytes` is its length in the unit of the limit.
    #[inline]
    pub fn enqueue(&mut self, now: Time, side: Side, packet: Packet, bytes: u32, out: &mut Out) {
        let waiting = Waiting { packet, bytes };
        each!(&mut self.kind, order => order.enqueue(now, side, waiting, &mut self.room, out));
    }

    /// Handles a packet on its way to `side` that finds an empty queue and an idle transmitter. It need not
    /// wait, but early congestion detection counts it; `None` if it is dropped.
    #[inline]
    pub fn pass(&mut self, now: Time, side: Side, packet: Packet, out: &mut Out) -> Option<Packet> {
        each!(&mut self.kind, order => order.pass(now, side, packet, &self.room, out))
    }

    /// The packet whose transmission towards `side` begins at `at`, with its length as given to
    /// [`Queue::enqueue`].
    #[inline]
    pub fn dequeue(&mut self, at: Time, side: Side, out: &mut Out) -> Option<Waiting> {
        each!(&mut self.kind, order => order.dequeue(at, side, &mut self.room, out))
    }

    /// Whether a packet may be dropped when it leaves.
    #[inline]
    pub fn judges_leaving(&self) -> bool {
        each!(&self.kind, order => order.judges_leaving())
    }

    /// Average length in packets of random early detection, if it is part of this queue.
    pub fn average(&self) -> Option<f64> {
        each!(&self.kind, order => order.average())
    }

    /// Number of waiting packets.
    #[inline]
    pub fn len(&self) -> usize {
        self.room.len()
    }

    /// Whether no packet waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Whether a packet is a pure ACK: no data, and no control flag with a place in the order of the data. A
/// damaged packet is none, since its receiver drops it.
//= rfc3449#section-5.2.1: an ACK with data or with SYN, FIN, RST or URG set has other functions
pub fn is_pure_ack(packet: &Packet) -> bool {
    let Some(segment) = packet.segment() else { return false };
    let flags = segment.flags;
    packet.body.is_empty()
        && packet.damage == Damage::None
        && flags.has(Flags::ACK)
        && !flags.any(Flags::SYN | Flags::FIN | Flags::RST | Flags::URG)
}
