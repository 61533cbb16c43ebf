//! Forwarding on a path with access links of hosts, separate from the common case of a row of stages.

use lasthop_proto::machine::{Machine as _, Side, StageId};
use lasthop_proto::wire::Packet;

use super::{MAX_FORWARDED, Outside, Path};

/// The access links.
#[derive(Clone, Debug, Default)]
pub(super) struct Access {
    /// By stage: the link of a host, or the host of a link.
    other: Vec<Option<usize>>,
    /// The first of the links, which are behind the hosts.
    first: usize,
}

impl Access {
    fn other(&self, i: usize) -> Option<usize> {
        self.other.get(i).copied().flatten()
    }
}

impl Path {
    /// Sets access links as pairs of the stages of host and link.
    pub(crate) fn set_access(&mut self, pairs: &[(usize, usize)]) {
        let Some((_, first)) = pairs.first() else { return };
        self.access = Access { other: vec![None; self.stages.len()], first: *first };
        for (host, link) in pairs {
            self.access.other[*host] = Some(*link);
            self.access.other[*link] = Some(*host);
        }
        self.branches = true;
    }

    /// The equivalent of [`Path::forward`] with access links.
    pub(super) fn forward_by_access<O: Outside>(&mut self, mut i: usize, outside: &mut O) {
        for _ in 0..MAX_FORWARDED {
            self.queue_packets(i);
            let Some((from, side, packet)) = self.moving.pop_front() else { return };
            match self.neighbour_by_access(from, side, &packet) {
                Some(next) => {
                    self.counts[next].arrived += 1;
                    self.out.begin(StageId(next as u16), self.now);
                    self.stages[next].on_packet(self.now, side.other(), packet, &mut self.out);
                    self.collect_next(next, outside);
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
        // From or to a host with a link.
        self.access.other(i).or(self.access.other(next)).or(Some(next))
    }
}
