//! Tests of scenario files. They are one program, which links once.

mod cells;
mod channels;
mod errors;
mod every_key;
mod grid;
mod local_recovery;
mod manual;
mod netem;
mod plans;
mod presets;
mod properties;
mod quic;
mod station;
mod traffic;
mod varying;
