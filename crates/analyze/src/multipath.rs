//! Subflows of one MPTCP connection (RFC 8684), by the token of its key.

use lasthop_proto::wire::{Flags, Segment, options};
use sha1::{Digest as _, Sha1};
use sha2::Sha256;

/// Option kind of MPTCP, and its subtypes that open a connection and a further subflow.
const KIND: u8 = 30;
const CAPABLE: u8 = 0;
const JOIN: u8 = 1;

/// Whether a segment has an option of MPTCP.
pub(crate) fn is_multipath(segment: &Segment) -> bool {
    options::walk(&segment.options().unknown).flatten().any(|option| option.kind == KIND)
}

/// The options of one subflow that name its connection.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Multipath {
    /// Tokens of the keys of both sides.
    tokens: [Option<u32>; 2],
    /// The token of the connection that the SYN joins.
    joined: Option<u32>,
}

impl Multipath {
    pub(crate) fn packet(&mut self, side: usize, segment: &Segment) {
        let unknown = &segment.options().unknown;
        if unknown.is_empty() || self.tokens[side].is_some() {
            return;
        }
        let syn = segment.flags.has(Flags::SYN);
        for option in options::walk(unknown).flatten().filter(|option| option.kind == KIND) {
            let [first, rest @ ..] = option.value() else { continue };
            match (first >> 4, rest) {
                //= rfc8684#section-3.1: the key of the sender comes first, and version 0 has another hash
                (CAPABLE, [_, keys @ ..]) => {
                    let token = if first & 15 == 0 { token_0 } else { token };
                    for (side, key) in [side, 1 - side].into_iter().zip(keys.as_chunks::<8>().0) {
                        self.tokens[side] = Some(token(key));
                    }
                }
                //= rfc8684#section-3.2: the SYN of a further subflow has the token of the receiver
                (JOIN, [_, rest @ ..]) if syn && !segment.flags.has(Flags::ACK) => {
                    self.joined = rest.first_chunk().map(|token| u32::from_be_bytes(*token));
                }
                _ => {}
            }
        }
    }

    /// Tokens of the connection.
    pub(crate) fn tokens(&self) -> impl Iterator<Item = u32> {
        self.tokens.into_iter().chain([self.joined]).flatten()
    }
}

/// The token of a key.
//= rfc8684#section-3.2: the most significant 32 bits of the SHA-256 hash of the key
fn token(key: &[u8; 8]) -> u32 {
    let [a, b, c, d, ..]: [u8; 32] = Sha256::digest(key).into();
    u32::from_be_bytes([a, b, c, d])
}

/// The token of a key in version 0, which has another hash.
//= rfc6824#section-3.2: the most significant 32 bits of the SHA-1 hash of the key
fn token_0(key: &[u8; 8]) -> u32 {
    let [a, b, c, d, ..]: [u8; 20] = Sha1::digest(key).into();
    u32::from_be_bytes([a, b, c, d])
}
