//! Hosts with QUIC in the simulator.

mod common;
mod large;
mod reordering;
mod transfers;
