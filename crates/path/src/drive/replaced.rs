//! Stages that are replaced while packets travel.

use lasthop_proto::agent::BaseStation as _;
use lasthop_proto::machine::{Machine as _, StageId};
use lasthop_proto::units::Time;

use super::Path;
use crate::stage::Stage;

impl Path {
    /// Puts `stage` into the place of stage `i` while the path runs. What a link holds is still handed on, when
    /// its time comes, and connections that end at an agent go on there until they are over; whatever else the old
    /// stage held is lost, and how many packets that were is the answer.
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
        // Over a dead channel a link layer would try for ever.
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

    /// Agents whose last connection is over give way to those that were to replace them; whether any did.
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

    /// Links that were replaced at place `i` hand on what is due.
    #[cold]
    pub(super) fn wake_retired(&mut self, now: Time, i: usize) {
        self.out.begin(StageId(i as u16), now);
        for (_, stage) in self.retired.iter_mut().filter(|(at, _)| *at == i) {
            stage.on_wake(now, &mut self.out);
        }
        self.retired.retain(|(_, stage)| stage.holds() > 0);
    }

    /// When a link that was replaced at place `i` wants to be called next.
    #[cold]
    pub(super) fn next_of_retired(&self, i: usize) -> Option<Time> {
        let old = self.retired.iter().filter(|(at, _)| *at == i);
        old.filter_map(|(_, stage)| stage.next_wake()).min()
    }
}
