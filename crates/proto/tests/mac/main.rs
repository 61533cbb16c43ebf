//! Medium access: timelines to the nanosecond, hops under random traffic, and DCF compared with its known
//! theory.

mod aggregates;
mod bianchi;
mod dcf;
mod driver;
mod fama_ncs;
mod granted;
mod half_duplex_hops;
mod hops;
mod power_save;
#[path = "../support/mod.rs"]
mod support;
