//! Routes of packets and signals from a stage, on a path that ends in cells.

use lasthop_proto::event::Cause;
use lasthop_proto::machine::Side;
use lasthop_proto::units::Time;
use lasthop_proto::wire::Packet;
use lasthop_scenario::roaming::Policy;

use super::{NONE, Roam};

/// The route of a packet that leaves a stage.
pub(crate) enum Way {
    Stage(usize),
    /// Back to this base station: its host is not in the cell.
    Back(usize),
    /// To the hosts on the left, by its address.
    LeftHosts,
    /// Dropped with a cause.
    Lost(Cause),
    /// Out of the path.
    Out,
}

impl Roam {
    /// The route of `packet` from stage `i` to `side`; `start` is the first stage of the wired part.
    pub(crate) fn way(
        &mut self,
        now: Time,
        (start, i): (usize, usize),
        side: Side,
        packet: &Packet,
    ) -> Way {
        let Some(&cell) = self.cell_of.get(i) else { return self.way_of_mobile(i, side) };
        let Some(place) = self.cells.get(usize::from(cell)) else {
            return match side {
                Side::Right if i == self.router => self.next_aim().map_or(Way::Out, |cell| {
                    Way::Stage(self.cells[usize::from(cell)].stages.start)
                }),
                Side::Right => Way::Stage(if i < start { start } else { i + 1 }),
                Side::Left if i > start => Way::Stage(i - 1),
                Side::Left if i == start => Way::LeftHosts,
                Side::Left => Way::Out,
            };
        };
        let (last, base, reach) = (i + 1 == place.stages.end, place.base, place.reach);
        match side {
            Side::Left if i == place.stages.start && !last => Way::Stage(self.router),
            Side::Right if !last => Way::Stage(i + 1),
            Side::Left if !last => Way::Stage(i - 1),
            Side::Left => match self.find(packet.src).map(|host| &self.mobiles[host]) {
                Some(mobile) if mobile.is_out_of(cell, now, reach) => Way::Lost(Cause::LeftCell),
                _ => Way::Stage(i - 1),
            },
            Side::Right => {
                let Some(host) = self.find(packet.dst) else { return Way::Out };
                let mobile = &mut self.mobiles[host];
                if !mobile.is_in(cell) {
                    return Way::Back(base);
                }
                if self.handoff.packets == Policy::Multicast {
                    mobile.copies.delivered(packet.id, self.handoff.buffer);
                }
                Way::Stage(mobile.stage)
            }
        }
    }

    fn next_aim(&mut self) -> Option<u16> {
        self.straight.take().or_else(|| self.aims.pop_front())
    }

    /// A mobile host sends through the cell that it received last.
    fn way_of_mobile(&self, stage: usize, side: Side) -> Way {
        let mobile = &self.mobiles[stage - self.hosts];
        match (side, mobile.audible[0]) {
            (Side::Right, _) => Way::Out,
            (_, NONE) => Way::Lost(Cause::NoCell),
            (_, cell) => Way::Stage(self.cells[usize::from(cell)].stages.end - 1),
        }
    }

    /// The neighbour that receives a signal of stage `i` to `side`. Signals travel to the left along the tree, and
    /// never from the wired part into a cell.
    pub(crate) fn neighbour(&self, i: usize, side: Side) -> Option<usize> {
        let cell = self.cells.get(usize::from(*self.cell_of.get(i)?));
        match (side, cell) {
            (Side::Left, Some(cell)) if i == cell.stages.start => Some(self.router),
            (Side::Left, _) => i.checked_sub(1),
            (Side::Right, Some(cell)) => Some(i + 1).filter(|next| *next < cell.stages.end),
            (Side::Right, None) => Some(i + 1).filter(|next| *next <= self.router),
        }
    }
}
