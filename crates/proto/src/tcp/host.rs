//! A host: one address, many connections, and the applications on top of them.

mod applications;
mod fetching;
mod listening;

use std::sync::Arc;

use crate::event::{Cause, Interest, Op};
use crate::flows::Guesses;
use crate::machine::{Machine, Out, Side};
use crate::rng::Stream;
use crate::units::{Bytes, Span, Time};
use crate::wake::WakeTree;
use crate::wire::{Addr, Body, Damage, Flags, FlowKey, Packet, Segment, Seq, Transport};

pub use listening::Listener;

use super::config::{ElnMode, TcpConfig};
use super::connection::Connection;
use super::exchange::Service;
use super::lookup::Lookup;
use super::opening::{Memory, Succession};
use super::rtt::Beat;
use super::settings::{Beats, Settings};
use super::shared_window::Pairs;
use super::state::State;
use super::traffic::Apps;
use super::work::{self, Arrival, Steps};

/// Configuration of a host.
#[derive(Clone, Debug)]
pub struct HostConfig {
    /// Name of its random stream.
    pub name: String,
    /// Its address.
    pub addr: Addr,
    /// Direction of the path from the host.
    pub side: Side,
    /// Its TCP configuration.
    pub tcp: Arc<TcpConfig>,
}

/// A host. Every port accepts connections and discards received data, like the discard service (RFC 863).
/// After [`Host::serve`] an application must read the data.
#[derive(Clone, Debug)]
pub struct Host {
    config: HostConfig,
    settings: Arc<Settings>,
    rng: Stream,
    connections: Vec<Connection>,
    lookup: Lookup,
    /// Guesses of connection numbers, which avoid most lookups.
    guesses: Guesses,
    wakes: WakeTree,
    opened: Vec<u32>,
    /// Maximum unsent bytes of the applications on incoming connections.
    serving: Option<u32>,
    /// Whether data of incoming connections is stored until it is read.
    keeping: bool,
    /// Servers for incoming connections.
    services: Vec<Service>,
    /// Ports whose datagrams are returned to their senders.
    echoes: Vec<u16>,
    /// Number of unfinished connections that this host opened, and of active sessions.
    unfinished: usize,
    /// Applications that open, stop and switch connections.
    apps: Apps,
    /// State shared by the connections to one destination.
    pairs: Pairs,
    /// Cached state of peers, if connections open with data.
    memory: Option<Box<Memory>>,
    /// Whether connections may [shorten](Connection::shorten) their processing.
    shortens: bool,
    /// The listening ports; `None` if every port accepts connections.
    listeners: Option<Box<listening::Listeners>>,
    /// Whether a connection borrows `pairs` or `memory` during a call.
    lends: bool,
}

/// Maximum number of connections; further passive opens are rejected.
const CONNECTIONS_MAX: usize = 1 << 20;

/// Maximum number of connections that are not prefetched.
const NEAR: usize = 16;

/// The flow of the `n`th connection that `from` opens to `to`. Source ports are above the privileged ones;
/// when all are used, the next destination port follows.
pub fn flow_of(from: Addr, to: Addr, port: u16, n: usize) -> FlowKey {
    const PORTS: usize = 65_536 - 1024;
    FlowKey {
        src: from,
        dst: to,
        src_port: (1024 + n % PORTS) as u16,
        dst_port: port.wrapping_add((n / PORTS) as u16),
    }
}

impl Host {
    /// Creates a host without connections in the run with `seed`. The phase of its BSD clocks and its initial
    /// sequence numbers are drawn from its random stream.
    pub fn new(config: HostConfig, seed: u64) -> Host {
        let mut rng = Stream::new(seed, &format!("host.{}", config.name));
        let quick = config.tcp.handshake && (config.tcp.t_tcp || config.tcp.fast_open);
        let opening = || Stream::new(seed, &format!("opening.{}", config.name));
        let memory = quick.then(|| Box::new(Memory::new(&mut opening())));
        let beat = |period: Span| Beat::new(period, Span(rng.below(period.0.max(1))));
        let beats = Beats::new(&config.tcp, beat);
        let settings = Settings::new((*config.tcp).clone(), beats);
        let lends = config.tcp.integrated || memory.is_some();
        Host {
            config,
            settings,
            rng,
            connections: Vec::new(),
            lookup: Lookup::default(),
            guesses: Guesses::default(),
            wakes: WakeTree::new(1),
            opened: Vec::new(),
            serving: None,
            keeping: false,
            services: Vec::new(),
            echoes: Vec::new(),
            unfinished: 0,
            apps: Apps::default(),
            pairs: Pairs::default(),
            memory,
            shortens: true,
            listeners: None,
            lends,
        }
    }

