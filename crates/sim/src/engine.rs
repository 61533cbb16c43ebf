//! The run loop: time jumps from deadline to deadline.

use lasthop_observe::Sink;
use lasthop_path::{Ends, HostKind, Outside, Path, Stage, TransferState};
use lasthop_proto::agent::BaseStation;
use lasthop_proto::event::{Cause, Event, EventKind, Interest, Op, Tcb};
use lasthop_proto::machine::{Side, StageId};
use lasthop_proto::tcp::{Connection, Host};
use lasthop_proto::units::{Span, Time};
use lasthop_proto::wire::{Addr, FlowKey, Packet};
use lasthop_scenario::Scenario;

use crate::end::{Limits, Reason, RunEnd, TransferEnd};

/// Deadlines without progress of time that count as an endless loop.
const STUCK: u32 = 1_000_000;

/// The surroundings of the simulated path: a packet that leaves is lost.
struct Void<'a, S>(&'a mut S);

impl<S: Sink> Outside for Void<'_, S> {
    #[inline]
    fn event(&mut self, event: &Event) {
        self.0.event(event);
    }

    #[inline]
    fn packet(&mut self, at: Time, stage: StageId, op: Op, side: Side, packet: &Packet) {
        self.0.packet(at, stage, op, side, packet);
    }

    #[inline]
    fn delivered(&mut self, at: Time, stage: StageId, flow: FlowKey, bytes: u32) {
        self.0.delivered(at, stage, flow, bytes);
    }

    /// No host has the packet's address: its last stage drops it.
    #[cold]
    fn leave(&mut self, at: Time, stage: StageId, side: Side, packet: Packet) {
        let kind = EventKind::Packet { op: Op::Dropped(Cause::NoSuchConnection), side, packet };
        self.0.event(&Event { at, stage, kind });
    }
}

/// The state of a run. It knows its scenario only by the path, so that it is compiled once.
pub(crate) struct Engine {
    pub(crate) path: Path,
    horizon: Time,
    pub(crate) now: Time,
    /// Deadlines dispatched by the run loop.
    pub(crate) wakes: u64,
    /// Deadlines since time last advanced.
    wakes_now: u32,
    /// Every transfer is over at the host that opened it.
    finished: bool,
    /// The run ends only after all packets have left the path: it has datagrams, for which no host waits.
    drains: bool,
    pub(crate) ended: Option<Reason>,
}

impl Engine {
    pub(crate) fn new(
        scenario: &Scenario,
        seed: u64,
        ends: Ends<'_>,
        interest: Interest,
    ) -> Engine {
        Engine {
            path: Path::with_ends(scenario, seed, interest, |_| HostKind::Ours, ends),
            horizon: Time::ZERO + scenario.horizon,
            now: Time::ZERO,
            wakes: 0,
            wakes_now: 0,
            finished: false,
            drains: scenario.datagrams().next().is_some(),
            ended: None,
        }
    }

    /// A copy in the same state; `None` if a host has another protocol stack.
    pub(crate) fn fork(&self) -> Option<Engine> {
        Some(Engine { path: self.path.fork()?, ..*self })
    }

    /// Continues after the end of the transfers until no deadline is left, for at most `patience`. True if no deadline
    /// is left.
    pub(crate) fn settle(&mut self, patience: Span, mut sink: &mut dyn Sink) -> bool {
        let limit = self.now + patience;
        let mut outside = Void(&mut sink);
        while let Some((at, stage)) = self.path.next_due() {
            if at > limit {
                return false;
            }
            self.now = self.now.max(at);
            self.path.wake_stage(self.now, stage, &mut outside);
        }
        true
    }

    /// Runs until `until`, or until `may_continue` is false; it is called with the path after each deadline.
    pub(crate) fn run_while(
        &mut self,
        until: Time,
        mut sink: &mut dyn Sink,
        may_continue: Option<&dyn Fn(&Path) -> bool>,
    ) {
        self.run(until, &mut sink, may_continue);
    }

    /// The same, compiled for the sink.
    pub(crate) fn run<T: Sink>(
        &mut self,
        until: Time,
        sink: &mut T,
        may_continue: Option<impl Fn(&Path) -> bool>,
    ) {
        if self.ended.is_some() {
            return;
        }
        let horizon = self.horizon;
        let limit = horizon.min(until);
        let mut outside = Void(sink);
        let (mut now, mut wakes_now, mut wakes) = (self.now, self.wakes_now, self.wakes);
        // A stage may run ahead up to the limit, unless the caller checks after each deadline.
        let free = if may_continue.is_some() { 0 } else { limit.0.saturating_add(1) };
        self.path.set_free(Time(free));
        let reason = loop {
            let over = |otherwise| if self.finished { Reason::Finished } else { otherwise };
            let Some((at, stage)) = self.path.next_due() else { break Some(over(Reason::Idle)) };
            if at > limit {
                now = limit;
                break (until >= horizon).then_some(over(Reason::Horizon));
            }
            if at > now {
                now = at;
                wakes_now = 0;
            } else {
                wakes_now += 1;
                if wakes_now > STUCK {
                    break Some(Reason::Stuck);
                }
            }
            wakes += 1;
            debug_assert!(now <= limit, "a deadline after the end of the run: {now}");
            self.path.wake_stage(now, stage, &mut outside);
            debug_assert!(self.path.now() <= limit, "a stage has run beyond the end of the run");
            now = now.max(self.path.now());
            if self.path.take_host_called() {
                if self.path.stuck().is_some() {
                    break Some(Reason::Stuck);
                }
                self.finished = self.path.is_finished();
            }
            if self.finished && !(self.drains && self.path.has_packets()) {
                break Some(Reason::Finished);
            }
            if may_continue.as_ref().is_some_and(|check| !check(&self.path)) {
                break None;
            }
        };
        (self.now, self.wakes_now, self.wakes, self.ended) = (now, wakes_now, wakes, reason);
    }

