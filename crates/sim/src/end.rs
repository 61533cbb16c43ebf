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
    /// Every transfer is over, and no datagram is under way.
    Finished,
    /// The scenario's horizon was reached.
    Horizon,
    /// Nothing was left to happen although a transfer is not over.
    Idle,
    /// Time stood still for a million wakes, or for four million packets within one: a fault of a machine.
    Stuck,
}

/// What came of one transfer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct TransferEnd {
    /// Bytes to be transferred, if bounded.
    pub wanted: Option<Bytes>,
    /// Bytes that the receiver's application got, in order.
    pub delivered: u64,
    /// Bytes that the sender knows to be acknowledged.
    pub acknowledged: u64,
    /// Everything was sent and acknowledged.
    pub complete: bool,
    /// The connection was given up or reset.
    pub aborted: bool,
}

/// What our TCPs waited for: parts in a million of the time from their first data to their end, in the order of
/// [`Limit::ALL`](lasthop_proto::tcp::sender::limits::Limit::ALL). Each direction of a connection counts with the bytes
/// that it carried.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Limits(pub [u32; 5]);

impl Limits {
    /// The mean over directions, each with its bytes and the times of its limits.
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

/// How a run ended.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct RunEnd {
    /// When.
    pub at: Time,
    /// Why.
    pub reason: Reason,
    /// The stage for which time stood still, if it did.
    pub stuck: Option<StageId>,
    /// How many packets links and radios carried.
    pub hops: u64,
    /// How many wakes it took.
    pub wakes: u64,
    /// Transfers in the order of the scenario, each connection on its own; then short transfers, host by host, in the
    /// order in which they began.
    pub transfers: Vec<TransferEnd>,
    /// Packet counts, by stage.
    pub stages: Vec<(StageId, StageCount)>,
    /// What our TCPs waited for; nothing if none has sent data.
    pub limits: Option<Limits>,
    /// Largest state that an agent held, in bytes, by stage.
    pub agent_state: Vec<(StageId, u64)>,
}
