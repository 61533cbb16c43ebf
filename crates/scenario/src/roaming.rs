//! Hosts that move: several cells behind the wired part of a path, visits, and hand-offs.

use lasthop_proto::units::{Rate, Span};
use serde::Serialize;

use crate::model::Stage;

/// Cells and those who visit them.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Roaming {
    /// The cells, in the order of the file.
    pub cells: Vec<RadioCell>,
    /// Where the hosts at the right end are, in the order of the hosts; each has one.
    pub tours: Vec<Tour>,
    /// Hand-offs between two cells.
    pub handoff: Handoff,
}

/// A base station with its radio, behind the wired part of the path.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct RadioCell {
    /// Name, unique in the scenario.
    pub name: String,
    /// Its stages from left to right; none is missing.
    pub path: Vec<Stage>,
    /// The base station is before this stage of them: before its agent, or else before its radio.
    pub base: usize,
}

/// Which cells a host visits.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Tour {
    /// Index of the host in [`crate::Scenario::hosts`].
    pub host: usize,
    /// Its cells, as indices in [`Roaming::cells`], as they lie along its way.
    pub cells: Vec<usize>,
    /// How long it is where.
    pub stays: Stays,
}

/// How long a host is in which of its cells.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Stays {
    /// One by one, each beginning later than the one before.
    List(Vec<Stay>),
    /// In each in turn for so long, the time between two cells included.
    Every(Span),
    /// For a random time with this mean, first in any of them, then in a neighbour of the last.
    Dwell(Span),
}

/// One visit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Stay {
    /// Index of the cell in [`Roaming::cells`].
    pub cell: usize,
    /// When the host turns to it.
    pub from: Span,
    /// When the host leaves; without it, when it turns to the next one.
    pub until: Option<Span>,
}

/// Hand-offs between two cells.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Handoff {
    /// How long the host is in no cell.
    pub gap: Span,
    /// How long it hears both; not with a gap.
    pub overlap: Span,
    /// Whether the network learns of the next cell before the host leaves.
    pub announced: bool,
    /// The treatment of packets for a host that has left.
    pub packets: Policy,
    /// Packets that a base station keeps for each host.
    pub buffer: u32,
    /// How long it takes until the wired side sends to the new cell.
    pub reroute: Span,
    /// Whether the old agent's state of a host moves to the new base station, and how.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<StateMoves>,
}

/// How the state of an agent goes to the next base station.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct StateMoves {
    /// How long its first byte is under way.
    pub delay: Span,
    /// How fast the others follow; at once without it.
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

/// A base station's treatment of packets for a host that has left, once it knows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Policy {
    /// It drops them.
    Drop,
    /// It keeps them until the host is back.
    Keep,
    /// It sends them on to the cell where the host is, over the wired side.
    Forward,
    /// It drops them. The wired side sends copies to the neighbouring cells ahead of time, whose base stations buffer the
    /// last ones until the host arrives (as in Daedalus).
    Multicast,
}
