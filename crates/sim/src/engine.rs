//! The run loop: wake, settle, hand on.

use std::collections::VecDeque;

use lasthop_proto::event::{Cause, Event, Op, Wants, What};
use lasthop_proto::machine::{Machine, Out, Side, StageId};
use lasthop_proto::units::Time;
use lasthop_proto::wake::WakeTree;
use lasthop_proto::wire::Packet;
use lasthop_scenario::Scenario;
use lasthop_trace::Sink;

use crate::build::{Built, Stage};
use crate::end::{Reason, RunEnd, StageCount, TransferEnd};

/// Wakes without progress of time after which a machine is at fault.
const STUCK: u32 = 1_000_000;

pub(crate) struct Engine<'a> {
    scenario: &'a Scenario,
    /// Left hosts, the path, right hosts.
    stages: Vec<Stage>,
    /// Index of the first path stage, and of the first right host.
    first: usize,
    last: usize,
    /// The stage of each host of the scenario.
    host_stages: Vec<usize>,
    counts: Vec<StageCount>,
    wakes: WakeTree,
    out: Out,
    /// Packets that leave a stage at this instant, when there are several: the stage, the side, the packet.
    moving: VecDeque<(usize, Side, Packet)>,
    now: Time,
    hops: u64,
    /// Whether a host was called since its transfers were last counted.
    host_called: bool,
}

impl<'a> Engine<'a> {
    pub(crate) fn new(scenario: &'a Scenario, seed: u64, wants: Wants) -> Engine<'a> {
        let Built { stages, first, last, host_stages } = Built::new(scenario, seed);
        let total = stages.len();
        let mut engine = Engine {
            scenario,
            stages,
            first,
            last,
            host_stages,
            counts: vec![StageCount::default(); total],
            wakes: WakeTree::new(total),
            out: Out::new(wants),
            moving: VecDeque::new(),
            now: Time::ZERO,
            hops: 0,
            host_called: true,
        };
        for i in 0..total {
            engine.rest(i);
        }
        engine
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
            self.out.begin(StageId(i as u16), self.now);
            self.stages[i].on_wake(self.now, &mut self.out);
            self.settle(i, sink);
            self.hand_on(i, sink);
            if self.host_called {
                self.host_called = false;
                if self.unfinished() == 0 {
                    break Reason::Finished;
                }
            }
        };
        self.end(reason, wakes)
    }

    /// Transfers that are not over.
    fn unfinished(&self) -> usize {
        self.host_stages.iter().map(|i| self.stages[*i].unfinished()).sum()
    }

    /// Hands packets on until none moves at this instant: what stage `i` answered, and all that follows.
    fn hand_on<S: Sink>(&mut self, mut i: usize, sink: &mut S) {
        loop {
            // Nearly always one packet moves; it need not queue.
            let alone = self.moving.is_empty() && self.out.sends.len() <= 1;
            let (side, packet) = if alone {
                let Some(only) = self.out.sends.pop() else { return };
                only
            } else {
                self.collect(i);
                let Some((from, side, packet)) = self.moving.pop_front() else { return };
                i = from;
                (side, packet)
            };
            match self.neighbour(i, side, &packet) {
                Some(next) => {
                    self.counts[next].arrived += 1;
                    self.out.begin(StageId(next as u16), self.now);
                    self.stages[next].on_packet(self.now, side.other(), packet, &mut self.out);
                    self.settle(next, sink);
                    i = next;
                }
                None => self.lost(i, side, packet, sink),
            }
        }
    }

    /// Puts what stage `i` sent behind what is moving already.
    fn collect(&mut self, i: usize) {
        for (side, packet) in self.out.sends.drain(..) {
            self.moving.push_back((i, side, packet));
        }
    }

