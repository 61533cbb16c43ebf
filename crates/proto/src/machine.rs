//! The contract of a machine: told what happened and when, it answers what to send and when to be woken.
//!
//! A machine knows neither its neighbours nor the world that drives it. The driver's recipe:
//!
//! 1. call [`Machine::on_packet`], [`Machine::on_signal`] or [`Machine::on_wake`];
//! 2. drain [`Out`]: hand each packet and signal to the neighbour on its side, each event to the sink;
//! 3. ask [`Machine::next_wake`] once and wait until then.

use crate::event::{Cause, Event, Op, Wants, What};
pub use crate::place::{Side, StageId};
use crate::units::Time;
use crate::wire::{Body, FlowKey, Packet, PacketId, Parts, Seq};

/// What neighbours tell each other beside packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Signal {
    /// The channel to the side the signal comes from turned good (true) or bad (false).
    ChannelGood(bool),
    /// The link layer to that side tried in vain to get a packet of this flow across (bakshi96 4.2.3).
    AttemptFailed {
        /// The flow of the packet.
        flow: FlowKey,
        /// Its sequence number.
        seq: Seq,
        /// Length of the IP packet in bytes.
        len: u32,
        /// How often the packet has been tried so far.
        tries: u32,
        /// Whether it was given up.
        discarded: bool,
    },
    /// The radio hop to that side has taken a packet of this flow out of its queue, to send it now.
    Departing {
        /// The flow of the packet.
        flow: FlowKey,
        /// The sequence number past its last byte.
        end: Seq,
    },
}

/// A pure state machine: one stage of a path.
pub trait Machine {
    /// A packet arrived from the neighbour on side `from`.
    fn on_packet(&mut self, now: Time, from: Side, packet: Packet, out: &mut Out);

    /// The time that [`Machine::next_wake`] named has come. A call with nothing due must do nothing.
    fn on_wake(&mut self, now: Time, out: &mut Out);

    /// When this machine wants to be called next; a time in the past means at once.
    fn next_wake(&self) -> Option<Time>;

    /// A neighbour says something. By default it is passed on.
    fn on_signal(&mut self, now: Time, from: Side, signal: Signal, out: &mut Out) {
        let _ = now;
        out.signal(from.other(), signal);
    }

    /// How many packets are inside: queued, cached copies excluded. For conservation checks.
    fn holds(&self) -> usize {
        0
    }
}

/// Does what `machine` should have done by `now`, each step at its own time, since wakes may be late. The answer is how
/// many packets it has handed on or ended meanwhile.
pub(crate) fn catch_up<M: Machine>(
    machine: &mut M,
    now: Time,
    out: &mut Out,
    step: impl Fn(&mut M, Time, &mut Out),
) -> u64 {
    let gone = out.gone();
    let mut last = Time::ZERO;
    while let Some(at) = machine.next_wake().filter(|at| *at <= now) {
        // Whoever asks for a time in the past means at once.
        last = at.max(last);
        step(machine, last, out);
    }
    out.gone() - gone
}

/// Something that has happened, as [`Out::tell`] tells it.
#[derive(Clone, Copy, Debug)]
pub enum Told<'a> {
    /// This.
    Event(&'a Event),
    /// To a packet that is handed on towards the side: what an event would say of it, without a copy of the packet.
    Packet(Op, Side, &'a Packet),
    /// So many bytes of a connection were handed to the application of its end: the flow from that end.
    Delivered(FlowKey, u32),
}

/// What happens most often, without an event.
#[derive(Clone, Copy, Debug)]
enum Brief {
    /// To a packet just before it was handed on: its place in [`Out::sends`].
    Handed { op: Op, place: usize },
    /// Data was delivered.
    Delivered { flow: FlowKey, bytes: u32 },
}

/// What a machine answers. The driver keeps one and drains it after each call, so that no call allocates.
#[derive(Clone, Debug, Default)]
pub struct Out {
    /// Packets to hand on, oldest first.
    pub sends: Vec<(Side, Packet)>,
    /// Signals to hand on, oldest first.
    pub signals: Vec<(Side, Signal)>,
    /// What happened, oldest first.
    pub events: Vec<Event>,
    /// What is told without an event, each with how many events were told before.
    briefs: Vec<(usize, Brief)>,
    /// Whether the driver asks by [`Out::tell`] before it takes packets out.
    tells: bool,
    wants: Wants,
    bulk: bool,
    now: Time,
    stage: StageId,
    next_id: u64,
    tally: Tally,
    /// Packets that have ended, for the next ones that are made.
    spare: Vec<Packet>,
}

/// So many packets that have ended are kept for others.
const SPARE_MAX: usize = 1 << 12;

/// How many packets a machine made and ended since it was last asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tally {
    /// Put into the path.
    pub originated: u64,
    /// Ended, with a cause.
    pub discarded: u64,
}

