//! Protocols as pure state machines: TCP end points, base-station agents, links, queues and channels.
//!
//! Each input is an event with its time; each output is a list of packets to send and the next deadline (see
//! [`machine`]). There is no I/O, clock, thread or ambient randomness. So one implementation runs in the
//! simulator, in the testbed and in the base station.

#[macro_use]
mod family;

pub mod agent;
pub mod air;
pub mod channel;
pub mod describe;
pub mod energy;
pub mod event;
pub mod fates;
pub mod flows;
pub mod hop;
pub mod link;
pub mod mac;
pub mod machine;
mod names;
pub mod queue;
pub mod rng;
pub mod side;
pub mod systems;
pub mod tcp;
mod travel;
pub mod tunnel;
pub mod udp;
pub mod units;
pub mod wake;
pub mod wire;
