//! TCP/IP header compression (RFC 1144, Van Jacobson): headers of 40 bytes in 3 to 7.
//!
//! Both ends of a link store the last header of each connection. Fields that follow from it are omitted, and
//! small changes are sent as differences. [`Compressor`] and [`Decompressor`] are the two ends. They exchange
//! real bytes, so the length on the air is exact and a real link can carry them.
//!
//! # The compressed header
//!
//! ```text
//! | - C I P S A W U | connection | TCP checksum | urgent | window | ack | sequence | IP ID |
//!      1 byte          if C          2 bytes      if U     if W    if A     if S      if I
//! ```
//!
//! Differences from 1 to 255 take one byte, others three: a zero and 16 bits. Two combinations that never
//! occur denote the two most frequent cases: S, W and U mean echoed data ([`ECHOED`]), S, A, W and U mean
//! unidirectional data ([`ONE_WAY`]). The differences are then the payload of the previous packet.
//!
//! # Uncompressed packets
//!
//! IPv6 and protocols other than TCP are sent as IP, since RFC 1144 supports only TCP over IPv4. So are SYN,
//! FIN, RST and segments without ACK. A difference that exceeds 16 bits, such as every backward step of a
//! retransmission, takes a whole header with the connection number in the protocol field. So does any change
//! of options; with timestamps that is each clock tick, which the RFC of 1990 could not foresee.
//!
//! # Deviations
//!
//! - A [`Packet`] does not store the IPv4 identification. Each packet counts as one more than the previous
//!   one of its connection, as current Linux numbers them, so I is never sent. A caller that has the real
//!   number uses [`Compressor::compress_numbered`].
//! - ECE and CWR (RFC 3168) are younger than RFC 1144, which has no bits for them. A segment that changes
//!   them is sent uncompressed.
//! - A packet that arrived damaged is sent as IP, since its bytes differ from its header here.
//!
//! # Losses
//!
//! A lost difference desynchronises the ends, and every later header is wrong. The TCP checksum, which
//! crosses the link unchanged, detects this. [`Recovery`] determines the reaction.

mod compressor;
mod decompressor;

use crate::describe::Keys;
use crate::describe::{self, System};
use serde::Serialize;

use crate::wire::checksum::Sum;
use crate::wire::protocol::PROTOCOL_TCP;
use crate::wire::{Addr, Body, Damage, Packet, PacketId, Parts, Segment, Transport, options};

pub use compressor::Compressor;
pub use decompressor::Decompressor;

/// Descriptor for lists.
pub const HEADER_COMPRESSION: System = System::new(
    describe::Kind::Link,
    "header-compression",
    "path: link = { header-compression = \"vj\" | \"vj+twice\" | \"vj+feedback\" }",
    "TCP/IP headers of 40 bytes in 3 to 7 (RFC 1144), with the repairs of RFC 2507",
    "RFC 1144",
);

/// Flag: the connection number is sent.
pub const C: u8 = 0x40;
/// Flag: the IP identification did not increase by one.
pub const I: u8 = 0x20;
/// Flag: PUSH.
pub const P: u8 = 0x10;
/// Flag: the sequence number changed.
pub const S: u8 = 0x08;
/// Flag: the acknowledgement changed.
pub const A: u8 = 0x04;
/// Flag: the window changed.
pub const W: u8 = 0x02;
/// Flag: URG; the urgent pointer is sent.
pub const U: u8 = 0x01;
/// Sequence and acknowledgement both grew by the payload of the previous packet: echoed interactive traffic.
//= rfc1144#section-3.2.2: SWU and SAWU cannot occur, and stand for the two common cases
pub const ECHOED: u8 = S | W | U;
/// The sequence grew by the payload of the previous packet: unidirectional data.
pub const ONE_WAY: u8 = S | A | W | U;

/// Length of the longest header, bytes: IPv4 without options, TCP with all option space.
pub const MAX_HEADER: usize = 20 + 60;
/// Length of the longest compressed header, bytes: mask, connection, checksum and five differences of three
/// bytes.
pub const MAX_COMPRESSED: usize = 1 + 1 + 2 + 5 * 3;
/// Limit of connections per link: the connection number has one byte.
pub const MAX_SLOTS: u16 = 256;
/// Bytes of a request for a whole header (RFC 2507's CONTEXT_STATE): type, count, one connection number.
pub const REQUEST_LEN: u32 = 3;
/// Type of a request for TCP connections.
const REQUEST_TCP: u8 = 3;

