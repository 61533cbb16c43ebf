//! The states of an end. A test compares the machine with a table of their transitions.

use serde::Serialize;

/// State of a sender for one destination.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
pub enum SendState {
    /// All packets are acknowledged.
    Idle,
    /// A reliable packet is at medium access, which waits for the channel.
    Handed,
    /// Timer T1 runs: the channel is left to the answer.
    Waiting,
    /// There are unacknowledged packets, and it is this end's turn.
    Ready,
}

/// State of a receiver for one sender.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
pub enum ReceiveState {
    /// All received packets were delivered.
    InOrder,
    /// Packets wait for a missing one.
    Gap,
}
