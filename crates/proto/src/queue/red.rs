//! RED, random early detection (Floyd and Jacobson 1993): a router that marks or drops before its queue is
//! full.
//!
//! Each arrival updates the average length of the queue. Below `min` no packet is chosen. Between `min` and
//! `max` the arriving packet is chosen with a probability that grows with the average; from `max` on every
//! packet is chosen. A chosen packet is marked with Congestion Experienced if it is ECN-capable (RFC 3168),
//! and dropped otherwise ([`EarlyDrop`](crate::event::Cause::EarlyDrop)). A packet that does not fit is
//! dropped as in any queue.
//!
//! **The average** follows the length with the weight `w_q` at each arrival. An idle time counts as arrivals
//! at an empty queue, one per [`RedConfig::packet_time`].
//!
//! **Probability.** The number of arrivals between two choices is uniform between 1 and 1/p_b, not geometric:
//! the count of arrivals since the last choice raises the probability. So choices are evenly spread, and a
//! source with twice the rate is chosen twice as often.
//!
//! **Gentle.** With [`RedConfig::gentle`] the probability does not jump to 1 at `max`, but grows to 1 at twice `max`
//! (S. Floyd, *Recommendation on using the "gentle_" variant of RED*, 2000). So an average slightly above `max` does not
//! cause a burst of drops.
//!
//! **A nearly empty queue** has no congestion: while at most one packet waits, no packet is chosen, whatever
//! the average. The paper's pseudo-code does not contain this rule; ns-2's RED, maintained by its first
//! author, and ns-3's do. Without it an open load of 0.9 would lose a quarter more than there.
//!
//! Lengths are in packets, without the arriving packet and the packet in transmission.

use serde::Serialize;

use super::{Discipline, Order, Read, Room, Waiting, choose};
use crate::describe::{Descriptor, Keys, Kind, System};
use crate::machine::{Out, Side};
use crate::rng::Stream;
use crate::units::{Bytes, Probability, Rate, Span, Time};
use crate::wire::Packet;

pub(super) const WORDS: &[Descriptor<Read>] = &[Descriptor {
    word: "red",
    system: System::new(
        Kind::Queue,
        "red",
        "path: discipline = \"red\", or \"red+acks-first\"",
        "random early detection that drops or marks",
        "Floyd and Jacobson 1993",
    ),
    read: |k, rate| Discipline::Red(RedConfig::keys(k, rate)),
}];

pub(super) const BEFORE_CLASSES: &[Descriptor<Read>] = &[Descriptor {
    word: "red+acks-first",
    system: System::new(
        Kind::Queue,
        "red+acks-first",
        "path: discipline = \"red+acks-first\"",
        "random early detection before two classes, ACKs first",
        "balakrishnan97 4.4.1",
    )
    .tier(System::UNLISTED),
    read: |k, rate| Discipline::RedAcksFirst(RedConfig::keys(k, rate)),
}];

/// Configuration of early congestion detection.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct RedConfig {
    /// Average length in packets from which packets are chosen randomly.
    pub min: f64,
    /// Average length in packets from which every packet is chosen.
    pub max: f64,
    /// Probability of a choice at an average of `max`.
    pub max_p: f64,
    /// Weight of the present length in the average, above 0 and at most 1.
    pub weight: f64,
    /// Transmission time of a typical packet, the unit in which idle time counts as empty arrivals. Zero
    /// makes an idle queue reset immediately.
    pub packet_time: Span,
    /// Whether ECN-capable packets are marked; otherwise all chosen packets are dropped.
    pub mark: bool,
    /// Whether the probability grows from `max_p` at `max` to 1 at twice `max`.
    #[serde(skip_serializing_if = "is_false")]
    pub gentle: bool,
}

/// Omitted if false, so that runs without it keep their names.
fn is_false(flag: &bool) -> bool {
    !flag
}

impl RedConfig {
    /// The values of Floyd and Jacobson's simulations: thresholds of 5 and 15 packets, probability 1/50, weight 0.002.
    pub const FLOYD93: RedConfig = RedConfig {
        min: 5.0,
        max: 15.0,
        max_p: 0.02,
        weight: 0.002,
        packet_time: Span::ZERO,
        mark: true,
        gentle: false,
    };

