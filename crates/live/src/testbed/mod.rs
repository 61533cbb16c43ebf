//! A testbed in one process: real Linux TCPs on both sides of a base station, all on one machine.
//!
//! ```text
//!   namespace ravel          this process                 namespace chopin
//!   eth0 10.0.0.1 ========== ravel | stages | chopin ========== eth0 10.1.0.1
//!            veth                                      veth
//! ```
//!
//! [`Net::enter`] makes the calling process the base station of a private network; [`Net::add_hosts`]
//! connects hosts to both sides of it. A host is a network namespace with one interface. The base station's
//! ends of the cables have no address, and the kernel forwards nothing between them. Packets cross only
//! because the process reads frames from one interface and writes them to another.
//!
//! The network is invisible from outside and ends with the process. The kernel removes its interfaces,
//! namespaces and mounts, even after `kill -9`. It works without root if the kernel lets users make
//! namespaces; otherwise an error names the obstacle.

pub mod counters;
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
