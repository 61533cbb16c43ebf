//! A host: one address, many connections, and the applications on top of them.

mod applications;
mod fetching;
mod listening;

use std::sync::Arc;

use crate::event::{Cause, Op, Wants};
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
use super::integrated::Pairs;
use super::lookup::Lookup;
use super::opening::{Memory, Succession};
use super::rtt::Beat;
use super::settings::{Beats, Settings};
use super::state::State;
use super::traffic::Apps;
use super::work::{self, Arrival, Steps};

/// What a host is.
#[derive(Clone, Debug)]
pub struct HostConfig {
    /// Names its random stream.
    pub name: String,
    /// Its address.
    pub addr: Addr,
    /// Which way the path lies.
    pub side: Side,
    /// Its TCP.
    pub tcp: Arc<TcpConfig>,
}

/// A host. Every port accepts connections and discards what arrives, like the discard service (RFC 863), unless
/// [`Host::serve`] was called: then an application has to take it.
#[derive(Clone, Debug)]
pub struct Host {
    config: HostConfig,
    settings: Arc<Settings>,
    chance: Stream,
    connections: Vec<Connection>,
    lookup: Lookup,
    /// The numbers of most connections, which need not be looked up.
    guesses: Guesses,
    wakes: WakeTree,
    opened: Vec<u32>,
    /// Connections that come in get an application that may write so many bytes ahead.
    serving: Option<u32>,
    /// What connections that come in deliver waits for whoever looks at it.
    keeping: bool,
    /// Who answers on connections that come in.
    services: Vec<Service>,
    /// Ports whose datagrams go back to where they came from.
    echoes: Vec<u16>,
    /// Connections that this host opened and that are not over, and sessions that go on.
    unfinished: usize,
    /// What opens, stops and switches connections.
    apps: Apps,
    /// What connections to one destination share.
    pairs: Pairs,
    /// What is remembered of peers, if connections open with data.
    memory: Option<Box<Memory>>,
    /// Whether connections may [shorten](Connection::shorten) what they do.
    shortens: bool,
    /// Which ports accept connections, where not every port does.
    listeners: Option<Box<listening::Listeners>>,
    /// Whether anything is lent to a connection that is called: of `pairs`, or `memory`.
    lends: bool,
}

/// Passive opens beyond this are refused.
const CONNECTIONS_MAX: usize = 1 << 20;

