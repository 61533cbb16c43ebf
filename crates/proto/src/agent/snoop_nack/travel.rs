//! Hand-off of the state of a flow from the mobile host: export and import.

use super::{Flow, HOLES, Hole, SnoopNack};
use crate::machine::Out;
use crate::travel::FAR;
use crate::travel::travels;
use crate::units::Time;
use crate::wire::{Addr, FlowKey};

travels!(Hole { start, end, last_request, reports });
travels!(Flow { origin, top, acked, fin, receiver, holes, requests, rtt, .. });

impl Flow {
    /// Whether no operation can overflow with it.
    pub(in super::super) fn is_sound(&self) -> bool {
        let near = |position: Option<u64>| position.is_none_or(|position| position < FAR);
        let (holes, most) = (&self.holes, u32::MAX / 2);
        let apart = holes.windows(2).all(|pair| pair[0].end <= pair[1].start);
        let sound = |hole: &Hole| {
            hole.start < hole.end
                && hole.end <= self.top
                && hole.reports < most
                && hole.last_request < FAR
        };
        let counted = self.top < FAR && self.requests < FAR && holes.len() <= HOLES;
        counted && near(self.acked) && near(self.fin) && apart && holes.iter().all(sound)
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    const TOP: u64 = 10_000;

    fn hole(start: u64, end: u64) -> Hole {
        Hole { start, end, last_request: 1, reports: 1 }
    }

    fn flow(holes: &[Hole]) -> Flow {
        Flow { top: TOP, acked: Some(1000), requests: 3, holes: holes.to_vec(), ..Flow::default() }
    }

    /// Each inconsistency in the state of another base station.
    #[test]
    fn a_flow_that_cannot_be_is_not_taken_over() {
        let sound = || flow(&[hole(1000, 2000), hole(2000, TOP)]);
        assert!(sound().is_sound());
        assert!(Flow { fin: Some(TOP), acked: None, ..sound() }.is_sound());
        for (case, flow) in [
            ("acknowledged too far", Flow { acked: Some(FAR), ..sound() }),
            ("a FIN too far", Flow { fin: Some(FAR), ..sound() }),
            ("the top too far", Flow { top: FAR, ..sound() }),
            ("too many requests", Flow { requests: FAR, ..sound() }),
            ("a hole of nothing", flow(&[hole(1000, 1000)])),
            ("a hole beyond the top", flow(&[hole(1000, TOP + 1)])),
            ("holes in one another", flow(&[hole(1000, 2001), hole(2000, 3000)])),
            ("asked for too often", flow(&[Hole { reports: u32::MAX / 2, ..hole(1000, 2000) }])),
            ("asked for too late", flow(&[Hole { last_request: FAR, ..hole(1000, 2000) }])),
            (
                "too many holes",
                flow(&(0..=HOLES as u64).map(|i| hole(10 * i, 10 * i + 5)).collect::<Vec<_>>()),
            ),
        ] {
            assert!(!flow.is_sound(), "{case}");
        }
    }
}
