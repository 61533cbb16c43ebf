//! Metrics of a flow at the end of a run.

use lasthop_proto::event::Cause;
use lasthop_proto::units::Time;
use lasthop_proto::wire::FlowKey;

use super::carried::Carried;
use super::episodes::Episodes;
use super::flow::Flow;
use super::flow_metrics::{Delay, FlowMetrics};
use crate::counts::CauseCounts;
use crate::layout::{ExchangeInfo, Layout, ShortInfo, flow_name};

/// A flow and the opposite direction of its connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct FlowPair<'a> {
    pub(super) key: FlowKey,
    pub(super) flow: &'a Flow,
    pub(super) acks: &'a Flow,
}

impl FlowPair<'_> {
    /// The opposite direction.
    pub(super) fn reversed(self) -> Self {
        FlowPair { key: self.key.reversed(), flow: self.acks, acks: self.flow }
    }

    /// Whether it belongs to a group of flows that are reported together.
    pub(super) fn is_grouped(&self, layout: &Layout) -> bool {
        let carries = |info: &ExchangeInfo| {
            info.has_requests_on(&self.key) || info.has_requests_on(&self.key.reversed())
        };
        layout.short.iter().any(|info| self.is_between(info))
            || layout.exchanges.iter().any(carries)
    }

    /// Whether it is cross traffic.
    pub(super) fn is_cross(&self, layout: &Layout) -> bool {
        let carries = |info: &&ExchangeInfo| {
            info.has_requests_on(&self.key) || info.has_requests_on(&self.key.reversed())
        };
        self.flow.declared().is_some_and(|declared| declared.cross)
            || layout.short.iter().any(|info| info.cross && self.is_between(info))
            || layout.exchanges.iter().filter(carries).any(|info| info.cross)
    }

    /// Whether it carries requests of this table's clients.
    pub(super) fn has_requests_of(&self, info: &ExchangeInfo) -> bool {
        info.has_requests_on(&self.key)
    }

    /// Whether it is one of these short transfers.
    pub(super) fn is_between(&self, info: &ShortInfo) -> bool {
        !self.flow.is_declared() && (self.key.src, self.key.dst) == (info.from, info.to)
    }

    /// The metrics of this flow.
    pub(super) fn metrics(&self, end: Time) -> FlowMetrics {
        let FlowPair { flow, acks, .. } = *self;
        // The receiver of the data may have opened the connection.
        let opened = flow.opened.or_never().min(acks.opened.or_never()).or_none();
        let none = Carried::default();
        let carried = flow.carried.as_deref().unwrap_or(&none);
        let untouched = Episodes::default();
        let own = flow.episodes.as_deref().unwrap_or(&untouched);
        let theirs = acks.episodes.as_deref().unwrap_or(&untouched);
        let in_force = flow.in_force.as_deref().cloned().unwrap_or_default();
        let completed = own.completion.at_last();
        let until = completed.unwrap_or(end);
        let transfer_time_s = opened.map_or(0.0, |opened| until.since(opened).as_secs_f64());
        let per_second = if transfer_time_s > 0.0 { 1.0 / transfer_time_s } else { 0.0 };
        let declared = carried.declared.as_deref().copied().unwrap_or_default();
        let goodput = |radio: bool, packets: u64| {
            (packets > 0).then(|| flow.ideal(radio) as f64 / packets as f64)
        };
        let mut stall_list = carried.stalls.stalls(end);
        let (unlisted, unlisted_time) = carried.stalls.unlisted();
        let lengths = || stall_list.iter().map(|s| s.length_s());
        let (stall_time_s, longest_stall_s) =
            (lengths().sum::<f64>(), lengths().fold(0.0, f64::max));
        let stalls = stall_list.len() as u64 + unlisted;
        // A class may reach beyond the longest delay, which is exact.
        let quantile = |q| carried.delays.quantile(q).as_secs_f64().min(carried.delay.max());
        stall_list.truncate(super::LISTED_STALLS);
        FlowMetrics {
            flow: flow_name(&self.key),
            towards: Some(flow.towards),
            opened_s: opened.map(Time::as_secs_f64),
            completed_s: completed.map(Time::as_secs_f64),
            complete: completed.is_some(),
            aborted: completed.is_none() && (flow.aborted || acks.aborted),
            wanted: declared.bytes,
            cross: declared.cross,
            delivered: carried.delivered,
            transfer_time_s,
            throughput: carried.delivered as f64 * per_second,
            mss: flow.mss(false),
            ideal_packets: flow.ideal(false),
            wired_packets: carried.wired_packets,
            wireless_packets: carried.wireless_packets,
            wired_goodput: goodput(false, carried.wired_packets),
            wireless_goodput: goodput(true, carried.wireless_packets),
            timeouts: own.timeouts.into(),
            opening_timeouts: own.opening_timeouts.into(),
            fast_retransmits: own.fast_retransmits.into(),
            recoveries: own.recoveries.into(),
            undone: own.undone.into(),
            dupacks: own.dupacks,
            partial_acks: own.partial_acks.into(),
            loss_notifications: own.loss_notifications.into(),
            bad_state_notices: own.bad_state_notices.into(),
            quenches: own.quenches.into(),
            congestion_echoes: own.congestion_echoes.into(),
            marked: flow.marked(),
            marked_acks: acks.marked(),
            new_packets: carried.new_packets() + own.empty,
            originated: flow.all_originated(),
            originated_acks: acks.all_originated(),
            dropped: own.dropped.clone(),
            repeated: own
                .rare
                .as_ref()
                .map_or_else(CauseCounts::default, |rare| rare.repeated.clone()),
            dropped_acks: theirs.dropped.clone(),
            redundant: own.redundant,
            delay: Delay {
                packets: carried.delay.n(),
                mean_s: carried.delay.mean(),
                sd_s: carried.delay.sd(),
                max_s: carried.delay.max(),
                p50_s: quantile(0.50),
                p95_s: quantile(0.95),
                p99_s: quantile(0.99),
            },
            srtt: in_force.srtt.metrics(),
            rto: in_force.rto.metrics(),
            stalls,
            stall_time_s: stall_time_s + unlisted_time.as_secs_f64(),
            longest_stall_s,
            typical_gap_s: carried.stalls.typical_gap().as_secs_f64(),
            stall_list,
        }
    }
}

