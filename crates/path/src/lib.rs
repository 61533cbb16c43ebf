//! A path: stages in a row, and the driver that forwards packets between them.
//!
//! ```text
//! left hosts | stage 0 | stage 1 | ... | right hosts
//! ```
//!
//! If hosts move, the row of stages ends in a router, with the stages of the cells behind it ([`Roam`]).
//!
//! The path is the same in all worlds. A world provides the time and the [`Outside`]. In the simulator all parts are
//! inside. In a testbed, hosts with other TCPs are outside; on a router, everything except the stages in the middle.

#![allow(missing_docs, reason = "only crates of this workspace use it")]

mod build;
mod counts;
mod drive;
mod end;
mod layout;
mod roam;
mod stage;
mod witness;

pub use build::HostKind;
pub use counts::StageCount;
pub use drive::{ChoicePoint, Outside, Path};
pub use end::{End, Ends, TransferState, no_ends};
pub use layout::{host_stage, layout};
pub use roam::Roam;
pub use stage::{Junction, Stage};
pub use witness::Witness;

/// Port of the discard service (RFC 863), the destination of transfers.
pub const DISCARD: u16 = 9;