    /// Processes every segment in full where no header prediction is configured. This changes only the
    /// processing time.
    pub fn take_no_short_cuts(&mut self) {
        self.shortens = false;
    }

    /// This host's address.
    pub fn addr(&self) -> Addr {
        self.config.addr
    }

    /// Opens a connection at `at` that sends `bytes` of `stream` to the peer's `port` and closes. Returns its
    /// index.
    pub fn open(
        &mut self,
        to: Addr,
        port: u16,
        at: Time,
        bytes: Option<Bytes>,
        stream: u32,
    ) -> usize {
        self.start(to, port, at, stream, |connection| connection.open(at, bytes))
    }

    /// Opens a connection at `at` for an application that writes at most `limit` bytes ahead and reads the
    /// received data, all by [`Host::act`]. Returns its index.
    pub fn connect(&mut self, to: Addr, port: u16, at: Time, limit: u32) -> usize {
        self.start(to, port, at, 0, |connection| {
            connection.attach(limit);
            connection.connect(at);
        })
    }

    /// Assigns all further incoming connections to an application that writes at most `limit` bytes ahead
    /// and reads the received data, all by [`Host::act`]. New connections are appended to
    /// [`Host::connections`].
    pub fn serve(&mut self, limit: u32) {
        self.serving = Some(limit);
    }

    /// From now on stores data delivered on incoming connections until it is read, without changing their
    /// behaviour. To compare bytes: [`Connection::store_delivered`].
    pub fn store_delivered(&mut self) {
        self.keeping = true;
    }

    fn start(
        &mut self,
        to: Addr,
        port: u16,
        at: Time,
        stream: u32,
        begin: impl FnOnce(&mut Connection),
    ) -> usize {
        let flow = flow_of(self.config.addr, to, port, self.opened.len());
        let index = self.add(flow, stream);
        begin(&mut self.connections[index]);
        self.wakes.set(index, Some(at));
        self.opened.push(index as u32);
        self.unfinished += 1;
        index
    }

    /// The connections that this host opened.
    pub fn opened(&self) -> impl Iterator<Item = &Connection> {
        self.opened.iter().map(|i| &self.connections[*i as usize])
    }

    /// The connection of `flow`, which is oriented from this host.
    pub fn connection(&self, flow: FlowKey) -> Option<&Connection> {
        self.lookup.peek(flow).map(|i| &self.connections[i as usize])
    }

    /// Statistics of connection lookups.
    pub fn lookup(&self) -> &Lookup {
        &self.lookup
    }

    /// Cached state of peers, if its connections open with data.
    pub fn memory_mut(&mut self) -> Option<&mut Memory> {
        self.memory.as_deref_mut()
    }

    /// Sets the configuration of later connections and listeners. Shared state, the handshake and opening
    /// with data are unchanged.
    pub fn reconfigure(&mut self, config: TcpConfig) {
        self.settings = self.settings.changed(|old| {
            let (integrated, handshake, t_tcp) = (old.integrated, old.handshake, old.t_tcp);
            let fast_open = old.fast_open;
            *old = TcpConfig { integrated, handshake, t_tcp, fast_open, ..config };
        });
    }

    /// All connections, in the order of their creation.
    pub fn connections(&self) -> &[Connection] {
        &self.connections
    }

    /// Number of unfinished connections that this host opened.
    pub fn unfinished(&self) -> usize {
        self.unfinished
    }

    /// Whether the maximum number of connections exists.
    fn is_full(&self) -> bool {
        self.connections.len() >= CONNECTIONS_MAX
    }

