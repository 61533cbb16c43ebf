//! Reports of the threads at hosts.

use std::io;

use lasthop_proto::event::Event;

use super::sockets::FinalState;
use crate::endpoint::{Received, SendReport};

/// A report of a thread at a host.
pub(super) enum HostReport {
    Event(Event),
    Sent(usize, Result<Box<SendReport>, String>),
    Received(Received),
    /// Final state of a host with its own stack, with the host's index.
    FinalState(usize, io::Result<FinalState>),
}
