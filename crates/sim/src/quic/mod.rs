//! QUIC (RFC 9000) as the end of a transfer, by the stack of quinn.
//!
//! `quinn-proto` implements QUIC as a state machine without sockets or clock: datagrams and the time go in, datagrams
//! and the next timeout come out. That is the contract of a stage. So a QUIC host is a stage of the path like a host
//! with our TCP, and all links, radios, link layers, queues and agents work with it. Streams, loss recovery,
//! acknowledgements, pacing, path MTU discovery and congestion control are quinn's own code.
//!
//! This module adds the clock of the run, random draws from its seed, a sending application, a receiving application
//! that checks the data, datagrams in IP, and events. It replaces the cryptography (`plain.rs`), and derives connection
//! ids from the seed.
//!
//! It is not pure, since quinn is not: it uses the standard library's `Instant`, whose origin is a clock, and
//! its CUBIC computes cube roots with the platform's library. Only differences of `Instant` matter here, so a run
//! repeats exactly on one machine.

mod connection;
mod datagram;
mod frames;
mod host;
mod ledger;
mod pattern;
mod plain;
mod receiver;
mod sender;

use lasthop_path::End;
use lasthop_scenario::Scenario;

pub use host::QuicHost;

/// Host number `host` of `scenario` in the run with `seed`, if it has QUIC transfers.
pub fn end(scenario: &Scenario, host: usize, seed: u64) -> Option<Box<dyn End>> {
    scenario
        .speaks_quic(host)
        .then(|| Box::new(QuicHost::new(scenario, host, seed)) as Box<dyn End>)
}
