//! The applications of a host: their actions on its connections.

use crate::event::{Cause, EventKind, Interest, Op};
use crate::machine::Out;
use crate::rng::Stream;
use crate::tcp::Connection;
use crate::tcp::exchange::{Answers, Client, Exchange, ExchangeState, Exchanging, Service};
use crate::tcp::traffic::{App, OnOff, Session, Web};
use crate::udp::{Datagram, Source, Udp};
use crate::units::Time;
use crate::wire::{Addr, ECT1, Packet};

use super::{Host, flow_of};

impl Host {
    /// Ends the transfer on connection `index`, which this host opened, at `at`: data sent before still
    /// arrives, and no more is sent.
    pub fn stop_at(&mut self, index: usize, at: Time) {
        self.apps.add(App::Stop { connection: index }, at);
    }

    /// Switches the endless transfer on connection `index`, which this host opened and which begins at
    /// `start`, on and off.
    pub fn switch(&mut self, index: usize, start: Time, periods: OnOff, rng: Stream) {
        let (rng, on) = (Box::new(rng), false);
        self.apps.add(App::OnOff { connection: index, periods, rng, on }, start);
    }

    /// Starts a user at `start` who fetches from `to` after the first think time. This host is the sender,
    /// since transfers go from the opener to the acceptor. No transfer begins at `stop` or later. `rng` is
    /// this user's own stream.
    pub fn browse(
        &mut self,
        to: Addr,
        port: u16,
        start: Time,
        stop: Option<Time>,
        web: Web,
        rng: Stream,
    ) {
        let mut session = Session { to, port, web, rng, stop, fetching: false };
        let first = start + session.think();
        let at = stop.map_or(first, |stop| first.min(stop));
        self.apps.add(App::Session(Box::new(session)), at);
        self.unfinished += 1;
    }

    /// Starts a client at `start` of a server at `to`, which [`Host::answer`] has set up there on the same
    /// `port`. It sends no request at `stop` or later.
    pub fn request(
        &mut self,
        to: Addr,
        port: u16,
        start: Time,
        stop: Option<Time>,
        exchange: Exchange,
    ) {
        let (requested, waits, connection) = (0, false, None);
        let client = Client { to, port, exchange, stop, requested, waits, connection };
        self.apps.add(App::Client(Box::new(client)), start);
        self.unfinished += 1;
    }

    /// Starts a source of datagrams to `to` from the first of `times` until before the second. Its random
    /// streams are for its intervals and its sizes.
    pub fn send_datagrams(
        &mut self,
        to: Addr,
        port: u16,
        times: [Time; 2],
        udp: Udp,
        rng: [Stream; 2],
    ) {
        let flow = flow_of(self.config.addr, to, port, self.apps.sources);
        let mut source = Source::new(flow, udp, times, rng);
        let Some(first) = source.first() else { return };
        self.apps.add(App::Datagrams(Box::new(source)), first);
        self.unfinished += 1;
    }

    /// Returns datagrams to `port` to their senders.
    pub fn echo(&mut self, port: u16) {
        self.echoes.push(port);
    }

    /// Handles a source's datagram; returns false for another packet.
    pub(super) fn on_datagram(&mut self, packet: &Packet, out: &mut Out) -> bool {
        let Some(datagram) = Datagram::read(packet) else { return false };
        out.packet_event(Op::Received, self.config.side.other(), packet);
        if self.echoes.contains(&datagram.flow.dst_port) && datagram.may_return() {
            // A mark on the forward path does not concern the reverse path.
            let tos = if packet.tos & ECT1 == ECT1 { ECT1 } else { 0 };
            let back = datagram.back().packet().with(|packet| packet.tos = tos);
            out.originate(self.config.side, back, Cause::Datagram);
        } else if out.accepts(Interest::RESULTS) {
            let datagram = if datagram.is_back() { datagram.back() } else { datagram };
            out.event(EventKind::Datagram { datagram, arrived: true });
        }
        true
    }

    /// Answers requests of `client` to `port`.
    pub fn answer(&mut self, client: Addr, port: u16, answers: Answers) {
        self.services.push(Service { client, port, answers });
    }

    /// Assigns an incoming connection to its server, if there is one.
    pub(super) fn serve_exchanges(&mut self, index: usize) {
        let flow = self.connections[index].flow;
        if let Some(service) = self.services.iter().find(|service| service.takes(flow)) {
            self.connections[index].exchange(service.answers.server());
            self.connections[index].set_stream(1 << 30 | index as u32);
        }
    }

