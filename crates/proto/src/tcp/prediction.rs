//! When headers are predicted; how, stands in `connection::prediction`.

use crate::describe::{Kind, SIM, System};
use serde::Serialize;

/// What it is, for lists.
pub const OPTIONS: System = System::new(
    Kind::Receiver,
    "tcp-options",
    "host: mss, window-scale, timestamps, sack, prediction",
    "MSS, window scaling, timestamps with PAWS and SACK, each on or off; header prediction before or after PAWS",
    "agarwal00 4.1 to 4.4, 4.6",
).runs(SIM);

/// Whether the segment that is expected next takes a fast path (header prediction, agarwal00 3.4 and 4.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Prediction {
    /// Every segment goes through the whole procedure.
    #[default]
    Off,
    /// Once its timestamp was found to be no older than the last one, as Linux does it.
    AfterPaws,
    /// Before its timestamp is looked at, and then without that: what agarwal00 4.4 proposes. An old duplicate that
    /// lands exactly at the left edge of the window is taken for new.
    BeforePaws,
}

impl Prediction {
    /// Whether nothing is predicted.
    pub fn is_off(&self) -> bool {
        *self == Prediction::Off
    }
}
