//! The interface of a machine: its input is an event with a time, its output packets, signals, events and the
//! next deadline.
//!
//! A machine knows neither its neighbours nor the world that drives it. The driver repeats these steps:
//!
//! 1. call [`Machine::on_packet`], [`Machine::on_signal`] or [`Machine::on_wake`];
//! 2. drain [`Out`]: pass each packet and signal to the neighbour on its side, each event to the sink;
//! 3. read [`Machine::next_wake`] once and wait until then.

use crate::event::{Cause, Event, EventKind, Interest, Op};
pub use crate::side::{Side, StageId};
use crate::units::Time;
use crate::wake::WakeTree;
use crate::wire::{Body, FlowKey, Packet, PacketId, Parts, Seq};

/// A message between neighbours other than a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Signal {
    /// The channel towards the sender of the signal became good (true) or bad (false).
    ChannelGood(bool),
    /// The link layer on that side failed to send a packet of this flow over the hop (bakshi96 4.2.3).
    AttemptFailed {
        /// The flow of the packet.
        flow: FlowKey,
        /// Its sequence number.
        seq: Seq,
        /// Length of the IP packet in bytes.
        len: u32,
        /// Number of attempts so far.
        tries: u32,
        /// Whether the link layer has given up.
        discarded: bool,
    },
    /// The radio hop on that side has dequeued a packet of this flow for transmission.
    Departing {
        /// The flow of the packet.
        flow: FlowKey,
        /// The sequence number past its last byte.
        end: Seq,
    },
}

/// Whether invariants are asserted after calls at `now`: with debug assertions at one of 16 instants, so that tests need
/// little more time. A hash selects them, since the time between packets may be a multiple of any number.
#[inline]
pub fn has_checks(now: Time) -> bool {
    cfg!(debug_assertions) && now.0.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 60 == 0
}

/// A pure state machine: one stage of a path.
pub trait Machine {
    /// Asserts the invariants of the machine. Drivers call it after calls at instants with [`has_checks`].
    fn check(&self) {}

    /// Handles a packet from the neighbour on side `from`.
    fn on_packet(&mut self, now: Time, from: Side, packet: Packet, out: &mut Out);

    /// Handles the deadline of [`Machine::next_wake`]. A call without a due deadline must have no effect. By default the
    /// machine has no deadlines.
    ///
    /// Each due deadline is handled once: a call sends a bounded number of packets, and no timer expires twice without
    /// time passing. A machine that finds itself in an endless loop ends it with [`Out::fault`].
    fn on_wake(&mut self, now: Time, out: &mut Out) {
        let _ = (now, out);
    }

    /// The next deadline; a time in the past means immediately.
    fn next_wake(&self) -> Option<Time> {
        None
    }

    /// A time not after the next deadline, for a driver that reads it after each call.
    fn wake_bound(&self) -> Option<Time> {
        self.next_wake()
    }

    /// Handles a signal of a neighbour. By default it is forwarded.
    fn on_signal(&mut self, now: Time, from: Side, signal: Signal, out: &mut Out) {
        let _ = now;
        out.signal(from.other(), signal);
    }

    /// Number of packets inside: queued ones, without cached copies. For conservation checks.
    fn holds(&self) -> usize {
        0
    }
}

/// Runs all deadlines of `machine` up to `now`, each at its nominal time, since the driver may be late.
/// Returns the number of packets that it has forwarded or discarded.
pub(crate) fn catch_up<M: Machine>(
    machine: &mut M,
    now: Time,
    out: &mut Out,
    step: impl Fn(&mut M, Time, &mut Out),
) -> u64 {
    let gone = out.gone();
    let (mut last, mut left) = (Time::ZERO, STEPS);
    while let Some(at) = machine.next_wake().filter(|at| *at <= now) {
        left = if at > last { STEPS } else { left - 1 };
        if left == 0 {
            out.fault("a deadline expires again without time passing");
            break;
        }
        // A deadline in the past means immediately.
        last = at.max(last);
        step(machine, last, out);
    }
    out.gone() - gone
}

/// Limit of deadlines of a machine at one instant. Exceeding it means an endless loop.
const STEPS: u32 = 1 << 16;

