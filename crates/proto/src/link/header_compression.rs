//! TCP/IP header compression (RFC 1144, Van Jacobson): headers of 40 bytes in 3 to 7.
//!
//! Both ends of a link keep the last header of each connection. What follows from it is not sent, what differs
//! by little is sent as the difference. [`Compressor`] and [`Decompressor`] are the two ends; between them travel
//! real bytes, so that the length on the air is exact and a real link can carry them.
//!
//! # The compressed header
//!
//! ```text
//! | - C I P S A W U | connection | TCP checksum | urgent | window | ack | sequence | IP ID |
//!      1 byte          if C          2 bytes      if U     if W    if A     if S      if I
//! ```
//!
//! Differences take one byte from 1 to 255, else three: a zero and 16 bits. Two combinations that never occur
//! mean the two most frequent cases: S, W and U that data was echoed ([`ECHOED`]), S, A, W and U that data goes
//! one way ([`ONE_WAY`]); the differences are then the payload of the packet before.
//!
//! # What goes uncompressed
//!
//! IPv6 and everything that is not TCP go as IP: RFC 1144 knows only TCP over IPv4. So do SYN, FIN, RST and segments
//! without ACK. A difference that does not fit 16 bits, among them every step backwards of a retransmission, takes
//! a whole header with the connection number in the place of the protocol. So does any change of options: with
//! timestamps that is each time the clock has ticked, which the RFC of 1990 could not know.
//!
//! # What is particular here
//!
//! - A [`Packet`] keeps no IPv4 identification. Each packet counts as one more than the one
//!   before it on its connection, as today's Linux numbers them; then I is never sent. Who knows the real
//!   number gives it to [`Compressor::compress_numbered`].
//! - ECE and CWR (RFC 3168) are younger than RFC 1144, which has no bits for them. A segment whose differ from those
//!   of the segment before goes uncompressed.
//! - A packet that came damaged goes as IP: what its bytes say is not what its header here says.
//!
//! # Losses
//!
//! A difference that is lost puts the ends out of step, and every header after it comes out wrong. The TCP checksum
//! tells, for it crosses the link unchanged. What happens then is [`Recovery`].

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

/// What it is, for lists.
pub const HEADER_COMPRESSION: System = System::new(
    describe::Kind::Link,
    "header-compression",
    "path: link = { header-compression = \"vj\" | \"vj+twice\" | \"vj+feedback\" }",
    "TCP/IP headers of 40 bytes in 3 to 7 (RFC 1144), with the repairs of RFC 2507",
    "RFC 1144",
);

/// The connection number is sent.
pub const C: u8 = 0x40;
/// The IP identification did not grow by one.
pub const I: u8 = 0x20;
/// PUSH.
pub const P: u8 = 0x10;
/// The sequence number changed.
pub const S: u8 = 0x08;
/// The acknowledgement changed.
pub const A: u8 = 0x04;
/// The window changed.
pub const W: u8 = 0x02;
/// URG: the urgent pointer is sent.
pub const U: u8 = 0x01;
/// Sequence and acknowledgement both grew by the payload of the packet before: echoed interactive traffic.
//= rfc1144#section-3.2.2: SWU and SAWU cannot occur, and stand for the two common cases
pub const ECHOED: u8 = S | W | U;
/// The sequence grew by the payload of the packet before: data one way.
pub const ONE_WAY: u8 = S | A | W | U;

/// The longest header that is sent: IPv4 without options, TCP with all the options it has room for.
pub const MAX_HEADER: usize = 20 + 60;
/// The longest compressed header: mask, connection, checksum and five differences of three bytes.
pub const MAX_COMPRESSED: usize = 1 + 1 + 2 + 5 * 3;
/// Most connections of which a link can keep the headers: the connection number has one byte.
pub const MAX_SLOTS: u16 = 256;
/// Bytes of a request for a whole header (RFC 2507's CONTEXT_STATE): type, count, one connection number.
pub const REQUEST_LEN: u32 = 3;
/// The type of a request that names TCP connections.
const REQUEST_TCP: u8 = 3;

/// What becomes of a connection after a difference was lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Recovery {
    /// RFC 1144 as it is written: wrong headers go on to the receiver, whose TCP checksum refuses them, until the
    /// sender retransmits. That is a step backwards, and goes uncompressed.
    //= rfc1144#section-4.2: TCP's retransmission puts the ends in step again
    #[default]
    Retransmission,
    /// The twice algorithm: where the checksum fails, the same difference is taken to have been lost, and applied
    /// a second time. What still fails is dropped.
    //= rfc2507#section-10.1: one lost segment of a stream of equal ones is repaired so
    Twice,
    /// The decompressor asks for a whole header, and drops what comes until then.
    //= rfc2507#section-10.2: header requests
    Feedback,
}

impl Recovery {
    /// Whether a connection number may be left out when it is that of the frame before. After a loss that is a guess:
    /// RFC 1144's decompressor tosses what has none then. RFC 2507, whose ways the others are, always sends it.
    //= rfc1332#section-4.1: the slot must not be left out where errors of reception are not indicated
    fn omits_connection(self) -> bool {
        self == Recovery::Retransmission
    }

