//! Sockets: the interface of a [`Host`] for applications, with listeners, errors and options of single
//! connections.
//!
//! The calls have the semantics of Linux as far as they affect the segments sent. This includes a backlog,
//! `shutdown` in each direction, Nagle and `TCP_CORK`, `TCP_USER_TIMEOUT`, keepalives, `TCP_MAXSEG`,
//! `TCP_SYNCNT`, buffers and the congestion control. `close` sends a reset with unread data or a
//! `SO_LINGER` of zero, and a FIN otherwise. No call blocks: one that would have to wait returns
//! [`Errno::Again`].

mod errno;
mod fast_open;
mod icmp;
mod options;
mod queries;
mod timers;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::machine::{Machine, Out, Side};
use crate::tcp::connection::Connection;
use crate::tcp::host::{Host, HostConfig, Listener};
use crate::tcp::state::State;
use crate::units::{Span, Time};
use crate::wire::{Addr, Body, FlowKey, Packet};

use super::Settings;
pub use super::sender::window::Coalescing;
pub use errno::Errno;
pub use icmp::IcmpError;
pub use options::{KeepAlive, SocketOptions};
pub use queries::Ready;

/// Application-side state of a connection.
#[derive(Clone, Debug, Default)]
struct Socket {
    options: SocketOptions,
    /// Delivered and unread data.
    inbox: VecDeque<Body>,
    /// Bytes in `inbox`.
    unread: u64,
    error: Option<Errno>,
    /// An error that has not ended the connection.
    soft_error: Option<Errno>,
    /// Whether the connection failed and the error was reported.
    failed: bool,
    read_shut: bool,
    /// Whether the application has closed it.
    closed: bool,
    more: bool,
    /// The left edge, and since when it waits for an acknowledgement.
    waits: Option<(u64, Time)>,
    /// Total time with data waiting or in flight, and the start of the current such period.
    busy: (Span, Option<Time>),
    /// Time of the last arrival.
    last_arrival: Time,
    /// Unanswered keepalive probes.
    probes: u32,
    /// Time of the next keepalive probe.
    probe_at: Option<Time>,
    /// End of FIN-WAIT-2 without an application.
    orphan_until: Option<Time>,
}

/// A host with sockets. A connection is identified by its index in [`Host::connections`].
#[derive(Clone, Debug)]
pub struct Sockets {
    host: Host,
    sockets: Vec<Socket>,
    /// Whether later connections send no tail loss probes.
    no_probes: bool,
    /// Segment sizes that paths to hosts permit, as routers have reported.
    paths: BTreeMap<Addr, u16>,
}

impl Sockets {
    /// Creates a host without listening ports.
    pub fn new(config: HostConfig, seed: u64) -> Sockets {
        let mut host = Host::new(config, seed);
        host.refuse_by_default();
        Sockets { host, sockets: Vec::new(), no_probes: false, paths: BTreeMap::new() }
    }

    /// The host.
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// A connection.
    pub fn connection(&self, index: usize) -> Option<&Connection> {
        self.host.connections().get(index)
    }

    /// Accepts connections at `port`. A second call changes backlog and options.
    pub fn listen(&mut self, port: u16, backlog: u32, options: &SocketOptions) {
        let settings = options.settings(self.host.settings(), true);
        let outbox = options.outbox(&settings);
        let waiting = self.host.stop_listening(port);
        self.host.listen(port, Listener { settings, backlog, outbox, waiting });
        self.take_over(port, options);
    }

    /// Applies these options to pending connections of `port`.
    fn take_over(&mut self, port: u16, options: &SocketOptions) {
        let waiting = self.host.listener(port).map(|l| l.waiting.clone()).unwrap_or_default();
        for index in waiting {
            self.socket(index).options = options.clone();
        }
    }

    /// Stops listening and resets the connections that were not accepted. Those in the handshake end without a reset,
    /// as in Linux (`inet_csk_listen_stop`).
    pub fn unlisten(&mut self, now: Time, port: u16, out: &mut Out) {
        for index in self.host.stop_listening(port) {
            self.socket(index).closed = true;
            self.host.act(index, |c| match c.state() {
                State::SynReceived => c.give_up(out),
                _ => c.reset(now, out),
            });
        }
    }

