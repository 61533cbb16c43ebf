//! The driver: calls a stage, takes what it answers, and forwards its packets.

mod access;
mod alone;
mod moves;
mod replaced;
mod state;
mod tree;

use core::ops::Range;
use std::collections::VecDeque;

use lasthop_proto::agent::BaseStation as _;
use lasthop_proto::event::{Event, Op, Wants, What};
use lasthop_proto::machine::{Machine, Out, Side, StageId, Told};
use lasthop_proto::units::Time;
use lasthop_proto::wake::WakeTree;
use lasthop_proto::wire::{Addr, FlowKey, Packet};

use crate::counts::StageCount;
use crate::roam::Roam;
use crate::stage::Stage;
use access::Access;

/// Packets that stages may hand on within one call from outside. More than that many do not exist at one instant, so they are
/// a few that go round for ever.
const AT_ONCE: u32 = 1 << 22;

/// What lies around the path: it takes in what happened, and the packets that leave.
pub trait Outside {
    /// The next event.
    fn event(&mut self, event: &Event);

    /// The next event, to a packet that `stage` hands on towards `side`. Whoever need not keep it overrides this, and is
    /// spared a copy of the packet.
    fn packet(&mut self, at: Time, stage: StageId, op: Op, side: Side, packet: &Packet) {
        let what = What::Packet { op, side, packet: packet.clone() };
        self.event(&Event { at, stage, what });
    }

    /// The next event: data was delivered to the end of a connection at `stage`; `flow` is that from there. Whoever need not
    /// keep it overrides this.
    fn delivered(&mut self, at: Time, stage: StageId, flow: FlowKey, bytes: u32) {
        self.event(&Event { at, stage, what: What::delivered(flow, bytes) });
    }

    /// `packet` leaves the path towards `side` at `stage`: the witness of a host that is not ours, or the last
    /// stage before the hosts when none of them has the packet's address.
    fn leave(&mut self, now: Time, stage: StageId, side: Side, packet: Packet);
}

/// What a packet comes to that leaves a stage of a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Beside {
    /// This stage.
    Stage(u16),
    /// The hosts of that side: its address decides.
    Hosts,
    /// Nothing: it leaves a host outwards.
    Nothing,
}

/// Stages in a row, or in a tree whose branches are cells; hosts may hang on it by links of their own.
#[derive(Debug)]
pub struct Path {
    /// Left hosts, the path, right hosts, the hosts' own links.
    stages: Vec<Stage>,
    /// The stages between the hosts.
    inner: Range<usize>,
    /// What stands beside each stage, by the side that a packet leaves to.
    beside: Vec<[Beside; 2]>,
    /// The host of ours that was last found on each side, with its address.
    found: [Option<(Addr, usize)>; 2],
    /// The stage of each host of the scenario.
    host_stages: Vec<usize>,
    counts: Vec<StageCount>,
    wakes: WakeTree,
    out: Out,
    /// Packets that leave a stage at this instant, when there are several: the stage, the side, the packet.
    moving: VecDeque<(usize, Side, Packet)>,
    /// The packets that a stage has sent together, the last first, while they are handed on.
    leaving: Vec<(Side, Packet)>,
    now: Time,
    /// Whoever calls does nothing else before this.
    free_until: Time,
    /// Wakes that were made within others.
    inner_wakes: u64,
    hops: u64,
    /// Whether a host was called since its transfers were last counted.
    host_called: bool,
    /// Links that were replaced and still hold packets, with their places: they only hand those on.
    retired: Vec<(usize, Stage)>,
    /// The cells that the path ends in, if hosts move.
    roam: Option<Box<Roam>>,
    /// Links of hosts to the path, if any has one.
    access: Access,
    /// Whether packets take other ways than along a row of stages.
    branches: bool,
    /// The host, by its place among [`Path::host_stages`], whose transfers were last seen not to be over.
    busy: usize,
    /// The stage at which packets went round for ever, if they did.
    stuck: Option<StageId>,
}

