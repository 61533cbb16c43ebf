//! One direction of a varying line.

use core::ops::Range;

use crate::channel::damage_at;
use crate::event::{Cause, Op};
use crate::link::transmitter::Transmitter;
use crate::machine::{Out, Side};
use crate::rng::Stream;
use crate::units::{Rate, Time};
use crate::wire::{Damage, Packet};

use super::impair::{Impaired, Passage};
use super::trace::{Cursor, TUN_HEADER};
use super::{Course, Pace, VariedConfig, Weather};

/// Limit of a transmission's duration in nanoseconds: a rate that is zero whenever the line is up never ends
/// one.
const PATIENCE: u64 = 100_000 * 1_000_000_000;

/// A sent packet, and the cause of its loss, if it is lost.
#[derive(Clone, Debug)]
struct UnderWay {
    packet: Packet,
    lost: Option<Cause>,
    /// Effects of the line other than loss.
    done: Done,
}

/// Effects of a line on a packet.
#[derive(Clone, Copy, Default, Debug)]
struct Done {
    /// It is a duplicate, which originates at the line's end.
    duplicate: bool,
    overtakes: bool,
    damaged_at: Option<u32>,
}

/// The pacing of packets.
#[derive(Clone, Debug)]
enum Server {
    Fixed(Option<Rate>),
    Rates(Course<Option<Rate>>),
    Trace(Box<Opportunities>),
}

/// Position in a trace, and a partly sent packet.
#[derive(Clone, Debug)]
struct Opportunities {
    cursor: Cursor,
    partial: Option<Partial>,
}

#[derive(Clone, Debug)]
struct Partial {
    packet: Packet,
    /// Time at which its first byte was sent.
    begun: Time,
    /// Remaining bytes.
    left: u32,
}

#[derive(Clone, Debug)]
pub(super) struct Direction {
    server: Server,
    transmitter: Transmitter<UnderWay>,
    framing: u32,
    rng: Stream,
    impaired: Option<Box<Impaired>>,
}

impl Direction {
    /// Asserts the invariants of the transmitter and of the trace.
    pub fn check(&self) {
        self.transmitter.check();
        if let Server::Trace(server) = &self.server
            && let Some(partial) = &server.partial
        {
            debug_assert!(partial.left > 0, "a packet without remaining bytes has left");
            debug_assert!(
                partial.left <= partial.packet.wire_len() + self.framing + TUN_HEADER,
                "more bytes remain than the packet has"
            );
        }
    }

    /// The idle direction towards `side`.
    pub fn new(config: &VariedConfig, side: Side, stream: &impl Fn(&str) -> Stream) -> Direction {
        let line = &config.line;
        let fixed = crate::link::towards(side, line.rate_left, line.rate_right);
        let server = match crate::link::towards(side, &config.left, &config.right) {
            None => Server::Fixed(fixed),
            Some(Pace::Rates(rates)) => Server::Rates(rates.clone()),
            Some(Pace::Trace(trace)) => {
                let cursor = Cursor::new(trace.clone());
                Server::Trace(Box::new(Opportunities { cursor, partial: None }))
            }
        };
        Direction {
            server,
            transmitter: line.transmitter(side, stream),
            framing: line.framing,
            rng: stream(&format!("losses.{}", side.word())),
            impaired: config
                .impairments
                .as_ref()
                .and_then(|impairments| Impaired::new(impairments, side, stream))
                .map(Box::new),
        }
    }

    /// Handles everything due by `now`.
    pub fn catch_up(&mut self, now: Time, side: Side, weather: &Weather, out: &mut Out) {
        if let Server::Trace(_) = self.server {
            while self.next_opportunity() <= now {
                self.use_opportunity(side, weather, out);
            }
            return;
        }
        self.transmitter.pipe.look_ahead();
        while let Some((start, waiting)) = self.transmitter.due(now, side, out) {
            self.transmit(start, waiting.packet, waiting.bytes, weather);
        }
    }

    /// Handles an arriving packet; everything due before must have been handled.
    pub fn arrive(
        &mut self,
        now: Time,
        side: Side,
        packet: Packet,
        weather: &Weather,
        out: &mut Out,
    ) {
        let bytes = packet.wire_len() + self.framing;
        let idle = self.next_opportunity() == Time::NEVER;
        if let Server::Trace(server) = &mut self.server {
            if idle {
                server.cursor.arrive(now);
            }
            return self.transmitter.queue.enqueue(now, side, packet, bytes, out);
        }
        if let Some(packet) = self.transmitter.arrive(now, side, packet, bytes, out) {
            self.transmit(now, packet, bytes, weather);
        }
        self.transmitter.pipe.look_by(self.turn());
    }