    /// The end of the run; an unfinished one is cut off here.
    pub(crate) fn end(&self, scenario: &Scenario) -> RunEnd {
        let reason = self.ended.unwrap_or(Reason::Horizon);
        let stages = self.path.stages().iter().enumerate();
        let agent_state = stages
            .filter_map(|(i, stage)| {
                Some((StageId(i as u16), stage.agent()?.peak_state_bytes() as u64))
            })
            .collect();
        RunEnd {
            at: self.now,
            reason,
            stuck: match reason {
                Reason::Stuck => self.path.stuck().or(self.path.next_stage().map(|(_, s)| s)),
                _ => None,
            },
            hops: self.path.hops(),
            wakes: self.wakes + self.path.inner_wakes(),
            limits: self.limits(scenario),
            transfers: self.transfers(scenario).iter().map(Transfer::end).collect(),
            agent_state,
            stages: self.path.counts(),
        }
    }

    /// Limits of the TCPs of hosts, without cross traffic.
    fn limits(&self, scenario: &Scenario) -> Option<Limits> {
        let cross = scenario.transfers.iter().filter(|transfer| transfer.cross);
        let cross: Vec<[Addr; 2]> = cross
            .map(|transfer| [transfer.from, transfer.to].map(|i| scenario.hosts[i].addr))
            .collect();
        let ours = |flow: FlowKey| {
            !cross.contains(&[flow.src, flow.dst]) && !cross.contains(&[flow.dst, flow.src])
        };
        let connections =
            self.path.stages().iter().filter_map(Stage::host).flat_map(Host::connections);
        let ours = connections.filter(|connection| ours(connection.flow));
        Limits::over(ours.map(|sender| (sender.acknowledged(), sender.limits(self.now))))
    }

    /// Each transfer, in the order of [`RunEnd::transfers`].
    pub(crate) fn transfers(&self, scenario: &Scenario) -> Vec<Transfer<'_>> {
        let stage = |i: usize| self.path.stages().get(self.path.host_stages()[i]);
        let host = |i: usize| stage(i).and_then(Stage::host);
        let end = |i: usize| stage(i).and_then(Stage::end);
        // Each host's connections are visited once, for any number of transfers.
        let hosts = 0..scenario.hosts.len();
        let mut ours: Vec<_> = hosts.clone().map(|i| host(i).map(|host| host.opened())).collect();
        let mut theirs: Vec<_> =
            hosts.map(|i| end(i).map(|end| end.opened().into_iter())).collect();
        let mut all = Vec::new();
        for transfer in &scenario.transfers {
            let count = transfer.connections() as usize;
            if let (Some(own), Some(to)) = (&mut theirs[transfer.from], end(transfer.to)) {
                all.extend(own.take(count).map(|sent| {
                    let delivered = to.delivered(sent.flow.reversed());
                    Transfer::Theirs(Box::new(sent), delivered)
                }));
                continue;
            }
            let (Some(own), Some(to)) = (&mut ours[transfer.from], host(transfer.to)) else {
                continue;
            };
            all.extend(own.take(count).map(|sender| Transfer::Ours(sender, Some(to))));
        }
        // The short transfers follow, host by host.
        for own in ours.into_iter().flatten() {
            for sender in own {
                let peer = scenario.hosts.iter().position(|h| h.addr == sender.flow.dst);
                all.push(Transfer::Ours(sender, peer.and_then(host)));
            }
        }
        all
    }
}

/// Bytes delivered in order by the connections of `flow`, seen from its receiver.
fn delivered(sender: &Connection, receiver: &Host) -> u64 {
    let flow = sender.flow.reversed();
    let delivered = receiver.connection(flow).map_or(0, Connection::delivered);
    if delivered >= sender.acknowledged() {
        return delivered;
    }
    // A late SYN may have opened the connection again.
    let all = receiver.connections().iter().filter(|connection| connection.flow == flow);
    all.map(Connection::delivered).max().unwrap_or(0)
}

/// One transfer of a run.
pub(crate) enum Transfer<'a> {
    /// The sender with our TCP, and the receiving host.
    Ours(&'a Connection, Option<&'a Host>),
    /// The state at a sender with another stack, and the bytes delivered by its receiver.
    Theirs(Box<TransferState>, u64),
}

impl Transfer<'_> {
    pub(crate) fn end(&self) -> TransferEnd {
        match self {
            Transfer::Ours(sender, receiver) => TransferEnd {
                wanted: sender.flow_size(),
                delivered: receiver.map_or(0, |host| delivered(sender, host)),
                acknowledged: sender.acknowledged(),
                complete: sender.is_complete(),
                aborted: sender.is_aborted(),
            },
            Transfer::Theirs(sent, delivered) => TransferEnd {
                wanted: sent.wanted,
                delivered: *delivered,
                acknowledged: sent.acknowledged,
                complete: sent.complete,
                aborted: sent.aborted,
            },
        }
    }

    pub(crate) fn control_block(&self) -> Option<Tcb> {
        match self {
            Transfer::Ours(sender, _) => Some(sender.control_block()),
            Transfer::Theirs(..) => None,
        }
    }
}