    /// Stage `i` has been called: takes its events, counts, passes its signals on, and asks for its next wake.
    /// Its packets stay in `out` for [`Engine::hand_on`].
    #[inline]
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
        match &self.stages[i] {
            Stage::Host(_) => self.host_called = true,
            Stage::Line(_) | Stage::Radio(_) => self.hops += sent,
            Stage::Agent(_) | Stage::Cross(_) => {}
        }
        if !self.out.signals.is_empty() {
            self.pass_signals(i, sink);
        }
        self.rest(i);
    }

    /// Signals travel the path hop by hop, after the packets that were sent before them.
    #[cold]
    fn pass_signals<S: Sink>(&mut self, i: usize, sink: &mut S) {
        self.collect(i);
        for (side, signal) in core::mem::take(&mut self.out.signals) {
            let next = match side {
                Side::Left => i.checked_sub(1),
                Side::Right => Some(i + 1),
            };
            if let Some(next) = next.filter(|n| (self.first..self.last).contains(n)) {
                self.out.begin(StageId(next as u16), self.now);
                self.stages[next].on_signal(self.now, side.other(), signal, &mut self.out);
                self.settle(next, sink);
                self.collect(next);
            }
        }
    }

    /// The stage that a packet leaving stage `i` to `side` arrives at. At the ends the address decides.
    #[inline]
    fn neighbour(&self, i: usize, side: Side, packet: &Packet) -> Option<usize> {
        match side {
            Side::Right if i < self.first => Some(self.first),
            Side::Right if i + 1 < self.last => Some(i + 1),
            Side::Right => self.host_at(packet, self.last..self.stages.len()),
            Side::Left if i >= self.last => Some(self.last - 1),
            Side::Left if i > self.first => Some(i - 1),
            Side::Left => self.host_at(packet, 0..self.first),
        }
    }

    fn host_at(&self, packet: &Packet, mut end: core::ops::Range<usize>) -> Option<usize> {
        end.find(|i| self.stages[*i].is_host(packet.dst))
    }

    /// No host has the packet's address: the last stage it passed drops it.
    #[cold]
    fn lost<S: Sink>(&mut self, i: usize, side: Side, packet: Packet, sink: &mut S) {
        let what = What::Packet { op: Op::Dropped(Cause::NoSuchConnection), side, packet };
        sink.event(&Event { at: self.now, stage: StageId(i as u16), what });
    }

    /// Stage `i` has been called; when does it want to be called again?
    #[inline]
    fn rest(&mut self, i: usize) {
        self.wakes.set(i, self.stages[i].next_wake());
    }

    fn end(mut self, reason: Reason, wakes: u64) -> RunEnd {
        let mut agent_state = Vec::new();
        for (i, (stage, count)) in self.stages.iter().zip(&mut self.counts).enumerate() {
            match stage {
                // A host takes in whatever arrives.
                Stage::Host(_) => count.ended = count.arrived,
                Stage::Agent(agent) => {
                    agent_state.push((StageId(i as u16), agent.peak_state_bytes() as u64));
                }
                _ => {}
            }
            count.held = stage.holds() as u64;
        }
        let counts = self.counts.iter().enumerate();
        RunEnd {
            at: self.now,
            reason,
            hops: self.hops,
            wakes,
            transfers: self.transfers(),
            agent_state,
            stages: counts.map(|(i, count)| (StageId(i as u16), *count)).collect(),
        }
    }

    fn transfers(&self) -> Vec<TransferEnd> {
        let mut used = vec![0; self.host_stages.len()];
        let mut ends = Vec::new();
        for transfer in &self.scenario.transfers {
            let host = |index: usize| self.stages[self.host_stages[index]].host();
            let (Some(from), Some(to)) = (host(transfer.from), host(transfer.to)) else { continue };
            for sender in from.opened().skip(used[transfer.from]).take(transfer.count as usize) {
                let receiver = to.connection(sender.flow.reversed());
                ends.push(TransferEnd {
                    wanted: transfer.bytes,
                    delivered: receiver.map_or(0, |c| c.delivered()),
                    acknowledged: sender.acknowledged(),
                    complete: sender.is_complete(),
                    aborted: sender.is_aborted(),
                });
            }
            used[transfer.from] += transfer.count as usize;
        }
        ends
    }
}
