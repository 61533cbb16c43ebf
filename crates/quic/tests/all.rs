//! Tests of hosts with QUIC. They are one program, which links once.

mod common;
mod large;
mod reordering;
mod transfers;
