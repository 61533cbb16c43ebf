//! What of a flow from the mobile host moves to another base station, and how that one goes on with it.

use super::{Flow, HOLES, Hole, SnoopNack};
use crate::machine::Out;
use crate::travel::FAR;
use crate::travel::travels;
use crate::units::Time;
use crate::wire::{Addr, FlowKey};

travels!(Hole { start, end, asked_as, asked });
travels!(Flow { origin, top, acked, fin, receiver, holes, requests, rtt, .. });

impl Flow {
    /// Whether no step can overflow with it.
    pub(in super::super) fn is_sound(&self) -> bool {
        let near = |position: Option<u64>| position.is_none_or(|position| position < FAR);
        let (holes, most) = (&self.holes, u32::MAX / 2);
        let apart = holes.windows(2).all(|pair| pair[0].end <= pair[1].start);
        let sound = |hole: &Hole| {
            hole.start < hole.end
                && hole.end <= self.top
                && hole.asked < most
                && hole.asked_as < FAR
        };
        let counted = self.top < FAR && self.requests < FAR && holes.len() <= HOLES;
        counted && near(self.acked) && near(self.fin) && apart && holes.iter().all(sound)
    }
}

impl SnoopNack {
    /// The flows of `host`, which are forgotten here.
    pub(super) fn release(&mut self, host: Addr, out: &mut Out) -> Vec<(FlowKey, Flow)> {
        let flows = self.flows.take_of(host).into_iter().map(|(i, key, mut flow)| {
            self.forget(i, out);
            flow.rtt.moved();
            flow.due = None;
            (key, flow)
        });
        flows.collect()
    }

    /// Watches flows that another agent has watched so far. Holes are named again when an answer would be due.
    pub(super) fn adopt(&mut self, now: Time, flows: Vec<(FlowKey, Flow)>, out: &mut Out) {
        for (key, mut flow) in flows {
            // Flows are watched from their SYN on: what is known here is the same connection or a later one.
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
