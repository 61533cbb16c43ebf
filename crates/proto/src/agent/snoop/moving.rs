//! Hand-off of the agent's state of a mobile host to and from another base station.

use super::flow::Flow;
use super::{BaseStation as _, Snoop};
use crate::event::Cause;
use crate::machine::{Out, Side};
use crate::units::Time;
use crate::wire::{Addr, FlowKey, Seq};

impl Snoop {
    /// Removes the flows of `host` and returns them.
    pub(in crate::agent) fn release(&mut self, host: Addr, out: &mut Out) -> Vec<(FlowKey, Flow)> {
        self.guard.leave(host);
        let flows = self.flows.take_of(host).into_iter().map(|(i, key, flow)| {
            self.cached -= flow.cache.bytes();
            self.forget(i, out);
            (key, flow.packed())
        });
        flows.collect()
    }

    /// Continues flows of another agent, within the limits of this one.
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

    /// Two packets per ACK, as in slow start: the new radio may be slow, and is shared with others.
    pub(super) fn repeat_moved(&mut self, now: Time, i: usize, out: &mut Out) {
        for _ in 0..2 {
            let Some(packet) = self.flows[i].left_behind(now, &self.config) else { return };
            out.originate(Side::Right, packet, Cause::HandoffRepeated);
        }
    }
}
