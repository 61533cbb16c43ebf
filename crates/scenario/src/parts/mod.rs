//! The parts of a file: the visiting functions of their keys, and the values that these read.

pub(crate) mod cells;
pub(crate) mod errors;
pub(crate) mod exchange;
mod fetching;
pub(crate) mod handoff;
pub(crate) mod hop;
pub(crate) mod host;
pub(crate) mod link;
pub(crate) mod stages;
pub(crate) mod station;
pub(crate) mod top;
pub(crate) mod traffic;
pub(crate) mod transfer;
pub(crate) mod tunnel;
