//! A QUIC host: the stack's endpoint, its connections, and the conversion of times.

use core::fmt;
use core::time::Duration;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use bytes::BytesMut;
use lasthop_path::{DISCARD, End, TransferState};
use lasthop_proto::event::{Cause, Op};
use lasthop_proto::machine::{Machine, Out, Side};
use lasthop_proto::rng::Stream;
use lasthop_proto::tcp::host::flow_of;
use lasthop_proto::udp;
use lasthop_proto::units::{Span, Time};
use lasthop_proto::wake::WakeTree;
use lasthop_proto::wire::{Addr, Damage, FlowKey, Packet, Transport};
use lasthop_scenario::{HostSide, Quic, QuicCongestion, Scenario};
use quinn_proto::congestion::{ControllerFactory, CubicConfig, NewRenoConfig};
use quinn_proto::{
    AckFrequencyConfig, ClientConfig, Connection, ConnectionEvent, ConnectionHandle, ConnectionId,
    ConnectionIdGenerator, DatagramEvent, EcnCodepoint, Endpoint, EndpointConfig, NoneTokenStore,
    ServerConfig, TransportConfig, VarInt,
};

use crate::quic::connection::{HostConnection, Role};
use crate::quic::datagram;
use crate::quic::frames::CID;
use crate::quic::plain::{Handshake, ResetKey};
use crate::quic::sender::Sender;

/// A QUIC host. It opens its transfers of the scenario, and accepts those of others.
pub struct QuicHost {
    addr: Addr,
    /// The direction of the path.
    side: Side,
    clock: Clock,
    rng: Stream,
    endpoint: Endpoint,
    /// Connections in the order of planning or arrival.
    connections: Vec<HostConnection>,
    /// Index into `connections` by the stack's connection handle.
    places: Vec<Option<usize>>,
    wakes: WakeTree,
    /// Number of connections that this host opens.
    opens: usize,
    buf: Vec<u8>,
}

impl fmt::Debug for QuicHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QuicHost").field("addr", &self.addr).finish_non_exhaustive()
    }
}

/// The time of the run in the stack's type.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock(Instant);

impl Clock {
    #[expect(clippy::disallowed_methods, reason = "an origin; only differences to it are used")]
    fn new() -> Clock {
        // The stack subtracts less than this from the given time.
        Clock(Instant::now() + Duration::from_secs(86_400))
    }

    pub(crate) fn instant(self, at: Time) -> Instant {
        self.0 + Duration::from_nanos(at.since(Time::ZERO).0)
    }

    pub(crate) fn time(self, at: Instant) -> Time {
        Time::ZERO + Span(at.saturating_duration_since(self.0).as_nanos() as u64)
    }
}

/// Connection ids from the seed.
struct Ids(Stream);

impl Ids {
    fn draw(stream: &mut Stream) -> ConnectionId {
        ConnectionId::new(&stream.next_u64().to_be_bytes())
    }
}

impl ConnectionIdGenerator for Ids {
    fn generate_cid(&mut self) -> ConnectionId {
        Ids::draw(&mut self.0)
    }

