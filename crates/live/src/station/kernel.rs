//! The station with the kernel as data plane. Packets in the program's records enter the path. Packets from the
//! path are sent, unless the kernel has already forwarded them.

use std::collections::VecDeque;
use std::io;

use lasthop_observe::{Passage, Sink};
use lasthop_path::{Path, Stage};
use lasthop_proto::agent::{Agent, BaseStation as _, Needs};
use lasthop_proto::event::Interest;
use lasthop_proto::machine::{Out, Side, StageId};
use lasthop_proto::units::Time;
use lasthop_proto::wire::{Flags, FlowKey, PacketId};

use super::{Around, Station};
use crate::plane::{LIMIT, LIMIT_DUPLICATES, Taken};
use crate::port::Port;

/// Maximum number of records that are read from the ring in one turn.
const RECORDS: usize = 2048;

/// Packets that the agent decides about, after it has processed all packets that the kernel forwarded before the
/// decision. It then has the correct order of transmissions.
#[derive(Default)]
pub(super) struct Undecided {
    packets: VecDeque<Taken>,
    /// Position in the ring that must be read before the decision.
    until: u64,
    /// Flows with retransmitted cached packets, the time, and the write position of the ring at that time.
    resent: Option<(Vec<FlowKey>, Time, u64)>,
}

/// The parts of passing packets that the stages of `path` and an observer with `interest` need.
pub(crate) fn needs_of(path: &Path, interest: Interest) -> Needs {
    if interest.has(Interest::DETAIL) {
        return Needs::Everything;
    }
    let needs = path.stages()[path.inner()].iter().map(|stage| match stage {
        Stage::Agent(agent) => agent.needs(),
        _ => Needs::Everything,
    });
    let observer = if interest.has(Interest::PASSAGES) { Needs::Heads } else { Needs::Nothing };
    needs.max().unwrap_or(Needs::Nothing).max(observer)
}

impl Station {
    /// The parts of passing packets that the stages and the observer need.
    pub(crate) fn needs(&self, sink: &dyn Sink) -> Needs {
        needs_of(&self.path, sink.interest())
    }

    /// Sets the needed packets in the program after a change of the path.
    pub(crate) fn adapt(&mut self, sink: &mut dyn Sink) -> io::Result<()> {
        let needs = self.needs(sink);
        let inner = self.path.inner();
        let mut agents = self.path.stages()[inner].iter().filter_map(Stage::agent);
        let ends = agents.any(|agent| matches!(agent, Agent::Split(_)));
        let limit = match needs {
            Needs::Everything => LIMIT,
            _ => LIMIT_DUPLICATES,
        };
        let now = self.clock.monotonic(self.clock.now());
        self.links = ends.then(|| self.links.take().unwrap_or_default());
        if let Some(plane) = &mut self.plane {
            plane.set_limit(limit);
            plane.set_ends(ends, now);
        }
        self.list_endings();
        let Some(was) = self.plane.as_ref().map(|plane| plane.needs()) else { return Ok(()) };
        let listens = self.ports.iter().any(Port::is_listening);
        let everything = needs == Needs::Everything;
        if was == needs && listens == everything {
            return Ok(());
        }
        self.decide(sink);
        if everything && !listens {
            self.ports.iter_mut().try_for_each(|port| port.listen(true))?;
        }
        if let Some(plane) = &mut self.plane {
            plane.set_needs(needs);
            for port in &mut self.ports {
                port.taken = plane.held_from(port.side);
            }
        }
        if !everything {
            for i in 0..self.ports.len() {
                self.take_from(i, sink)?;
                self.close(i)?;
            }
        }
        Ok(())
    }

    /// Stops receiving at port `i`, and discards the received frames.
    pub(super) fn close(&mut self, i: usize) -> io::Result<()> {
        self.ports[i].listen(false)?;
        let Some(mut inbox) = self.ports[i].inbox.take() else { return Ok(()) };
        while inbox.receive(&self.ports[i].socket)? > 0 {}
        self.ports[i].inbox = Some(inbox);
        Ok(())
    }

    /// Number of frames left to packet sockets before port `i` is read: those of this port, and all.
    pub(super) fn mark(&self, i: usize) -> Option<[u64; 2]> {
        let plane = self.plane.as_ref()?;
        let own = plane.held_from(self.ports[i].side);
        Some([own, plane.held_mark()])
    }

    /// Records that port `i` was read after `mark` was taken; `empty` is whether no frame is left.
    pub(super) fn note_read(&mut self, i: usize, mark: Option<[u64; 2]>, empty: bool) {
        let (Some([own, all]), Some(plane)) = (mark, &mut self.plane) else { return };
        plane.report_alive(self.clock.monotonic(self.clock.now()));
        if empty {
            // All frames before the mark count as read, including those that a full buffer has lost.
            self.ports[i].taken = self.ports[i].taken.max(own);
        }
        if self.ports.iter().map(|port| port.taken).sum::<u64>() >= all {
            plane.caught_up(all);
        }
    }

    /// Processes the records of the program after the station has woken.
    pub(super) fn attend_plane(&mut self, sink: &mut dyn Sink) -> io::Result<()> {
        let Some(plane) = &mut self.plane else { return Ok(()) };
        match plane.needs() {
            Needs::Everything if plane.ends() => self.rejoin(sink)?,
            Needs::Everything if plane.is_stale() => self.handle_absence(sink)?,
            Needs::Nothing | Needs::Everything => {}
            Needs::Heads | Needs::Duplicates => {
                plane.awake();
                let all = self.take_records(sink);
                self.settle(all, sink);
                self.flush();
                if self.undecided.packets.is_empty() {
                    self.expire(sink);
                }
            }
        }
        Ok(())
    }