    /// Acts on a connection, for its application or for an arrived packet.
    pub fn act(&mut self, index: usize, action: impl FnOnce(&mut Connection)) {
        if self.lends {
            self.lend(index);
        }
        let connection = &mut self.connections[index];
        let counts = connection.is_active() && !connection.is_over();
        action(connection);
        let wake = connection.next_wake();
        self.wakes.put_off(index, wake);
        if connection.has_news() {
            self.apps.ended(index);
        }
        if counts && connection.is_over() {
            self.unfinished -= 1;
        }
        if self.lends {
            self.take_back(index);
        }
    }

    /// Lends a connection the state that it shares with others, before a call.
    #[cold]
    fn lend(&mut self, index: usize) {
        let connection = &mut self.connections[index];
        if self.config.tcp.integrated {
            connection.lend(index as u32, self.pairs.lend(connection.flow.dst));
        }
        if let Some(memory) = self.memory.take() {
            self.memory = connection.lend_memory(memory);
        }
    }

    /// Takes the shared state back after a call.
    #[cold]
    fn take_back(&mut self, index: usize) {
        let connection = &mut self.connections[index];
        if let Some(memory) = connection.take_memory() {
            self.memory = Some(memory);
        }
        if let Some(shared) = connection.give_back() {
            // The connection with the turn gets a timer at once.
            if let Some(due) = shared.due() {
                self.wakes.set(due as usize, Some(Time::ZERO));
            }
            self.pairs.put_back(connection.flow.dst, shared);
        }
    }

    /// Makes [`Machine::wake_bound`] exact if it is not after `now`.
    pub fn catch_up(&mut self, now: Time) {
        self.wakes.catch_up(now);
    }

    /// Handles the end of a hand-off of this mobile host: it is reachable in another cell.
    pub fn on_handoff(&mut self, now: Time, out: &mut Out) {
        if !self.config.tcp.fast_rtx_handoff {
            return;
        }
        for index in 0..self.connections.len() {
            if !self.connections[index].is_over() {
                self.act(index, |connection| connection.on_handoff(now, out));
            }
        }
    }

    fn add(&mut self, flow: FlowKey, stream: u32) -> usize {
        self.add_with(flow, stream, self.settings.clone(), None)
    }

    /// Adds a connection with the initial sequence number `iss`, or a random one.
    fn add_with(
        &mut self,
        flow: FlowKey,
        stream: u32,
        settings: Arc<Settings>,
        iss: Option<Seq>,
    ) -> usize {
        let random = Seq(self.rng.next_u64() as u32);
        let iss = iss.unwrap_or(random);
        let mut connection = Connection::new(settings, flow, self.config.side, iss, stream);
        if self.shortens {
            connection.shorten();
        }
        let index = self.connections.len();
        self.connections.push(connection);
        self.wakes.grow(index + 1);
        // A reused tuple replaces a finished connection.
        self.lookup.insert(flow, index as u32);
        self.guesses.added(self.connections.iter().map(|connection| connection.flow));
        index
    }

    #[inline]
    fn find(&mut self, flow: FlowKey) -> Option<usize> {
        if let Some(index) = self.lookup.find_cached(flow) {
            return Some(index as usize);
        }
        let guess = self.guesses.of(&flow);
        let index = match guess.filter(|guess| self.is_of(*guess as usize, flow)) {
            Some(index) => {
                self.lookup.spared(flow, index);
                index
            }
            None => self.lookup.find_hashed(flow)?,
        };
        Some(index as usize)
    }

    /// Reads words of a packet's likely connection, as a prefetch. The result has no meaning.
    #[inline]
    pub fn touch(&self, packet: &Packet) -> u64 {
        // A few connections are in a near cache anyway.
        if self.connections.len() <= NEAR {
            return 0;
        }
        let guess = packet.flow().and_then(|flow| self.guesses.of(&flow));
        let Some(index) = guess.map(|guess| guess as usize) else { return 0 };
        let connection = self.connections.get(index);
        connection.map_or(0, |it| it.touch(!packet.body.is_empty()) ^ self.wakes.touch(index))
    }