    /// Deadline for waiting packets. On an impaired line they may leave before packets under way.
    fn turn(&self) -> Time {
        let overtaken = self.impaired.is_some() && !self.transmitter.queue.is_empty();
        if overtaken { self.transmitter.free_at } else { self.transmitter.turn() }
    }

    /// Starts a transmission of `bytes` bytes at `start`.
    fn transmit(&mut self, start: Time, packet: Packet, bytes: u32, weather: &Weather) {
        let end = self.end(start, bytes, weather);
        self.transmitter.free_at = end;
        self.sent(start..end, packet, weather);
    }

    /// End of a transmission that begins at `start`.
    fn end(&self, start: Time, bytes: u32, weather: &Weather) -> Time {
        // In bits times nanoseconds per second, so that a rate times a time is exact.
        let mut left = u128::from(bytes) * 8 * 1_000_000_000;
        let mut now = start;
        while left > 0 {
            let (is_out, mut until) = match weather.buffers {
                true => weather.outage(now),
                false => (false, Time::NEVER),
            };
            let (rate, slope) = match &self.server {
                Server::Fixed(None) if !is_out => return now,
                Server::Fixed(rate) => (rate.map_or(0, Rate::bps), 0.0),
                Server::Rates(rates) => {
                    let stretch = rates.stretch(now);
                    until = until.min(stretch.until);
                    (stretch.value.map_or(0, Rate::bps), stretch.slope)
                }
                Server::Trace(_) => return now,
            };
            if !is_out {
                let dt = (until != Time::NEVER).then(|| until.since(now).0);
                match passed(rate, slope, dt, left) {
                    Passed::All(after) => return Time(now.0.saturating_add(after)),
                    Passed::Some(bits) => left -= bits.min(left - 1),
                }
            }
            if until == Time::NEVER || until.since(start).0 > PATIENCE {
                return Time::NEVER;
            }
            now = until;
        }
        now
    }

    /// Handles a packet that was sent in `during`.
    fn sent(&mut self, during: Range<Time>, packet: Packet, weather: &Weather) {
        let base = match &self.server {
            Server::Trace(server) => server.cursor.delay(),
            _ => None,
        };
        let (end, delay) = (during.end, base.unwrap_or_else(|| weather.delay(during.end)));
        let lost = weather.loss(during, &mut self.rng);
        let Some(impaired) = &mut self.impaired else {
            let pipe = &mut self.transmitter.pipe;
            let at = pipe.in_order(end + delay);
            return pipe.push(at, UnderWay { packet, lost, done: Done::default() });
        };
        let (first, second) = impaired.pass(end, delay, &packet);
        let copy = second.map(|passage| (passage, packet.clone()));
        self.passes(first, false, lost, packet);
        if let Some((passage, copy)) = copy {
            self.passes(passage, true, lost, copy);
        }
    }

    /// Adds a packet or its duplicate to an impaired line.
    fn passes(&mut self, passage: Passage, duplicate: bool, lost: Option<Cause>, packet: Packet) {
        let Passage { at, damaged_at, free, .. } = passage;
        let lost = lost.or(passage.lost.then_some(Cause::FrameLost));
        let pipe = &mut self.transmitter.pipe;
        let in_order = pipe.in_order(at);
        let done = Done { duplicate, overtakes: free && at < in_order, damaged_at };
        if done.overtakes {
            pipe.insert(at, UnderWay { packet, lost, done });
        } else {
            pipe.push(in_order, UnderWay { packet, lost, done });
        }
    }

    /// Uses the next opportunity for waiting packets: several packets may share it, and a packet may need
    /// several.
    fn use_opportunity(&mut self, side: Side, weather: &Weather, out: &mut Out) {
        let Server::Trace(server) = &mut self.server else { return };
        let full = server.cursor.full();
        let room = server.cursor.train_room();
        let (in_train, mut room) = (room.is_some(), room.unwrap_or(full));
        let at = server.cursor.take();
        if weather.is_paused(at) {
            return;
        }
        let mut carried = Vec::new();
        while room > 0 {
            let mut partial = match server.partial.take() {
                Some(partial) => partial,
                None => match self.transmitter.queue.dequeue(at, side, out) {
                    Some(waiting) => {
                        let left = waiting.bytes + TUN_HEADER;
                        Partial { packet: waiting.packet, begun: at, left }
                    }
                    None => break,
                },
            };
            let now = match partial.left <= room || in_train && room == full {
                true => partial.left,
                // A train carries whole packets.
                false if in_train => 0,
                false => room,
            };
            room = if now == 0 { 0 } else { room.saturating_sub(now) };
            partial.left -= now;
            if partial.left > 0 {
                server.partial = Some(partial);
            } else {
                carried.push((partial.begun, partial.packet));
            }
        }
        if in_train && room > 0 && self.transmitter.queue.is_empty() {
            server.cursor.put_back(room);
        }
        for (begun, packet) in carried {
            self.sent(begun..at, packet, weather);
        }
    }

