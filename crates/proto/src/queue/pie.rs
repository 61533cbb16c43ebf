//! PIE, proportional integral controller enhanced (RFC 8033): drops arriving packets with a probability that
//! follows the delay.
//!
//! Every `update` the probability grows with the distance of the queue's delay from `target`, and with the
//! growth of the delay since the last update; small probabilities change in small steps. An arriving packet
//! is chosen with that probability. It is marked if it is ECN-capable and the probability is small, and
//! dropped otherwise. After an idle time bursts of `max-burst` pass.
//!
//! The delay is the waiting time of the packet that left last (RFC 8033 permits this instead of an estimate
//! of the line's rate), or zero for an empty queue. The probability is updated when a packet arrives or
//! leaves, since the queue does not change in between.

use std::collections::VecDeque;

use serde::Serialize;

use super::codel::check_ages;
use super::{Discipline, Order, Read, Room, Waiting, choose};
use crate::describe::{Descriptor, Keys, Kind, System};
use crate::machine::{Out, Side};
use crate::rng::Stream;
use crate::units::{Probability, Span, Time};
use crate::wire::Packet;

pub(super) const WORDS: &[Descriptor<Read>] = &[Descriptor {
    word: "pie",
    system: System::new(
        Kind::Queue,
        "pie",
        "path: discipline = \"pie\"",
        "drops arriving packets with a probability that holds the delay at its target",
        "RFC 8033",
    )
    .tier(0),
    read: |k, _| Discipline::Pie(PieConfig::keys(k)),
}];

/// Bytes below which no packet is chosen: two typical packets.
const FEW: u64 = 2 * 1500;
/// Limit of the growth of the probability per step above a tenth.
const LARGEST_STEP: f64 = 0.02;
/// Accumulated probability without a choice: below the first value none is chosen, from the second on all.
const TOO_SOON: f64 = 0.85;
const OVERDUE: f64 = 8.5;

/// Control of the delay.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct PieConfig {
    /// Target delay.
    pub target: Span,
    /// Interval of updates of the probability.
    pub update: Span,
    /// Gain of the distance from the target, per second.
    pub alpha: f64,
    /// Gain of the growth of the delay, per second.
    pub beta: f64,
    /// Time for which a burst passes after an idle time.
    pub max_burst: Span,
    /// Whether ECN-capable packets are marked; otherwise all chosen packets are dropped.
    pub mark: bool,
    /// Probability above which ECN-capable packets are dropped too.
    pub mark_below: f64,
}

impl Default for PieConfig {
    //= rfc8033: the values of the pseudo-code
    fn default() -> PieConfig {
        PieConfig {
            target: Span::millis(15),
            update: Span::millis(15),
            alpha: 0.125,
            beta: 1.25,
            max_burst: Span::millis(150),
            mark: true,
            mark_below: 0.1,
        }
    }
}

impl PieConfig {
    /// Reads the keys.
    pub fn keys(k: &mut Keys<'_>) -> PieConfig {
        let mut c = PieConfig::default();
        let mut mark_below = Probability::nearest(c.mark_below);
        k.table("pie", "options of PIE", |k| {
            k.within("target", &mut c.target, Span::micros(1)..=Span::secs(60), "the target delay");
            let doc = "the interval of updates of the probability";
            k.within("update", &mut c.update, Span::micros(100)..=Span::secs(60), doc);
            let doc = "the gain of the distance from the target, per second";
            k.within("alpha", &mut c.alpha, 0.0..=1000.0, doc);
            k.within(
                "beta",
                &mut c.beta,
                0.0..=1000.0,
                "the gain of the growth of the delay, per second",
            );
            let doc = "how long a burst after an idle time passes without drops";
            k.within("max-burst", &mut c.max_burst, Span::ZERO..=Span::secs(60), doc);
            k.flag("mark", &mut c.mark, "whether packets of ends with ECN are marked, not dropped");
            let doc = "the probability above which packets are dropped instead of marked";
            k.probability("mark-below", &mut mark_below, doc);
        });
        c.mark_below = mark_below.get();
        c
    }
}

/// A queue with a controlled delay.
#[derive(Clone, Debug)]
pub struct Pie {
    config: PieConfig,
    rng: Stream,
    waiting: VecDeque<(Time, Waiting)>,
    /// Drop probability of an arriving packet.
    drop: f64,
    /// Accumulated probability since the last choice.
    due: f64,
    delay: Span,
    old_delay: Span,
    burst: Span,
    next_update: Time,
}

impl Pie {
    /// An empty queue; `rng` chooses the packets.
    pub fn new(config: PieConfig, rng: Stream) -> Pie {
        Pie {
            config,
            rng,
            waiting: VecDeque::new(),
            drop: 0.0,
            due: 0.0,
            delay: Span::ZERO,
            old_delay: Span::ZERO,
            burst: config.max_burst,
            next_update: Time::ZERO + config.update,
        }
    }