    /// Default length of a typical packet, the unit of idle time.
    pub const TYPICAL: Bytes = Bytes(500);

    /// Reads the keys, for a transmitter of `rate`.
    pub fn keys(k: &mut Keys<'_>, rate: Option<Rate>) -> RedConfig {
        let (mut red, mut typical) = (RedConfig::FLOYD93, RedConfig::TYPICAL);
        let mut max_p = Probability::nearest(red.max_p);
        k.table("red", "options of random early detection", |k| {
            let doc = "the average length in packets from which packets are chosen at random";
            k.within("min", &mut red.min, 0.0..=1e6, doc);
            let doc = "the average length in packets from which every packet is chosen";
            k.within("max", &mut red.max, 0.0..=1e6, doc);
            if red.max <= red.min {
                let key = if k.has("max") { "max" } else { "min" };
                let (min, max) = (red.min, red.max);
                let help = format!("min ({min}) must be below max ({max}); for example `min = 5, max = 15`");
                k.out_of_range(key, help);
            }
            k.within("weight", &mut red.weight, 0.0..=1.0, "the weight of each arrival in the average");
            if red.weight == 0.0 {
                let help = "the weight of each arrival in the average, above 0 and at most 1; for example 0.002";
                k.out_of_range("weight", help);
            }
            k.probability("max-p", &mut max_p, "the probability of being chosen at `max`");
            if max_p == Probability::ZERO {
                k.out_of_range("max-p", "above 0; for example `max-p = \"2%\"`");
            }
            k.flag("mark", &mut red.mark, "whether packets of ends with ECN are marked, not dropped");
            let doc = "whether the probability grows from `max-p` at `max` to 1 at twice `max`";
            k.flag("gentle", &mut red.gentle, doc);
            let doc = "the packet size by which idle time is counted";
            k.within("typical", &mut typical, Bytes(1)..=Bytes(65_535), doc);
        });
        red.max_p = max_p.get();
        red.on(rate, typical)
    }

    /// Probability p_b of a choice at an average of at least `min`.
    fn probability(&self, average: f64) -> f64 {
        let RedConfig { min, max, max_p, gentle, .. } = *self;
        match average < max {
            true => max_p * (average - min) / (max - min),
            false if gentle => max_p + (1.0 - max_p) * (average - max) / max,
            false => 1.0,
        }
    }

    /// Sets [`RedConfig::packet_time`] for a line of `rate`.
    #[must_use]
    pub fn on(self, rate: Option<Rate>, typical: Bytes) -> RedConfig {
        let packet_time = rate.map_or(Span::ZERO, |rate| rate.transmit(typical.0));
        RedConfig { packet_time, ..self }
    }
}

/// Random early detection in front of the order `O`: the queue's average and its random choices.
#[derive(Clone, Debug)]
pub struct Red<O> {
    config: RedConfig,
    rng: Stream,
    average: f64,
    /// Arrivals since the last choice; `None` while the average is below `min`.
    count: Option<u64>,
    /// Time since which the queue is empty; `None` while it is not.
    empty_since: Option<Time>,
    behind: O,
}

impl<O: Order + Default> Red<O> {
    /// Detection in front of an empty queue; `rng` chooses the packets.
    pub fn new(config: RedConfig, rng: Stream) -> Red<O> {
        let (empty_since, behind) = (Some(Time::ZERO), O::default());
        Red { config, rng, average: 0.0, count: None, empty_since, behind }
    }
}

impl<O> Red<O> {
    //= floyd93#4: avg <- (1 - w_q) avg + w_q q; after an idle time, avg <- (1 - w_q)^m avg
    fn learn(&mut self, now: Time, length: usize) {
        let keep = 1.0 - self.config.weight;
        match self.empty_since.take().filter(|_| length == 0) {
            Some(since) => {
                let packets = match self.config.packet_time {
                    Span::ZERO => f64::INFINITY,
                    time => now.since(since).0 as f64 / time.0 as f64,
                };
                // With weight 1 nothing remains; zero to the power of zero would be 1.
                self.average *= if keep > 0.0 { libm::pow(keep, packets) } else { 0.0 };
                // If the packet does not stay, the queue is empty as of now.
                self.empty_since = Some(now);
            }
            None => self.average += self.config.weight * (length as f64 - self.average),
        }
    }

