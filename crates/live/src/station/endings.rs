//! Connections that end at the station, and the kernel's actions on them and on others during an absence of the
//! station.
//!
//! A kernel that is the data plane has a list of the connections that end here. If the station makes no progress,
//! the kernel soon forwards other connections, and later resets the ends of listed ones (`plane/absence.rs`). The
//! packet sockets have all frames that arrived meanwhile.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use lasthop_observe::Sink;
use lasthop_path::Stage;
use lasthop_proto::agent::{Agent, AgentConfig, BaseStation as _, Bypass, Ending, Router};
use lasthop_proto::machine::Side;
use lasthop_proto::units::Span;
use lasthop_proto::wire::FlowKey;

use super::Station;
use crate::frame;
use crate::sys::packet_socket::Inbox;

/// Maximum absence after which a station still processes the frames in its packet sockets.
const AWAY: Span = Span::millis(100);

/// Maximum number of batches that are processed before other work.
const SORTED: usize = 64;

/// Split connections to reset after the kernel has waited too long for the station.
#[derive(Debug, Default)]
pub(super) struct Absence {
    /// Duration of the station's absence.
    silence: Span,
    /// Connections that the kernel has reset.
    lost: BTreeMap<FlowKey, Bypass>,
    /// By side: frames that the kernel has forwarded before the packet socket was empty.
    before: [u64; 2],
    /// By side: frames that the kernel has forwarded since then, and that the station has not read.
    since: [u64; 2],
}

impl Station {
    /// Connections that end at the agent of stage `i`.
    pub fn endings(&self, i: usize) -> usize {
        self.path.stages().get(i).and_then(Stage::agent).map_or(0, |agent| agent.endings())
    }

    /// Connections that end at any agent.
    pub fn all_endings(&self) -> usize {
        self.path.inner().map(|i| self.endings(i)).sum()
    }

    /// Lets new connections pass, while those that end at an agent continue. Returns their number.
    pub fn drain_endings(&mut self) -> usize {
        for i in self.path.inner() {
            if self.endings(i) > 0 {
                let none = Agent::new(&AgentConfig::None(Router));
                self.path.replace_stage(i, Stage::Agent(Box::new(none)));
            }
        }
        self.all_endings()
    }

    /// Aborts the connections that end at the agent of stage `i`, and resets both ends of each. Returns their number.
    pub fn reset_endings(&mut self, i: usize, sink: &mut dyn Sink) -> usize {
        let count = self.endings(i);
        if count > 0 {
            let now = self.clock.now();
            self.call(i, sink, |stage, out| {
                if let Some(agent) = stage.agent_mut() {
                    agent.reset_endings(now, out);
                }
            });
            self.flush();
        }
        count
    }

    /// Updates the lists of connections that end here, the station's and the kernel's, after a change of the path.
    pub(super) fn list_endings(&mut self) {
        let mut all = Vec::new();
        for i in self.path.inner() {
            if let Some(agent) = self.path.stage_mut(i).and_then(Stage::agent_mut) {
                agent.report_endings(true, &mut |ending| all.push(ending));
            }
        }
        let flows: BTreeSet<FlowKey> = all.iter().map(|ending| ending.flow).collect();
        self.plane.iter_mut().for_each(|plane| plane.retain_endings(&flows));
        self.links.iter_mut().for_each(|links| links.retain(&flows));
        let is_listed = |ending: &Ending| match (&self.plane, &self.links) {
            (Some(plane), _) => plane.ends_here(ending.flow),
            (None, Some(links)) => links.has(ending.flow),
            (None, None) => false,
        };
        all.retain(|ending| !is_listed(ending));
        all.into_iter().for_each(|ending| self.note_ending(ending));
    }

