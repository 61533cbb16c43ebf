//! The base station: a path between network interfaces, and the loop that drives it.
//!
//! One thread waits for frames, for the earliest timer of a stage, and for requests of other threads. Frames are
//! received and sent in batches. If no stage and no observer reads the packets, frames are forwarded in their receive
//! buffers.

mod endings;
mod kernel;
mod links;

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use lasthop_observe::{Passage, Sink};
use lasthop_path::{Outside, Path, Stage};
use lasthop_proto::agent::Agent;
use lasthop_proto::event::{Cause, Event, EventKind, Interest, Op};
use lasthop_proto::machine::{Side, StageId};
use lasthop_proto::units::{Span, Time};
use lasthop_proto::wire::{Addr, Packet, PacketId};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};
use nix::sys::eventfd::{EfdFlags, EventFd};

use crate::alarm::Alarm;
use crate::clock::Clock;
use crate::frame::{self, Incoming, Outgoing};
use crate::neighbours::{Neighbour, Neighbours};
use crate::plane::Plane;
use crate::sys::packet_socket::{BATCH, Inbox};
use crate::sys::slice;

pub use crate::port::{Port, PortCounts};
use endings::Absence;
use kernel::Undecided;
pub(crate) use kernel::needs_of;
use links::Links;

/// Maximum number of batches from one interface in one turn.
const BATCHES: usize = 4;

/// Interval of interface maintenance.
const LOOK_AFTER: Span = Span::millis(100);

/// Event data of the timer and the bell; other events have the index of a port.
const TIMER: u64 = u64::MAX;
const BELL: u64 = u64::MAX - 1;
const RING: u64 = u64::MAX - 2;

/// Maximum time of an errand; a stopped station does not answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Maximum number of consecutive timers before frames are read again.
const WAKES: usize = 4096;

/// A function that the loop calls between two rounds.
type Errand = Box<dyn FnOnce(&mut Station) + Send>;

/// Access to a running station from another thread.
#[derive(Clone)]
pub struct Handle {
    errands: Sender<Errand>,
    bell: Arc<EventFd>,
}

impl Handle {
    /// Calls `errand` in the station's loop and returns its result; `None` if the station has ended or does not run.
    pub fn ask<T: Send + 'static>(
        &self,
        errand: impl FnOnce(&mut Station) -> T + Send + 'static,
    ) -> Option<T> {
        let (answer, answered) = channel();
        self.errands
            .send(Box::new(move |station| {
                // The caller may have stopped waiting.
                let _ = answer.send(errand(station));
            }))
            .ok()?;
        self.bell.write(1).ok()?;
        answered.recv_timeout(PATIENCE).ok()
    }
}

/// The base station.
pub struct Station {
    path: Path,
    ports: Vec<Port>,
    neighbours: Neighbours,
    clock: Clock,
    next_id: u64,
    unroutable: u64,
    looked_after: Time,
    stopping: bool,
    errands: Receiver<Errand>,
    handle: Handle,
    /// The kernel's data plane; without it packet sockets forward everything.
    plane: Option<Plane>,
    undecided: Undecided,
    /// Split connections to reset after the kernel has waited too long for this station.
    absence: Option<Absence>,
    /// Link headers of split connections, if an agent splits connections.
    links: Option<Links>,
    /// Latest time that was passed to the stages.
    stage_time: Time,
}

/// Environment of the path: the observer, and the interfaces.
struct Around<'a> {
    sink: &'a mut dyn Sink,
    ports: &'a mut [Port],
    neighbours: &'a mut Neighbours,
    unroutable: &'a mut u64,
    plane: Option<&'a Plane>,
    /// The packet of the ring that is being processed, the position of its record, and whether it must not be forwarded.
    current: Option<(PacketId, u64, bool)>,
    links: Option<&'a Links>,
}

