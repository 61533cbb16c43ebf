//! What a choice of TCP costs a battery (agarwal00).
//!
//! Nothing here takes part in a run. A host tells what its stack does for each segment ([`Work`]), a radio hop what is
//! on the air ([`crate::air::AirEvent`]); from the two an observer works out what a [`Hardware`] draws.

mod battery;
pub mod costs;
mod hardware;
mod keys;
mod meter;
mod operation;
mod presets;
mod radio;
pub mod report;

use crate::describe::{Kind, SIM, System};

pub use battery::Battery;
pub use hardware::{Hardware, RadioPower};
pub use meter::{Meter, Totals};
pub use operation::{Operation, Work};
pub use presets::{PRESETS, Preset};
pub use radio::{Antenna, RadioState, RadioStates, Told};

/// What it is, for lists.
pub const ENERGY_MODEL: System = System::new(
    Kind::Tool,
    "energy-model",
    "[host.NAME] battery = \"sens-800\", lasthop energy FILE",
    "battery, radio states and the cost of each packet",
    "agarwal00 5",
)
.runs(SIM);