    /// Accepts the oldest established connection of `port`.
    ///
    /// # Errors
    ///
    /// [`Errno::Again`] if there is none, [`Errno::Invalid`] if the port does not listen.
    pub fn accept(&mut self, port: u16) -> Result<usize, Errno> {
        let listener = self.host.listener(port).ok_or(Errno::Invalid)?;
        let waiting = listener.waiting.clone();
        let open = |index: &usize| {
            let connection = &self.host.connections()[*index];
            let failed =
                connection.is_aborted() && self.sockets.get(*index).is_some_and(|s| s.failed);
            connection.state().is_synchronised() || failed
        };
        let at = waiting.iter().position(open).ok_or(Errno::Again)?;
        let index = self.host.listener(port).map(|listener| listener.waiting.remove(at));
        index.inspect(|index| self.apply_path(*index)).ok_or(Errno::Invalid)
    }

    /// Bounds the segments of a connection by the known size of its path.
    fn apply_path(&mut self, index: usize) {
        let flow = self.host.connections()[index].flow;
        if let Some(mss) = self.paths.get(&flow.dst).copied() {
            self.host.act(index, |c| c.apply_path(mss.into()));
        }
    }

    /// Opens a connection now. [`Sockets::connected`] reports the result.
    pub fn connect(&mut self, now: Time, to: (Addr, u16), options: &SocketOptions) -> usize {
        let settings = options.settings(self.host.settings(), false);
        let outbox = options.outbox(&settings);
        let index = self.host.connect_with(to, now, outbox, settings);
        self.begin(now, index, options);
        index
    }

    /// Like [`Sockets::connect`], from a port that the application has chosen.
    pub fn connect_from(&mut self, now: Time, flow: FlowKey, options: &SocketOptions) -> usize {
        let settings: Arc<Settings> = options.settings(self.host.settings(), false);
        let outbox = options.outbox(&settings);
        let index = self.host.open_flow(flow, now, outbox, settings);
        self.begin(now, index, options);
        index
    }

    fn begin(&mut self, now: Time, index: usize, options: &SocketOptions) {
        let socket = self.socket(index);
        (socket.options, socket.last_arrival) = (options.clone(), now);
        if self.no_probes {
            self.host.act(index, |c| c.set_tail_probes(false));
        }
    }

    /// Result of opening; `None` while it is in progress.
    pub fn connected(&mut self, index: usize) -> Option<Result<(), Errno>> {
        let connection = &self.host.connections()[index];
        if connection.state().is_synchronised() {
            self.apply_path(index);
            return Some(Ok(()));
        }
        connection.is_aborted().then(|| Err(self.take_error(index).unwrap_or(Errno::TimedOut)))
    }

    /// Writes the part of `body` for which there is room; with `more`, a segment that is not full waits
    /// (`MSG_MORE`).
    ///
    /// # Errors
    ///
    /// [`Errno::Again`] without room, the pending error of the connection, or [`Errno::Pipe`].
    pub fn send(
        &mut self,
        now: Time,
        index: usize,
        body: Body,
        more: bool,
        out: &mut Out,
    ) -> Result<u32, Errno> {
        self.write(now, index, body, (more, false), out)
    }

    /// Like [`Sockets::send`], with urgent data that ends with the last byte (`MSG_OOB`).
    ///
    /// # Errors
    ///
    /// As [`Sockets::send`].
    pub fn send_urgent(
        &mut self,
        now: Time,
        index: usize,
        body: Body,
        out: &mut Out,
    ) -> Result<u32, Errno> {
        self.write(now, index, body, (false, true), out)
    }

    fn write(
        &mut self,
        now: Time,
        index: usize,
        body: Body,
        (more, urgent): (bool, bool),
        out: &mut Out,
    ) -> Result<u32, Errno> {
        if let Some(error) = self.take_error(index) {
            return Err(error);
        }
        let connection = self.connection(index).ok_or(Errno::NotConnected)?;
        if connection.is_aborted() || connection.flow_size().is_some() {
            return Err(Errno::Pipe);
        }
        if connection.room() == 0 && !body.is_empty() {
            return Err(Errno::Again);
        }
        self.socket(index).more = more;
        let coalescing = self.coalescing(index);
        let lowat = self.sockets.get(index).and_then(|socket| socket.options.notsent_lowat);
        let lowat = lowat.filter(|bytes| *bytes < u32::MAX);
        let mut taken = 0;
        self.host.act(index, |c| {
            c.cork();
            c.set_coalescing(coalescing, now, out);
            taken = match lowat {
                Some(bytes) => c.write_up_to(now, &body, (bytes, more), out),
                None => c.write_part(now, body, more, out),
            };
            if urgent && taken > 0 {
                c.mark_urgent();
            }
            c.uncork(now, out);
        });
        self.watch(now, index);
        Ok(taken)
    }

    /// Makes later data begin a new segment (`MSG_EOR` on the previous write).
    pub fn end_record(&mut self, index: usize) {
        self.host.act(index, Connection::end_record);
    }