    /// Runs all updates up to `now`.
    fn catch_up(&mut self, now: Time) {
        while self.next_update <= now {
            if self.rests() {
                // No further change until a packet arrives.
                let steps = now.since(self.next_update).0 / self.config.update.0.max(1);
                self.next_update += self.config.update * (steps + 1);
                return;
            }
            let (drop, old_delay) = (self.drop, self.old_delay);
            self.update();
            self.next_update += self.config.update;
            if self.drop == drop && self.old_delay == old_delay && self.next_update <= now {
                // The controller is in equilibrium until a packet arrives or leaves; only time passes.
                let steps = now.since(self.next_update).0 / self.config.update.0.max(1) + 1;
                return self.repeat(steps);
            }
        }
    }

    /// Runs many updates that do not change the probability.
    fn repeat(&mut self, steps: u64) {
        let PieConfig { max_burst, update, .. } = self.config;
        self.next_update += update * steps;
        let passed = Span(update.0.saturating_mul(steps));
        self.burst = match self.is_calm() {
            true => max_burst,
            false => Span(self.burst.0.saturating_sub(passed.0)),
        };
    }

    /// Whether bursts may pass again.
    fn is_calm(&self) -> bool {
        let half = Span(self.config.target.0 / 2);
        self.drop == 0.0 && self.delay < half && self.old_delay < half
    }

    /// Whether another update would change nothing.
    fn rests(&self) -> bool {
        let quiet = self.delay == Span::ZERO && self.old_delay == Span::ZERO;
        quiet && self.drop == 0.0 && self.burst == self.config.max_burst
    }

    //= rfc8033: the probability is calculated periodically
    fn update(&mut self) {
        let PieConfig { target, alpha, beta, max_burst, update, .. } = self.config;
        let seconds = |span: Span| span.0 as f64 / 1e9;
        let mut step = alpha * (seconds(self.delay) - seconds(target))
            + beta * (seconds(self.delay) - seconds(self.old_delay));
        //= rfc8033: auto-tuning by the size of the probability
        step /= match self.drop {
            drop if drop < 0.000_001 => 2048.0,
            drop if drop < 0.000_01 => 512.0,
            drop if drop < 0.000_1 => 128.0,
            drop if drop < 0.001 => 32.0,
            drop if drop < 0.01 => 8.0,
            drop if drop < 0.1 => 2.0,
            _ => 1.0,
        };
        if self.drop >= 0.1 {
            step = step.min(LARGEST_STEP);
        }
        self.drop += step;
        if self.delay == Span::ZERO && self.old_delay == Span::ZERO {
            self.drop *= 0.98;
        }
        self.drop = self.drop.clamp(0.0, 1.0);
        self.burst = Span(self.burst.0.saturating_sub(update.0));
        if self.is_calm() {
            self.burst = max_burst;
        }
        self.old_delay = self.delay;
    }

    //= rfc8033: random dropping, bursts, de-randomization
    fn chosen(&mut self, room: &Room) -> bool {
        let calm = self.old_delay < Span(self.config.target.0 / 2) && self.drop < 0.2;
        if self.burst > Span::ZERO || calm || room.bytes() <= FEW {
            return false;
        }
        if self.drop == 0.0 {
            self.due = 0.0;
        }
        self.due += self.drop;
        if self.due < TOO_SOON {
            return false;
        }
        let chosen = self.due >= OVERDUE || self.rng.chance(self.drop);
        if chosen {
            self.due = 0.0;
        }
        chosen
    }
}

impl Order for Pie {
    fn check(&self, room: &Room) {
        room.check_packets(self.waiting.iter().map(|(_, waiting)| waiting));
        check_ages(&self.waiting);
        debug_assert!((0.0..=1.0).contains(&self.drop), "probability of a drop: {}", self.drop);
        debug_assert!(self.due >= 0.0 && self.due < OVERDUE, "a drop is overdue: {}", self.due);
        debug_assert!(self.burst <= self.config.max_burst, "allowance of a burst");
        debug_assert!(
            self.delay == Span::ZERO || !self.waiting.is_empty(),
            "delay without packets"
        );
    }

    fn enqueue(&mut self, now: Time, side: Side, waiting: Waiting, room: &mut Room, out: &mut Out) {
        self.catch_up(now);
        if !room.admits(waiting.bytes) {
            self.due = 0.0;
            return waiting.overflow(side, out);
        }
        let Waiting { mut packet, bytes } = waiting;
        if self.chosen(room) {
            //= rfc8033: with a high probability packets are dropped that could be marked
            let mark = self.config.mark && self.drop <= self.config.mark_below;
            match choose(mark, side, packet, out) {
                Some(marked) => packet = marked,
                None => return,
            }
        }
        room.add(bytes);
        self.waiting.push_back((now, Waiting { packet, bytes }));
    }

    fn pass(
        &mut self,
        now: Time,
        _: Side,
        packet: Packet,
        _: &Room,
        _: &mut Out,
    ) -> Option<Packet> {
        // The queue is empty, and below the minimum no packet is chosen.
        self.catch_up(now);
        self.delay = Span::ZERO;
        Some(packet)
    }