impl Outside for Around<'_> {
    fn event(&mut self, event: &Event) {
        self.sink.event(event);
    }

    fn packet(&mut self, at: Time, stage: StageId, op: Op, side: Side, packet: &Packet) {
        self.sink.packet(at, stage, op, side, packet);
    }

    fn leave(&mut self, now: Time, stage: StageId, side: Side, packet: Packet) {
        if matches!(self.current, Some((id, _, true)) if id == packet.id) {
            return;
        }
        if let Some(frame) = self.frame(side, &packet)
            && self.post(stage, side, &packet, frame)
        {
            self.sink.passage(now, side, &packet, Passage::Out);
            return;
        }
        *self.unroutable += 1;
        if self.sink.interest().has(Interest::METRICS) {
            let kind = EventKind::Packet { op: Op::Dropped(Cause::NoSuchConnection), side, packet };
            self.sink.event(&Event { at: now, stage, kind });
        }
    }
}

impl Around<'_> {
    /// The frame of `packet` towards `side`.
    fn frame(&mut self, side: Side, packet: &Packet) -> Option<Outgoing> {
        if let Some((id, place, _)) = self.current
            && id == packet.id
        {
            return self.plane?.judged(place, packet);
        }
        if packet.body.held_at().is_some() {
            return self.plane?.cached(packet);
        }
        // An agent that splits connections makes segments of payload, which could imitate a frame.
        let arrived = self.ports.iter().any(|port| u64::from(port.stage.0) == packet.id.0 >> 48);
        if arrived || self.links.is_none() || packet.segment().is_none() {
            if let Some(same) = frame::untouched(packet) {
                return Some(same);
            }
            if let Some(link) = frame::own_link_header(packet) {
                return frame::write(packet, link);
            }
        }
        let link = self.neighbours.link_header(side, packet.src, packet.dst);
        let link = link.or_else(|| self.links?.towards(side, packet))?;
        frame::write(packet, &link)
    }

    /// Queues `frame` at its interface. Returns false if there is none.
    fn post(&mut self, stage: StageId, side: Side, packet: &Packet, frame: Outgoing) -> bool {
        // A witness has its own interface. A frame without one, or to a multicast address, is sent at all interfaces of the side.
        let own = |port: &Port| port.side == side && port.stage == stage;
        let all = packet.dst.is_multicast() || !self.ports.iter().any(own);
        let mut places = self.ports.iter_mut().filter(|port| own(port) || all && port.side == side);
        let Some(mut place) = places.next() else { return false };
        for next in places {
            place.outbox.push(frame.clone());
            place = next;
        }
        let outbox = if packet.urgent { &mut place.urgent } else { &mut place.outbox };
        outbox.push(frame);
        true
    }
}

impl Station {
    /// A station that drives `path` between `ports`.
    ///
    /// # Errors
    /// If the system has no event descriptor.
    pub fn new(path: Path, ports: Vec<Port>, clock: Clock) -> io::Result<Station> {
        let (sender, errands) = channel();
        let bell = EventFd::from_flags(EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC)?;
        Ok(Station {
            path,
            ports,
            neighbours: Neighbours::default(),
            clock,
            next_id: 0,
            unroutable: 0,
            looked_after: Time::ZERO,
            stopping: false,
            errands,
            handle: Handle { errands: sender, bell: Arc::new(bell) },
            plane: None,
            undecided: Undecided::default(),
            absence: None,
            links: None,
            stage_time: Time::ZERO,
        })
    }

    /// Makes the kernel forward with `plane`, which is between the interfaces of the two ports.
    ///
    /// # Errors
    /// If an interface has disappeared.
    pub fn set_plane(&mut self, plane: Plane) -> io::Result<()> {
        self.plane = Some(plane);
        // The kernel has already forwarded the frames that arrived since the plane was started.
        (0..self.ports.len()).try_for_each(|i| self.close(i))
    }

    /// The kernel's data plane, if it is used.
    pub fn plane(&self) -> Option<&Plane> {
        self.plane.as_ref()
    }

