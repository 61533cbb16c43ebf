//! What the packets that come next will touch at a host with many connections is read before they come.

use core::ops::Range;

use lasthop_proto::machine::Side;
use lasthop_proto::tcp::Host;

use super::Path;
use crate::stage::Stage;

impl Path {
    /// What comes out of line `i` next touches connections of a host that lie in no near cache. That is read before, for
    /// several packets together, so that they wait for memory once.
    #[inline(never)]
    pub(super) fn look_ahead(&self, i: usize, side: Side) {
        let Stage::Line(line) = &self.stages[i] else { return };
        if let Some(host) = self.only_host(i, side) {
            core::hint::black_box(host.expect(line.read(side)));
        }
    }

    /// The host that stage `i` hands on to towards `side`, if there is but one.
    fn only_host(&self, i: usize, side: Side) -> Option<&Host> {
        let Range { start, end } = self.inner;
        match side {
            Side::Left if i == start && start == 1 => self.stages[0].host(),
            Side::Right if i + 1 == end && end + 1 == self.stages.len() => self.stages[end].host(),
            _ => None,
        }
    }
}
