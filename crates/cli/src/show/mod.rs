//! Studies as text for a terminal.

pub mod advise;
pub mod capture;
pub mod compare;
pub mod energy;
mod notes;
pub mod sweep;
pub mod trace;
