//! Hosts that move: several cells behind the wired part of a path, visits, and hand-offs.

use lasthop_proto::units::{Rate, Span};
use serde::Serialize;

use crate::model::Stage;

/// Cells and their visitors.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Roaming {
    /// The cells, in the order of the file.
    pub cells: Vec<RadioCell>,
    /// Tours of the hosts at the right end, one for each in their order.
    pub tours: Vec<Tour>,
    /// Hand-offs between two cells.
    pub handoff: Handoff,
}

/// A base station with its radio, behind the wired part of the path.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct RadioCell {
    /// Name, unique in the scenario.
    pub name: String,
    /// Its stages from left to right; at least one.
    pub path: Vec<Stage>,
    /// Index of the stage after the base station: its agent, or else its radio.
    pub base: usize,
}

/// Cells that a host visits.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Tour {
    /// Index of the host in [`crate::Scenario::hosts`].
    pub host: usize,
    /// Its cells, as indices in [`Roaming::cells`], in the order along its route.
    pub cells: Vec<usize>,
    /// Duration of its stays.
    pub stays: Stays,
}

/// Time of a host in each of its cells.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Stays {
    /// An explicit list; each visit begins later than its predecessor.
    List(Vec<Stay>),
    /// The cells one after the other, each for this time, hand-off included.
    Every(Span),
    /// A random time with this mean, first in any cell, then in a neighbour of the last.
    Dwell(Span),
}

/// One visit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Stay {
    /// Index of the cell in [`Roaming::cells`].
    pub cell: usize,
    /// Time at which the host turns to it.
    pub from: Span,
    /// Time at which the host leaves; `None` is the time at which it turns to the next one.
    pub until: Option<Span>,
}

/// Hand-offs between two cells.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Handoff {
    /// Time for which the host is in no cell.
    pub gap: Span,
    /// Time in which it receives both cells; excludes a gap.
    pub overlap: Span,
    /// Whether the network is notified of the next cell before the host leaves.
    pub announced: bool,
    /// The treatment of packets for a host that has left.
    pub packets: Policy,
    /// Packets that a base station buffers for each host.
    pub buffer: u32,
    /// Time until the wired side sends to the new cell.
    pub reroute: Span,
    /// Whether and how the old agent's state of a host moves to the new base station.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<StateMoves>,
}

/// Transfer of an agent's state to the next base station.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct StateMoves {
    /// Latency of its first byte.
    pub delay: Span,
    /// Rate of the other bytes; `None` is infinite.
    pub rate: Option<Rate>,
}

impl Default for Handoff {
    fn default() -> Handoff {
        Handoff {
            gap: Span::ZERO,
            overlap: Span::ZERO,
            announced: false,
            packets: Policy::Drop,
            buffer: 50,
            reroute: Span::ZERO,
            state: None,
        }
    }
}

/// A base station's treatment of packets for a host that has left, once this is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Policy {
    /// Drops them.
    Drop,
    /// Buffers them until the host returns.
    Keep,
    /// Forwards them to the cell of the host, over the wired side.
    Forward,
    /// Drops them. In advance, the wired side sends copies to the neighbouring cells. Their base
    /// stations buffer the latest copies until the host arrives (as in Daedalus).
    Multicast,
}