    /// Time of the next opportunity for a waiting packet.
    fn next_opportunity(&self) -> Time {
        match &self.server {
            Server::Trace(server)
                if server.partial.is_some() || !self.transmitter.queue.is_empty() =>
            {
                server.cursor.next()
            }
            _ => Time::NEVER,
        }
    }

    /// Forwards packets that leave at `side` by `now`, and drops lost ones.
    pub fn deliver(&mut self, now: Time, side: Side, out: &mut Out) {
        while let Some(UnderWay { mut packet, lost, done }) = self.transmitter.pipe.take(now) {
            if self.impaired.is_some() {
                done.report(side, &mut packet, lost.is_some(), out);
            }
            match lost {
                Some(cause) => out.discard(side, packet, cause),
                None => {
                    out.packet_event(Op::Transmitted, side, &packet);
                    out.send(side, packet);
                }
            }
        }
        if !matches!(self.server, Server::Trace(_)) {
            self.transmitter.pipe.look_by(self.turn());
        }
    }

    /// The next deadline.
    pub fn next(&self) -> Time {
        self.transmitter.pipe.next().min(self.next_opportunity())
    }

    /// The packet that is partly sent at `now`.
    pub fn in_transmission(&self, now: Time) -> Option<&Packet> {
        match &self.server {
            Server::Trace(server) => server.partial.as_ref().map(|partial| &partial.packet),
            _ if self.transmitter.free_at <= now => None,
            _ => {
                let mut sent = self.transmitter.pipe.iter().rev();
                let last = self.impaired.as_ref().map(|impaired| impaired.last);
                let found = sent.find(|u| last.is_none_or(|id| u.packet.id == id));
                found.map(|under_way| &under_way.packet)
            }
        }
    }

    /// Number of packets inside.
    pub fn holds(&self) -> usize {
        let partial = match &self.server {
            Server::Trace(server) => usize::from(server.partial.is_some()),
            _ => 0,
        };
        // Duplicates originate when they leave.
        let duplicates = match &self.impaired {
            Some(_) => self.transmitter.pipe.iter().filter(|u| u.done.duplicate).count(),
            None => 0,
        };
        self.transmitter.holds() + partial - duplicates
    }
}

impl Done {
    /// Reports the effects of the line on `packet`, which leaves, or would if it were not lost.
    fn report(self, side: Side, packet: &mut Packet, lost: bool, out: &mut Out) {
        if self.duplicate {
            out.introduce(side, packet, Cause::LineDuplicate);
        }
        if lost {
            return;
        }
        if self.overtakes {
            out.packet_event(Op::Redirected(Cause::Reordered), side, packet);
        }
        if let Some(position) = self.damaged_at
            && packet.damage == Damage::None
        {
            packet.damage = damage_at(position, packet);
            out.packet_event(Op::Damaged, side, packet);
        }
    }
}

/// Amount that passes.
enum Passed {
    /// Everything, after this many nanoseconds.
    All(u64),
    /// A part, since the time was too short.
    Some(u128),
}

/// Amount of `left` that passes within `dt` at a rate that changes by `slope` per nanosecond.
fn passed(rate: u64, slope: f64, dt: Option<u64>, left: u128) -> Passed {
    let Some(dt) = dt.filter(|_| slope != 0.0) else {
        let in_time = dt.map(|dt| u128::from(rate) * u128::from(dt));
        return match in_time {
            Some(some) if some < left => Passed::Some(some),
            None if rate == 0 => Passed::Some(0),
            _ => Passed::All(left.div_ceil(rate.into()) as u64),
        };
    };
    let (rate, span) = (rate as f64, dt as f64);
    let some = (rate + slope * span / 2.0) * span;
    if some < left as f64 {
        return Passed::Some(some as u128);
    }
    // The root of slope/2 x^2 + rate x = left, in the form that is accurate for small slopes.
    let root = libm::sqrt((rate * rate + 2.0 * slope * left as f64).max(0.0));
    let after = libm::ceil(2.0 * left as f64 / (rate + root));
    Passed::All((after as u64).min(dt))
}
