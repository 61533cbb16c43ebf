//! Granted access in blocks, as in LTE and NR: a scheduler grants each block to one station, and a failed block is
//! repeated after a fixed time (HARQ).
//!
//! Time is divided into blocks (TTI of LTE, slot of NR). The rate and this time set the size of
//! a block: several frames, and parts of frames. Stations with frames take turns. Each attempt of a block fails with a
//! probability; it is repeated after `repeat` in a block of its own, before new data, up to a number of
//! attempts. A frame arrives when all its blocks have, so frames overtake each other. The link layer
//! [`rlc`](crate::link::rlc) restores the order.
//!
//! A mobile station that has nothing to send must request its next grant first, which takes the time
//! `request`. Base station and mobile stations send at the same time on different frequencies (FDD), or in
//! turns by a `pattern` of blocks (TDD).
//!
//! Sources: 3GPP TS 36.321 and 38.321 (5.3.2, 5.4.2, HARQ; 5.4.4, scheduling request), 38.213 (11.1, slot
//! formats). Not modelled: blocks for several stations at once, random access, discontinuous reception, the
//! choice of a modulation. An attempt counts as one of the radio's blocks whatever its size.

use std::collections::{BTreeMap, VecDeque};

use serde::Serialize;

use super::{Access, Air, Chosen, Mac, MacConfig, Outcome, Read};
use crate::air::{AirEvent, FrameFate, FrameKind, Station};
use crate::describe::{Descriptor, Form, Keys, Kind, Need, SIM, System, Value};
use crate::event::Cause;
use crate::link::RadioConfig;
use crate::link::fec::Coding;
use crate::link::frame::{Frame, Timing};
use crate::link::transmitter::Pipe;
use crate::link::varied::Sky;
use crate::machine::Side;
use crate::rng::Stream;
use crate::units::{Probability, Rate, Span, Time};

pub(super) const WORDS: &[Descriptor<Read>] = &[Descriptor {
    word: "granted",
    system: System::new(
        Kind::Mac,
        "granted",
        "path: mac = \"granted\"",
        "LTE and NR: blocks granted in turn, failed ones repeated after a fixed time",
        "3GPP TS 36.321, 38.321",
    )
    .runs(SIM)
    .tier(0),
    read: |k| Chosen::Hop(MacConfig::Granted(GrantedConfig::keys(k))),
}];

/// Use of a block in a pattern.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub enum Slot {
    /// From the base station.
    Down,
    /// From mobile stations.
    Up,
    /// A guard without data.
    Special,
}

/// Settings of granted access.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct GrantedConfig {
    /// Duration of a block.
    pub block: Span,
    /// Probability that the first attempt of a block fails, in addition to the channel's errors.
    pub errors: Probability,
    /// Probability that a repeated block fails.
    pub again: Probability,
    /// Time from an attempt to the next one.
    pub repeat: Span,
    /// Attempts before a block is lost.
    pub attempts: u32,
    /// Time until a mobile station with a new packet has a grant.
    pub request: Span,
    /// Use of successive blocks; empty if each direction has its own frequency.
    pub pattern: Vec<Slot>,
}

impl Default for GrantedConfig {
    /// LTE with frequency division.
    fn default() -> GrantedConfig {
        GrantedConfig {
            block: Span::millis(1),
            errors: Probability::nearest(0.1),
            again: Probability::nearest(0.05),
            repeat: Span::millis(8),
            attempts: 4,
            request: Span::millis(10),
            pattern: Vec::new(),
        }
    }
}

impl GrantedConfig {
    /// Reads the keys.
    pub fn keys(k: &mut Keys<'_>) -> GrantedConfig {
        let mut c = GrantedConfig::default();
        k.table("granted", "options of `granted`", |k| {
            let blocks = Span::micros(62)..=Span::millis(100);
            k.within("block", &mut c.block, blocks, "the duration of a block");
            k.probability("errors", &mut c.errors, "the probability that the first attempt of a block fails");
            k.probability("again", &mut c.again, "the probability that a repeated block fails");
            let times = Span::micros(62)..=Span::secs(10);
            k.within("repeat", &mut c.repeat, times, "the time from an attempt to the next one");
            k.count("attempts", &mut c.attempts, 1..=32, "attempts before a block is lost");
            let doc = "the time until a mobile station with a new packet has a grant";
            k.within("request", &mut c.request, Span::ZERO..=Span::secs(10), doc);
            let form = Form::Text("\"DDDSU\"");
            let doc = "blocks of a shared frequency: D from the base station, U from mobile stations, S a guard";
            if let Value::Text(text) = k.value("pattern", form, Need::Else("none"), Value::Absent, doc) {
                match pattern(&text) {
                    Some(pattern) => c.pattern = pattern,
                    None => {
                        let message = format!("`{text}` at `{}` is no pattern of blocks", k.path("pattern"));
                        let help = "up to 64 of the letters D, S and U, with a D and a U, for example `DDDSU`";
                        k.refuse("pattern", message, "expected D, S and U", help);
                    }
                }
            }
        });
        c
    }
}

