//! What travels between two stations of a radio hop: a link-layer frame and what it carries.

use serde::Serialize;

use super::airmail::AirmailHeader;
use crate::air::{FrameKind, Station};
use crate::units::Span;
use crate::wire::Packet;

/// A frame between two stations.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Frame {
    /// Who sends it.
    pub from: Station,
    /// Whom it is for.
    pub to: Station,
    /// What the link layer says.
    pub header: Header,
    /// What it carries.
    pub load: Load,
    /// Length in bytes without what medium access and coding add: the link layer's header and the load.
    pub bytes: u32,
    /// Whether the sending end keeps a copy. What is lost otherwise is lost for good.
    pub kept: bool,
}

impl Frame {
    /// What kind of frame this is.
    pub fn kind(&self) -> FrameKind {
        match (&self.load, &self.header) {
            // Parity stands for packets.
            (Load::None, Header::Airmail(header)) if header.parity.is_some() => FrameKind::Data,
            (Load::None, _) => FrameKind::LinkAck,
            (load, _) => match load.packet().is_some_and(Packet::is_data) {
                true => FrameKind::Data,
                false => FrameKind::Ack,
            },
        }
    }
}

/// What a frame carries.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Load {
    /// Nothing.
    None,
    /// A packet.
    Packet(Packet),
    /// A piece of a packet that is longer than the link's frames.
    Piece(Piece),
}

/// A piece of a packet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Piece {
    /// The whole packet; that it comes again with each piece costs nothing, its body is shared.
    pub packet: Packet,
    /// Which packet of this sender it belongs to.
    pub id: u32,
    /// Which piece it is, counted from 0.
    pub index: u16,
    /// How many pieces the packet has.
    pub count: u16,
    /// Length of this piece in bytes.
    pub bytes: u32,
}

impl Load {
    /// Length in bytes.
    pub fn bytes(&self) -> u32 {
        match self {
            Load::None => 0,
            Load::Packet(packet) => packet.wire_len(),
            Load::Piece(piece) => piece.bytes,
        }
    }

    /// The packet that it is, or is a piece of.
    pub fn packet(&self) -> Option<&Packet> {
        match self {
            Load::None => None,
            Load::Packet(packet) => Some(packet),
            Load::Piece(piece) => Some(&piece.packet),
        }
    }

    /// Whether the packet ends with this load: it is a whole one, or its last piece.
    pub fn is_last(&self) -> bool {
        match self {
            Load::None => false,
            Load::Packet(_) => true,
            Load::Piece(piece) => piece.index + 1 == piece.count,
        }
    }
}

/// What the link layer says in a frame.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Header {
    /// Nothing: the load is all there is.
    Plain,
    /// A protocol that retransmits.
    Arq(ArqHeader),
    /// AIRMAIL.
    Airmail(AirmailHeader),
}

/// The header of a protocol that retransmits.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ArqHeader {
    /// Sequence number of the load, if it is under the reliable service.
    pub seq: Option<u32>,
    /// Number of this transmission: one more than that of the sender's last frame to this station that had a
    /// sequence number, wrapping. A retransmission has a number of its own.
    pub transmission: u32,
    /// Acknowledgement of what came the other way.
    pub ack: Option<LinkAck>,
}

/// A link-layer acknowledgement.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LinkAck {
    /// Sequence number of the last packet received in order.
    pub cumulative: u32,
    /// Which of the packets behind it have been received: bit 0 stands for `cumulative + 1`.
    pub vector: BitVector,
    /// The highest transmission number heard: what was sent before it and is not acknowledged is lost, since the
    /// link keeps the order.
    pub heard: u32,
}

/// A vector of bits. Up to 64 of them need no memory of their own.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct BitVector {
    len: u16,
    first: u64,
    rest: Vec<u64>,
}

impl BitVector {
    /// `len` zeros.
    pub fn zeros(len: u16) -> BitVector {
        let words = usize::from(len).div_ceil(64).saturating_sub(1);
        BitVector { len, first: 0, rest: vec![0; words] }
    }

    /// How many bits.
    pub fn len(&self) -> u16 {
        self.len
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bit `i`; bits beyond the end are zero.
    pub fn get(&self, i: u16) -> bool {
        let word = match usize::from(i / 64) {
            _ if i >= self.len => 0,
            0 => self.first,
            n => self.rest[n - 1],
        };
        word >> (i % 64) & 1 == 1
    }

    /// Sets bit `i`; beyond the end nothing happens.
    pub fn set(&mut self, i: u16) {
        if i >= self.len {
            return;
        }
        let word = match usize::from(i / 64) {
            0 => &mut self.first,
            n => &mut self.rest[n - 1],
        };
        *word |= 1 << (i % 64);
    }
}

/// Length in bytes of the longest frame that counts as a short answer: a link-layer acknowledgement that carries a
/// TCP ACK (parsa98 3.3: 40 B and the link's header). WAIT tells by how much longer somebody has the channel.
pub const SHORT_ANSWER: u32 = 50;

/// What the physical layer and medium access take beside the bits of a frame: what a link layer computes its timers
/// from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Timing {
    /// Time on the air of one byte of a frame, coding included, in picoseconds.
    pub byte_ps: u64,
    /// Time on the air that every frame takes beside its bytes: preamble, framing, headers of medium access.
    pub frame: Span,
    /// Largest propagation delay over the hop.
    pub propagation: Span,
    /// Radio ramp-up and ramp-down.
    pub turnaround: Span,
    /// Processing at sender and receiver.
    pub processing: Span,
    /// How long it may take until a station that has its turn is heard: its longest back-off and its RTS. Zero where
    /// nobody contends.
    pub turn: Span,
}

impl Timing {
    /// How long a frame of `bytes` is on the air; seven months are as long as any.
    pub fn on_air(&self, bytes: u32) -> Span {
        self.frame + Span(u64::from(bytes).saturating_mul(self.byte_ps).div_ceil(1000))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The longest frame at one bit a second, each bit of which is sent 35 times.
    #[test]
    fn the_slowest_frame_takes_months() {
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
    fn bits_stand_where_they_were_set() {
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
