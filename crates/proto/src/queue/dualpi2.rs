//! DualPI2, two queues with coupled marks (RFC 9332). Scalable senders, which react to each mark slightly,
//! have almost no queueing delay next to classic senders, which halve their window. Neither class takes the
//! other's share.
//!
//! Packets with ECT(1), and those already marked with CE, enter the low-latency queue (L), all others the
//! classic one (C). Every `update` a probability follows the delay, as in PIE but without its steps: `p`
//! grows with the distance of the longer delay from `target`, and with the growth of that delay. Classic
//! packets are marked or dropped with `p^2`. The others are marked with `coupling * p`, or by their own
//! queue's ramp if that is more: never below `step - ramp / 2`, always above `step + ramp / 2`. Classic
//! windows are proportional to 1 / sqrt(p) and the others to 1 / p, so both get the same rate.
//!
//! When `coupling * p` reaches 1, marks have no further effect: packets of both queues are dropped with
//! `p^2`. All other packets of the L queue are marked, and none of the C queue.
//!
//! The scheduler prefers L, but while both wait, C has the share `classic-share` of the bytes (the weighted
//! scheduler of RFC 9332 section 2.5.1.1, as in Linux). Choices follow from sums, not from random draws, as
//! in the RFC's pseudo-code (`recur`). Values are those of its appendix A; Linux has no ramp, an update every
//! 16 ms and larger gains.

use std::collections::VecDeque;

use serde::Serialize;

use super::codel::check_ages;
use super::{Discipline, Order, Read, Room, Waiting};
use crate::describe::{Descriptor, Keys, Kind, System};
use crate::event::{Cause, Op};
use crate::machine::{Out, Side};
use crate::units::{Probability, Span, Time};
use crate::wire::{CE, ECT1, Packet};

pub(super) const WORDS: &[Descriptor<Read>] = &[Descriptor {
    word: "dualpi2",
    system: System::new(
        Kind::Queue,
        "dualpi2",
        "path: discipline = \"dualpi2\"",
        "two queues with coupled marks: L4S traffic waits for about 1 ms, classic traffic for about 15 ms",
        "RFC 9332",
    )
    .tier(0),
    read: |k, _| Discipline::DualPi2(DualPi2Config::keys(k)),
}];

/// Largest packet, bytes: the initial credit of the scheduler.
const MTU: f64 = 1500.0;

/// Control of both delays.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct DualPi2Config {
    /// Target delay of the classic queue.
    pub target: Span,
    /// Interval of updates of the probability.
    pub update: Span,
    /// Gain of the distance from the target, per second.
    pub alpha: f64,
    /// Gain of the growth of the delay, per second.
    pub beta: f64,
    /// Factor of the probability for the L queue.
    pub coupling: f64,
    /// Delay of the L queue at the middle of its ramp.
    pub step: Span,
    /// Width of the ramp from no marks to all marks.
    pub ramp: Span,
    /// Share of the classic queue while both have packets.
    pub classic_share: f64,
}

impl Default for DualPi2Config {
    //= rfc9332#section-a.1: with round trips of 100 ms at most: alpha = 0.1 Tupdate / RTT_max^2, beta = 0.3 / RTT_max
    fn default() -> DualPi2Config {
        DualPi2Config {
            target: Span::millis(15),
            update: Span::millis(15),
            alpha: 0.15,
            beta: 3.0,
            coupling: 2.0,
            step: Span::millis(1),
            ramp: Span::micros(400),
            classic_share: 0.1,
        }
    }
}

