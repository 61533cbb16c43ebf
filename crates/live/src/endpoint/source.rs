//! Sources of the transferred bytes.

use std::fs::File;
use std::io::{self, Read as _};

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

/// A source of bytes.
#[derive(Debug)]
pub enum Source {
    /// A prefix of the pattern.
    Pattern {
        /// The pattern.
        pattern: Pattern,
        /// Length.
        bytes: u64,
    },
    /// A file, a pipe or a terminal, read to its end.
    File(File),
}

impl Source {
    /// Total number of bytes, if known.
    pub fn bytes(&self) -> Option<u64> {
        match self {
            Source::Pattern { bytes, .. } => Some(*bytes),
            Source::File(file) => {
                let about = file.metadata().ok()?;
                about.is_file().then_some(about.len())
            }
        }
    }

    /// Reads the next bytes into `into`; `position` is the number of bytes before. An empty result is the
    /// end.
    pub(super) fn next(&mut self, position: u64, into: &mut Vec<u8>) -> io::Result<()> {
        match self {
            Source::Pattern { pattern, bytes } => {
                let left = bytes.saturating_sub(position).min(CHUNK as u64);
                pattern.fill(position, left as usize, into);
                Ok(())
            }
            Source::File(file) => {
                into.resize(CHUNK, 0);
                let read = file.read(into);
                into.truncate(*read.as_ref().unwrap_or(&0));
                read.map(drop)
            }
        }
    }
}