    fn cid_len(&self) -> usize {
        CID
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}

/// The stack's configuration for a transfer.
fn transport(quic: &Quic) -> TransportConfig {
    let mut transport = TransportConfig::default();
    let growth: Arc<dyn ControllerFactory + Send + Sync> = match quic.congestion {
        QuicCongestion::Cubic => Arc::new(CubicConfig::default()),
        QuicCongestion::NewReno => Arc::new(NewRenoConfig::default()),
    };
    transport.congestion_controller_factory(growth);
    transport.max_concurrent_uni_streams(VarInt::from_u32(quic.streams));
    if quic.ack_threshold.is_some() || quic.ack_delay.is_some() {
        let mut acks = AckFrequencyConfig::default();
        if let Some(packets) = quic.ack_threshold {
            acks.ack_eliciting_threshold(VarInt::from_u32(packets));
        }
        acks.max_ack_delay(quic.ack_delay.map(|delay| Duration::from_nanos(delay.0)));
        transport.ack_frequency_config(Some(acks));
    }
    if let Some(packets) = quic.packet_threshold {
        transport.packet_threshold(packets);
    }
    if let Some(window) = quic.window {
        // Within the range of the key.
        transport.stream_receive_window(VarInt::from_u32(window.0 as u32));
    }
    transport
}

impl QuicHost {
    /// Host number `host` of `scenario` in the run with `seed`.
    pub fn new(scenario: &Scenario, host: usize, seed: u64) -> QuicHost {
        let spec = &scenario.hosts[host];
        let named = |part: &str| Stream::new(seed, &format!("quic.{}.{part}", spec.name));
        let mut rng = named("chance");
        let mut config = EndpointConfig::new(Arc::new(ResetKey(rng.next_u64())));
        let mut key = [0; 32];
        key.chunks_mut(8).for_each(|part| part.copy_from_slice(&rng.next_u64().to_be_bytes()));
        config.rng_seed(Some(key));
        let ids = named("ids");
        config.cid_generator(move || Box::new(Ids(ids.clone())));
        let mut server = ServerConfig::new(Arc::new(Handshake), Arc::new(Handshake));
        // Accepted connections have the configuration of the transfers to this host; only the sender distinguishes
        // them.
        let taken = scenario.transfers.iter().filter(|t| t.to == host).find_map(|t| t.quic);
        let most = scenario.transfers.iter().filter_map(|t| t.quic).map(|quic| quic.streams).max();
        let quic = Quic { streams: most.unwrap_or(1), ..taken.unwrap_or_default() };
        server.transport_config(Arc::new(transport(&quic)));
        let endpoint = Endpoint::new(Arc::new(config), Some(Arc::new(server)), true, None);
        let mut made = QuicHost {
            addr: spec.addr,
            side: match spec.side {
                HostSide::Left => Side::Right,
                HostSide::Right => Side::Left,
            },
            clock: Clock::new(),
            rng,
            endpoint,
            connections: Vec::new(),
            places: Vec::new(),
            wakes: WakeTree::new(1),
            opens: 0,
            buf: Vec::new(),
        };
        made.plan(scenario, host);
        made
    }

    /// Schedules the transfers of this host.
    fn plan(&mut self, scenario: &Scenario, host: usize) {
        for transfer in scenario.transfers.iter().filter(|t| t.from == host) {
            let Some(quic) = transfer.quic else { continue };
            for _ in 0..transfer.connections() {
                let to = scenario.hosts[transfer.to].addr;
                let flow = flow_of(self.addr, to, DISCARD, self.opens);
                let start = Time::ZERO + transfer.start;
                let stop = transfer.stop.map(|stop| Time::ZERO + stop);
                let sender = Sender::new(quic, transfer.bytes, stop);
                let i = self.add(HostConnection::new(flow, Role::Sends(Box::new(sender))));
                self.wakes.set(i, Some(start));
                self.opens += 1;
            }
        }
    }

    fn add(&mut self, connection: HostConnection) -> usize {
        self.connections.push(connection);
        self.wakes.grow(self.connections.len());
        self.connections.len() - 1
    }

    /// The stack has created the connection of connection `i`.
    fn attach(&mut self, i: usize, handle: ConnectionHandle, connection: Connection) {
        if self.places.len() <= handle.0 {
            self.places.resize(handle.0 + 1, None);
        }
        self.places[handle.0] = Some(i);
        self.connections[i].attach(handle, connection);
    }

    fn open(&mut self, i: usize, now: Time, out: &mut Out) {
        let connection = &self.connections[i];
        let Role::Sends(sender) = &connection.role else { return };
        let mut config = ClientConfig::new(Arc::new(Handshake));
        config.transport_config(Arc::new(transport(&sender.config)));
        config.token_store(Arc::new(NoneTokenStore));
        // The stack's random id of the peer does not come from the seed.
        let rng = Mutex::new(self.rng.clone());
        self.rng.next_u64();
        config.initial_dst_cid_provider(Arc::new(move || {
            Ids::draw(&mut rng.lock().unwrap_or_else(PoisonError::into_inner))
        }));
        let peer = SocketAddr::new(connection.flow.dst.ip(), connection.flow.dst_port);
        let now_there = self.clock.instant(now);
        match self.endpoint.connect(now_there, config, peer, "lasthop") {
            Ok((handle, connection)) => {
                self.attach(i, handle, connection);
                self.connections[i].opening(out);
            }
            Err(_) => self.connections[i].give_up(out),
        }
    }