    /// Access to the running station for other threads.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// The stages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The stages, mutable, for errands.
    pub fn path_mut(&mut self) -> &mut Path {
        &mut self.path
    }

    /// The station's clock.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// The interfaces with their counts.
    pub fn port_counts(&self) -> impl Iterator<Item = (&str, PortCounts)> {
        self.port_status().map(|(name, _, counts)| (name, counts))
    }

    /// The same, with the side of each interface.
    pub fn port_status(&self) -> impl Iterator<Item = (&str, Side, PortCounts)> {
        let passed = self.plane.as_ref().map(Plane::passed);
        let counts = move |port: &Port| port.counts.with(passed, port.side);
        self.ports.iter().map(move |port| (port.name.as_str(), port.side, counts(port)))
    }

    /// Adds the MAC address of a host that sends no frames.
    pub fn add_neighbour(&mut self, addr: Addr, mac: [u8; 6]) {
        for side in [Side::Left, Side::Right] {
            self.neighbours.insert(side, addr, Neighbour::untagged(mac));
        }
    }

    /// Number of packets that were lost because no host has their address, because its location is unknown, or
    /// because they cannot be serialized.
    pub fn unroutable(&self) -> u64 {
        self.unroutable
    }

    /// Names of the interfaces that no longer exist.
    pub fn gone(&self) -> Vec<String> {
        let gone = self.ports.iter().filter(|port| port.socket.is_gone());
        gone.map(|port| port.name.clone()).collect()
    }

    /// Ends the kernel's forwarding after an interface was removed. The base filter would reset connections that end here.
    pub(crate) fn detach(&mut self) {
        self.plane.take().iter().for_each(Plane::abandon);
        self.undecided = Undecided::default();
        self.absence = None;
    }

    /// Opens the interfaces with these indices in place of the earlier ones, with a plane between them that is not
    /// attached yet. Frames that wait for them are lost, and connections continue.
    ///
    /// # Errors
    /// If an interface has disappeared again, or the plane cannot be attached.
    pub(crate) fn reopen(
        &mut self,
        indices: [u32; 2],
        plane: Option<Plane>,
        sink: &mut dyn Sink,
    ) -> io::Result<()> {
        self.ports.iter_mut().zip(indices).try_for_each(|(port, index)| port.reopen(index))?;
        let Some(plane) = plane else { return Ok(()) };
        self.set_plane(plane)?;
        // The kernel needs the list of split connections first: it would forward their packets to the other end.
        self.adapt(sink)?;
        let attached = self.plane.as_mut().map_or(Ok(()), Plane::attach);
        attached.map_err(|refusal| refusal.error)
    }

    /// Runs the requests of other threads. Returns whether there were any.
    fn run_errands(&mut self) -> bool {
        let mut any = false;
        while let Ok(errand) = self.errands.try_recv() {
            errand(self);
            any = true;
        }
        any
    }

    /// Serves other threads while the station does not run. Returns false after [`Station::stop`].
    pub fn wait(&mut self) -> bool {
        self.run_errands();
        !self.stopping
    }

    /// Ends [`Station::run`] after this round.
    pub fn stop(&mut self) {
        self.stopping = true;
    }

