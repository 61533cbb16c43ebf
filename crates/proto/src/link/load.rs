//! The load of a link-layer frame, and the acknowledgement that it may carry.

use crate::wire::Packet;

/// The load of a frame.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Load {
    /// Nothing.
    None,
    /// A packet.
    Packet(Packet),
    /// A fragment of a packet that exceeds the link's frames.
    Piece(Piece),
}

/// A fragment of a packet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Piece {
    /// The whole packet; a copy per fragment is free, since the body is shared.
    pub packet: Packet,
    /// Number of the packet among those of this sender.
    pub id: u32,
    /// Index of the fragment, from 0.
    pub index: u16,
    /// Number of fragments of the packet.
    pub count: u16,
    /// Length of this fragment, bytes.
    pub bytes: u32,
}

impl Load {
    /// Length, bytes.
    pub fn bytes(&self) -> u32 {
        match self {
            Load::None => 0,
            Load::Packet(packet) => packet.wire_len(),
            Load::Piece(piece) => piece.bytes,
        }
    }

    /// The packet, whole or fragmented.
    pub fn packet(&self) -> Option<&Packet> {
        match self {
            Load::None => None,
            Load::Packet(packet) => Some(packet),
            Load::Piece(piece) => Some(&piece.packet),
        }
    }

    /// Whether this load ends its packet: a whole packet, or the last fragment.
    pub fn is_last(&self) -> bool {
        match self {
            Load::None => false,
            Load::Packet(_) => true,
            Load::Piece(piece) => piece.index + 1 == piece.count,
        }
    }
}

/// A link-layer acknowledgement.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LinkAck {
    /// Sequence number of the last packet received in order.
    pub cumulative: u32,
    /// Received packets behind it: bit 0 is `cumulative + 1`.
    pub vector: BitVector,
    /// The highest received transmission number. Unacknowledged packets sent before it are lost, since the link
    /// preserves the order.
    pub last_received: u32,
}

/// A bit vector. Up to 64 bits need no heap memory.
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

    /// Number of bits.
    pub fn len(&self) -> u16 {
        self.len
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bit `i`; zero beyond the end.
    pub fn get(&self, i: u16) -> bool {
        let word = match usize::from(i / 64) {
            _ if i >= self.len => 0,
            0 => self.first,
            n => self.rest[n - 1],
        };
        word >> (i % 64) & 1 == 1
    }

    /// Sets bit `i`; ignored beyond the end.
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
