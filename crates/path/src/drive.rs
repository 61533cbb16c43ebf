//! The driver: calls a stage, collects its output, and forwards its packets.

mod access;
mod alone;
mod fork;
mod moves;
mod queries;
mod replaced;
mod state;
mod tree;

use core::ops::Range;
use std::collections::VecDeque;

use lasthop_proto::agent::BaseStation as _;
use lasthop_proto::event::{Event, EventKind, Interest, Op};
use lasthop_proto::machine::{EventRef, Machine, Out, Side, StageId};
use lasthop_proto::units::Time;
use lasthop_proto::wake::WakeTree;
use lasthop_proto::wire::{Addr, FlowKey, Packet};

use crate::counts::StageCount;
use crate::roam::Roam;
use crate::stage::Stage;
use access::Access;

pub use fork::ChoicePoint;

/// Maximum number of packets forwarded within one external call. Exceeding it means a forwarding loop.
const MAX_FORWARDED: u32 = 1 << 22;

/// The surroundings of a path: they receive events, and packets that leave.
pub trait Outside {
    fn event(&mut self, event: &Event);

    /// A packet event: `stage` forwards it towards `side`. Override to avoid cloning the packet.
    fn packet(&mut self, at: Time, stage: StageId, op: Op, side: Side, packet: &Packet) {
        let kind = EventKind::Packet { op, side, packet: packet.clone() };
        self.event(&Event { at, stage, kind });
    }

    /// A delivery event: data reached the end of a connection at `stage`; `flow` is the flow from there. Override to
    /// avoid building an event.
    fn delivered(&mut self, at: Time, stage: StageId, flow: FlowKey, bytes: u32) {
        self.event(&Event { at, stage, kind: EventKind::delivered(flow, bytes) });
    }

    /// `packet` leaves the path towards `side` at `stage`. This is the witness of an external host, or the last
    /// stage before the hosts if no host has the packet's address.
    fn leave(&mut self, now: Time, stage: StageId, side: Side, packet: Packet);
}

/// Next hop of a packet leaving a stage.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum NextHop {
    Stage(u16),
    /// A host at that side, by the packet's address.
    Hosts,
    /// The packet leaves the path at a host.
    Nothing,
}

/// Stages in a row, or in a tree with cells as branches; hosts may have access links.
#[derive(Debug)]
pub struct Path {
    /// Left hosts, path, right hosts, access links of hosts.
    stages: Vec<Stage>,
    /// The stages between the hosts.
    inner: Range<usize>,
    /// Next hop of each stage, by direction.
    next_hops: Vec<[NextHop; 2]>,
    /// Cached address lookup: the host last found on each side.
    found: [Option<(Addr, usize)>; 2],
    /// The stage of each host of the scenario.
    host_stages: Vec<usize>,
    counts: Vec<StageCount>,
    wakes: WakeTree,
    out: Out,
    /// Further packets that leave a stage at this instant: stage, direction, packet.
    moving: VecDeque<(usize, Side, Packet)>,
    /// The packets of one output, in reverse order, while they are forwarded.
    leaving: Vec<(Side, Packet)>,
    now: Time,
    /// The caller dispatches only timers before this time.
    free_until: Time,
    /// Deadlines handled within other calls.
    inner_wakes: u64,
    hops: u64,
    /// Whether a host was called since its transfers were last counted.
    host_called: bool,
    /// Replaced links that still hold packets, by index of the stage: they only forward those.
    retired: Vec<(usize, Stage)>,
    /// The cells at the end of the path, if hosts move.
    roam: Option<Box<Roam>>,
    /// Access links of hosts.
    access: Access,
    /// Whether the path has cells or access links, so that packets need not follow the row of stages.
    branches: bool,
    /// The host, by index into [`Path::host_stages`], that last had unfinished transfers.
    busy: usize,
    /// The stage of an endless loop, which was ended.
    stuck: Option<StageId>,
}

