//! What the threads at hosts tell the run.

use lasthop_proto::event::Event;

use crate::endpoint::{Received, SendReport};

/// What a thread at a host tells.
pub(super) enum News {
    Event(Event),
    Sent(usize, Result<SendReport, String>),
    Received(Received),
}
