//! CoDel, controlled delay (Nichols and Jacobson; RFC 8289): a queue is too long if no packet has passed it
//! quickly for a while, whatever its number of packets.
//!
//! Each packet's arrival time is stored. When a packet leaves, its waiting time is compared with `target`. If
//! all packets have waited longer for an `interval`, one is dropped from the head of the queue, or marked if
//! its ends support ECN. Further ones follow after interval / sqrt(count) each, until a packet has waited
//! less. A burst passes, since it is gone within an interval; a standing queue does not.
//!
//! Linux determines details that the pseudo-code leaves open: the largest packet is the largest seen so far;
//! a mark counts as a drop, and the marked packet leaves.

use std::collections::VecDeque;

use serde::Serialize;

use super::{Discipline, Order, Read, Room, Waiting, choose};
use crate::describe::{Descriptor, Keys, Kind, System};
use crate::machine::{Out, Side};
use crate::units::{Span, Time};

pub(super) const WORDS: &[Descriptor<Read>] = &[Descriptor {
    word: "codel",
    system: System::new(
        Kind::Queue,
        "codel",
        "path: discipline = \"codel\"",
        "drops from the head while all packets have waited too long",
        "RFC 8289",
    )
    .tier(0),
    read: |k, _| {
        let mut codel = CodelConfig::default();
        k.table("codel", "options of controlled delay", |k| codel.keys(k));
        Discipline::Codel(codel)
    },
}];

/// Target of the queueing delay.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct CodelConfig {
    /// Acceptable waiting time.
    pub target: Span,
    /// Time for which the delay may exceed the target: about the longest round trip of the flows.
    pub interval: Span,
    /// Whether ECN-capable packets are marked; otherwise all chosen packets are dropped.
    pub mark: bool,
}

impl Default for CodelConfig {
    //= rfc8289: a target of 5 ms and an interval of 100 ms work over a wide range
    fn default() -> CodelConfig {
        CodelConfig { target: Span::millis(5), interval: Span::millis(100), mark: true }
    }
}

impl CodelConfig {
    /// Reads the keys of the options.
    pub(super) fn keys(&mut self, k: &mut Keys<'_>) {
        let doc = "the target delay";
        k.within("target", &mut self.target, Span::micros(1)..=Span::secs(60), doc);
        let doc =
            "how long the delay may exceed the target before a drop: about the longest round trip";
        k.within("interval", &mut self.interval, Span::micros(1)..=Span::secs(3600), doc);
        k.flag("mark", &mut self.mark, "whether packets of ends with ECN are marked, not dropped");
    }
}

/// The control law of one queue, independent of the storage of its packets.
//= rfc8289: the state of a queue
#[derive(Clone, Debug, Default)]
pub(super) struct ControlLaw {
    /// Time at which the delay has exceeded the target for an interval; `None` below the target.
    above_until: Option<Time>,
    /// Time of the next drop while `dropping`.
    drop_next: Time,
    /// Number of drops since dropping began, and the number when it began last.
    count: u32,
    last_count: u32,
    dropping: bool,
    /// Length of the largest packet so far, bytes.
    largest: u32,
}

/// Storage of the packets under a [`ControlLaw`].
pub(super) trait Head {
    /// Removes the oldest packet, with its arrival time.
    fn take(&mut self) -> Option<(Time, Waiting)>;
    /// Number of waiting bytes.
    fn bytes(&self) -> u64;
}

/// Asserts that packets wait in the order of their arrival.
pub(super) fn check_ages(waiting: &VecDeque<(Time, Waiting)>) {
    debug_assert!(
        waiting.front().zip(waiting.back()).is_none_or(|(first, last)| first.0 <= last.0),
        "the first packet is the oldest"
    );
    debug_assert!(
        waiting.iter().rev().take(2).map(|(came, _)| *came).is_sorted_by(|a, b| a >= b),
        "the last packets arrived in this order"
    );
}

impl ControlLaw {
    pub fn check(&self) {
        debug_assert!(!self.dropping || self.count > 0, "the drop that began the state counts");
        debug_assert!(
            self.last_count <= self.count || !self.dropping,
            "drops only increase the count"
        );
        debug_assert!(
            self.above_until.is_none() || self.largest > 0,
            "a delay above the target belongs to a packet"
        );
    }

