//! Recovery events and rare counts of a flow.

use std::collections::VecDeque;

use lasthop_proto::units::{Span, Time};

use super::flow_metrics::Samples;
use super::timers::Timers;
use crate::completion::Completion;
use crate::counts::CauseCounts;

/// Completion, recovery events and packets of a flow's sender. Most flows in the direction of ACKs have none.
#[derive(Clone, Debug, Default)]
pub(super) struct Episodes {
    pub(super) completion: Completion,
    pub(super) timeouts: u32,
    pub(super) opening_timeouts: u32,
    pub(super) fast_retransmits: u32,
    pub(super) recoveries: u32,
    pub(super) undone: u32,
    pub(super) dupacks: u64,
    pub(super) partial_acks: u32,
    pub(super) loss_notifications: u32,
    pub(super) bad_state_notices: u32,
    pub(super) quenches: u32,
    pub(super) congestion_echoes: u32,
    pub(super) dropped: CauseCounts,
    /// Originated packets with causes other than data and control.
    pub(super) originated: CauseCounts,
    /// Packets that crossed the last link without new data.
    pub(super) redundant: u64,
    /// Data packets without bytes.
    pub(super) empty: u64,
    pub(super) rare: Option<Box<Rare>>,
}

/// Samples of the control block at events of an end. The receiver has one sample, from the opening.
#[derive(Clone, Debug, Default)]
pub(super) struct InForce {
    pub(super) srtt: Samples,
    pub(super) rto: Samples,
}

/// Counts that few flows need.
#[derive(Clone, Debug, Default)]
pub(super) struct Rare {
    pub(super) marked: u64,
    pub(super) repeated: CauseCounts,
    pub(super) timers: Timers,
    /// Packets of all kinds that entered the path, if there are exchanges.
    pub(super) entered: u64,
    /// Request times of its client, and durations of exchanges.
    pub(super) exchanges: Option<Box<ExchangeTimes>>,
}

/// The exchanges of a connection.
#[derive(Clone, Debug, Default)]
pub(super) struct ExchangeTimes {
    /// Times of unanswered requests, the oldest first.
    pub(super) open: VecDeque<Time>,
    /// Durations of answered exchanges.
    pub(super) times: Vec<Span>,
}