/// Treatment of a connection after a lost difference.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Recovery {
    /// RFC 1144 as written: wrong headers are forwarded to the receiver, which drops them by the TCP
    /// checksum, until the sender retransmits. The retransmission is a backward step, so it is sent
    /// uncompressed.
    //= rfc1144#section-4.2: TCP's retransmission puts the ends in step again
    #[default]
    Retransmission,
    /// The twice algorithm: after a checksum failure the same difference is assumed lost, and applied twice.
    /// Remaining failures are dropped.
    //= rfc2507#section-10.1: one lost segment of a stream of equal ones is repaired so
    Twice,
    /// The decompressor requests a whole header, and drops packets until it arrives.
    //= rfc2507#section-10.2: header requests
    Feedback,
}

impl Recovery {
    /// Whether a connection number may be omitted if it equals that of the previous frame. After a loss that
    /// is uncertain, and RFC 1144's decompressor drops frames without a number. RFC 2507, the source of the
    /// other variants, always sends it.
    //= rfc1332#section-4.1: the slot must not be left out where errors of reception are not indicated
    fn omits_connection(self) -> bool {
        self == Recovery::Retransmission
    }

    /// Whether the decompressor requests a whole header when it has none.
    fn requests_headers(self) -> bool {
        self == Recovery::Feedback
    }
}

/// Bytes covered by the checksum of a compressed header. Both ends must agree.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Coverage {
    /// The whole segment, as in TCP: for a real link.
    #[default]
    Whole,
    /// The headers alone, with a payload of zeros. If both ends have the same payload it cancels out, so the
    /// comparison has the same result as over everything, without any access to the payload. It is for the
    /// simulator, whose links report damaged payload.
    Headers,
}

/// Header compression of a link, for both directions and ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct CompressionConfig {
    /// Number of stored headers, 1 to [`MAX_SLOTS`].
    pub slots: u16,
    /// Treatment of a connection after a loss.
    pub recovery: Recovery,
    /// Coverage of the checksum.
    pub coverage: Coverage,
}

impl Default for CompressionConfig {
    //= rfc1144#section-5.1: sixteen connections
    fn default() -> CompressionConfig {
        CompressionConfig {
            slots: 16,
            recovery: Recovery::default(),
            coverage: Coverage::default(),
        }
    }
}

impl CompressionConfig {
    /// Reads the keys; `None` without header compression.
    pub fn keys(k: &mut Keys<'_>) -> Option<CompressionConfig> {
        let words = [
            ("none", None),
            ("vj", Some(Recovery::Retransmission)),
            ("vj+twice", Some(Recovery::Twice)),
            ("vj+feedback", Some(Recovery::Feedback)),
        ];
        let mut recovery = None;
        let doc = "how TCP/IP headers are compressed, and how a connection recovers from a loss";
        k.word("header-compression", &mut recovery, &words, doc);
        let mut c = CompressionConfig::default();
        let most = u64::from(MAX_SLOTS);
        k.count("compression-slots", &mut c.slots, 1..=most, "connections with stored headers");
        recovery.map(|recovery| CompressionConfig { recovery, ..c })
    }

    fn slots(&self) -> usize {
        usize::from(self.slots.clamp(1, MAX_SLOTS))
    }
}

/// Content of a frame, which the link's framing must indicate.
//= rfc1144#section-3.2.2: the framer distinguishes three types of packets
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// An unchanged IP packet.
    Ip,
    /// An IP packet with the connection number in its protocol field.
    UncompressedTcp,
    /// A compressed header and the payload.
    CompressedTcp,
}

/// Bytes of a header, without heap memory.
#[derive(Clone, Copy)]
pub struct HeaderBytes {
    bytes: [u8; MAX_HEADER],
    len: u8,
}

impl HeaderBytes {
    const EMPTY: HeaderBytes = HeaderBytes { bytes: [0; MAX_HEADER], len: 0 };

    fn push(&mut self, bytes: &[u8]) {
        let at = usize::from(self.len);
        // Callers respect the bounds; a violation must not panic here.
        if let Some(room) = self.bytes.get_mut(at..at + bytes.len()) {
            room.copy_from_slice(bytes);
            self.len += bytes.len() as u8;
        }
    }

