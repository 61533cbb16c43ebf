//! Packets at a stage.

use serde::{Deserialize, Serialize};

/// Packets at one stage, counted from outside the machine where possible.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct StageCount {
    /// Handed to it.
    pub arrived: u64,
    /// Put into the path by it.
    pub originated: u64,
    /// Handed on by it, own ones included.
    pub departed: u64,
    /// Ended by it, with a cause; hosts count what they took in.
    pub ended: u64,
    /// Inside it at the end of the run.
    pub held: u64,
}

impl StageCount {
    /// Nothing vanished and nothing came from nowhere.
    pub fn is_conserved(&self) -> bool {
        self.arrived + self.originated == self.departed + self.ended + self.held
    }
}
