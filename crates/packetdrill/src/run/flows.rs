//! Mapping of packets to connections, and of their numbers to those of the script.
//!
//! A script counts from its own initial sequence numbers and contains neither the ports nor the timestamps of
//! a run.

use lasthop_proto::wire::Flags;

use super::wire::Segment;
use crate::script::{Packet, Tcp, TcpOption};

/// The default port of a listener, and of a connection's destination.
pub const PORT: u16 = 8080;
/// First port of the peer for a connection that it opens.
const EPHEMERAL: u16 = 49_152;

/// A connection.
#[derive(Clone, Debug, Default)]
pub(super) struct Flow {
    /// Ports of the host and of the peer.
    pub(super) ports: (u16, u16),
    /// Ports in the script, if given.
    named: Option<(u16, u16)>,
    /// The host's initial sequence number in the run and in the script.
    isn: Option<(u32, u32)>,
    /// The peer's initial sequence number in the script: its SYN has it, and later segments count from it.
    peer: Option<u32>,
    /// The first timestamps sent: in the run, and in the script.
    stamps: Option<(u32, u32)>,
    /// Timestamps that a script expects, with those that were sent for them.
    known: Vec<(u32, u32)>,
}

/// The connections of a run.
#[derive(Debug, Default)]
pub(super) struct Flows {
    all: Vec<Flow>,
    /// The connection under test, if it exists.
    current: Option<usize>,
    /// Port of a listening socket without an incoming connection.
    pub(super) listening: Option<u16>,
    /// Whether a socket is opening and its SYN has not been seen.
    connecting: bool,
}

/// Maximum number of timestamps stored for one connection.
const KNOWN_MAX: usize = 4096;

impl Flows {
    /// Handles a new socket: earlier connections are no longer under test.
    pub(super) fn renew(&mut self) {
        self.current = None;
        (self.listening, self.connecting) = (None, false);
    }

    pub(super) fn connects(&mut self) {
        self.connecting = true;
        self.current = None;
    }

    pub(super) fn current(&self) -> Option<&Flow> {
        self.current.and_then(|index| self.all.get(index))
    }

    /// The flow of a packet of the script, by its ports, else the one under test.
    fn of(&self, packet: &Packet) -> Option<usize> {
        let named = packet.ports.map(|(a, b)| if packet.inbound { (b, a) } else { (a, b) });
        match named {
            None => self.current,
            Some(ports) => self
                .all
                .iter()
                .rposition(|flow| flow.named == Some(ports))
                .or(self.current.filter(|index| self.all[*index].named.is_none())),
        }
    }

    /// The flow on which a packet of the script arrives; a SYN for a listener creates one.
    pub(super) fn arriving(&mut self, packet: &Packet, tcp: &Tcp) -> Option<usize> {
        let opens = tcp.flags.has(Flags::SYN) && !tcp.flags.has(Flags::ACK);
        let named = packet.ports.map(|(peer, host)| (host, peer));
        let other = named.is_some() && self.all.iter().all(|flow| flow.named != named);
        if let Some(port) = self.listening
            && opens
            && (self.current.is_none() || other)
        {
            let next = EPHEMERAL.wrapping_add(self.all.len() as u16);
            let peer = packet.ports.map_or(next, |(peer, _)| peer);
            self.all.push(Flow { ports: (port, peer), named, ..Flow::default() });
            self.current = Some(self.all.len() - 1);
        }
        self.of(packet)
    }

    /// The flow of a sent packet. A SYN of an opening socket creates one.
    pub(super) fn sent(&mut self, segment: &Segment) -> Option<usize> {
        let found = self.all.iter().rposition(|flow| flow.ports == segment.ports);
        let fresh = segment.flags.has(Flags::SYN) && !segment.flags.has(Flags::ACK);
        if self.connecting && fresh && found.is_none() {
            self.connecting = false;
            self.all.push(Flow { ports: segment.ports, ..Flow::default() });
            self.current = Some(self.all.len() - 1);
            return self.current;
        }
        found
    }

    /// Whether a sent packet belongs to the connection of the script's packet.
    pub(super) fn is_of(&mut self, packet: &Packet, index: usize) -> bool {
        if let (Some(ports), Some(flow)) = (packet.ports, self.all.get_mut(index))
            && flow.named.is_none()
        {
            flow.named = Some(ports);
        }
        self.of(packet) == Some(index)
    }

    pub(super) fn get(&mut self, index: usize) -> Option<&mut Flow> {
        self.all.get_mut(index)
    }
}