    /// Handles everything that is due at connection `i`.
    fn drive(&mut self, i: usize, now: Time, out: &mut Out) {
        let there = self.clock.instant(now);
        let connection = &mut self.connections[i];
        if let Some(handle) = connection.drive(there, &mut self.endpoint, self.side, out) {
            self.places[handle.0] = None;
        }
        self.wakes.set(i, self.connections[i].next_wake(self.clock));
    }

    /// A datagram has arrived for `flow`, oriented from this end.
    fn on_datagram(&mut self, now: Time, flow: FlowKey, tos: u8, data: &[u8], out: &mut Out) {
        let remote = SocketAddr::new(flow.dst.ip(), flow.dst_port);
        let ecn = EcnCodepoint::from_bits(tos & 3);
        let there = self.clock.instant(now);
        self.buf.clear();
        let bytes = BytesMut::from(data);
        match self.endpoint.handle(there, remote, None, ecn, bytes, &mut self.buf) {
            Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                self.hand_on(handle, event, data, now, out);
            }
            Some(DatagramEvent::NewConnection(incoming)) => {
                self.buf.clear();
                match self.endpoint.accept(incoming, there, &mut self.buf, None) {
                    Ok((handle, connection)) => {
                        let i = self.add(HostConnection::new(flow, Role::Receives(Box::default())));
                        self.attach(i, handle, connection);
                        self.drive(i, now, out);
                    }
                    Err(refused) => {
                        if let Some(transmit) = refused.response {
                            let answer = &self.buf[..transmit.size];
                            datagram::send(
                                flow,
                                transmit.ecn,
                                answer,
                                Cause::Control,
                                self.side,
                                out,
                            );
                        }
                    }
                }
            }
            Some(DatagramEvent::Response(transmit)) => {
                let answer = &self.buf[..transmit.size];
                datagram::send(flow, transmit.ecn, answer, Cause::Control, self.side, out);
            }
            None => {}
        }
    }

    fn hand_on(
        &mut self,
        handle: ConnectionHandle,
        event: ConnectionEvent,
        data: &[u8],
        now: Time,
        out: &mut Out,
    ) {
        let Some(i) = self.places.get(handle.0).copied().flatten() else { return };
        self.connections[i].receives(event, data);
        self.drive(i, now, out);
    }
}

impl Machine for QuicHost {
    fn on_packet(&mut self, now: Time, from: Side, packet: Packet, out: &mut Out) {
        let toward = from.other();
        let refused = match packet.damage {
            Damage::None => None,
            Damage::Ip => Some(Cause::IpChecksum),
            Damage::Tcp => Some(Cause::TcpChecksum),
        };
        if let Some(cause) = refused {
            return out.discard(toward, packet, cause);
        }
        if let Transport::Icmp(_) = packet.transport {
            return out.discard(toward, packet, Cause::UnheededNotice);
        }
        let (Some(flow), Some(data)) = (packet.datagram_flow(), udp::payload(&packet)) else {
            return out.discard(toward, packet, Cause::NoSuchConnection);
        };
        out.packet_event(Op::Received, toward, &packet);
        self.on_datagram(now, flow.reversed(), packet.tos, data, out);
    }

    fn on_wake(&mut self, now: Time, out: &mut Out) {
        while let Some((at, i)) = self.wakes.first().filter(|(at, _)| *at <= now) {
            if self.connections[i].is_planned() {
                self.open(i, now, out);
            } else {
                self.connections[i].on_time(self.clock.instant(now), now);
            }
            self.drive(i, now, out);
            // A repeated deadline at the same time is left to the next call, which detects endless loops.
            if self.wakes.first() == Some((at, i)) {
                break;
            }
        }
    }

    fn next_wake(&self) -> Option<Time> {
        self.wakes.first().map(|(at, _)| at)
    }
}

impl End for QuicHost {
    fn addr(&self) -> Addr {
        self.addr
    }

    fn unfinished(&self) -> usize {
        self.connections.iter().filter(|connection| connection.is_unfinished()).count()
    }

    fn opened(&self) -> Vec<TransferState> {
        self.connections.iter().filter_map(HostConnection::sent).collect()
    }

    fn delivered(&self, flow: FlowKey) -> u64 {
        let those = self.connections.iter().filter(|connection| connection.flow == flow);
        those.filter_map(HostConnection::delivered).max().unwrap_or(0)
    }
}