impl Out {
    /// An empty answer that collects the events of `wants`.
    pub fn new(wants: Wants) -> Out {
        Out { wants, ..Out::default() }
    }

    /// The same for a driver that hears of events by [`Out::tell`] alone, before it takes packets out of
    /// [`Out::sends`]: what happens to a packet that is handed on costs no copy of it.
    pub fn telling(wants: Wants) -> Out {
        Out { wants, tells: true, ..Out::default() }
    }

    /// Tells what has happened since this was last called, oldest first.
    #[inline]
    pub fn tell(&mut self, mut told: impl FnMut(Told<'_>)) {
        if self.events.is_empty() && self.briefs.is_empty() {
            return;
        }
        let mut events = 0;
        let mut briefs = self.briefs.iter();
        let mut next = briefs.next();
        loop {
            let what = match next {
                Some((after, brief)) if *after == events => {
                    next = briefs.next();
                    match *brief {
                        Brief::Delivered { flow, bytes } => Told::Delivered(flow, bytes),
                        Brief::Handed { op, place } => {
                            let Some((side, packet)) = self.sends.get(place) else { continue };
                            Told::Packet(op, *side, packet)
                        }
                    }
                }
                _ => {
                    let Some(event) = self.events.get(events) else { break };
                    events += 1;
                    Told::Event(event)
                }
            };
            told(what);
        }
        self.briefs.clear();
        if !self.events.is_empty() {
            self.recycle_events();
        }
    }

    /// Forgets the events that have been told.
    fn recycle_events(&mut self) {
        let mut events = core::mem::take(&mut self.events);
        for event in events.drain(..) {
            if let What::Packet { packet, .. } = event.what {
                self.recycle(packet);
            }
        }
        self.events = events;
    }

    /// Whether a call has brought about nothing: nothing is sent, has ended or is to be told.
    #[inline]
    pub fn is_empty(&self) -> bool {
        let Out { sends, signals, events, briefs, tally, .. } = self;
        let lengths = sends.len() | signals.len() | events.len() | briefs.len();
        lengths == 0 && (tally.originated | tally.discarded) == 0
    }

    /// The driver is about to call `stage` at `now`.
    #[inline]
    pub fn begin(&mut self, stage: StageId, now: Time) {
        self.stage = stage;
        self.now = now;
    }

    /// When the driver calls.
    pub fn now(&self) -> Time {
        self.now
    }

    /// A packet of these parts, in the place of one that has ended if there is any.
    #[inline]
    pub fn packet(&mut self, parts: Parts) -> Packet {
        match self.spare.pop() {
            Some(packet) => packet.renewed(parts),
            None => Packet::new(parts),
        }
    }

    /// A copy of a packet, in the place of one that has ended if there is any.
    #[inline]
    pub fn copy(&mut self, packet: &Packet) -> Packet {
        match self.spare.pop() {
            Some(mut copy) => {
                copy.clone_from(packet);
                copy
            }
            None => packet.clone(),
        }
    }

    /// A packet has ended; what it held is forgotten.
    #[inline(always)]
    pub fn recycle(&mut self, mut packet: Packet) {
        if self.spare.len() < SPARE_MAX {
            if matches!(packet.body, Body::Bytes { .. }) {
                packet.body = Body::EMPTY;
            }
            self.spare.push(packet);
        }
    }

    /// Hands on a packet that came from elsewhere.
    #[inline]
    pub fn send(&mut self, side: Side, packet: Packet) {
        self.sends.push((side, packet));
    }

    /// Hands on a packet, to which `op` has just happened.
    #[inline(always)]
    pub fn send_after(&mut self, op: Op, side: Side, packet: Packet) {
        self.hand(op, side, &packet);
        self.sends.push((side, packet));
    }

    /// Notes that `op` has happened to the packet that is handed on next.
    #[inline(always)]
    fn hand(&mut self, op: Op, side: Side, packet: &Packet) {
        if self.wants.has(op.level()) {
            self.note_handed(op, side, packet);
        }
    }

    fn note_handed(&mut self, op: Op, side: Side, packet: &Packet) {
        if self.tells {
            let brief = Brief::Handed { op, place: self.sends.len() };
            self.briefs.push((self.events.len(), brief));
        } else {
            self.event(What::Packet { op, side, packet: packet.clone() });
        }
    }

    /// Puts a new packet into the path: gives it an identity and says why it exists.
    #[inline(always)]
    pub fn originate(&mut self, side: Side, mut packet: Packet, cause: Cause) {
        self.name(&mut packet);
        self.send_after(Op::Originated(cause), side, packet);
    }

    /// Like [`Out::originate`], for a packet that is handed on, or ended, by another call.
    #[inline]
    pub fn introduce(&mut self, side: Side, packet: &mut Packet, cause: Cause) {
        self.name(packet);
        self.packet_event(Op::Originated(cause), side, packet);
    }

    /// Gives a new packet its identity.
    #[inline(always)]
    fn name(&mut self, packet: &mut Packet) {
        packet.id = PacketId(u64::from(self.stage.0) << 48 | self.next_id);
        self.next_id += 1;
        self.tally.originated += 1;
    }

    /// Ends a packet's life here and says why.
    pub fn discard(&mut self, side: Side, packet: Packet, cause: Cause) {
        self.end(side, &packet, cause);
        self.recycle(packet);
    }

    /// Like [`Out::discard`], for a packet of which the machine still reads.
    pub fn end(&mut self, side: Side, packet: &Packet, cause: Cause) {
        self.packet_event(Op::Dropped(cause), side, packet);
        self.tally.discarded += 1;
    }

    /// How many packets were made and ended since the last call.
    #[inline]
    pub fn take_tally(&mut self) -> Tally {
        core::mem::take(&mut self.tally)
    }

    /// How many packets have been handed on or ended since the driver last drained this.
    pub fn gone(&self) -> u64 {
        self.sends.len() as u64 + self.tally.discarded
    }

    /// Passes a signal to the neighbour on `side`.
    pub fn signal(&mut self, side: Side, signal: Signal) {
        self.signals.push((side, signal));
    }

    /// Whether packets come in batches and super-packets may be sent ([`Parts::piece`]): on real interfaces, where no
    /// stage has to tell the packets of the wire.
    pub fn is_bulk(&self) -> bool {
        self.bulk
    }

    /// The driver says so.
    pub fn set_bulk(&mut self, bulk: bool) {
        self.bulk = bulk;
    }

    /// Whether anybody reads events of `kind`; lets a machine skip the work of describing them.
    #[inline]
    pub fn wants(&self, kind: Wants) -> bool {
        self.wants.has(kind)
    }

    /// Something happened to `packet`, which travels towards `side`.
    #[inline]
    pub fn packet_event(&mut self, op: Op, side: Side, packet: &Packet) {
        if self.wants.has(op.level()) {
            self.note_packet(op, side, packet);
        }
    }

    fn note_packet(&mut self, op: Op, side: Side, packet: &Packet) {
        let packet = self.copy(packet);
        self.event(What::Packet { op, side, packet });
    }

    /// Data of a connection was delivered; `flow` is that from its receiver. False where that takes an event, as for whoever
    /// wants the control block with it.
    #[inline]
    pub(crate) fn delivered(&mut self, flow: FlowKey, bytes: u32) -> bool {
        let brief = self.tells && !self.wants.has(Wants::DETAIL);
        if brief && self.wants.has(Wants::METRICS) {
            self.briefs.push((self.events.len(), Brief::Delivered { flow, bytes }));
        }
        brief
    }

    /// Something happened. Callers check [`Out::wants`] first where building `what` costs.
    pub fn event(&mut self, what: What) {
        self.events.push(Event { at: self.now, stage: self.stage, what });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Addr, Damage, Flags, Segment};

    fn parts() -> Parts {
        let segment = Segment::new(1, 2, Seq(3), Seq(4), Flags::ACK);
        Parts::tcp(Addr::v4(10, 0, 0, 1), Addr::v4(10, 0, 0, 2), segment, Body::EMPTY)
    }

    #[test]
    fn what_has_ended_leaves_nothing_in_what_is_made_of_it() {
        let mut out = Out::new(Wants::NOTHING);
        let ended = Packet::new(parts()).with(|packet| {
            (packet.damage, packet.urgent, packet.piece) = (Damage::Ip, true, 9);
            packet.body = Body::copy_of(b"bytes");
        });
        let place: *const Parts = &*ended;
        out.discard(Side::Right, ended, Cause::QueueFull);
        let made = out.packet(parts());
        assert!(core::ptr::eq(place, &*made));
        assert_eq!(made, Packet::new(parts()));
    }

    #[test]
    fn what_happened_is_told_in_its_order() {
        let mut out = Out::telling(Wants::METRICS);
        let packet = Packet::new(parts());
        let flow = packet.flow().unwrap();
        let turn = |good| What::Channel { side: Side::Left, good };
        out.event(turn(true));
        assert!(out.delivered(flow, 7));
        out.send_after(Op::Transmitted, Side::Right, packet);
        out.event(turn(false));
        assert!(out.delivered(flow, 8));
        let mut seen = Vec::new();
        out.tell(|told| {
            seen.push(match told {
                Told::Event(Event { what: What::Channel { good, .. }, .. }) => format!("{good}"),
                Told::Event(other) => format!("{other:?}"),
                Told::Packet(op, side, _) => format!("{op:?} {side:?}"),
                Told::Delivered(_, bytes) => format!("{bytes}"),
            });
        });
        assert_eq!(seen, ["true", "7", "Transmitted Right", "false", "8"]);
        // Whoever wants the control block is told by an event, and so is whoever does not ask.
        for mut other in [Out::telling(Wants::EVERYTHING), Out::new(Wants::METRICS)] {
            assert!(!other.delivered(flow, 7));
        }
    }

    /// Each thing that a call may bring about, alone and with each other: none of them is nothing.
    #[test]
    fn a_call_that_brought_anything_about_is_not_empty() {
        type Thing = (&'static str, fn(&mut Out));
        let things: [Thing; 6] = [
            ("sent", |out| out.send(Side::Right, Packet::new(parts()))),
            ("a signal", |out| out.signals.push((Side::Left, Signal::ChannelGood(true)))),
            ("an event", |out| out.event(What::Channel { side: Side::Left, good: true })),
            ("delivered", |out| {
                let flow = Packet::new(parts()).flow().unwrap();
                assert!(out.delivered(flow, 7));
            }),
            ("made", |out| out.tally.originated += 1),
            ("ended", |out| out.tally.discarded += 1),
        ];
        let empty = || Out::telling(Wants::METRICS);
        assert!(empty().is_empty());
        for (i, (one, happens)) in things.iter().enumerate() {
            for (other, also) in &things[i..] {
                let mut out = empty();
                happens(&mut out);
                if one != other {
                    also(&mut out);
                }
                assert!(!out.is_empty(), "{one}, {other}");
            }
        }
        let mut out = empty();
        let packet = Packet::new(parts());
        out.discard(Side::Right, packet, Cause::QueueFull);
        assert_eq!(out.take_tally(), Tally { originated: 0, discarded: 1 });
        assert_eq!(out.take_tally(), Tally::default(), "it is asked anew");
    }
}
