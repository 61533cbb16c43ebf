//! What the threads at hosts tell the run.

use std::io;

use lasthop_proto::event::Event;

use super::sockets::Stood;
use crate::endpoint::{Received, SendReport};

/// What a thread at a host tells.
pub(super) enum News {
    Event(Event),
    Sent(usize, Result<Box<SendReport>, String>),
    Received(Received),
    /// How a host with a stack of its own stood at the end, by its number.
    Stood(usize, io::Result<Stood>),
}
