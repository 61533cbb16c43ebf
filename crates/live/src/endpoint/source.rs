//! The transferred bytes.

use lasthop_proto::wire::Body;

use super::CHUNK;

/// The deterministic bytes of [`Body::Pattern`], which a receiver can verify without a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pattern {
    /// Number of the random stream.
    pub stream: u32,
}

impl Pattern {
    /// Replaces `into` by `count` bytes of the pattern from `position` on.
    pub fn fill(self, position: u64, count: usize, into: &mut Vec<u8>) {
        into.clear();
        let len = u32::try_from(count).unwrap_or(u32::MAX);
        Body::Pattern { stream: self.stream, len, offset: position }.copy_into(len, into);
    }
}

/// A prefix of the pattern.
#[derive(Clone, Copy, Debug)]
pub struct Source {
    /// The pattern.
    pub pattern: Pattern,
    /// Length.
    pub bytes: u64,
}

impl Source {
    /// Replaces `into` by the next bytes; `position` is the number of bytes before. An empty result is the end.
    pub(super) fn next(self, position: u64, into: &mut Vec<u8>) {
        let left = self.bytes.saturating_sub(position).min(CHUNK as u64);
        self.pattern.fill(position, left as usize, into);
    }
}
