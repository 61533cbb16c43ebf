//! Stages that behave like queueing disciplines and filters of Linux, and a parser of `tc` lines of netem.
//!
//! Each follows the kernel's order and arithmetic, so a line measured with `tc` gives the same delays here:
//! [`Emulator`] is `netem`, [`Tbf`] the token bucket filter, [`Police`] the policer.

mod draws;
mod emulator;
mod netem;
mod police;
mod tbf;
mod tokens;
mod unknown;
mod words;

pub use emulator::{Emulator, EmulatorConfig};
pub use netem::{Cells, DEFAULT_LIMIT, Extras, FourStates, Netem, Slot, SlotGap};
pub use police::{By, Police, PoliceConfig, SYSTEM as POLICE};
pub use tbf::{SYSTEM as TBF, Tbf, TbfConfig};
pub use tokens::Measure;
pub use words::LineError;