    /// Runs until [`Station::stop`] is called, or `attend` returns false, which is called after each round.
    ///
    /// # Errors
    /// If an interface disappears ([`Station::gone`]), or the system cannot wait for events.
    pub fn run(
        &mut self,
        sink: &mut dyn Sink,
        attend: &mut dyn FnMut(&mut Station, &mut dyn Sink, Time) -> bool,
    ) -> io::Result<()> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        let mut alarm = Alarm::new()?;
        let bell = self.handle.bell.clone();
        let watch = |fd, tag| epoll.add(fd, EpollEvent::new(EpollFlags::EPOLLIN, tag));
        for (i, port) in self.ports.iter().enumerate() {
            watch(port.socket.as_fd(), i as u64)?;
        }
        watch(alarm.as_fd(), TIMER)?;
        watch(bell.as_fd(), BELL)?;
        if let Some(plane) = &self.plane {
            plane.watch(&epoll, RING)?;
            // Diverted packets wait for this thread. If the short time slice is denied, they wait longer.
            let _ = slice::shorten();
        }
        self.adapt(sink)?;
        self.plane.iter_mut().for_each(Plane::stays);
        let mut ready = [EpollEvent::empty(); 64];
        self.stopping = false;
        loop {
            let doze = alarm.set(self.clock, self.path.next_wake())?;
            let doze = self.plane.as_mut().map_or(doze, |plane| plane.doze(doze));
            let count = match epoll.wait(&mut ready, doze) {
                Ok(count) => count,
                Err(nix::errno::Errno::EINTR) => 0,
                Err(error) => return Err(error.into()),
            };
            self.attend_plane(sink)?;
            for event in &ready[..count] {
                match event.data() {
                    TIMER => alarm.rang(),
                    // An unread bell stays ready, and the thread would never sleep again.
                    BELL => {
                        let _ = bell.read();
                    }
                    RING => {}
                    port => self.take_from(port as usize, sink)?,
                }
            }
            self.wake_due(sink);
            if self.run_errands() {
                self.adapt(sink)?;
            }
            let now = self.clock.now();
            if now.since(self.looked_after) >= LOOK_AFTER {
                self.looked_after = now;
                self.ports.iter_mut().try_for_each(Port::poll_drops)?;
                if self.path.retire_agents() {
                    self.adapt(sink)?;
                }
            }
            let on = attend(self, sink, now);
            self.flush();
            if self.stopping || !on {
                return self.ports.iter_mut().try_for_each(Port::poll_drops);
            }
        }
    }

    /// Processes the frames that have arrived at port `i`, at most a few batches, so that other work gets its turn.
    fn take_from(&mut self, i: usize, sink: &mut dyn Sink) -> io::Result<()> {
        let transparent = self.is_transparent(sink);
        self.path.set_bulk(true);
        let Some(mut inbox) = self.ports.get_mut(i).and_then(|port| port.inbox.take()) else {
            return Ok(());
        };
        let mut result = Ok(BATCH);
        for _ in 0..BATCHES {
            let mark = self.mark(i);
            result = self.ports[i].receive(&mut inbox);
            if transparent {
                self.pass_all(i, &inbox);
            } else if self.is_behind() {
                self.sort(i, &inbox, sink);
                self.flush();
            } else {
                self.pass_frames(i, inbox.frames(), sink);
                self.flush();
            }
            self.note_read(i, mark, matches!(result, Ok(count) if count < BATCH));
            if !matches!(result, Ok(BATCH)) {
                break;
            }
        }
        self.ports[i].inbox = Some(inbox);
        result.map(|_| ())
    }

    /// `at`, or the latest time that was passed to the stages if that is later: their time does not go back.
    fn moment(&mut self, at: Time) -> Time {
        self.stage_time = self.stage_time.max(at);
        self.stage_time
    }

    fn wake_due(&mut self, sink: &mut dyn Sink) {
        let now = self.moment(self.clock.now());
        let Station { path, ports, neighbours, unroutable, plane, links, .. } = self;
        let (plane, links) = (plane.as_ref(), links.as_ref());
        let mut around =
            Around { sink, ports, neighbours, unroutable, plane, current: None, links };
        for _ in 0..WAKES {
            if path.next_wake().is_none_or(|at| at > now) {
                break;
            }
            path.wake(now, &mut around);
        }
    }

    /// Passes the frames of port `i` to the path.
    fn pass_frames<'a>(
        &mut self,
        i: usize,
        frames: impl Iterator<Item = &'a [u8]>,
        sink: &mut dyn Sink,
    ) {
        let place = (self.ports[i].stage, self.ports[i].side);
        let now = self.moment(self.clock.now());
        let read = if self.path.is_bulk() { frame::read_whole } else { frame::read };
        for bytes in frames {
            if self.plane.is_some() {
                if frame::is_wrapped(bytes) {
                    continue;
                }
                self.ports[i].taken += 1;
            }
            self.ports[i].counts.received_bytes += bytes.len() as u64;
            let packets = match read(bytes) {
                Incoming::Packet(packet) => {
                    self.enter(now, place, packet, bytes, sink);
                    continue;
                }
                Incoming::Packets(packets) => packets,
                other => {
                    if let Some((addr, mac, link)) = frame::announcement(bytes) {
                        self.neighbours.announce(place.1, addr, mac, link);
                    }
                    let counts = &mut self.ports[i].counts;
                    counts.passed += 1;
                    counts.malformed += u64::from(matches!(other, Incoming::Malformed));
                    let frame: Arc<[u8]> = bytes.into();
                    for port in self.ports.iter_mut().filter(|port| port.side != place.1) {
                        port.outbox.push(Outgoing::Same(frame.clone()));
                    }
                    continue;
                }
            };
            for packet in packets {
                self.enter(now, place, packet, bytes, sink);
            }
        }
    }

    fn enter(
        &mut self,
        now: Time,
        (stage, side): (StageId, Side),
        mut packet: Packet,
        frame: &[u8],
        sink: &mut dyn Sink,
    ) {
        packet.id = PacketId(u64::from(stage.0) << 48 | self.next_id);
        self.next_id += 1;
        if let Some(link) = frame::link_header(frame) {
            self.neighbours.learn(side, packet.src, link);
            self.neighbours.learn_destination(side.other(), packet.src, packet.dst, link);
        }
        sink.passage(now, side.other(), &packet, Passage::In);
        let Station { path, ports, neighbours, unroutable, plane, links, .. } = self;
        let (plane, links) = (plane.as_ref(), links.as_ref());
        let mut around =
            Around { sink, ports, neighbours, unroutable, plane, current: None, links };
        path.enter(now, stage, packet, &mut around);
    }

    /// Calls one of our hosts, as its application does.
    pub fn call(
        &mut self,
        stage: usize,
        sink: &mut dyn Sink,
        call: impl FnOnce(&mut Stage, &mut lasthop_proto::machine::Out),
    ) {
        let now = self.moment(self.clock.now());
        let Station { path, ports, neighbours, unroutable, plane, links, .. } = self;
        let (plane, links) = (plane.as_ref(), links.as_ref());
        let mut around =
            Around { sink, ports, neighbours, unroutable, plane, current: None, links };
        path.call(now, stage, &mut around, call);
    }

    /// Whether frames may be forwarded unread: between two interfaces, without a stage or observer that reads them.
    fn is_transparent(&self, sink: &dyn Sink) -> bool {
        let inner = self.path.inner();
        let passes = |(i, stage): (usize, &Stage)| match stage {
            Stage::Agent(agent) => matches!(**agent, Agent::None(_)),
            Stage::Witness(_) => !inner.contains(&i),
            _ => false,
        };
        matches!(&self.ports[..], [a, b] if a.side != b.side)
            && sink.interest() == Interest::NOTHING
            && self.path.stages().iter().enumerate().all(passes)
    }

    fn pass_all(&mut self, from: usize, inbox: &Inbox) {
        let (mut frames, mut count) = ([&[][..]; BATCH], 0);
        for (place, frame) in frames.iter_mut().zip(inbox.frames()) {
            (*place, count) = (frame, count + 1);
            self.ports[from].counts.received_bytes += frame.len() as u64;
        }
        if let Some(to) = self.ports.get_mut(1 - from) {
            to.send(&frames[..count]);
        }
    }

    fn flush(&mut self) {
        // The kernel must list a connection that ends here before any of its packets are sent.
        self.report_endings();
        self.ports.iter_mut().for_each(Port::flush);
        self.mark_resent();
    }
}
