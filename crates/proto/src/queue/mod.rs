//! Queues in front of a link.
//!
//! How much a queue holds is one thing ([`Limit`]), what it does with the packets is another ([`Discipline`]). A
//! discipline is one file that implements [`Order`]: it takes packets in, may end any of those it has with a
//! cause, and gives the next one out. It owns its state, packets pass through it by value, so it may change them,
//! and what it tells the world goes to [`Out`].

use serde::Serialize;

use crate::describe::Keys;
use crate::event::{Cause, Op};
use crate::machine::{Out, Side};
use crate::rng::Stream;
use crate::units::{Rate, Time};
use crate::wire::{Addr, CE, Damage, Flags, Packet};

mod longest;

pub use crate::units::Limit;

pub use ack_filter::AckFilter;
pub use acks_first::AcksFirst;
pub use codel::{Codel, CodelConfig};
pub use csdp::{Csdp, CsdpConfig};
pub use drop_tail::{DropTail, Fifo};
pub use dualpi2::{DualPi2, DualPi2Config};
pub use fq_codel::{FqCodel, FqCodelConfig, Share};
pub use pie::{Pie, PieConfig};
pub use red::{Red, RedConfig};

/// Goes over the keys of a discipline before a transmitter of this rate.
pub type Read = fn(&mut Keys<'_>, Option<Rate>) -> Discipline;

family! {
    $ each;

    /// What a queue does with the packets that wait in it.
    #[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
    #[serde(rename_all = "kebab-case")]
    config Discipline;

    /// The disciplines. An enum, so that a packet costs no indirect call; the plain one is not even boxed.
    #[derive(Clone, Debug)]
    machine Kind(chance: &dyn Fn() -> Stream);

    /// The words for a discipline, in the order of the manual.
    words Read;

    /// First in, first out; what does not fit is dropped. See [`drop_tail`].
    #[default]
    [drop_tail] Fifo => Fifo = Fifo::default(), drop_tail::WORDS;
    [head_drop] HeadDrop => Box<head_drop::HeadDrop> = Box::default(), head_drop::WORDS;
    /// A new ACK clears the older ones of its connection (balakrishnan97 4.2.2). See [`AckFilter`].
    [ack_filter] AckFilter => Box<AckFilter> = Box::default(), ack_filter::WORDS;
    /// ACKs go before everything else (balakrishnan97 4.4.1). See [`AcksFirst`].
    [acks_first] AcksFirst => Box<AcksFirst<Fifo>> = Box::default(), acks_first::WORDS;
    /// ACKs go first, and are filtered.
    #[serde(rename = "ack-filter+acks-first")]
    AckFilterAcksFirst => Box<AcksFirst<AckFilter>> = Box::default(), acks_first::WITH_FILTER;
    /// Random early detection before a plain queue. See [`Red`].
    [red] Red(red: RedConfig) => Box<Red<Fifo>> = Box::new(Red::new(*red, chance())), red::WORDS;
    /// Random early detection by the length of the whole queue, in which ACKs go first.
    #[serde(rename = "red+acks-first")]
    RedAcksFirst(red: RedConfig) => Box<Red<AcksFirst<Fifo>>> = Box::new(Red::new(*red, chance())), red::BEFORE_CLASSES;
    /// A queue for each host, served in turn; in a radio hop without those whose channel is bad. See [`csdp`].
    [csdp] Csdp(csdp: CsdpConfig) => Box<Csdp<Addr>> = Box::new(Csdp::new(csdp)), csdp::WORDS;
    /// Drops from the head what has waited too long for too long (RFC 8289). See [`Codel`].
    [codel] Codel(codel: CodelConfig) => Box<Codel> = Box::new(Codel::new(*codel)), codel::WORDS;
    /// A queue with [`Codel`] for each flow, served in turn (RFC 8290). See [`FqCodel`].
    [fq_codel] FqCodel(fq: FqCodelConfig) => Box<FqCodel> = Box::new(FqCodel::new(*fq, chance())), fq_codel::WORDS;
    /// Drops arriving packets by a chance that holds the delay at its target (RFC 8033). See [`Pie`].
    [pie] Pie(pie: PieConfig) => Box<Pie> = Box::new(Pie::new(*pie, chance())), pie::WORDS;
    /// Two queues whose marks are coupled, for L4S and for all others (RFC 9332). See [`DualPi2`].
    [dualpi2] DualPi2(dual: DualPi2Config) => Box<DualPi2> = Box::new(DualPi2::new(*dual)), dualpi2::WORDS;
}

impl Discipline {
    /// Whether this is the plain queue, which every link has unless told otherwise.
    pub fn is_fifo(&self) -> bool {
        *self == Discipline::Fifo
    }
}

/// A packet in a queue.
#[derive(Clone, Debug)]
pub struct Waiting {
    /// The packet.
    pub packet: Packet,
    /// Its length as the queue's limit counts it, with the framing of the link.
    pub bytes: u32,
}

impl Waiting {
    /// There is no room for it.
    pub fn overflow(self, side: Side, out: &mut Out) {
        out.discard(side, self.packet, Cause::QueueFull);
    }
}

/// `packet`, on its way to `side`, is chosen by a discipline that keeps queues short: it is marked if it may be, and
/// given back, and dropped otherwise.
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

/// How full a queue is.
#[derive(Clone, Debug)]
pub struct Room {
    limit: Limit,
    packets: usize,
    bytes: u64,
}

impl Room {
    /// An empty queue's.
    pub fn new(limit: Limit) -> Room {
        Room { limit, packets: 0, bytes: 0 }
    }

    /// How many bytes wait, as the limit counts them.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// How many packets wait.
    #[inline]
    pub fn len(&self) -> usize {
        self.packets
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.packets == 0
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
    fn enter(&mut self, now: Time, side: Side, waiting: Waiting, room: &mut Room, out: &mut Out);

    /// A packet on its way to `side` arrives that need not wait; `None` if it ended all the same.
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

    /// A packet goes past in another queue before the same transmitter.
    fn watch(&mut self, packet: &Packet) {
        let _ = packet;
    }

    /// The next packet to be transmitted towards `side`, from `at` on. It leaves `room`, and so do those before it
    /// that the discipline ends instead.
    fn leave(&mut self, at: Time, side: Side, room: &mut Room, out: &mut Out) -> Option<Waiting>;

    /// Whether a packet may end when it is its turn. Such a discipline is asked at that moment, so that the event
    /// has its time.
    fn judges_leaving(&self) -> bool {
        false
    }

    /// The average length in packets, if the discipline goes by it.
    fn average(&self) -> Option<f64> {
        None
    }
}

/// A queue that keeps packets until the transmitter is free.
#[derive(Clone, Debug)]
pub struct Queue {
    room: Room,
    kind: Kind,
}

impl Queue {
    /// An empty queue. What it leaves to chance is drawn from `chance`.
    pub fn new(limit: Limit, discipline: Discipline, chance: impl Fn() -> Stream) -> Queue {
        Queue { room: Room::new(limit), kind: Kind::new(&discipline, &chance) }
    }

    /// A packet on its way to `side` arrives; `bytes` is its length as the limit counts it.
    #[inline]
    pub fn enter(&mut self, now: Time, side: Side, packet: Packet, bytes: u32, out: &mut Out) {
        let waiting = Waiting { packet, bytes };
        each!(&mut self.kind, order => order.enter(now, side, waiting, &mut self.room, out));
    }

    /// A packet on its way to `side` finds nobody waiting and the transmitter free. It need not wait, but what
    /// detects congestion early counts it; `None` if it ended by that.
    #[inline]
    pub fn pass(&mut self, now: Time, side: Side, packet: Packet, out: &mut Out) -> Option<Packet> {
        each!(&mut self.kind, order => order.pass(now, side, packet, &self.room, out))
    }

    /// The packet whose transmission towards `side` begins at `at`, and its length as it was given.
    #[inline]
    pub fn leave(&mut self, at: Time, side: Side, out: &mut Out) -> Option<Waiting> {
        each!(&mut self.kind, order => order.leave(at, side, &mut self.room, out))
    }

    /// Whether a packet may end when it is its turn.
    #[inline]
    pub fn judges_leaving(&self) -> bool {
        each!(&self.kind, order => order.judges_leaving())
    }

    /// The average length in packets that random early detection goes by, if it is part of this queue.
    pub fn average(&self) -> Option<f64> {
        each!(&self.kind, order => order.average())
    }

    /// How many packets wait.
    #[inline]
    pub fn len(&self) -> usize {
        self.room.len()
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
