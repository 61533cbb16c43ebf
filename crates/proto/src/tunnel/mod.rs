//! A link layer between two hosts, over datagrams: `lasthop link`.
//!
//! ```text
//!   IP packets from this host        IP packets for this host
//!          | queue                            ^
//!   +------v------------- link layer ---------|------+   parsa98, in full duplex
//!   |      frames                          frames    |
//!   +------|------------- session ------------^------+   who the peer is, sealed, each message once
//!          v pace                             |
//!      datagrams                          datagrams
//! ```
//!
//! The tunnel is a machine: its inputs are packets, datagrams and the time; its outputs are packets,
//! datagrams and the time of the next call. The end of a session discards the link layer's state: packets in
//! flight are lost and counted, and queued packets wait for the next session.

#[cfg(test)]
#[path = "../../tests/tunnel/attacks.rs"]
mod attacks;
pub mod discovery;
mod fit;
pub mod limit;
pub mod message;
#[cfg(test)]
#[path = "../../tests/tunnel/net.rs"]
mod net;
pub mod replay;
pub mod seal;
pub mod session;
pub mod states;
#[cfg(test)]
mod tests;
#[cfg(test)]
#[path = "../../../checks/shared/toy.rs"]
mod toy;
pub mod units;

use core::net::SocketAddr;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use serde::Serialize;

use crate::air::Station;
use crate::event::{Cause, LinkNote};
use crate::link::LinkLayer;
use crate::link::LinkLayerConfig;
use crate::link::end::{Above, LinkEnd, MacSignal};
use crate::link::frame::{Load, Timing};
use crate::link::tulip::{Pacing, Rule, TulipConfig};
use crate::rng::Stream;
use crate::units::{Rate, Span, Time};

use discovery::Discovery;
use seal::Seal;
use session::{Agreed, Opened, Session, SessionConfig, Turn};

/// Maximum bytes of the link layer before a packet: kind, numbers, and an acknowledgement with a bit for each
/// packet of the window.
pub const fn link_header(window: u16) -> u32 {
    15 + (window as u32).div_ceil(8)
}

/// Longest inner packet on a path for packets of `path` bytes with `framing` bytes before each datagram.
pub const fn inner(path: u32, framing: u32, window: u16) -> u32 {
    path.saturating_sub(framing + message::OVERHEAD as u32 + link_header(window))
}

/// Minimum size of inner packets in bytes: the one that IPv4 requires of every host.
pub const LEAST: u32 = 576;

/// A datagram to be sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Datagram {
    /// Destination.
    pub to: SocketAddr,
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Whether it must not be fragmented. A datagram created before the path MTU decreased may be.
    pub whole: bool,
}

/// Maximum number of frames sent in one call.
const BURST: usize = 64;

/// Maximum delay that a tunnel makes up for when timers are late.
const LAG: Span = Span::millis(2);

/// Time without a message from an active peer after which long packets may be the problem.
const QUIET: Span = Span::millis(500);

/// Minimum propagation delay.
const NEAR: Span = Span::micros(500);

/// Configuration of a tunnel.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct TunnelConfig {
    /// The session.
    pub session: SessionConfig,
    /// Packets that are retransmitted until they arrive; `None` retransmits none.
    pub rule: Option<Rule>,
    /// Maximum rate, all headers included; `None` is limited only by the window.
    pub rate: Option<Rate>,
    /// Largest propagation delay; `None` uses the handshake's round-trip time.
    pub delay: Option<Span>,
    /// Bytes that the layers below add to each datagram: 28 for UDP over IPv4, 48 over IPv6.
    pub framing: u32,
    /// Longest IP packet of the interface below in bytes; the search of the path starts there.
    pub below: u32,
    /// Whether the longest inner packet follows the discovered path MTU.
    pub follows: bool,
    /// Queue capacity in packets.
    pub queue: usize,
}

