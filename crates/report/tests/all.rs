//! Tests of reports. They are one program, which links once.

mod page;
#[cfg(feature = "png")]
mod pictures;
mod simulated;