    /// Whether connection `index` is that of `flow`. Of several with one tuple, the newest was noted last.
    #[inline]
    fn is_of(&self, index: usize, flow: FlowKey) -> bool {
        self.connections.get(index).is_some_and(|connection| connection.flow == flow)
    }

    /// Processes a segment, and returns the steps of its connection.
    fn on_tcp(&mut self, now: Time, mut packet: Packet, out: &mut Out) -> Option<Steps> {
        let toward = self.config.side.other();
        let Some(flow) = packet.flow().map(FlowKey::reversed) else {
            out.discard(toward, packet, Cause::NoSuchConnection);
            return None;
        };
        let ecn = packet.ecn();
        let body = core::mem::replace(&mut packet.body, Body::EMPTY);
        let segment = packet.segment()?;
        let opens = segment.flags.has(Flags::SYN) && !segment.flags.any(Flags::ACK | Flags::RST);
        let succession = match opens && self.memory.is_some() {
            true => self.make_way(now, flow, segment, out),
            false => Succession::None,
        };
        let earlier = self.find(flow);
        let successor = earlier.and_then(|i| self.connections[i].successor());
        let found = earlier.filter(|i| {
            // TIME-WAIT still answers, unless a new connection begins.
            let connection = &self.connections[*i];
            let yields = opens && connection.yields_to(segment);
            !connection.is_over() || connection.state() == State::TimeWait && !yields
        });
        let index = match found {
            Some(index) => index,
            None if opens && self.drops_syn(flow.src_port) => {
                packet.body = body;
                out.discard(toward, packet, Cause::QueueFull);
                return Some(Steps::default());
            }
            None if opens && self.ignores_syn(flow.src_port, segment) => {
                packet.body = body;
                out.discard(toward, packet, Cause::NoSuchConnection);
                return Some(Steps::default());
            }
            None if (opens || self.begins(flow, &body))
                && !self.is_full()
                && self.listens(flow.src_port)
                && succession != Succession::Refused =>
            {
                let settings = self.settings_of(flow.src_port);
                let index = self.add_with(flow, 0, settings, successor);
                self.serve_exchanges(index);
                if let Some(limit) = self.serving {
                    self.connections[index].attach(limit);
                }
                if self.keeping {
                    self.connections[index].store_delivered();
                }
                self.came_in(index);
                index
            }
            None => {
                self.refuse(segment, &body, &packet, out);
                packet.body = body;
                out.discard(toward, packet, Cause::NoSuchConnection);
                return Some(Steps::default());
            }
        };
        self.act(index, |connection| {
            connection.on_arrival(now, segment, body, ecn, out);
        });
        out.recycle(packet);
        Some(self.connections[index].steps())
    }

    /// Handles a SYN for the ports of a connection with counts: that connection ends if the SYN succeeds it.
    fn make_way(&mut self, now: Time, flow: FlowKey, syn: &Segment, out: &mut Out) -> Succession {
        let Some(index) = self.find(flow) else { return Succession::None };
        let succession = self.connections[index].succession(now, syn);
        if succession == Succession::Succeeded {
            self.act(index, |connection| connection.succeed(now, out));
        }
        succession
    }

    /// Whether data starts a connection, since there is no handshake.
    fn begins(&self, flow: FlowKey, body: &Body) -> bool {
        !self.config.tcp.handshake && !body.is_empty() && self.lookup.peek(flow).is_none()
    }

    /// Answers a segment without a connection.
    //= rfc9293#section-3.10.7.1: with a reset, unless it is one
    fn refuse(&self, segment: &Segment, body: &Body, packet: &Packet, out: &mut Out) {
        if segment.flags.has(Flags::RST) {
            return;
        }
        let acked = segment.flags.has(Flags::ACK);
        let (seq, ack, flags) = if acked {
            (segment.ack, Seq(0), Flags::RST)
        } else {
            (Seq(0), segment.seq + segment.seq_len(body.len()), Flags::RST | Flags::ACK)
        };
        let reset = Segment::new(segment.dst_port, segment.src_port, seq, ack, flags);
        let reset = Packet::tcp(packet.dst, packet.src, reset, Body::EMPTY);
        if out.accepts(Interest::WORK) {
            work::report_sent(&reset, Cause::Control, false, out);
        }
        out.originate(self.config.side, reset, Cause::Control);
    }

