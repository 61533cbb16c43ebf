//! Selection of a packet's service (parsa98 3.1): reliable (RLP) or unreliable (ULP).
//!
//! It depends on the protocol number (Next Header in IPv6), on whether TCP carries payload, and on the length
//! of opaque packets. It is stateless and reads no port or sequence number.

use serde::Serialize;

use crate::wire::Packet;

/// Protocol numbers (IANA).
const TCP: u8 = 6;
const ESP: u8 = 50;
const AH: u8 = 51;

/// Service of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Service {
    /// In order, once, in finite time.
    Reliable,
    /// One transmission.
    Unreliable,
}

/// Selection of reliable packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reliable {
    /// TCP with payload, like the paper; encrypted packets by [`Opaque`].
    #[default]
    Tcp,
    /// All packets except TCP without payload, and packets that are not longer than an acknowledgement: for
    /// transports over UDP (QUIC).
    All,
}

/// Treatment of packets that may contain hidden TCP: ESP, AH.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Opaque {
    /// Packets longer than an acknowledgement are reliable.
    #[default]
    BySize,
    /// All are reliable.
    Reliable,
    /// None is.
    Unreliable,
}

/// Rule for the service of packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Rule {
    /// Selection of reliable packets.
    pub reliable: Reliable,
    /// Treatment of encrypted packets.
    pub opaque: Opaque,
    /// Length limit in bytes of an opaque packet that counts as an acknowledgement. A TCP ACK with timestamps
    /// in an IPv6 ESP tunnel has 152 B with AES-GCM; a full packet is many times longer.
    pub ack_size: u32,
}

impl Default for Rule {
    fn default() -> Rule {
        Rule { reliable: Reliable::Tcp, opaque: Opaque::BySize, ack_size: 160 }
    }
}

impl Rule {
    /// The service of `packet`.
    //= parsa98#3.1: TCP data in RLPs; TCP ACKs without data, UDP and link ACKs in ULPs
    pub fn service(&self, packet: &Packet) -> Service {
        let long = packet.wire_len() > self.ack_size;
        let reliable = match packet.transport.opaque() {
            // A fragment or a malformed segment: only the content behind the IP header is visible.
            Some(TCP) => !packet.body.is_empty(),
            Some(ESP | AH) if self.reliable == Reliable::Tcp => match self.opaque {
                Opaque::BySize => long,
                Opaque::Reliable => true,
                Opaque::Unreliable => false,
            },
            None if packet.segment().is_some() => packet.is_data(),
            _ => self.reliable == Reliable::All && long,
        };
        if reliable { Service::Reliable } else { Service::Unreliable }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Addr, Body, Flags, Segment, Seq, Transport};

    fn packet(v6: bool, transport: Transport, len: u32) -> Packet {
        let addr = |n| {
            if v6 {
                Addr::from(std::net::IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 0, n]))
            } else {
                Addr::v4(10, 0, 0, n as u8)
            }
        };
        let body = Body::Pattern { stream: 1, len, offset: 0 };
        let tcp = Packet::tcp(addr(1), addr(2), segment(), body);
        tcp.with(|packet| packet.transport = transport)
    }

    fn segment() -> Segment {
        Segment::new(1, 2, Seq(0), Seq(0), Flags::ACK)
    }

    #[test]
    fn only_tcp_data_is_reliable_by_default() {
        let rule = Rule::default();
        for v6 in [false, true] {
            let service = |transport, len| rule.service(&packet(v6, transport, len));
            assert_eq!(service(Transport::Tcp(segment()), 1), Service::Reliable);
            assert_eq!(service(Transport::Tcp(segment()), 0), Service::Unreliable);
            assert_eq!(service(Transport::Other(TCP), 1200), Service::Reliable);
            for protocol in [1, 17, 47, 58, 132] {
                assert_eq!(service(Transport::Other(protocol), 1200), Service::Unreliable);
            }
        }
    }

    #[test]
    fn opaque_packets_are_classified_by_size_or_by_rule() {
        for v6 in [false, true] {
            for protocol in [ESP, AH] {
                let service = |opaque, len| {
                    let rule = Rule { opaque, ..Rule::default() };
                    rule.service(&packet(v6, Transport::Other(protocol), len))
                };
                assert_eq!(service(Opaque::BySize, 1400), Service::Reliable);
                assert_eq!(service(Opaque::BySize, 92), Service::Unreliable);
                assert_eq!(service(Opaque::Reliable, 92), Service::Reliable);
                assert_eq!(service(Opaque::Unreliable, 1400), Service::Unreliable);
            }
        }
    }

    #[test]
    fn reliable_all_excludes_acknowledgements() {
        let rule = Rule { reliable: Reliable::All, opaque: Opaque::Unreliable, ack_size: 160 };
        let service = |transport, len| rule.service(&packet(false, transport, len));
        for protocol in [17, ESP, 47] {
            assert_eq!(service(Transport::Other(protocol), 1200), Service::Reliable);
            assert_eq!(service(Transport::Other(protocol), 60), Service::Unreliable);
        }
        assert_eq!(service(Transport::Tcp(segment()), 1), Service::Reliable);
        assert_eq!(service(Transport::Tcp(segment()), 0), Service::Unreliable);
    }
}
