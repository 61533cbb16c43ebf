//! The payload of a packet.

use std::sync::Arc;

/// Payload bytes. The simulator stores only the identity of bytes: their stream and their position in it. A
/// receiver can thus verify every delivered byte, and copying a payload costs nothing. Live packets share the
/// bytes of the received frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// `len` bytes of `stream`, beginning `offset` bytes after the stream's start.
    Pattern {
        /// The byte stream.
        stream: u32,
        /// Number of bytes.
        len: u32,
        /// Position of the first byte in the stream.
        offset: u64,
    },
    /// Real bytes: `frame[from..from + len]`.
    Bytes {
        /// The shared buffer that holds them.
        frame: Arc<[u8]>,
        /// Index of the first byte.
        from: u32,
        /// Number of bytes.
        len: u32,
    },
}

/// Stream of payload that a data plane received and still stores.
const HELD: u32 = u32::MAX;

impl Body {
    /// No payload.
    pub const EMPTY: Body = Body::Pattern { stream: 0, len: 0, offset: 0 };

    /// `len` bytes that the data plane stores, beginning at position `at` of all its received bytes. Only the
    /// data plane can read them.
    pub fn held(at: u64, len: u32) -> Body {
        Body::Pattern { stream: HELD, len, offset: at }
    }

    /// Position in the data plane's received bytes, if the data plane stores them.
    pub fn held_at(&self) -> Option<u64> {
        match self {
            Body::Pattern { stream: HELD, offset, .. } => Some(*offset),
            _ => None,
        }
    }

    /// A body that owns a copy of `bytes`.
    pub fn copy_of(bytes: &[u8]) -> Body {
        Body::Bytes { frame: bytes.into(), from: 0, len: bytes.len() as u32 }
    }

    /// Payload length in bytes.
    pub fn len(&self) -> u32 {
        match self {
            Body::Pattern { len, .. } | Body::Bytes { len, .. } => *len,
        }
    }

    /// Whether there is no payload.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The `len` bytes from `skip` on, limited to the available ones.
    pub fn slice(&self, skip: u32, count: u32) -> Body {
        let skip = skip.min(self.len());
        let count = count.min(self.len() - skip);
        match self {
            Body::Pattern { stream, offset, .. } => {
                Body::Pattern { stream: *stream, offset: offset + u64::from(skip), len: count }
            }
            Body::Bytes { frame, from, .. } => {
                Body::Bytes { frame: frame.clone(), from: from + skip, len: count }
            }
        }
    }

    /// This body and the next one of its stream joined, if no copy is needed.
    pub fn joined(&self, next: &Body) -> Option<Body> {
        match (self, next) {
            (
                Body::Pattern { stream, len, offset },
                Body::Pattern { stream: same, len: more, offset: follows },
            ) if stream == same && offset + u64::from(*len) == *follows => Some(Body::Pattern {
                stream: *stream,
                len: len.checked_add(*more)?,
                offset: *offset,
            }),
            (
                Body::Bytes { frame, from, len },
                Body::Bytes { frame: same, from: follows, len: more },
            ) if Arc::ptr_eq(frame, same) && from + len == *follows => {
                Some(Body::Bytes { frame: frame.clone(), from: *from, len: len + more })
            }
            _ => None,
        }
    }

    /// This body in a separate buffer, if it retains a much larger one. A body in long-term storage must not
    /// hold more memory than its bytes.
    pub fn compact(self) -> Body {
        match &self {
            Body::Bytes { frame, from, len } if frame.len() > 2 * *len as usize + 128 => {
                let from = *from as usize;
                Body::copy_of(&frame[from..from + *len as usize])
            }
            _ => self,
        }
    }

    /// Appends the first `count` bytes, or all available ones, to `out`.
    pub fn copy_into(&self, count: u32, out: &mut Vec<u8>) {
        let count = count.min(self.len());
        match self {
            Body::Pattern { stream, offset, .. } => {
                let positions = *offset..offset.saturating_add(u64::from(count));
                out.extend(positions.map(|position| pattern(*stream, position)));
            }
            Body::Bytes { frame, from, .. } => {
                let from = *from as usize;
                out.extend_from_slice(&frame[from..from + count as usize]);
            }
        }
    }

    /// The byte at `index`. A pattern's bytes are a fixed function of stream and position.
    pub fn byte(&self, index: u32) -> Option<u8> {
        if index >= self.len() {
            return None;
        }
        Some(match self {
            Body::Pattern { stream, offset, .. } => pattern(*stream, offset + u64::from(index)),
            Body::Bytes { frame, from, .. } => frame[(from + index) as usize],
        })
    }
}

/// The byte of `stream` at `position`.
fn pattern(stream: u32, position: u64) -> u8 {
    let x = position ^ (u64::from(stream) << 40);
    (x.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_has_the_bytes_of_its_whole() {
        for whole in [
            Body::Pattern { stream: 7, offset: 1000, len: 50 },
            Body::copy_of(&(0..50).collect::<Vec<u8>>()),
        ] {
            let part = whole.slice(10, 20);
            assert_eq!(part.len(), 20);
            assert!((0..20).all(|i| part.byte(i) == whole.byte(10 + i)));
            let mut copied = Vec::new();
            part.copy_into(15, &mut copied);
            assert!((0..15).all(|i| part.byte(i) == copied.get(i as usize).copied()));
            part.copy_into(99, &mut copied);
            assert_eq!(copied.len(), 35);
            assert_eq!(whole.slice(45, 20).len(), 5);
            assert_eq!(whole.slice(60, 1).len(), 0);
        }
    }
}