impl Path {
    /// The `stages` of which those in `inner` stand between the hosts; `host_stages` names the stage of each host
    /// of the scenario. Events of `wants` are collected.
    pub fn new(
        stages: Vec<Stage>,
        inner: Range<usize>,
        host_stages: Vec<usize>,
        wants: Wants,
    ) -> Path {
        let total = stages.len();
        let Range { start, end } = inner;
        let beside = |i: usize| {
            let stage = |to: usize| Beside::Stage(to as u16);
            let left = match i {
                _ if i >= end => stage(end.saturating_sub(1)),
                _ if i > start => stage(i - 1),
                _ if i == start => Beside::Hosts,
                _ => Beside::Nothing,
            };
            let right = match i {
                _ if i < start => stage(start),
                _ if i + 1 < end => stage(i + 1),
                _ if i < end => Beside::Hosts,
                _ => Beside::Nothing,
            };
            [left, right]
        };
        let mut path = Path {
            beside: (0..total).map(beside).collect(),
            found: [None; 2],
            stages,
            inner,
            host_stages,
            counts: vec![StageCount::default(); total],
            wakes: WakeTree::new(total),
            out: Out::telling(wants),
            moving: VecDeque::new(),
            leaving: Vec::new(),
            now: Time::ZERO,
            free_until: Time::ZERO,
            inner_wakes: 0,
            hops: 0,
            host_called: true,
            retired: Vec::new(),
            roam: None,
            access: Access::default(),
            branches: false,
            busy: 0,
            stuck: None,
        };
        for i in 0..total {
            path.rearm(i);
        }
        path
    }

    /// When a stage wants to be woken next.
    #[inline]
    pub fn next_wake(&self) -> Option<Time> {
        self.next_stage().map(|(at, _)| at)
    }

    /// The same, with that stage.
    #[inline]
    pub fn next_stage(&self) -> Option<(Time, StageId)> {
        self.wakes.first().map(|(at, i)| (at, StageId(i as u16)))
    }

    /// Wakes the stage that waits for the earliest time, and forwards what it answers.
    pub fn wake<O: Outside>(&mut self, now: Time, outside: &mut O) {
        if let Some((_, stage)) = self.next_stage() {
            self.wake_stage(now, stage, outside);
        }
    }

    /// The same where it is known already which stage that is.
    #[inline]
    pub fn wake_stage<O: Outside>(&mut self, now: Time, stage: StageId, outside: &mut O) {
        let i = usize::from(stage.0);
        let has_retired = !self.retired.is_empty();
        if has_retired {
            self.wake_retired(now, i);
        }
        match &mut self.stages[i] {
            Stage::Place(_) => return self.move_host(now, outside),
            Stage::Hop(_) if now < self.free_until => return self.wake_hop(now, i, outside),
            // What a replaced link has just sent leaves this stage with what the new one sends.
            Stage::Line(line) if !self.branches && !has_retired => {
                if let Some((side, packet)) = line.take_only(now) {
                    self.wakes.set(i, line.next_wake());
                    return self.pass_on(now, i, side, packet, outside);
                }
            }
            _ => {}
        }
        self.call(now, i, outside, |stage, out| stage.on_wake(now, out));
    }

    /// Line `i` hands on `packet` alone: it need not go through the line's answer.
    #[inline]
    fn pass_on<O: Outside>(
        &mut self,
        now: Time,
        i: usize,
        side: Side,
        packet: Packet,
        outside: &mut O,
    ) {
        self.now = now;
        if self.out.wants(Op::Transmitted.level()) {
            outside.packet(now, StageId(i as u16), Op::Transmitted, side, &packet);
        }
        self.counts[i].departed += 1;
        self.hops += 1;
        let next = self.hand_on(i, side, packet, outside);
        if !self.out.sends.is_empty() || !self.moving.is_empty() {
            self.forward(next, outside);
        }
    }

    /// Whether packets come in batches, super-packets among them: only where each stage but the ends takes them.
    pub fn set_bulk(&mut self, bulk: bool) {
        let takes = |stage: &Stage| stage.agent().is_some_and(|agent| agent.takes_bulk());
        self.out.set_bulk(bulk && self.stages[self.inner.clone()].iter().all(takes));
    }

