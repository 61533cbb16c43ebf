//! The run loop: wake, drain, hand on.

use std::collections::VecDeque;

use lasthop_proto::event::{Cause, Event, Op, Wants, What};
use lasthop_proto::machine::{Machine, Out, Side, StageId};
use lasthop_proto::tcp::Host;
use lasthop_proto::units::Time;
use lasthop_proto::wake::WakeTree;
use lasthop_proto::wire::Packet;
use lasthop_scenario::Scenario;
use lasthop_trace::Sink;

use crate::build::{End, Mid, ends, stage};
use crate::end::{Reason, RunEnd, StageCount, TransferEnd};

/// Wakes without progress of time after which a machine is at fault.
const STUCK: u32 = 1_000_000;

pub(crate) struct Engine<'a> {
    scenario: &'a Scenario,
    left: End,
    path: Vec<Mid>,
    right: End,
    /// Index of the first path stage, and of the first right host.
    first: usize,
    last: usize,
    counts: Vec<StageCount>,
    wakes: WakeTree,
    out: Out,
    /// Packets on their way to a neighbour, at this instant: the stage, the side they arrive from, the packet.
    moving: VecDeque<(usize, Side, Packet)>,
    now: Time,
    hops: u64,
    agent_state: Vec<u64>,
}

impl<'a> Engine<'a> {
    pub(crate) fn new(scenario: &'a Scenario, seed: u64, wants: Wants) -> Engine<'a> {
        let [left, right] = ends(scenario, seed);
        let path: Vec<Mid> = scenario.path.iter().map(|s| stage(s, seed)).collect();
        let first = left.hosts.len();
        let last = first + path.len();
        let total = last + right.hosts.len();
        let mut engine = Engine {
            scenario,
            left,
            right,
            first,
            last,
            counts: vec![StageCount::default(); total],
            wakes: WakeTree::new(total),
            out: Out::new(wants),
            moving: VecDeque::new(),
            now: Time::ZERO,
            hops: 0,
            agent_state: vec![0; path.len()],
            path,
        };
        for i in 0..total {
            engine.rest(i);
        }
        engine
    }

    fn host(&mut self, i: usize) -> &mut Host {
        if i < self.first { &mut self.left.hosts[i] } else { &mut self.right.hosts[i - self.last] }
    }

    fn is_path(&self, i: usize) -> bool {
        (self.first..self.last).contains(&i)
    }

    pub(crate) fn run<S: Sink>(mut self, sink: &mut S) -> RunEnd {
        let horizon = Time::ZERO + self.scenario.horizon;
        let (mut wakes, mut standing) = (0u64, 0u32);
        let reason = loop {
            let Some((at, i)) = self.wakes.first() else { break Reason::Idle };
            if at > horizon {
                self.now = horizon;
                break Reason::Horizon;
            }
            if at > self.now {
                self.now = at;
                standing = 0;
            } else {
                standing += 1;
                if standing > STUCK {
                    break Reason::Stuck;
                }
            }
            wakes += 1;
            self.wake(i, sink);
            if !self.is_path(i) || !self.moving.is_empty() {
                self.hand_on(sink);
            }
            if self.unfinished() == 0 {
                break Reason::Finished;
            }
        };
        self.end(reason, wakes)
    }

    fn unfinished(&self) -> usize {
        self.left.hosts.iter().chain(&self.right.hosts).map(Host::unfinished).sum()
    }

    fn wake<S: Sink>(&mut self, i: usize, sink: &mut S) {
        let now = self.now;
        self.out.begin(StageId(i as u16), now);
        if self.is_path(i) {
            self.path[i - self.first].on_wake(now, &mut self.out);
        } else if i < self.first {
            self.left.hosts[i].on_wake(now, &mut self.out);
        } else {
            self.right.hosts[i - self.last].on_wake(now, &mut self.out);
        }
        self.drain(i, sink);
    }

    /// Hands packets on until none moves at this instant.
    fn hand_on<S: Sink>(&mut self, sink: &mut S) {
        while let Some((i, from, packet)) = self.moving.pop_front() {
            let now = self.now;
            self.counts[i].arrived += 1;
            self.out.begin(StageId(i as u16), now);
            if self.is_path(i) {
                self.path[i - self.first].on_packet(now, from, packet, &mut self.out);
            } else {
                self.host(i);
                let host = if i < self.first {
                    &mut self.left.hosts[i]
                } else {
                    &mut self.right.hosts[i - self.last]
                };
                host.on_packet(now, from, packet, &mut self.out);
                self.counts[i].ended += 1;
            }
            self.drain(i, sink);
        }
    }

    /// Takes what stage `i` answered.
    fn drain<S: Sink>(&mut self, i: usize, sink: &mut S) {
        for event in &self.out.events {
            sink.event(event);
        }
        self.out.events.clear();
        let tally = self.out.take_tally();
        let count = &mut self.counts[i];
        count.originated += tally.originated;
        if (self.first..self.last).contains(&i) {
            count.ended += tally.discarded;
            if self.path[i - self.first].is_hop() {
                self.hops += self.out.sends.len() as u64;
            }
        }
        count.departed += self.out.sends.len() as u64;
        if !self.out.sends.is_empty() {
            let mut sends = core::mem::take(&mut self.out.sends);
            for (side, packet) in sends.drain(..) {
                match self.neighbour(i, side, &packet) {
                    Some(next) => self.moving.push_back((next, side.other(), packet)),
                    None => self.lost(i, side, packet, sink),
                }
            }
            self.out.sends = sends;
        }
        while let Some((side, signal)) = self.out.signals.pop() {
            let next = match side {
                Side::Left => i.checked_sub(1),
                Side::Right => Some(i + 1),
            };
            if let Some(next) = next.filter(|n| self.is_path(*n)) {
                self.out.begin(StageId(next as u16), self.now);
                self.path[next - self.first].on_signal(
                    self.now,
                    side.other(),
                    signal,
                    &mut self.out,
                );
                // Signals that a signal causes travel on from there.
                self.drain(next, sink);
            }
        }
        self.rest(i);
    }

    /// The stage that a packet leaving stage `i` to `side` arrives at. At the ends the address decides.
    fn neighbour(&self, i: usize, side: Side, packet: &Packet) -> Option<usize> {
        let find = |hosts: &[Host], base: usize| match hosts {
            [only] => (only.addr() == packet.dst).then_some(base),
            _ => hosts.iter().position(|h| h.addr() == packet.dst).map(|n| n + base),
        };
        match side {
            Side::Right if i < self.first => Some(self.first),
            Side::Right if i + 1 < self.last => Some(i + 1),
            Side::Right => find(&self.right.hosts, self.last),
            Side::Left if i >= self.last => Some(self.last - 1),
            Side::Left if i > self.first => Some(i - 1),
            Side::Left => find(&self.left.hosts, 0),
        }
    }

    /// No host has the packet's address: the last stage it passed drops it.
    fn lost<S: Sink>(&mut self, i: usize, side: Side, packet: Packet, sink: &mut S) {
        let what = What::Packet { op: Op::Dropped(Cause::NoSuchConnection), side, packet };
        sink.event(&Event { at: self.now, stage: StageId(i as u16), what });
    }

    /// Stage `i` has been called; when does it want to be called again?
    fn rest(&mut self, i: usize) {
        let at = if self.is_path(i) {
            self.path[i - self.first].next_wake()
        } else {
            self.host(i).next_wake()
        };
        self.wakes.set(i, at);
    }

    fn end(mut self, reason: Reason, wakes: u64) -> RunEnd {
        for (i, mid) in self.path.iter().enumerate() {
            self.counts[self.first + i].held = mid.holds() as u64;
            if let Mid::Agent(agent) = mid {
                self.agent_state[i] = agent.peak_state_bytes() as u64;
            }
        }
        let agent_state = self.path.iter().enumerate().filter(|(_, m)| matches!(m, Mid::Agent(_)));
        RunEnd {
            at: self.now,
            reason,
            hops: self.hops,
            wakes,
            transfers: self.transfers(),
            agent_state: agent_state
                .map(|(i, _)| (StageId((self.first + i) as u16), self.agent_state[i]))
                .collect(),
            stages: self
                .counts
                .iter()
                .enumerate()
                .map(|(i, count)| (StageId(i as u16), *count))
                .collect(),
        }
    }

    fn transfers(&self) -> Vec<TransferEnd> {
        let host = |index: usize| {
            [&self.left, &self.right].into_iter().find_map(|end| {
                end.indices.iter().position(|i| *i == index).map(|n| &end.hosts[n])
            })
        };
        let mut used = vec![0; self.scenario.hosts.len()];
        let mut ends = Vec::new();
        for transfer in &self.scenario.transfers {
            for _ in 0..transfer.count {
                let (Some(from), Some(to)) = (host(transfer.from), host(transfer.to)) else {
                    continue;
                };
                let nth = used[transfer.from];
                used[transfer.from] += 1;
                let Some(sender) = from.opened().nth(nth) else { continue };
                let receiver = to.connection(sender.flow.reversed());
                ends.push(TransferEnd {
                    wanted: transfer.bytes,
                    delivered: receiver.map_or(0, |c| c.delivered()),
                    acknowledged: sender.acknowledged(),
                    complete: sender.is_complete(),
                    aborted: sender.is_aborted(),
                });
            }
        }
        ends
    }
}
