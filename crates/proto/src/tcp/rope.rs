//! A range of a byte stream in pieces.
//!
//! Pieces are shared, not copied: a pattern has no bytes, and real bytes remain in the frame in which they
//! arrived. Only a slice across pieces is copied. A small piece of a large frame would occupy much more
//! memory than its bytes. Therefore a small part of a frame is copied, and small neighbours are joined.

use std::collections::VecDeque;

use crate::wire::Body;

/// Neighbours of real bytes up to this total size are stored as one piece.
const SMALL: u32 = 2048;

/// A range of a byte stream. Positions count from the first byte ever pushed.
#[derive(Clone, Debug, Default)]
pub struct Rope {
    pieces: VecDeque<Piece>,
    /// The first stored position.
    from: u64,
    /// One past the last position.
    to: u64,
}

#[derive(Clone, Debug)]
struct Piece {
    from: u64,
    body: Body,
}

impl Piece {
    fn to(&self) -> u64 {
        self.from + u64::from(self.body.len())
    }
}

impl Rope {
    /// Asserts that the pieces cover the stored range without holes.
    pub fn check(&self) {
        debug_assert!(self.from <= self.to, "the range of a rope");
        let mut end = None;
        for piece in &self.pieces {
            debug_assert!(!piece.body.is_empty(), "an empty piece");
            debug_assert!(end.is_none_or(|end| end == piece.from), "a hole before {}", piece.from);
            end = Some(piece.from + u64::from(piece.body.len()));
        }
        debug_assert!(end.is_none_or(|end| end == self.to), "the last piece ends the rope");
        debug_assert!(
            self.pieces.front().is_none_or(|piece| piece.from <= self.from),
            "the first piece begins the rope"
        );
    }

    /// Creates an empty range: the next pushed byte has the position `at`.
    pub fn starting_at(at: u64) -> Rope {
        Rope { from: at, to: at, ..Rope::default() }
    }

    /// The stored pieces, in order.
    pub fn bodies(&self) -> impl Iterator<Item = Body> {
        self.pieces.iter().map(|piece| {
            let skip = self.from.saturating_sub(piece.from) as u32;
            piece.body.slice(skip, u32::MAX)
        })
    }

    /// Number of stored bytes.
    pub fn len(&self) -> u64 {
        self.to - self.from
    }

    /// Whether no byte is stored.
    pub fn is_empty(&self) -> bool {
        self.from == self.to
    }

    /// One past the last position.
    pub fn end(&self) -> u64 {
        self.to
    }

    /// Appends `body`.
    pub fn push(&mut self, body: Body) {
        if body.is_empty() {
            return;
        }
        let from = self.to;
        self.to += u64::from(body.len());
        if let Some(last) = self.pieces.back_mut() {
            if let Some(whole) = last.body.joined(&body).or_else(|| small(&last.body, &body)) {
                last.body = whole;
                return;
            }
        }
        self.pieces.push_back(Piece { from, body: body.compact() });
    }

    /// Discards everything below the position `to`.
    pub fn release(&mut self, to: u64) {
        self.from = to.clamp(self.from, self.to);
        while self.pieces.front().is_some_and(|piece| piece.to() <= self.from) {
            self.pieces.pop_front();
        }
    }

    /// The `len` bytes from the position `at` on, limited to the stored ones.
    pub fn slice(&self, at: u64, len: u32) -> Body {
        // The piece is nearly always the last one or the first one, but need not be.
        let i = self.pieces.partition_point(|piece| piece.to() <= at);
        let Some(first) = self.pieces.get(i).filter(|piece| piece.from <= at) else {
            return Body::EMPTY;
        };
        let skip = (at - first.from) as u32;
        if first.body.len() - skip >= len || i + 1 == self.pieces.len() {
            return first.body.slice(skip, len);
        }
        let mut bytes = Vec::with_capacity(len as usize);
        first.body.slice(skip, len).copy_into(len, &mut bytes);
        for piece in self.pieces.range(i + 1..) {
            let left = len - bytes.len() as u32;
            if left == 0 {
                break;
            }
            piece.body.copy_into(left, &mut bytes);
        }
        Body::copy_of(&bytes)
    }

