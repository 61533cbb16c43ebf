//! The keys of a transfer's QUIC.

use lasthop_proto::describe::Keys;
use lasthop_proto::units::{Bytes, Span};
use serde::Serialize;

/// How QUIC carries a transfer (RFC 9000).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Quic {
    /// Congestion control.
    pub congestion: QuicCongestion,
    /// Streams over which the bytes are distributed, in parallel on one connection.
    pub streams: u32,
    /// Ack-eliciting packets that the receiver accepts before it sends an acknowledgement, as the sender
    /// requests by an ACK_FREQUENCY frame; `None` is the default of the stack: one.
    pub ack_threshold: Option<u32>,
    /// Packets after a missing one that declare it lost (RFC 9002 6.1.1); `None` is the default of the stack: 3.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packet_threshold: Option<u32>,
    /// Maximum delay of an acknowledgement that an ACK_FREQUENCY frame requests; `None` is the default of the
    /// stack.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ack_delay: Option<Span>,
    /// Bytes in flight allowed on a stream: the window of the receiver; `None` is the default of the stack:
    /// 1.25 MB.
    pub window: Option<Bytes>,
}

/// Congestion control of QUIC.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum QuicCongestion {
    /// CUBIC (RFC 9438), the stack's default.
    Cubic,
    /// `NewReno` as in RFC 9002.
    NewReno,
}

impl Default for Quic {
    fn default() -> Quic {
        Quic {
            congestion: QuicCongestion::Cubic,
            streams: 1,
            ack_threshold: None,
            packet_threshold: None,
            ack_delay: None,
            window: None,
        }
    }
}

/// Visits the keys of QUIC; `None` if TCP carries the transfer.
pub(crate) fn keys(k: &mut Keys<'_>) -> Option<Quic> {
    let mut quic = Quic::default();
    k.table("quic", "options of QUIC; the table alone selects QUIC", |k| {
        let table = [("cubic", QuicCongestion::Cubic), ("newreno", QuicCongestion::NewReno)];
        k.word("congestion", &mut quic.congestion, &table, "the congestion control");
        let description = "parallel streams of one connection, which share the bytes";
        k.count("streams", &mut quic.streams, 1..=100, description);
        let description = "packets that the receiver may leave unacknowledged; 1 by default";
        k.maybe_count("ack-threshold", &mut quic.ack_threshold, 0..=1000, description);
        let description = "the longest delay of an acknowledgement that the sender requests";
        k.maybe("ack-delay", &mut quic.ack_delay, Span::millis(1)..=Span::secs(10), description);
        let description = "packets after a missing one that declare it lost; 3 by default";
        k.maybe_count("packet-threshold", &mut quic.packet_threshold, 3..=100_000, description);
        let description = "the receiver's window of each stream; 1.25 MB by default";
        k.maybe("window", &mut quic.window, Bytes(1200)..=Bytes(1 << 30), description);
    });
    let mut is_quic = k.has("quic");
    let table = [("tcp", false), ("quic", true)];
    let description = "the transport protocol; \"quic\" if there is a table `quic`";
    k.word("protocol", &mut is_quic, &table, description);
    is_quic.then_some(quic)
}
