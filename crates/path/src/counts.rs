//! Packet counts of a stage.

use serde::{Deserialize, Serialize};

/// Packets at one stage, counted outside of the machine where possible.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct StageCount {
    /// Packets received from neighbours.
    pub arrived: u64,
    /// Packets created by the stage.
    pub originated: u64,
    /// Packets forwarded, own ones included.
    pub departed: u64,
    /// Packets dropped with a cause; at hosts also the consumed ones.
    pub ended: u64,
    /// Packets in the stage at the end of the run.
    pub held: u64,
}

impl StageCount {
    /// No packet was lost or duplicated in the count.
    pub fn is_conserved(&self) -> bool {
        self.arrived + self.originated == self.departed + self.ended + self.held
    }
}
