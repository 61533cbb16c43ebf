//! Input of a direction: its packets with payload, and the peer's packets.

use lasthop_proto::units::{Span, Time};
use lasthop_proto::wire::Seq;

/// A packet with payload.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Data {
    pub(crate) at: Time,
    pub(crate) seq: Seq,
    pub(crate) len: u32,
    pub(crate) timestamp: Option<u32>,
    /// IPv4 identification.
    pub(crate) ip_id: Option<u16>,
    /// Duplicate ACKs of the peer in a row so far.
    pub(crate) dupacks: u32,
    /// The round trip of the handshake.
    pub(crate) first_rtt: Option<Span>,
    /// The round trip of the whole path: of the handshake, or measured elsewhere.
    pub(crate) round_trip: Option<Span>,
    /// Time since the connection began.
    pub(crate) since: Span,
    /// The largest payload of a packet on the wire, as far as the handshake shows.
    pub(crate) full: u32,
    /// Packets of this side before it were lost before the point of capture.
    pub(crate) missed: bool,
}

/// Feedback in a packet of the peer about the data of this side.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Acked {
    pub(crate) at: Time,
    pub(crate) ack: Seq,
    /// The timestamp that it echoes.
    pub(crate) echo: Option<u32>,
    pub(crate) duplicate: bool,
    /// The packet has payload as well.
    pub(crate) answer: bool,
    /// The packet only acknowledges: it has neither payload nor SYN, FIN or RST.
    pub(crate) plain: bool,
    /// For packets that are not plain: the round trip of the whole path, if it is known.
    pub(crate) path: Option<Span>,
    /// The peer's window in bytes, if its scale is known.
    pub(crate) window: Option<u64>,
}
