//! What one stage does as long as nobody else has anything to do.

use lasthop_proto::machine::StageId;
use lasthop_proto::units::Time;

use super::{Outside, Path};
use crate::stage::Stage;

impl Path {
    /// Whoever calls does nothing before `until` but wake stages when they want to be: a stage that is woken may go on until
    /// another one wants to be.
    pub fn set_free(&mut self, until: Time) {
        self.free_until = until;
    }

    /// When a stage was called last.
    pub fn now(&self) -> Time {
        self.now
    }

    /// How many wakes were made within others.
    pub fn inner_wakes(&self) -> u64 {
        self.inner_wakes
    }

    /// Wakes the radio hop `i`, which goes on until another stage is due.
    pub(super) fn wake_hop<O: Outside>(&mut self, now: Time, i: usize, outside: &mut O) {
        self.wakes.set(i, None);
        let others = self.next_wake().unwrap_or(Time::NEVER);
        // A link that was replaced here has wakes of its own.
        let until = if self.retired.is_empty() { others.min(self.free_until) } else { now };
        let stage = StageId(i as u16);
        self.out.begin(stage, now);
        let Stage::Hop(hop) = &mut self.stages[i] else { return };
        let (at, wakes) = hop.on_wakes(now, until, stage, &mut self.out);
        self.now = at;
        self.inner_wakes += wakes - 1;
        self.settle(i, outside);
    }
}
