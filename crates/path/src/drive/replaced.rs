//! Replacement of stages while packets travel.

use lasthop_proto::agent::BaseStation as _;
use lasthop_proto::machine::{Machine as _, StageId};
use lasthop_proto::units::Time;

use super::Path;
use crate::stage::Stage;

impl Path {
    /// Replaces stage `i` while the path runs. Packets in a link are still forwarded in time, and connections that end
    /// at an agent continue there until they are over. Everything else in the old stage is lost; returns the number of
    /// those packets.
    pub fn replace_stage(&mut self, i: usize, stage: Stage) -> usize {
        let Some(place) = self.stages.get_mut(i) else { return 0 };
        let stage = match (place.agent_mut(), stage) {
            (Some(old), Stage::Agent(next)) => match old.drain(*next) {
                Ok(()) => {
                    self.rearm(i);
                    return 0;
                }
                Err(next) => Stage::Agent(Box::new(next)),
            },
            (_, stage) => stage,
        };
        let mut old = core::mem::replace(place, stage);
        let held = old.holds();
        // Without this, a link layer would retransmit forever over a dead channel.
        old.forget_channels();
        let is_link = old.is_link();
        if is_link && held > 0 {
            self.retired.push((i, old));
        }
        self.rearm(i);
        if is_link {
            return 0;
        }
        self.counts[i].ended += held as u64;
        held
    }

    /// Replaces agents whose last connection is over by their successors; true if there was one.
    pub fn retire_agents(&mut self) -> bool {
        let mut retired = false;
        for i in self.inner.clone() {
            if let Some(agent) = self.stages[i].agent_mut()
                && let Some(next) = agent.successor()
            {
                *agent = next;
                self.rearm(i);
                retired = true;
            }
        }
        retired
    }

    /// Forwards due packets of links that were replaced at stage `i`.
    #[cold]
    pub(super) fn wake_retired(&mut self, now: Time, i: usize) {
        self.out.begin(StageId(i as u16), now);
        for (_, stage) in self.retired.iter_mut().filter(|(at, _)| *at == i) {
            stage.on_wake(now, &mut self.out);
        }
        self.retired.retain(|(_, stage)| stage.holds() > 0);
    }

    /// The next deadline of links that were replaced at stage `i`.
    #[cold]
    pub(super) fn next_of_retired(&self, i: usize) -> Option<Time> {
        let old = self.retired.iter().filter(|(at, _)| *at == i);
        old.filter_map(|(_, stage)| stage.next_wake()).min()
    }
}
