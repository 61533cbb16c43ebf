//! Consecutive deadlines of one stage without other events between them.

use lasthop_proto::machine::StageId;
use lasthop_proto::units::Time;

use super::{Outside, Path};
use crate::stage::Stage;

impl Path {
    /// The caller dispatches only timers before `until`, so a stage may run ahead to the next deadline of another one.
    pub fn set_free(&mut self, until: Time) {
        self.free_until = until;
    }

    /// Time of the last call of a stage.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Number of deadlines handled within other calls.
    pub fn inner_wakes(&self) -> u64 {
        self.inner_wakes
    }

    /// Calls the radio hop `i` at its deadline. The hop continues until the deadline of another stage.
    pub(super) fn wake_hop<O: Outside>(&mut self, now: Time, i: usize, outside: &mut O) {
        self.wakes.set(i, None);
        let others = self.next_wake().unwrap_or(Time::NEVER);
        // A replaced link here has separate deadlines.
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
