//! Sources of datagrams (UDP) at a fixed rate, independent of the network, and their receivers.
//!
//! A datagram contains its number and its send time, as the packets of measurement programs do. The receiver
//! computes delay and loss from them.

use serde::Serialize;

use crate::rng::Stream;
use crate::units::{Rate, Span, Time};
use crate::wire::checksum::Sum;
use crate::wire::protocol::PROTOCOL_UDP;
use crate::wire::{Addr, Body, ECT1, FlowKey, Packet, Transport};

/// Bytes of a header (RFC 768).
pub const HEADER: u32 = 8;
/// Writes the header of a datagram of `flow`, checksum included, into the first eight of `bytes`: its packet.
pub fn packet(flow: FlowKey, mut bytes: Vec<u8>) -> Packet {
    let FlowKey { src, dst, src_port, dst_port } = flow;
    let len = bytes.len() as u32;
    for (at, word) in [(0, src_port), (2, dst_port), (4, len as u16), (6, 0)] {
        bytes[at..at + 2].copy_from_slice(&word.to_be_bytes());
    }
    let mut sum = Sum::default();
    sum.pseudo_header(src, dst, PROTOCOL_UDP, len);
    sum.bytes(&bytes);
    //= rfc768: a checksum of zero is sent as all ones
    let checksum = if sum.checksum() == 0 { 0xffff } else { sum.checksum() };
    bytes[6..8].copy_from_slice(&checksum.to_be_bytes());
    Packet::opaque(
        src,
        dst,
        Transport::Other(PROTOCOL_UDP),
        Body::Bytes { frame: bytes.into(), from: 0, len },
    )
}

/// The payload of a datagram; `None` if `packet` has no datagram with bytes.
pub fn payload(packet: &Packet) -> Option<&[u8]> {
    let Body::Bytes { frame, from, len } = &packet.body else { return None };
    frame.get(*from as usize..(*from + *len) as usize)?.get(HEADER as usize..)
}

/// Bytes of a datagram's content: its number and its send time.
const CONTENT: u32 = 16;
/// Largest IP packet in bytes.
const LARGEST: u32 = 65_535;
/// First port of receivers, above those of servers.
const FIRST_PORT: u16 = 50_000;

/// Configuration of a source.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Udp {
    /// Mean rate in bits of IP packets per second.
    pub rate: Rate,
    /// Mean size of an IP packet in bytes, headers included.
    pub size: u32,
    /// Distribution of intervals.
    pub arrivals: Arrivals,
    /// Distribution of sizes.
    pub sizes: Sizes,
    /// The voice call, if the source is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub voice: Option<Voice>,
    /// Interval of probes, which the receiver returns for a measurement of the round-trip time; `None` for
    /// other sources.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probe: Option<Span>,
    /// Whether datagrams and returned probes are marked ECT(1) for L4S.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub l4s: bool,
}

/// One direction of a voice call.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Voice {
    /// Speech codec.
    pub codec: Codec,
    /// Playout buffer: additional delay after the minimum within which packets are played.
    pub buffer: Span,
}

/// Speech codec.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Codec {
    /// G.711 with packet loss concealment: 64 kbit/s.
    G711,
    /// G.729A with voice activity detection: 8 kbit/s.
    G729,
}

impl Codec {
    /// Keywords of the codecs.
    pub const WORDS: [(&'static str, Codec); 2] = [("g711", Codec::G711), ("g729", Codec::G729)];

    /// Duration of speech in a packet.
    pub fn interval(self) -> Span {
        Span::millis(20)
    }

    /// Length in bytes of an IPv4 packet with UDP and RTP headers.
    pub fn size(self) -> u32 {
        40 + match self {
            Codec::G711 => 160,
            Codec::G729 => 20,
        }
    }

    /// Rate of its packets.
    pub fn rate(self) -> Option<Rate> {
        Rate::from_bps(u64::from(self.size()) * 8 * 1_000_000_000 / self.interval().0)
    }

    /// Impairment of a call's rating, and robustness against loss (Ie and Bpl of ITU-T G.113 appendix I).
    pub fn impairment(self) -> [f64; 2] {
        match self {
            Codec::G711 => [0.0, 25.1],
            Codec::G729 => [11.0, 19.0],
        }
    }
}

/// Distribution of intervals.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Arrivals {
    /// At equal intervals.
    #[default]
    Constant,
    /// A Poisson process: intervals are exponential.
    Poisson,
}

/// Distribution of sizes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Sizes {
    /// All sizes are equal.
    #[default]
    Constant,
    /// Exponential within the limits of packets: smaller values become the size of the headers, larger ones
    /// 65,535 bytes.
    Exponential,
}

