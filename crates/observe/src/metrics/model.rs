//! Metrics of one run.

use lasthop_proto::machine::Side;
use serde::{Deserialize, Serialize};

use super::air::{AirMetrics, FrameCounts};
use super::clients;
use super::datagrams::Datagrams;
use super::energy::NodeEnergy;
use super::exchanges::Exchanges;
use super::flow_metrics::{FlowMetrics, side};
use super::short::ShortTransfers;
use super::visits::{Handoffs, Visit};
use super::voice::Score;
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

impl Limits {
    /// Each known share with its name.
    pub fn named(&self) -> impl Iterator<Item = (&'static str, f64)> {
        let shares = [
            ("limited_application", Some(self.application)),
            ("limited_send_buffer", Some(self.send_buffer)),
            ("limited_receive_window", Some(self.receive_window)),
            ("limited_congestion_window", Some(self.congestion_window)),
            ("limited_pacing", self.pacing),
        ];
        shares.into_iter().filter_map(|(name, share)| Some((name, share?)))
    }
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

/// A number of a run that can be averaged over runs.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Scalar {
    /// Stable name: a column in files, a key in JSON.
    pub name: &'static str,
    /// Unit; `1` for shares and counts.
    pub unit: &'static str,
    /// The value.
    pub value: f64,
}

/// All numbers that [`RunMetrics::scalars`] may return, with their units, in its order: the columns of result
/// tables.
pub const SCALARS: [(&str, &str); 64] = [
    ("throughput", "B/s"),
    ("transfer_time", "s"),
    ("wired_goodput", "1"),
    ("wireless_goodput", "1"),
    ("link_retransmissions", "1"),
    ("collisions", "1"),
    ("airtime", "s"),
    ("timeouts", "1"),
    ("fast_retransmits", "1"),
    ("dupacks", "1"),
    ("host_retransmissions", "1"),
    ("local_retransmissions", "1"),
    ("redundant", "1"),
    ("partial_acks", "1"),
    ("loss_notifications", "1"),
    ("bad_state_notices", "1"),
    ("quenches", "1"),
    ("stalls", "1"),
    ("stall_time", "s"),
    ("delay_mean", "s"),
    ("delay_sd", "s"),
    ("jain_index", "1"),
    ("limited_application", "1"),
    ("limited_send_buffer", "1"),
    ("limited_receive_window", "1"),
    ("limited_congestion_window", "1"),
    ("limited_pacing", "1"),
    ("complete", "1"),
    ("corrupted", "1"),
    ("short_transfers", "1"),
    ("short_time_mean", "s"),
    ("short_time_p95", "s"),
    ("short_timeouts", "1"),
    ("exchanges", "1"),
    ("exchange_time_p50", "s"),
    ("exchange_time_p95", "s"),
    ("exchange_time_p99", "s"),
    ("exchange_packets", "1"),
    ("pages", "1"),
    ("page_load_p50", "s"),
    ("page_load_p95", "s"),
    ("page_first_byte_p50", "s"),
    ("video_startup", "s"),
    ("video_rebuffers", "1"),
    ("video_rebuffer_time", "s"),
    ("video_bitrate", "bit/s"),
    ("video_switches", "1"),
    ("datagrams", "1"),
    ("datagram_loss", "1"),
    ("datagram_delay_mean", "s"),
    ("datagram_delay_p95", "s"),
    ("datagram_jitter", "s"),
    ("call_rating", "1"),
    ("call_mos", "1"),
    ("load_rise", "s"),
    ("load_rpm", "1"),
    ("cross_throughput", "B/s"),
    ("lifetime", "s"),
    ("bytes_per_joule", "B/J"),
    ("bytes_per_battery", "B"),
    ("mean_power", "W"),
    ("handoffs", "1"),
    ("handoff_pause_mean", "s"),
    ("handoff_pause_max", "s"),
];

