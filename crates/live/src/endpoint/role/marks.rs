//! Marks in bulk data: counters from which the client measures round trips on loaded connections.
//!
//! Data with marks consists of blocks of [`BLOCK`] bytes, whose first [`MARK`] bytes are a counter. In a download the
//! client sends single bytes, and the counter is the number of bytes that the receiver has read. In an upload the
//! client increases the counter, and the receiver returns each new value in [`MARK`] bytes. So a probe waits in the
//! same buffers and queues as the data of its connection.

/// Length of a block, bytes. It is shorter than a segment, so a slow connection waits for a mark at most as long as for
/// one segment.
pub(in crate::endpoint) const BLOCK: usize = 1024;

/// Length of a mark, bytes.
pub(in crate::endpoint) const MARK: usize = 8;

/// Writes `mark` to each start of a block in `data`, whose first byte has `position` in the stream. A mark that
/// begins before `position` is not changed.
pub(in crate::endpoint) fn stamp(position: u64, data: &mut [u8], mark: u64) {
    let offset = (position % BLOCK as u64) as usize;
    let first = (BLOCK - offset) % BLOCK;
    let mark = mark.to_be_bytes();
    for block in data.get_mut(first..).unwrap_or_default().chunks_mut(BLOCK) {
        let length = block.len().min(MARK);
        block[..length].copy_from_slice(&mark[..length]);
    }
}

/// Reads the marks of received data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::endpoint) struct MarkReader {
    /// Length of a block, bytes.
    block: usize,
    /// Position in the block.
    offset: usize,
    /// Bytes of an incomplete mark.
    partial: u64,
}

impl MarkReader {
    /// A reader of data with a mark at the start of each `block` bytes, which are at least [`MARK`].
    pub(in crate::endpoint) fn new(block: usize) -> MarkReader {
        MarkReader { block: block.max(MARK), offset: 0, partial: 0 }
    }

    /// The last mark that is complete with `piece`.
    pub(in crate::endpoint) fn read(&mut self, mut piece: &[u8]) -> Option<u64> {
        let mut mark = None;
        while let Some((byte, rest)) = piece.split_first() {
            if self.offset < MARK {
                self.partial = self.partial << 8 | u64::from(*byte);
                self.offset += 1;
                piece = rest;
                if self.offset == MARK {
                    mark = Some(std::mem::take(&mut self.partial));
                }
            } else {
                let skipped = (self.block - self.offset).min(piece.len());
                self.offset += skipped;
                piece = &piece[skipped..];
            }
            if self.offset == self.block {
                self.offset = 0;
            }
        }
        mark
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_survive_any_cut() {
        let mut data = vec![0xff; 5 * BLOCK + 3];
        stamp(0, &mut data, 7);
        // From the middle of the second mark on, which is already sent in part.
        stamp(BLOCK as u64 + 4, &mut data[BLOCK + 4..], 9);
        for size in [1, 3, MARK, BLOCK - 1, BLOCK, 3000, data.len()] {
            let mut reader = MarkReader::new(BLOCK);
            let marks: Vec<u64> =
                data.chunks(size).filter_map(|piece| reader.read(piece)).collect();
            assert!(marks.is_sorted(), "{size}: {marks:?}");
            assert_eq!(marks.last(), Some(&9), "{size}");
        }
        let mut reader = MarkReader::new(BLOCK);
        assert_eq!(reader.read(&data[..2 * BLOCK]), Some(7));
    }

    #[test]
    fn answers_are_marks_without_data() {
        let mut reader = MarkReader::new(MARK);
        let answers = [3_u64.to_be_bytes(), 4_u64.to_be_bytes()].concat();
        assert_eq!(reader.read(&answers[..8]), Some(3));
        assert_eq!(reader.read(&answers[8..13]), None);
        assert_eq!(reader.read(&answers[13..]), Some(4));
    }
}
