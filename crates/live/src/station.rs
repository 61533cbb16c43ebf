//! The base station: a path between network interfaces, and the loop that drives it.
//!
//! One thread waits for frames, for the earliest wake of a stage, and for what other threads ask of it. Frames come
//! and go in batches. Where no stage looks into packets and nobody watches, frames are passed on in the buffers
//! they were received in.

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use lasthop_path::{Outside, Path, Stage};
use lasthop_proto::agent::Agent;
use lasthop_proto::event::{Cause, Event, Op, Wants, What};
use lasthop_proto::machine::{Side, StageId};
use lasthop_proto::units::{Span, Time};
use lasthop_proto::wire::{Addr, Packet, PacketId};
use lasthop_trace::Sink;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};

use crate::clock::Clock;
use crate::frame::{self, Incoming, Outgoing};
use crate::neighbours::{Neighbour, Neighbours};
use crate::sys::packet_socket::{BATCH, Inbox, PacketSocket};

/// A wake that is nearer than this is waited for without sleeping: the system's timers are later than that.
const SPIN: Span = Span::micros(60);

/// The longest sleep, so that whoever asked to stop is heard.
const DOZE_MS: u16 = 50;

/// How long an errand may take: a station that has stopped answers none.
const PATIENCE: Duration = Duration::from_secs(5);

/// Wakes in a row before frames are looked at again.
const WAKES: usize = 4096;

/// One interface.
pub struct Port {
    /// Its name, for people.
    pub name: String,
    /// The host that stands for what lies beyond it.
    pub stage: StageId,
    /// Which end of the path it is.
    pub side: Side,
    socket: PacketSocket,
    inbox: Option<Inbox>,
    outbox: Vec<Outgoing>,
    counts: PortCounts,
}

/// Frames at one interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct PortCounts {
    /// Received.
    pub received: u64,
    /// Bytes of them.
    pub received_bytes: u64,
    /// Sent.
    pub sent: u64,
    /// Passed on without a look by any stage: not IP, neighbour discovery, malformed.
    pub passed: u64,
    /// Lost because the receive buffer was full.
    pub overrun: u64,
    /// Lost because the interface did not take them.
    pub refused: u64,
}

impl Port {
    /// The interface `name` with this index, as the end of the path that `stage` stands for.
    ///
    /// # Errors
    /// See [`PacketSocket::open`].
    pub fn open(name: &str, ifindex: u32, stage: StageId, side: Side) -> io::Result<Port> {
        Ok(Port {
            name: name.to_owned(),
            stage,
            side,
            socket: PacketSocket::open(ifindex)?,
            inbox: Some(Inbox::new()),
            outbox: Vec::new(),
            counts: PortCounts::default(),
        })
    }

    fn flush(&mut self) {
        if self.outbox.is_empty() {
            return;
        }
        let frames: Vec<&[u8]> = self.outbox.iter().map(Outgoing::bytes).collect();
        send(&self.socket, &frames, &mut self.counts);
        self.outbox.clear();
    }
}