impl DualPi2Config {
    /// Reads the keys.
    pub fn keys(k: &mut Keys<'_>) -> DualPi2Config {
        let mut c = DualPi2Config::default();
        let mut share = Probability::nearest(c.classic_share);
        k.table("dualpi2", "options of the two coupled queues", |k| {
            let delays = Span::micros(1)..=Span::secs(60);
            let doc = "the target delay of the classic queue";
            k.within("target", &mut c.target, delays.clone(), doc);
            let doc = "the interval of updates of the probability";
            k.within("update", &mut c.update, Span::micros(100)..=Span::secs(60), doc);
            let doc = "the gain of the distance from the target, per second";
            k.within("alpha", &mut c.alpha, 0.0..=1000.0, doc);
            let doc = "the gain of the growth of the delay, per second";
            k.within("beta", &mut c.beta, 0.0..=1000.0, doc);
            let doc =
                "the marking probability of L4S packets over the square root of the classic one";
            k.within("coupling", &mut c.coupling, 0.1..=100.0, doc);
            let doc = "the delay of the L4S queue at the middle of its own ramp of marks";
            k.within("step", &mut c.step, delays, doc);
            let doc = "the width of the ramp from no marks to all marks; 0 is a step";
            k.within("ramp", &mut c.ramp, Span::ZERO..=Span::secs(60), doc);
            let doc = "the classic queue's share of the rate while both have packets";
            k.probability("classic-share", &mut share, doc);
        });
        c.classic_share = share.get();
        c
    }

    /// Probability of a mark for a delay of the L queue.
    //= rfc9332#section-a.1: laqm: a ramp from minTh to maxTh
    fn own(&self, delay: Span) -> f64 {
        let least = self.step.0.saturating_sub(self.ramp.0 / 2);
        match delay.0 {
            d if d <= least => 0.0,
            d if d - least >= self.ramp.0 => 1.0,
            d => (d - least) as f64 / self.ramp.0 as f64,
        }
    }
}

/// Waiting packets, with the accumulated probability.
#[derive(Clone, Debug, Default)]
struct Half {
    waiting: VecDeque<(Time, Waiting)>,
    marks: f64,
    drops: f64,
}

impl Half {
    /// Waiting time of the oldest packet.
    fn delay(&self, now: Time) -> Span {
        self.waiting.front().map_or(Span::ZERO, |(came, _)| now.since(*came))
    }
}

/// Whether a mark is due, if each packet adds `p`.
//= rfc9332#section-a.1: recur: a sum that gives one whenever it exceeds 1
fn recurs(sum: &mut f64, p: f64) -> bool {
    *sum += p;
    let due = *sum > 1.0;
    if due {
        *sum -= 1.0;
    }
    due
}

/// Two queues.
#[derive(Clone, Debug)]
pub struct DualPi2 {
    config: DualPi2Config,
    low: Half,
    classic: Half,
    /// The base probability of both queues.
    base: f64,
    old_delay: Span,
    next_update: Time,
    /// Credit in weighted bytes: above zero the classic queue is next.
    credit: f64,
}

impl DualPi2 {
    /// Empty queues.
    pub fn new(config: DualPi2Config) -> DualPi2 {
        let mut new = DualPi2 {
            config,
            low: Half::default(),
            classic: Half::default(),
            base: 0.0,
            old_delay: Span::ZERO,
            next_update: Time::ZERO + config.update,
            credit: 0.0,
        };
        new.forget();
        new
    }

    /// Resets the scheduler for two empty queues: the L queue is next.
    fn forget(&mut self) {
        self.credit = MTU * (2.0 * self.config.classic_share - 1.0);
    }

    /// Runs all updates up to `now`.
    fn catch_up(&mut self, now: Time) {
        while self.next_update <= now {
            let at = self.next_update;
            let delay = self.low.delay(at).max(self.classic.delay(at));
            if self.base == 0.0 && delay == Span::ZERO && self.old_delay == Span::ZERO {
                // No further change until a packet arrives.
                let empty = self.low.waiting.is_empty() && self.classic.waiting.is_empty();
                let steps = if empty { now.since(at).0 / self.config.update.0.max(1) } else { 0 };
                self.next_update += self.config.update * (steps + 1);
                continue;
            }
            self.update(delay);
            self.next_update += self.config.update;
        }
    }

    //= rfc9332#section-a.2: dualpi2_update goes by the longer one of both delays
    fn update(&mut self, delay: Span) {
        let DualPi2Config { target, alpha, beta, .. } = self.config;
        let seconds = |span: Span| span.0 as f64 / 1e9;
        let step = alpha * (seconds(delay) - seconds(target))
            + beta * (seconds(delay) - seconds(self.old_delay));
        self.base = (self.base + step).clamp(0.0, 1.0);
        self.old_delay = delay;
    }

