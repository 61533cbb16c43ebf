//! What a stack does for a segment, counted in operations that have a price each.

use serde::Serialize;

/// Something that a stack does for a segment, or for a byte of it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Operation {
    /// A segment is sent: header, control block, hand-over to the interface. Options and bytes are charged apart.
    Send,
    /// A segment is taken in on the fast path: header prediction was right (agarwal00 3.4).
    Predicted,
    /// A segment is taken in by the whole procedure.
    Processed,
    /// The control block is the one that was used last (agarwal00 3.2).
    LookupCached,
    /// The control block is found by its hash.
    LookupHashed,
    /// The timestamp of a segment is held against the last one (PAWS, agarwal00 4.1).
    Paws,
    /// A timestamps option is written, or read with what it says of the round trip.
    Timestamps,
    /// A SACK block is written, or taken into the scoreboard.
    SackBlock,
    /// A window is scaled.
    WindowScale,
    /// A byte is copied between the application and the stack.
    CopiedByte,
    /// A byte is added to a checksum in a pass of its own.
    SummedByte,
    /// A byte is copied and added to the checksum in one pass (agarwal00 3.3).
    CopiedSummedByte,
    /// A byte goes to the card or comes from it.
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

    /// Its place in [`Operation::ALL`].
    pub fn index(self) -> usize {
        self as usize
    }
}

/// What a host's stack has done for one segment: how often each operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Work([u32; Operation::ALL.len()]);

impl Work {
    /// Counts `operation` `times` more.
    pub fn add(&mut self, operation: Operation, times: u32) {
        let count = &mut self.0[operation.index()];
        *count = count.saturating_add(times);
    }

    /// How often `operation` was done.
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