    /// Reads at most `most` bytes into `into`; returns 0 when the peer has closed.
    ///
    /// # Errors
    ///
    /// [`Errno::Again`] when no data has arrived, or the pending error of the connection.
    pub fn recv(
        &mut self,
        now: Time,
        index: usize,
        most: u64,
        into: &mut Vec<Body>,
        out: &mut Out,
    ) -> Result<u64, Errno> {
        let ended = self.connection(index).ok_or(Errno::NotConnected)?.peer_has_closed();
        let aborted = self.host.connections()[index].is_aborted();
        if self.sockets.len() <= index {
            self.socket(index);
        }
        let (connection, socket) = (&self.host.connections()[index], &mut self.sockets[index]);
        if socket.unread == 0 {
            // A direction that the peer has closed reads as closed, also after a later error.
            if ended {
                return Ok(0);
            }
            return match socket.error.take() {
                Some(error) => Err(error),
                None if socket.read_shut || aborted => Ok(0),
                None => Err(Errno::Again),
            };
        }
        // The urgent byte is not part of the data: reading stops before it, and skips it (`tcp_recvmsg_locked`).
        let (delivered, urgent) = (connection.rx_delivered(), connection.peer_urgent());
        let ahead = (urgent + socket.unread).checked_sub(2 + delivered);
        let (skipped, wanted) = (u64::from(ahead == Some(0)), most);
        let most = match ahead.filter(|ahead| *ahead < socket.unread) {
            Some(0) => 1,
            Some(ahead) => most.min(ahead),
            None => most,
        };
        let mut taken = 0;
        while taken < most
            && let Some(body) = socket.inbox.pop_front()
        {
            let room = (most - taken).min(body.len().into()) as u32;
            if room < body.len() {
                socket.inbox.push_front(body.slice(room, u32::MAX));
            }
            into.push(body.slice(0, room));
            taken += u64::from(room);
        }
        socket.unread -= taken;
        self.host.act(index, |c| c.read(now, taken, out));
        if skipped > 0 {
            into.pop();
            return self.recv(now, index, wanted, into, out);
        }
        Ok(taken)
    }

    /// Shuts down reading, writing or both.
    ///
    /// # Errors
    ///
    /// [`Errno::NotConnected`] when the connection no longer exists.
    pub fn shutdown(
        &mut self,
        now: Time,
        index: usize,
        read: bool,
        write: bool,
        out: &mut Out,
    ) -> Result<(), Errno> {
        let connection = self.connection(index).ok_or(Errno::NotConnected)?;
        if connection.state() == State::Closed {
            return Err(Errno::NotConnected);
        }
        self.socket(index).read_shut |= read;
        if write {
            // The FIN leaves with data that waits for more (`tcp_send_fin`).
            self.host.act(index, |c| c.close(now, out));
            self.push(now, index, out);
            self.watch(now, index);
        }
        Ok(())
    }

    /// Closes a connection. Unread data, or `SO_LINGER` of zero, resets it.
    //= rfc1122#section-4.2.2.13: a RST shows that data was lost
    pub fn close(&mut self, now: Time, index: usize, out: &mut Out) {
        let Some(connection) = self.connection(index) else { return };
        let state = connection.state();
        let socket = self.socket(index);
        (socket.closed, socket.read_shut) = (true, true);
        let reset = socket.unread > 0 || socket.options.linger == Some(Span::ZERO);
        if reset || state == State::SynSent {
            self.host.act(index, |c| c.reset(now, out));
        } else {
            // The FIN leaves with data that waits for more (`tcp_send_fin`).
            self.host.act(index, |c| c.close(now, out));
            self.push(now, index, out);
            self.watch(now, index);
        }
    }

    /// Sends data that waits for more: the last write is done, or `TCP_NODELAY` is set.
    pub fn push(&mut self, now: Time, index: usize, out: &mut Out) {
        self.socket(index).more = false;
        self.host.act(index, |c| {
            c.cork();
            c.set_coalescing(Coalescing::Never, now, out);
            c.uncork(now, out);
        });
    }

    /// Takes the pending error.
    fn take_error(&mut self, index: usize) -> Option<Errno> {
        self.sockets.get_mut(index)?.error.take()
    }

    /// Takes the pending error (`SO_ERROR`), or one that has not ended the connection.
    pub fn take_any_error(&mut self, index: usize) -> Option<Errno> {
        let socket = self.sockets.get_mut(index)?;
        socket.error.take().or_else(|| socket.soft_error.take())
    }

    fn socket(&mut self, index: usize) -> &mut Socket {
        if self.sockets.len() <= index {
            self.sockets.resize_with(index + 1, Socket::default);
        }
        &mut self.sockets[index]
    }

