//! A testbed in one process: real Linux TCPs on both sides of a base station, all on one machine.
//!
//! ```text
//!   namespace ravel          this process                 namespace chopin
//!   eth0 10.0.0.1 ========== ravel | stages | chopin ========== eth0 10.1.0.1
//!            veth                                      veth
//! ```
//!
//! [`Net::enter`] makes the calling process the base station of a network of its own; [`Net::add_hosts`] hangs
//! hosts on both sides of it. A host is a network namespace with one interface. The base station's ends of the
//! cables have no address and the kernel forwards nothing between them: what crosses, crosses because somebody
//! reads frames from one interface and writes them to another.
//!
//! Nothing of it can be seen from outside and nothing outlives the process: interfaces, namespaces and mounts
//! are its own, and the kernel takes them away with it, also after `kill -9`. It works without root where the
//! kernel lets users make namespaces, and says what forbids it where not.

pub mod counters;
pub mod cpu_bench;
pub(crate) mod enter;
pub(crate) mod error;
mod host;
pub(crate) mod ip;
pub mod keep;
mod net;
pub mod preset;
pub mod probe;
mod tunnelled;

pub use error::Error;
pub use host::{HostSpec, Mac, Side, TestbedHost, is_host_name};
pub use net::{Net, NetSpec};
pub use preset::Preset;
pub use tunnelled::Tunnelled;