    /// Whether they do.
    pub fn is_bulk(&self) -> bool {
        self.out.is_bulk()
    }

    /// A packet comes from outside, from beyond the host at `stage`, and travels inwards.
    pub fn enter<O: Outside>(
        &mut self,
        now: Time,
        stage: StageId,
        packet: Packet,
        outside: &mut O,
    ) {
        let i = usize::from(stage.0);
        let from = if i < self.inner.start { Side::Left } else { Side::Right };
        self.counts[i].arrived += 1;
        self.call(now, i, outside, |stage, out| stage.on_packet(now, from, packet, out));
    }

    /// Calls stage `i` from outside, as the application of a host does, and forwards what it answers.
    #[inline]
    pub fn call<O: Outside>(
        &mut self,
        now: Time,
        i: usize,
        outside: &mut O,
        call: impl FnOnce(&mut Stage, &mut Out),
    ) {
        self.now = now;
        self.out.begin(StageId(i as u16), now);
        call(&mut self.stages[i], &mut self.out);
        self.settle(i, outside);
    }

    /// Stage `i` has been called: takes its answer and forwards what it sends.
    #[inline]
    fn settle<O: Outside>(&mut self, i: usize, outside: &mut O) {
        self.ask(i, outside);
        // Many a wake brings about nothing.
        if !(self.out.sends.is_empty() && self.moving.is_empty()) {
            self.forward(i, outside);
        }
    }

    /// Whether a host was called since this was last asked: only then can a transfer have ended.
    #[inline]
    pub fn take_host_called(&mut self) -> bool {
        core::mem::take(&mut self.host_called)
    }

    /// Transfers of our hosts that are not over.
    pub fn unfinished(&self) -> usize {
        self.host_stages.iter().map(|i| self.stages[*i].unfinished()).sum()
    }

    /// Whether all transfers of our hosts are over. Whoever was not done last time is asked first.
    #[inline]
    pub fn is_finished(&mut self) -> bool {
        let busy = self.host_stages.get(self.busy).map(|i| &self.stages[*i]);
        busy.is_none_or(|host| host.unfinished() == 0) && !self.find_busy()
    }

    /// Looks for a host whose transfers are not over.
    fn find_busy(&mut self) -> bool {
        let found = self.host_stages.iter().position(|i| self.stages[*i].unfinished() > 0);
        found.inspect(|busy| self.busy = *busy).is_some()
    }

    /// The stages, left to right, hosts included.
    pub fn stages(&self) -> &[Stage] {
        &self.stages
    }

    /// Stage `i`, to set it up before the first packet comes.
    pub fn stage_mut(&mut self, i: usize) -> Option<&mut Stage> {
        self.stages.get_mut(i)
    }

    /// The indices of the stages between the hosts.
    pub fn inner(&self) -> Range<usize> {
        self.inner.clone()
    }

    /// The stage of each host of the scenario.
    pub fn host_stages(&self) -> &[usize] {
        &self.host_stages
    }

    /// How many packets links and radios carried.
    pub fn hops(&self) -> u64 {
        self.hops
    }

    /// Packets at each stage so far.
    pub fn counts(&self) -> Vec<(StageId, StageCount)> {
        let stages = self.stages.iter().zip(&self.counts).enumerate();
        stages
            .map(|(i, (stage, count))| {
                let retired = self.retired.iter().filter(|(at, _)| *at == i);
                let kept = self.roam.as_ref().map_or(0, |roam| roam.held(i));
                let held =
                    stage.holds() + retired.map(|(_, old)| old.holds()).sum::<usize>() + kept;
                let mut count = StageCount { held: held as u64, ..*count };
                if matches!(stage, Stage::Host(_) | Stage::End(_)) {
                    // A host takes in whatever arrives.
                    count.ended = count.arrived;
                }
                (StageId(i as u16), count)
            })
            .collect()
    }

    /// Whether any packet is between the hosts.
    pub fn has_packets(&self) -> bool {
        let roam = |i: usize| self.roam.as_ref().map_or(0, |roam| roam.held(i)) > 0;
        let stages = self.stages.iter().enumerate();
        stages.into_iter().any(|(i, stage)| stage.holds() > 0 || roam(i))
            || self.retired.iter().any(|(_, old)| old.holds() > 0)
    }

