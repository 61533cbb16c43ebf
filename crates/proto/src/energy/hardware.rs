//! What a battery holds and what draws from it.

use serde::Serialize;

use crate::units::{Energy, Power};

/// A host that runs on a battery.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Hardware {
    /// Its preset, for tables.
    pub name: String,
    /// What the full battery holds.
    pub capacity: Energy,
    /// What the host draws whatever happens: everything but its radio and the work of its stack.
    pub base: Power,
    /// What its radio draws.
    pub radio: RadioPower,
    /// What the work on one full segment costs beyond `base`: sent with timestamps, with 1448 bytes of data, as the
    /// stack of 2000 does it. All other work is charged in proportion to its instructions.
    pub segment: Energy,
}

/// What a radio draws in each of its states.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct RadioPower {
    /// It sleeps, and hears nothing.
    pub doze: Power,
    /// It listens, and nothing is on the air.
    pub idle: Power,
    /// It hears a frame, for whomever that is.
    pub receive: Power,
    /// It sends.
    pub transmit: Power,
}