impl Udp {
    /// Number of tables with separate ports.
    pub const TABLES: usize = 10_000;

    /// The port of receivers of the `nth` table, below [`Udp::TABLES`].
    pub fn port(nth: usize) -> u16 {
        FIRST_PORT + (nth % Udp::TABLES) as u16
    }

    /// Whether `port` belongs to receivers.
    fn is_port(port: u16) -> bool {
        (FIRST_PORT..FIRST_PORT + Udp::TABLES as u16).contains(&port)
    }
}

/// A datagram that was sent or has arrived.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Datagram {
    /// Its flow in the direction of travel.
    pub flow: FlowKey,
    /// Its number, from 0.
    pub number: u64,
    /// Send time.
    pub sent: Time,
    /// Length of its IP packet in bytes.
    pub bytes: u32,
}

impl Datagram {
    /// The returned datagram of a probe.
    pub fn back(&self) -> Datagram {
        Datagram { flow: self.flow.reversed(), ..*self }
    }

    /// Whether it may be returned: not to a receiver, which might return it again.
    pub fn may_return(&self) -> bool {
        !Udp::is_port(self.flow.src_port)
    }

    /// Whether it is a returned probe.
    pub fn is_back(&self) -> bool {
        Udp::is_port(self.flow.src_port) && !Udp::is_port(self.flow.dst_port)
    }

    /// The smallest IP packet from `src`.
    fn least(src: Addr) -> u32 {
        let ip = if src.is_v4() { 20 } else { 40 };
        ip + HEADER + CONTENT
    }

    /// Its packet.
    pub fn packet(&self) -> Packet {
        let src = self.flow.src;
        let ip = if src.is_v4() { 20 } else { 40 };
        let len = self.bytes.clamp(Datagram::least(src), LARGEST) - ip;
        let mut bytes = vec![0; len as usize];
        bytes[8..16].copy_from_slice(&self.number.to_be_bytes());
        bytes[16..24].copy_from_slice(&self.sent.0.to_be_bytes());
        packet(self.flow, bytes)
    }

    /// Parses a source's datagram; `None` if `packet` is something else.
    pub fn read(packet: &Packet) -> Option<Datagram> {
        if packet.transport != Transport::Other(PROTOCOL_UDP) {
            return None;
        }
        let Body::Bytes { frame, from, len } = &packet.body else { return None };
        let bytes = frame.get(*from as usize..(*from + *len) as usize)?;
        let word = |at: usize| Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
        let long = |at: usize| Some(u64::from_be_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
        let flow =
            FlowKey { src: packet.src, dst: packet.dst, src_port: word(0)?, dst_port: word(2)? };
        let (number, sent) = (long(8)?, Time(long(16)?));
        Some(Datagram { flow, number, sent, bytes: packet.wire_len() })
    }
}

/// A source.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    flow: FlowKey,
    udp: Udp,
    begins: Time,
    stop: Time,
    intervals: Stream,
    sizes: Stream,
    number: u64,
}

impl Source {
    /// Asserts that the source has a size and a time.
    pub fn check(&self) {
        debug_assert!(self.begins <= self.stop, "it stops before it begins");
        debug_assert!(self.udp.size > 0, "datagrams have bytes");
    }

    /// Creates a source that sends from `begins` until before `stop`. Intervals and sizes have separate
    /// random streams.
    pub fn new(flow: FlowKey, udp: Udp, [begins, stop]: [Time; 2], rng: [Stream; 2]) -> Source {
        let [intervals, sizes] = rng;
        Source { flow, udp, begins, stop, intervals, sizes, number: 0 }
    }

    /// The packet of one of its datagrams.
    pub fn packet(&self, datagram: &Datagram) -> Packet {
        datagram.packet().with(|packet| packet.tos = if self.udp.l4s { ECT1 } else { 0 })
    }

    /// Time of the first datagram; `None` if there is none.
    pub fn first(&mut self) -> Option<Time> {
        let first = match self.udp.arrivals {
            Arrivals::Constant => self.begins,
            Arrivals::Poisson => self.begins + self.interval(),
        };
        Some(first).filter(|at| *at < self.stop)
    }

    fn interval(&mut self) -> Span {
        Span(self.intervals.exponential(self.mean()) as u64)
    }

    /// The mean interval in nanoseconds.
    fn mean(&self) -> f64 {
        match self.udp.probe {
            Some(every) => every.0 as f64,
            None => f64::from(self.udp.size) * 8e9 / self.udp.rate.bps() as f64,
        }
    }