/// Sends all frames that the interface takes.
fn send(socket: &PacketSocket, mut frames: &[&[u8]], counts: &mut PortCounts) {
    while !frames.is_empty() {
        let gone = match socket.send(frames) {
            Ok(sent) => {
                counts.sent += sent as u64;
                sent
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
            Err(_) => {
                counts.refused += 1;
                1
            }
        };
        frames = &frames[gone.min(frames.len())..];
    }
}

/// Something to be done by the loop between two rounds.
type Errand = Box<dyn FnOnce(&mut Station) + Send>;

/// A way to reach a running station from another thread.
#[derive(Clone)]
pub struct Handle {
    errands: Sender<Errand>,
    bell: Arc<EventFd>,
}

impl Handle {
    /// Has the station's loop do `errand` and waits for its answer; `None` if the station is gone or does not run.
    pub fn ask<T: Send + 'static>(
        &self,
        errand: impl FnOnce(&mut Station) -> T + Send + 'static,
    ) -> Option<T> {
        let (answer, answered) = channel();
        self.errands
            .send(Box::new(move |station| {
                // The asker may have gone away meanwhile.
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
    stopping: bool,
    errands: Receiver<Errand>,
    handle: Handle,
}

/// What lies around the path: who watches, and the interfaces.
struct Around<'a> {
    sink: &'a mut dyn Sink,
    ports: &'a mut [Port],
    neighbours: &'a mut Neighbours,
}

impl Outside for Around<'_> {
    fn event(&mut self, event: &Event) {
        self.sink.event(event);
    }

    fn leave(&mut self, now: Time, stage: StageId, side: Side, packet: Packet) {
        let frame = frame::untouched(&packet).or_else(|| {
            let link = self.neighbours.link_header(packet.src, packet.dst)?;
            frame::write(&packet, &link)
        });
        let mut taken = false;
        if let Some(frame) = &frame {
            // At a witness, its interface. Before the hosts: what is meant for all of them.
            let all = packet.dst.is_multicast();
            for port in self.ports.iter_mut().filter(|port| port.side == side) {
                if port.stage == stage || all {
                    port.outbox.push(frame.clone());
                    taken = true;
                }
            }
        }
        if !taken && self.sink.wants().has(Wants::METRICS) {
            let what = What::Packet { op: Op::Dropped(Cause::NoSuchConnection), side, packet };
            self.sink.event(&Event { at: now, stage, what });
        }
    }
}

impl Station {
    /// A station that drives `path` between `ports`.
    ///
    /// # Errors
    /// When the system refuses an event descriptor.
    pub fn new(path: Path, ports: Vec<Port>, clock: Clock) -> io::Result<Station> {
        let (sender, errands) = channel();
        let bell = EventFd::from_flags(EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC)?;
        Ok(Station {
            path,
            ports,
            neighbours: Neighbours::default(),
            clock,
            next_id: 0,
            stopping: false,
            errands,
            handle: Handle { errands: sender, bell: Arc::new(bell) },
        })
    }

    /// How other threads reach the station while it runs.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// The stages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The stages, to be changed by an errand.
    pub fn path_mut(&mut self) -> &mut Path {
        &mut self.path
    }

    /// The station's clock.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// The interfaces with their counts.
    pub fn port_counts(&self) -> impl Iterator<Item = (&str, PortCounts)> {
        self.ports.iter().map(|port| (port.name.as_str(), port.counts))
    }

    /// The same with the end of the path that each interface is.
    pub fn port_status(&self) -> impl Iterator<Item = (&str, Side, PortCounts)> {
        self.ports.iter().map(|port| (port.name.as_str(), port.side, port.counts))
    }

    /// Tells where a host is that does not speak for itself.
    pub fn add_neighbour(&mut self, addr: Addr, mac: [u8; 6]) {
        self.neighbours.insert(addr, Neighbour::untagged(mac));
    }

    /// Ends [`Station::run`] after this round.
    pub fn stop(&mut self) {
        self.stopping = true;
    }

    /// Runs until `attend`, which is called after each round, says that it is over (false) or somebody called
    /// [`Station::stop`].
    ///
    /// # Errors
    /// When an interface disappears or the system refuses to wait.
    pub fn run(
        &mut self,
        sink: &mut dyn Sink,
        attend: &mut dyn FnMut(&mut Station, Time) -> bool,
    ) -> io::Result<()> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        let timer = TimerFd::new(
            ClockId::CLOCK_MONOTONIC,
            TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC,
        )?;
        let mut watched: Vec<_> = self.ports.iter().map(|port| port.socket.as_fd()).collect();
        watched.push(timer.as_fd());
        let bell = self.handle.bell.clone();
        watched.push(bell.as_fd());
        for fd in watched {
            epoll.add(fd, EpollEvent::new(EpollFlags::EPOLLIN, fd.as_raw_fd() as u64))?;
        }
        let mut ready = [EpollEvent::empty(); 16];
        let mut set_for = None;
        self.stopping = false;
        loop {
            let now = self.clock.now();
            let doze = match self.path.next_wake() {
                Some(at) if at <= now + SPIN => EpollTimeout::ZERO,
                next => {
                    if let (Some(at), true) = (next, next != set_for) {
                        let at = Expiration::OneShot(self.clock.absolute(at));
                        timer.set(at, TimerSetTimeFlags::TFD_TIMER_ABSTIME)?;
                        set_for = next;
                    }
                    EpollTimeout::from(DOZE_MS)
                }
            };
            match epoll.wait(&mut ready, doze) {
                Ok(_) | Err(nix::errno::Errno::EINTR) => {}
                Err(error) => return Err(error.into()),
            }
            self.round(sink)?;
            while let Ok(errand) = self.errands.try_recv() {
                // It stays rung until somebody reads it.
                let _ = bell.read();
                errand(self);
            }
            let now = self.clock.now();
            if self.stopping || !attend(self, now) {
                return Ok(());
            }
            self.flush();
        }
    }

    /// Everything that is due now: frames in, wakes, frames out.
    fn round(&mut self, sink: &mut dyn Sink) -> io::Result<()> {
        let transparent = self.is_transparent(sink);
        for i in 0..self.ports.len() {
            let Some(mut inbox) = self.ports[i].inbox.take() else { continue };
            let mut full = true;
            // A few batches at most, then the other ports and the timers have their turn.
            for _ in 0..4 {
                if !full {
                    break;
                }
                let count = inbox.receive(&self.ports[i].socket)?;
                full = count == BATCH;
                if count == 0 {
                    break;
                }
                self.ports[i].counts.received += count as u64;
                if transparent {
                    self.pass_all(i, &inbox);
                } else {
                    self.take_in(i, &inbox, sink);
                    self.flush();
                }
            }
            self.ports[i].inbox = Some(inbox);
        }
        self.wake_due(sink);
        self.flush();
        Ok(())
    }

    fn wake_due(&mut self, sink: &mut dyn Sink) {
        let Station { path, ports, neighbours, clock, .. } = self;
        let mut around = Around { sink, ports, neighbours };
        let now = clock.now();
        for _ in 0..WAKES {
            if path.next_wake().is_none_or(|at| at > now) {
                break;
            }
            path.wake(now, &mut around);
        }
    }

    /// The frames of port `i` enter the path.
    fn take_in(&mut self, i: usize, inbox: &Inbox, sink: &mut dyn Sink) {
        let (stage, side) = (self.ports[i].stage, self.ports[i].side);
        let now = self.clock.now();
        for bytes in inbox.frames() {
            self.ports[i].counts.received_bytes += bytes.len() as u64;
            match frame::read(bytes) {
                Incoming::Pass => {
                    self.ports[i].counts.passed += 1;
                    let frame: Arc<[u8]> = bytes.into();
                    for port in self.ports.iter_mut().filter(|port| port.side != side) {
                        port.outbox.push(Outgoing::Same(frame.clone()));
                    }
                }
                Incoming::Packet(packet) => self.enter(now, stage, packet, bytes, sink),
                Incoming::Packets(packets) => {
                    for packet in packets {
                        self.enter(now, stage, packet, bytes, sink);
                    }
                }
            }
        }
    }

    fn enter(
        &mut self,
        now: Time,
        stage: StageId,
        mut packet: Packet,
        frame: &[u8],
        sink: &mut dyn Sink,
    ) {
        packet.id = PacketId(u64::from(stage.0) << 48 | self.next_id);
        self.next_id += 1;
        if packet.segment().is_some()
            && let Some(link) = frame::link_header(frame)
        {
            self.neighbours.learn(packet.src, link);
        }
        let Station { path, ports, neighbours, .. } = self;
        path.enter(now, stage, packet, &mut Around { sink, ports, neighbours });
    }

    /// Acts on a host of ours, as its application.
    pub fn call(
        &mut self,
        stage: usize,
        sink: &mut dyn Sink,
        call: impl FnOnce(&mut Stage, &mut lasthop_proto::machine::Out),
    ) {
        let Station { path, ports, neighbours, clock, .. } = self;
        path.call(clock.now(), stage, &mut Around { sink, ports, neighbours }, call);
    }

    /// Whether frames may pass as they are: nobody looks into them.
    fn is_transparent(&self, sink: &dyn Sink) -> bool {
        let stages = &self.path.stages()[self.path.inner()];
        let looks = |stage: &Stage| !matches!(stage, Stage::Agent(agent) if matches!(**agent, Agent::None(_)));
        self.ports.len() == 2 && sink.wants() == Wants::NOTHING && !stages.iter().any(looks)
    }

    fn pass_all(&mut self, from: usize, inbox: &Inbox) {
        let frames: Vec<&[u8]> = inbox.frames().collect();
        self.ports[from].counts.received_bytes +=
            frames.iter().map(|frame| frame.len() as u64).sum::<u64>();
        if let Some(to) = self.ports.get_mut(1 - from) {
            send(&to.socket, &frames, &mut to.counts);
        }
    }

    fn flush(&mut self) {
        self.ports.iter_mut().for_each(Port::flush);
    }
}
