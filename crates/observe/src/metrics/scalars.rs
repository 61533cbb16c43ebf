//! The numbers of a run that sweeps summarize, each with its name, its unit and its computation.

use serde::Serialize;

use super::clients::{Pages, Videos};
use super::datagrams::{Datagrams, Load};
use super::energy::NodeEnergy;
use super::exchanges::Exchanges;
use super::flow_metrics::FlowMetrics;
use super::model::{Limits, RunMetrics};
use super::short::ShortTransfers;
use super::voice::Score;

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

/// A kind of [`Scalar`].
#[derive(Clone, Copy, Debug)]
pub struct ScalarKind {
    /// [`Scalar::name`].
    pub name: &'static str,
    /// [`Scalar::unit`].
    pub unit: &'static str,
    /// The value; `None` in a run without the transfers, stages or hosts that have it.
    pub of: fn(&RunMetrics) -> Option<f64>,
}

const fn kind(
    name: &'static str,
    unit: &'static str,
    of: fn(&RunMetrics) -> Option<f64>,
) -> ScalarKind {
    ScalarKind { name, unit, of }
}

/// All scalars, in the order of results and of columns of tables. Tables of requests, videos and datagrams have their
/// longest times.
pub const SCALARS: [ScalarKind; 64] = [
    kind("throughput", "B/s", |m| Some(m.aggregate_throughput)),
    kind("transfer_time", "s", |m| m.mean(|f| f.transfer_time_s)),
    kind("wired_goodput", "1", RunMetrics::wired_goodput),
    kind("wireless_goodput", "1", RunMetrics::wireless_goodput),
    kind("link_retransmissions", "1", |m| m.with_air(|m| m.sum(|f| f.repeated.total()) as f64)),
    kind("collisions", "1", |m| m.with_air(|m| m.air(|c| c.collided as f64))),
    kind("airtime", "s", |m| m.with_air(|m| m.air(|c| c.airtime_s))),
    kind("timeouts", "1", |m| m.events(|f| f.timeouts, |e| e.timeouts)),
    kind("fast_retransmits", "1", |m| m.events(|f| f.fast_retransmits, |e| e.fast_retransmits)),
    kind("dupacks", "1", |m| m.count(|f| f.dupacks)),
    kind("host_retransmissions", "1", |m| {
        m.events(FlowMetrics::host_retransmissions, |e| e.retransmissions)
    }),
    kind("local_retransmissions", "1", |m| m.count(FlowMetrics::local_retransmissions)),
    kind("redundant", "1", |m| m.count(|f| f.redundant)),
    kind("partial_acks", "1", |m| m.count(|f| f.partial_acks)),
    kind("loss_notifications", "1", |m| m.count(|f| f.loss_notifications)),
    kind("bad_state_notices", "1", |m| m.count(|f| f.bad_state_notices)),
    kind("quenches", "1", |m| m.count(|f| f.quenches)),
    kind("stalls", "1", |m| m.count(|f| f.stalls)),
    kind("stall_time", "s", |m| m.mean(|f| f.stall_time_s)),
    kind("delay_mean", "s", |m| Some(m.mean_delay_s())),
    kind("delay_sd", "s", |m| Some(m.delay_sd_s())),
    kind("jain_index", "1", |m| Some(m.jain_index)),
    kind("limited_application", "1", |m| m.limit(|l| Some(l.application))),
    kind("limited_send_buffer", "1", |m| m.limit(|l| Some(l.send_buffer))),
    kind("limited_receive_window", "1", |m| m.limit(|l| Some(l.receive_window))),
    kind("limited_congestion_window", "1", |m| m.limit(|l| Some(l.congestion_window))),
    kind("limited_pacing", "1", |m| m.limit(|l| l.pacing)),
    kind("complete", "1", |m| m.count(|f| u64::from(f.complete))),
    kind("corrupted", "1", |m| Some(m.corrupted as f64)),
    kind("short_transfers", "1", |m| Some(total(&m.shorts()?, |s| s.complete as f64))),
    kind("short_time_mean", "s", |m| {
        let all = m.shorts()?;
        let time = total(&all, |s| s.time_mean_s * s.complete as f64);
        Some(time / total(&all, |s| s.complete as f64).max(1.0))
    }),
    kind("short_time_p95", "s", |m| Some(longest(&m.shorts()?, |s| s.time_p95_s))),
    kind("short_timeouts", "1", |m| Some(total(&m.shorts()?, |s| s.timeouts as f64))),
    kind("exchanges", "1", |m| Some(total(&m.tables()?, |e| e.answered as f64))),
    kind("exchange_time_p50", "s", |m| Some(longest(&m.tables()?, |e| e.time_p50_s))),
    kind("exchange_time_p95", "s", |m| Some(longest(&m.tables()?, |e| e.time_p95_s))),
    kind("exchange_time_p99", "s", |m| Some(longest(&m.tables()?, |e| e.time_p99_s))),
    kind("exchange_packets", "1", |m| {
        let all = m.tables()?;
        Some(total(&all, |e| e.packets as f64) / total(&all, |e| e.answered as f64).max(1.0))
    }),
    kind("pages", "1", |m| Some(total(&m.pages()?, |p| p.loaded as f64))),
    kind("page_load_p50", "s", |m| Some(longest(&m.pages()?, |p| p.load_p50_s))),
    kind("page_load_p95", "s", |m| Some(longest(&m.pages()?, |p| p.load_p95_s))),
    kind("page_first_byte_p50", "s", |m| Some(longest(&m.pages()?, |p| p.first_byte_p50_s))),
    kind("video_startup", "s", |m| Some(longest(&m.videos()?, |v| v.startup_s))),
    kind("video_rebuffers", "1", |m| Some(total(&m.videos()?, |v| v.rebuffers as f64))),
    kind("video_rebuffer_time", "s", |m| Some(total(&m.videos()?, |v| v.rebuffer_time_s))),
    kind("video_bitrate", "bit/s", |m| {
        let all = m.videos()?;
        let bits = total(&all, |v| v.bitrate * v.segments as f64);
        Some(bits / total(&all, |v| v.segments as f64).max(1.0))
    }),
    kind("video_switches", "1", |m| Some(total(&m.videos()?, |v| v.switches as f64))),
    kind("datagrams", "1", |m| Some(total(&m.streams()?, |d| d.arrived as f64))),
    kind("datagram_loss", "1", |m| {
        let all = m.streams()?;
        let (arrived, lost) = (total(&all, |d| d.arrived as f64), total(&all, |d| d.lost as f64));
        Some(lost / (lost + arrived).max(1.0))
    }),
    kind("datagram_delay_mean", "s", |m| Some(longest(&m.streams()?, |d| d.delay_mean_s))),
    kind("datagram_delay_p95", "s", |m| Some(longest(&m.streams()?, |d| d.delay_p95_s))),
    kind("datagram_jitter", "s", |m| Some(longest(&m.streams()?, |d| d.jitter_s))),
    kind("call_rating", "1", |m| m.worst_call(|v| v.r)),
    kind("call_mos", "1", |m| m.worst_call(|v| v.mos)),
    kind("load_rise", "s", |m| Some(m.highest_load()?.rise_s)),
    kind("load_rpm", "1", |m| Some(m.highest_load()?.rpm)),
    kind("cross_throughput", "B/s", RunMetrics::cross_throughput),
    kind("lifetime", "s", |m| Some(m.energy.first()?.lifetime_s)),
    kind("bytes_per_joule", "B/J", |m| Some(m.energy.first()?.bytes_per_joule)),
    kind("bytes_per_battery", "B", |m| Some(m.energy.first()?.bytes_per_battery)),
    kind("mean_power", "W", |m| m.energy.first().map(NodeEnergy::mean_power_w)),
    kind("handoffs", "1", |m| Some(m.handoffs?.count as f64)),
    kind("handoff_pause_mean", "s", |m| Some(m.handoffs?.pause_mean_s)),
    kind("handoff_pause_max", "s", |m| Some(m.handoffs?.pause_max_s)),
];

