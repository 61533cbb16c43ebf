//! netem's operations on packets, in the order of the kernel's queueing discipline (Linux 6.18,
//! `sch_netem.c`).
//!
//! For each arriving packet:
//!
//! 1. It is duplicated, lost, and corrupted, each with a probability. If it is both duplicated and lost, one
//!    of the two remains. With `ecn` an ECN-capable packet is marked instead of lost.
//! 2. It is dropped if `limit` packets are held, waiting for the rate or under way.
//! 3. A duplicate passes through all of this first, with separate draws, but is not duplicated again. So it
//!    uses its share of the rate and of the limit.
//! 4. A reordered packet leaves immediately and uses no part of the rate. With a gap of n at least n - 1
//!    packets are between two of them.
//! 5. All others take the delay and a deviation from it. With a rate they then pass in sequence: a packet
//!    takes its time at the rate after its delay is over and the previous one has left. So with a rate,
//!    jitter does not reorder packets. The rate counts the Ethernet header.
//! 6. With `slot` packets leave only in slots.
//!
//! Differences to the kernel: a packet is a segment of the wire, while a Linux host sends super-packets that
//! count as one. And a wrong bit is anywhere in the IP packet, while the kernel chooses among the bytes in
//! its linear buffer, including the Ethernet header.

use serde::Serialize;

use super::draws::{Correlated, Deviating, Event, Losses};
use super::netem::{Cells, Extras, Slot, SlotGap};
use crate::channel::damage_at;
use crate::event::{Cause, Op};
use crate::link::transmitter::Pipe;
use crate::link::varied::Impairments;
use crate::link::{LineConfig, towards};
use crate::machine::{Machine, Out, Side};
use crate::queue::Room;
use crate::rng::Stream;
use crate::units::{Probability, Rate, Time};
use crate::wire::{CE, Damage, Packet};

/// Nanoseconds per second.
const SECOND: u128 = 1_000_000_000;

/// Configuration of netem in both directions.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct EmulatorConfig {
    /// Rates, delay, framing counted by the rate, and limit. Its disciplines are not used.
    pub line: LineConfig,
    /// Jitter, loss, duplication, corruption, reordering.
    pub impairments: Impairments,
    /// Options without keys of a link.
    pub extras: Extras,
}

impl EmulatorConfig {
    /// The long-term share of lost packets towards `side`.
    pub fn share_lost(&self, side: Side) -> f64 {
        if self.extras.ecn || self.impairments.impaired.is_some_and(|impaired| impaired != side) {
            return 0.0;
        }
        match &self.extras.states {
            Some(states) => states.share(),
            None => self.impairments.share_lost(side),
        }
    }
}

/// A held packet, and whether it overtakes others.
#[derive(Clone, Debug)]
struct UnderWay {
    packet: Packet,
    bytes: u32,
    overtakes: bool,
}

/// Times at which packets leave.
#[derive(Clone, Debug)]
struct Slots {
    config: Slot,
    gap: Option<Deviating>,
    rng: Stream,
    /// Start of the current slot; `None` before the first one.
    next: Option<Time>,
    packets: u32,
    bytes: i64,
}

impl Slots {
    fn new(config: Slot, rng: Stream, draws: Correlated) -> Slots {
        let gap = match config.gap {
            SlotGap::Between(..) => None,
            SlotGap::By(by, delay, jitter) => Some(Deviating::new(delay, jitter, by, draws)),
        };
        let (packets, bytes) = (config.packets, config.bytes.into());
        Slots { config, gap, rng, next: None, packets, bytes }
    }

    /// Opens the next slot at `now`.
    fn open(&mut self, now: Time) {
        let gap = match (&mut self.gap, self.config.gap) {
            (Some(gap), _) => gap.next(),
            (None, SlotGap::Between(least, most)) => {
                (least.0 + self.rng.below(most.0.saturating_sub(least.0))) as i64
            }
            (None, SlotGap::By(..)) => 0,
        };
        self.next = Some(Time(now.0.saturating_add_signed(gap)));
        self.packets = self.config.packets;
        self.bytes = self.config.bytes.into();
    }