/// A report of [`Out::drain_events`].
#[derive(Clone, Copy, Debug)]
pub enum EventRef<'a> {
    /// An event.
    Event(&'a Event),
    /// An operation on a packet that is forwarded towards the side: the content of an event without a copy of
    /// the packet.
    Packet(Op, Side, &'a Packet),
    /// A number of bytes delivered to the application; the flow is as seen from the receiver.
    Delivered(FlowKey, u32),
}

/// The most frequent events in a compact form.
#[derive(Clone, Copy, Debug)]
enum Brief {
    /// An operation on a forwarded packet, given by its index in [`Out::sends`].
    Handed { op: Op, index: usize },
    /// Data was delivered to the application.
    Delivered { flow: FlowKey, bytes: u32 },
}

/// The output of a machine. The driver reuses one and drains it after each call, so that no call allocates
/// memory.
#[derive(Clone, Debug, Default)]
pub struct Out {
    /// Forwarded packets, oldest first.
    pub sends: Vec<(Side, Packet)>,
    /// Forwarded signals, oldest first.
    pub signals: Vec<(Side, Signal)>,
    /// Events, oldest first.
    pub events: Vec<Event>,
    /// Compact events, each with the number of entries in `events` that precede it.
    briefs: Vec<(usize, Brief)>,
    /// Whether the driver calls [`Out::drain_events`] before it removes packets.
    compact: bool,
    interest: Interest,
    bulk: bool,
    now: Time,
    stage: StageId,
    next_id: u64,
    tally: Tally,
    /// Discarded packets whose memory is reused for new ones.
    spare: Vec<Packet>,
}

/// Limit of discarded packets stored for reuse.
const SPARE_MAX: usize = 1 << 12;

/// Counts of a machine since the last query.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tally {
    /// Originated packets.
    pub originated: u64,
    /// Discarded packets, each with a cause.
    pub discarded: u64,
    /// Endless loops that were ended.
    pub faults: u64,
}

impl Out {
    /// An empty output that collects the events of `interest`.
    pub fn new(interest: Interest) -> Out {
        Out { interest, ..Out::default() }
    }

    /// An empty output for a driver that reads events with [`Out::drain_events`] alone, before it removes packets
    /// from [`Out::sends`]. Then events of forwarded packets need no copy.
    pub fn compact(interest: Interest) -> Out {
        Out { interest, compact: true, ..Out::default() }
    }