    /// Whether the decompressor asks for a whole header when it has none to restore with.
    fn asks_for_headers(self) -> bool {
        self == Recovery::Feedback
    }
}

/// What the checksum of a compressed header is taken over. Both ends must agree.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Coverage {
    /// The TCP checksum as it is: for a real link.
    #[default]
    Whole,
    /// The headers alone, the payload counted as zeros. Where both ends have the same payload it cancels out, so the
    /// sums agree exactly when those over everything do, and not a byte of payload need be made or read: for the
    /// simulator, whose links know whether a payload was harmed.
    Headers,
}

/// How headers are compressed on a link, in both directions and at both ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct CompressionConfig {
    /// Connections whose headers are kept, 1 to [`MAX_SLOTS`].
    pub slots: u16,
    /// What becomes of a connection after a loss.
    pub recovery: Recovery,
    /// What the checksum is taken over.
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
    /// Goes over the keys; nothing where headers are not compressed.
    pub fn keys(k: &mut Keys<'_>) -> Option<CompressionConfig> {
        let words = [
            ("none", None),
            ("vj", Some(Recovery::Retransmission)),
            ("vj+twice", Some(Recovery::Twice)),
            ("vj+feedback", Some(Recovery::Feedback)),
        ];
        let mut recovery = None;
        let what =
            "how TCP/IP headers are compressed, and what becomes of a connection after a loss";
        k.word("header-compression", &mut recovery, &words, what);
        let mut c = CompressionConfig::default();
        let most = u64::from(MAX_SLOTS);
        k.count("compression-slots", &mut c.slots, 1..=most, "connections whose headers are kept");
        recovery.map(|recovery| CompressionConfig { recovery, ..c })
    }

    fn slots(&self) -> usize {
        usize::from(self.slots.clamp(1, MAX_SLOTS))
    }
}

/// What a frame holds, which the link's framing has to say.
//= rfc1144#section-3.2.2: the framer tells three types of packets apart
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// An IP packet as it is.
    Ip,
    /// An IP packet with the connection number in the place of its protocol.
    UncompressedTcp,
    /// A compressed header and the payload.
    CompressedTcp,
}

/// Bytes of a header. No heap is used for them.
#[derive(Clone, Copy)]
pub struct HeaderBytes {
    bytes: [u8; MAX_HEADER],
    len: u8,
}

impl HeaderBytes {
    const EMPTY: HeaderBytes = HeaderBytes { bytes: [0; MAX_HEADER], len: 0 };

    fn push(&mut self, bytes: &[u8]) {
        let at = usize::from(self.len);
        // Callers keep within the bounds; a mistake there must not become a panic here.
        if let Some(room) = self.bytes.get_mut(at..at + bytes.len()) {
            room.copy_from_slice(bytes);
            self.len += bytes.len() as u8;
        }
    }

    /// A difference or the urgent pointer.
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

/// What a compressor made of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Compressed {
    /// What the frame holds.
    pub kind: Kind,
    /// What stands in the place of the IP and TCP headers; the payload follows. Empty if the packet goes as it is.
    pub header: HeaderBytes,
}

impl Compressed {
    /// A packet that goes as it is.
    pub const IP: Compressed = Compressed { kind: Kind::Ip, header: HeaderBytes::EMPTY };

    /// Length of `packet` on the air in this form, in bytes.
    pub fn on_air(&self, packet: &Packet) -> u32 {
        match self.kind {
            Kind::Ip => packet.wire_len(),
            _ => u32::from(self.header.len) + packet.body.len(),
        }
    }
}

/// Why a frame did not become a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Lost {
    /// After a frame that the link lost, one without a connection number is nobody's.
    //= rfc1144#section-4.1: tossed until a connection number comes
    #[error("a frame without connection number after a lost one")]
    Tossed,
    /// No header of this connection has come.
    #[error("connection {0} has no header yet")]
    NoContext(u8),
    /// The checksum fails: a difference before this one was lost.
    #[error("the header of connection {0} is out of step")]
    OutOfStep(u8),
    /// Not what a compressor would send.
    #[error("not a frame of a compressor")]
    Malformed,
}

/// A header as one end keeps it.
#[derive(Clone, Debug)]
struct Context {
    src: Addr,
    dst: Addr,
    tos: u8,
    ttl: u8,
    ip_id: u16,
    segment: Segment,
    /// Bytes of payload that the packet had.
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
            ttl: self.ttl,
            damage,
            urgent: false,
            piece: 0,
        })
    }

    /// The checksum of this header before `body`; `None` if its options cannot be written.
    fn checksum(&self, body: &Body, coverage: Coverage) -> Option<u16> {
        tcp_checksum(self.src, self.dst, &self.segment, body, coverage)
    }
}

/// The TCP checksum; `None` for options that cannot be written.
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
