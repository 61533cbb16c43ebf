//! Stages that do what queueing disciplines and filters of Linux do, and the lines of `tc` that describe them.
//!
//! Each follows the kernel's own order and arithmetic, so a line that is measured with `tc` gives the same delays here:
//! [`Emulator`] is `netem`, [`Tbf`] the token bucket filter, [`Police`] the policer.

mod chance;
mod emulator;
mod netem;
mod police;
mod tbf;
mod tokens;
mod words;

pub use emulator::{Emulator, EmulatorConfig};
pub use netem::{Cells, DEFAULT_LIMIT, Extras, FourStates, Netem, Slot, SlotGap};
pub use police::{By, Police, PoliceConfig, SYSTEM as POLICE};
pub use tbf::{SYSTEM as TBF, Tbf, TbfConfig};
pub use tokens::Measure;
pub use words::LineError;