    /// Whether marks alone have no further effect.
    //= rfc9332#section-a.2: p_CL has come to p_Lmax, which is 1
    fn is_overloaded(&self) -> bool {
        self.config.coupling * self.base >= 1.0
    }

    /// Handles a packet that leaves after `delay`: marked, unchanged, or dropped.
    //= rfc9332#section-a.2: dualpi2_dequeue
    fn judge(&mut self, side: Side, packet: Packet, delay: Span, out: &mut Out) -> Option<Packet> {
        let (squared, overloaded) = (self.base * self.base, self.is_overloaded());
        if is_low(&packet) {
            if overloaded {
                if recurs(&mut self.low.drops, squared) {
                    out.discard(side, packet, Cause::OverloadDrop);
                    return None;
                }
                return Some(mark(side, packet, Cause::OverloadMark, out));
            }
            //= rfc9332#section-a.1: what is alone in its queue is not marked for the delay
            let alone = self.low.waiting.is_empty();
            let own = if alone { 0.0 } else { self.config.own(delay) };
            let coupled = self.config.coupling * self.base;
            let cause = if own >= coupled { Cause::StepMark } else { Cause::CoupledMark };
            let due = recurs(&mut self.low.marks, own.max(coupled));
            return Some(if due { mark(side, packet, cause, out) } else { packet });
        }
        if !recurs(&mut self.classic.drops, squared) {
            return Some(packet);
        }
        if packet.is_ecn_capable() && !overloaded {
            return Some(mark(side, packet, Cause::ClassicMark, out));
        }
        let cause = if overloaded { Cause::OverloadDrop } else { Cause::ClassicDrop };
        out.discard(side, packet, cause);
        None
    }
}

/// Whether a packet belongs to the L queue.
//= rfc9331#section-5.1: ECT(1), and CE, whatever it was before
fn is_low(packet: &Packet) -> bool {
    packet.tos & ECT1 == ECT1
}

fn mark(side: Side, mut packet: Packet, cause: Cause, out: &mut Out) -> Packet {
    if !packet.is_marked() {
        packet.tos |= CE;
        out.packet_event(Op::MarkedBy(cause), side, &packet);
    }
    packet
}

impl Order for DualPi2 {
    fn check(&self, room: &Room) {
        let halves = [&self.low, &self.classic];
        let packets = halves.iter().map(|half| half.waiting.len()).sum::<usize>();
        debug_assert_eq!(packets, room.len(), "packets of both queues");
        for half in halves {
            check_ages(&half.waiting);
            debug_assert!(half.marks.is_finite() && half.marks >= 0.0, "marks: {}", half.marks);
            debug_assert!(half.drops.is_finite() && half.drops >= 0.0, "drops: {}", half.drops);
        }
        debug_assert!((0.0..=1.0).contains(&self.base), "base probability: {}", self.base);
        debug_assert!(self.credit.is_finite(), "credit of the scheduler: {}", self.credit);
    }

    fn enqueue(&mut self, now: Time, side: Side, waiting: Waiting, room: &mut Room, out: &mut Out) {
        self.catch_up(now);
        if !room.admits(waiting.bytes) {
            return waiting.overflow(side, out);
        }
        room.add(waiting.bytes);
        let half = if is_low(&waiting.packet) { &mut self.low } else { &mut self.classic };
        half.waiting.push_back((now, waiting));
    }

    fn pass(
        &mut self,
        now: Time,
        side: Side,
        packet: Packet,
        _: &Room,
        out: &mut Out,
    ) -> Option<Packet> {
        self.catch_up(now);
        self.judge(side, packet, Span::ZERO, out)
    }

    fn dequeue(&mut self, at: Time, side: Side, room: &mut Room, out: &mut Out) -> Option<Waiting> {
        self.catch_up(at);
        let share = self.config.classic_share;
        loop {
            let [low, classic] = [&self.low, &self.classic].map(|half| !half.waiting.is_empty());
            let first = low && (!classic || self.credit <= 0.0);
            let half = if first { &mut self.low } else { &mut self.classic };
            let Some((came, Waiting { packet, bytes })) = half.waiting.pop_front() else {
                self.forget();
                return None;
            };
            room.remove(bytes);
            if let Some(packet) = self.judge(side, packet, at.since(came), out) {
                if low && classic {
                    self.credit += f64::from(bytes) * if first { share } else { share - 1.0 };
                }
                return Some(Waiting { packet, bytes });
            }
        }
    }