    /// Passes the forwarded packets to the agent. Returns whether the ring is empty.
    fn take_records(&mut self, sink: &mut dyn Sink) -> bool {
        let now = self.clock.monotonic(self.clock.now());
        for _ in 0..RECORDS {
            let Some(plane) = &mut self.plane else { return true };
            let Some(taken) = plane.take(now) else { return true };
            if taken.last {
                if self.undecided.packets.is_empty() {
                    self.undecided.until = plane.written();
                }
                self.undecided.packets.push_back(taken);
            } else {
                self.show(taken, sink);
            }
        }
        if let Some(plane) = &mut self.plane {
            plane.has_more();
        }
        false
    }

    /// Starts the agent's decisions once it has processed all earlier packets. `all` is whether the ring is empty.
    fn settle(&mut self, all: bool, sink: &mut dyn Sink) {
        let read = self.plane.as_ref().map_or(0, |plane| plane.position());
        let resent = &mut self.undecided.resent;
        if let Some((flows, at, _)) = resent.take_if(|(_, _, until)| all || *until <= read) {
            for flow in flows {
                self.each_agent(at, sink, |agent, _| agent.overtaken(at, flow));
            }
        }
        let Undecided { packets, until, resent } = &self.undecided;
        if packets.len() >= RECORDS || resent.is_none() && (all || *until <= read) {
            self.decide(sink);
        }
    }

    /// Passes all packets that wait for a decision to the agent.
    fn decide(&mut self, sink: &mut dyn Sink) {
        while let Some(taken) = self.undecided.packets.pop_front() {
            self.show(taken, sink);
        }
    }

    /// Records the position in the ring of the agent's retransmissions.
    pub(super) fn mark_resent(&mut self) {
        let Some(plane) = &self.plane else { return };
        let mut flows = plane.resent();
        if flows.is_empty() {
            return;
        }
        let before = self.undecided.resent.take().map_or(Vec::new(), |(before, ..)| before);
        flows.retain(|flow| !before.contains(flow));
        flows.extend(before.into_iter().take(RECORDS));
        self.undecided.resent = Some((flows, self.clock.now(), plane.written()));
    }

    /// Passes a packet of a record to the path.
    fn show(&mut self, taken: Taken, sink: &mut dyn Sink) {
        let Taken { side, place, forwarded, diverted, .. } = taken;
        let port = self.ports.iter().find(|port| port.side == side);
        let stage = port.map_or(StageId(0), |port| port.stage);
        let now = self.moment(self.clock.from_monotonic(taken.at));
        if let Some(mut packet) = taken.packet {
            packet.id = PacketId(u64::from(stage.0) << 48 | self.next_id);
            self.next_id += 1;
            let speaks = |flags: Flags| flags.any(Flags::SYN | Flags::FIN);
            let updates_neighbours = diverted || packet.segment().is_some_and(|s| speaks(s.flags));
            if updates_neighbours
                && let Some(link) = self.plane.as_ref().and_then(|p| p.link_header(place))
            {
                self.neighbours.learn(side, packet.src, &link);
                self.neighbours.learn_destination(side.other(), packet.src, packet.dst, &link);
            }
            let passage = if forwarded && !diverted { Passage::Copied } else { Passage::In };
            sink.passage(now, side.other(), &packet, passage);
            let current = Some((packet.id, place, forwarded));
            let Station { path, ports, neighbours, unroutable, plane, links, .. } = self;
            let (plane, links) = (plane.as_ref(), links.as_ref());
            let mut around = Around { sink, ports, neighbours, unroutable, plane, current, links };
            path.enter(now, stage, packet, &mut around);
        } else if !forwarded
            && let Some(frame) = self.plane.as_ref().and_then(|plane| plane.frame(place))
        {
            self.send_to(side.other(), frame);
        }
        if diverted && let Some(plane) = &mut self.plane {
            plane.handled();
        }
    }

    fn send_to(&mut self, side: Side, frame: crate::frame::Outgoing) {
        if let Some(port) = self.ports.iter_mut().find(|port| port.side == side) {
            port.counts.passed += 1;
            port.outbox.push(frame);
        }
    }

    /// Releases a part of the ring, after the agents have removed their packets in it.
    fn expire(&mut self, sink: &mut dyn Sink) {
        if let Some(before) = self.plane.as_mut().and_then(|plane| plane.outdated()) {
            // These packets were acknowledged meanwhile, or repaired by the sender.
            self.forget(before, sink);
        }
        if let Some(before) = self.plane.as_ref().and_then(|plane| plane.expires()) {
            let forgotten = self.forget(before, sink);
            if let Some(plane) = &mut self.plane {
                plane.expire(before, forgotten);
            }
        }
    }

    /// Removes the agents' packets in the ring before `before`. Returns their number of bytes.
    fn forget(&mut self, before: u64, sink: &mut dyn Sink) -> u64 {
        let mut forgotten = 0;
        self.each_agent(Time::ZERO, sink, |agent, out| {
            forgotten += agent.forget_held(before, out);
        });
        forgotten
    }

    /// Calls each agent at `at`, or later if later events were passed to the stages.
    pub(super) fn each_agent(
        &mut self,
        at: Time,
        sink: &mut dyn Sink,
        mut call: impl FnMut(&mut Agent, &mut Out),
    ) {
        let now = self.moment(at);
        for i in self.path.inner() {
            let Station { path, ports, neighbours, unroutable, links, .. } = self;
            let (plane, current, links) = (None, None, links.as_ref());
            let mut around = Around { sink, ports, neighbours, unroutable, plane, current, links };
            path.call(now, i, &mut around, |stage, out| {
                if let Some(agent) = stage.agent_mut() {
                    call(agent, out);
                }
            });
        }
    }
}
