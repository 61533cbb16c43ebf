//! What an agent at which connections end, and a data plane that works without the agent for a while, report to each other.

use crate::wire::{FlowKey, Seq};

/// A connection that ends at an agent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ending {
    /// Its flow from left to right.
    pub flow: FlowKey,
    /// Whether it does not end here any more.
    pub is_over: bool,
    /// Whether its ends can continue with each other without the agent.
    pub resumes: bool,
}

/// What a data plane did to a connection while the agent was stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bypass {
    /// It passed a SYN with this number to the far end.
    Passed(Seq),
    /// Its ends were reset, or heard each other.
    Lost,
    /// Its ends have opened another connection between the same ports.
    Reopened,
}
