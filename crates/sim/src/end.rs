//! How a run ended.

use lasthop_path::StageCount;
use lasthop_proto::machine::StageId;
use lasthop_proto::tcp::sender::limits::LimitTimes;
use lasthop_proto::units::{Bytes, Time};
use serde::Serialize;

/// Why a run ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Reason {
    /// Every transfer is over, and no datagram is in flight.
    Finished,
    /// The scenario's horizon was reached.
    Horizon,
    /// No deadline is left, but a transfer is not over.
    Idle,
    /// A million deadlines passed without progress of time, or one deadline caused four million packets. This is a
    /// fault of a machine.
    Stuck,
}

/// The end of one transfer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct TransferEnd {
    /// Bytes to transfer, if bounded.
    pub wanted: Option<Bytes>,
    /// Bytes delivered in order to the receiver's application.
    pub delivered: u64,
    /// Acknowledged bytes at the sender.
    pub acknowledged: u64,
    /// All data was sent and acknowledged.
    pub complete: bool,
    /// The connection was aborted or reset.
    pub aborted: bool,
}

/// Limits of our TCPs, in parts per million of the time from first data to end, in the order of
/// [`Limit::ALL`](lasthop_proto::tcp::sender::limits::Limit::ALL). Each direction of a connection is weighted by its
/// bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Limits(pub [u32; 5]);

impl Limits {
    /// The weighted mean over directions, each with its bytes and the times of its limits.
    pub(crate) fn over(directions: impl Iterator<Item = (u64, LimitTimes)>) -> Option<Limits> {
        let (mut sums, mut carried) = ([0_u128; 5], 0_u128);
        for (bytes, times) in directions {
            let total: u64 = times.iter().map(|time| time.0).sum();
            if bytes == 0 || total == 0 {
                continue;
            }
            carried += u128::from(bytes);
            for (sum, time) in sums.iter_mut().zip(times) {
                *sum += u128::from(bytes) * (u128::from(time.0) * 1_000_000 / u128::from(total));
            }
        }
        (carried > 0).then(|| Limits(sums.map(|sum| (sum / carried) as u32)))
    }
}

/// The end of a run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct RunEnd {
    pub at: Time,
    pub reason: Reason,
    /// The stage of an endless loop.
    pub stuck: Option<StageId>,
    /// Packets carried by links and radios.
    pub hops: u64,
    /// Number of deadlines handled.
    pub wakes: u64,
    /// Transfers in the order of the scenario, one entry per connection; then short transfers, host by host, in the
    /// order of their start.
    pub transfers: Vec<TransferEnd>,
    pub stages: Vec<(StageId, StageCount)>,
    /// `None` if none of our TCPs has sent data.
    pub limits: Option<Limits>,
    /// Largest state of each agent in bytes.
    pub agent_state: Vec<(StageId, u64)>,
}
