//! Scripts in packetdrill's language, run against lasthop's TCP in virtual time and against the TCP of the machine.
//!
//! - [`script`] reads scripts. It is pure and bounded: any text gives a script or a fault with its line.
//! - [`run`] plays a script in a [`World`](run::World): packets arrive, the application calls sockets, and what the host
//!   sends is compared with what the script expects. [`run::own`] is the world of lasthop's TCP; times are exact there.
//!   [`run::kernel`] is the machine's TCP behind a TUN device in a network namespace of its own.
//! - [`eval`] evaluates assertions over `tcp_info`.
//! - [`diff`] compares the traces of two runs and finds the first difference.

pub mod diff;
pub mod eval;
pub mod report;
pub mod run;
pub mod script;
