//! A copy of a path midway, for runs that differ from here on.

use lasthop_proto::link::Fate;
use lasthop_proto::machine::StageId;

use super::Path;
use crate::stage::Stage;

impl Path {
    /// A copy in the same state. `None` if a host has another protocol stack: it cannot be copied.
    pub fn fork(&self) -> Option<Path> {
        let retired = self.retired.iter().map(|(i, stage)| Some((*i, stage.fork()?)));
        Some(Path {
            stages: self.stages.iter().map(Stage::fork).collect::<Option<_>>()?,
            inner: self.inner.clone(),
            next_hops: self.next_hops.clone(),
            found: self.found,
            host_stages: self.host_stages.clone(),
            counts: self.counts.clone(),
            wakes: self.wakes.clone(),
            out: self.out.clone(),
            moving: self.moving.clone(),
            leaving: self.leaving.clone(),
            now: self.now,
            free_until: self.free_until,
            inner_wakes: self.inner_wakes,
            hops: self.hops,
            host_called: self.host_called,
            retired: retired.collect::<Option<_>>()?,
            roam: self.roam.clone(),
            access: self.access.clone(),
            branches: self.branches,
            busy: self.busy,
            stuck: self.stuck,
        })
    }

    /// The router whose next wake decides about a packet, if it is the next of all, and the packet's place there.
    pub fn choice(&self) -> Option<(StageId, u64)> {
        let (_, stage) = self.next_stage()?;
        match self.stages.get(usize::from(stage.0))? {
            Stage::Cross(cross) => Some((stage, cross.choice()?)),
            _ => None,
        }
    }

    /// Decides about the packet at `place` of the router `stage`. No effect on other stages.
    pub fn set_fate(&mut self, stage: StageId, place: u64, fate: Fate) {
        if let Some(Stage::Cross(cross)) = self.stages.get_mut(usize::from(stage.0)) {
            cross.set_fate(place, fate);
        }
    }
}
