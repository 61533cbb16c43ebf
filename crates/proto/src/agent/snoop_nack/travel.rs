//! Hand-off of the state of a flow from the mobile host: export and import.

use super::{Flow, Hole, SnoopNack};
use crate::machine::Out;
use crate::travel::travels;
use crate::units::Time;
use crate::wire::{Addr, FlowKey};

travels!(Hole { start, end, last_request, reports });
travels!(Flow { origin, top, acked, fin, receiver, holes, requests, rtt });

impl SnoopNack {
    /// Removes the flows of `host` and returns them.
    pub(in crate::agent) fn release(&mut self, host: Addr, out: &mut Out) -> Vec<(FlowKey, Flow)> {
        let flows = self.flows.take_of(host).into_iter().map(|(i, key, mut flow)| {
            self.forget(i, out);
            flow.rtt.moved();
            flow.due = None;
            (key, flow)
        });
        flows.collect()
    }

    /// Continues flows of another agent. Holes are reported again when an answer would be due.
    pub(in crate::agent) fn adopt(
        &mut self,
        now: Time,
        flows: Vec<(FlowKey, Flow)>,
        out: &mut Out,
    ) {
        for (key, mut flow) in flows {
            // Flows are tracked from their SYN on, so a flow known here is the same connection or a later
            // one.
            if self.flows.find(key).is_some() {
                continue;
            }
            let timeout = flow.rtt.timeout(&self.config);
            flow.due = (!flow.holes.is_empty()).then_some(now + timeout);
            let i = self.watch(key, out);
            self.wakes.set(i, flow.due);
            self.flows[i] = flow;
        }
    }
}
