//! Figures of a run that experiments use.

use lasthop_observe::metrics::{FlowMetrics, RunMetrics};
use lasthop_proto::event::Cause;

/// KB in west97 means 1024 bytes: it prints 2,000,000 B in 9.770 s as 199.92 KB/s.
pub(crate) const KB: f64 = 1024.0;

/// Throughput of all flows in KB/s.
pub(crate) fn throughput(m: &RunMetrics) -> f64 {
    m.aggregate_throughput / KB
}

/// Throughput of all flows in kb/s: payload over time, 1 kb is 1000 bits.
pub(crate) fn kbps(m: &RunMetrics) -> f64 {
    m.aggregate_throughput * 8.0 / 1000.0
}

/// Throughput of all flows in Mb/s.
pub(crate) fn mbps(m: &RunMetrics) -> f64 {
    m.aggregate_throughput * 8.0 / 1e6
}

/// Throughput of flow `i` in kb/s, over the whole run.
pub(crate) fn flow_kbps(m: &RunMetrics, i: usize) -> f64 {
    m.flows.get(i).map_or(f64::NAN, |f| f.delivered as f64 * 8.0 / 1000.0 / m.end_s)
}

/// Goodput on the wired path in percent.
pub(crate) fn wired(m: &RunMetrics) -> f64 {
    100.0 * m.wired_goodput().unwrap_or(f64::NAN)
}

/// Goodput on the wireless hop in percent.
pub(crate) fn wireless(m: &RunMetrics) -> f64 {
    100.0 * m.wireless_goodput().unwrap_or(f64::NAN)
}

/// Retransmission timeouts of the senders.
pub(crate) fn timeouts(m: &RunMetrics) -> f64 {
    m.sum(|f| f.timeouts) as f64
}

/// Jain's index of the flows.
pub(crate) fn jain(m: &RunMetrics) -> f64 {
    m.jain_index
}

/// Duration of the transfers in seconds.
pub(crate) fn transfer_time(m: &RunMetrics) -> f64 {
    m.flows.iter().map(|f| f.transfer_time_s).sum()
}

/// Time in stalls in seconds.
pub(crate) fn stall_time(m: &RunMetrics) -> f64 {
    m.flows.iter().map(|f| f.stall_time_s).sum()
}

/// Packets dropped by `cause`.
pub(crate) fn dropped(cause: Cause) -> impl Fn(&RunMetrics) -> f64 {
    count(move |f| f.dropped.get(cause))
}

/// ACKs dropped at a full queue.
pub(crate) fn lost_acks(m: &RunMetrics) -> f64 {
    m.sum(|f| f.dropped_acks.get(Cause::QueueFull)) as f64
}

/// A count over all flows.
pub(crate) fn count(of: impl Fn(&FlowMetrics) -> u64) -> impl Fn(&RunMetrics) -> f64 {
    move |m| m.sum(&of) as f64
}