    /// Lets a client send a request or continue after a response, and returns its next deadline.
    fn step_client(&mut self, now: Time, index: usize, out: &mut Out) -> Option<Time> {
        let full = self.is_full();
        let App::Client(client) = &mut self.apps.all[index] else { return None };
        let exchange = client.exchange;
        let at = if core::mem::take(&mut client.waits) { now + exchange.think } else { now };
        let asks = client.again(at).filter(|_| !full);
        if asks.is_none_or(|at| at > now) {
            return self.unless_over(now, index, asks, out);
        }
        let (to, port, existing) = (client.to, client.port, client.connection);
        client.requested += 1;
        client.waits = exchange.every.is_none();
        let waits = client.waits;
        let existing = existing.filter(|existing| !self.connections[*existing].is_over());
        let connection = existing.unwrap_or_else(|| {
            let stream = 1 << 31 | self.connections.len() as u32;
            let begin = |c: &mut Connection| {
                c.exchange(ExchangeState::Constant(Exchanging::client(&exchange)));
                c.connect(now);
            };
            self.start(to, port, now, stream, begin)
        });
        self.act(connection, |c| c.ask(now, out));
        let App::Client(client) = &mut self.apps.all[index] else { return None };
        client.connection = exchange.persistent.then_some(connection);
        if waits {
            self.apps.fetched_by.insert(connection, index);
            return None;
        }
        let next = exchange.every.and_then(|every| client.again(now + every));
        self.unless_over(now, index, next, out)
    }

    /// Next deadline of a client; a finished client closes its persistent connection.
    fn unless_over(
        &mut self,
        now: Time,
        index: usize,
        next: Option<Time>,
        out: &mut Out,
    ) -> Option<Time> {
        if next.is_none() {
            self.unfinished -= 1;
            let App::Client(client) = &mut self.apps.all[index] else { return None };
            if let Some(connection) = client.connection.take() {
                self.act(connection, |c| c.close(now, out));
            }
        }
        next
    }

    /// Calls the application with the earliest deadline.
    pub(super) fn step(&mut self, now: Time, out: &mut Out) {
        let Some((_, index)) = self.apps.wakes.first() else { return };
        let full = self.is_full();
        let next = match &mut self.apps.all[index] {
            App::Client(_) => self.step_client(now, index, out),
            App::Fetching(_) => self.step_fetching(now, index, out),
            App::Datagrams(source) => {
                let (datagram, next) = source.send(now);
                let packet = source.packet(&datagram);
                self.unfinished -= usize::from(next.is_none());
                if out.accepts(Interest::RESULTS) {
                    out.event(EventKind::Datagram { datagram, arrived: false });
                }
                out.originate(self.config.side, packet, Cause::Datagram);
                next
            }
            App::Stop { connection } => {
                let connection = *connection;
                self.act(connection, |c| c.end_here(now, out));
                None
            }
            App::OnOff { connection, periods, rng, on } => {
                *on = !*on;
                let lasts = if *on { periods.on } else { periods.off }.draw(rng);
                let (connection, on) = (*connection, *on);
                self.act(connection, |c| c.switch(now, on, out));
                // A stopped one only waits for its last acknowledgement.
                let after = &self.connections()[connection];
                (!after.is_over() && after.flow_size().is_none()).then_some(now + lasts)
            }
            App::Session(session) => {
                let over = session.stop.is_some_and(|stop| now >= stop);
                if core::mem::take(&mut session.fetching) {
                    let next = now + session.think();
                    // Its end is determined now, so it need not be waited for.
                    let ends = session.stop.is_some_and(|stop| next >= stop);
                    self.unfinished -= usize::from(ends);
                    (!ends).then_some(next)
                } else if over || full {
                    self.unfinished -= 1;
                    None
                } else {
                    session.fetching = true;
                    let bytes = session.web.size.draw(&mut session.rng);
                    let (to, port) = (session.to, session.port);
                    let stream = 1 << 31 | self.connections().len() as u32;
                    let connection = self.open(to, port, now, Some(bytes), stream);
                    self.apps.fetched_by.insert(connection, index);
                    None
                }
            }
        };
        self.apps.wakes.set(index, next);
    }
}