fn total<T>(all: &[&T], of: fn(&T) -> f64) -> f64 {
    all.iter().map(|one| of(one)).sum()
}

fn longest<T>(all: &[&T], of: fn(&T) -> f64) -> f64 {
    all.iter().map(|one| of(one)).fold(0.0, f64::max)
}

/// The items, if there are any.
fn any<'a, T>(all: impl Iterator<Item = &'a T>) -> Option<Vec<&'a T>> {
    Some(all.collect::<Vec<_>>()).filter(|all| !all.is_empty())
}

impl RunMetrics {
    /// The scalars that this run has.
    pub fn scalars(&self) -> Vec<Scalar> {
        let scalar = |kind: &ScalarKind| {
            let ScalarKind { name, unit, of } = *kind;
            Some(Scalar { name, unit, value: of(self)? })
        };
        SCALARS.iter().filter_map(scalar).collect()
    }

    /// Sum over flows.
    fn count(&self, of: impl Fn(&FlowMetrics) -> u64) -> Option<f64> {
        Some(self.sum(of) as f64)
    }

    /// Sum over flows and the connections of exchanges, which are not in `flows`.
    fn events(
        &self,
        of_flow: impl Fn(&FlowMetrics) -> u64,
        of_table: fn(&Exchanges) -> u64,
    ) -> Option<f64> {
        let tables = self.exchanges.iter().filter(|e| !e.cross);
        Some((self.sum(of_flow) + tables.map(of_table).sum::<u64>()) as f64)
    }

