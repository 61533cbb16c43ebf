//! What the agent knows of a mobile host goes to another base station, and comes from there.

use super::flow::Flow;
use super::{BaseStation as _, Snoop};
use crate::event::Cause;
use crate::machine::{Out, Side};
use crate::units::Time;
use crate::wire::{Addr, FlowKey, Seq};

impl Snoop {
    /// The flows of `host`, which are forgotten here.
    pub(in crate::agent) fn release(&mut self, host: Addr, out: &mut Out) -> Vec<(FlowKey, Flow)> {
        self.guard.leave(host);
        let flows = self.flows.take_of(host).into_iter().map(|(i, key, flow)| {
            self.cached -= flow.cache.bytes();
            self.forget(i, out);
            (key, flow.packed())
        });
        flows.collect()
    }

    /// Watches flows that another agent has watched so far, within the bounds of this one.
    pub(in crate::agent) fn adopt(
        &mut self,
        now: Time,
        flows: Vec<(FlowKey, Flow)>,
        out: &mut Out,
    ) {
        for (key, mut flow) in flows {
            flow.has_moved();
            if let Some(i) = self.flows.find(key) {
                if self.flows[i].began_after(&flow) {
                    continue;
                }
                let own = core::mem::take(&mut self.flows[i]);
                self.cached -= own.cache.bytes();
                self.forget(i, out);
                flow.absorb(own);
            }
            let i = self.watch(key, Seq(0), false, out);
            flow.cache.truncate(self.config.flow_packets);
            while !self.make_room(i, flow.cache.bytes(), out) {
                flow.cache.truncate(flow.cache.len() / 2);
            }
            flow.resume(now, &self.config);
            if flow.cache.has_supers() {
                flow.cut(true);
            }
            self.cached += flow.cache.bytes();
            self.flows[i] = flow;
            self.repeat_moved(now, i, out);
            self.set_wake(i);
        }
        self.peak = self.peak.max(self.state_bytes());
    }

    /// Two packets for each ACK, as in slow start: the new radio may be a slow one, and carries others.
    pub(super) fn repeat_moved(&mut self, now: Time, i: usize, out: &mut Out) {
        for _ in 0..2 {
            let Some(packet) = self.flows[i].left_behind(now, &self.config) else { return };
            out.originate(Side::Right, packet, Cause::HandoffRepeated);
        }
    }
}