    fn dequeue(&mut self, at: Time, _: Side, room: &mut Room, _: &mut Out) -> Option<Waiting> {
        self.catch_up(at);
        let (came, waiting) = self.waiting.pop_front()?;
        room.remove(waiting.bytes);
        self.delay = if room.is_empty() { Span::ZERO } else { at.since(came) };
        Some(waiting)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 8033 section 4.2: the increment is divided by a larger number for a smaller probability.
    #[test]
    fn a_small_chance_grows_slowly() {
        // Each bound belongs to the step above it.
        for (drop, divisor) in [
            (0.0, 2048.0),
            (0.000_000_9, 2048.0),
            (0.000_001, 512.0),
            (0.000_009, 512.0),
            (0.000_01, 128.0),
            (0.000_09, 128.0),
            (0.000_1, 32.0),
            (0.000_9, 32.0),
            (0.001, 8.0),
            (0.009, 8.0),
            (0.01, 2.0),
            (0.09, 2.0),
            (0.1, 1.0),
            (0.5, 1.0),
        ] {
            let config = PieConfig {
                target: Span::millis(15),
                alpha: 0.125,
                beta: 1.25,
                ..PieConfig::default()
            };
            let mut pie = Pie::new(config, Stream::new(1, "pie"));
            (pie.drop, pie.delay, pie.old_delay) = (drop, Span::millis(23), Span::millis(22));
            pie.update();
            // 0.125 of the 8 ms above the target and 1.25 of the delay's growth by a millisecond.
            let step = (0.125 * 0.008 + 1.25 * 0.001) / divisor;
            let grown = pie.drop - drop;
            assert!((grown / step - 1.0).abs() < 1e-6, "{drop}: {grown}, not {step}");
        }
    }

    /// From a tenth on no step exceeds 0.02; an empty queue resets.
    #[test]
    fn a_large_chance_grows_by_a_bounded_step_and_an_empty_queue_forgets() {
        let mut pie = Pie::new(PieConfig::default(), Stream::new(1, "pie"));
        (pie.drop, pie.delay, pie.old_delay) = (0.1, Span::secs(2), Span::ZERO);
        pie.update();
        assert!((pie.drop - 0.12).abs() < 1e-9, "{}", pie.drop);
        (pie.delay, pie.old_delay) = (Span::ZERO, Span::ZERO);
        pie.drop = 0.5;
        pie.update();
        let target = pie.config.target.0 as f64 / 1e9;
        let want = (0.5 - pie.config.alpha * target) * 0.98;
        assert!((pie.drop - want).abs() < 1e-9, "{} and not {want}", pie.drop);
    }

    /// Half the target is 7.5 ms here.
    #[test]
    fn bursts_pass_again_when_nothing_is_dropped_and_the_delay_was_short_twice() {
        let half = Span::micros(7500);
        let less = Span(half.0 - 1);
        for (drop, delay, before, calm) in [
            (0.0, less, less, true),
            (0.0, half, less, false),
            (0.0, less, half, false),
            (1e-9, less, less, false),
        ] {
            let mut pie = Pie::new(PieConfig::default(), Stream::new(1, "pie"));
            (pie.drop, pie.delay, pie.old_delay) = (drop, delay, before);
            assert_eq!(pie.is_calm(), calm, "{drop} {delay:?} {before:?}");
            // Passing time consumes the burst allowance, and restores it in calm periods.
            for (burst, steps, left) in [(100, 1, 85), (100, 6, 10), (100, 7, 0)] {
                pie.burst = Span::millis(burst);
                let next = pie.next_update;
                pie.repeat(steps);
                let left = if calm { 150 } else { left };
                assert_eq!(pie.burst, Span::millis(left), "{steps} steps");
                assert_eq!(pie.next_update, next + Span::millis(15) * steps);
            }
        }
    }

    #[test]
    fn an_idle_controller_rests() {
        let at_rest = || Pie::new(PieConfig::default(), Stream::new(1, "pie"));
        assert!(at_rest().rests());
        let awake: [fn(&mut Pie); 4] = [
            |pie| pie.delay = Span(1),
            |pie| pie.old_delay = Span(1),
            |pie| pie.drop = 1e-9,
            |pie| pie.burst = Span(pie.burst.0 - 1),
        ];
        for (i, change) in awake.into_iter().enumerate() {
            let mut pie = at_rest();
            change(&mut pie);
            assert!(!pie.rests(), "{i}");
        }
        // Updates continue at the next multiple of the interval, also after a long rest.
        for (now, next) in [(14_999, 15_000), (15_000, 30_000), (29_999, 30_000), (90_001, 105_000)]
        {
            let mut pie = at_rest();
            pie.catch_up(Time::ZERO + Span::micros(now));
            assert_eq!(pie.next_update, Time::ZERO + Span::micros(next), "{now}");
        }
    }
}
