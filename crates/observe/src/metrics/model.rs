//! Metrics of one run.

use lasthop_proto::machine::Side;
use serde::{Deserialize, Serialize};

use super::air::{AirMetrics, FrameCounts};
use super::datagrams::Datagrams;
use super::energy::NodeEnergy;
use super::exchanges::Exchanges;
use super::flow_metrics::{FlowMetrics, side};
use super::short::ShortTransfers;
use super::visits::{Handoffs, Visit};
use crate::counts::CauseCounts;
use crate::layout::Role;
use crate::timeouts::TimeoutCauses;

/// All metrics of one run. Times are in seconds since the start of the run, sizes in bytes, shares between 0
/// and 1.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct RunMetrics {
    /// End of the run, seconds.
    pub end_s: f64,
    /// Number of handled events of the metrics level.
    pub events: u64,
    /// One entry per flow with data, in the order of the layout, then of appearance. Short transfers are in
    /// `short`, requests and responses in `exchanges`.
    pub flows: Vec<FlowMetrics>,
    /// One entry per stage and direction with events, left to right, rightward first.
    pub stages: Vec<StageMetrics>,
    /// Throughput in bytes per second: bytes delivered in order by all flows other than cross traffic, from
    /// the first opening to the last completion. If a flow is incomplete, to the end of the run. With
    /// exchanges and no such flow: bytes of responses per second of waiting. With datagrams alone: their
    /// bytes per second of the run.
    pub aggregate_throughput: f64,
    /// Jain's fairness index over the throughputs of the same flows: 1 is equal, 1/n is one flow with
    /// everything.
    pub jain_index: f64,
    /// Limiting factors of the hosts' TCP senders; unknown for QUIC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<Limits>,
    /// Timeouts of all flows by cause, without cross traffic and handshakes; `None` if there were none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_causes: Option<TimeoutCauses>,
    /// Bytes about to be delivered that differ from the sent bytes. Any value but zero is a fault of the
    /// implementation.
    pub corrupted: u64,
    /// Short transfers, one entry per pair of hosts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub short: Vec<ShortTransfers>,
    /// Requests and responses, one entry per table.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exchanges: Vec<Exchanges>,
    /// Datagrams, one entry per table.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub datagrams: Vec<Datagrams>,
    /// One entry per battery-powered host, in the order of the scenario.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub energy: Vec<NodeEnergy>,
    /// The first visits to cells in the order of their start, including those in progress at the end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub visits: Vec<Visit>,
    /// Hand-offs, if hosts move.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handoffs: Option<Handoffs>,
}

/// Limiting factors of the senders, as shares of the time from the first data to the end. Directions of
/// connections are weighted by their bytes.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Limits {
    /// The application had no more data.
    pub application: f64,
    /// The send buffer was full of unacknowledged data.
    pub send_buffer: f64,
    /// The peer's window was full.
    pub receive_window: f64,
    /// The congestion window was full, or losses were repaired. Includes pacing if `pacing` is unknown.
    pub congestion_window: f64,
    /// The pacer delayed the next segment. Linux does not count it (`None`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pacing: Option<f64>,
}

/// Metrics of one stage in one direction.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct StageMetrics {
    /// Name in the scenario.
    pub name: String,
    /// Its role.
    pub role: Role,
    /// Direction of travel.
    #[serde(with = "side")]
    pub towards: Option<Side>,
    /// Packets that the link carried to its far end, damaged ones included.
    pub packets: u64,
    /// Carried bytes with IP headers, without framing.
    pub bytes: u64,
    /// Carried packets with TCP payload.
    pub data_packets: u64,
    /// Carried TCP payload, bytes.
    pub data_bytes: u64,
    /// Packets that the channel damaged.
    pub damaged: u64,
    /// Damaged packets with TCP payload.
    pub damaged_data: u64,
    /// Packets dropped here, by cause.
    pub dropped: CauseCounts,
    /// Packets originated here, by cause; plain `ack`s are not in the events of metrics.
    pub originated: CauseCounts,
    /// Retransmissions of the link layer, by cause.
    #[serde(default, skip_serializing_if = "CauseCounts::is_empty")]
    pub repeated: CauseCounts,
    /// Packets that a base station buffered or rerouted, by cause.
    #[serde(default, skip_serializing_if = "CauseCounts::is_empty")]
    pub redirected: CauseCounts,
    /// Transmissions, for radio hops with medium access or a link layer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub air: Option<AirMetrics>,
    /// Ideal number of data packets divided by those recorded here (west97 5.2), over all flows in this
    /// direction; `None` without transmitted data.
    pub goodput: Option<f64>,
}