    /// Mean over flows.
    fn mean(&self, of: fn(&FlowMetrics) -> f64) -> Option<f64> {
        let flows = self.ours().count().max(1) as f64;
        Some(self.ours().map(of).sum::<f64>() / flows)
    }

    fn with_air(&self, of: fn(&RunMetrics) -> f64) -> Option<f64> {
        self.stages.iter().any(|s| s.air.is_some()).then(|| of(self))
    }

    fn limit(&self, of: fn(&Limits) -> Option<f64>) -> Option<f64> {
        of(self.limits.as_ref()?)
    }

    fn shorts(&self) -> Option<Vec<&ShortTransfers>> {
        any(self.short.iter().filter(|s| !s.cross))
    }

    fn tables(&self) -> Option<Vec<&Exchanges>> {
        any(self.exchanges.iter().filter(|e| !e.cross))
    }

    fn pages(&self) -> Option<Vec<&Pages>> {
        any(self.tables()?.into_iter().filter_map(|table| table.pages.as_ref()))
    }

    fn videos(&self) -> Option<Vec<&Videos>> {
        any(self.tables()?.into_iter().filter_map(|table| table.videos.as_ref()))
    }

    fn streams(&self) -> Option<Vec<&Datagrams>> {
        any(self.datagrams.iter().filter(|d| !d.cross))
    }

    /// The minimum over all tables of calls.
    fn worst_call(&self, of: fn(&Score) -> f64) -> Option<f64> {
        self.streams()?.into_iter().filter_map(|d| d.voice.as_ref()).map(of).reduce(f64::min)
    }

    fn highest_load(&self) -> Option<Load> {
        let loads = self.streams()?.into_iter().filter_map(|d| d.load);
        loads.max_by(|a, b| a.rise_s.total_cmp(&b.rise_s))
    }

    /// Bytes of cross traffic per second of the run.
    fn cross_throughput(&self) -> Option<f64> {
        let flows = self.flows.iter().filter(|f| f.cross).map(|f| f.delivered);
        let short = self.short.iter().filter(|s| s.cross).map(|s| s.delivered);
        let exchanged = self.exchanges.iter().filter(|e| e.cross).map(|e| e.delivered);
        let delivered = flows.chain(short).chain(exchanged).reduce(|sum, more| sum + more)?;
        (self.end_s > 0.0).then(|| delivered as f64 / self.end_s)
    }
}
