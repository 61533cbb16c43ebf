//! A path: stages in a row, and the driver that forwards packets between them.
//!
//! ```text
//! left hosts | stage 0 | stage 1 | ... | right hosts
//! ```
//!
//! Where hosts move, the stages end in a router, with the stages of the cells behind it ([`Roam`]).
//!
//! The path is the same in all worlds. A world provides the time and the [`Outside`]: nothing in the simulator, hosts
//! with other TCPs in a testbed, everything but the stages in the middle on a router.

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
