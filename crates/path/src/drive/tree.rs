//! Forwarding on a path that ends in cells, separate from the common case of a row of stages.

use lasthop_proto::event::{Event, EventKind, Op};
use lasthop_proto::machine::{Machine as _, Side, StageId};
use lasthop_proto::wire::Packet;

use super::{MAX_FORWARDED, Outside, Path};
use crate::roam::Way;

impl Path {
    /// The equivalent of [`Path::forward`] on a path with cells.
    pub(super) fn forward_in_tree<O: Outside>(&mut self, mut i: usize, outside: &mut O) {
        // A packet that passed a router or base station without any action.
        let mut passing: Option<(Side, Packet)> = None;
        for _ in 0..MAX_FORWARDED {
            // Usually a single packet moves and need not queue.
            let alone = self.moving.is_empty() && self.out.sends.len() <= 1;
            let (side, packet) = if let Some(passing) = passing.take() {
                passing
            } else if alone {
                let Some(only) = self.out.sends.pop() else { return };
                only
            } else {
                self.queue_packets(i);
                let Some((from, side, packet)) = self.moving.pop_front() else { return };
                i = from;
                (side, packet)
            };
            let (next, from) = match self.way_in_tree(i, side, &packet) {
                Way::Stage(next) => (next, side.other()),
                Way::Back(next) => (next, side),
                Way::Out | Way::LeftHosts => {
                    outside.leave(self.now, StageId(i as u16), side, packet);
                    continue;
                }
                Way::Lost(cause) => {
                    let kind = EventKind::Packet { op: Op::Dropped(cause), side, packet };
                    outside.event(&Event { at: self.now, stage: StageId(i as u16), kind });
                    continue;
                }
            };
            self.counts[next].arrived += 1;
            let Some(roam) = &mut self.roam else { return };
            if from == side.other() && roam.passes(next, side, &packet) {
                self.counts[next].departed += 1;
                (i, passing) = (next, Some((side, packet)));
                continue;
            }
            self.out.begin(StageId(next as u16), self.now);
            if roam.is_at(next) {
                roam.on_packet(next, from, packet, &mut self.out);
            } else {
                self.stages[next].on_packet(self.now, from, packet, &mut self.out);
            }
            self.collect_next(next, outside);
            i = next;
        }
        self.end_loop(i);
    }

    fn way_in_tree(&mut self, i: usize, side: Side, packet: &Packet) -> Way {
        let Some(roam) = &mut self.roam else { return Way::Out };
        match roam.way(self.now, (self.inner.start, i), side, packet) {
            Way::LeftHosts => {
                self.host_at(packet, 0..self.inner.start).map_or(Way::Out, Way::Stage)
            }
            way => way,
        }
    }
}