    /// The stage at which stages answered each other for ever within an instant, if they did: the packets that they did it
    /// with were dropped.
    pub fn stuck(&self) -> Option<StageId> {
        self.stuck
    }

    /// Ends a loop of packets at stage `i`. Whoever asks after each call of a host learns of it.
    #[cold]
    fn end_loop(&mut self, i: usize) {
        self.moving.clear();
        self.out.sends.clear();
        self.host_called = true;
        self.stuck = Some(StageId(i as u16));
    }

    /// Forwards packets until none moves at this instant: what stage `i` sent, and all that follows.
    fn forward<O: Outside>(&mut self, mut i: usize, outside: &mut O) {
        if self.branches {
            return match self.roam {
                Some(_) => self.forward_in_tree(i, outside),
                None => self.forward_by_access(i, outside),
            };
        }
        for _ in 0..AT_ONCE {
            if !self.moving.is_empty() {
                self.queue_packets(i);
                let Some((from, side, packet)) = self.moving.pop_front() else { return };
                i = self.send_on(from, side, packet, outside);
                continue;
            }
            match self.out.sends.len() {
                0 => return,
                1 => {
                    let Some((side, packet)) = self.out.sends.pop() else { return };
                    i = self.send_on(i, side, packet, outside);
                }
                // They go first, and what comes of them queues.
                _ => {
                    core::mem::swap(&mut self.leaving, &mut self.out.sends);
                    self.leaving.reverse();
                    while let Some((side, packet)) = self.leaving.pop() {
                        let next = self.send_on(i, side, packet, outside);
                        self.queue_packets(next);
                    }
                }
            }
        }
        self.end_loop(i);
    }

    /// Hands `packet`, which leaves stage `i` to `side`, to its neighbour there: which is the answer, or `i` if there is
    /// none.
    #[inline(always)]
    fn hand_on<O: Outside>(
        &mut self,
        i: usize,
        side: Side,
        packet: Packet,
        outside: &mut O,
    ) -> usize {
        let Some(next) = self.neighbour(i, side, &packet) else {
            outside.leave(self.now, StageId(i as u16), side, packet);
            return i;
        };
        self.counts[next].arrived += 1;
        let packet = match &mut self.stages[next] {
            Stage::Line(line) if self.retired.is_empty() => {
                match line.take_in(self.now, side, packet) {
                    Ok(()) => {
                        self.wakes.set(next, line.next_wake());
                        return next;
                    }
                    Err(packet) => packet,
                }
            }
            _ => packet,
        };
        self.out.begin(StageId(next as u16), self.now);
        let wake = self.stages[next].arrive(self.now, side.other(), packet, &mut self.out);
        if self.out.is_empty() && self.retired.is_empty() {
            // As nearly always where it waits for its turn, or ends its way.
            self.host_called |= !self.inner.contains(&next);
            self.wakes.set(next, wake.or_none());
        } else {
            self.take_answer(next, wake, outside);
        }
        next
    }

    /// [`Path::hand_on`] for what a stage has sent. What comes out of a line, most packets, goes the way that is inlined.
    #[inline(never)]
    fn send_on<O: Outside>(
        &mut self,
        i: usize,
        side: Side,
        packet: Packet,
        outside: &mut O,
    ) -> usize {
        self.hand_on(i, side, packet, outside)
    }

    /// Puts what stage `i` sent behind what is moving already.
    #[inline]
    fn queue_packets(&mut self, i: usize) {
        if self.out.sends.is_empty() {
            return;
        }
        for (side, packet) in self.out.sends.drain(..) {
            self.moving.push_back((i, side, packet));
        }
    }

    /// Stage `i` has been called: asks for its next wake and takes its answer.
    #[inline]
    fn ask<O: Outside>(&mut self, i: usize, outside: &mut O) {
        let wake = self.stages[i].next_wake().unwrap_or(Time::NEVER);
        self.take_answer(i, wake, outside);
    }