    /// Handles a base station's message about a segment of this host.
    fn on_notice(&mut self, now: Time, packet: Packet, out: &mut Out) {
        let toward = self.config.side.other();
        let Some((notice, quote)) = packet.quote() else {
            out.discard(toward, packet, Cause::StaleNotice);
            return;
        };
        //= rfc1122#section-4.2.3.9: it is directed to the connection that created the segment
        let heeded = match self.find(quote.flow) {
            None => Err(Cause::NoSuchConnection),
            Some(index) => self.connections[index].heeds(notice, quote.seq).map(|()| index),
        };
        match heeded {
            Err(cause) => out.discard(toward, packet, cause),
            Ok(index) => {
                out.packet_event(Op::Received, toward, &packet);
                self.act(index, |connection| connection.on_notice(now, notice, quote.seq, out));
            }
        }
    }

    fn on_damaged(&mut self, now: Time, packet: Packet, cause: Cause, out: &mut Out) {
        let found = packet.flow().and_then(|flow| self.find(flow.reversed()));
        if let (Some(index), Some(segment)) = (found, packet.segment()) {
            self.act(index, |connection| {
                connection.on_damaged(now, segment, &packet.body, out);
            });
        }
        out.discard(self.config.side.other(), packet, cause);
    }
}

impl Machine for Host {
    fn check(&self) {
        debug_assert!(self.connections.len() <= CONNECTIONS_MAX, "limit of connections");
        debug_assert!(
            self.unfinished <= self.connections.len() + self.apps.all.len(),
            "{} unfinished connections and sessions",
            self.unfinished
        );
        debug_assert!(
            self.serving.is_none_or(|i| (i as usize) < self.connections.len()),
            "an unknown connection is served"
        );
        debug_assert!(
            self.opened.iter().take(8).all(|i| (*i as usize) < self.connections.len()),
            "an unknown connection was opened"
        );
        self.apps.check();
        self.connections.iter().take(4).for_each(Connection::check);
    }

    fn on_packet(&mut self, now: Time, _from: Side, packet: Packet, out: &mut Out) {
        let arrival = out.accepts(Interest::WORK).then(|| {
            self.lookup.take_how();
            Arrival::of(&packet)
        });
        let mut steps = None;
        match packet.damage {
            Damage::None if matches!(packet.transport, Transport::Icmp(_)) => {
                self.on_notice(now, packet, out);
            }
            Damage::None if packet.segment().is_none() && self.on_datagram(&packet, out) => {}
            Damage::None => {
                out.packet_event(Op::Received, self.config.side.other(), &packet);
                steps = self.on_tcp(now, packet, out);
            }
            Damage::Ip if self.config.tcp.eln != ElnMode::Ideal => {
                out.discard(self.config.side.other(), packet, Cause::IpChecksum);
            }
            Damage::Ip => self.on_damaged(now, packet, Cause::IpChecksum, out),
            Damage::Tcp => self.on_damaged(now, packet, Cause::TcpChecksum, out),
        }
        if let Some(arrival) = arrival {
            arrival.report(self.lookup.take_how(), steps, out);
        }
    }

    fn on_wake(&mut self, now: Time, out: &mut Out) {
        // Handles one connection per call: the driver repeats the call while the next deadline is in the past.
        if self.apps.next().is_some_and(|at| at <= now) {
            self.step(now, out);
            return;
        }
        self.catch_up(now);
        if let Some((at, index)) = self.wakes.first() {
            if at <= now {
                self.act(index, |connection| connection.on_wake(now, out));
                out.require_later(&mut self.wakes, index, now);
            }
        }
    }

    fn next_wake(&self) -> Option<Time> {
        let connections = self.wakes.earliest().unwrap_or(Time::NEVER);
        connections.min(self.apps.next().unwrap_or(Time::NEVER)).or_none()
    }

    #[inline]
    fn wake_bound(&self) -> Option<Time> {
        let connections = self.wakes.first().map_or(Time::NEVER, |(at, _)| at);
        connections.min(self.apps.next().unwrap_or(Time::NEVER)).or_none()
    }
}