impl Flow {
    /// The offset from sequence numbers of the script to those of the host. Only packets with SYN have
    /// absolute ones.
    fn offset(&self, syn: bool) -> u32 {
        self.isn.map_or(0, |(run, script)| if syn { run.wrapping_sub(script) } else { run })
    }

    /// The segment of a script, as it arrives at the host.
    /// `scaled` says what becomes of a timestamp that echoes none that was expected.
    pub(super) fn arriving(&mut self, packet: &Packet, tcp: &Tcp, scaled: bool) -> Segment {
        let offset = self.offset(tcp.flags.has(Flags::SYN));
        let seq = match tcp.flags.has(Flags::SYN) {
            true => {
                self.peer.get_or_insert(tcp.seq);
                tcp.seq
            }
            false => tcp.seq.wrapping_add(self.peer.unwrap_or(0)),
        };
        let mut options = tcp.options.clone().unwrap_or_default();
        for option in &mut options {
            match option {
                TcpOption::Sack(blocks) => {
                    for (from, to) in blocks {
                        (*from, *to) = (from.wrapping_add(offset), to.wrapping_add(offset));
                    }
                }
                TcpOption::Timestamps { echo, .. } => *echo = self.echo(*echo, scaled),
                _ => {}
            }
        }
        let mut flags = tcp.flags;
        if let Some(ace) = tcp.ace {
            flags = flags.without(Flags::ACE) | Flags(u16::from(ace) << 6);
        }
        let (host, peer) = self.ports;
        Segment {
            tos: match packet.tos {
                Some(crate::script::Tos::Ecn(bits)) => bits,
                Some(crate::script::Tos::Exact(tos)) => tos,
                Some(crate::script::Tos::Ect01) => 0b10,
                None => 0,
            },
            ttl: packet.ttl.unwrap_or(64),
            ports: (peer, host),
            seq,
            ack: tcp.ack.map_or(0, |ack| ack.wrapping_add(offset)),
            flags,
            window: tcp.window.unwrap_or(0),
            urgent: tcp.urgent,
            options,
            len: tcp.len,
        }
    }

    /// The timestamp that was sent where the script expects `echo`.
    fn echo(&self, echo: u32, scaled: bool) -> u32 {
        if let Some((_, run)) = self.known.iter().rev().find(|(script, _)| *script == echo) {
            return *run;
        }
        match self.stamps {
            Some((run, script)) if echo != 0 && scaled => {
                run.wrapping_add(echo.wrapping_sub(script))
            }
            _ => echo,
        }
    }

    /// A segment that the host has sent, with the numbers of the script. `expected` is what the script says, if it says
    /// anything.
    pub(super) fn sent(&mut self, segment: &Segment, expected: Option<&Tcp>) -> Segment {
        if segment.flags.has(Flags::SYN) && self.isn.is_none() {
            self.isn = Some((segment.seq, expected.map_or(0, |tcp| tcp.seq)));
        }
        let mut mapped = segment.clone();
        mapped.seq = segment.seq.wrapping_sub(self.offset(segment.flags.has(Flags::SYN)));
        let peer = self.peer.unwrap_or(0);
        // Packets with SYN have absolute numbers.
        if segment.flags.has(Flags::ACK) && !segment.flags.has(Flags::SYN) {
            mapped.ack = segment.ack.wrapping_sub(peer);
        }
        for option in &mut mapped.options {
            if let TcpOption::Sack(blocks) = option {
                for (from, to) in blocks {
                    (*from, *to) = (from.wrapping_sub(peer), to.wrapping_sub(peer));
                }
            }
            if let TcpOption::Timestamps { value, .. } = option {
                let scripted = expected.and_then(|tcp| tcp.options.as_ref()).and_then(|options| {
                    options.iter().find_map(|option| match option {
                        TcpOption::Timestamps { value, .. } => Some(*value),
                        _ => None,
                    })
                });
                if let Some(script) = scripted {
                    if self.known.len() >= KNOWN_MAX {
                        self.known.remove(0);
                    }
                    self.known.push((script, *value));
                    self.stamps.get_or_insert((*value, script));
                }
                let (run, script) = self.stamps.unwrap_or((*value, *value));
                *value = script.wrapping_add(value.wrapping_sub(run));
            }
        }
        mapped
    }

    /// A sequence number of the script in the numbers of the host.
    pub(super) fn seq(&self, seq: u32) -> u32 {
        seq.wrapping_add(self.offset(false))
    }
}