    /// Adds new connections that end here to both lists, and removes others.
    pub(super) fn report_endings(&mut self) {
        if self.links.is_none() {
            return;
        }
        let mut changed = Vec::new();
        for i in self.path.inner() {
            if let Some(agent) = self.path.stage_mut(i).and_then(Stage::agent_mut) {
                agent.report_endings(false, &mut |ending| changed.push(ending));
            }
        }
        changed.into_iter().for_each(|ending| self.note_ending(ending));
    }

    fn note_ending(&mut self, ending: Ending) {
        let Ending { flow, is_over, resumes } = ending;
        if is_over {
            self.plane.iter_mut().for_each(|plane| plane.remove_ending(flow));
            self.links.iter_mut().for_each(|links| links.remove(flow));
            return;
        }
        let mut link = |side, src, dst| self.neighbours.link_header(side, src, dst);
        let links = [link(Side::Left, flow.dst, flow.src), link(Side::Right, flow.src, flow.dst)];
        let links = links.map(Option::unwrap_or_default);
        if let Some(plane) = &mut self.plane {
            // Without memory in the kernel it is not listed. It then loses both ends when the station is absent.
            let _ = plane.add_ending(flow, resumes, links.clone());
        }
        if let Some(stored) = &mut self.links {
            stored.insert(flow, links);
        }
    }

    /// Whether frames of packet sockets may have been forwarded by the kernel, where connections end here.
    pub(super) fn is_behind(&self) -> bool {
        let behind = self
            .plane
            .as_ref()
            .is_some_and(|plane| plane.ends() && (plane.is_stale() || plane.has_lost()));
        behind || self.absence.is_some()
    }

    /// Reports to the kernel that the station is awake, if connections end here. After a long absence it processes
    /// the kernel's actions.
    pub(super) fn rejoin(&mut self, sink: &mut dyn Sink) -> io::Result<()> {
        let now = self.clock.monotonic(self.clock.now());
        let Some(plane) = &mut self.plane else { return Ok(()) };
        let silence = plane.silence(now);
        plane.report_alive(now);
        if !self.is_behind() {
            return Ok(());
        }
        let absence = self.absence.get_or_insert_default();
        absence.silence = absence.silence.max(silence);
        let mut is_empty = true;
        for i in 0..self.ports.len() {
            is_empty &= self.drain(i, true, sink)?;
        }
        if !is_empty {
            // Timers and errands must run as well.
            self.flush();
            return Ok(());
        }
        if let (Some(plane), Some(absence)) = (&mut self.plane, &mut self.absence) {
            plane.resume();
            for side in [Side::Left, Side::Right] {
                let i = side.index();
                absence.since[i] = plane.passed_from(side) - absence.before[i];
            }
        }
        for i in 0..self.ports.len() {
            self.drain(i, false, sink)?;
        }
        let lost = self.absence.take().map(|absence| absence.lost).unwrap_or_default();
        if let Some(plane) = &self.plane {
            for port in &mut self.ports {
                port.taken = plane.held_from(port.side);
            }
        }
        for (flow, bypass) in lost {
            self.bypass(flow, bypass, sink);
        }
        self.flush();
        Ok(())
    }

    fn bypass(&mut self, flow: FlowKey, bypass: Bypass, sink: &mut dyn Sink) {
        let now = self.clock.now();
        self.each_agent(now, sink, |agent, out| agent.bypass(now, flow, bypass, out));
    }

    /// Processes the received frames of port `i`, and returns whether it is empty. `forwards` is whether the kernel
    /// still forwards.
    fn drain(&mut self, i: usize, forwards: bool, sink: &mut dyn Sink) -> io::Result<bool> {
        let Some(mut inbox) = self.ports[i].inbox.take() else { return Ok(true) };
        let side = self.ports[i].side;
        let mut is_empty = false;
        for _ in 0..SORTED {
            let passed = self.plane.as_ref().map_or(0, |plane| plane.passed_from(side));
            if self.ports[i].receive(&mut inbox)? == 0 {
                if let Some(absence) = self.absence.as_mut().filter(|_| forwards) {
                    absence.before[side.index()] = passed;
                }
                is_empty = true;
                break;
            }
            self.sort(i, &inbox, sink);
            // The kernel must not reset connections whose frames are processed next.
            let now = self.clock.monotonic(self.clock.now());
            self.plane.iter_mut().for_each(|plane| plane.report_alive(now));
        }
        self.ports[i].inbox = Some(inbox);
        Ok(is_empty)
    }

