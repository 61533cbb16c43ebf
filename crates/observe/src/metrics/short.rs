//! Short transfers, which are reported as one group because of their number.

use serde::{Deserialize, Serialize};

use super::flow_metrics::FlowMetrics;

/// The short transfers between two hosts. The completion time is what users of the Web notice.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct ShortTransfers {
    /// Address of the sender.
    pub from: String,
    /// Address of the receiver.
    pub to: String,
    /// Whether they are cross traffic.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub cross: bool,
    /// Started transfers.
    pub begun: u64,
    /// Complete transfers.
    pub complete: u64,
    /// Transfers that were aborted or reset before completion.
    pub aborted: u64,
    /// Delivered bytes, incomplete transfers included.
    pub delivered: u64,
    /// Mean time from opening to completion of complete transfers, seconds.
    pub time_mean_s: f64,
    /// Median completion time, seconds.
    pub time_p50_s: f64,
    /// 95th percentile of the completion time, seconds.
    pub time_p95_s: f64,
    /// Longest completion time, seconds.
    pub time_max_s: f64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Fast retransmissions that began a recovery.
    pub fast_retransmits: u64,
    /// Data packets that the senders retransmitted.
    pub retransmissions: u64,
}

impl ShortTransfers {
    /// Sums up the flows.
    pub(super) fn of(flows: impl Iterator<Item = FlowMetrics>) -> ShortTransfers {
        let mut all = ShortTransfers::default();
        let mut times = Vec::new();
        for flow in flows {
            all.begun += 1;
            all.aborted += u64::from(flow.aborted);
            all.delivered += flow.delivered;
            all.timeouts += flow.timeouts;
            all.fast_retransmits += flow.fast_retransmits;
            all.retransmissions += flow.host_retransmissions();
            if flow.complete {
                times.push(flow.transfer_time_s);
            }
        }
        times.sort_by(f64::total_cmp);
        all.complete = times.len() as u64;
        all.time_mean_s = times.iter().sum::<f64>() / times.len().max(1) as f64;
        all.time_p50_s = quantile(&times, 0.50);
        all.time_p95_s = quantile(&times, 0.95);
        all.time_max_s = times.last().copied().unwrap_or(0.0);
        all
    }
}

/// The smallest of the sorted values that is not below a share `q` of them.
pub(super) fn quantile(sorted: &[f64], q: f64) -> f64 {
    let rank = (q * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_the_complete_ones() {
        let flow = |transfer_time_s, complete| FlowMetrics {
            transfer_time_s,
            complete,
            delivered: 10,
            timeouts: 1,
            ..FlowMetrics::default()
        };
        let flows = (1..=20).map(|i| flow(f64::from(i), true)).chain([flow(1000.0, false)]);
        let all = ShortTransfers::of(flows);
        assert_eq!((all.begun, all.complete, all.delivered, all.timeouts), (21, 20, 210, 21));
        assert_eq!((all.time_mean_s, all.time_p50_s), (10.5, 10.0));
        assert_eq!((all.time_p95_s, all.time_max_s), (19.0, 20.0));
        assert_eq!(ShortTransfers::of(core::iter::empty()).time_p95_s, 0.0);
    }
}
