//! Cost of each operation in instructions.
//!
//! callgrind counted the figures on the code of this stack: `make instructions` counts them again and prints
//! the rows of the table. The cost of a segment's operation is the difference that the operation makes where
//! it is done. The cost of a byte is counted on loops for a machine with 32-bit words, such as that of
//! agarwal00 (a Pentium at 90 MHz): words are copied and added with end-around carry, and each half of a word
//! is written to a register of a 16-bit card.
//!
//! The figures are relative prices. [`super::Hardware::segment`] defines the energy of an instruction.

use super::{Operation, Work};

/// Instructions of every operation, in the order of [`Operation::ALL`]. An operation with two variants has
/// their mean: receiving data and ACKs, writing and reading options.
const TABLE: [(Operation, f64); Operation::ALL.len()] = [
    (Operation::Send, 745.0),
    (Operation::Predicted, 732.5),
    (Operation::Processed, 867.5),
    (Operation::LookupCached, 42.0),
    (Operation::LookupHashed, 103.0),
    (Operation::Paws, 14.0),
    (Operation::Timestamps, 106.0),
    (Operation::SackBlock, 926.0),
    (Operation::WindowScale, 3.0),
    (Operation::CopiedByte, 0.61),
    (Operation::SummedByte, 0.86),
    (Operation::CopiedSummedByte, 1.11),
    (Operation::CardByte, 1.21),
];

/// Instructions of the base path, by which energy is scaled: sending a segment of 1448 bytes with timestamps
/// over IPv4.
pub const BASE: f64 = instructions(Operation::Send)
    + instructions(Operation::Timestamps)
    + 1448.0 * instructions(Operation::CopiedSummedByte)
    + 52.0 * instructions(Operation::SummedByte)
    + 1500.0 * instructions(Operation::CardByte);

/// Instructions of one `operation`.
pub const fn instructions(operation: Operation) -> f64 {
    TABLE[operation as usize].1
}

impl Work {
    /// Instructions of all operations.
    pub fn instructions(&self) -> f64 {
        self.counts().map(|(operation, times)| instructions(operation) * f64::from(times)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_rows_match_operations_and_have_positive_cost() {
        for (operation, (row, instructions)) in Operation::ALL.into_iter().zip(TABLE) {
            assert_eq!(operation, row);
            assert!(instructions > 0.0);
        }
    }

    #[test]
    fn the_base_cost_is_that_of_one_full_segment() {
        let mut work = Work::default();
        for (operation, times) in [
            (Operation::Send, 1),
            (Operation::Timestamps, 1),
            (Operation::CopiedSummedByte, 1448),
            (Operation::SummedByte, 52),
            (Operation::CardByte, 1500),
        ] {
            work.add(operation, times);
        }
        assert!((work.instructions() - BASE).abs() < 1e-6);
        // One pass over a byte is cheaper than two, and a correct prediction cheaper than the full procedure.
        let two = instructions(Operation::CopiedByte) + instructions(Operation::SummedByte);
        assert!(instructions(Operation::CopiedSummedByte) < two);
        assert!(instructions(Operation::Predicted) < instructions(Operation::Processed));
    }
}
