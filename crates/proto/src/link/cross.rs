//! A router shared with cross traffic: it drops some packets, at random or by a script, and delays the
//! others.

use std::collections::VecDeque;

use serde::Serialize;

use crate::event::{Cause, Op};
use crate::machine::{Machine, Out, Side};
use crate::rng::Stream;
use crate::units::{Probability, Span, Time};
use crate::wire::{Damage, Flags, Packet, Transport};

use super::transmitter::Pipe;
use crate::fates::{Fate, Fates, Silence};

/// Effects of cross traffic.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct CrossTraffic {
    /// Probability that a packet with data is dropped.
    pub loss: Probability,
    /// Maximum extra delay; each packet draws uniformly below it, and the order is preserved.
    pub jitter: Span,
    /// Ordinals of data packets that are also dropped; the first one from either side is 1.
    #[serde(skip_serializing_if = "Ordinals::is_empty")]
    pub drop_data: Ordinals,
    /// Ordinals of TCP segments without data and without SYN that are dropped, counted for each side in the
    /// same way.
    #[serde(skip_serializing_if = "Ordinals::is_empty")]
    pub drop_acks: Ordinals,
    /// Scripted fates of packets, by ordinals over both directions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fates: Option<Box<Fates>>,
}

/// A set of ordinals from 1 on: ranges in ascending order.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Ordinals(Vec<(u64, u64)>);

/// Limit of ranges in a script.
const RANGES_MAX: usize = 1 << 16;

impl Ordinals {
    /// Parses ordinals such as `3, 8-10`, ascending. `None` if `text` is invalid.
    pub fn parse(text: &str) -> Option<Ordinals> {
        let mut ranges: Vec<(u64, u64)> = Vec::new();
        for part in text.split(',').filter(|_| !text.trim().is_empty()) {
            let (from, to) = part.split_once('-').unwrap_or((part, part));
            let (from, to) = (from.trim().parse().ok()?, to.trim().parse().ok()?);
            let above = ranges.last().map_or(0, |last| last.1);
            if from <= above || to < from || ranges.len() >= RANGES_MAX {
                return None;
            }
            ranges.push((from, to));
        }
        Some(Ordinals(ranges))
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether `place` is in the set.
    pub fn has(&self, place: u64) -> bool {
        let i = self.0.partition_point(|(_, to)| *to < place);
        self.0.get(i).is_some_and(|(from, _)| *from <= place)
    }
}

/// The router.
#[derive(Clone, Debug)]
pub struct Cross {
    config: CrossTraffic,
    rng: Stream,
    pipes: [Pipe; 2],
    /// Number of data packets and of others towards each side.
    seen: [[u64; 2]; 2],
    /// Of a router with fates.
    choices: Option<Box<Choices>>,
}

/// Packets before their fates, and delayed packets. Each deadline decides one packet, so that a run can be
/// copied before each decision.
#[derive(Clone, Debug, Default)]
struct Choices {
    /// With arrival time and direction.
    undecided: VecDeque<(Time, Side, Packet)>,
    /// Number of decided packets.
    decided: u64,
    /// Indexed by direction.
    late: [Pipe; 2],
    /// Silence that has begun.
    silence: Quiet,
}

/// Silence at a router.
#[derive(Clone, Debug)]
struct Quiet {
    /// Indexed by direction: until when all packets are lost.
    until: [Time; 2],
    /// Indexed by direction: whether windows are closed.
    closed: [bool; 2],
    /// MTU, bytes.
    mtu: u32,
    /// Packets lost by it.
    lost: u64,
}

impl Default for Quiet {
    fn default() -> Quiet {
        Quiet { until: [Time::ZERO; 2], closed: [false; 2], mtu: u32::MAX, lost: 0 }
    }
}

impl Quiet {
    /// Begins `silence` with a packet towards `side`.
    fn begin(&mut self, now: Time, side: Side, silence: Silence) {
        match silence {
            Silence::OneWay => self.until[side.index()] = Time::NEVER,
            Silence::Closed => self.closed[side.index()] = true,
            Silence::Narrow => self.mtu = Silence::NARROW,
            _ => {
                let end = silence.span().map_or(now, |span| now + span);
                self.until = self.until.map(|until| until.max(end));
            }
        }
    }

    /// Applies the silence to a packet towards `side`. Returns false if the packet is lost.
    fn admits(&mut self, now: Time, side: Side, packet: &mut Packet) -> bool {
        let lost = now < self.until[side.index()] || packet.wire_len() > self.mtu;
        self.lost += u64::from(lost);
        if self.closed[side.index()]
            && let Transport::Tcp(segment) = &mut packet.transport
        {
            segment.window = 0;
        }
        !lost
    }
}

impl Cross {
    /// An empty router with draws from `rng`.
    pub fn new(config: CrossTraffic, rng: Stream) -> Cross {
        let choices = config.fates.is_some().then(Box::default);
        Cross { config, rng, pipes: Default::default(), seen: [[0; 2]; 2], choices }
    }

    /// How many packets have met their fate; `None` for a router without fates.
    pub fn decided(&self) -> Option<u64> {
        self.choices.as_ref().map(|choices| choices.decided)
    }

    /// Number of packets that silence has lost.
    pub fn lost_in_silence(&self) -> u64 {
        self.choices.as_ref().map_or(0, |choices| choices.silence.lost)
    }