/// Counts of packets by fate.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct TunnelCounts {
    /// Packets from this host.
    pub packets_in: u64,
    /// Their bytes.
    pub bytes_in: u64,
    /// Packets delivered to this host.
    pub packets_out: u64,
    /// Their bytes.
    pub bytes_out: u64,
    /// Frames sent, including those without a packet.
    pub frames_sent: u64,
    /// Frames received.
    pub frames_received: u64,
    /// Packets dropped because the queue was full.
    pub queue_full: u64,
    /// Packets dropped because they exceed the tunnel's MTU.
    pub too_long: u64,
    /// Packets dropped because they are not IP, on the way in or out.
    pub not_ip: u64,
    /// Packets waiting or in flight when a session ended; their arrival is unknown.
    pub session_lost: u64,
    /// Frames dropped because no link layer reads them.
    pub bad_frame: u64,
}

/// The layer above the link layer: the queue, and the received packets.
#[derive(Clone, Debug)]
struct Upper {
    peer: Station,
    queue: VecDeque<Load>,
    released: Vec<Arc<[u8]>>,
    repeated: BTreeMap<&'static str, u64>,
    notes: BTreeMap<&'static str, u64>,
    counts: TunnelCounts,
    /// Whether a retransmission was necessary because no acknowledgement arrived.
    unacknowledged: bool,
}

impl Above for Upper {
    fn waits(&self, to: Station) -> bool {
        to == self.peer && !self.queue.is_empty()
    }

    fn next_destination(&self) -> Option<Station> {
        (!self.queue.is_empty()).then_some(self.peer)
    }

    fn take(&mut self, to: Station) -> Option<Load> {
        if to == self.peer { self.queue.pop_front() } else { None }
    }

    fn release(&mut self, _: Station, load: Load) {
        match load.packet().and_then(units::bytes) {
            Some(bytes) if units::is_ip(bytes) => {
                self.counts.packets_out += 1;
                self.counts.bytes_out += bytes.len() as u64;
                self.released.push(bytes.clone());
            }
            _ => self.counts.not_ip += 1,
        }
    }

    // TULIP never drops a packet.
    fn give_up(&mut self, _: Station, _: Load, _: Cause) {}

    fn repeat(&mut self, _: Station, _: &Load, cause: Cause) {
        self.unacknowledged |= cause != Cause::LinkNack;
        *self.repeated.entry(cause.name()).or_default() += 1;
    }

    fn attempt_failed(&mut self, _: &Load, _: u32, _: bool) {}

    fn note(&mut self, _: Station, note: LinkNote) {
        *self.notes.entry(name(note)).or_default() += 1;
    }
}

fn name(note: LinkNote) -> &'static str {
    match note {
        LinkNote::Duplicate => "duplicate",
        LinkNote::OutOfWindow => "out-of-window",
        LinkNote::BadAck => "bad-ack",
        LinkNote::WindowFull => "window-full",
        LinkNote::ChannelBad => "channel-bad",
    }
}

/// One end of a tunnel.
pub struct Tunnel<S: Seal> {
    config: TunnelConfig,
    session: Session<S>,
    own: Station,
    end: Option<LinkLayer>,
    upper: Upper,
    outbox: Vec<Datagram>,
    /// Discovery of the path MTU during a session.
    path: Option<Discovery>,
    /// The last frame has left by this time.
    free_at: Time,
    /// Whether the link layer still expects the report that its frame has left.
    sending: bool,
    /// Whether the link layer had nothing to send at the last poll.
    hungry: bool,
    next_id: u64,
}

impl<S: Seal> Tunnel<S> {
    /// Creates a tunnel; `secret` as for [`Session::new`].
    pub fn new(config: TunnelConfig, seal: S, secret: [u8; 32]) -> Tunnel<S> {
        Tunnel {
            session: Session::new(config.session.clone(), seal, secret),
            config,
            own: Station(0),
            end: None,
            upper: Upper {
                peer: Station(1),
                queue: VecDeque::new(),
                released: Vec::new(),
                repeated: BTreeMap::new(),
                notes: BTreeMap::new(),
                counts: TunnelCounts::default(),
                unacknowledged: false,
            },
            outbox: Vec::new(),
            path: None,
            free_at: Time::ZERO,
            sending: false,
            hungry: true,
            next_id: 0,
        }
    }

    /// The session.
    pub fn session(&self) -> &Session<S> {
        &self.session
    }

    /// Counts of packets by fate.
    pub fn counts(&self) -> TunnelCounts {
        self.upper.counts
    }