#[cfg(test)]
impl StageMetrics {
    /// Share of the transmitted data packets that the channel did not damage (parsa98 5, goodput of a link);
    /// `None` without transmitted data.
    pub(super) fn delivery_ratio(&self) -> Option<f64> {
        (self.data_packets > 0).then(|| 1.0 - self.damaged_data as f64 / self.data_packets as f64)
    }
}

impl RunMetrics {
    /// The flows other than cross traffic.
    pub fn ours(&self) -> impl Iterator<Item = &FlowMetrics> {
        self.flows.iter().filter(|f| !f.cross)
    }

    /// Sum over flows other than cross traffic.
    pub fn sum(&self, of: impl Fn(&FlowMetrics) -> u64) -> u64 {
        self.ours().map(of).sum()
    }

    /// Goodput over all flows: ideal packets divided by recorded ones; `None` without recorded packets.
    fn goodput(
        &self,
        ideal: impl Fn(&FlowMetrics) -> u64,
        recorded: impl Fn(&FlowMetrics) -> u64,
    ) -> Option<f64> {
        let packets = self.sum(recorded);
        (packets > 0).then(|| self.sum(ideal) as f64 / packets as f64)
    }

    /// Goodput on the wired link over all flows.
    pub fn wired_goodput(&self) -> Option<f64> {
        self.goodput(|f| f.ideal_packets, |f| f.wired_packets)
    }

    /// Goodput on the radio hop over all flows.
    pub fn wireless_goodput(&self) -> Option<f64> {
        self.goodput(FlowMetrics::ideal_on_radio, |f| f.wireless_packets)
    }

    /// Sum of a number over the frames of all radio hops.
    pub fn air(&self, of: impl Fn(&FrameCounts) -> f64) -> f64 {
        self.stages.iter().filter_map(|s| s.air.as_ref()).map(|air| air.sum(&of)).sum()
    }

    /// Whether all flows other than cross traffic are complete.
    pub fn complete(&self) -> bool {
        let mut ours = self.ours().peekable();
        let grouped =
            !self.short.is_empty() || !self.exchanges.is_empty() || !self.datagrams.is_empty();
        (grouped || ours.peek().is_some())
            && ours.all(|f| f.complete)
            && self.short.iter().all(|s| s.complete == s.begun)
            && self.exchanges.iter().all(Exchanges::complete)
    }

    /// Mean packet delay over all flows, seconds.
    pub fn mean_delay_s(&self) -> f64 {
        let packets = self.sum(|f| f.delay.packets);
        let total: f64 = self.ours().map(|f| f.delay.mean_s * f.delay.packets as f64).sum();
        if packets > 0 { total / packets as f64 } else { 0.0 }
    }

    /// Sample standard deviation of the packet delay over the packets of all flows, seconds (parsa98 5.1.5).
    /// Flows with different mean delays have a larger deviation together than alone.
    pub fn delay_sd_s(&self) -> f64 {
        let packets = self.sum(|f| f.delay.packets);
        if packets < 2 {
            return 0.0;
        }
        let mean = self.mean_delay_s();
        let squares: f64 = self
            .ours()
            .map(|f| (f.delay.packets as f64, f.delay.mean_s - mean, f.delay.sd_s))
            .map(|(n, off, sd)| (n - 1.0).max(0.0) * sd * sd + n * off * off)
            .sum();
        (squares / (packets - 1) as f64).sqrt()
    }
}