impl Path {
    /// A path of `stages`, of which `inner` are between the hosts; `host_stages` has the stage of each host of the
    /// scenario. Only events in `interest` are collected.
    pub fn new(
        stages: Vec<Stage>,
        inner: Range<usize>,
        host_stages: Vec<usize>,
        interest: Interest,
    ) -> Path {
        let total = stages.len();
        let Range { start, end } = inner;
        let next_hops = |i: usize| {
            let stage = |to: usize| NextHop::Stage(to as u16);
            let left = match i {
                _ if i >= end => stage(end.saturating_sub(1)),
                _ if i > start => stage(i - 1),
                _ if i == start => NextHop::Hosts,
                _ => NextHop::Nothing,
            };
            let right = match i {
                _ if i < start => stage(start),
                _ if i + 1 < end => stage(i + 1),
                _ if i < end => NextHop::Hosts,
                _ => NextHop::Nothing,
            };
            [left, right]
        };
        let mut path = Path {
            next_hops: (0..total).map(next_hops).collect(),
            found: [None; 2],
            stages,
            inner,
            host_stages,
            counts: vec![StageCount::default(); total],
            wakes: WakeTree::new(total),
            out: Out::compact(interest),
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

    /// A time not after the next deadline of any stage.
    #[inline]
    pub fn next_wake(&self) -> Option<Time> {
        self.next_stage().map(|(at, _)| at)
    }

    /// The next deadline with its stage.
    #[inline]
    pub fn next_due(&mut self) -> Option<(Time, StageId)> {
        let (at, i) = self.wakes.first()?;
        match self.stages[i] {
            Stage::Host(_) => self.next_due_of_hosts(),
            _ => Some((at, StageId(i as u16))),
        }
    }

    /// The same where a host is first. Its deadline may have been postponed.
    #[inline(never)]
    fn next_due_of_hosts(&mut self) -> Option<(Time, StageId)> {
        loop {
            let (at, i) = self.wakes.first()?;
            let Stage::Host(host) = &mut self.stages[i] else {
                return Some((at, StageId(i as u16)));
            };
            host.catch_up(at);
            if host.wake_bound() == Some(at) {
                return Some((at, StageId(i as u16)));
            }
            self.rearm(i);
        }
    }

    /// The same without a search: a host's deadline may have been postponed.
    #[inline]
    pub fn next_stage(&self) -> Option<(Time, StageId)> {
        self.wakes.first().map(|(at, i)| (at, StageId(i as u16)))
    }

    /// Calls the stage with the earliest deadline, and forwards its output.
    pub fn wake<O: Outside>(&mut self, now: Time, outside: &mut O) {
        if let Some((_, stage)) = self.next_stage() {
            self.wake_stage(now, stage, outside);
        }
    }

    /// The same for a given stage.
    #[inline]
    pub fn wake_stage<O: Outside>(&mut self, now: Time, stage: StageId, outside: &mut O) {
        let i = usize::from(stage.0);
        let has_retired = !self.retired.is_empty();
        if has_retired {
            self.wake_retired(now, i);
        }
        match &mut self.stages[i] {
            Stage::Junction(_) => return self.move_host(now, outside),
            Stage::Hop(_) if now < self.free_until => return self.wake_hop(now, i, outside),
            // Packets that a replaced link has just sent leave this stage together with those of the new link.
            Stage::Line(line) if !self.branches && !has_retired => {
                if let Some((side, packet)) = line.take_only(now) {
                    self.wakes.set(i, line.next_wake());
                    if line.reads_ahead(side) {
                        self.read_ahead(i, side);
                    }
                    return self.pass_on(now, i, side, packet, outside);
                }
            }
            _ => {}
        }
        debug_assert!(self.now <= now, "time goes back from {} to {now}", self.now);
        let wakes = &mut self.wakes;
        self.now = now;
        self.out.begin(StageId(i as u16), now);
        self.stages[i].on_wake(now, &mut self.out);
        let mut wake = self.stages[i].wake_bound().unwrap_or(Time::NEVER);
        // A host handles one connection per call.
        if wake <= now && matches!(self.stages[i], Stage::Agent(_)) {
            wakes.set(i, Some(wake));
            self.out.require_later(wakes, i, now);
            wake = wakes.get(i);
        }
        self.collect_output(i, wake, outside);
        self.forward_all(i, outside);
    }

    /// Prefetches the next packets of line `i` towards `side`, with their connections if a host comes next.
    #[inline(never)]
    fn read_ahead(&self, i: usize, side: Side) {
        let Stage::Line(line) = &self.stages[i] else { return };
        let host = match (self.next_hops[i][side.index()], self.found[side.index()]) {
            (NextHop::Hosts, Some((_, at))) => self.stages[at].host(),
            _ => None,
        };
        let touch = |packet: &Packet| packet.touch() ^ host.map_or(0, |host| host.touch(packet));
        core::hint::black_box(line.next_ones(side).fold(0, |words, packet| words ^ touch(packet)));
    }

    /// Line `i` forwards a single packet without buffering it in the output.
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
        if self.out.accepts(Op::Transmitted.level()) {
            outside.packet(now, StageId(i as u16), Op::Transmitted, side, &packet);
        }
        self.counts[i].departed += 1;
        self.hops += 1;
        let next = self.forward_packet(i, side, packet, outside);
        if !self.out.sends.is_empty() || !self.moving.is_empty() {
            self.forward(next, outside);
        }
    }

    /// Enables batches of packets, super-packets included. Only for a path whose inner stages all support them.
    pub fn set_bulk(&mut self, bulk: bool) {
        let takes = |stage: &Stage| stage.agent().is_some_and(|agent| agent.takes_bulk());
        self.out.set_bulk(bulk && self.stages[self.inner.clone()].iter().all(takes));
    }

    pub fn is_bulk(&self) -> bool {
        self.out.is_bulk()
    }

    /// Accepts a packet from outside, from beyond the host at `stage`.
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

    /// Calls stage `i` from outside, as the application of a host does, and forwards its output.
    #[inline]
    pub fn call<O: Outside>(
        &mut self,
        now: Time,
        i: usize,
        outside: &mut O,
        call: impl FnOnce(&mut Stage, &mut Out),
    ) {
        debug_assert!(self.now <= now, "time goes back from {} to {now}", self.now);
        debug_assert!(self.out.sends.is_empty(), "packets of an earlier call were not forwarded");
        self.now = now;
        self.out.begin(StageId(i as u16), now);
        call(&mut self.stages[i], &mut self.out);
        self.settle(i, outside);
    }

    /// Collects the output of stage `i` after a call and forwards it.
    #[inline]
    fn settle<O: Outside>(&mut self, i: usize, outside: &mut O) {
        self.collect_next(i, outside);
        self.forward_all(i, outside);
    }

    /// Forwards the collected output of stage `i`, if there is any: many deadlines cause none.
    #[inline]
    fn forward_all<O: Outside>(&mut self, i: usize, outside: &mut O) {
        if !(self.out.sends.is_empty() && self.moving.is_empty()) {
            self.forward(i, outside);
        }
    }

    /// Reads and clears the flag that a host was called: only then can a transfer have ended.
    #[inline]
    pub fn take_host_called(&mut self) -> bool {
        core::mem::take(&mut self.host_called)
    }

    /// Ends a forwarding loop at stage `i`; [`Path::stuck`] reports it.
    #[cold]
    fn end_loop(&mut self, i: usize) {
        self.moving.clear();
        self.out.sends.clear();
        self.host_called = true;
        self.stuck = Some(StageId(i as u16));
    }

    /// Forwards packets until none moves at this instant: the output of stage `i` and everything that follows.
    fn forward<O: Outside>(&mut self, mut i: usize, outside: &mut O) {
        if self.branches {
            return match self.roam {
                Some(_) => self.forward_in_tree(i, outside),
                None => self.forward_by_access(i, outside),
            };
        }
        for _ in 0..MAX_FORWARDED {
            if !self.moving.is_empty() {
                self.queue_packets(i);
                let Some((from, side, packet)) = self.moving.pop_front() else { return };
                i = self.forward_output(from, side, packet, outside);
                continue;
            }
            match self.out.sends.len() {
                0 => return,
                1 => {
                    let Some((side, packet)) = self.out.sends.pop() else { return };
                    i = self.forward_output(i, side, packet, outside);
                }
                // These packets are first; their consequences queue behind.
                _ => {
                    core::mem::swap(&mut self.leaving, &mut self.out.sends);
                    self.leaving.reverse();
                    while let Some((side, packet)) = self.leaving.pop() {
                        let next = self.forward_output(i, side, packet, outside);
                        self.queue_packets(next);
                    }
                }
            }
        }
        self.end_loop(i);
    }

    /// Forwards `packet` from stage `i` towards `side`. Returns the next stage, or `i` if there is none.
    #[inline(always)]
    fn forward_packet<O: Outside>(
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
            // The usual case: the stage stores the packet or consumes it.
            self.host_called |= !self.inner.contains(&next);
            self.wakes.set(next, wake.or_none());
        } else {
            self.collect_output(next, wake, outside);
        }
        next
    }