    /// The datagram of `now`, and the time of the next one, if any.
    pub fn send(&mut self, now: Time) -> (Datagram, Option<Time>) {
        let least = Datagram::least(self.flow.src);
        let bytes = match self.udp.sizes {
            Sizes::Constant => self.udp.size,
            Sizes::Exponential => libm::round(self.sizes.exponential(self.udp.size.into())) as u32,
        };
        let bytes = bytes.clamp(least, LARGEST);
        let datagram = Datagram { flow: self.flow, number: self.number, sent: now, bytes };
        self.number += 1;
        let next = match self.udp.arrivals {
            // Computed from the beginning, so that rounding errors do not accumulate.
            Arrivals::Constant => self.begins + Span((self.mean() * self.number as f64) as u64),
            Arrivals::Poisson => now + self.interval(),
        };
        (datagram, Some(next).filter(|at| *at < self.stop))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_are_read_as_written_with_valid_checksum() {
        for (src, dst) in [
            (Addr::v4(10, 0, 0, 1), Addr::v4(10, 1, 0, 1)),
            (
                "fd00::1".parse::<core::net::IpAddr>().unwrap().into(),
                "fd00::2".parse::<core::net::IpAddr>().unwrap().into(),
            ),
        ] {
            let flow = FlowKey { src, dst, src_port: 1024, dst_port: Udp::port(3) };
            let datagram = Datagram { flow, number: 7, sent: Time(123_456), bytes: 777 };
            let packet = datagram.packet();
            assert_eq!((packet.wire_len(), Datagram::read(&packet)), (777, Some(datagram)));
            let Body::Bytes { frame, .. } = &packet.body else { panic!() };
            let mut sum = Sum::default();
            sum.pseudo_header(src, dst, PROTOCOL_UDP, frame.len() as u32);
            sum.bytes(frame);
            assert!(sum.verifies());
        }
    }

    /// A datagram may be at any position in the received bytes, with others after it.
    #[test]
    fn a_payload_excludes_bytes_outside_its_datagram() {
        let frame: Vec<u8> = (0..40).collect();
        let packet = |from, len| {
            let body = Body::Bytes { frame: frame.clone().into(), from, len };
            let (src, dst) = (Addr::v4(1, 1, 1, 1), Addr::v4(2, 2, 2, 2));
            Packet::opaque(src, dst, Transport::Other(PROTOCOL_UDP), body)
        };
        assert_eq!(payload(&packet(20, 12)), Some(&[28, 29, 30, 31][..]));
        assert_eq!(payload(&packet(20, 8)), Some(&[][..]));
        assert_eq!(payload(&packet(20, 7)), None, "less than its header");
        assert_eq!(payload(&packet(30, 11)), None, "more than there is");
    }

    #[test]
    fn a_source_sends_at_its_configured_rate() {
        let flow = FlowKey {
            src: Addr::v4(1, 1, 1, 1),
            dst: Addr::v4(2, 2, 2, 2),
            src_port: 1,
            dst_port: 2,
        };
        let end = Time::ZERO + Span::secs(1000);
        for arrivals in [Arrivals::Constant, Arrivals::Poisson] {
            for sizes in [Sizes::Constant, Sizes::Exponential] {
                let rate = Rate::from_bps(8_000_000).unwrap();
                let udp = Udp {
                    rate,
                    size: 10_000,
                    arrivals,
                    sizes,
                    voice: None,
                    probe: None,
                    l4s: false,
                };
                let rng = ["intervals", "sizes"].map(|part| Stream::new(1, part));
                let mut source = Source::new(flow, udp, [Time::ZERO, end], rng);
                let (mut next, mut n, mut bytes) = (source.first(), 0, 0_u64);
                while let Some(at) = next {
                    let (datagram, then) = source.send(at);
                    (next, n, bytes) = (then, n + 1, bytes + u64::from(datagram.bytes));
                }
                // 100,000 datagrams, with a deviation of 316 for exponential intervals; as much again for
                // sizes.
                let off = f64::from(n) - 100_000.0;
                assert!(
                    off.abs() < if arrivals == Arrivals::Poisson { 1300.0 } else { 1.0 },
                    "{n}"
                );
                let mean = bytes as f64 / f64::from(n);
                let error = if sizes == Sizes::Exponential { 130.0 } else { 1e-9 };
                assert!((mean - 10_000.0).abs() <= error, "{mean}");
            }
        }
    }
}
