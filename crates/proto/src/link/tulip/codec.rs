//! The encoding of a link-layer frame.
//!
//! | bytes | what |
//! |---|---|
//! | 1 | version (high four bits), acknowledgement present (bit 3), type (low three bits) |
//! | 2 + 4 | RLP only: sequence number, number of the transmission |
//! | 2 + 4 + 2 + n | if present, the acknowledgement: cumulative, last transmission heard, bits of the vector, vector |
//! | rest | the load: an IP packet; empty in a LACK |
//!
//! Numbers are big-endian; the first bit of a vector is the lowest of its first byte. Any deviation is
//! rejected.

use crate::link::frame::{ArqHeader, BitVector, LinkAck};

use super::WINDOW_MAX;

/// The supported version.
pub const VERSION: u8 = 1;
const ACK: u8 = 8;

/// The types of frames (parsa98 3.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Unreliable: a packet that is sent once.
    Ulp,
    /// Reliable: a packet with a sequence number.
    Rlp,
    /// A pure acknowledgement.
    Lack,
}

/// Reason why bytes are no valid frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CodecError {
    /// The header is incomplete.
    #[error("the frame ends within its header")]
    Truncated,
    /// Another version.
    #[error("the frame is of version {0}; expected version {VERSION}")]
    Version(u8),
    /// An unknown type, or one that does not match the header.
    #[error("the first byte {0:#04x} names no type of frame")]
    Kind(u8),
    /// A sequence number or cumulative acknowledgement beyond the largest window.
    #[error("sequence number {0} is beyond the largest window")]
    Number(u16),
    /// A vector longer than the largest window, or with bits set beyond its end.
    #[error("a vector of {0} bits is longer than the largest window, or not clean at its end")]
    Vector(u16),
    /// A missing packet, or one where none is allowed.
    #[error("a frame of this type has a load of {0} bytes")]
    Load(usize),
}

/// Length of the header before the load, bytes.
pub fn header_len(header: &ArqHeader) -> u32 {
    let seq = if header.seq.is_some() { 6 } else { 0 };
    let ack = header.ack.as_ref().map_or(0, |ack| 8 + u32::from(ack.vector.len()).div_ceil(8));
    1 + seq + ack
}

/// Appends a frame to `out`. Numbers beyond 16 bits do not occur in TULIP and are truncated.
pub fn emit(header: &ArqHeader, load: &[u8], out: &mut Vec<u8>) {
    let kind = match (header.seq, load) {
        (Some(_), _) => Kind::Rlp,
        (None, []) => Kind::Lack,
        (None, _) => Kind::Ulp,
    };
    let ack = if header.ack.is_some() { ACK } else { 0 };
    out.push(VERSION << 4 | ack | kind as u8);
    if let Some(seq) = header.seq {
        out.extend((seq as u16).to_be_bytes());
        out.extend(header.transmission.to_be_bytes());
    }
    if let Some(ack) = &header.ack {
        out.extend((ack.cumulative as u16).to_be_bytes());
        out.extend(ack.last_received.to_be_bytes());
        out.extend(ack.vector.len().to_be_bytes());
        let byte = |at: u16| (0..8).fold(0, |byte, i| byte | u8::from(ack.vector.get(at + i)) << i);
        out.extend((0..ack.vector.len()).step_by(8).map(byte));
    }
    out.extend(load);
}

/// Parses a frame: its header and its load.
pub fn parse(bytes: &[u8]) -> Result<(ArqHeader, &[u8]), CodecError> {
    let mut rest = bytes;
    let [first] = take(&mut rest)?;
    if first >> 4 != VERSION {
        return Err(CodecError::Version(first >> 4));
    }
    let kind = match first & 7 {
        0 => Kind::Ulp,
        1 => Kind::Rlp,
        2 if first & ACK != 0 => Kind::Lack,
        _ => return Err(CodecError::Kind(first)),
    };
    let mut header = ArqHeader::default();
    if kind == Kind::Rlp {
        header.seq = Some(number(&mut rest)?);
        header.transmission = u32::from_be_bytes(take(&mut rest)?);
    }
    if first & ACK != 0 {
        header.ack = Some(ack(&mut rest)?);
    }
    if (kind == Kind::Lack) != rest.is_empty() {
        return Err(CodecError::Load(rest.len()));
    }
    Ok((header, rest))
}

fn take<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N], CodecError> {
    let (head, tail) = rest.split_first_chunk().ok_or(CodecError::Truncated)?;
    *rest = tail;
    Ok(*head)
}

fn number(rest: &mut &[u8]) -> Result<u32, CodecError> {
    let number = u16::from_be_bytes(take(rest)?);
    if number >= 2 * WINDOW_MAX {
        return Err(CodecError::Number(number));
    }
    Ok(number.into())
}

fn ack(rest: &mut &[u8]) -> Result<LinkAck, CodecError> {
    let cumulative = number(rest)?;
    let last_received = u32::from_be_bytes(take(rest)?);
    let len = u16::from_be_bytes(take(rest)?);
    if len > WINDOW_MAX {
        return Err(CodecError::Vector(len));
    }
    let bytes = usize::from(len).div_ceil(8);
    let (bits, tail) = rest.split_at_checked(bytes).ok_or(CodecError::Truncated)?;
    *rest = tail;
    if let Some(last) = bits.last()
        && len % 8 != 0
        && last >> (len % 8) != 0
    {
        return Err(CodecError::Vector(len));
    }
    let mut vector = BitVector::zeros(len);
    for i in (0..len).filter(|i| bits[usize::from(i / 8)] >> (i % 8) & 1 == 1) {
        vector.set(i);
    }
    Ok(LinkAck { cumulative, vector, last_received })
}
