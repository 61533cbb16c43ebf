//! Hosts with QUIC in the simulator.

mod common;
mod large;
#[path = "../../../checks/shared/record.rs"]
mod record;
mod reordering;
mod transfers;