    fn judges_leaving(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue() -> DualPi2 {
        DualPi2::new(DualPi2Config::default())
    }

    #[test]
    fn own_marks_go_up_a_ramp_about_the_step() {
        let ramp = DualPi2Config::default();
        let step = DualPi2Config { ramp: Span::ZERO, ..ramp };
        let wide = DualPi2Config { ramp: Span::millis(4), ..ramp };
        let cases = [
            (ramp, 0, 0.0),
            (ramp, 800_000, 0.0),
            (ramp, 900_000, 0.25),
            (ramp, 1_000_000, 0.5),
            (ramp, 1_100_000, 0.75),
            (ramp, 1_200_000, 1.0),
            (ramp, 9_000_000, 1.0),
            (step, 1_000_000, 0.0),
            (step, 1_000_001, 1.0),
            // No waiting time is below zero.
            (wide, 0, 0.0),
            (wide, 1_000_000, 0.25),
            (wide, 4_000_000, 1.0),
        ];
        for (config, delay, p) in cases {
            assert_eq!(config.own(Span(delay)), p, "{delay} ns of {:?}", config.ramp);
        }
    }

    //= rfc9332#section-a.1: recur: one whenever the sum exceeds 1
    #[test]
    fn marks_recur_when_their_sum_exceeds_one() {
        let mut sum = 0.0;
        let due: Vec<bool> = (0..9).map(|_| recurs(&mut sum, 0.5)).collect();
        assert_eq!(due, [false, false, true, false, true, false, true, false, true]);
        assert_eq!(sum, 0.5);
        assert!(!recurs(&mut sum, 0.5) && sum == 1.0);
        assert!(!recurs(&mut sum, 0.0), "1 does not exceed 1");
    }

    //= rfc9332#section-a.2: p' += alpha * (curq - target) + beta * (curq - prevq), from 0 to 1
    #[test]
    fn the_probability_goes_by_the_delay_and_its_growth() {
        let mut queue = queue();
        for (millis, p) in [(15, 0.045), (25, 0.0765), (25, 0.078), (20, 0.06375), (0, 0.0015)] {
            queue.update(Span::millis(millis));
            assert!((queue.base - p).abs() < 1e-9, "{millis} ms: {}", queue.base);
        }
        queue.update(Span::ZERO);
        assert_eq!(queue.base, 0.0, "never below nothing");
        queue.update(Span::secs(1));
        assert_eq!(queue.base, 1.0, "never above everything");
    }

    #[test]
    fn the_probability_is_brought_up_to_date_at_each_interval() {
        let mut queue = queue();
        for (now, next) in [(0, 15), (14, 15), (15, 30), (29, 30), (100, 105), (105, 120)] {
            queue.catch_up(Time::ZERO + Span::millis(now));
            assert_eq!(queue.next_update, Time::ZERO + Span::millis(next), "at {now} ms");
        }
        // A remaining probability decreases with each interval of silence: alpha times target.
        queue.base = 0.01;
        queue.catch_up(Time::ZERO + Span::millis(149));
        assert!((queue.base - (0.01 - 2.0 * 0.00225)).abs() < 1e-9, "{}", queue.base);
    }

    #[test]
    fn overload_begins_where_coupled_marks_are_certain() {
        for (coupling, base, overloaded) in
            [(2.0, 0.499, false), (2.0, 0.5, true), (2.0, 1.0, true), (1.0, 0.5, false)]
        {
            let mut queue = DualPi2::new(DualPi2Config { coupling, ..DualPi2Config::default() });
            queue.base = base;
            assert_eq!(queue.is_overloaded(), overloaded, "{coupling} times {base}");
        }
    }

    #[test]
    fn a_scheduler_that_was_idle_begins_with_the_share_of_each() {
        for (classic_share, credit) in [(0.0, -1500.0), (0.25, -750.0), (0.5, 0.0), (1.0, 1500.0)] {
            let config = DualPi2Config { classic_share, ..DualPi2Config::default() };
            assert_eq!(DualPi2::new(config).credit, credit, "{classic_share}");
        }
    }
}