    /// Counts a packet of `bytes` bytes that leaves at `now`.
    fn leave(&mut self, now: Time, bytes: u32) {
        self.packets = self.packets.saturating_sub(1);
        self.bytes -= i64::from(bytes);
        if self.packets == 0 || self.bytes <= 0 {
            self.open(now);
        }
    }
}

#[derive(Clone, Debug)]
struct Direction {
    rate: Option<Rate>,
    framing: u32,
    overhead: i64,
    cells: Option<Cells>,
    limit: Room,
    duplicate: Event,
    losses: Losses,
    ecn: bool,
    corrupt: Event,
    spot: Stream,
    reorder: Event,
    gap: u32,
    /// Packets that took their delay since the last reordered one.
    counter: u32,
    delay: Deviating,
    slots: Option<Slots>,
    held: Pipe<UnderWay>,
}

impl Direction {
    fn new(config: &EmulatorConfig, side: Side, stream: &impl Fn(&str) -> Stream) -> Direction {
        let line = &config.line;
        let suffers = config.impairments.impaired.is_none_or(|impaired| impaired == side);
        let spared = Impairments::default();
        let i = if suffers { &config.impairments } else { &spared };
        let extras = &config.extras;
        let stream = |part: &str| stream(&format!("{part}.{}", side.word()));
        let event = |p, correlation, part| Event::new(p, correlation, stream(part));
        let states = extras.states.as_ref().filter(|_| suffers);
        let jitter = Correlated::new(i.jitter_correlation, stream("jitter"));
        let slots = extras.slot.map(|slot| {
            let draws = Correlated::new(Probability::ZERO, stream("slot.gap"));
            Slots::new(slot, stream("slot"), draws)
        });
        Direction {
            rate: towards(side, line.rate_left, line.rate_right),
            framing: line.framing,
            overhead: extras.overhead.into(),
            cells: extras.cells,
            limit: Room::new(line.queue),
            duplicate: event(i.duplicate, i.duplicate_correlation, "duplicate"),
            losses: Losses::new(i.loss.as_ref(), states, i.loss_correlation, stream("loss")),
            ecn: extras.ecn,
            corrupt: event(i.corrupt, i.corrupt_correlation, "corrupt"),
            spot: stream("corrupt.spot"),
            reorder: event(i.reorder, i.reorder_correlation, "reorder"),
            // iproute2's default for a line without one.
            gap: i.reorder_gap.max(1),
            counter: 0,
            delay: Deviating::new(line.delay, i.jitter, i.jitter_distribution, jitter),
            slots,
            held: Pipe::default(),
        }
    }

    /// Handles an arriving packet; `first` if it may be duplicated.
    fn arrive(&mut self, now: Time, side: Side, mut packet: Packet, first: bool, out: &mut Out) {
        let duplicated = first && self.duplicate.happens();
        let mut count = 1 + u32::from(duplicated);
        if self.losses.lose() {
            if self.ecn && packet.is_ecn_capable() {
                if !packet.is_marked() {
                    packet.tos |= CE;
                    out.packet_event(Op::Marked, side, &packet);
                }
            } else {
                count -= 1;
            }
        }
        if count == 0 {
            return out.discard(side, packet, Cause::FrameLost);
        }
        let spot = self.corrupt.happens().then(|| self.spot.below(packet.wire_len().into()));
        let bytes = packet.wire_len() + self.framing;
        if !self.limit.admits(bytes) {
            return out.discard(side, packet, Cause::QueueFull);
        }
        if count > 1 {
            let mut copy = out.copy(&packet);
            out.introduce(side, &mut copy, Cause::LineDuplicate);
            self.arrive(now, side, copy, false, out);
        }
        if let Some(spot) = spot
            && packet.damage == Damage::None
        {
            packet.damage = damage_at(spot as u32, &packet);
            out.packet_event(Op::Damaged, side, &packet);
        }
        // The draw is made only for packets that may be reordered.
        if self.reorder.is_possible() && self.counter >= self.gap - 1 && self.reorder.happens() {
            self.counter = 0;
            let overtakes = self.held.next() != Time::NEVER;
            return hand_on(side, packet, overtakes, out);
        }
        self.counter = self.counter.saturating_add(1);
        let at = self.time_to_send(now, bytes);
        let overtakes = self.held.last().is_some_and(|last| at < last);
        self.limit.add(bytes);
        self.held.insert(at, UnderWay { packet, bytes, overtakes });
    }

