//! Scripts in packetdrill's language, run against lasthop's TCP in virtual time and against the TCP of the
//! machine.
//!
//! - [`script`] parses scripts. It is pure and bounded: any text gives a script or a fault with its line.
//! - [`run`] plays a script in a [`World`](run::World): packets arrive, the application calls sockets, and
//!   the host's packets are compared with the script's expectations. [`run::own`] is the world of lasthop's
//!   TCP; times are exact there. [`run::kernel`] is the machine's TCP behind a TUN device in a separate
//!   network namespace.
//! - [`eval`] evaluates assertions over `tcp_info`.
//! - [`diff`] compares the traces of two runs and finds the first difference.

pub mod diff;
pub mod eval;
pub mod report;
pub mod run;
pub mod script;