    /// [`Path::forward_packet`] for the output of a stage. Most packets leave a line, whose case is inlined.
    #[inline(never)]
    fn forward_output<O: Outside>(
        &mut self,
        i: usize,
        side: Side,
        packet: Packet,
        outside: &mut O,
    ) -> usize {
        self.forward_packet(i, side, packet, outside)
    }

    /// Queues the output of stage `i` behind the moving packets.
    #[inline]
    fn queue_packets(&mut self, i: usize) {
        if self.out.sends.is_empty() {
            return;
        }
        for (side, packet) in self.out.sends.drain(..) {
            self.moving.push_back((i, side, packet));
        }
    }

    /// Reads the next deadline of stage `i` after a call, and collects its output.
    #[inline]
    fn collect_next<O: Outside>(&mut self, i: usize, outside: &mut O) {
        let wake = self.stages[i].wake_bound().unwrap_or(Time::NEVER);
        self.collect_output(i, wake, outside);
    }

    /// Collects the output of stage `i` after a call, with `wake` as its next deadline: events, counts and signals. Its
    /// packets stay in `out` for [`Path::forward`].
    fn collect_output<O: Outside>(&mut self, i: usize, wake: Time, outside: &mut O) {
        let (now, stage) = (self.now, StageId(i as u16));
        self.out.drain_events(|item| match item {
            EventRef::Event(event) => outside.event(event),
            EventRef::Packet(op, side, packet) => outside.packet(now, stage, op, side, packet),
            EventRef::Delivered(flow, bytes) => outside.delivered(now, stage, flow, bytes),
        });
        let tally = self.out.take_tally();
        let sent = self.out.sends.len() as u64;
        let count = &mut self.counts[i];
        count.originated += tally.originated;
        count.ended += tally.discarded;
        count.departed += sent;
        if tally.faults > 0 {
            (self.host_called, self.stuck) = (true, Some(stage));
        }
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
            | Stage::Junction(_) => {}
        }
        if !self.out.signals.is_empty() {
            self.pass_signals(i, outside);
            // Signals may have called this stage again.
            return self.rearm(i);
        }
        if self.retired.is_empty() {
            self.wakes.set(i, wake.or_none());
        } else {
            self.rearm(i);
        }
    }

    /// Signals travel along the path hop by hop, after packets sent before them.
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
                self.collect_next(next, outside);
                self.queue_packets(next);
            }
        }
    }

    /// The next stage of a packet that leaves stage `i` to `side`. At the ends the address decides.
    #[inline(always)]
    fn neighbour(&mut self, i: usize, side: Side, packet: &Packet) -> Option<usize> {
        match (self.next_hops[i][side.index()], self.found[side.index()]) {
            (NextHop::Stage(next), _) => Some(usize::from(next)),
            (NextHop::Hosts, Some((addr, at))) if addr == packet.dst => Some(at),
            (NextHop::Hosts, _) => self.find_host(side, packet),
            (NextHop::Nothing, _) => None,
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

    /// Updates the timer of stage `i`.
    #[inline]
    fn rearm(&mut self, i: usize) {
        let mut next = self.stages[i].wake_bound();
        if !self.retired.is_empty() {
            next = self.next_of_retired(i).into_iter().chain(next).min();
        }
        self.wakes.set(i, next);
    }
}