    /// Packets that the link layer retransmitted, by cause.
    pub fn repeated(&self) -> &BTreeMap<&'static str, u64> {
        &self.upper.repeated
    }

    /// Notes of the link layer, with their counts.
    pub fn notes(&self) -> &BTreeMap<&'static str, u64> {
        &self.upper.notes
    }

    /// Number of waiting packets.
    pub fn waiting(&self) -> usize {
        self.upper.queue.len()
    }

    /// Takes the notices about other ends on the same address.
    pub fn take_notices(&mut self) -> Vec<session::Notice> {
        self.session.take_notices()
    }

    /// Accepts a packet from this host.
    pub fn on_packet(&mut self, now: Time, bytes: &[u8]) {
        let mtu = usize::from(self.mtu());
        let counts = &mut self.upper.counts;
        counts.packets_in += 1;
        counts.bytes_in += bytes.len() as u64;
        if !units::is_ip(bytes) {
            counts.not_ip += 1;
        } else if bytes.len() > mtu {
            counts.too_long += 1;
        } else if self.upper.queue.len() >= self.config.queue {
            counts.queue_full += 1;
        } else {
            let packet = units::packet(bytes.into(), self.next_id);
            self.next_id += 1;
            self.upper.queue.push_back(Load::Packet(packet));
        }
        self.send_due(now);
    }

    /// Accepts a datagram, which it changes in place.
    pub fn on_datagram(&mut self, now: Time, from: SocketAddr, datagram: &mut [u8]) {
        let moved = self.session.counts().moved;
        let opened = self.session.on_datagram(now, from, datagram);
        let turn = self.session.take_turn();
        if let (Some(path), true) = (&mut self.path, self.session.counts().moved > moved) {
            path.again(now);
        }
        if let (Opened::Probed(len), Some(path)) = (&opened, &mut self.path) {
            path.passed(now, u32::from(*len) + self.config.framing);
        }
        if let Opened::Frame(bytes) = opened {
            // The message that establishes a session may already carry a frame.
            if let Some(turn) = turn {
                self.turn(now, turn);
            }
            self.upper.counts.frames_received += 1;
            let peer = self.upper.peer;
            match (units::read(bytes, peer, self.own, self.next_id), &mut self.end) {
                (Some(frame), Some(end)) => {
                    self.next_id += 1;
                    end.on_frame(now, frame, &mut self.upper);
                }
                _ => self.upper.counts.bad_frame += 1,
            }
        } else if let Some(turn) = turn {
            self.turn(now, turn);
        }
        self.send_due(now);
    }

    /// Handles the beginning or the end of a session.
    fn turn(&mut self, now: Time, turn: Turn) {
        if let Some(LinkLayer::Tulip(tulip)) = self.end.take() {
            let (sent, received) = tulip.memory(self.upper.peer);
            self.upper.counts.session_lost += (sent + received) as u64;
        }
        self.search(now);
        let Turn::Began(agreed) = turn else { return };
        self.own = Station(u8::from(!agreed.caller));
        self.upper.peer = Station(u8::from(agreed.caller));
        // Neither of the two link layers draws random numbers.
        let (link, rng) = (self.link(&agreed), Stream::new(0, "link"));
        self.end = Some(LinkLayer::new(&link, self.own, 2, self.timing(&agreed), rng));
        self.free_at = now;
        self.sending = false;
        self.hungry = true;
    }

    fn link(&self, agreed: &Agreed) -> LinkLayerConfig {
        let Some(rule) = self.config.rule else { return LinkLayerConfig::None };
        LinkLayerConfig::Tulip(TulipConfig {
            window: agreed.window,
            acceleration: false,
            pacing: Pacing::FullDuplex,
            rule,
            ..TulipConfig::default()
        })
    }

    fn timing(&self, agreed: &Agreed) -> Timing {
        // Half a round trip each way, and half as much again for the delay of hosts.
        let measured = Span(agreed.rtt.0 * 3 / 4);
        Timing {
            byte_ps: self.config.rate.map_or(0, |rate| 8_000_000_000_000 / rate.bps()),
            frame: self.airtime(0),
            propagation: self.config.delay.unwrap_or(measured).max(NEAR),
            turnaround: Span::ZERO,
            processing: Span::ZERO,
            turn: Span::ZERO,
        }
    }

    /// Time that a datagram with a frame of `bytes` takes at the tunnel's rate.
    fn airtime(&self, bytes: u32) -> Span {
        let bytes = u64::from(bytes + self.config.framing) + message::OVERHEAD as u64;
        self.config.rate.map_or(Span::ZERO, |rate| rate.transmit(bytes))
    }

    /// Sends all frames that are due at `now`: reports each departure to the link layer and polls for the
    /// next frame.
    fn send_due(&mut self, now: Time) {
        self.send_frames(now);
        // Missing acknowledgements may be due to the length of packets.
        if core::mem::take(&mut self.upper.unacknowledged)
            && let Some(path) = &mut self.path
        {
            path.doubt(now, None);
        }
    }

    fn send_frames(&mut self, now: Time) {
        let peer = self.upper.peer;
        for _ in 0..BURST {
            let Some(end) = &mut self.end else { break };
            if self.free_at > now {
                break;
            }
            if core::mem::take(&mut self.sending) {
                end.on_mac(
                    self.free_at,
                    MacSignal::Done { to: peer, acked: None },
                    &mut self.upper,
                );
            }
            let Some(frame) = end.next_frame(now, &mut self.upper) else {
                self.hungry = true;
                break;
            };
            // Late timers do not reduce the rate, within [`LAG`].
            let behind = if self.hungry { now } else { self.free_at };
            let start = behind.max(Time(now.0.saturating_sub(LAG.0)));
            self.hungry = false;
            let airtime = self.airtime(frame.bytes);
            let sealed = self.session.seal(now, |out| units::write(&frame, out));
            let most = (self.path() - self.config.framing) as usize;
            self.outbox.extend(sealed.map(|(to, bytes)| {
                let whole = bytes.len() <= most;
                Datagram { to, bytes, whole }
            }));
            self.upper.counts.frames_sent += 1;
            self.upper.unacknowledged |= self.session.silent(now) > QUIET;
            self.free_at = start + airtime;
            self.sending = true;
            if let Some(end) = &mut self.end {
                let trans = MacSignal::Trans { to: peer, airtime };
                end.on_mac(start, trans, &mut self.upper);
            }
        }
    }

    /// Handles everything that is due.
    pub fn on_wake(&mut self, now: Time) {
        self.session.on_wake(now);
        if let Some(turn) = self.session.take_turn() {
            self.turn(now, turn);
        }
        if let Some(end) =
            self.end.as_mut().filter(|end| end.next_wake().is_some_and(|at| at <= now))
        {
            end.on_wake(now, &mut self.upper);
        }
        self.probe(now);
        self.send_due(now);
    }

    /// Sends a goodbye and ends the session.
    pub fn close(&mut self, now: Time) {
        self.session.close(now);
        if let Some(turn) = self.session.take_turn() {
            self.turn(now, turn);
        }
    }

    /// Time of the next required call.
    pub fn next_wake(&self) -> Option<Time> {
        let end = self.end.as_ref().and_then(LinkEnd::next_wake);
        let free = self.end.as_ref().filter(|_| self.sending || !self.hungry).map(|_| self.free_at);
        let path = self.path.as_ref().and_then(|path| path.next_wake().or_none());
        [self.session.next_wake(), end, free, path].into_iter().flatten().min()
    }

    /// Asserts the invariants of session, link layer and path.
    fn check(&self) {
        self.session.check();
        if let Some(end) = &self.end {
            end.check();
        }
        if let Some(path) = &self.path {
            path.check();
        }
        debug_assert!(!self.sending || self.end.is_some(), "a frame without a link layer");
    }

    /// Moves the datagrams to be sent to `into`.
    pub fn take_datagrams(&mut self, into: &mut Vec<Datagram>) {
        self.check();
        let messages = self.session.take_outbox().into_iter();
        into.extend(messages.map(|(to, bytes)| Datagram { to, bytes, whole: true }));
        into.append(&mut self.outbox);
    }

    /// Moves the packets for this host to `into`.
    pub fn take_packets(&mut self, into: &mut Vec<Arc<[u8]>>) {
        into.append(&mut self.upper.released);
    }
}
