//! Hand-off of a flow's state: export and import.

use super::{Flow, Loss, SeqCache};
use crate::machine::Out;
use crate::travel::{Travels, travels};
use crate::units::Time;
use crate::wire::{Addr, FlowKey};

travels!(Flow {
    origin,
    top,
    acked,
    fin,
    receiver,
    runs,
    loss,
    ahead,
    segment,
    answers,
    rtt,
    backoff,
});

impl Travels for Loss {
    fn size(&self) -> u64 {
        if matches!(self, Loss::Resent { .. }) { 17 } else { 1 }
    }
}

impl SeqCache {
    /// Removes the flows of `host` and returns them.
    pub(in crate::agent) fn release(&mut self, host: Addr, out: &mut Out) -> Vec<(FlowKey, Flow)> {
        self.guard.leave(host);
        let flows = self.flows.take_of(host).into_iter().map(|(i, key, mut flow)| {
            self.forget(i, out);
            flow.rtt.moved();
            flow.timer = None;
            (key, flow)
        });
        flows.collect()
    }

    /// Continues flows of another agent.
    pub(in crate::agent) fn adopt(
        &mut self,
        now: Time,
        flows: Vec<(FlowKey, Flow)>,
        out: &mut Out,
    ) {
        for (key, flow) in flows {
            // Flows are tracked from their SYN on, so a flow known here is the same connection or a later
            // one.
            if self.flows.find(key).is_some() {
                continue;
            }
            let i = self.watch(key, out);
            self.flows[i] = flow;
            let flow = &mut self.flows[i];
            if flow.top > flow.acked && flow.loss != Loss::Notified {
                flow.restart(now);
            }
            self.set_wake(i);
        }
    }
}
