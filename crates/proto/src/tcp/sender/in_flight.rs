//! The segments in flight one by one, for senders that must know more of each than the edges tell.

use std::collections::VecDeque;

use super::{Chunk, Window};

/// Segments that are remembered. What is sent beyond is left to what needs no memory.
const SEGMENTS_MAX: usize = 1 << 14;

/// A segment in flight, and what is known of it.
#[derive(Clone, Copy, Debug)]
pub struct Piece<T> {
    /// Its first position.
    pub from: u64,
    /// One past its last.
    pub to: u64,
    /// What is known of it.
    pub about: T,
}

/// The segments in flight, by position.
#[derive(Clone, Debug)]
pub struct InFlight<T> {
    pieces: VecDeque<Piece<T>>,
}

impl<T> Default for InFlight<T> {
    fn default() -> InFlight<T> {
        InFlight { pieces: VecDeque::new() }
    }
}

impl<T> InFlight<T> {
    /// A segment goes out: for the first time, about which `first` is known, or again, which changes what is known
    /// by `again`.
    pub fn sent(&mut self, w: &Window, chunk: &Chunk, first: T, again: impl FnOnce(&mut T)) {
        self.acknowledge(w.una);
        let to = chunk.from + u64::from(chunk.len) + u64::from(chunk.fin);
        if self.pieces.back().is_none_or(|last| chunk.from >= last.to) {
            if self.pieces.len() < SEGMENTS_MAX {
                self.pieces.push_back(Piece { from: chunk.from, to, about: first });
            }
        } else if let Some(piece) = self.find(chunk.from) {
            // One that grew since, or that a probe had cut, is known by what went out last.
            piece.to = piece.to.max(to);
            again(&mut piece.about);
        }
    }

    /// Forgets what is below the left edge; the last segment that is forgotten, if any is.
    pub fn acknowledge(&mut self, una: u64) -> Option<Piece<T>> {
        let mut last = None;
        while self.pieces.front().is_some_and(|piece| piece.to <= una) {
            last = self.pieces.pop_front();
        }
        if let Some(first) = self.pieces.front_mut() {
            first.from = first.from.max(una);
        }
        last
    }

    /// The segment that begins at `from`.
    pub fn find(&mut self, from: u64) -> Option<&mut Piece<T>> {
        let at = self.pieces.partition_point(|piece| piece.from < from);
        self.pieces.get_mut(at).filter(|piece| piece.from == from)
    }

    /// All, lowest first.
    pub fn iter(&self) -> impl Iterator<Item = &Piece<T>> {
        self.pieces.iter()
    }

    /// All, lowest first, to be changed.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Piece<T>> {
        self.pieces.iter_mut()
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.pieces.clear();
    }
}
