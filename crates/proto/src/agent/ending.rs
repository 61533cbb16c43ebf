//! Reports between an agent that splits connections and a data plane that temporarily works without the agent.

use crate::wire::{FlowKey, Seq};

/// A connection that ends at an agent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ending {
    /// Its flow from left to right.
    pub flow: FlowKey,
    /// Whether the connection no longer ends here.
    pub is_over: bool,
    /// Whether its ends can continue with each other without the agent.
    pub resumes: bool,
}

/// Action of a data plane on a connection while the agent was stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bypass {
    /// It passed a SYN with this number to the far end.
    Passed(Seq),
    /// Its ends were reset, or received segments of each other.
    Lost,
    /// Its ends have opened another connection between the same ports.
    Reopened,
}
