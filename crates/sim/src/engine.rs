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
    /// Packets that leave a stage at this instant, when there are several: the stage, the side, the packet.
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
            self.wake(i);
            self.settle(i, sink);
            self.hand_on(i, sink);
            if self.unfinished() == 0 {
                break Reason::Finished;
            }
        };
        self.end(reason, wakes)
    }

    fn unfinished(&self) -> usize {
        self.left.hosts.iter().chain(&self.right.hosts).map(Host::unfinished).sum()
    }

    fn wake(&mut self, i: usize) {
        let now = self.now;
        self.out.begin(StageId(i as u16), now);
        if self.is_path(i) {
            self.path[i - self.first].on_wake(now, &mut self.out);
        } else if i < self.first {
            self.left.hosts[i].on_wake(now, &mut self.out);
        } else {
            self.right.hosts[i - self.last].on_wake(now, &mut self.out);
        }
    }

    /// Hands packets on until none moves at this instant: what stage `i` answered, and all that follows.
    fn hand_on<S: Sink>(&mut self, mut i: usize, sink: &mut S) {
        loop {
            // Nearly always one packet moves; it need not queue.
            let (side, packet) = if self.moving.is_empty() && self.out.sends.len() == 1 {
                match self.out.sends.pop() {
                    Some(only) => only,
                    None => return,
                }
            } else {
                for (side, packet) in self.out.sends.drain(..) {
                    self.moving.push_back((i, side, packet));
                }
                let Some((from, side, packet)) = self.moving.pop_front() else { return };
                i = from;
                (side, packet)
            };
            match self.neighbour(i, side, &packet) {
                Some(next) => {
                    self.arrive(next, side.other(), packet);
                    self.settle(next, sink);
                    i = next;
                }
                None => self.lost(i, side, packet, sink),
            }
        }
    }

    fn arrive(&mut self, i: usize, from: Side, packet: Packet) {
        let now = self.now;
        self.counts[i].arrived += 1;
        self.out.begin(StageId(i as u16), now);
        if i < self.first {
            self.left.hosts[i].on_packet(now, from, packet, &mut self.out);
        } else if i < self.last {
            self.path[i - self.first].on_packet(now, from, packet, &mut self.out);
        } else {
            self.right.hosts[i - self.last].on_packet(now, from, packet, &mut self.out);
        }
    }

    /// Stage `i` has been called: takes its events, counts, passes its signals on, and asks for its next wake.
    /// Its packets stay in `out` for [`Engine::hand_on`].
    fn settle<S: Sink>(&mut self, i: usize, sink: &mut S) {
        if !self.out.events.is_empty() {
            for event in &self.out.events {
                sink.event(event);
            }
            self.out.events.clear();
        }
        let tally = self.out.take_tally();
        let sent = self.out.sends.len() as u64;
        let count = &mut self.counts[i];
        count.originated += tally.originated;
        count.ended += tally.discarded;
        count.departed += sent;
        if self.is_path(i) && self.path[i - self.first].is_hop() {
            self.hops += sent;
        }
        if !self.out.signals.is_empty() {
            self.pass_signals(i, sink);
        }
        self.rest(i);
    }

    /// Signals travel the path hop by hop, after the packets that were sent before them.
    fn pass_signals<S: Sink>(&mut self, i: usize, sink: &mut S) {
        for (side, packet) in self.out.sends.drain(..) {
            self.moving.push_back((i, side, packet));
        }
        for (side, signal) in core::mem::take(&mut self.out.signals) {
            let next = match side {
                Side::Left => i.checked_sub(1),
                Side::Right => Some(i + 1),
            };
            if let Some(next) = next.filter(|n| self.is_path(*n)) {
                self.out.begin(StageId(next as u16), self.now);
                let machine = &mut self.path[next - self.first];
                machine.on_signal(self.now, side.other(), signal, &mut self.out);
                self.settle(next, sink);
                for (side, packet) in self.out.sends.drain(..) {
                    self.moving.push_back((next, side, packet));
                }
            }
        }
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
        // A host takes in whatever arrives.
        for i in (0..self.counts.len()).filter(|i| !(self.first..self.last).contains(i)) {
            self.counts[i].ended = self.counts[i].arrived;
        }
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