/// The flow of the `n`th connection that `from` opens to `to`: source ports above the privileged ones, and
/// when they run out the next destination port.
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
    /// A host without connections in the run with `seed`. The phase of its BSD clocks and its initial sequence
    /// numbers are drawn from its stream.
    pub fn new(config: HostConfig, seed: u64) -> Host {
        let mut chance = Stream::new(seed, &format!("host.{}", config.name));
        let quick = config.tcp.handshake && (config.tcp.t_tcp || config.tcp.fast_open);
        let opening = || Stream::new(seed, &format!("opening.{}", config.name));
        let memory = quick.then(|| Box::new(Memory::new(&mut opening())));
        let beat = |period: Span| Beat::new(period, Span(chance.below(period.0.max(1))));
        let beats = Beats::new(&config.tcp, beat);
        let settings = Settings::new((*config.tcp).clone(), beats);
        let lends = config.tcp.integrated || memory.is_some();
        Host {
            config,
            settings,
            chance,
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

    /// Every segment goes through the whole procedure where no header prediction is configured. This changes nothing but
    /// the time that it takes.
    pub fn take_no_short_cuts(&mut self) {
        self.shortens = false;
    }

    /// This host's address.
    pub fn addr(&self) -> Addr {
        self.config.addr
    }

    /// Opens a connection at `at` that sends `bytes` of `stream` to the peer's `port` and closes.
    /// Returns its index.
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

    /// Opens a connection at `at` for an application that writes at most `limit` bytes ahead and takes what
    /// comes, all by [`Host::act`]. Returns its index.
    pub fn connect(&mut self, to: Addr, port: u16, at: Time, limit: u32) -> usize {
        self.start(to, port, at, 0, |connection| {
            connection.attach(limit);
            connection.connect(at);
        })
    }

    /// From now on every connection that comes in is for an application that writes at most `limit` bytes ahead
    /// and takes what comes, all by [`Host::act`]. New ones stand at the end of [`Host::connections`].
    pub fn serve(&mut self, limit: u32) {
        self.serving = Some(limit);
    }

    /// From now on what is delivered on connections that come in waits to be taken, while they run as before. To
    /// compare bytes: [`Connection::keep_delivered`].
    pub fn keep_delivered(&mut self) {
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

    /// The connection of `flow`, seen from this host.
    pub fn connection(&self, flow: FlowKey) -> Option<&Connection> {
        self.lookup.peek(flow).map(|i| &self.connections[i as usize])
    }

    /// How connections were looked up so far.
    pub fn lookup(&self) -> &Lookup {
        &self.lookup
    }

    /// What this host remembers of its peers, if its connections open with data.
    pub fn memory_mut(&mut self) -> Option<&mut Memory> {
        self.memory.as_deref_mut()
    }

    /// Connections and listeners that are made from now on are configured so. Whether connections share state, have a
    /// handshake and open with data stays as it is.
    pub fn reconfigure(&mut self, config: TcpConfig) {
        self.settings = self.settings.changed(|old| {
            let (integrated, handshake, t_tcp) = (old.integrated, old.handshake, old.t_tcp);
            let fast_open = old.fast_open;
            *old = TcpConfig { integrated, handshake, t_tcp, fast_open, ..config };
        });
    }

    /// All connections, in the order in which they came to be.
    pub fn connections(&self) -> &[Connection] {
        &self.connections
    }

    /// How many of the connections that this host opened are not over.
    pub fn unfinished(&self) -> usize {
        self.unfinished
    }

    /// Whether it has as many connections as it may have.
    fn is_full(&self) -> bool {
        self.connections.len() >= CONNECTIONS_MAX
    }

    /// Acts on a connection, as its application or because something arrived for it.
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

    /// Lends a connection that is about to be called what it shares with others.
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

    /// Takes that back.
    #[cold]
    fn take_back(&mut self, index: usize) {
        let connection = &mut self.connections[index];
        if let Some(memory) = connection.take_memory() {
            self.memory = Some(memory);
        }
        if let Some(shared) = connection.give_back() {
            // Whose turn it is, is woken at once.
            if let Some(due) = shared.due() {
                self.wakes.set(due as usize, Some(Time::ZERO));
            }
            self.pairs.put_back(connection.flow.dst, shared);
        }
    }

    /// A hand-off of this mobile host is over: it is in another cell, and can be reached there.
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
        self.add_with(flow, stream, self.settings.clone())
    }

    fn add_with(&mut self, flow: FlowKey, stream: u32, settings: Arc<Settings>) -> usize {
        let iss = Seq(self.chance.next_u64() as u32);
        let mut connection = Connection::new(settings, flow, self.config.side, iss, stream);
        if self.shortens {
            connection.shorten();
        }
        let index = self.connections.len();
        self.connections.push(connection);
        self.wakes.grow(index + 1);
        // A tuple that is used again replaces a connection that is over.
        self.lookup.insert(flow, index as u32);
        self.guesses.added(self.connections.iter().map(|connection| &connection.flow));
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

    /// Whether that is the connection of `flow`. Of several with one tuple, the newest was noted last.
    #[inline]
    fn is_of(&self, index: usize, flow: FlowKey) -> bool {
        self.connections.get(index).is_some_and(|connection| connection.flow == flow)
    }

    /// Takes a segment in; what its connection did with it.
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
        let found = self.find(flow).filter(|i| {
            // TIME-WAIT still answers, unless a new connection begins.
            let connection = &self.connections[*i];
            !connection.is_over() || connection.state() == State::TimeWait && !opens
        });
        let index = match found {
            Some(index) => index,
            None if opens && self.drops_syn(flow.src_port) => {
                packet.body = body;
                out.discard(toward, packet, Cause::QueueFull);
                return Some(Steps::default());
            }
            None if (opens || self.begins(flow, &body))
                && !self.is_full()
                && self.listens(flow.src_port)
                && succession != Succession::Refused =>
            {
                let index = self.add_with(flow, 0, self.settings_of(flow.src_port));
                self.serve_exchanges(index);
                if let Some(limit) = self.serving {
                    self.connections[index].attach(limit);
                }
                if self.keeping {
                    self.connections[index].keep_delivered();
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

    /// A SYN has come, and a connection with counts may be there for its ports: it ends if the SYN succeeds it.
    fn make_way(&mut self, now: Time, flow: FlowKey, syn: &Segment, out: &mut Out) -> Succession {
        let Some(index) = self.find(flow) else { return Succession::None };
        let succession = self.connections[index].succession(now, syn);
        if succession == Succession::Succeeded {
            self.act(index, |connection| connection.succeed(now, out));
        }
        succession
    }

    /// Whether data begins a connection, since there is no handshake.
    fn begins(&self, flow: FlowKey, body: &Body) -> bool {
        !self.config.tcp.handshake && !body.is_empty() && self.lookup.peek(flow).is_none()
    }

    /// Answers a segment for no connection.
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
        if out.wants(Wants::WORK) {
            work::tell_sent(&reset, Cause::Control, false, out);
        }
        out.originate(self.config.side, reset, Cause::Control);
    }

    /// A base station says something about a segment of ours.
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
    fn on_packet(&mut self, now: Time, _from: Side, packet: Packet, out: &mut Out) {
        let arrival = out.wants(Wants::WORK).then(|| {
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
            arrival.tell(self.lookup.take_how(), steps, out);
        }
    }

    fn on_wake(&mut self, now: Time, out: &mut Out) {
        // One connection a call: the driver comes back as long as a time in the past is due.
        if self.apps.next().is_some_and(|at| at <= now) {
            self.step(now, out);
            return;
        }
        if let Some((at, index)) = self.wakes.first() {
            if at <= now {
                self.act(index, |connection| connection.on_wake(now, out));
            }
        }
    }

    #[inline]
    fn next_wake(&self) -> Option<Time> {
        let connections = self.wakes.first().map_or(Time::NEVER, |(at, _)| at);
        connections.min(self.apps.next().unwrap_or(Time::NEVER)).or_none()
    }
}