fn pattern(text: &str) -> Option<Vec<Slot>> {
    let slot = |letter| match letter {
        'D' | 'd' => Some(Slot::Down),
        'U' | 'u' => Some(Slot::Up),
        'S' | 's' => Some(Slot::Special),
        _ => None,
    };
    let slots: Vec<Slot> = text.trim().chars().map(slot).collect::<Option<_>>()?;
    let both = [Slot::Down, Slot::Up].iter().all(|slot| slots.contains(slot));
    (both && slots.len() <= 64).then_some(slots)
}

/// A frame that is partly sent or under way.
#[derive(Clone, Debug)]
struct Sent {
    frame: Frame,
    /// Blocks with a part of it that have not arrived.
    blocks: u32,
    /// Whether its last byte is in a block.
    whole: bool,
    lost: bool,
}

/// Parts of frames that are sent together.
#[derive(Clone, Debug)]
struct Block {
    from: Station,
    to: Station,
    kind: FrameKind,
    bytes: u32,
    attempts: u32,
    /// Frames by their numbers.
    frames: Vec<u64>,
}

/// Frames between the base station and one mobile station, in one direction.
#[derive(Clone, Debug, Default)]
struct Flow {
    /// The frame to be sent next: its number, and its remaining bytes.
    partial: Option<(u64, u32)>,
    /// Time of its grant.
    granted_at: Time,
    /// Whether the last block was full, so that the link layer may have more.
    may_have_more: bool,
}

/// One direction.
#[derive(Clone, Debug)]
struct Lane {
    /// By mobile station, the first is station 1.
    flows: Vec<Flow>,
    /// The flow served last.
    turn: usize,
    /// Failed blocks and the times from which they may be repeated.
    again: VecDeque<(Time, Block)>,
    /// Start of the last block.
    last: Option<Time>,
    /// Bits that did not fill a byte, times nanoseconds per second.
    rest: u128,
}

/// The medium of granted access.
#[derive(Clone, Debug)]
pub struct Granted {
    config: GrantedConfig,
    rate: Rate,
    delay: Span,
    coding: Coding,
    /// Indexed by the side to which frames travel.
    lanes: [Lane; 2],
    frames: BTreeMap<u64, Sent>,
    next_number: u64,
    /// Blocks under way, and whether they are lost.
    flying: Pipe<(Block, bool)>,
    rng: Stream,
    sky: Option<Box<Sky>>,
}

impl Granted {
    /// An idle medium for `stations` stations.
    pub fn new(
        config: GrantedConfig,
        radio: &RadioConfig,
        stations: u8,
        coding: Coding,
        rng: Stream,
    ) -> Granted {
        let lane = || Lane {
            flows: vec![Flow::default(); usize::from(stations) - 1],
            turn: 0,
            again: VecDeque::new(),
            last: None,
            rest: 0,
        };
        Granted {
            config,
            rate: radio.rate,
            delay: radio.delay,
            coding,
            lanes: [lane(), lane()],
            frames: BTreeMap::new(),
            next_number: 0,
            flying: Pipe::default(),
            rng,
            sky: None,
        }
    }

    /// Whether blocks that begin at `at` travel to `side`.
    fn is_for(&self, at: Time, side: Side) -> bool {
        let wanted = if side == Side::Right { Slot::Down } else { Slot::Up };
        let pattern = &self.config.pattern;
        let n = at.0 / self.config.block.0;
        pattern.is_empty() || pattern[(n % pattern.len() as u64) as usize] == wanted
    }

    /// The first block towards `side` that begins at `at` or later, behind the last one.
    fn next_block(&self, at: Time, side: Side) -> Time {
        let block = self.config.block;
        let free = self.lanes[side.index()].last.map_or(Time::ZERO, |last| last + block);
        let at = at.max(free);
        let mut start = Time(at.0.div_ceil(block.0) * block.0);
        if let Some(sky) = &self.sky {
            let opens = sky.opens(start, side);
            if opens == Time::NEVER {
                return opens;
            }
            start = Time(opens.0.div_ceil(block.0) * block.0);
        }
        while !self.is_for(start, side) {
            start += block;
        }
        start
    }