    fn coalescing(&self, index: usize) -> Coalescing {
        self.sockets.get(index).map_or(Coalescing::Nagle, |socket| {
            match socket.options.cork || socket.more {
                true => Coalescing::Cork,
                false if socket.options.nodelay => Coalescing::Never,
                false => Coalescing::Nagle,
            }
        })
    }

    /// Updates the socket after an action on its connection.
    fn settle(&mut self, now: Time, index: usize, failure: Errno) {
        let Some(connection) = self.host.connections().get(index) else { return };
        let (aborted, state) = (connection.is_aborted(), connection.state());
        let fresh = self.sockets.len() <= index;
        let socket = self.socket(index);
        if fresh {
            socket.last_arrival = now;
        }
        let mut bodies = Vec::new();
        let mut delivered = 0;
        self.host.act(index, |c| delivered = c.take_delivered(&mut bodies));
        let socket = self.socket(index);
        socket.inbox.extend(bodies);
        socket.unread += delivered;
        if aborted && !socket.failed {
            socket.failed = true;
            socket.error = (!socket.closed).then_some(failure);
        }
        if aborted || state == State::Closed {
            (socket.waits, socket.probe_at) = (None, None);
        }
        self.watch(now, index);
    }

    /// Whether `packet` brings data, or its end, that the application will not read.
    fn refuses(&self, index: usize, packet: &Packet) -> bool {
        let (Some(socket), Some(connection)) =
            (self.sockets.get(index), self.host.connections().get(index))
        else {
            return false;
        };
        let shut = socket.read_shut
            && (socket.closed || connection.flow_size().is_some())
            && connection.state().is_synchronised()
            && connection.state() != State::TimeWait;
        shut && !packet.body.is_empty() && connection.expects_beyond(packet)
    }
}

impl Connection {
    /// Whether a packet has data beyond the data received in order.
    fn expects_beyond(&self, packet: &Packet) -> bool {
        let Some(segment) = packet.segment() else { return false };
        let next = self.peer_iss() + (1 + self.delivered() as u32);
        next.lt(segment.seq + packet.body.len())
    }
}

impl Machine for Sockets {
    fn on_packet(&mut self, now: Time, from: Side, packet: Packet, out: &mut Out) {
        let flow = packet.flow().map(FlowKey::reversed);
        let port = flow.map(|flow| flow.src_port);
        let find = |host: &Host| {
            let flow = flow?;
            host.connections().iter().rposition(|c| c.flow == flow)
        };
        let before = find(&self.host);
        let opening = before
            .and_then(|index| self.host.connections().get(index))
            .map(|c| (c.state(), c.is_aborted()));
        if let Some(index) = before.filter(|index| self.socket(*index).more) {
            // `MSG_MORE` waits until a segment arrives from the peer.
            self.socket(index).more = false;
            let coalescing = self.coalescing(index);
            self.host.act(index, |c| c.put_coalescing(coalescing));
        }
        if let Some(index) = before.filter(|index| self.refuses(*index, &packet)) {
            if let Some(segment) = packet.segment() {
                self.host.act(index, |c| c.refuse_data(segment, out));
            }
            self.settle(now, index, Errno::ConnectionReset);
            return;
        }
        self.host.on_packet(now, from, packet, out);
        let Some(index) = find(&self.host) else { return };
        if before != Some(index)
            && let Some(listener) = port.and_then(|port| self.host.listener(port))
            && listener.waiting.contains(&index)
        {
            let options = SocketOptions::default();
            self.begin(now, index, &options);
        }
        let failure = match opening.map(|(state, _)| state) {
            Some(State::SynSent) => Errno::ConnectionRefused,
            Some(State::CloseWait) => Errno::Pipe,
            _ => Errno::ConnectionReset,
        };
        let socket = self.socket(index);
        (socket.last_arrival, socket.probes) = (now, 0);
        if let Some(keep) = socket.options.keepalive {
            socket.probe_at = Some(now + keep.idle);
        }
        self.settle(now, index, failure);
    }

    fn on_wake(&mut self, now: Time, out: &mut Out) {
        if let Some(index) = self.expired(now) {
            return self.expire(now, index, out);
        }
        self.host.on_wake(now, out);
        for index in 0..self.host.connections().len() {
            self.settle(now, index, Errno::TimedOut);
        }
    }

    fn next_wake(&self) -> Option<Time> {
        let own = self.sockets.iter().filter_map(|socket| self.due(socket)).min();
        [own, self.host.next_wake()].into_iter().flatten().min()
    }
}

#[cfg(test)]
mod tests;
