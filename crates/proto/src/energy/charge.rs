//! What the work of a stack costs: instructions by operation, and joules for each.

use super::operation::{Operation, Work};
use crate::units::Energy;

/// Instructions of each operation, in the order of [`Operation::ALL`].
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Costs(pub [f64; Operation::ALL.len()]);

/// Payload of the segment that prices are stated for: an Ethernet's, less the timestamps option.
const PAYLOAD: u32 = 1448;

impl Default for Costs {
    fn default() -> Costs {
        Costs(Operation::ALL.map(super::costs::instructions))
    }
}

impl Costs {
    /// Instructions of `work`.
    pub fn instructions(&self, work: &Work) -> f64 {
        work.counts().zip(self.0).map(|((_, count), each)| f64::from(count) * each).sum()
    }

    /// What the stack of 2000 does to send one full segment with timestamps: what [`Hardware::segment`] is stated for.
    ///
    /// [`Hardware::segment`]: super::Hardware::segment
    pub fn base_path() -> Work {
        let mut work = Work::default();
        work.add(Operation::Send, 1);
        work.add(Operation::Timestamps, 1);
        work.add(Operation::CopiedSummedByte, PAYLOAD);
        // With the headers of IP and TCP, and the option.
        work.add(Operation::CardByte, PAYLOAD + 20 + 20 + 12);
        work
    }

    /// Joules for one instruction, if [`Costs::base_path`] costs `segment`. Zero if no instructions are known.
    pub fn price(&self, segment: Energy) -> f64 {
        let base = self.instructions(&Costs::base_path());
        if base > 0.0 { segment.get() / base } else { 0.0 }
    }
}
