//! What protocols do: TCP end points, base-station agents, links, queues and channels.
//!
//! Everything here is a pure state machine: told what happened and when, it answers what to send and
//! when to be woken (see [`machine`]). There is no I/O, no clock, no thread and no ambient randomness,
//! so one implementation serves the simulator, the testbed and the base station alike.

#[macro_use]
mod family;

pub mod agent;
pub mod air;
pub mod channel;
pub mod describe;
pub mod energy;
pub mod event;
pub mod flows;
pub mod hop;
pub mod link;
pub mod mac;
pub mod machine;
pub mod place;
pub mod queue;
pub mod rng;
pub mod systems;
pub mod tcp;
mod travel;
pub mod tunnel;
pub mod udp;
pub mod units;
pub mod wake;
pub mod wire;