    /// Moves everything to the end of `into`, oldest first.
    pub fn drain(&mut self, into: &mut Vec<Body>) {
        for piece in self.pieces.drain(..) {
            let skip = self.from.saturating_sub(piece.from) as u32;
            into.push(if skip == 0 { piece.body } else { piece.body.slice(skip, u32::MAX) });
        }
        self.from = self.to;
    }
}

/// Joins two small neighbours of real bytes.
fn small(one: &Body, next: &Body) -> Option<Body> {
    let (Body::Bytes { .. }, Body::Bytes { .. }) = (one, next) else { return None };
    let len = one.len() + next.len();
    if len > SMALL {
        return None;
    }
    let mut bytes = Vec::with_capacity(len as usize);
    one.copy_into(u32::MAX, &mut bytes);
    next.copy_into(u32::MAX, &mut bytes);
    Some(Body::copy_of(&bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bytes(body: &Body) -> Vec<u8> {
        let mut out = Vec::new();
        body.copy_into(u32::MAX, &mut out);
        out
    }

    #[test]
    fn patterns_cost_nothing_however_many_there_are() {
        let mut rope = Rope::default();
        for n in 0..1000u64 {
            rope.push(Body::Pattern { stream: 3, offset: n * 100, len: 100 });
        }
        assert_eq!((rope.pieces.len(), rope.len()), (1, 100_000));
        assert_eq!(rope.slice(950, 100), Body::Pattern { stream: 3, offset: 950, len: 100 });
    }

    #[test]
    fn real_bytes_are_shared_unless_a_slice_spans_pieces() {
        let frame = Body::copy_of(&[7; 4000]);
        let Body::Bytes { frame: shared, .. } = &frame else { unreachable!() };
        let mut rope = Rope::default();
        rope.push(frame.slice(0, 3000));
        rope.push(Body::copy_of(&[8; 3000]));
        assert!(
            matches!(rope.slice(500, 1000), Body::Bytes { frame, .. } if std::sync::Arc::ptr_eq(&frame, shared))
        );
        assert_eq!(bytes(&rope.slice(2999, 2)), [7, 8]);
    }

    #[test]
    fn single_bytes_of_large_frames_hold_little_memory() {
        let mut rope = Rope::default();
        for _ in 0..10_000 {
            rope.push(Body::copy_of(&[1; 1500]).slice(700, 1));
        }
        let held: usize = rope
            .pieces
            .iter()
            .map(|piece| match &piece.body {
                Body::Bytes { frame, .. } => frame.len() + size_of::<Piece>(),
                Body::Pattern { .. } => 0,
            })
            .sum();
        assert!(held < 12_000, "{held} bytes for 10000");
    }

    proptest! {
        #[test]
        fn it_is_the_stream_that_was_pushed(
            pieces in prop::collection::vec((any::<bool>(), 0u32..3000), 1..30),
            cuts in prop::collection::vec((0u64..40_000, 0u32..5000, 0u64..40_000), 1..30),
        ) {
            let mut rope = Rope::default();
            let mut plain: Vec<u8> = Vec::new();
            for (i, (real, len)) in pieces.into_iter().enumerate() {
                let body = Body::Pattern { stream: 1 + i as u32 % 2, offset: plain.len() as u64, len };
                let body = if real { Body::copy_of(&bytes(&body)) } else { body };
                plain.extend(bytes(&body));
                rope.push(body);
            }
            let mut low = 0;
            for (at, len, release) in cuts {
                let at = at.max(low);
                let start = (at as usize).min(plain.len());
                let end = (start + len as usize).min(plain.len());
                prop_assert_eq!(bytes(&rope.slice(at, len)), &plain[start..end]);
                rope.release(release);
                low = low.max(release);
                prop_assert_eq!(rope.len(), (plain.len() as u64).saturating_sub(low));
            }
            let mut rest = Vec::new();
            rope.drain(&mut rest);
            let rest: Vec<u8> = rest.iter().flat_map(bytes).collect();
            prop_assert_eq!(&rest[..], &plain[(low as usize).min(plain.len())..]);
        }
    }
}