    /// Start of the next block of the lane towards `side`, if it has anything to send.
    fn due(&self, side: Side) -> Time {
        let lane = &self.lanes[side.index()];
        let again = lane.again.front().map(|(at, _)| *at);
        let flows = lane.flows.iter().filter(|f| f.partial.is_some() || f.may_have_more);
        let first = flows.map(|flow| flow.granted_at).chain(again).min();
        first.map_or(Time::NEVER, |at| self.next_block(at, side))
    }

    /// Bytes of a block towards `side` at `now`.
    fn capacity(&mut self, now: Time, side: Side) -> u32 {
        /// Eight bits of a byte, for each nanosecond of a second.
        const BYTE: u128 = 8 * 1_000_000_000;
        let varied = self.sky.as_ref().and_then(|sky| sky.rate(now, side));
        let rate = varied.unwrap_or(Some(self.rate)).map_or(0, Rate::bps);
        let lane = &mut self.lanes[side.index()];
        let bits = u128::from(rate) * u128::from(self.config.block.0) + lane.rest;
        lane.rest = bits % BYTE;
        u32::try_from(bits / BYTE).unwrap_or(u32::MAX)
    }

    /// The stations of flow `i` towards `side`: sender and receiver.
    fn ends(side: Side, i: usize) -> (Station, Station) {
        let mobile = Station(i as u8 + 1);
        match side {
            Side::Right => (Station::BASE, mobile),
            Side::Left => (mobile, Station::BASE),
        }
    }

    /// Stores a frame that will be sent next by its flow.
    fn accept(&mut self, frame: Frame, side: Side, i: usize) {
        let bytes = self.coding.on_air(frame.bytes).max(1);
        let number = self.next_number;
        self.next_number += 1;
        self.lanes[side.index()].flows[i].partial = Some((number, bytes));
        self.frames.insert(number, Sent { frame, blocks: 0, whole: false, lost: false });
    }

    /// Sends the block of the lane towards `side` that begins at `now`.
    fn send_block(&mut self, now: Time, side: Side, air: &mut dyn Air) {
        let lane = &mut self.lanes[side.index()];
        lane.last = Some(now);
        let is_due = lane.again.front().is_some_and(|(at, _)| *at <= now);
        if let Some((_, mut block)) = is_due.then(|| lane.again.pop_front()).flatten() {
            block.attempts += 1;
            return self.attempt(now, side, block, air);
        }
        let room = self.capacity(now, side);
        let count = self.lanes[side.index()].flows.len();
        for k in 1..=count {
            let i = (self.lanes[side.index()].turn + k) % count;
            let flow = &mut self.lanes[side.index()].flows[i];
            if flow.granted_at > now {
                continue;
            }
            if let Some(block) = self.fill(side, i, room, air) {
                self.lanes[side.index()].turn = i;
                // Others may wait for their turn.
                return self.attempt(now, side, block, air);
            }
        }
    }

    /// Fills a block of `room` bytes with frames of flow `i`.
    fn fill(&mut self, side: Side, i: usize, room: u32, air: &mut dyn Air) -> Option<Block> {
        let (from, to) = Granted::ends(side, i);
        let (mut left, mut frames, mut kind) = (room, Vec::new(), None);
        while left > 0 {
            let flow = &mut self.lanes[side.index()].flows[i];
            let Some((number, bytes)) = flow.partial.take() else {
                match air.more(from, to) {
                    Some(frame) => self.accept(frame, side, i),
                    None => break,
                }
                continue;
            };
            let part = bytes.min(left);
            left -= part;
            frames.push(number);
            let Some(sent) = self.frames.get_mut(&number) else { continue };
            sent.blocks += 1;
            kind.get_or_insert(sent.frame.kind());
            if part < bytes {
                flow.partial = Some((number, bytes - part));
            } else {
                sent.whole = true;
                air.outcome(Outcome::Trans { station: from, to, airtime: self.config.block });
                air.outcome(Outcome::Done { station: from, to, acked: None });
            }
        }
        let flow = &mut self.lanes[side.index()].flows[i];
        flow.may_have_more = left == 0;
        let kind = kind?;
        Some(Block { from, to, kind, bytes: room - left, attempts: 1, frames })
    }