    /// Reports all events since the last call, oldest first.
    #[inline]
    pub fn drain_events(&mut self, mut each: impl FnMut(EventRef<'_>)) {
        if self.events.is_empty() && self.briefs.is_empty() {
            return;
        }
        let mut events = 0;
        let mut briefs = self.briefs.iter();
        let mut next = briefs.next();
        loop {
            let event = match next {
                Some((after, brief)) if *after == events => {
                    next = briefs.next();
                    match *brief {
                        Brief::Delivered { flow, bytes } => EventRef::Delivered(flow, bytes),
                        Brief::Handed { op, index } => {
                            let Some((side, packet)) = self.sends.get(index) else { continue };
                            EventRef::Packet(op, *side, packet)
                        }
                    }
                }
                _ => {
                    let Some(event) = self.events.get(events) else { break };
                    events += 1;
                    EventRef::Event(event)
                }
            };
            each(event);
        }
        self.briefs.clear();
        if !self.events.is_empty() {
            self.recycle_events();
        }
    }

    /// Removes the reported events.
    fn recycle_events(&mut self) {
        let mut events = core::mem::take(&mut self.events);
        for event in events.drain(..) {
            if let EventKind::Packet { packet, .. } = event.kind {
                self.recycle(packet);
            }
        }
        self.events = events;
    }

    /// Whether a call had no effect: there are no packets, signals, events or counts.
    #[inline]
    pub fn is_empty(&self) -> bool {
        let Out { sends, signals, events, briefs, tally, .. } = self;
        let lengths = sends.len() | signals.len() | events.len() | briefs.len();
        lengths == 0 && (tally.originated | tally.discarded | tally.faults) == 0
    }

    /// Sets stage and time of the following call.
    #[inline]
    pub fn begin(&mut self, stage: StageId, now: Time) {
        self.stage = stage;
        self.now = now;
    }

    /// Time of the present call.
    pub fn now(&self) -> Time {
        self.now
    }

    /// A packet of these parts. Reuses the memory of a discarded one, if available.
    #[inline]
    pub fn packet(&mut self, parts: Parts) -> Packet {
        match self.spare.pop() {
            Some(packet) => packet.renewed(parts),
            None => Packet::new(parts),
        }
    }

    /// A copy of a packet. Reuses the memory of a discarded one, if available.
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

    /// Stores a discarded packet for reuse, without its body.
    #[inline(always)]
    pub fn recycle(&mut self, mut packet: Packet) {
        if self.spare.len() < SPARE_MAX {
            if matches!(packet.body, Body::Bytes { .. }) {
                packet.body = Body::EMPTY;
            }
            self.spare.push(packet);
        }
    }

    /// Forwards a packet.
    #[inline]
    pub fn send(&mut self, side: Side, packet: Packet) {
        self.sends.push((side, packet));
    }

    /// Forwards a packet after the operation `op`.
    #[inline(always)]
    pub fn send_after(&mut self, op: Op, side: Side, packet: Packet) {
        self.hand(op, side, &packet);
        self.sends.push((side, packet));
    }

    /// Records `op` for the packet that is forwarded next.
    #[inline(always)]
    fn hand(&mut self, op: Op, side: Side, packet: &Packet) {
        if self.interest.has(op.level()) {
            self.note_handed(op, side, packet);
        }
    }

    fn note_handed(&mut self, op: Op, side: Side, packet: &Packet) {
        if self.compact {
            let brief = Brief::Handed { op, index: self.sends.len() };
            self.briefs.push((self.events.len(), brief));
        } else {
            self.event(EventKind::Packet { op, side, packet: packet.clone() });
        }
    }

    /// Originates a new packet: assigns its identity and records its cause.
    #[inline(always)]
    pub fn originate(&mut self, side: Side, mut packet: Packet, cause: Cause) {
        self.name(&mut packet);
        self.send_after(Op::Originated(cause), side, packet);
    }

    /// Like [`Out::originate`], for a packet that another call forwards or discards.
    #[inline]
    pub fn introduce(&mut self, side: Side, packet: &mut Packet, cause: Cause) {
        self.name(packet);
        self.packet_event(Op::Originated(cause), side, packet);
    }

    /// Assigns the identity of a new packet.
    #[inline(always)]
    fn name(&mut self, packet: &mut Packet) {
        packet.id = PacketId(u64::from(self.stage.0) << 48 | self.next_id);
        self.next_id += 1;
        self.tally.originated += 1;
    }

    /// Discards a packet for a cause.
    pub fn discard(&mut self, side: Side, packet: Packet, cause: Cause) {
        self.end(side, &packet, cause);
        self.recycle(packet);
    }

    /// Like [`Out::discard`], for a packet that the machine still reads.
    pub fn end(&mut self, side: Side, packet: &Packet, cause: Cause) {
        self.packet_event(Op::Dropped(cause), side, packet);
        self.tally.discarded += 1;
    }

    /// Reports that the machine has ended an endless loop: a fault of its program. With debug assertions it panics.
    #[cold]
    pub fn fault(&mut self, what: &str) {
        debug_assert!(false, "{what} at {} in stage {}", self.now, self.stage.0);
        self.tally.faults += 1;
    }

    /// Requires that sleeper `i` of `wakes`, which was called at `now`, has a later deadline. Otherwise its caller would
    /// call it without end.
    #[inline]
    pub fn require_later(&mut self, wakes: &mut WakeTree, i: usize, now: Time) {
        if wakes.defer(i, now) {
            self.fault("a timer expires again without time passing");
        }
    }

    /// Number of packets originated and discarded, and of faults, since the last call.
    #[inline]
    pub fn take_tally(&mut self) -> Tally {
        core::mem::take(&mut self.tally)
    }

    /// Number of packets forwarded or discarded since the driver last drained this.
    pub fn gone(&self) -> u64 {
        self.sends.len() as u64 + self.tally.discarded
    }

    /// Sends a signal to the neighbour on `side`.
    pub fn signal(&mut self, side: Side, signal: Signal) {
        self.signals.push((side, signal));
    }

    /// Whether packets arrive in batches and super-packets may be sent ([`Parts::piece`]). True on real
    /// interfaces, if no stage needs single packets.
    pub fn is_bulk(&self) -> bool {
        self.bulk
    }

    /// Sets whether packets arrive in batches; called by the driver.
    pub fn set_bulk(&mut self, bulk: bool) {
        self.bulk = bulk;
    }

    /// Whether events of `kind` are collected. A machine may skip their construction otherwise.
    #[inline]
    pub fn accepts(&self, kind: Interest) -> bool {
        self.interest.has(kind)
    }

    /// Records an operation on `packet`, which travels towards `side`.
    #[inline]
    pub fn packet_event(&mut self, op: Op, side: Side, packet: &Packet) {
        if self.interest.has(op.level()) {
            self.note_packet(op, side, packet);
        }
    }

    fn note_packet(&mut self, op: Op, side: Side, packet: &Packet) {
        let packet = self.copy(packet);
        self.event(EventKind::Packet { op, side, packet });
    }

    /// Records delivered data compactly; `flow` is as seen from the receiver. Returns false if a full event
    /// is needed, for example with the control block.
    #[inline]
    pub(crate) fn delivered(&mut self, flow: FlowKey, bytes: u32) -> bool {
        let brief = self.compact && !self.interest.has(Interest::DETAIL);
        if brief && self.interest.has(Interest::RESULTS) {
            self.briefs.push((self.events.len(), Brief::Delivered { flow, bytes }));
        }
        brief
    }

    /// Records an event. Callers check [`Out::accepts`] first if building `what` is expensive.
    pub fn event(&mut self, kind: EventKind) {
        self.events.push(Event { at: self.now, stage: self.stage, kind });
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
    fn a_recycled_packet_retains_no_old_fields() {
        let mut out = Out::new(Interest::NOTHING);
        let ended = Packet::new(parts()).with(|packet| {
            (packet.damage, packet.urgent, packet.piece) = (Damage::Ip, true, 9);
            packet.body = Body::copy_of(b"bytes");
        });
        let memory: *const Parts = &*ended;
        out.discard(Side::Right, ended, Cause::QueueFull);
        let made = out.packet(parts());
        assert!(core::ptr::eq(memory, &*made));
        assert_eq!(made, Packet::new(parts()));
    }

    #[test]
    fn events_packets_and_deliveries_are_drained_in_order() {
        let mut out = Out::compact(Interest::METRICS);
        let packet = Packet::new(parts());
        let flow = packet.flow().unwrap();
        let turn = |good| EventKind::Channel { side: Side::Left, good };
        out.event(turn(true));
        assert!(out.delivered(flow, 7));
        out.send_after(Op::Transmitted, Side::Right, packet);
        out.event(turn(false));
        assert!(out.delivered(flow, 8));
        let mut reported = Vec::new();
        out.drain_events(|event| {
            reported.push(match event {
                EventRef::Event(Event { kind: EventKind::Channel { good, .. }, .. }) => {
                    format!("{good}")
                }
                EventRef::Event(other) => format!("{other:?}"),
                EventRef::Packet(op, side, _) => format!("{op:?} {side:?}"),
                EventRef::Delivered(_, bytes) => format!("{bytes}"),
            });
        });
        assert_eq!(reported, ["true", "7", "Transmitted Right", "false", "8"]);
        // A sink that needs the control block gets a full event, and so does a driver without `drain_events`.
        for mut other in [Out::compact(Interest::EVERYTHING), Out::new(Interest::METRICS)] {
            assert!(!other.delivered(flow, 7));
        }
    }

    /// A sleeper that is due again without time passing is a fault of its machine. Without debug assertions it is postponed.
    #[test]
    #[cfg_attr(debug_assertions, should_panic(expected = "without time passing"))]
    fn a_timer_that_expires_again_at_once_is_postponed() {
        let (now, later) = (Time(5), Time(6));
        let mut wakes = WakeTree::new(20);
        let mut out = Out::new(Interest::NOTHING);
        wakes.set(3, Some(later));
        out.require_later(&mut wakes, 3, now);
        assert_eq!((wakes.first(), out.take_tally()), (Some((later, 3)), Tally::default()));
        wakes.set(3, Some(now));
        out.require_later(&mut wakes, 3, now);
        assert!(wakes.first().is_some_and(|(at, _)| at > later));
        assert_eq!(out.take_tally(), Tally { faults: 1, ..Tally::default() });
    }

    /// A deadline that never passes ends the loop, and is reported as a fault.
    #[test]
    #[cfg_attr(debug_assertions, should_panic(expected = "without time passing"))]
    fn a_deadline_that_never_passes_ends_the_loop() {
        struct Stuck;
        impl Machine for Stuck {
            fn on_packet(&mut self, _: Time, _: Side, _: Packet, _: &mut Out) {}
            fn on_wake(&mut self, _: Time, _: &mut Out) {}
            fn next_wake(&self) -> Option<Time> {
                Some(Time(5))
            }
        }
        let mut out = Out::new(Interest::NOTHING);
        catch_up(&mut Stuck, Time(4), &mut out, |_, _, _| panic!("it is not due"));
        catch_up(&mut Stuck, Time(6), &mut out, |_, _, _| {});
        assert_eq!(out.take_tally(), Tally { faults: 1, ..Tally::default() });
    }

    /// Each possible effect of a call, alone and combined: the output is never empty.
    #[test]
    fn an_output_with_any_effect_is_not_empty() {
        type Thing = (&'static str, fn(&mut Out));
        let things: [Thing; 7] = [
            ("sent", |out| out.send(Side::Right, Packet::new(parts()))),
            ("a signal", |out| out.signals.push((Side::Left, Signal::ChannelGood(true)))),
            ("an event", |out| out.event(EventKind::Channel { side: Side::Left, good: true })),
            ("delivered", |out| {
                let flow = Packet::new(parts()).flow().unwrap();
                assert!(out.delivered(flow, 7));
            }),
            ("made", |out| out.tally.originated += 1),
            ("ended", |out| out.tally.discarded += 1),
            ("a fault", |out| out.tally.faults += 1),
        ];
        let empty = || Out::compact(Interest::METRICS);
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
        assert_eq!(out.take_tally(), Tally { discarded: 1, ..Tally::default() });
        assert_eq!(out.take_tally(), Tally::default(), "it was reset");
    }
}
