//! Operations of a stack for a segment, each with its own price.

use serde::Serialize;

/// An operation of a stack for a segment or for one of its bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Operation {
    /// Sending a segment: header, control block, transfer to the interface. Options and bytes are charged
    /// separately.
    Send,
    /// Receiving a segment on the fast path: header prediction was right (agarwal00 3.4).
    Predicted,
    /// Receiving a segment by the full procedure.
    Processed,
    /// Finding the control block that was used last (agarwal00 3.2).
    LookupCached,
    /// Finding the control block by its hash.
    LookupHashed,
    /// Comparing the timestamp of a segment with the last one (PAWS, agarwal00 4.1).
    Paws,
    /// Writing a timestamps option, or reading it and updating the round-trip time.
    Timestamps,
    /// Writing a SACK block, or adding it to the scoreboard.
    SackBlock,
    /// Scaling a window.
    WindowScale,
    /// Copying a byte between the application and the stack.
    CopiedByte,
    /// Adding a byte to a checksum in a separate pass.
    SummedByte,
    /// Copying a byte and adding it to the checksum in one pass (agarwal00 3.3).
    CopiedSummedByte,
    /// Moving a byte to or from the card.
    CardByte,
}

impl Operation {
    /// Every operation, in a fixed order.
    pub const ALL: [Operation; 13] = [
        Operation::Send,
        Operation::Predicted,
        Operation::Processed,
        Operation::LookupCached,
        Operation::LookupHashed,
        Operation::Paws,
        Operation::Timestamps,
        Operation::SackBlock,
        Operation::WindowScale,
        Operation::CopiedByte,
        Operation::SummedByte,
        Operation::CopiedSummedByte,
        Operation::CardByte,
    ];

    /// Its index in [`Operation::ALL`].
    pub fn index(self) -> usize {
        self as usize
    }
}

/// Work of a host's stack for one segment: a count for each operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Work([u32; Operation::ALL.len()]);

impl Work {
    /// Adds `times` to the count of `operation`.
    pub fn add(&mut self, operation: Operation, times: u32) {
        let count = &mut self.0[operation.index()];
        *count = count.saturating_add(times);
    }

    /// Count of `operation`.
    pub fn count(&self, operation: Operation) -> u32 {
        self.0[operation.index()]
    }

    /// Every operation with its count, in the order of [`Operation::ALL`].
    pub fn counts(&self) -> impl Iterator<Item = (Operation, u32)> + '_ {
        Operation::ALL.into_iter().zip(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_has_its_place() {
        for (i, operation) in Operation::ALL.into_iter().enumerate() {
            assert_eq!(operation.index(), i);
        }
        let mut work = Work::default();
        work.add(Operation::Paws, 2);
        work.add(Operation::CardByte, u32::MAX);
        work.add(Operation::CardByte, 1);
        assert_eq!(work.count(Operation::Paws), 2);
        assert_eq!(work.counts().last(), Some((Operation::CardByte, u32::MAX)));
    }
}
