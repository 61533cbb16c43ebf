//! Header prediction: its conditions. `connection::prediction` implements it.

use crate::describe::{Kind, SIM, System};
use serde::Serialize;

/// Description of the system, for lists.
pub const OPTIONS: System = System::new(
    Kind::Receiver,
    "tcp-options",
    "host: mss, window-scale, timestamps, sack, prediction",
    "MSS, window scaling, timestamps with PAWS and SACK, each on or off; header prediction before or after PAWS",
    "agarwal00 4.1 to 4.4, 4.6",
).runs(SIM);

/// Whether the expected next segment takes a fast path (header prediction, agarwal00 3.4 and 4.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Prediction {
    /// Every segment takes the full procedure.
    #[default]
    Off,
    /// After the check that its timestamp is no older than the last one, as in Linux.
    AfterPaws,
    /// Before its timestamp is checked, and then without that check: the proposal of agarwal00 4.4. An old
    /// duplicate exactly at the left edge of the window is accepted as new.
    BeforePaws,
}

impl Prediction {
    /// Whether no header is predicted.
    pub fn is_off(&self) -> bool {
        *self == Prediction::Off
    }
}