    /// Sets the fate of the packet with ordinal `place`, if the router has fates.
    pub fn set_fate(&mut self, place: u64, fate: Fate) {
        if let Some(fates) = &mut self.config.fates {
            fates.set(place, fate);
        }
    }

    /// Applies the fate of the next waiting packet.
    fn meet_fate(&mut self, now: Time, out: &mut Out) {
        let (Some(choices), Some(fates)) = (&mut self.choices, &self.config.fates) else { return };
        let Some((_, side, mut packet)) = choices.undecided.pop_front() else { return };
        choices.decided += 1;
        let fate = fates.at(choices.decided);
        if let Fate::Silent(silence) = fate {
            choices.silence.begin(now, side, silence);
        }
        if !choices.silence.admits(now, side, &mut packet) {
            return out.discard(side, packet, Cause::CrossTraffic);
        }
        let (late, very_late) = (now + fates.late, now + fates.very_late);
        let at = match fate {
            Fate::Delivered | Fate::Silent(_) => return self.pass(now, side, packet, out),
            Fate::Dropped => return out.discard(side, packet, Cause::CrossTraffic),
            Fate::Duplicated => {
                let mut copy = out.copy(&packet);
                out.introduce(side, &mut copy, Cause::LineDuplicate);
                self.pass(now, side, packet, out);
                return self.pass(now, side, copy, out);
            }
            Fate::Damaged => {
                packet.damage = Damage::Tcp;
                out.packet_event(Op::Damaged, side, &packet);
                return self.pass(now, side, packet, out);
            }
            Fate::Followed(forgery) => {
                let forged = forgery.segment_after(&packet);
                self.pass(now, side, packet, out);
                let Some(mut forged) = forged else { return };
                out.introduce(side, &mut forged, Cause::Forged);
                return self.pass(now, side, forged, out);
            }
            Fate::Late => late,
            Fate::VeryLate => very_late,
        };
        choices.late[side.index()].insert(at, packet);
    }

    /// Drops the packet, or forwards it after a delay.
    fn pass(&mut self, now: Time, side: Side, packet: Packet, out: &mut Out) {
        let named = self.is_named(side, &packet);
        if named || packet.bears_data() && self.rng.chance(self.config.loss.get()) {
            out.discard(side, packet, Cause::CrossTraffic);
            return;
        }
        let delay = Span(self.rng.below(self.config.jitter.0 + 1));
        let pipe = &mut self.pipes[side.index()];
        pipe.push(pipe.in_order(now + delay), packet);
    }

    /// Whether the script drops this packet, the next one towards `side`.
    fn is_named(&mut self, side: Side, packet: &Packet) -> bool {
        let row = match packet.segment() {
            Some(_) if packet.is_data() => 0,
            Some(segment) if !segment.flags.has(Flags::SYN) => 1,
            None if packet.bears_data() => 0,
            _ => return false,
        };
        let seen = &mut self.seen[side.index()][row];
        *seen += 1;
        [&self.config.drop_data, &self.config.drop_acks][row].has(*seen)
    }
}

impl Machine for Cross {
    fn check(&self) {
        self.pipes.iter().for_each(Pipe::check);
        let Some(choices) = &self.choices else { return };
        choices.late.iter().for_each(Pipe::check);
        debug_assert!(
            choices.undecided.iter().take(4).map(|(at, ..)| *at).is_sorted(),
            "packets wait for their fate in the order of arrival"
        );
    }

    fn on_packet(&mut self, now: Time, from: Side, packet: Packet, out: &mut Out) {
        let side = from.other();
        match &mut self.choices {
            Some(choices) => choices.undecided.push_back((now, side, packet)),
            None => self.pass(now, side, packet, out),
        }
    }

    fn on_wake(&mut self, now: Time, out: &mut Out) {
        self.meet_fate(now, out);
        for side in Side::BOTH {
            while let Some(packet) = self.pipes[side.index()].take(now) {
                out.send(side, packet);
            }
            let Some(choices) = &mut self.choices else { continue };
            while let Some(packet) = choices.late[side.index()].take(now) {
                out.packet_event(Op::Redirected(Cause::Reordered), side, &packet);
                out.send(side, packet);
            }
        }
    }

    fn next_wake(&self) -> Option<Time> {
        let next = self.pipes[0].next().min(self.pipes[1].next());
        let Some(choices) = &self.choices else { return next.or_none() };
        let undecided = choices.undecided.front().map_or(Time::NEVER, |(at, ..)| *at);
        next.min(choices.late[0].next()).min(choices.late[1].next()).min(undecided).or_none()
    }

    fn holds(&self) -> usize {
        let (undecided, late) =
            self.choices.as_ref().map_or((0, &[][..]), |c| (c.undecided.len(), &c.late[..]));
        self.pipes.iter().chain(late).map(Pipe::len).sum::<usize>() + undecided
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read_in_ascending_order() {
        let read = Ordinals::parse("3, 8-10,12").unwrap();
        let named: Vec<u64> = (0..20).filter(|place| read.has(*place)).collect();
        assert_eq!(named, [3, 8, 9, 10, 12]);
        assert!(Ordinals::parse("").unwrap().is_empty());
        for wrong in ["0", "3,3", "4-2", "5,4", "x", "1,,2", "-1"] {
            assert_eq!(Ordinals::parse(wrong), None, "{wrong}");
        }
    }
}
