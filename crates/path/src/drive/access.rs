//! How packets go through a path on which hosts hang by links of their own. Apart from the way through a row of stages,
//! which all others take.

use lasthop_proto::machine::{Machine as _, Side, StageId};
use lasthop_proto::wire::Packet;

use super::{AT_ONCE, Outside, Path};

/// The hosts' own links.
#[derive(Debug, Default)]
pub(super) struct Access {
    /// By stage: the link of a host, or the host of a link.
    other: Vec<Option<usize>>,
    /// The first of the links; they stand behind the hosts.
    first: usize,
}

impl Access {
    fn other(&self, i: usize) -> Option<usize> {
        self.other.get(i).copied().flatten()
    }
}

impl Path {
    /// These hosts, by their stages, have links of their own at the stages beside them.
    pub(crate) fn set_access(&mut self, pairs: &[(usize, usize)]) {
        let Some((_, first)) = pairs.first() else { return };
        self.access = Access { other: vec![None; self.stages.len()], first: *first };
        for (host, link) in pairs {
            self.access.other[*host] = Some(*link);
            self.access.other[*link] = Some(*host);
        }
        self.branches = true;
    }

    /// Does what [`Path::forward`] does where hosts have links of their own.
    pub(super) fn forward_by_access<O: Outside>(&mut self, mut i: usize, outside: &mut O) {
        for _ in 0..AT_ONCE {
            self.queue_packets(i);
            let Some((from, side, packet)) = self.moving.pop_front() else { return };
            match self.neighbour_by_access(from, side, &packet) {
                Some(next) => {
                    self.counts[next].arrived += 1;
                    self.out.begin(StageId(next as u16), self.now);
                    self.stages[next].on_packet(self.now, side.other(), packet, &mut self.out);
                    self.ask(next, outside);
                    i = next;
                }
                None => {
                    outside.leave(self.now, StageId(from as u16), side, packet);
                    i = from;
                }
            }
        }
        self.end_loop(i);
    }

    fn neighbour_by_access(&mut self, i: usize, side: Side, packet: &Packet) -> Option<usize> {
        let is_link = |i: usize| i >= self.access.first;
        // From a link to its host, or into the path.
        if let Some(host) = self.access.other(i).filter(|_| is_link(i)) {
            let inward = if host < self.inner.start { Side::Right } else { Side::Left };
            return if side == inward { self.neighbour(host, side, packet) } else { Some(host) };
        }
        let next = self.neighbour(i, side, packet)?;
        // From or to a host that has one.
        self.access.other(i).or(self.access.other(next)).or(Some(next))
    }
}
