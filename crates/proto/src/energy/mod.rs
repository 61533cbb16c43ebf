//! Energy consumption of TCP variants on a battery (agarwal00).
//!
//! The model has no influence on a run. A host reports the work of its stack for each segment ([`Work`]), and
//! a radio hop reports transmissions ([`crate::air::AirEvent`]). An observer computes the consumption of a
//! [`Hardware`] from both.

mod battery;
pub mod costs;
mod hardware;
pub mod iot;
mod keys;
mod meter;
mod operation;
mod presets;
mod radio;

use crate::describe::{Kind, SIM, System};

pub use battery::Battery;
pub use hardware::{Hardware, RadioPower};
pub use meter::{Meter, Totals};
pub use operation::{Operation, Work};
pub use presets::{PRESETS, Preset};
pub use radio::{Antenna, RadioState, RadioStates, ReportTime};

/// Description of the model, for lists.
pub const ENERGY_MODEL: System = System::new(
    Kind::Tool,
    "energy-model",
    "[host.NAME] battery = \"sens-800\", lasthop energy FILE",
    "battery, radio states and the cost of each packet",
    "agarwal00 5",
)
.runs(SIM);
