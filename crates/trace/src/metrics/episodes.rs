//! What a flow went through.

use std::collections::VecDeque;

use lasthop_proto::units::{Span, Time};

use super::flow_metrics::Samples;
use super::timers::Timers;
use crate::completion::Completion;
use crate::counts::CauseCounts;

/// What the sender of a flow went through, and its packets. Most flows in the direction of ACKs have none of it.
#[derive(Clone, Debug, Default)]
pub(super) struct Episodes {
    pub(super) completion: Completion,
    pub(super) timeouts: u32,
    pub(super) opening_timeouts: u32,
    pub(super) fast_retransmits: u32,
    pub(super) recoveries: u32,
    pub(super) dupacks: u64,
    pub(super) partial_acks: u32,
    pub(super) loss_notifications: u32,
    pub(super) bad_state_notices: u32,
    pub(super) quenches: u32,
    pub(super) congestion_echoes: u32,
    pub(super) dropped: CauseCounts,
    /// Packets put into the path for other causes than data and control.
    pub(super) originated: CauseCounts,
    /// Packets that crossed the last link and held nothing new.
    pub(super) redundant: u64,
    pub(super) rare: Option<Box<Rare>>,
}

/// What was in force at the events of an end. The receiver has one of them, when its connection opens.
#[derive(Clone, Debug, Default)]
pub(super) struct InForce {
    pub(super) srtt: Samples,
    pub(super) rto: Samples,
}

/// What few flows have.
#[derive(Clone, Debug, Default)]
pub(super) struct Rare {
    pub(super) marked: u64,
    pub(super) repeated: CauseCounts,
    pub(super) timers: Timers,
    /// Packets of all kinds that entered the path, where exchanges are made.
    pub(super) entered: u64,
    /// When its client asked, and how long answers took.
    pub(super) asked: Option<Box<Asked>>,
}

/// The exchanges of a connection.
#[derive(Clone, Debug, Default)]
pub(super) struct Asked {
    /// When was asked what is not answered yet, the oldest first.
    pub(super) open: VecDeque<Time>,
    /// What each exchange took that was answered.
    pub(super) times: Vec<Span>,
}
