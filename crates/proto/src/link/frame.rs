//! A link-layer frame between two stations of a radio hop, and its load.

use serde::Serialize;

use super::airmail::header::AirmailHeader;
use crate::air::{FrameKind, Station};
use crate::units::Span;
use crate::wire::Packet;

pub use super::load::{BitVector, LinkAck, Load, Piece};

/// A frame between two stations.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Frame {
    /// The sender.
    pub from: Station,
    /// The receiver.
    pub to: Station,
    /// The link layer's header.
    pub header: Header,
    /// What it carries.
    pub load: Load,
    /// Length in bytes without medium access and coding: the link layer's header and the load.
    pub bytes: u32,
    /// Whether the sending end stores a copy. Otherwise a loss is final.
    pub stored: bool,
}

impl Frame {
    /// The kind of this frame.
    pub fn kind(&self) -> FrameKind {
        match (&self.load, &self.header) {
            // Parity represents packets.
            (Load::None, Header::Airmail(header)) if header.parity.is_some() => FrameKind::Data,
            (Load::None, _) => FrameKind::LinkAck,
            (load, _) => match load.packet().is_some_and(Packet::is_data) {
                true => FrameKind::Data,
                false => FrameKind::Ack,
            },
        }
    }
}

/// The link layer's header of a frame.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Header {
    /// No header.
    Plain,
    /// A retransmitting protocol.
    Arq(ArqHeader),
    /// AIRMAIL.
    Airmail(AirmailHeader),
}

/// The header of a retransmitting protocol.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ArqHeader {
    /// Sequence number of the load, with the reliable service.
    pub seq: Option<u32>,
    /// Number of this transmission: one more than that of the sender's last frame with a sequence number to
    /// this station, wrapping. A retransmission has a new number.
    pub transmission: u32,
    /// Acknowledgement of the other direction.
    pub ack: Option<LinkAck>,
}

/// Length in bytes of the longest short answer: a link-layer acknowledgement with a TCP ACK (parsa98 3.3: 40
/// B and the link's header). WAIT reports the time for which a station has the channel beyond it.
pub const SHORT_ANSWER: u32 = 50;

/// Times of the physical layer and of medium access, from which a link layer computes its timers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Timing {
    /// Airtime of one byte of a frame in picoseconds, with coding.
    pub byte_ps: u64,
    /// Airtime of every frame in addition to its bytes: preamble, framing, headers of medium access.
    pub frame: Span,
    /// Maximum propagation delay over the hop.
    pub propagation: Span,
    /// Radio ramp-up and ramp-down.
    pub turnaround: Span,
    /// Processing at sender and receiver.
    pub processing: Span,
    /// Maximum time until a station whose turn it is can be heard: its longest backoff and its RTS. Zero
    /// without contention.
    pub turn: Span,
}

impl Timing {
    /// Airtime of a frame of `bytes` bytes, at most seven months.
    pub fn on_air(&self, bytes: u32) -> Span {
        self.frame + Span(u64::from(bytes).saturating_mul(self.byte_ps).div_ceil(1000))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The longest frame at one bit per second, with each bit sent 35 times.
    #[test]
    fn the_airtime_of_the_slowest_frame_does_not_overflow() {
        let timing = Timing {
            byte_ps: 8_000_000_000_000 * 35,
            frame: Span::secs(1),
            propagation: Span::ZERO,
            turnaround: Span::ZERO,
            processing: Span::ZERO,
            turn: Span::ZERO,
        };
        assert_eq!(timing.on_air(1000), Span::secs(280_001));
        assert!(timing.on_air(u32::MAX) > Span::secs(200 * 86_400));
    }

    #[test]
    fn a_bit_vector_has_exactly_the_bits_set() {
        for len in [0, 1, 7, 63, 64, 65, 128, 4095] {
            let mut bits = BitVector::zeros(len);
            for i in (0..len).step_by(3) {
                bits.set(i);
            }
            bits.set(len);
            assert!((0..=len).all(|i| bits.get(i) == (i < len && i % 3 == 0)), "{len}");
        }
    }
}