    /// Stage `i` has been called and wants to be woken next at `wake`: takes its events, counts, and passes its signals
    /// on. Its packets stay in `out` for [`Path::forward`].
    fn take_answer<O: Outside>(&mut self, i: usize, wake: Time, outside: &mut O) {
        let (now, stage) = (self.now, StageId(i as u16));
        self.out.tell(|told| match told {
            Told::Event(event) => outside.event(event),
            Told::Packet(op, side, packet) => outside.packet(now, stage, op, side, packet),
            Told::Delivered(flow, bytes) => outside.delivered(now, stage, flow, bytes),
        });
        let tally = self.out.take_tally();
        let sent = self.out.sends.len() as u64;
        let count = &mut self.counts[i];
        count.originated += tally.originated;
        count.ended += tally.discarded;
        count.departed += sent;
        match &self.stages[i] {
            Stage::Host(_) | Stage::End(_) => self.host_called = true,
            Stage::Line(_)
            | Stage::Serial(_)
            | Stage::Varied(_)
            | Stage::Radio(_)
            | Stage::VariedRadio(_)
            | Stage::Hop(_)
            | Stage::Hops(_)
            | Stage::Netem(_)
            | Stage::Tbf(_) => self.hops += sent,
            Stage::Agent(_)
            | Stage::Cross(_)
            | Stage::Police(_)
            | Stage::Witness(_)
            | Stage::Place(_) => {}
        }
        if !self.out.signals.is_empty() {
            self.pass_signals(i, outside);
            // What comes of them may have reached this stage again.
            return self.rearm(i);
        }
        if self.retired.is_empty() {
            self.wakes.set(i, wake.or_none());
        } else {
            self.rearm(i);
        }
    }

    /// Signals travel the path hop by hop, after the packets that were sent before them.
    #[cold]
    fn pass_signals<O: Outside>(&mut self, i: usize, outside: &mut O) {
        self.queue_packets(i);
        for (side, signal) in core::mem::take(&mut self.out.signals) {
            let next = match (&self.roam, side) {
                (Some(roam), _) => roam.neighbour(i, side),
                (None, Side::Left) => i.checked_sub(1),
                (None, Side::Right) => Some(i + 1),
            };
            if let Some(next) = next.filter(|n| self.inner.contains(n)) {
                self.out.begin(StageId(next as u16), self.now);
                self.stages[next].on_signal(self.now, side.other(), signal, &mut self.out);
                self.ask(next, outside);
                self.queue_packets(next);
            }
        }
    }

    /// The stage that a packet leaving stage `i` to `side` arrives at. At the ends the address decides.
    #[inline(always)]
    fn neighbour(&mut self, i: usize, side: Side, packet: &Packet) -> Option<usize> {
        match (self.beside[i][side.index()], self.found[side.index()]) {
            (Beside::Stage(beside), _) => Some(usize::from(beside)),
            (Beside::Hosts, Some((addr, at))) if addr == packet.dst => Some(at),
            (Beside::Hosts, _) => self.find_host(side, packet),
            (Beside::Nothing, _) => None,
        }
    }

    #[inline(never)]
    fn find_host(&mut self, side: Side, packet: &Packet) -> Option<usize> {
        let at = match side {
            Side::Left => self.host_at(packet, 0..self.inner.start),
            Side::Right => self.host_at(packet, self.inner.end..self.stages.len()),
        }?;
        if let Stage::Host(host) = &self.stages[at] {
            self.found[side.index()] = Some((host.addr(), at));
        }
        Some(at)
    }

    fn host_at(&self, packet: &Packet, mut hosts: Range<usize>) -> Option<usize> {
        hosts.find(|i| self.stages[*i].is_host(packet.dst))
    }

    /// Sets the timer of stage `i` to when it wants to be called next.
    #[inline]
    fn rearm(&mut self, i: usize) {
        let mut next = self.stages[i].next_wake();
        if !self.retired.is_empty() {
            next = self.next_of_retired(i).into_iter().chain(next).min();
        }
        self.wakes.set(i, next);
    }
}