    /// The packet to send at `now`. Drops packets before it that have waited too long.
    //= rfc8289: dequeue
    pub fn next(
        &mut self,
        config: &CodelConfig,
        now: Time,
        side: Side,
        queue: &mut impl Head,
        out: &mut Out,
    ) -> Option<Waiting> {
        let (mut packet, mut late) = self.look(config, now, queue);
        if self.dropping {
            if !late {
                self.dropping = false;
            }
            while self.dropping && now >= self.drop_next {
                self.count = self.count.saturating_add(1);
                let (next, marked) = self.drop(config, now, side, packet, queue, out);
                (packet, late) = next;
                if marked || late {
                    self.drop_next = after(config, self.drop_next, self.count);
                } else {
                    self.dropping = false;
                }
                if marked {
                    break;
                }
            }
        } else if late {
            ((packet, _), _) = self.drop(config, now, side, packet, queue, out);
            self.dropping = true;
            //= rfc8289: if dropping has ended recently, resume at the rate that controlled the queue
            let lately = now < self.drop_next + config.interval * 16;
            let more = self.count.saturating_sub(self.last_count);
            self.count = if lately && more > 1 { more } else { 1 };
            self.last_count = self.count;
            self.drop_next = after(config, now, self.count);
        }
        packet
    }

    /// The oldest packet, and whether it may be dropped.
    fn look(
        &mut self,
        config: &CodelConfig,
        now: Time,
        queue: &mut impl Head,
    ) -> (Option<Waiting>, bool) {
        let Some((came, waiting)) = queue.take() else {
            self.above_until = None;
            return (None, false);
        };
        self.largest = self.largest.max(waiting.bytes);
        if now.since(came) < config.target || queue.bytes() <= u64::from(self.largest) {
            self.above_until = None;
            return (Some(waiting), false);
        }
        let late = match self.above_until {
            Some(until) => now >= until,
            None => {
                self.above_until = Some(now + config.interval);
                false
            }
        };
        (Some(waiting), late)
    }

    /// Drops `chosen`, or marks it for sending. Returns the packet to send, whether that is late too, and
    /// whether it was marked.
    fn drop(
        &mut self,
        config: &CodelConfig,
        now: Time,
        side: Side,
        chosen: Option<Waiting>,
        queue: &mut impl Head,
        out: &mut Out,
    ) -> ((Option<Waiting>, bool), bool) {
        let Some(Waiting { packet, bytes }) = chosen else { return ((None, false), false) };
        match choose(config.mark, side, packet, out) {
            Some(packet) => ((Some(Waiting { packet, bytes }), true), true),
            None => (self.look(config, now, queue), false),
        }
    }
}

/// Time of the next drop after `count` drops.
//= rfc8289: the next drop time decreases in inverse proportion to the square root of the drops
fn after(config: &CodelConfig, last: Time, count: u32) -> Time {
    last + Span((config.interval.0 as f64 / libm::sqrt(f64::from(count.max(1)))) as u64)
}

/// One queue under this law.
#[derive(Clone, Debug)]
pub struct Codel {
    config: CodelConfig,
    law: ControlLaw,
    waiting: VecDeque<(Time, Waiting)>,
}

impl Codel {
    /// An empty queue.
    pub fn new(config: CodelConfig) -> Codel {
        Codel { config, law: ControlLaw::default(), waiting: VecDeque::new() }
    }
}

/// Packets of one queue, with the shared room.
struct One<'a>(&'a mut VecDeque<(Time, Waiting)>, &'a mut Room);

impl Head for One<'_> {
    fn take(&mut self) -> Option<(Time, Waiting)> {
        let (came, waiting) = self.0.pop_front()?;
        self.1.remove(waiting.bytes);
        Some((came, waiting))
    }

    fn bytes(&self) -> u64 {
        self.1.bytes()
    }
}

impl Order for Codel {
    fn check(&self, room: &Room) {
        room.check_packets(self.waiting.iter().map(|(_, waiting)| waiting));
        check_ages(&self.waiting);
        self.law.check();
    }

    fn enqueue(&mut self, now: Time, side: Side, waiting: Waiting, room: &mut Room, out: &mut Out) {
        if !room.admits(waiting.bytes) {
            return waiting.overflow(side, out);
        }
        room.add(waiting.bytes);
        self.waiting.push_back((now, waiting));
    }

    fn dequeue(&mut self, at: Time, side: Side, room: &mut Room, out: &mut Out) -> Option<Waiting> {
        self.law.next(&self.config, at, side, &mut One(&mut self.waiting, room), out)
    }

    fn judges_leaving(&self) -> bool {
        true
    }
}