    //= floyd93#4: p_b <- max_p (avg - min) / (max - min); p_a <- p_b / (1 - count p_b)
    fn chosen(&mut self, length: usize) -> bool {
        if self.average < self.config.min || length <= 1 {
            self.count = None;
            return false;
        }
        let count = self.count.map_or(0, |count| count + 1);
        let base = self.config.probability(self.average);
        let chosen = base >= 1.0 || {
            let left = 1.0 - count as f64 * base;
            left <= 0.0 || self.rng.chance(base / left)
        };
        //= floyd93#7: uniform from 1 to 1/p_b; the pseudo-code of section 4 counts one arrival more
        self.count = (!chosen).then_some(count);
        chosen
    }
}

impl<O: Order> Order for Red<O> {
    fn check(&self, room: &Room) {
        let RedConfig { min, max, max_p, weight, .. } = self.config;
        debug_assert!(min < max, "thresholds in order: {min}, {max}");
        debug_assert!((0.0..=1.0).contains(&max_p) && weight > 0.0 && weight <= 1.0);
        debug_assert!(self.average.is_finite() && self.average >= 0.0, "{}", self.average);
        debug_assert!(
            self.count.is_none() || self.average >= min,
            "packets are only counted between the thresholds"
        );
        debug_assert!(
            self.empty_since.is_none() || room.len() <= 1,
            "a queue with packets is not empty"
        );
        self.behind.check(room);
    }

    fn enqueue(&mut self, now: Time, side: Side, waiting: Waiting, room: &mut Room, out: &mut Out) {
        let Waiting { packet, bytes } = waiting;
        if let Some(packet) = self.pass(now, side, packet, room, out) {
            self.behind.enqueue(now, side, Waiting { packet, bytes }, room, out);
        }
    }

    fn pass(
        &mut self,
        now: Time,
        side: Side,
        packet: Packet,
        room: &Room,
        out: &mut Out,
    ) -> Option<Packet> {
        self.learn(now, room.len());
        if self.chosen(room.len()) {
            choose(self.config.mark, side, packet, out)
        } else {
            Some(packet)
        }
    }

    fn dequeue(&mut self, at: Time, side: Side, room: &mut Room, out: &mut Out) -> Option<Waiting> {
        let next = self.behind.dequeue(at, side, room, out)?;
        if room.is_empty() {
            self.empty_since = Some(at);
        }
        Some(next)
    }

    fn average(&self) -> Option<f64> {
        Some(self.average)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_probability_jumps_at_the_maximum_unless_it_is_gentle() {
        let plain = RedConfig { max_p: 0.1, ..RedConfig::FLOYD93 };
        let gentle = RedConfig { gentle: true, ..plain };
        for (average, expected) in [(5.0, [0.0, 0.0]), (10.0, [0.05, 0.05]), (15.0, [1.0, 0.1])] {
            assert_eq!([plain, gentle].map(|red| red.probability(average)), expected, "{average}");
        }
        assert!((gentle.probability(22.5) - 0.55).abs() < 1e-12);
        assert!((gentle.probability(30.0) - 1.0).abs() < 1e-12);
    }

    /// Packets of which none is sent: the average rises to 40, and the share that was chosen at each average.
    #[test]
    fn a_gentle_queue_chooses_some_packets_above_the_maximum() {
        let config = RedConfig { gentle: true, max_p: 0.1, weight: 1.0, ..RedConfig::FLOYD93 };
        let mut red = Red::<super::super::Fifo>::new(config, Stream::new(1, "red"));
        let mut share = |length: usize| {
            let mut chosen = 0;
            for _ in 0..4000 {
                red.learn(Time::ZERO, length);
                chosen += usize::from(red.chosen(length));
            }
            chosen as f64 / 4000.0
        };
        // Choices are uniform between 1 and 1/p_b arrivals apart: their mean distance is about half of 1/p_b.
        assert!((0.1..0.25).contains(&share(15)));
        assert!((0.5..0.8).contains(&share(22)));
        assert_eq!(share(30), 1.0);
    }
}
