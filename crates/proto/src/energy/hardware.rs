//! Capacity of a battery and the power of its consumers.

use serde::Serialize;

use crate::units::{Energy, Power};

/// A host that runs on a battery.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Hardware {
    /// Name of its preset, for tables.
    pub name: String,
    /// Energy of the full battery.
    pub capacity: Energy,
    /// Power that the host draws all the time: everything except its radio and the work of its stack.
    pub base: Power,
    /// Power of its radio.
    pub radio: RadioPower,
    /// Energy of one full segment in addition to `base`: 1448 bytes of data sent with timestamps by a stack
    /// of 2000. All other work is charged in proportion to its instructions.
    pub segment: Energy,
}

/// Power of a radio in each of its states.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct RadioPower {
    /// Asleep; it receives nothing.
    pub doze: Power,
    /// Listening; nothing is on the air.
    pub idle: Power,
    /// Receiving a frame for any station.
    pub receive: Power,
    /// Transmitting.
    pub transmit: Power,
}