    /// Appends a difference or the urgent pointer.
    //= rfc1144#section-3.2.2: 1 to 255 in one byte; zero and what is larger in three, the first of them zero
    fn push_delta(&mut self, delta: u16) {
        match u8::try_from(delta) {
            Ok(small @ 1..) => self.push(&[small]),
            _ => {
                let [high, low] = delta.to_be_bytes();
                self.push(&[0, high, low]);
            }
        }
    }
}

impl core::ops::Deref for HeaderBytes {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

impl core::fmt::Debug for HeaderBytes {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        (**self).fmt(f)
    }
}

impl PartialEq for HeaderBytes {
    fn eq(&self, other: &HeaderBytes) -> bool {
        **self == **other
    }
}

impl Eq for HeaderBytes {}

/// Result of the compression of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Compressed {
    /// Content of the frame.
    pub kind: Kind,
    /// Replacement of the IP and TCP headers; the payload follows. Empty for an unchanged packet.
    pub header: HeaderBytes,
}

impl Compressed {
    /// An unchanged packet.
    pub const IP: Compressed = Compressed { kind: Kind::Ip, header: HeaderBytes::EMPTY };

    /// Length of `packet` on the air in this form, bytes.
    pub fn on_air(&self, packet: &Packet) -> u32 {
        match self.kind {
            Kind::Ip => packet.wire_len(),
            _ => u32::from(self.header.len) + packet.body.len(),
        }
    }
}

/// Reason why a frame did not become a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Lost {
    /// A frame without a connection number after a lost frame.
    //= rfc1144#section-4.1: tossed until a connection number comes
    #[error("a frame without connection number after a lost one")]
    Tossed,
    /// A connection without a stored header.
    #[error("connection {0} has no header yet")]
    NoContext(u8),
    /// A checksum failure: an earlier difference was lost.
    #[error("the header of connection {0} is out of step")]
    OutOfStep(u8),
    /// An invalid frame.
    #[error("not a frame of a compressor")]
    Malformed,
}

/// A stored header.
#[derive(Clone, Debug)]
struct Context {
    src: Addr,
    dst: Addr,
    tos: u8,
    ttl: u8,
    ip_id: u16,
    segment: Segment,
    /// Payload length of its packet, bytes.
    payload: u32,
}

impl Context {
    fn packet(&self, body: Body, damage: Damage) -> Packet {
        Packet::new(Parts {
            id: PacketId(0),
            src: self.src,
            dst: self.dst,
            transport: Transport::Tcp(self.segment.clone()),
            body,
            tos: self.tos,
            label: 0,
            ttl: self.ttl,
            damage,
            urgent: false,
            piece: 0,
            fragmentable: false,
        })
    }

    /// The checksum of this header and `body`; `None` if its options cannot be encoded.
    fn checksum(&self, body: &Body, coverage: Coverage) -> Option<u16> {
        tcp_checksum(self.src, self.dst, &self.segment, body, coverage)
    }
}

/// The TCP checksum; `None` for options that cannot be encoded.
fn tcp_checksum(
    src: Addr,
    dst: Addr,
    segment: &Segment,
    body: &Body,
    coverage: Coverage,
) -> Option<u16> {
    let mut sum = Sum::default();
    let header = segment.header_len();
    sum.pseudo_header(src, dst, PROTOCOL_TCP, header + body.len());
    sum.word(segment.src_port);
    sum.word(segment.dst_port);
    sum.long(segment.seq.0);
    sum.long(segment.ack.0);
    sum.word(((header / 4) << 12) as u16 | segment.flags.0);
    sum.word(segment.window);
    if segment.timestamps.is_some() || segment.has_options() {
        sum.word(segment.options().urgent);
        sum.bytes(options::write(segment.timestamps, segment.options()).ok()?.as_slice());
    }
    match (coverage, body) {
        (Coverage::Headers, _) => {}
        (Coverage::Whole, Body::Bytes { frame, from, len }) => {
            let from = *from as usize;
            sum.bytes(frame.get(from..from + *len as usize)?);
        }
        (Coverage::Whole, Body::Pattern { .. }) => {
            let mut bytes = Vec::with_capacity(body.len() as usize);
            body.copy_into(u32::MAX, &mut bytes);
            sum.bytes(&bytes);
        }
    }
    Some(sum.checksum())
}