    /// Sends a block, which fails or arrives.
    fn attempt(&mut self, now: Time, side: Side, block: Block, air: &mut dyn Air) {
        let Block { from, to, kind, bytes, attempts, .. } = block;
        let airtime = self.config.block;
        let p = if attempts == 1 { self.config.errors } else { self.config.again };
        let fails = p.get() > 0.0 && self.rng.chance(p.get());
        let damaged = air.damages(from, to, kind, bytes, now, airtime) || fails;
        let fate = FrameFate::of(damaged);
        air.report(AirEvent { station: from, to, kind, bytes, airtime, fate });
        let end = now + airtime;
        if damaged && attempts < self.config.attempts {
            for number in &block.frames {
                if let Some(sent) = self.frames.get(number) {
                    air.repeated(&sent.frame, Cause::BlockRepeated);
                }
            }
            let at = now + self.config.repeat;
            return self.lanes[side.index()].again.push_back((at, block));
        }
        let delay = self.sky.as_ref().map_or(self.delay, |sky| sky.delay(end));
        self.flying.insert(end + delay, (block, damaged));
    }

    /// Handles the arrival of a block, or its final loss.
    fn arrive(&mut self, block: Block, lost: bool, air: &mut dyn Air) {
        for number in block.frames {
            let Some(sent) = self.frames.get_mut(&number) else { continue };
            sent.blocks -= 1;
            sent.lost |= lost;
            if !sent.whole || sent.blocks > 0 {
                continue;
            }
            let Some(Sent { frame, lost, .. }) = self.frames.remove(&number) else { continue };
            air.outcome(match lost {
                true => Outcome::Failed { frame, cause: Cause::RetryLimit, delivered: false },
                false => Outcome::Arrived { frame, intact: true, may_reply: false },
            });
        }
    }
}

impl Mac for Granted {
    fn check(&self) {
        debug_assert!(
            self.frames.last_key_value().is_none_or(|(last, _)| *last < self.next_number),
            "a frame has a number that is not yet given"
        );
        for lane in &self.lanes {
            debug_assert!(lane.turn < lane.flows.len(), "turn of flow {}", lane.turn);
            debug_assert!(
                lane.again.iter().take(16).all(|(_, block)| block.attempts < self.config.attempts),
                "a block is repeated too often"
            );
        }
    }

    fn request(&mut self, now: Time, frame: Frame, _: Access, _: &mut dyn Air) {
        let (side, mobile) = match frame.from {
            Station::BASE => (Side::Right, frame.to),
            mobile => (Side::Left, mobile),
        };
        let i = mobile.index() - 1;
        let wait = if side == Side::Left { self.config.request } else { Span::ZERO };
        self.lanes[side.index()].flows[i].granted_at = now + wait;
        self.accept(frame, side, i);
    }

    fn on_wake(&mut self, now: Time, air: &mut dyn Air) {
        loop {
            let [left, right] = Side::BOTH.map(|side| self.due(side));
            let arrives = self.flying.next();
            let first = arrives.min(left).min(right);
            if first > now {
                return;
            }
            if arrives == first {
                if let Some((block, lost)) = self.flying.take(first) {
                    self.arrive(block, lost, air);
                }
            } else {
                let side = if left == first { Side::Left } else { Side::Right };
                self.send_block(first, side, air);
            }
        }
    }

    fn next_wake(&self) -> Option<Time> {
        self.flying.next().min(self.due(Side::Left)).min(self.due(Side::Right)).or_none()
    }

    fn is_idle(&self, station: Station) -> bool {
        let idle = |flow: &Flow| flow.partial.is_none() && !flow.may_have_more;
        match station {
            Station::BASE => self.lanes[Side::Right.index()].flows.iter().all(idle),
            mobile => idle(&self.lanes[Side::Left.index()].flows[mobile.index() - 1]),
        }
    }

    fn timing(&self) -> Timing {
        // A block may wait for the next one, and for its repetitions.
        let repeats = self.config.repeat * u64::from(self.config.attempts - 1);
        Timing {
            byte_ps: libm::ceil(8e12 * self.coding.factor() / self.rate.bps() as f64) as u64,
            frame: self.config.block * 2,
            propagation: self.delay,
            turnaround: Span::ZERO,
            processing: self.config.request + repeats,
            turn: Span::ZERO,
        }
    }

    fn vary(&mut self, sky: Sky) {
        self.sky = Some(Box::new(sky));
    }
}