/// The scalar `name` of [`SCALARS`].
pub(super) fn scalar(name: &'static str, value: f64) -> Scalar {
    let unit = SCALARS.iter().find(|(known, _)| *known == name).map_or("1", |(_, unit)| *unit);
    Scalar { name, unit, value }
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

    /// The numbers for averages and tables, always in this order. Goodputs of missing links are left out.
    pub fn scalars(&self) -> Vec<Scalar> {
        let flows = self.ours().count().max(1) as f64;
        let mean = |of: &dyn Fn(&FlowMetrics) -> f64| self.ours().map(of).sum::<f64>() / flows;
        let count = |name, of: &dyn Fn(&FlowMetrics) -> u64| scalar(name, self.sum(of) as f64);
        let mut all = vec![
            scalar("throughput", self.aggregate_throughput),
            scalar("transfer_time", mean(&|f| f.transfer_time_s)),
        ];
        let goodputs = [
            ("wired_goodput", self.wired_goodput()),
            ("wireless_goodput", self.wireless_goodput()),
        ];
        for (name, value) in goodputs {
            all.extend(value.map(|value| scalar(name, value)));
        }
        if self.stages.iter().any(|s| s.air.is_some()) {
            all.push(count("link_retransmissions", &|f| f.repeated.total()));
            all.push(scalar("collisions", self.air(|c| c.collided as f64)));
            all.push(scalar("airtime", self.air(|c| c.airtime_s)));
        }
        // Includes exchanges, whose connections are not in `flows`.
        let with_exchanges =
            |name, flows: &dyn Fn(&FlowMetrics) -> u64, of: fn(&Exchanges) -> u64| {
                let exchanged = self.exchanges.iter().filter(|e| !e.cross).map(of).sum::<u64>();
                scalar(name, (self.sum(flows) + exchanged) as f64)
            };
        all.extend([
            with_exchanges("timeouts", &|f| f.timeouts, |e| e.timeouts),
            with_exchanges("fast_retransmits", &|f| f.fast_retransmits, |e| e.fast_retransmits),
            count("dupacks", &|f| f.dupacks),
            with_exchanges("host_retransmissions", &FlowMetrics::host_retransmissions, |e| {
                e.retransmissions
            }),
            count("local_retransmissions", &FlowMetrics::local_retransmissions),
            count("redundant", &|f| f.redundant),
            count("partial_acks", &|f| f.partial_acks),
            count("loss_notifications", &|f| f.loss_notifications),
            count("bad_state_notices", &|f| f.bad_state_notices),
            count("quenches", &|f| f.quenches),
            count("stalls", &|f| f.stalls),
            scalar("stall_time", mean(&|f| f.stall_time_s)),
            scalar("delay_mean", self.mean_delay_s()),
            scalar("delay_sd", self.delay_sd_s()),
            scalar("jain_index", self.jain_index),
        ]);
        let limits = self.limits.iter().flat_map(Limits::named);
        all.extend(limits.map(|(name, value)| scalar(name, value)));
        all.extend([
            count("complete", &|f| u64::from(f.complete)),
            scalar("corrupted", self.corrupted as f64),
        ]);
        self.others(&mut all);
        self.powered(&mut all);
        if let Some(handoffs) = self.handoffs {
            let Handoffs { count, pause_mean_s, pause_max_s, .. } = handoffs;
            all.extend([
                scalar("handoffs", count as f64),
                scalar("handoff_pause_mean", pause_mean_s),
                scalar("handoff_pause_max", pause_max_s),
            ]);
        }
        all
    }

    /// Adds the numbers of the first battery-powered host, if there is one.
    fn powered(&self, all: &mut Vec<Scalar>) {
        let Some(node) = self.energy.first() else { return };
        all.extend([
            scalar("lifetime", node.lifetime_s),
            scalar("bytes_per_joule", node.bytes_per_joule),
            scalar("bytes_per_battery", node.bytes_per_battery),
            scalar("mean_power", node.mean_power_w()),
        ]);
    }

    /// Adds the numbers of requests and responses, if there are any; over several tables the longest times.
    fn exchange_scalars(&self, all: &mut Vec<Scalar>) {
        let ours = || self.exchanges.iter().filter(|e| !e.cross);
        if ours().next().is_none() {
            return;
        }
        let answered = ours().map(|e| e.answered).sum::<u64>() as f64;
        let each = |sum: u64| sum as f64 / answered.max(1.0);
        let longest = |of: fn(&Exchanges) -> f64| ours().map(of).fold(0.0, f64::max);
        all.extend([
            scalar("exchanges", answered),
            scalar("exchange_time_p50", longest(|e| e.time_p50_s)),
            scalar("exchange_time_p95", longest(|e| e.time_p95_s)),
            scalar("exchange_time_p99", longest(|e| e.time_p99_s)),
            scalar("exchange_packets", each(ours().map(|e| e.packets).sum())),
        ]);
    }

    /// Adds the numbers of datagrams, if there are any; over several tables the longest times.
    fn datagrams(&self, all: &mut Vec<Scalar>) {
        let ours = || self.datagrams.iter().filter(|d| !d.cross);
        if ours().next().is_none() {
            return;
        }
        let sum = |of: fn(&Datagrams) -> u64| ours().map(of).sum::<u64>() as f64;
        let (arrived, lost) = (sum(|d| d.arrived), sum(|d| d.lost));
        let longest = |of: fn(&Datagrams) -> f64| ours().map(of).fold(0.0, f64::max);
        all.extend([
            scalar("datagrams", arrived),
            scalar("datagram_loss", lost / (lost + arrived).max(1.0)),
            scalar("datagram_delay_mean", longest(|d| d.delay_mean_s)),
            scalar("datagram_delay_p95", longest(|d| d.delay_p95_s)),
            scalar("datagram_jitter", longest(|d| d.jitter_s)),
        ]);
        // The minimum over all tables.
        let worst = |of: fn(&Score) -> f64| {
            ours().filter_map(|d| d.voice.as_ref()).map(of).reduce(f64::min)
        };
        let rated = [("call_rating", worst(|v| v.r)), ("call_mos", worst(|v| v.mos))];
        all.extend(rated.into_iter().filter_map(|(name, value)| Some(scalar(name, value?))));
        if let Some(load) =
            ours().filter_map(|d| d.load).max_by(|a, b| a.rise_s.total_cmp(&b.rise_s))
        {
            all.push(scalar("load_rise", load.rise_s));
            all.push(scalar("load_rpm", load.rpm));
        }
    }

    /// Adds the numbers of short transfers and of cross traffic, if there are any.
    fn others(&self, all: &mut Vec<Scalar>) {
        let short = || self.short.iter().filter(|s| !s.cross);
        if short().next().is_some() {
            let complete = short().map(|s| s.complete).sum::<u64>() as f64;
            let mean = short().map(|s| s.time_mean_s * s.complete as f64).sum::<f64>();
            let p95 = short().map(|s| s.time_p95_s).fold(0.0, f64::max);
            let timeouts = short().map(|s| s.timeouts).sum::<u64>() as f64;
            all.extend([
                scalar("short_transfers", complete),
                scalar("short_time_mean", mean / complete.max(1.0)),
                scalar("short_time_p95", p95),
                scalar("short_timeouts", timeouts),
            ]);
        }
        self.exchange_scalars(all);
        clients::scalars(&self.exchanges, all);
        self.datagrams(all);
        let cross = self.flows.iter().filter(|f| f.cross).map(|f| f.delivered);
        let short = self.short.iter().filter(|s| s.cross).map(|s| s.delivered);
        let exchanged = self.exchanges.iter().filter(|e| e.cross).map(|e| e.delivered);
        let delivered =
            cross.chain(short).chain(exchanged).fold(None, |sum, d| Some(sum.unwrap_or(0) + d));
        if let Some(delivered) = delivered.filter(|_| self.end_s > 0.0) {
            let value = delivered as f64 / self.end_s;
            all.push(scalar("cross_throughput", value));
        }
    }
}