    /// Processes the frames of a batch of port `i` that the kernel has left to the station.
    pub(super) fn sort(&mut self, i: usize, inbox: &Inbox, sink: &mut dyn Sink) {
        let side = self.ports[i].side;
        let Some(plane) = &mut self.plane else { return };
        let absence = self.absence.get_or_insert_default();
        if plane.has_lost() {
            absence.lost.extend(plane.lost());
        }
        let is_stale = plane.is_stale();
        // The first ones arrived before the kernel started to forward.
        let mut held = plane.marked_from(side).saturating_sub(self.ports[i].taken);
        let (mut own, mut syns, mut late, mut stale) = (Vec::new(), Vec::new(), 0, 0);
        for frame in inbox.frames() {
            if frame::is_wrapped(frame) {
                continue;
            }
            let is_held = is_stale && held > 0;
            held = held.saturating_sub(1);
            let seen = frame::connection(frame).map(|(flow, syn)| match side {
                Side::Left => (flow, syn),
                Side::Right => (flow.reversed(), syn),
            });
            let flow = seen.map(|(flow, _)| flow);
            let is_lost = flow.is_some_and(|flow| absence.lost.contains_key(&flow));
            if !is_lost && flow.is_some_and(|flow| plane.ends_here(flow)) {
                own.push(frame);
                continue;
            }
            let since = &mut absence.since[side.index()];
            let is_forwarded = match is_stale {
                true => !is_held,
                false => *since > 0,
            };
            if is_forwarded && !is_stale {
                *since -= 1;
            }
            if is_lost || is_forwarded {
                stale += 1;
                self.ports[i].taken += u64::from(is_held);
                syns.extend(seen.and_then(|(flow, syn)| Some((flow, syn?))));
            } else if is_held && absence.silence >= AWAY {
                late += 1;
                self.ports[i].taken += 1;
            } else {
                own.push(frame);
            }
        }
        plane.missed(late, stale);
        for (flow, seq) in syns {
            self.bypass(flow, Bypass::Passed(seq), sink);
        }
        self.pass_frames(i, own.into_iter(), sink);
    }

    /// Handles an absence after which the program has forwarded frames that the sockets have received as well.
    pub(super) fn handle_absence(&mut self, sink: &mut dyn Sink) -> io::Result<()> {
        let Some(plane) = &self.plane else { return Ok(()) };
        let away = plane.away(self.clock.monotonic(self.clock.now()));
        for i in 0..self.ports.len() {
            let Some(mut inbox) = self.ports[i].inbox.take() else { continue };
            loop {
                let held = self.plane.as_ref().map_or(0, |p| p.held_from(self.ports[i].side));
                if self.ports[i].receive(&mut inbox)? == 0 {
                    break;
                }
                // The first ones were not forwarded; the kernel has forwarded the others.
                let ours = held.saturating_sub(self.ports[i].taken) as usize;
                let count = inbox.frames().len();
                let (mut late, stale) = (0, count.saturating_sub(ours));
                if away < AWAY {
                    self.pass_frames(i, inbox.frames().take(ours), sink);
                } else {
                    late = count - stale;
                    self.ports[i].taken += late as u64;
                }
                if let Some(plane) = &mut self.plane {
                    plane.missed(late as u64, stale as u64);
                }
            }
            self.ports[i].inbox = Some(inbox);
        }
        if let Some(plane) = &mut self.plane {
            plane.resume();
            for port in &mut self.ports {
                port.taken = plane.held_from(port.side);
            }
        }
        self.flush();
        Ok(())
    }
}