    fn time_to_send(&mut self, now: Time, bytes: u32) -> Time {
        let delay = self.delay.next();
        let after = |time: Time, nanos: i64| Time(time.0.saturating_add_signed(nanos));
        let Some(rate) = self.rate else { return after(now, delay) };
        let begin = match self.held.last() {
            Some(last) => after(now, delay).max(last),
            None => after(now, delay),
        };
        Time(begin.0.saturating_add(self.time_at(rate, bytes)))
    }

    /// Nanoseconds of a packet at the rate.
    fn time_at(&self, rate: Rate, bytes: u32) -> u64 {
        let mut bytes = (i64::from(bytes) + self.overhead).max(0);
        if let Some(Cells { size, overhead }) = self.cells {
            let cells = bytes.unsigned_abs().div_ceil(size.into()) as i64;
            let each = i64::from(size) + i64::from(overhead);
            bytes = cells.saturating_mul(each).max(0);
        }
        let nanos = u128::from(bytes.unsigned_abs()) * 8 * SECOND / u128::from(rate.bps());
        nanos.min(u128::from(u64::MAX)) as u64
    }

    /// Handles the timer that is due by `now`.
    fn leave_if_due(&mut self, now: Time, side: Side, out: &mut Out) {
        if self.next() <= now {
            self.leave(now, side, out);
        }
    }

    /// Forwards packets that leave by `now`. Each call may open a slot, like each dequeue of the kernel.
    fn leave(&mut self, now: Time, side: Side, out: &mut Out) {
        loop {
            let at = self.held.next();
            if at == Time::NEVER {
                return;
            }
            if let Some(slots) = &mut self.slots {
                if slots.next.is_none_or(|next| next < at) {
                    slots.open(now);
                }
                if slots.next.is_some_and(|next| next > now) {
                    return;
                }
            }
            let Some(UnderWay { packet, bytes, overtakes }) = self.held.take(now) else { return };
            self.limit.remove(bytes);
            if let Some(slots) = &mut self.slots {
                slots.leave(now, bytes);
            }
            hand_on(side, packet, overtakes, out);
        }
    }

    fn next(&self) -> Time {
        match (self.held.next(), &self.slots) {
            (Time::NEVER, _) => Time::NEVER,
            (at, None) => at,
            (at, Some(slots)) => at.max(slots.next.unwrap_or(at)),
        }
    }
}

fn hand_on(side: Side, packet: Packet, overtakes: bool, out: &mut Out) {
    if overtakes {
        out.packet_event(Op::Redirected(Cause::Reordered), side, &packet);
    }
    out.packet_event(Op::Transmitted, side, &packet);
    out.send(side, packet);
}

/// A link that behaves like netem.
#[derive(Clone, Debug)]
pub struct Emulator {
    /// Indexed by the side to which packets travel.
    directions: [Direction; 2],
}

impl Emulator {
    /// An empty link; `stream` returns the random streams of its parts.
    pub fn new(config: &EmulatorConfig, stream: impl Fn(&str) -> Stream) -> Emulator {
        Emulator { directions: Side::BOTH.map(|side| Direction::new(config, side, &stream)) }
    }
}

impl Machine for Emulator {
    fn check(&self) {
        for direction in &self.directions {
            direction.held.check();
            direction.limit.check();
            debug_assert_eq!(direction.limit.len(), direction.held.len(), "packets of the queue");
            debug_assert!(direction.gap > 0, "a reordered packet follows at least one");
        }
    }

    fn on_packet(&mut self, now: Time, from: Side, packet: Packet, out: &mut Out) {
        let to = from.other();
        let direction = &mut self.directions[to.index()];
        direction.leave_if_due(now, to, out);
        direction.arrive(now, to, packet, true, out);
        direction.leave(now, to, out);
    }

    fn on_wake(&mut self, now: Time, out: &mut Out) {
        for side in Side::BOTH {
            self.directions[side.index()].leave_if_due(now, side, out);
        }
    }

    fn next_wake(&self) -> Option<Time> {
        let [left, right] = &self.directions;
        left.next().min(right.next()).or_none()
    }

    fn holds(&self) -> usize {
        self.directions.iter().map(|direction| direction.held.len()).sum()
    }
}
