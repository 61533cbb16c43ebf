//! The metrics of a run, computed at its end.

use lasthop_proto::machine::Side;
use lasthop_proto::units::Time;

use super::flow_pair::FlowPair;
use super::{Metrics, NodeEnergy, RunMetrics, ShortTransfers, StageMetrics};
use crate::layout::{Role, ShortInfo};
use crate::stats::jain_index;
use crate::timeouts::TimeoutCauses;

impl Metrics {
    /// The metrics of a run that ended at `end`.
    pub fn finish(mut self, end: Time) -> RunMetrics {
        self.flows.settle();
        let (exchanges, short, stages) =
            (self.exchanges(end), self.short(end), self.stage_metrics());
        let timeout_causes = self.timeout_causes();
        let alone = |pair: FlowPair<'_>| {
            let alone = pair.flow.counts() && !pair.is_grouped(&self.layout);
            alone.then(|| pair.metrics(end))
        };
        let measured = core::mem::take(&mut self.flows).map_flows(alone);
        let ours = || measured.iter().filter(|f| !f.cross);
        let throughputs: Vec<f64> = ours().map(|f| f.throughput).collect();
        let opened = ours().filter_map(|f| f.opened_s).fold(f64::INFINITY, f64::min);
        let until = ours().map(|f| f.completed_s.unwrap_or(end.as_secs_f64()));
        let makespan = until.fold(0.0, f64::max) - opened;
        let delivered: u64 = ours().map(|f| f.delivered).sum();
        let seconds = |s: f64| Time((s * 1e9).round() as u64);
        let first = measured.iter().filter_map(|f| f.opened_s).reduce(f64::min).map(seconds);
        let done =
            measured.iter().filter_map(|f| f.completed_s).reduce(f64::min).map_or(end, seconds);
        let loaded = first.map(|first| first..done);
        let tables = self.layout.datagrams.iter();
        let datagrams: Vec<_> = tables.map(|info| self.sources.of(info, loaded.clone())).collect();
        let waited = || exchanges.iter().filter(|e| !e.cross && measured.is_empty());
        let waiting: f64 = waited().map(|e| e.time_mean_s * e.answered as f64).sum();
        let (makespan, delivered) = match waiting > 0.0 {
            true => (waiting, waited().map(|e| e.delivered).sum()),
            false if measured.is_empty() && self.layout.datagrams.iter().any(|d| !d.cross) => {
                let ours = datagrams.iter().filter(|d| !d.cross);
                (end.as_secs_f64(), ours.map(|d| d.delivered).sum())
            }
            false => (makespan, delivered),
        };
        RunMetrics {
            end_s: end.as_secs_f64(),
            events: self.events,
            stages,
            aggregate_throughput: if makespan > 0.0 { delivered as f64 / makespan } else { 0.0 },
            jain_index: jain_index(&throughputs),
            limits: None,
            timeout_causes,
            corrupted: self.corrupted,
            short,
            exchanges,
            datagrams,
            energy: self.energy(end),
            visits: self.visits.listed(&self.layout, end),
            handoffs: self.visits.handoffs(),
            flows: measured,
        }
    }

    /// Consumption of the battery-powered hosts.
    fn energy(&self, end: Time) -> Vec<NodeEnergy> {
        let nodes = self.powered.iter().zip(&self.layout.powered);
        nodes.map(|(node, info)| node.metrics(self.layout.name(info.host), end)).collect()
    }

    /// Timeouts by cause over all flows other than cross traffic.
    fn timeout_causes(&self) -> Option<TimeoutCauses> {
        let ours = self.flows.iter().filter(|pair| !pair.is_cross(&self.layout));
        let causes = ours.filter_map(|pair| pair.flow.timeout_causes());
        let all = causes.fold(TimeoutCauses::default(), TimeoutCauses::plus);
        (all.total() > 0).then_some(all)
    }

    /// Short transfers by pair of hosts.
    fn short(&self, end: Time) -> Vec<ShortTransfers> {
        let between = self.layout.short.iter().enumerate();
        // Several tables may name the same pair.
        let first = |(i, info): &(usize, &ShortInfo)| {
            !self.layout.short[..*i].iter().any(|o| (o.from, o.to) == (info.from, info.to))
        };
        between
            .filter(first)
            .map(|(_, info)| {
                let those = self.flows.iter();
                let those = those.filter(|pair| pair.is_between(info) && pair.flow.begun());
                ShortTransfers {
                    from: info.from.to_string(),
                    to: info.to.to_string(),
                    cross: info.cross,
                    ..ShortTransfers::of(those.map(|pair| pair.metrics(end)))
                }
            })
            .collect()
    }

    fn stage_metrics(&self) -> Vec<StageMetrics> {
        let mut all = Vec::new();
        if self.flows.brief {
            return all;
        }
        for (i, pair) in self.counters.iter().enumerate() {
            for side in [Side::Right, Side::Left] {
                let c = &pair[side.index()];
                let ended = c.dropped.total() + c.redirected.total();
                if c.packets + c.damaged + ended + c.originated.total() == 0 {
                    continue;
                }
                let info = self.layout.stages.get(i);
                let in_cell = self.layout.cells.iter().any(|stages| stages.contains(&i));
                let radio = info.is_some_and(|info| info.role == Role::Radio);
                let flows = self.flows.iter().map(|pair| pair.flow);
                let this_way = flows.filter(|f| f.counts() && f.towards == side);
                let ideal: u64 = this_way.map(|f| f.ideal(radio)).sum();
                all.push(StageMetrics {
                    name: info.map_or_else(|| format!("stage{i}"), |info| info.name.clone()),
                    role: info.map_or(Role::Link, |info| info.role),
                    towards: Some(side),
                    packets: c.packets,
                    bytes: c.bytes,
                    data_packets: c.data_packets,
                    data_bytes: c.data_bytes,
                    damaged: c.damaged,
                    damaged_data: c.damaged_data,
                    dropped: c.dropped.clone(),
                    originated: c.originated.clone(),
                    repeated: c.repeated.clone(),
                    redirected: c.redirected.clone(),
                    air: c.air.as_ref().and_then(|air| air.metrics()),
                    // Flows are not attributed to cells.
                    goodput: (c.data_packets > 0 && !in_cell)
                        .then(|| ideal as f64 / c.data_packets as f64),
                });
            }
        }
        all
    }
}
