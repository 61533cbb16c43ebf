//! A path: stages in a row, and the driver that hands packets from one to the next.
//!
//! ```text
//! left hosts | stage 0 | stage 1 | ... | right hosts
//! ```
//!
//! Where hosts move, the stages end in a router, and the stages of the cells stand behind it ([`Roam`]).
//!
//! The same in every world. A world says what time it is and what lies [`Outside`]: in the simulator nothing, in
//! a testbed the hosts whose TCP is not ours, on a router everything but the stages in the middle.

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
pub use drive::{Outside, Path};
pub use end::{End, Ends, Sent, no_ends};
pub use layout::{host_stage, layout};
pub use roam::Roam;
pub use stage::{Place, Stage};
pub use witness::Witness;

/// Port of the discard service (RFC 863), which the transfers are sent to.
pub const DISCARD: u16 = 9;
