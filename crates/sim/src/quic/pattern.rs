//! The content of streams: distinguishable bytes without storage.

use bytes::Bytes;

/// A prime, so that it is out of phase with every power of two.
const PERIOD: usize = 65_521;

/// Bytes of a generator (xorshift), shared by all streams.
static BYTES: [u8; PERIOD] = {
    let mut bytes = [0; PERIOD];
    let mut state = 0x9e37_79b9_u32;
    let mut i = 0;
    while i < PERIOD {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        bytes[i] = (state >> 24) as u8;
        i += 1;
    }
    bytes
};

/// The position of `offset` of stream number `stream` in the period.
fn place(stream: u64, offset: u64) -> usize {
    ((offset + stream.wrapping_mul(7_919)) % PERIOD as u64) as usize
}

/// At most `len` bytes of the stream from `offset` on.
pub(crate) fn piece(stream: u64, offset: u64, len: u64) -> Bytes {
    let from = place(stream, offset);
    let len = usize::try_from(len).unwrap_or(PERIOD).min(PERIOD - from);
    Bytes::from_static(&BYTES[from..from + len])
}

/// `bytes` are those of the stream at `offset`.
pub(crate) fn is_right(stream: u64, mut offset: u64, mut bytes: &[u8]) -> bool {
    while !bytes.is_empty() {
        let expected = piece(stream, offset, bytes.len() as u64);
        let (head, rest) = bytes.split_at(expected.len());
        if head != expected {
            return false;
        }
        offset += head.len() as u64;
        bytes = rest;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_that_differs_is_found() {
        let mut bytes = [piece(1, 65_000, 900), piece(1, 65_521 - 7_919, 10)].concat();
        let first = piece(1, 65_000, 900).len() as u64;
        bytes.truncate(first as usize);
        bytes.extend_from_slice(&piece(1, 65_000 + first, 300));
        assert!(is_right(1, 65_000, &bytes));
        assert!(!is_right(1, 65_001, &bytes) && !is_right(2, 65_000, &bytes));
        bytes[850] ^= 1;
        assert!(!is_right(1, 65_000, &bytes));
    }
}
