//! The applications of a host: what they do to its connections.

use crate::event::{Cause, Op, Wants, What};
use crate::machine::Out;
use crate::rng::Stream;
use crate::tcp::Connection;
use crate::tcp::exchange::{Answers, Client, Exchange, Exchanging, Service, Talk};
use crate::tcp::traffic::{App, OnOff, Session, Web};
use crate::udp::{Datagram, Source, Udp};
use crate::units::Time;
use crate::wire::{Addr, ECT1, Packet};

use super::{Host, flow_of};

impl Host {
    /// The transfer on connection `index`, which this host opened, ends at `at`: what has been sent by then still
    /// arrives, and nothing more is sent.
    pub fn stop_at(&mut self, index: usize, at: Time) {
        self.apps.add(App::Stop { connection: index }, at);
    }

    /// The endless transfer on connection `index`, which this host opened and which begins at `start`, is on and off.
    pub fn switch(&mut self, index: usize, start: Time, periods: OnOff, chance: Stream) {
        let (chance, on) = (Box::new(chance), false);
        self.apps.add(App::OnOff { connection: index, periods, chance, on }, start);
    }

    /// A user begins at `start` to fetch from `to`, after the first time to think: this host sends to it, since
    /// transfers go from those who open to those who accept. No transfer begins at `stop` or later. `chance` is this
    /// user's alone.
    pub fn browse(
        &mut self,
        to: Addr,
        port: u16,
        start: Time,
        stop: Option<Time>,
        web: Web,
        chance: Stream,
    ) {
        let mut session = Session { to, port, web, chance, stop, fetching: false };
        let first = start + session.think();
        let at = stop.map_or(first, |stop| first.min(stop));
        self.apps.add(App::Session(Box::new(session)), at);
        self.unfinished += 1;
    }

    /// A client begins at `start` to ask a server at `to`, which [`Host::answer`] has set up there on the same `port`. It
    /// asks for nothing at `stop` or later.
    pub fn request(
        &mut self,
        to: Addr,
        port: u16,
        start: Time,
        stop: Option<Time>,
        exchange: Exchange,
    ) {
        let (asked, waits, connection) = (0, false, None);
        let client = Client { to, port, exchange, stop, asked, waits, connection };
        self.apps.add(App::Client(Box::new(client)), start);
        self.unfinished += 1;
    }

    /// A source sends datagrams to `to` from the first of `times` until before the second. Its streams are those of its
    /// intervals and of its sizes.
    pub fn send_datagrams(
        &mut self,
        to: Addr,
        port: u16,
        times: [Time; 2],
        udp: Udp,
        chance: [Stream; 2],
    ) {
        let flow = flow_of(self.config.addr, to, port, self.apps.sources);
        let mut source = Source::new(flow, udp, times, chance);
        let Some(first) = source.first() else { return };
        self.apps.add(App::Datagrams(Box::new(source)), first);
        self.unfinished += 1;
    }

    /// Datagrams to `port` go back to where they came from.
    pub fn echo(&mut self, port: u16) {
        self.echoes.push(port);
    }

    /// A datagram of a source has arrived; false if it is something else.
    pub(super) fn on_datagram(&mut self, packet: &Packet, out: &mut Out) -> bool {
        let Some(datagram) = Datagram::read(packet) else { return false };
        out.packet_event(Op::Received, self.config.side.other(), packet);
        if self.echoes.contains(&datagram.flow.dst_port) && datagram.may_return() {
            // A mark on the way here says nothing about the way back.
            let tos = if packet.tos & ECT1 == ECT1 { ECT1 } else { 0 };
            let back = datagram.back().packet().with(|packet| packet.tos = tos);
            out.originate(self.config.side, back, Cause::Datagram);
        } else if out.wants(Wants::METRICS) {
            let datagram = if datagram.is_back() { datagram.back() } else { datagram };
            out.event(What::Datagram { datagram, arrived: true });
        }
        true
    }

    /// Requests of `client` to `port` are answered.
    pub fn answer(&mut self, client: Addr, port: u16, answers: Answers) {
        self.services.push(Service { client, port, answers });
    }

    /// A server takes the connection that has come in, if one is there for it.
    pub(super) fn serve_exchanges(&mut self, index: usize) {
        let flow = self.connections[index].flow;
        if let Some(service) = self.services.iter().find(|service| service.takes(flow)) {
            self.connections[index].exchange(service.answers.server());
            self.connections[index].set_stream(1 << 30 | index as u32);
        }
    }

    /// A client asks, or goes on after an answer; when it is due again.
    fn step_client(&mut self, now: Time, index: usize, out: &mut Out) -> Option<Time> {
        let full = self.is_full();
        let App::Client(client) = &mut self.apps.all[index] else { return None };
        let exchange = client.exchange;
        let at = if core::mem::take(&mut client.waits) { now + exchange.think } else { now };
        let asks = client.again(at).filter(|_| !full);
        if asks.is_none_or(|at| at > now) {
            return self.unless_over(now, index, asks, out);
        }
        let (to, port, kept) = (client.to, client.port, client.connection);
        client.asked += 1;
        client.waits = exchange.every.is_none();
        let waits = client.waits;
        let kept = kept.filter(|kept| !self.connections[*kept].is_over());
        let connection = kept.unwrap_or_else(|| {
            let stream = 1 << 31 | self.connections.len() as u32;
            let begin = |c: &mut Connection| {
                c.exchange(Talk::Same(Exchanging::client(&exchange)));
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

    /// When a client is due next; one that asks no more closes what it kept open.
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

    /// The first application that is due acts.
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
                if out.wants(Wants::METRICS) {
                    out.event(What::Datagram { datagram, arrived: false });
                }
                out.originate(self.config.side, packet, Cause::Datagram);
                next
            }
            App::Stop { connection } => {
                let connection = *connection;
                self.act(connection, |c| c.end_here(now, out));
                None
            }
            App::OnOff { connection, periods, chance, on } => {
                *on = !*on;
                let lasts = if *on { periods.on } else { periods.off }.draw(chance);
                let (connection, on) = (*connection, *on);
                self.act(connection, |c| c.switch(now, on, out));
                // One that was stopped only waits for its last acknowledgement.
                let after = &self.connections()[connection];
                (!after.is_over() && after.wanted().is_none()).then_some(now + lasts)
            }
            App::Session(session) => {
                let over = session.stop.is_some_and(|stop| now >= stop);
                if core::mem::take(&mut session.fetching) {
                    let next = now + session.think();
                    // When it ends is known now; it need not be waited for.
                    let ends = session.stop.is_some_and(|stop| next >= stop);
                    self.unfinished -= usize::from(ends);
                    (!ends).then_some(next)
                } else if over || full {
                    self.unfinished -= 1;
                    None
                } else {
                    session.fetching = true;
                    let bytes = session.web.size.draw(&mut session.chance);
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
