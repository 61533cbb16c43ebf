//! QUIC (RFC 9000) as the end of a transfer, by the stack of quinn.
//!
//! `quinn-proto` is QUIC as a state machine without sockets or clock: datagrams and the time go in, datagrams
//! and the next time-out come out. That is the contract of a stage, so a host with QUIC is a stage of the path
//! like a host with our TCP, and links, radios, link layers, queues and agents between two of them are the very
//! same. Streams, loss recovery, acknowledgements, pacing, path MTU discovery and congestion control are quinn's
//! own code.
//!
//! Here is what is around it: the clock of the run, draws from its seed, an application that sends and one that
//! checks what it receives, datagrams in IP, and events. Two things are replaced. The cryptography is `plain.rs`,
//! and connection ids come from the seed.
//!
//! This crate is not one of the pure ones, since quinn is neither: the standard library's `Instant` is its time,
//! whose origin is a clock, and its CUBIC takes cube roots from the platform. Of `Instant` only differences
//! count here, so a run repeats on one machine, byte by byte.

mod datagram;
mod frames;
mod host;
mod ledger;
mod pattern;
mod plain;
mod receiver;
mod sender;
mod talk;

use lasthop_path::End;
use lasthop_scenario::Scenario;

pub use host::QuicHost;

/// Makes host number `host` of `scenario` in the run with `seed`, if it speaks QUIC: to be handed to a world.
pub fn end(scenario: &Scenario, host: usize, seed: u64) -> Option<Box<dyn End>> {
    scenario
        .speaks_quic(host)
        .then(|| Box::new(QuicHost::new(scenario, host, seed)) as Box<dyn End>)
}