impl Flow {
    /// Payload of a full segment on the wired links, or on the radio hop.
    fn mss(&self, radio: bool) -> u32 {
        let Some(carried) = &self.carried else { return 0 };
        let Some(declared) = &carried.declared else { return carried.largest };
        // A base station at its connection limit forwards the connection unsplit.
        let relayed = self.episodes.as_ref().is_some_and(|own| own.completion.is_relayed());
        let split = declared.split_mss.filter(|_| relayed);
        split.map(|mss| mss[usize::from(radio)]).or(declared.mss).unwrap_or(carried.largest)
    }

    fn delivered(&self) -> u64 {
        self.carried.as_ref().map_or(0, |carried| carried.delivered)
    }

    /// Full segments needed for the delivered bytes.
    pub(super) fn ideal(&self, radio: bool) -> u64 {
        match self.mss(radio) {
            0 => 0,
            mss => self.delivered().div_ceil(mss.into()),
        }
    }

    /// Packets of the flow that a queue marked.
    fn marked(&self) -> u64 {
        self.has_rare().map_or(0, |rare| rare.marked)
    }

    /// Originated packets by cause.
    fn all_originated(&self) -> CauseCounts {
        CauseCounts::from_fn(|cause| match cause {
            Cause::Data => self.carried.as_ref().map_or(0, |carried| carried.data),
            Cause::Control => self.control.into(),
            cause => self.episodes.as_ref().map_or(0, |own| own.originated.get(cause)),
        })
    }
}
